"""Values that nodes compute from constants alone. Nothing is computed until a dimension depends on it.

The rules follow integers and symbols. onnx's reference evaluator runs what they do not follow, in double precision.
Runtimes round in their own ways, so a result is certain only if every way of rounding gives it: a node whose result is
not exact is run with several errors of a few units in the last place, and elements that change are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from splitgraph.model.deferred import defs, helper, np, reference
from splitgraph.model.onnx_proto import NodeProto, TensorProto
from splitgraph.model.schemas import kinds, version_at
from splitgraph.model.value_type import Contents, Item, ValueType
from splitgraph.model.values import array_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

# Shapes come of a few numbers. Longer chains than this do not make shapes.
_MOST_ITEMS = 64
_MOST_STEPS = 64
# Each combination of errors up to this many, then as many that are drawn.
_MOST_TRIALS = 32
# Types of 16 bits are left alone: runtimes round them at different nodes.
# Bits of the numbers of a float type, and how many of those an exact result of the double-precision run may use.
_FLOAT_BITS = {"float32": 24, "float64": 53}
_EXACT_BITS = {"float32": 24, "float64": 26}
# Exporters write the largest or smallest integer of either width for "to the end" of a Slice.
OPEN_END = 2**31 - 1
_STEPS_OF_SLICE = 4
# What a runtime may be off by, in units of the last place.
_ERROR = 8.0


def _since(version: int, names: str) -> dict[str, int]:
    return dict.fromkeys(names.split(), version)


# What onnx's evaluator computes as its specification says: operators that compute each element from others, reduce, or
# move elements, but for a few, and some others.
_NOT_COMPUTED = kinds.names(
    "Affine CastLike CenterCropPad MaxUnpool ParametricSoftplus RegexFullMatch Scale ScaledTanh Scatter SpaceToDepth "
    "Split StringConcat TensorScatter"
)
_MORE_COMPUTED = kinds.names(
    "ArgMax ArgMin CumSum DequantizeLinear Einsum Gemm LogSoftmax MatMul NonZero Range SequenceLength Softmax TopK "
    "Unique"
)
_BY_KIND = kinds.BY_ELEMENT | kinds.REDUCES | kinds.MOVED | {*kinds.MOVED_BY_DEFAULT} | kinds.SIZES
_COMPUTED = _BY_KIND - _NOT_COMPUTED | _MORE_COMPUTED
# Versions with these attributes are not computed: the evaluator does not read them.
_NOT_READ = frozenset(("broadcast", "consumed_inputs"))
# The first version that the evaluator computes as its specification says, where others have none of these attributes.
_SINCE = {
    **_since(6, "Tile"),
    **_since(7, "PRelu"),
    **_since(8, "Max Mean Min Sum"),
    **_since(9, "Cast MatMul"),
    **_since(10, "Slice"),
    **_since(11, "ArgMax ArgMin Clip Concat DepthToSpace Flatten Gather Gemm OneHot Pad Squeeze TopK Unsqueeze"),
    **dict.fromkeys(kinds.REDUCES, 11),
    **_since(13, "LogSoftmax Softmax"),
}
# Every runtime rounds these correctly.
_CORRECT = {"Sqrt"}
# What the rules follow exactly for integers: where they give nothing, a number overflows or is divided by 0.
FOLLOWED = frozenset(("Abs", "Add", "Div", "Mod", "Mul", "Neg", "Sub"))
# The first version that the evaluator has, where older nodes mean the same.
_RUN_AS = {"DequantizeLinear": 19}
# What rounds each element in its own way.
_ROUNDED = (kinds.EACH & kinds.ROUNDED | {"LogSoftmax", "Pow", "Softmax"}) - _CORRECT
# What adds up or multiplies elements in any order, and rounds after each.
_SUMS = (kinds.ADDED | kinds.ROUNDED) - _ROUNDED - _CORRECT
_INEXACT = _ROUNDED | _SUMS


def _is_sorted(node: NodeProto, values: Sequence[Any]) -> bool:
    """TopK gives other orders as it likes. onnx's evaluator sorts what Unique gives in order of occurrence."""
    return all(entry.i != 0 for entry in node.attribute if entry.name == "sorted")


def _has_whole_numbers(node: NodeProto, values: Sequence[Any]) -> bool:
    """The evaluator rounds a depth of a OneHot up where runtimes cut it off, and finds no index that is a fraction."""
    return all(np.asarray(value).dtype.kind in "iu" for value in values[:2])


