"""What the sizes of a model's inputs had better be, beyond what the model demands, for a difference to show.

Windows: where all that a window operator sees is one window, or mostly padding, its strides, dilations and many of its
weights do not matter. Meetings: dimensions of different names that broadcast together are the same in practice, and a
model refuses others, unless one of them is 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx

from splitgraph.dim import Dim, DimLike, evaluate, substitute, symbol, symbols_of
from splitgraph.execution.inputs.solver import Constraint, Solver
from splitgraph.graph.scopes import MAIN
from splitgraph.inference.analysis import Analysis
from splitgraph.value_type import UNKNOWN, ValueType

# So many windows there should be along each dimension: the first, the last, and one that sees no edge.
_WINDOWS = 3
# A kernel wider than this need not fit its input.
_WIDEST_KERNEL = 32
# What a symbol can be made for the sake of windows; and how many conditions on several symbols at once are kept.
_LARGEST = 1 << 17
_MOST_MIXED = 8

# So many preferences that cannot be met are looked for; the others of the model are left.
_MOST_REFUSED = 6

# Parts of the names of operators of ONNX and layers of OpenVINO that look through windows.
_WINDOWED = ("Conv", "Pool", "STFT", "Col2Im", "ImagePatches")
# fmt: off
_BROADCASTING = frozenset({
    "Add", "Sub", "Mul", "Div", "Mod", "Pow", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu", "And",
    "Or", "Xor", "Sum", "Min", "Max", "Mean", "Where", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual",
    "Subtract", "Multiply", "Divide", "FloorMod", "Power", "Maximum", "Minimum", "SquaredDifference",
    "BitwiseLeftShift", "BitwiseRightShift", "PReLU", "GreaterEqual", "LessEqual", "NotEqual", "LogicalAnd",
    "LogicalOr", "LogicalXor", "Select",
})
# fmt: on
_MATRICES = frozenset({"MatMul", "MatMulInteger"})
# Of Attention: the positions of what is asked, of the keys, the mask and the earlier keys.
_QUERY, _KEY, _MASK, _PAST = 0, 1, 3, 4

Shape = Sequence[DimLike | None]


@dataclass(frozen=True, slots=True)
class Preferred:
    """Constraints that had better hold, those that matter most first."""

    meetings: tuple[Constraint, ...]
    windows: tuple[Constraint, ...]


def read_preferred(analysis: Analysis, inputs: Mapping[str, ValueType]) -> Preferred:
    """What had better hold of the symbols of the inputs, by the types that inference has found.

    inputs: the types of the inputs, with a symbol for each dimension.
    """
    reader = _Reader()
    inner = analysis.details.graphs
    own = inner[MAIN].types if MAIN in inner else {}
    for name, value in inputs.items():
        dims = value.shape or ()
        reader.free.update(*(symbols_of(dim) for dim in dims if dim is not None))
        for dim, named in zip(own.get(name, UNKNOWN).shape or (), dims, strict=False):
            if dim is not None and named is not None and _is_symbol(dim) and dim != named:
                reader.meanings[str(dim)] = named
    for nodes, types in _graphs(analysis):
        for node in nodes:
            reader.read(node, types)
    return Preferred(tuple(reader.meetings.values()), tuple(reader.windows()))


def with_preferred(chooser: Solver, wishes: Sequence[Constraint]) -> Solver:
    """The chooser, with those of the wishes that can be met."""
    granted = replace(chooser, constraints=[*chooser.constraints, *wishes])
    if not wishes or granted.choose() is not None:
        return granted
    refused = 0
    for wish in wishes:
        granted = replace(chooser, constraints=[*chooser.constraints, wish])
        if granted.choose() is not None:
            chooser = granted
        else:
            refused += 1
        if refused == _MOST_REFUSED:
            break
    return chooser


def _graphs(analysis: Analysis) -> Iterator[tuple[Sequence[onnx.NodeProto], Mapping[str, ValueType]]]:
    """The nodes of every graph with the types of their values: the main graph, subgraphs, and the bodies of the
    functions that these call, once for each call.
    """
    functions = {(each.domain, each.name): each for each in analysis.model.functions}
    inner = analysis.details.graphs
    for scope in analysis.details.scopes:
        if scope.in_function or scope.path not in inner:
            continue
        yield scope.nodes, inner[scope.path].types
        for index, node in enumerate(scope.nodes if functions else ()):
            function = functions.get((node.domain, node.op_type))
            called = inner.get(("call", f"{scope.location}/{node.name or f'{node.op_type}#{index}'}"))
            if function is not None and called is not None:
                yield function.node, called.types


def _is_symbol(dim: DimLike) -> bool:
    return symbols_of(dim) == {str(dim)}


@dataclass(slots=True)
class _Reader:
    """Reads node after node; free: the symbols of the inputs. meanings: what other symbols are in terms of these."""

    free: set[str] = field(default_factory=set)
    meanings: dict[str, DimLike] = field(default_factory=dict)
    meetings: dict[tuple[DimLike, DimLike], Constraint] = field(default_factory=dict)
    # The least that dimensions had better be.
    least: dict[Dim, int] = field(default_factory=dict)

    def read(self, node: onnx.NodeProto, types: Mapping[str, ValueType]) -> None:
        """Note what a node would have."""
        if not any(_has_symbols(types.get(name)) for name in node.input):
            return
        inputs = [self._shape(types, name) for name in node.input]
        for shapes in _meeting(node, inputs):
            output = types.get(node.output[0], UNKNOWN).shape if node.output else None
            self._meet(shapes, output if node.op_type in _BROADCASTING | _MATRICES else None)
        is_windowed = any(part in node.op_type for part in _WINDOWED)
        if is_windowed:
            self._fit_kernel(node, inputs)
        elif "Split" in node.op_type:
            return
        seen = {dim for shape in inputs for dim in shape or ()}
        for name in node.output:
            for axis, dim in enumerate(self._shape(types, name) or ()):
                if (is_windowed and axis) or (dim not in seen and "//" in str(dim)):
                    self._want(dim, _WINDOWS)

    def _shape(self, types: Mapping[str, ValueType], name: str) -> Shape | None:
        shape = types.get(name, UNKNOWN).shape
        return None if shape is None else [self._resolved(dim) if isinstance(dim, Dim) else dim for dim in shape]

    def _resolved(self, dim: Dim) -> DimLike:
        names = symbols_of(dim) & self.meanings.keys()
        return substitute(dim, {name: self.meanings[name] for name in names}) if names else dim

    def _meet(self, shapes: Sequence[Shape], output: Shape | None) -> None:
        rank = max(map(len, shapes), default=0)
        padded: list[Shape] = [[*itertools.repeat(1, rank - len(shape)), *shape] for shape in shapes]
        results = list(output or ())[:rank] if output is not None else []
        for axis, dims in enumerate(zip(*padded, strict=True)):
            told = dict.fromkeys(dim for dim in dims if dim is not None and dim != 1)
            # A number says most.
            first, *others = sorted(told, key=lambda dim: not isinstance(dim, int)) if told else [1]
            for other in others:
                if isinstance(other, Dim) and symbols_of(other) | symbols_of(first) <= self.free:
                    self.meetings.setdefault((first, other), Constraint(other, "==", first))
            result = results[axis] if axis < len(results) else None
            if result is not None and _is_symbol(result) and not {str(result)} & (self.free | self.meanings.keys()):
                self.meanings[str(result)] = first

    def _fit_kernel(self, node: onnx.NodeProto, inputs: Sequence[Shape | None]) -> None:
        """The spatial dimensions are at least as wide as the kernel."""
        dims = inputs[0] or ()
        given = {each.name: list(each.ints) for each in node.attribute}
        rank = max(len(dims) - 2, 0)
        weights = (inputs[1] or ()) if "Conv" in node.op_type and len(inputs) > 1 else ()
        kernel: Shape = given.get("kernel_shape") or weights[max(len(weights) - rank, 0) :]
        if not rank or len(kernel) != rank:
            return
        dilations = given.get("dilations") or [1] * rank
        for dim, size, dilation in zip(dims[2:], kernel, dilations, strict=False):
            if isinstance(size, int) and (size - 1) * dilation < _WIDEST_KERNEL:
                self._want(dim, (size - 1) * dilation + 1)

    def _want(self, dim: DimLike | None, least: int) -> None:
        if isinstance(dim, Dim) and symbols_of(dim) <= self.free:
            self.least[dim] = max(self.least.get(dim, 0), least)

    def windows(self) -> Iterator[Constraint]:
        """A bound for each symbol that dimensions depend on alone, and a few conditions on several symbols."""
        bounds: dict[str, int] = {}
        mixed = []
        for dim, least in self.least.items():
            name, *others = sorted(symbols_of(dim))
            if others:
                mixed.append(Constraint(dim, ">=", least))
                continue
            bound = _smallest(dim, name, least)
            if bound is not None:
                bounds[name] = max(bounds.get(name, 0), bound)
        yield from (Constraint(symbol(name), ">=", bound) for name, bound in bounds.items())
        yield from mixed[:_MOST_MIXED]


def _smallest(dim: Dim, name: str, least: int) -> int | None:
    """From where on a dimension that grows with a symbol is at least so much; None where it is never."""

    def is_enough(value: int) -> bool:
        try:
            return evaluate(dim, {name: value}) >= least
        except ArithmeticError:
            return False

    if not is_enough(_LARGEST):
        return None
    low, high = 0, _LARGEST
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return high


def _has_symbols(value: ValueType | None) -> bool:
    return value is not None and any(isinstance(dim, Dim) for dim in value.shape or ())


def _meeting(node: onnx.NodeProto, inputs: Sequence[Shape | None]) -> Iterator[Sequence[Shape]]:
    """Shapes that broadcast together in a node, or agree, which inference does not demand of all."""
    known = [shape for shape in inputs if shape is not None]
    if node.op_type in _BROADCASTING:
        yield known
    elif node.op_type in _MATRICES:
        yield [shape[:-2] for shape in known[:2]]
    elif node.op_type == "Attention" and len(inputs) > _MASK:
        query, key, mask = inputs[_QUERY], inputs[_KEY], inputs[_MASK]
        past = inputs[_PAST] if len(inputs) > _PAST else None
        if query and key and mask and len(query) == len(key) > 2:
            total = key[-2]
            if past is not None and len(past) == 4 and total is not None and past[2] is not None:
                total = total + past[2]
            yield [[query[0], None, query[-2], total][-len(mask) :], mask]
