"""What a conversion does, and what is in its way."""

from __future__ import annotations

from splitgraph.findings.code_tables.code_info import CodeInfo

# 4xx
CONVERSION = {
    "SG401": CodeInfo(
        "invalid node repaired",
        "The exporter wrote an invalid node that has only one reading. A Split-18 without split and num_outputs "
        "received num_outputs; redundant attributes were removed.",
        "Nothing to do. Please report the bug to the project whose exporter wrote the model.",
    ),
    "SG402": CodeInfo(
        "lengths known only at run time",
        "The target version takes the lengths as an attribute, so nodes cannot compute them at run time.",
        "Stop at a newer opset, or fix the dimension before converting.",
    ),
    "SG403": CodeInfo(
        "element type not allowed at the target",
        "At the target opset the operator does not allow this element type.",
        "Stop at a newer opset, or cast the input.",
    ),
    "SG404": CodeInfo(
        "operator does not exist at the target",
        "The operator was introduced after the target opset and has no equivalent there.",
        "Stop at a newer opset.",
    ),
    "SG405": CodeInfo(
        "operator changed its meaning",
        "The operator changed between the two opsets: the same node means something else at the target opset.",
        "Stop before that opset, or rewrite the node by hand.",
    ),
    "SG406": CodeInfo(
        "attribute does not exist at the target",
        "The node uses an attribute, input or output that the operator does not have at the target opset, and its "
        "value changes the result.",
        "Stop at a newer opset, or change the node.",
    ),
    "SG407": CodeInfo(
        "invalid split",
        "The split is invalid, so an exact conversion does not exist.",
        "Correct the node first. infer reports the error.",
    ),
    "SG408": CodeInfo(
        "split cannot be written in this form",
        "The requested form cannot express this split.",
        "Keep this node's form.",
    ),
    "SG409": CodeInfo(
        "model cannot be read by the converter",
        "An error makes the meaning of the model unclear, so nothing is converted.",
        "Run infer and correct the errors that it reports.",
    ),
    "SG411": CodeInfo(
        "OpenVINO cannot read the model",
        "OpenVINO's ONNX frontend creates the IR. It refused the model, crashed, or took too long.",
        "check --target openvino names the nodes that OpenVINO does not read. It reads more splits with explicit "
        "lengths (convert --to split --explicit-lengths), and more nodes of fixed sizes.",
    ),
    "SG412": CodeInfo(
        "IR version too old for the model",
        "The model's opset, or a part of the model, needs a newer IR version than the requested one.",
        "Request a newer IR version, or omit --ir-version.",
    ),
    "SG413": CodeInfo(
        "local functions inlined",
        "Calls of local functions were replaced by the functions' nodes, for one of three reasons: the conversion "
        "depends on the arguments of each call; the IR version of the target has no functions; or explicit lengths "
        "were requested, because runtimes such as OpenVINO cannot read local functions.",
        "Nothing to do.",
    ),
    "SG414": CodeInfo(
        "parts that older readers skip",
        "The result has an older IR version, but contains fields of a newer one, such as device configurations. "
        "Readers skip fields that they do not know, and these fields do not change the model's results, so they stay. "
        "Notes of exporters (metadata_props) stay without a finding.",
        "Nothing to do. --ir-version keep keeps the IR version.",
    ),
    "SG415": CodeInfo(
        "IR version newer than that of the opset",
        "A downgrade lowers the IR version to the newest one of the target opset, unless older readers would misread "
        "a part of the model. A model that stays at its opset keeps its IR version, unless --ir-version is given.",
        "If a runtime needs the older IR version, remove the part that the message names, or give --ir-version.",
    ),
    "SG416": CodeInfo(
        "attribute that does not belong here",
        "The operator version has no such attribute, but the attribute changes nothing: num_outputs of a Split-13 "
        "with as many outputs, or the default value of a later version. onnxruntime refuses the node.",
        "Remove the attribute, or run upgrade, downgrade or convert, which remove it.",
    ),
    "SG418": CodeInfo(
        "opset on the other side",
        "upgrade received an opset older than the model's, or downgrade a newer one.",
        "Use the other command, or convert --opset, which converts in both directions.",
    ),
    "SG420": CodeInfo(
        "size that cannot change",
        "reshape found a size that other parts of the model depend on, and that cannot follow the new one: weights of "
        "that size, a node that removes the dimension, or a node through which it cannot be followed.",
        "Give the input the size that the node needs, or change the model where that size is made.",
    ),
    "SG421": CodeInfo(
        "number that can mean several things",
        "A constant has a number that may be fixed, or may follow a dimension that changes. Nothing in the model "
        "tells.",
        "Say what it means: reshape --follow NODE[ENTRY]=DIMENSION, or reshape --keep NODE[ENTRY] where it stays "
        "(Python: follow, keep).",
    ),
    "SG422": CodeInfo(
        "items of a batch that depend on each other",
        "With several items, the model gives other results than for each of them alone: something in it, such as a "
        "normalisation, a sort or a quantisation over all items, mixes them. Nothing is written.",
        "Keep the batch that the model has; --no-verify writes the result all the same.",
    ),
    "SG423": CodeInfo(
        "sizes that a result needs",
        "The result runs only with some sizes of a dimension, as a network that halves its height twice and doubles "
        "it again needs a multiple of 4, and as a -1 in the target of a Reshape stands for no size beside a 0. The "
        "message says which. A result that needs certain sizes of a batch is refused (SG420).",
        "Pad the input to such a size.",
    ),
    "SG424": CodeInfo(
        "integers that stay at all sizes",
        "An output of integers is a constant, as a number of boxes is that an exporter has counted. It is no old "
        "size, and reshape leaves it as it is.",
        "If it follows from a size, say how: reshape --follow OUTPUT[ENTRY]=DIMENSION; or say that it stays: reshape "
        "--keep OUTPUT[ENTRY] (Python: follow, keep).",
    ),
    "SG425": CodeInfo(
        "no standard form",
        "convert --standard found an operator of another domain that operators of ai.onnx cannot express, at this "
        "opset or at all, or not with these inputs and attributes.",
        "The message says what is in the way, and which opset has the form.",
    ),
    "SG426": CodeInfo(
        "maps are dropped",
        "convert --drop-zipmap makes outputs of the tensors that ZipMap turns into maps, one for each row. The "
        "columns are in the order of the labels. A ZipMap stays if another node of the model reads it, or if a "
        "function or a body holds it.",
        "Read column i of the output for the i-th label.",
    ),
}
