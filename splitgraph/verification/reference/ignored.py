"""What onnx's evaluator ignores: attributes and inputs that change what runtimes compute, and not its own results.

`tests/campaigns/ignored_changes.py` measured it: each attribute of each operator version was dropped and set to other
values, each optional input was dropped, and onnxruntime and the evaluator ran each model. An opinion about nodes with
such an attribute would be about other nodes, so the evaluator gives none. Kernels of splitgraph ignore nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

# The version of onnx whose evaluator was measured.
MEASURED_WITH = "1.23.2"
# By operator and attribute, or the number of an input, the values that are ignored; none for all but the default.
IGNORED: Mapping[str, Mapping[str, Sequence[str]]] = {
    "MaxPool": {"storage_order": ()},
    "TopK": {"sorted": ()},
    "Unique": {"sorted": ()},
}


def find_ignored(node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> str:
    """Return what the evaluator ignores of a node, for messages; "" if it reads all of it. An attribute with the
    default of the schema, and an omitted input, count as absent.
    """
    listed = IGNORED.get(node.op_type, {})
    for attribute in node.attribute if listed else ():
        value = onnx.helper.get_attribute_value(attribute)
        formal = schema.attributes.get(attribute.name)
        default = formal.default_value if formal is not None else None
        is_default = default is not None and default.type and onnx.helper.get_attribute_value(default) == value
        values = listed.get(attribute.name)
        if values is not None and not is_default and (not values or _text(value) in values):
            return f"the attribute {attribute.name}={_text(value)}"
    for place, name in enumerate(node.input if listed else ()):
        if name and f"input {place}" in listed:
            return f"the input {schema.inputs[place].name}"
    return ""


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value).replace(" ", "")
