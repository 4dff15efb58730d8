"""Find the inputs and floating-point weights that each output of a model depends on.

Only elements count, not shapes: a value that is computed from the shape of a tensor does not depend on its elements,
and a tensor does not depend on the numbers that give its shape. All outputs of a node with a body (If, Loop, Scan or a
function call) depend on all values that the body reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from splitgraph.model.scopes import FunctionKey, Steps, called_function, finish, function_key
from splitgraph.model.value_type import DTYPE_NAMES

# Operators and layers that read only shapes and counts.
_SHAPE_ONLY = frozenset({"Shape", "Size", "ShapeOf", "EyeLike", "RandomNormalLike", "RandomUniformLike"})
_SHAPE_ONLY |= {"SequenceLength", "SequenceEmpty"}
# Inputs that give the shape of a result, or select a part of another input.
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
# A tensor with more elements is not a shape.
_LONGEST_SHAPE = 8
# A single number this small keeps a divisor above 0; one this large is no real bound, or is a mask.
_LARGEST_EPSILON = 1e-4
_NO_BOUND = 1e9
# The bit for all shapes; each output has a bit of its own.
_SHAPES = 1

# Element types in which a number can change a little; the others hold only powers of two, or 16 numbers.
_MOVABLE = frozenset({"float16", "bfloat16", "float32", "float64", "complex64", "complex128"})
_MOVABLE |= {"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"}

_FRACTIONS = frozenset({onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16})
_FRACTIONS |= {onnx.TensorProto.BFLOAT16}
# Parts of the names of operators that read or write at positions: their first input takes any integer. A division takes
# none: by 0, and of the smallest integer by -1, it ends some engines. The results of _POSITIONS_OF are positions,
# whatever they are computed from.
_READING_AT = (
    *("Gather", "Scatter", "Feature", "OneHot", "Loss", "Embed", "Attention", "Sequence", "Shift", "RoiAlign"),
    *("RoiPool", "Lengths", "LSTM", "GRU", "RNN", "CumSum", "Trilu", "Unpool"),
)
_DIVISIONS = frozenset({"Div", "Mod", "Divide", "FloorMod"})
_WELL_KNOWN = ("", "ai.onnx", "org.openvinotoolkit")
_POSITIONS_OF = frozenset({"ArgMax", "ArgMin"})

Masks = dict[str, int]


@dataclass(frozen=True, slots=True)
class Dependence:
    """Maps inputs and weights to the outputs that depend on them, as bit masks: bit i stands for output i.

    inputs: by name. weights: a (name, mask) pair for each floating-point tensor; names may repeat. of_shapes: names of
    small tensors that shapes or ratios are computed from.
    """

    inputs: Mapping[str, int]
    weights: Sequence[tuple[str, int]]
    of_shapes: frozenset[str]

    @property
    def on_weights(self) -> int:
        """Return the outputs that depend on some weight."""
        return _union(mask for _, mask in self.weights)

    def on_inputs(self, names: Iterable[str]) -> int:
        """Return the outputs that depend on some of these inputs."""
        return _union(self.inputs.get(name, 0) for name in names)

    def leading_only_to(self, outputs: int) -> list[str]:
        """Return the weights that only these outputs depend on."""
        return [name for name, mask in self.weights if mask and not mask & ~outputs]


def read_dependence(model: onnx.ModelProto) -> Dependence:
    """Find what the outputs of a model depend on; an IR is given as its ONNX mirror."""
    functions = {function_key(function): function for function in model.functions}
    reader = _BackwardWalk(functions)
    masks: Masks = {}
    for index, value in enumerate(model.graph.output):
        masks[value.name] = masks.get(value.name, 0) | 2 << index
    finish(reader.read(model.graph.node, masks))
    reader.take_tensors(model.graph, masks)
    inputs = {value.name: masks.get(value.name, 0) >> 1 for value in model.graph.input}
    weights = [(name, mask >> 1) for name, mask in reader.weights]
    return Dependence(inputs, weights, frozenset(reader.of_shapes))


def shape_inputs(model: onnx.ModelProto) -> set[str]:
    """Return the inputs of a model whose elements a shape, a length or a number of iterations is computed from."""
    reader = _BackwardWalk({function_key(function): function for function in model.functions})
    masks: Masks = dict.fromkeys((value.name for value in model.graph.output), 2)
    finish(reader.read(model.graph.node, masks))
    return {value.name for value in model.graph.input if masks.get(value.name, 0) & _SHAPES}


def index_inputs(model: onnx.ModelProto) -> set[str]:
    """Return the integer inputs of a model that positions may be computed from, or divisors of integers, or what a node
    with a body reads: engines need not check those.
    """
    whole = {value.name for value in model.graph.input if value.type.tensor_type.elem_type not in _FRACTIONS}
    roots: dict[str, set[str]] = {name: {name} for name in whole}
    names: set[str] = set()
    for node in model.graph.node:
        if node.op_type in _SHAPE_ONLY or node.op_type in _POSITIONS_OF:
            continue
        read = [roots.get(name, set()) for name in node.input]
        is_open = node.domain not in _WELL_KNOWN or any(True for _ in _bodies(node, 2)) or node.op_type in _DIVISIONS
        if is_open or any(part in node.op_type for part in _READING_AT):
            names.update(*(read if is_open else read[1:]))
        for name in node.output:
            roots.setdefault(name, set()).update(*read)
    return names


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


@dataclass(slots=True)
class _BackwardWalk:
    """Walks graphs backward, from their outputs to their inputs and constants.

    called: the functions that were walked, with the mask of their outputs. They are not walked again, because functions
    that call each other twice would take exponential time.
    """

    functions: Mapping[FunctionKey, onnx.FunctionProto]
    weights: list[tuple[str, int]] = field(default_factory=list)
    of_shapes: set[str] = field(default_factory=set)
    called: set[tuple[FunctionKey, int]] = field(default_factory=set)

    def read(self, nodes: Sequence[onnx.NodeProto], masks: Masks) -> Steps:
        """Compute the masks of all values, from the masks of the outputs, and record the constants."""
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
        """Visit the nodes from the last to the first. Return True if a mask grew after its node was visited, which only
        happens if the nodes are not sorted.
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
        """Record the initializers of a graph."""
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
    """Yield the graphs of a node, with the masks of their outputs."""
    for attribute in node.attribute if mask else ():
        for graph in (attribute.g, *attribute.graphs) if attribute.HasField("g") or attribute.graphs else ():
            yield graph, dict.fromkeys((value.name for value in graph.output), mask)


def is_weight(tensor: onnx.TensorProto) -> bool:
    """Return True for floating-point numbers that can change a little."""
    return DTYPE_NAMES.get(tensor.data_type) in _MOVABLE


def _matters(tensor: onnx.TensorProto) -> bool:
    """Return False for small tensors that hardly affect a result: zeros, tiny numbers that keep a divisor above 0, and
    bounds and masks that are practically infinite.
    """
    if math.prod(tensor.dims) > _LONGEST_SHAPE or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return True
    sizes = np.abs(onnx.numpy_helper.to_array(tensor).astype(np.complex128))
    least = _LARGEST_EPSILON if sizes.size == 1 else 0.0
    return bool(((sizes > least) & (sizes < _NO_BOUND)).any())
