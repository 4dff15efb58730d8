"""Whether two models can be compared at all, and by which engines."""

from __future__ import annotations

import onnx

from splitgraph.conversion.planning.apply import apply_plan
from splitgraph.conversion.prepare.repair import plan_repairs
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.execution.advice import MORE_MEMORY, installing, is_installed
from splitgraph.execution.child import memory_limit
from splitgraph.execution.engines import OLDEST_ONNXRUNTIME_OPSET
from splitgraph.execution.model_edits import is_default_domain
from splitgraph.execution.model_files import weights_of
from splitgraph.execution.subjects import Subject
from splitgraph.execution.verify_arguments import Engine
from splitgraph.graph.order import sort_nodes
from splitgraph.inference import walk_model
from splitgraph.inference.analysis import Analysis

# A cycle, an opset that does not exist or is not imported, a name defined twice, a value that nothing defines: engines
# may run such a model all the same, but what they give proves nothing.
_MEANINGLESS = frozenset({"SG102", "SG103", "SG104", "SG105", "SG110"})


def in_order(subject: Subject) -> Subject:
    """The model with its nodes in topological order, which the reference evaluator demands; itself where they are."""
    if not isinstance(subject.model, onnx.ModelProto):
        return subject
    if not any(found.code == "SG112" for found in subject.analysis.diagnostics):
        return subject
    copy = onnx.ModelProto()
    copy.CopyFrom(subject.model)
    sort_nodes(copy)
    return subject.with_onnx(copy)


def too_deep(first: Subject, second: Subject) -> Diagnostic | None:
    """Why nothing more is to be asked of the models, whose graphs or types are nested deeper than is looked into."""
    for which, subject in (("before", first), ("after", second)):
        found = next((fault for fault in subject.analysis.diagnostics if fault.code == "SG114"), None)
        if found is not None:
            return _bad_model(f"the model {which} is not known", found)
    return None


def meaningful(first: Subject, second: Subject) -> tuple[Subject, Diagnostic | None]:
    """The first model, repaired where it has one reading only; and None, or why there is nothing to compare with."""
    for which, subject in (("before", first), ("after", second)):
        faults = (fault for fault in subject.analysis.diagnostics if fault.code in _MEANINGLESS)
        unreadable = next(faults, None)
        if unreadable is not None:
            return first, _bad_model(f"the model {which} has no meaning", unreadable)
        weightless = next((fault for fault in subject.analysis.diagnostics if fault.code == "SG113"), None)
        if weightless is not None:
            return first, _bad_model(f"the model {which} cannot be run", weightless)
        if not subject.interface.graph.output:
            lacking = "outputs" if subject.is_ir or subject.interface.HasField("graph") else "graph"
            return first, diagnostic(
                "SG501",
                f"the model {which} has no {lacking}, so there is nothing to compare",
                help="Give models that have outputs; export the model again.",
            )
    first, unrepaired = _repaired(first, second)
    if unrepaired is not None:
        return first, unrepaired
    wrong = _split_faults(first.analysis)
    return first, (_bad_model("the model before is invalid", wrong[0]) if wrong else None)


# Faults of one reading, which no engine need accept.
_REPAIRABLE = frozenset({"SG207", "SG208", "SG416"})


def _repaired(first: Subject, second: Subject) -> tuple[Subject, Diagnostic | None]:
    found = [[each for each in held.analysis.diagnostics if each.code in _REPAIRABLE] for held in (first, second)]
    if not found[0] or not isinstance(first.model, onnx.ModelProto):
        return first, None
    if found[1]:
        return first, _bad_model("both models are invalid", found[1][0])
    plan = plan_repairs(walk_model(first.model))
    return (first if plan is None else first.with_onnx(apply_plan(plan, first.model))), None


def lacking_engine(engine: Engine, *subjects: Subject) -> Diagnostic | None:
    """Why no engine can run the models, where one is an IR."""
    if not any(subject.is_ir for subject in subjects):
        return None
    if engine not in ("auto", "openvino"):
        help = "Leave the engine to splitgraph, or ask for openvino."
        return diagnostic(
            "SG501", f"{engine} does not run OpenVINO IR; only openvino does", severity="warning", help=help
        )
    if not is_installed("openvino"):
        help = installing("openvino")
        text = "OpenVINO is not installed, and nothing else runs OpenVINO IR"
        return diagnostic("SG501", text, severity="warning", help=help)
    return None


def lacking_memory(*subjects: Subject) -> Diagnostic | None:
    """Why a model is not run whose weights alone do not fit; they are counted before any is read."""
    largest = max((subject.model for subject in subjects), key=lambda model: weights_of([model]))
    needed = weights_of([largest])
    allowed = memory_limit(needed)
    if needed <= allowed:
        return None
    text = f"a model has {needed / 2**30:,.3g} GiB of weights, and running it may take {allowed / 2**30:.3g} GiB"
    return diagnostic("SG501", text, severity="warning", help=MORE_MEMORY)


def _bad_model(which: str, fault: Diagnostic) -> Diagnostic:
    """Why a model was not run, with what to do about the fault that was found in it."""
    return diagnostic("SG501", f"{which}: {fault.location or 'main'}: {fault.message}", help=fault.help)


def _split_faults(analysis: Analysis) -> list[Diagnostic]:
    return [found for found in analysis.diagnostics if found.severity == "error" and found.code.startswith("SG2")]


def engines_for(engine: Engine, *subjects: Subject) -> list[str]:
    """The engines to ask, in this order; "a+b" has one for each model."""
    if engine != "auto":
        return [engine]
    models = [subject.model for subject in subjects if isinstance(subject.model, onnx.ModelProto)]
    if not models:
        return ["openvino"]
    opsets = [item.version for model in models for item in model.opset_import if is_default_domain(item.domain)]
    order = ["onnxruntime", "reference"]
    if opsets and min(opsets) < OLDEST_ONNXRUNTIME_OPSET:
        order.reverse()
    found = [name for name in order if is_installed(name)]
    if len(models) == len(subjects):
        return found
    pairs = ["+".join("openvino" if subject.is_ir else name for subject in subjects) for name in found]
    return [*pairs, "openvino"]