def is_slice_disputed(dim: int, start: int, end: int, step: int) -> bool:
    """Return True for a backward slice that starts before the first element: the specification clamps its start to the
    first element, numpy and the evaluator to before it. And for one of which the end is disputed.
    """
    return (step < 0 and start < -dim) or is_end_disputed(end, step)


def is_end_disputed(end: int, step: int) -> bool:
    """Return True for a backward slice to the largest integer. For onnxruntime this is past the first element, for the
    specification it is the last element.
    """
    return step < 0 and end >= OPEN_END


def _is_undisputed(node: NodeProto, values: Sequence[Any]) -> bool:
    """Return False for a Slice that is disputed along an axis. Below opset 10 it has no steps."""
    if len(values) < _STEPS_OF_SLICE + 1 or values[_STEPS_OF_SLICE] is None:
        return True
    data, starts, ends, axes, steps = values
    sliced = range(len(starts)) if axes is None else axes
    bounds = zip(sliced, starts, ends, steps, strict=True)
    sizes = np.shape(data)
    return not any(sizes[axis] and is_slice_disputed(sizes[axis], *map(int, bound)) for axis, *bound in bounds)


def _has_axes(node: NodeProto, values: Sequence[Any]) -> bool:
    """Of a scalar, NonZero gives no row, or one in onnxruntime."""
    return bool(np.asarray(values[0]).ndim)


# Nodes that only these conditions make the same everywhere, in the evaluator too.
_ONLY_IF: Mapping[str, Callable[[NodeProto, Sequence[Any]], bool]] = {
    "NonZero": _has_axes,
    "OneHot": _has_whole_numbers,
    "Slice": _is_undisputed,
    "TopK": _is_sorted,
    "Unique": _is_sorted,
}
# What the evaluator raises for values that it does not take.
NOT_COMPUTED = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


@cache
def is_computable(op_type: str, since_version: int) -> bool:
    """Return True if onnx's evaluator computes an operator of ai.onnx as its specification says."""
    if op_type not in _COMPUTED or since_version < _SINCE.get(op_type, 1):
        return False
    meant = version_at("", op_type, since_version)
    return meant is not None and _NOT_READ.isdisjoint(meant.attributes)


def is_exact(op_type: str, since_version: int) -> bool:
    """Return True if every runtime gives the same elements for an operator of ai.onnx, and onnx's evaluator does: it
    moves elements, is exact for integers that do not overflow, or rounds each element correctly.
    """
    return op_type not in _INEXACT and is_computable(op_type, since_version)


def is_computed_alike(node: NodeProto, values: Sequence[Any]) -> bool:
    """Return False for a node of ai.onnx of which onnx's evaluator and runtimes give other elements. values: of its
    inputs, None for an omitted one.
    """
    only_if = _ONLY_IF.get(node.op_type)
    return only_if is None or only_if(node, values)


class NotComputed(Exception):
    """onnx's evaluator does not run a node on these elements. The argument says why."""


def evaluate(node: NodeProto, opset: int, values: Sequence[Any]) -> list[Any]:
    """Return what onnx's evaluator gives for the inputs of a node: None for an output without a name. values: arrays in
    the types of the inputs, None for an omitted one. Raises NotComputed.
    """
    try:
        return _evaluator_of(node, opset, [value is not None for value in values])(values)
    except NOT_COMPUTED as error:
        raise NotComputed(str(error)) from error


