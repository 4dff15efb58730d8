"""Find preferred input sizes: the model does not require them, but differences show better at these sizes.

Windows: if a window operator sees only one window, or mostly padding, its strides, its dilations and many of its
weights have no effect. Broadcasts: dimensions of different names that broadcast together are equal in practice, and a
model refuses other sizes unless one of them is 1.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx

from splitgraph.dim import Dim, DimLike, evaluate, substitute_if_defined, symbol, symbols_of
from splitgraph.inference.alone import Alone, Given
from splitgraph.inference.analysis import Analysis
from splitgraph.model.scopes import MAIN, opset_imports
from splitgraph.model.value_type import UNKNOWN, ValueType, tensor
from splitgraph.verification.inputs.solver import Condition, Solver

# Each dimension should have so many windows: the first, the last, and one that sees no edge.
_WINDOWS = 3
# A kernel wider than this need not fit its input.
_WIDEST_KERNEL = 32
# The largest size for the sake of windows, and how many constraints on several symbols are kept.
_LARGEST = 1 << 17
_MOST_MIXED = 8

# After so many preferences that cannot be satisfied, the rest are skipped.
_MOST_REFUSED = 6

# Parts of the names of window operators, of ONNX and of OpenVINO.
_WINDOWED = ("Conv", "Pool", "STFT", "Col2Im", "ImagePatches")
Shape = tuple[DimLike | None, ...]


@dataclass(frozen=True, slots=True)
class Preferred:
    """Constraints that should hold, the most important first."""

    broadcasts: tuple[Condition, ...]
    windows: tuple[Condition, ...]


def read_preferred(analysis: Analysis, inputs: Mapping[str, ValueType]) -> Preferred:
    """Return the preferred constraints on the symbols of the inputs.

    inputs: the type of each input, with a symbol for each unknown dimension.
    """
    reader = _PreferenceReader()
    inner = analysis.details.graphs
    own = inner[MAIN].types if MAIN in inner else {}
    for name, value in inputs.items():
        dims = value.shape or ()
        reader.free.update(*(symbols_of(dim) for dim in dims if dim is not None))
        for dim, named in zip(own.get(name, UNKNOWN).shape or (), dims, strict=False):
            if dim is not None and named is not None and _is_symbol(dim) and dim != named:
                reader.definitions[str(dim)] = named
    for nodes, imports, types in _graphs(analysis):
        for node in nodes:
            reader.read(node, imports, types)
    return Preferred(tuple(reader.broadcasts.values()), tuple(reader.windows()))


def with_preferred(solver: Solver, preferred: Sequence[Condition]) -> Solver:
    """Add the preferred constraints that the solver can satisfy."""
    extended = replace(solver, constraints=[*solver.constraints, *preferred])
    if not preferred or extended.solve() is not None:
        return extended
    refused = 0
    for constraint in preferred:
        extended = replace(solver, constraints=[*solver.constraints, constraint])
        if extended.solve() is not None:
            solver = extended
        else:
            refused += 1
        if refused == _MOST_REFUSED:
            break
    return solver


_Graph = tuple[Sequence[onnx.NodeProto], Mapping[str, int], Mapping[str, ValueType]]


def _graphs(analysis: Analysis) -> Iterator[_Graph]:
    """Yield the nodes of every graph with its opsets and the types of its values: of the main graph, of subgraphs, and
    of the bodies of called functions, once for each call.
    """
    functions = {(local.domain, local.name): local for local in analysis.model.functions}
    inner = analysis.details.graphs
    for scope in analysis.details.scopes:
        if scope.in_function or scope.path not in inner:
            continue
        yield scope.nodes, scope.imports, inner[scope.path].types
        for index, node in enumerate(scope.nodes if functions else ()):
            function = functions.get((node.domain, node.op_type))
            called = inner.get(("call", f"{scope.location}/{node.name or f'{node.op_type}#{index}'}"))
            if function is not None and called is not None:
                yield function.node, opset_imports(function.opset_import), called.types


def _is_symbol(dim: DimLike) -> bool:
    return symbols_of(dim) == {str(dim)}


@dataclass(slots=True)
class _PreferenceReader:
    """Collects the preferred constraints, node after node. Which sizes a node needs to be equal, its rule is asked.

    free: the symbols of the inputs. definitions: the other symbols, in terms of these. least: preferred minimum sizes.
    asked: the kinds of nodes that were asked.
    """

    free: set[str] = field(default_factory=set)
    definitions: dict[str, DimLike] = field(default_factory=dict)
    broadcasts: dict[tuple[DimLike, DimLike], Condition] = field(default_factory=dict)
    least: dict[Dim, int] = field(default_factory=dict)
    alone: Alone = field(default_factory=Alone)
    asked: set[Hashable] = field(default_factory=set)

    def read(self, node: onnx.NodeProto, imports: Mapping[str, int], types: Mapping[str, ValueType]) -> None:
        """Add the preferences of a node."""
        if not any(_has_symbols(types.get(name)) for name in node.input):
            return
        inputs = [self._shape(types, name) for name in node.input]
        if len(inputs) > 1:
            self._meet(node, imports, types, inputs)
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
        return None if shape is None else tuple(self._resolved(dim) if isinstance(dim, Dim) else dim for dim in shape)

    def _resolved(self, dim: Dim) -> DimLike:
        names = symbols_of(dim) & self.definitions.keys()
        return substitute_if_defined(dim, {name: self.definitions[name] for name in names}) if names else dim

    def _meet(
        self,
        node: onnx.NodeProto,
        imports: Mapping[str, int],
        types: Mapping[str, ValueType],
        inputs: Sequence[Shape | None],
    ) -> None:
        """Prefer that dimensions are equal which the node needs to be equal, or 1. A new symbol for them is one of
        them.
        """
        known = [
            UNKNOWN if shape is None else tensor(types[name].dtype, shape)
            for name, shape in zip(node.input, inputs, strict=True)
        ]
        given = [Given(kind) if name else None for name, kind in zip(node.input, known, strict=True)]
        # Most nodes without attributes are like others.
        key = node.op_type, node.domain, imports.get(node.domain), *map(bool, node.input), *inputs
        if node.attribute or key not in self.asked:
            self.asked.add(key)
            self._prefer_equal(self.alone.equal_dims(node, imports, given))
        for output, name in enumerate(node.output):
            for axis, dim in enumerate(types.get(name, UNKNOWN).shape or ()):
                if dim is not None and _is_symbol(dim) and not {str(dim)} & (self.free | self.definitions.keys()):
                    made = self.alone.made(node, imports, given, output, axis)
                    if made is not None and made.is_same:
                        position, place, _ = made.sources[0]
                        self.definitions[str(dim)] = (known[position].shape or ())[place]  # type: ignore[assignment]

    def _prefer_equal(self, equal: Iterable[tuple[DimLike, DimLike]]) -> None:
        for sides in equal:
            # A number comes first: the symbols must equal it.
            first, further = sorted(sides, key=lambda dim: not isinstance(dim, int))
            if isinstance(further, Dim) and symbols_of(further) | symbols_of(first) <= self.free:
                self.broadcasts.setdefault((first, further), Condition(further, "==", first))

    def _fit_kernel(self, node: onnx.NodeProto, inputs: Sequence[Shape | None]) -> None:
        """Prefer spatial dimensions that are at least as wide as the kernel."""
        dims = inputs[0] or ()
        given = {attribute.name: list(attribute.ints) for attribute in node.attribute}
        rank = max(len(dims) - 2, 0)
        weights = (inputs[1] or ()) if "Conv" in node.op_type and len(inputs) > 1 else ()
        kernel: Sequence[DimLike | None] = given.get("kernel_shape") or weights[max(len(weights) - rank, 0) :]
        if not rank or len(kernel) != rank:
            return
        dilations = given.get("dilations") or [1] * rank
        for dim, size, dilation in zip(dims[2:], kernel, dilations, strict=False):
            if isinstance(size, int) and (size - 1) * dilation < _WIDEST_KERNEL:
                self._want(dim, (size - 1) * dilation + 1)

    def _want(self, dim: DimLike | None, least: int) -> None:
        if isinstance(dim, Dim) and symbols_of(dim) <= self.free:
            self.least[dim] = max(self.least.get(dim, 0), least)

    def windows(self) -> Iterator[Condition]:
        """Yield a bound for each symbol that alone determines a dimension, and a few constraints on several symbols."""
        bounds: dict[str, int] = {}
        mixed = []
        for dim, least in self.least.items():
            name, *others = sorted(symbols_of(dim))
            if others:
                mixed.append(Condition(dim, ">=", least))
                continue
            bound = _smallest(dim, name, least)
            if bound is not None:
                bounds[name] = max(bounds.get(name, 0), bound)
        yield from (Condition(symbol(name), ">=", bound) for name, bound in bounds.items())
        yield from mixed[:_MOST_MIXED]


def _smallest(dim: Dim, name: str, least: int) -> int | None:
    """Return the smallest value of a symbol at which a growing dimension is large enough; None without one."""

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
