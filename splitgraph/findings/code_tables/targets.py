"""What the runtime that a model is for reads."""

from __future__ import annotations

from splitgraph.findings.code_tables.code_info import CodeInfo

# 7xx
TARGETS = {
    "SG701": CodeInfo(
        "refused by the target",
        "The runtime that the model is for does not load a node of this kind, as a measurement or its own documents "
        "say.",
        "Run splitgraph convert --target, which writes a form that the runtime reads.",
    ),
    "SG702": CodeInfo(
        "wrong in the target",
        "The runtime that the model is for loads a node of this kind and silently gives other results than the "
        "specification.",
        "Run splitgraph convert --target, which writes a form that the runtime computes correctly.",
    ),
    "SG703": CodeInfo(
        "fatal for the target",
        "The process of the runtime that the model is for ends at a node of this kind.",
        "Run splitgraph convert --target, which writes a form that the runtime reads.",
    ),
    "SG704": CodeInfo(
        "too new for the target",
        "The opset or the IR version of the model is newer than the runtime that the model is for reads.",
        "Run splitgraph convert --target, or use a newer version of the runtime.",
    ),
    "SG705": CodeInfo(
        "not known of the target",
        "Nobody measured whether the runtime that the model is for reads such a node, and its documents do not say.",
        "Try the model in the runtime, and compare its results with those of ONNX Runtime.",
    ),
    "SG706": CodeInfo(
        "no form that the target reads",
        "The model cannot be converted for the target: the runtime reads this node in no form that splitgraph can "
        "write.",
        "Give the dimensions fixed sizes, change the model, or use another runtime.",
    ),
    "SG707": CodeInfo(
        "not always read by the target",
        "The runtime was measured with several cases of this operator, and did not read all of them. Nothing that "
        "this node has tells them apart.",
        "Try the model in the runtime, and compare its results with those of ONNX Runtime.",
    ),
    "SG708": CodeInfo(
        "version of the target that was not measured",
        "This version of the runtime was not measured. What is said is known of the nearest older version that was.",
        "Run splitgraph check --run where this version is installed.",
    ),
    "SG709": CodeInfo(
        "refused when it was run",
        "The model was run in the runtime itself, which gave an error, died or did not end. The message names the "
        "first node at which that happens.",
        "Run splitgraph convert --target, which runs its result in the runtime, too.",
    ),
    "SG710": CodeInfo(
        "other results when it was run",
        "The model was run in the runtime itself, which gave other results than ONNX Runtime. The message names the "
        "first node whose result differs.",
        "Run splitgraph convert --target, which runs its result in the runtime, too.",
    ),
    "SG711": CodeInfo(
        "not run in the target",
        "The model was to be run in the runtime itself, and was not: the runtime is not installed, or there is "
        "nothing to compare its results with.",
        "Install the runtime where it is missing, or name a Python that has it with --runtime-python.",
    ),
}
