"""Write layers of an OpenVINO IR as ONNX nodes, so that what draws inputs for ONNX models draws them for an IR, too.

The nodes only propose inputs: a verdict comes from runs of the IR itself. So a layer that has no short form is left
out, with whatever reads it, and so are bodies. A large constant is an input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from splitgraph.formats.openvino_ir import Layer, OpenVINOModel
from splitgraph.formats.openvino_ir.notation import dtype_of
from splitgraph.model.schemas.kinds import LAYER_OPERATORS, LAYER_REDUCTIONS, REDUCES, names
from splitgraph.model.value_type import DTYPE_NUMBERS
from splitgraph.verification.models.ir_constants import IRConstant
from splitgraph.verification.values import Array

_OPSET = 18
# A constant with more elements is an input.
_MOST_ELEMENTS = 2**16
# Layers that are told things in another way than their operator, such as a slope for each channel, and operators that
# the opset does not have.
_OTHERWISE = names("BitwiseLeftShift BitwiseRightShift ConvertLike Elu Gelu HardSigmoid IsInf Mod PReLU Selu Swish")
# Layers that are nodes of the same inputs and no attributes, by the operator.
_SAME: Mapping[str, str] = {
    **{layer: op for layer, op in LAYER_OPERATORS.items() if layer not in _OTHERWISE},
    **{name: name for name in ("GatherND", "Squeeze", "Unsqueeze")},
    "ShapeOf": "Shape",
}
_REDUCING = REDUCES.intersection(LAYER_REDUCTIONS)


class _OnnxFromIR:
    """Writes one IR. constants: the small ones, by the name of their value."""

    def __init__(self, model: OpenVINOModel, inputs: Mapping[str, str]) -> None:
        self._model, self._inputs = model, inputs
        self._known: dict[str, Array] = {}
        self._names: dict[tuple[int, int], str] = {}
        self._made = onnx.ModelProto(ir_version=8)
        self._made.opset_import.add(version=_OPSET)
        self._made.graph.name = "parts"

    def run(self) -> onnx.ModelProto:
        graph = self._model.graph
        for layer in graph.layers:
            if layer.type == "Parameter":
                self._add_input(layer)
            elif layer.type == "Const":
                self._add_constant(layer)
            else:
                sources = [
                    self._names.get(graph.sources.get((layer.id, port.id), (-1, -1)), "") for port in layer.inputs
                ]
                if all(sources):
                    self._add(layer, sources)
        return self._made

    def _add_input(self, layer: Layer) -> None:
        number = DTYPE_NUMBERS.get(dtype_of(layer.data.get("element_type", "")) or "")
        name = self._inputs.get(layer.name)
        if number is not None and name is not None:
            self._names[layer.id, layer.outputs[0].id] = name
            self._made.graph.input.append(helper.make_tensor_value_info(name, number, layer.outputs[0].dims))

    def _add_constant(self, layer: Layer) -> None:
        constant = IRConstant((), layer)
        array = constant.elements(self._model) if math.prod(constant.dims) <= _MOST_ELEMENTS else None
        if array is not None:
            self._names[layer.id, layer.outputs[0].id] = self._constant(array)
        elif number := DTYPE_NUMBERS.get(dtype_of(layer.data["element_type"]) or ""):
            name = self._names[layer.id, layer.outputs[0].id] = f"large constant {layer.id}"
            self._made.graph.input.append(helper.make_tensor_value_info(name, number, constant.dims))

    def _constant(self, array: Array) -> str:
        name = f"constant {len(self._known)}"
        self._known[name] = array
        self._made.graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def _add(self, layer: Layer, sources: Sequence[str]) -> None:
        outputs = [f"value {layer.id} {port.id}" for port in layer.outputs]
        nodes = [*self._nodes(layer, sources, outputs)]
        if nodes:
            self._made.graph.node.extend(nodes)
            for port, name in zip(layer.outputs, outputs, strict=True):
                self._names[layer.id, port.id] = name
                number = DTYPE_NUMBERS.get(dtype_of(port.precision) or "", 0)
                self._made.graph.value_info.append(helper.make_tensor_value_info(name, number, port.dims))

    def _nodes(self, layer: Layer, sources: Sequence[str], outputs: Sequence[str]) -> Iterator[onnx.NodeProto]:
        """Yield the nodes of a layer; none if it has no short form."""
        kind, data, make = layer.type, layer.data, helper.make_node
        known = [self._known.get(name) for name in sources]
        if kind in _SAME and data.get("auto_broadcast", "numpy") == "numpy" and data.get("batch_dims", "0") == "0":
            yield make(_SAME[kind], sources, outputs)
        elif kind == "NotEqual":
            inner = f"{outputs[0]} is equal"
            yield from (make("Equal", sources, [inner]), make("Not", [inner], outputs))
        elif kind == "Mod":
            yield make("Mod", sources, outputs, fmod=1)
        elif kind == "SquaredDifference":
            inner = f"{outputs[0]} difference"
            yield from (make("Sub", sources, [inner]), make("Mul", [inner, inner], outputs))
        elif kind == "Convert" and (number := DTYPE_NUMBERS.get(dtype_of(data.get("destination_type", "")) or "")):
            yield make("Cast", sources, outputs, to=number)
        elif kind in _REDUCING:
            yield make(kind, sources, outputs, keepdims=int(data.get("keep_dims") == "true"))
        elif kind in ("Concat", "SoftMax"):
            yield make(kind.capitalize(), sources, outputs, axis=int(data["axis"]))
        elif kind in _OTHERS:
            yield from _OTHERS[kind](self, layer, (sources, known), outputs)

    # Layers with a form of their own. given: the inputs, each with its elements if it is a constant.

    def _clamp(self, layer: Layer, given: _Given, outputs: Sequence[str]) -> Iterator[onnx.NodeProto]:
        number = DTYPE_NUMBERS.get(dtype_of(layer.outputs[0].precision) or "", 0)
        dtype = helper.tensor_dtype_to_np_dtype(number) if number else np.dtype(np.float32)
        with np.errstate(over="ignore"):
            ends = [self._constant(np.array(float(layer.data[name])).astype(dtype)) for name in ("min", "max")]
        yield helper.make_node("Clip", [given[0][0], *ends], outputs)

    def _hard_sigmoid(self, layer: Layer, given: _Given, outputs: Sequence[str]) -> Iterator[onnx.NodeProto]:
        # Clip has limits that can be looked for.
        (data, alpha, beta), elements = given[0], given[1][1]
        if elements is not None:
            scaled, moved = (f"{outputs[0]} {name}" for name in ("scaled", "moved"))
            ends = [self._constant(np.array(end, elements.dtype)) for end in (0, 1)]
            yield helper.make_node("Mul", [data, alpha], [scaled])
            yield helper.make_node("Add", [scaled, beta], [moved])
            yield helper.make_node("Clip", [moved, *ends], outputs)

    def _gather(self, layer: Layer, given: _Given, outputs: Sequence[str]) -> Iterator[onnx.NodeProto]:
        axis = given[1][2]
        if axis is not None and layer.data.get("batch_dims", "0") == "0":
            yield helper.make_node("Gather", given[0][:2], outputs, axis=int(axis.item()))

    def _gather_elements(self, layer: Layer, given: _Given, outputs: Sequence[str]) -> Iterator[onnx.NodeProto]:
        yield helper.make_node("GatherElements", given[0], outputs, axis=int(layer.data["axis"]))

    def _reshape(self, layer: Layer, given: _Given, outputs: Sequence[str]) -> Iterator[onnx.NodeProto]:
        yield helper.make_node("Reshape", given[0], outputs, allowzero=int(layer.data.get("special_zero") != "true"))

    def _transpose(self, layer: Layer, given: _Given, outputs: Sequence[str]) -> Iterator[onnx.NodeProto]:
        if given[1][1] is not None:
            yield helper.make_node("Transpose", given[0][:1], outputs, perm=given[1][1].reshape(-1).tolist())

    def _split(self, layer: Layer, given: _Given, outputs: Sequence[str]) -> Iterator[onnx.NodeProto]:
        axis = given[1][1]
        if axis is not None:
            node = helper.make_node("Split", [given[0][0], *given[0][2:]], outputs, axis=int(axis.item()))
            if layer.type == "Split":
                node.attribute.append(helper.make_attribute("num_outputs", len(outputs)))
            yield node

    def _slice(self, layer: Layer, given: _Given, outputs: Sequence[str]) -> Iterator[onnx.NodeProto]:
        data, start, stop, step, *axes = given[0]
        if axes:
            yield helper.make_node("Slice", [data, start, stop, *axes, step], outputs)

    def _broadcast(self, layer: Layer, given: _Given, outputs: Sequence[str]) -> Iterator[onnx.NodeProto]:
        if layer.data.get("mode") in ("numpy", "bidirectional"):
            yield helper.make_node("Expand", given[0][:2], outputs)

    def _matmul(self, layer: Layer, given: _Given, outputs: Sequence[str]) -> Iterator[onnx.NodeProto]:
        sources, known = given
        turned = [layer.data.get(name) == "true" for name in ("transpose_a", "transpose_b")]
        names = []
        for name, array, is_turned in zip(sources, known, turned, strict=True):
            if is_turned and (array is None or array.ndim < 2):
                return
            names.append(self._constant(np.swapaxes(array, -1, -2).copy()) if is_turned and array is not None else name)
        yield helper.make_node("MatMul", names, outputs)


_Given = tuple[Sequence[str], Sequence[Array | None]]
_Other = Callable[[_OnnxFromIR, Layer, _Given, Sequence[str]], Iterator[onnx.NodeProto]]
_OTHERS: Mapping[str, _Other] = {
    "Broadcast": _OnnxFromIR._broadcast,
    "Clamp": _OnnxFromIR._clamp,
    "Gather": _OnnxFromIR._gather,
    "GatherElements": _OnnxFromIR._gather_elements,
    "HardSigmoid": _OnnxFromIR._hard_sigmoid,
    "MatMul": _OnnxFromIR._matmul,
    "Reshape": _OnnxFromIR._reshape,
    "Slice": _OnnxFromIR._slice,
    "Split": _OnnxFromIR._split,
    "Transpose": _OnnxFromIR._transpose,
    "VariadicSplit": _OnnxFromIR._split,
}


def as_onnx(model: OpenVINOModel, inputs: Mapping[str, str]) -> onnx.ModelProto:
    """Return the layers of an IR that have a short form in ONNX. inputs: what each Parameter is called, by its name."""
    return _OnnxFromIR(model, inputs).run()
