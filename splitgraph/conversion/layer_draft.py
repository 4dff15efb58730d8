"""The layers that stand before one layer of an OpenVINO IR, written by the operators of ONNX that they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from splitgraph.conversion.ir_editor import GraphEditor, NewPort, Place
from splitgraph.formats.openvino_ir.notation import precision_of
from splitgraph.model.deferred import np

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import Graph, Layer, Port

# What the layers are told that compute elementwise.
_NUMPY = {"auto_broadcast": "numpy"}
# The layer that is an operator of ONNX, with its version and attributes. An axis of a Gather is an input.
_LAYERS: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "Add": ("Add", "opset1", _NUMPY),
    "Concat": ("Concat", "opset1", {}),
    "Div": ("Divide", "opset1", {**_NUMPY, "m_pythondiv": "true"}),
    "Expand": ("Broadcast", "opset3", {"mode": "bidirectional"}),
    "Gather": ("Gather", "opset8", {"batch_dims": "0"}),
    "Greater": ("Greater", "opset1", _NUMPY),
    "Max": ("Maximum", "opset1", _NUMPY),
    "Mul": ("Multiply", "opset1", _NUMPY),
    "Not": ("LogicalNot", "opset1", {}),
    "Range": ("Range", "opset4", {"output_type": "i64"}),
    "Reshape": ("Reshape", "opset1", {"special_zero": "false"}),
    "Shape": ("ShapeOf", "opset3", {"output_type": "i64"}),
    "Slice": ("Slice", "opset8", {}),
    "Squeeze": ("Squeeze", "opset1", {}),
    "Sub": ("Subtract", "opset1", _NUMPY),
    "Where": ("Select", "opset1", _NUMPY),
}


class LayerValue(NamedTuple):
    """A value of the IR: the port that gives it, and what stands in a port that reads it."""

    place: Place
    port: NewPort


def as_read(graph: Graph, layer: Layer, port: Port) -> LayerValue:
    """Return what a port of a layer reads."""
    dims = [-1 if dim is None else dim for dim in port.dims or ()]
    return LayerValue(graph.sources[layer.id, port.id], NewPort(port.precision, dims))


class LayerDraft:
    """The layers that stand before one layer."""

    def __init__(self, editor: GraphEditor, layer: Layer) -> None:
        self.editor, self.layer = editor, layer

    def write(self, op_type: str, inputs: Sequence[LayerValue], hint: str, **attributes: Any) -> LayerValue:
        """Write a layer with one output."""
        type_, version, data = _LAYERS[op_type]
        port = _made(op_type, [each.port for each in inputs], attributes)
        if op_type == "Gather":
            inputs = [*inputs, self.constant(np.array(attributes["axis"]), "axis")]
        elif op_type == "Slice":
            inputs = [*inputs[:3], self.constant(np.array([1]), "step"), *inputs[3:]]
        elif op_type == "Concat":
            data = {"axis": str(attributes["axis"])}
        return LayerValue(self.editor.layer(self.layer, hint, type_, version, data, inputs, [port]), port)

    def constant(self, array: Any, hint: str) -> LayerValue:
        dtype = str(array.dtype)
        return LayerValue(
            self.editor.constant(self.layer, hint, array, dtype), NewPort(precision_of(dtype), array.shape)
        )


def _made(op_type: str, inputs: Sequence[NewPort], attributes: Mapping[str, Any]) -> NewPort:
    """Return the port of what an operator gives. Dimensions that have to be inferred are -1, until all are."""
    dims = inputs[0].dims
    if op_type in ("Expand", "Reshape"):
        dims = [-1] * inputs[1].dims[0]
    elif op_type == "Gather":
        dims = [*dims[: attributes["axis"]], *inputs[1].dims, *dims[attributes["axis"] + 1 :]]
    elif op_type == "Shape":
        dims = [len(dims)]
    elif op_type == "Slice":
        dims = [-1] * len(dims)
    elif op_type == "Concat":
        dims = [sum(each.dims[0] for each in inputs)] if len(dims) == 1 else [-1] * len(dims)
    elif op_type == "Squeeze":
        dims = []
    elif op_type == "Range":
        dims = [-1]
    else:
        rank = max(len(each.dims) for each in inputs)
        known = {tuple(each.dims) for each in inputs if len(each.dims) == rank}
        dims = known.pop() if len(known) == 1 else [-1] * rank
    given = {"Greater": "BOOL", "Range": "I64", "Shape": "I64", "Where": inputs[-1].precision}
    return NewPort(given.get(op_type, inputs[0].precision), dims)
