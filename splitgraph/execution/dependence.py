"""What each output of a model can depend on: which inputs and which floating-point weights lead to it.

Only values count, not shapes: what is computed from the shape of a tensor does not depend on the tensor's elements, nor
does a tensor depend on the numbers that say of which shape it is. A body (of If, Loop, Scan or a function) leads from
all that it reads to all that its node gives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from splitgraph.graph.scopes import FunctionKey, called_function, function_key
from splitgraph.inference.steps import Steps, finish
from splitgraph.value_type import DTYPE_NAMES

# Operators and layers that look at shapes and counts only.
_SHAPE_ONLY = frozenset({"Shape", "Size", "ShapeOf", "EyeLike", "RandomNormalLike", "RandomUniformLike"})
_SHAPE_ONLY |= {"SequenceLength", "SequenceEmpty"}
# Inputs that say of which shape a result is, or which part of another input it holds.
_SHAPE_INPUTS: Mapping[str, Sequence[int]] = {
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "Broadcast": (1,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "DFT": (1, 2),
    "Dropout": (1, 2),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "Interpolate": (1, 2, 3),
    "Loop": (0,),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "StridedSlice": (1, 2, 3),
    "Tile": (1,),
    "TopK": (1,),
    "Upsample": (1,),
    "VariadicSplit": (1, 2),
}
# A tensor of more elements is no shape.
_LONGEST_SHAPE = 8
# A single number this small keeps a divisor from 0; one this large bounds nothing, or masks.
_LARGEST_EPSILON = 1e-4
_NO_BOUND = 1e9
# A bit that stands for all shapes, beside one for each output.
_SHAPES = 1

# Element types with a number near each other one; others are powers of two, or 16 numbers.
_MOVABLE = frozenset({"float16", "bfloat16", "float32", "float64", "complex64", "complex128"})
_MOVABLE |= {"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"}

Masks = dict[str, int]


@dataclass(frozen=True, slots=True)
class Dependence:
    """What leads to the outputs, each a bit mask: bit i of output i.

    inputs: by name. weights: of each tensor of floating-point numbers, by name and by how many there are of that name.
    of_shapes: names of small tensors by which shapes or ratios are computed.
    """

    inputs: Mapping[str, int]
    weights: Sequence[tuple[str, int]]
    of_shapes: frozenset[str]

    @property
    def on_weights(self) -> int:
        """The outputs that depend on some weight."""
        return _union(mask for _, mask in self.weights)

    def on_inputs(self, names: Iterable[str]) -> int:
        """The outputs that depend on some of these inputs."""
        return _union(self.inputs.get(name, 0) for name in names)

    def leading_only_to(self, outputs: int) -> list[str]:
        """The weights that lead to some of these outputs, and to no other."""
        return [name for name, mask in self.weights if mask and not mask & ~outputs]


def read_dependence(model: onnx.ModelProto) -> Dependence:
    """What leads to the outputs of a model, or of what mirrors an IR."""
    functions = {function_key(function): function for function in model.functions}
    reader = _Reader(functions)
    masks: Masks = {}
    for index, value in enumerate(model.graph.output):
        masks[value.name] = masks.get(value.name, 0) | 2 << index
    finish(reader.read(model.graph.node, masks))
    reader.take_tensors(model.graph, masks)
    inputs = {value.name: masks.get(value.name, 0) >> 1 for value in model.graph.input}
    weights = [(name, mask >> 1) for name, mask in reader.weights]
    return Dependence(inputs, weights, frozenset(reader.of_shapes))


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found


@dataclass(slots=True)
class _Reader:
    """Walks graphs from their outputs to what they read.

    called: the functions that were walked, each with what its outputs lead to. Once more would find the same, and
    functions that call functions twice over would never end.
    """

    functions: Mapping[FunctionKey, onnx.FunctionProto]
    weights: list[tuple[str, int]] = field(default_factory=list)
    of_shapes: set[str] = field(default_factory=set)
    called: set[tuple[FunctionKey, int]] = field(default_factory=set)

    def read(self, nodes: Sequence[onnx.NodeProto], masks: Masks) -> Steps:
        """Complete the masks of all values that lead to those that have one, and take the constants among the nodes."""
        while self._pass(nodes, masks):
            pass
        for node in nodes:
            mask = _union(masks.get(name, 0) for name in node.output)
            if node.op_type == "Constant" and mask:
                self._take_constant(node, mask)
            for graph, inner in _bodies(node, mask):
                yield self.read(graph.node, inner)
                self.take_tensors(graph, inner)
            call = called_function(node), mask
            if mask and call[0] in self.functions and call not in self.called:
                self.called.add(call)
                function = self.functions[call[0]]
                yield self.read(function.node, dict.fromkeys(function.output, mask))

    def _pass(self, nodes: Sequence[onnx.NodeProto], masks: MutableMapping[str, int]) -> bool:
        """Go through the nodes from the last to the first; True where a value got more after its maker was passed,
        which happens only to nodes that are out of order.
        """
        passed: set[str] = set()
        is_late = False
        for node in reversed(nodes):
            passed.update(node.output)
            mask = _union(masks.get(name, 0) for name in node.output)
            if not mask or node.op_type in _SHAPE_ONLY:
                continue
            of_shapes = _SHAPE_INPUTS.get(node.op_type, ())
            read = [(name, _SHAPES if index in of_shapes else mask) for index, name in enumerate(node.input)]
            for graph, inner in _bodies(node, mask):
                while self._pass(graph.node, inner):
                    pass
                read += inner.items()
            for name, more in read:
                known = masks.get(name, 0)
                if more & ~known:
                    masks[name] = known | more
                    is_late |= name in passed
        return is_late

    def take_tensors(self, graph: onnx.GraphProto, masks: Mapping[str, int]) -> None:
        """Note the initializers of a graph."""
        for tensor in graph.initializer:
            self._take(tensor.name, tensor, masks.get(tensor.name, 0))
        for sparse in graph.sparse_initializer:
            self._take(sparse.values.name, sparse.values, masks.get(sparse.values.name, 0))

    def _take_constant(self, node: onnx.NodeProto, mask: int) -> None:
        for attribute in node.attribute:
            if attribute.name == "value":
                self._take(node.output[0], attribute.t, mask)
            elif attribute.name == "sparse_value":
                self._take(node.output[0], attribute.sparse_tensor.values, mask)
            elif attribute.name in ("value_float", "value_floats"):
                self._note(node.output[0], max(len(attribute.floats), 1), mask)

    def _take(self, name: str, tensor: onnx.TensorProto, mask: int) -> None:
        if is_weight(tensor):
            self._note(name, math.prod(tensor.dims), mask, matters=_matters(tensor))

    def _note(self, name: str, size: int, mask: int, *, matters: bool = True) -> None:
        if mask & _SHAPES and size <= _LONGEST_SHAPE:
            self.of_shapes.add(name)
        elif mask & ~_SHAPES and matters:
            self.weights.append((name, mask))


def _bodies(node: onnx.NodeProto, mask: int) -> Iterator[tuple[onnx.GraphProto, Masks]]:
    """The graphs of a node, with the masks of their outputs."""
    for attribute in node.attribute if mask else ():
        for graph in (attribute.g, *attribute.graphs) if attribute.HasField("g") or attribute.graphs else ():
            yield graph, dict.fromkeys((value.name for value in graph.output), mask)


def is_weight(tensor: onnx.TensorProto) -> bool:
    """True for floating-point numbers that can be made a little larger or smaller."""
    return DTYPE_NAMES.get(tensor.data_type) in _MOVABLE


def _matters(tensor: onnx.TensorProto) -> bool:
    """False for a few numbers that hardly show in a result: zeros, what keeps a divisor from 0, and bounds and masks as
    good as infinite.
    """
    if math.prod(tensor.dims) > _LONGEST_SHAPE or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return True
    sizes = np.abs(onnx.numpy_helper.to_array(tensor).astype(np.complex128))
    least = _LARGEST_EPSILON if sizes.size == 1 else 0.0
    return bool(((sizes > least) & (sizes < _NO_BOUND)).any())