def _evaluator_of(node: NodeProto, opset: int, given: Sequence[bool]) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a function that runs a node on its inputs; None for an omitted one. given: which inputs are not omitted.
    The function raises one of `NOT_COMPUTED`, and so does this one.
    """
    meant = version_at("", node.op_type, opset)
    if meant is None or defs.get_schema(node.op_type, opset).since_version != meant.since_version:
        raise ValueError("a version that the installed onnx does not have")
    names = [f"i{index}" if is_given else "" for index, is_given in enumerate(given)]
    alone = NodeProto()
    alone.CopyFrom(node)
    del alone.input[:], alone.output[:]
    alone.input.extend(names)
    alone.output.extend(f"o{index}" if name else "" for index, name in enumerate(node.output))
    opsets = [helper.make_opsetid("", max(opset, _RUN_AS.get(node.op_type, 1)))]
    outputs = [name for name in alone.output if name]
    function = helper.make_function("computed", "f", [name for name in names if name], outputs, [alone], opsets)
    run = partial(reference.ReferenceEvaluator(function).run, None, attributes={})
    has_name = [bool(name) for name in node.output]

    def evaluator(values: Sequence[Any]) -> list[Any]:
        if not is_computed_alike(node, values):
            raise ValueError("elements that the evaluator and runtimes give in several ways")
        feeds = {f"i{index}": value for index, value in enumerate(values) if value is not None}
        with np.errstate(all="ignore"):
            made = iter(run(feed_inputs=feeds))
        return [next(made) if is_named else None for is_named in has_name]

    return evaluator


def is_few(known: ValueType) -> bool:
    """Return True if a value has few elements, of a type that is computed."""
    if known.dtype is None or (known.dtype not in _FLOAT_BITS and not _is_integer(known.dtype)):
        return False
    if known.kind == "sequence":
        return True
    if known.shape is None:
        return False
    sizes = [dim for dim in known.shape if isinstance(dim, int)]
    return len(sizes) == len(known.shape) and prod(sizes) <= _MOST_ITEMS


def _is_integer(dtype: str) -> bool:
    return dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


class Computation:
    """A node whose inputs are all known.

    sources: the source of each input: an output of another computation, a tensor, known elements, or None for an
    omitted input. types: the inferred types of the outputs.
    """

    def __init__(
        self,
        node: NodeProto,
        opset: int,
        sources: Sequence[ComputedValue | TensorProto | Contents | None],
        given: Sequence[ValueType],
        types: Sequence[ValueType],
    ) -> None:
        self.node = node
        self.types = types
        self.steps: int = 1 + sum(
            {source.of: source.of.steps for source in sources if isinstance(source, ComputedValue)}.values()
        )
        self._opset = opset
        self._sources = sources
        self._given = given
        self._run: Callable[[Sequence[Any]], list[Any]] | None = None

    @property
    def is_short(self) -> bool:
        """False at the end of a long chain, which is not computed."""
        return self.steps <= _MOST_STEPS

    def run(self, trial: Trial) -> list[Any]:
        """Return the outputs in one trial. Raise one of `NOT_COMPUTED` if there are none."""
        outputs = trial.results.get(self)
        if outputs is None:
            values = [self._value(index, trial) for index in range(len(self._sources))]
            made = self._evaluate(values)
            outputs = [
                trial.rounded(self, self._checked(index, output, values), values) for index, output in enumerate(made)
            ]
            trial.results[self] = outputs
        return outputs

    def _value(self, index: int, trial: Trial) -> Any:
        source, dtype = self._sources[index], self._given[index].dtype
        if source is None:
            return None
        if isinstance(source, ComputedValue):
            return source.of.run(trial)[source.position]
        if isinstance(source, TensorProto):
            return _widened(array_of(source))
        return _widened(np.array(source.items, dtype=dtype).reshape(source.shape))

    def _evaluate(self, values: Sequence[Any]) -> list[Any]:
        if self._run is None:
            given = [source is not None for source in self._sources]
            self._run = _evaluator_of(self.node, self._opset, given)
        return self._run(values)

    def _checked(self, index: int, made: Any, values: Sequence[Any]) -> Any:
        """Return an output in the type that the run goes on with. Raise ValueError if runtimes differ about it."""
        if made is None or isinstance(made, list):
            return made
        array, dtype = np.asarray(made), self.types[index].dtype
        if not np.isfinite(array.astype(np.float64)).all():
            raise ValueError("not finite")
        if dtype is not None and _is_integer(dtype):
            if dtype != "bool" and _may_overflow(self.node.op_type, dtype, values):
                raise ValueError("a number that the type may not hold")
            return array.astype(dtype)
        return array.astype(np.float64)


class ComputedValue:
    """An output of a computation."""

    __slots__ = ("_contents", "_is_asked", "of", "position")

    def __init__(self, of: Computation, position: int) -> None:
        self.of = of
        self.position = position
        self._contents: Contents | None = None
        self._is_asked = False

    @property
    def is_float(self) -> bool:
        """True for floating-point numbers: no dimension depends on them until they become integers."""
        return self.of.types[self.position].dtype in _FLOAT_BITS

    def contents(self) -> Contents | None:
        """Return the elements. An element is None if runtimes may differ about it; the result is None if nothing is
        computed.
        """
        if not self._is_asked:
            self._is_asked = True
            try:
                self._contents = self._computed()
            except NOT_COMPUTED:
                self._contents = None
        return self._contents

    def _computed(self) -> Contents | None:
        first = Trial(())
        array = self.of.run(first)[self.position]
        if not isinstance(array, np.ndarray) or array.size > _MOST_ITEMS:
            return None
        items: list[Item] = array.reshape(-1).tolist()
        for errors in _combinations(len(first.inexact)):
            again = self.of.run(Trial(errors))[self.position]
            if again.shape != array.shape:
                return None
            pairs = zip(items, again.reshape(-1).tolist(), strict=True)
            items = [item if item == changed else None for item, changed in pairs]
        if array.dtype == np.bool_:
            items = [int(item) if isinstance(item, bool) else None for item in items]
        return Contents(array.shape, tuple(items))


class Trial:
    """One run of a chain of computations. errors: the direction of each inexact result's error, in order."""

    def __init__(self, errors: Sequence[int]) -> None:
        self.results: dict[Computation, list[Any]] = {}
        self.inexact: dict[Computation, int] = {}
        self._errors = errors

    def rounded(self, step: Computation, made: Any, given: Sequence[Any]) -> Any:
        """Return the output rounded to its type, with this trial's error if it is not exact."""
        if not isinstance(made, np.ndarray) or made.dtype != np.float64:
            return made
        position = next((place for place, known in enumerate(step.types) if known.dtype in _FLOAT_BITS), 0)
        dtype = step.types[position].dtype or "float32"
        error = _error_of(step.node.op_type, dtype, made, given, step)
        if error is None:
            return made.astype(dtype).astype(np.float64)
        place = self.inexact.setdefault(step, len(self.inexact))
        sign = self._errors[place] if place < len(self._errors) else 0
        return made + sign * error


