"""Write models that compute in float64 what others compute in narrower types: a difference that rounding makes is gone
in these.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from splitgraph.model.scopes import subgraphs
from splitgraph.verification.comparison import element_type
from splitgraph.verification.engines.engine_process import Suspect
from splitgraph.verification.models.model_files import elements_of, scoped_nodes
from splitgraph.verification.values import Value, tensors_of

NARROW: Mapping[int, str] = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.FLOAT16: "float16",
    onnx.TensorProto.BFLOAT16: "bfloat16",
}
# Operators with the attribute stash_type, which is float32 by default: they compute statistics in it.
STASHING = frozenset({"LayerNormalization", "RMSNormalization", "GroupNormalization"})
# The evaluator runs this one by its function body, and has it since this opset.
_STASHING_IN_BODY, _SINCE = "GroupNormalization", 21


def widened_as_a_whole(
    models: Sequence[onnx.ModelProto], folders: Sequence[Path | None], suspect: Suspect
) -> tuple[list[onnx.ModelProto], dict[str, Value]]:
    """Return both models and the inputs in float64."""
    kept = _narrower_types(models[0], suspect)
    wide = [widened(model, folder, kept) for model, folder in zip(models, folders, strict=True)]
    return wide, {name: _wide_value(value) for name, value in suspect.inputs.items()}


def _narrower_types(model: onnx.ModelProto, suspect: Suspect) -> set[int]:
    """Return the element types that are narrower than all that the first side of a region uses: what only the second
    side computes in these is no rounding, but a loss.
    """
    values = (*suspect.inputs.values(), *suspect.outputs[0])
    used = {element_type(array) for value in values for array in tensors_of(value)}
    used |= {tensor.data_type for tensor in model.graph.initializer}
    for node, _ in scoped_nodes(model):
        used |= {
            a.t.data_type if a.HasField("t") else a.i for a in node.attribute if a.name in ("to", "value", "dtype")
        }
        used |= {onnx.TensorProto.FLOAT} if node.op_type in STASHING else set()
    halves = {int(onnx.TensorProto.FLOAT16), int(onnx.TensorProto.BFLOAT16)}
    if used & halves:
        return set()
    return halves if onnx.TensorProto.FLOAT in used else {*halves, int(onnx.TensorProto.FLOAT)}


def widened(model: onnx.ModelProto, folder: Path | None = None, kept: Collection[int] = ()) -> onnx.ModelProto:
    """Return a model that computes in float64 what this one computes in narrower types, but for the kept types. folder:
    of its external data, which is read.
    """
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    tensors = [*wide.graph.initializer]
    for node, imports in scoped_nodes(wide):
        for attribute in node.attribute:
            tensors += [attribute.t] if attribute.HasField("t") else []
        tensors += (tensor for _, _, body in subgraphs(node) for tensor in body.initializer)
        _widen_node(node, imports.get("", 0), kept)
    for tensor in tensors:
        if tensor.data_type in NARROW and tensor.data_type not in kept:
            array = elements_of(tensor, folder).astype(np.float64)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    return wide


def in_float64(model: onnx.ModelProto, folder: Path | None) -> onnx.ModelProto:
    """Return a whole model that computes in float64, with its inputs and outputs."""
    wide = widened(model, folder)
    graphs = [wide.graph, *(body for node, _ in scoped_nodes(wide) for _, _, body in subgraphs(node))]
    for graph in graphs:
        del graph.value_info[:]
        for value in (*graph.input, *graph.output):
            if value.type.tensor_type.elem_type in NARROW:
                value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    return wide


def _widen_node(node: onnx.NodeProto, opset: int, kept: Collection[int]) -> None:
    # Without stash_type, the reference evaluator computes in the type of the inputs. It knows no other value than 1.
    for index in reversed(range(len(node.attribute))):
        if node.attribute[index].name == "stash_type":
            del node.attribute[index]
    if node.op_type == _STASHING_IN_BODY and opset >= _SINCE and onnx.TensorProto.FLOAT not in kept:
        # Its function body casts to the type, and the default is float32.
        node.attribute.append(onnx.helper.make_attribute("stash_type", onnx.TensorProto.DOUBLE))
    for attribute in node.attribute:
        if attribute.name in ("to", "dtype", "output_dtype") and attribute.i in NARROW and attribute.i not in kept:
            attribute.i = onnx.TensorProto.DOUBLE
    if node.op_type == "Constant":
        for attribute in node.attribute:
            if attribute.name in ("value_float", "value_floats"):
                numbers = np.array(attribute.f if attribute.name == "value_float" else list(attribute.floats))
                tensor = onnx.numpy_helper.from_array(numbers.astype(np.float64))
                attribute.CopyFrom(onnx.helper.make_attribute("value", tensor))
    if node.op_type == "ConstantOfShape" and not node.attribute:
        zero = onnx.numpy_helper.from_array(np.zeros(1, np.float64))
        node.attribute.append(onnx.helper.make_attribute("value", zero))


def _wide_value(value: Value) -> Value:
    if isinstance(value, list):
        return [_wide_value(item) for item in value]
    is_narrow = isinstance(value, np.ndarray) and value.dtype.name in ("float16", "bfloat16", "float32")
    return value.astype(np.float64) if is_narrow else value