def _error_of(op_type: str, dtype: str, made: Array, given: Sequence[Any], step: Computation) -> Array | None:
    """Return the possible error of each element; None if all are exact, or rounded in one way only."""
    unit = 2.0 ** -_FLOAT_BITS[dtype]
    if op_type in _ROUNDED:
        return None if _has_few_bits(made, _EXACT_BITS[dtype]) else np.abs(made) * _ERROR * unit
    if op_type in _SUMS:
        floats = [value for value in given if isinstance(value, np.ndarray) and value.dtype == np.float64]
        most = prod(max(1.0, float(np.abs(value).sum())) for value in floats) ** (2 if "Square" in op_type else 1)
        whole = all(np.array_equal(value, np.rint(value)) for value in floats)
        if whole and most < 2.0 ** min(_EXACT_BITS[dtype], 24) and _has_few_bits(made, _EXACT_BITS[dtype]):
            return None
        return np.full(made.shape, most * _MOST_ITEMS * unit)
    return None


def _may_overflow(op_type: str, dtype: str, given: Sequence[Any]) -> bool:
    """Return True if the integers of a node's output may not fit their type: runtimes wrap around,
    saturate or crash.
    """
    arrays = [np.abs(value.astype(np.float64)) for value in given if isinstance(value, np.ndarray)]
    most = float(np.iinfo(dtype).max)
    if op_type == "Cast":
        low = float(np.iinfo(dtype).min)
        return bool((given[0] < low).any() or (given[0].astype(np.float64) >= most + 1).any())
    if op_type == "BitShift":
        return bool((arrays[1] >= np.iinfo(dtype).bits).any())
    if op_type == "Pow":
        # In logarithms: the power itself may not fit a float64 either.
        return bool(np.log2(arrays[0].max(initial=1)) * arrays[1].max(initial=1) >= np.log2(most))
    if op_type in _SUMS:
        total = prod(max(1.0, float(array.sum())) for array in arrays) ** (2 if "Square" in op_type else 1)
        product = op_type == "ReduceProd" and float(np.prod(np.maximum(arrays[0], 1))) >= most
        return total >= most or product
    return False


def _has_few_bits(made: Array, bits: int) -> bool:
    """Return True if so many bits hold each number. A result in double precision is exact then."""
    scaled = np.frexp(made)[0] * 2.0**bits
    return bool(np.array_equal(scaled, np.rint(scaled)))


def _combinations(count: int) -> Iterator[tuple[int, ...]]:
    """Yield the directions of the errors of so many results."""
    if not count:
        return
    total = min(2**count, _MOST_TRIALS)
    for trial in range(total):
        # Beyond the limit the bits of a product differ from place to place as drawn ones do.
        bits = trial if 2**count <= _MOST_TRIALS else (trial * 2654435761 + 12345) * 40503 >> 3
        yield tuple([1 if bits >> place & 1 else -1 for place in range(count)])


def _widened(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array
