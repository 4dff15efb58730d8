"""Draw inputs at which a value inside of a region meets a limit: behind a root, a scale or a sum, the limit itself is
an input like any other.

What a region decides by runs alone, in the reference evaluator: the operands of its comparisons, and values that may be
0, such as the distance from the middle of a bump. It runs on inputs whose elements are known numbers: 0, the powers of
2, and constants. Between these, `crossings` finds where something is decided otherwise. Where each element of a value
is computed from one element of the input, each one has a limit of its own, and the evaluator runs many numbers at once.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from splitgraph.model.schemas import kinds
from splitgraph.model.scopes import reads
from splitgraph.verification.models.model_files import is_default_domain
from splitgraph.verification.reference.deferred import evaluator
from splitgraph.verification.regions.drawing.crossings import FoundNumbers, Watched, find_numbers
from splitgraph.verification.regions.finding.reached import reached
from splitgraph.verification.values import Array, UnsupportedError, Value

# In regions of at most so many nodes and elements, limits are looked for in so many seconds.
_MOST_NODES, _MOST_ELEMENTS, _SECONDS = 64, 2**18, 0.6
# Of more elements, each has no number of its own, and so many sets of values are drawn.
_MOST_APART, _LARGE, _FEW_SETS, _MOST_SETS = 2**12, 2**14, 8, 64
# So many crossings are looked for at once where the evaluator runs all of them at once, and one after the other.
_MOST_AT_ONCE, _MOST_ONE_BY_ONE = 48, 10
# The evaluator runs so many numbers at once, of all elements and values together. So many whole numbers are known.
_MOST_NUMBERS, _DENSE = 2**20, (-(2**10), 2**13)
# Of a value that is computed from several elements, so many elements are watched.
_MOST_COLUMNS = 4
# So many sets of values have limits of two inputs at once.
_MOST_TOGETHER = 16
_SMALLEST_POWER, _LARGEST_POWER, _LARGEST = -8, 40, 2.0**50
COMPARISONS = kinds.BROADCASTS & (kinds.COMPARED | kinds.ORDERED) | {"Clip"}
# Operators that compute each element from one element of each input. CastLike reads no element of its second one, whose
# shape need not fit.
BY_ELEMENT = kinds.BY_ELEMENT - {"CastLike"} | {"Constant"}
# Operators that give 0 where an input is 0, or pass elements on: who watches the input knows when.
_KEEPING_ZERO = kinds.PICKED | kinds.LOGICAL | kinds.SIGNED
_KEEPING_ZERO |= kinds.names("Asin Atan Cast Concat Constant Div Erf Exp IsInf IsNaN LeakyRelu Mul Relu Shape Sigmoid")
_KEEPING_ZERO |= {"Sign", "Softmax", "Sqrt", "Tanh", "Where"}
# Operators whose results jump where an input is 0, or have no meaning there.
_JUMPING = COMPARISONS | kinds.WHOLE | kinds.names("Cast Log Mod Not Pow Reciprocal Sign")


@dataclass
class _Watch:
    """A value inside of a region, or two that are compared. traits: for the search. has_bits: whole numbers that bit
    operators compute.
    """

    names: tuple[str, ...]
    traits: Watched
    has_bits: bool = False


@dataclass
class _WatchedPart:
    """Nodes of a region that run alone. names: of their inputs. rank: the largest one of their constants."""

    loaded: Any
    watches: Sequence[_Watch]
    names: frozenset[str]
    is_by_element: bool
    rank: int

    @cached_property
    def wanted(self) -> list[str]:
        """Return the values that are watched."""
        return list(dict.fromkeys(name for watch in self.watches for name in watch.names))

    def run(self, feeds: Mapping[str, Value]) -> list[tuple[Array, ...]] | None:
        """Return the values of each watch; None where the region has no meaning."""
        try:
            with np.errstate(all="ignore"):
                results = evaluator.run(self.loaded, feeds, self.wanted)
        except (ArithmeticError, IndexError, RuntimeError, TypeError, UnsupportedError, ValueError):
            return None
        values = dict(zip(self.wanted, map(np.asarray, results), strict=True))
        return [tuple(values[name] for name in watch.names) for watch in self.watches]


def at_inner_limits(
    models: Sequence[tuple[onnx.ModelProto, Path]],
    base: Mapping[str, Value],
    free: Mapping[str, Array],
    constants: Iterable[float] = (),
) -> Iterator[dict[str, Value]]:
    """Yield values for the free inputs of a region, one after the other, and then for several at once. models: before
    and after, with the folders of their external data. base: the values that reached the region. constants: its
    numbers.
    """
    end = time.monotonic() + _SECONDS
    size = sum(value.size for value in free.values())
    numbers = [number for number in constants if abs(number) < _LARGEST]
    found: dict[str, list[Array]] = {}
    seen, most = set[bytes](), _FEW_SETS if size > _LARGE else _MOST_SETS
    for model, folder in models if size <= _MOST_ELEMENTS else ():
        parts = [*_parts(model, folder, seen)]
        is_by_element = all(part.is_by_element for part in parts) and _is_by_element(model)
        for part, (name, value) in itertools.product(parts, free.items()):
            if name not in part.names or not _is_number(value.dtype):
                continue
            known = {each: base[each] for each in part.names}
            told = {value.tobytes()}
            for line in _lines(part, known, name, value):
                for row, may_cancel in line.found(numbers, end):
                    filled = line.filled(row)
                    # Where all results cancel, rounding is all that is left.
                    is_noise = may_cancel and value.size == 1 and value.dtype.kind == "f"
                    if is_noise or filled.tobytes() in told or len(told) >= most:
                        continue
                    told.add(filled.tobytes())
                    halves = [*_halves(value, filled)] if part.is_by_element else []
                    found.setdefault(name, []).append(halves[0] if is_by_element else filled)
                    yield from ({name: each} for each in halves)
                    if not (halves and (is_by_element or may_cancel)):
                        yield {name: filled}
    yield from _together(found)


def _together(found: Mapping[str, Sequence[Array]]) -> Iterator[dict[str, Value]]:
    """Yield limits of two inputs at once."""
    for one, other in itertools.combinations(found, 2):
        pairs = sorted(
            itertools.product(range(len(found[one])), range(len(found[other]))), key=lambda pair: (max(pair), sum(pair))
        )
        yield from ({one: found[one][left], other: found[other][right]} for left, right in pairs[:_MOST_TOGETHER])


def _halves(value: Array, filled: Array) -> Iterator[Array]:
    """Yield a value with other numbers in every other element: those between tell how large the results are. Where not
    all of the numbers are alike, each element has its turn.
    """
    is_one = bool((filled == filled.flat[0]).all())
    for start in (0,) if is_one or filled.size == 1 else (0, 1):
        made = np.array(value)
        made.reshape(-1)[start::2] = filled.reshape(-1)[start::2]
        yield made


def _is_by_element(model: onnx.ModelProto) -> bool:
    """Return True if each element of the results is computed from one element of each input."""
    return all(node.op_type in BY_ELEMENT and is_default_domain(node.domain) for node in model.graph.node)


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.name in ("float16", "float32", "float64") or dtype.kind in "iu"


# What is watched ------------------------------------------------------------------------------------------------------


def _parts(model: onnx.ModelProto, folder: Path, seen: set[bytes]) -> Iterator[_WatchedPart]:
    """Yield the parts of a region that run alone, by element and others. seen: those of the other model."""
    if len(model.graph.node) > _MOST_NODES:
        return
    watches = [*_watches(model)]
    pieces = [(watch, cut(model, watch.names)) for watch in watches]
    for is_by_element in (True, False):
        own = [watch for watch, piece in pieces if _is_by_element(piece) == is_by_element]
        # A sum of several elements that is 0 shows how engines round.
        own = [watch for watch in own if is_by_element or watch.traits.is_compared]
        yield from _loaded(model, folder, own, seen)


def _watches(model: onnx.ModelProto) -> Iterator[_Watch]:
    """Yield what is compared first, and then values that may be 0 where no input is."""
    given = {value.name for value in model.graph.input}
    computed = set(given)
    jumping = set[str]()
    nodes = [node for node in model.graph.node if is_default_domain(node.domain)]
    for node in nodes:
        computed |= set(node.output) if computed & set(reads(node)) else set()
        jumping |= set(node.input[1:] if node.op_type == "Div" else node.input if node.op_type in _JUMPING else ())
    has_bits = any(node.op_type in kinds.BITS for node in nodes)
    for node in nodes:
        names = [name for name in node.input if name]
        if node.op_type in COMPARISONS and computed & set(names) - given:
            # A limit of Clip may be left out.
            yield from (_Watch((names[0], other), Watched(True, False), has_bits) for other in names[1:])
    for node in nodes:
        if node.op_type not in _KEEPING_ZERO | COMPARISONS and node.output[0] in computed:
            yield _Watch((node.output[0],), Watched(False, node.output[0] not in jumping))


def cut(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """Return a model of the nodes that some values depend on."""
    nodes = list(model.graph.node)
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    read = [tuple(filter(None, reads(node))) for node in nodes]
    needed = sorted(reached({makers[name] for name in names if name in makers}, read, makers))
    part = onnx.ModelProto(ir_version=model.ir_version)
    part.opset_import.extend(model.opset_import)
    part.functions.extend(model.functions)
    part.graph.name = "part"
    used = {name for index in needed for name in read[index]} | set(names)
    part.graph.node.extend(nodes[index] for index in needed)
    part.graph.input.extend(value for value in model.graph.input if value.name in used)
    part.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in used)
    part.graph.sparse_initializer.extend(s for s in model.graph.sparse_initializer if s.values.name in used)
    part.graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(names))
    return part


def _loaded(
    model: onnx.ModelProto, folder: Path, watches: Sequence[_Watch], seen: set[bytes]
) -> Iterator[_WatchedPart]:
    """Yield the parts of some watches: one, if the evaluator has all operators."""
    if not watches:
        return
    part = cut(model, [name for watch in watches for name in watch.names])
    written = part.SerializeToString(deterministic=True)
    if written in seen:
        return
    seen.add(written)
    try:
        loaded = evaluator.load(part, folder)
    except (RuntimeError, UnsupportedError, ValueError):
        middle = len(watches) // 2
        for half in (watches[:middle], watches[middle:]) if middle else ():
            yield from _loaded(model, folder, half, seen)
        return
    ranks = [len(tensor.dims) for tensor in part.graph.initializer]
    ranks += [len(a.t.dims) for node in part.graph.node for a in node.attribute if a.HasField("t")]
    names = frozenset(value.name for value in part.graph.input)
    yield _WatchedPart(loaded, watches, names, _is_by_element(part), max(ranks, default=0))


# Lines ----------------------------------------------------------------------------------------------------------------


def _lines(part: _WatchedPart, known: Mapping[str, Value], name: str, value: Array) -> Iterator[_Line]:
    """Yield the ways in which one input of a part runs through numbers."""
    results = part.run(known)
    if results is None:
        return
    shapes = [np.broadcast_shapes(*(each.shape for each in values)) for values in results]
    is_own = [part.is_by_element and _fits(shape, value.shape) and value.size <= _MOST_APART for shape in shapes]
    own = [place for place, each in enumerate(is_own) if each]
    others = [place for place, each in enumerate(is_own) if not each]
    sizes = [math.prod(shape) for shape in shapes]
    if own and value.size:
        yield _Line(part, known, name, value, own, sizes, value.size)
    if others and value.size and (part.is_by_element or value.size <= _MOST_APART):
        yield _Line(part, known, name, value, others, sizes, 1)
        # A variance is 0 where all elements are one number.
        if not part.is_by_element and value.dtype.kind == "f" and value.size > 1:
            yield _Line(part, known, name, value, others, sizes, 1, _direction(value))


def _fits(shape: tuple[int, ...], own: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, own) == own
    except ValueError:
        return False


def _direction(value: Array) -> Array:
    sizes = np.where(np.isfinite(value), value, 0).astype(np.float64)
    largest = np.abs(sizes).max(initial=0.0)
    # Values that are all alike are of no use.
    is_plain = not largest or np.ptp(sizes) <= 1e-3 * largest
    rng = np.random.default_rng(value.size)
    return rng.standard_normal(value.shape) if is_plain else sizes / largest


@dataclass
class _Line:
    """One input of a part whose elements are numbers. places: of the watches. sizes: of what each watch gives. count:
    the size of the input if each element has a number of its own, and otherwise 1. direction: what a number is
    multiplied with.
    """

    part: _WatchedPart
    known: Mapping[str, Value]
    name: str
    value: Array
    places: Sequence[int]
    sizes: Sequence[int]
    count: int
    direction: Array | float = 1.0

    def __post_init__(self) -> None:
        dtype = self.value.dtype
        info: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        self._least, self._most = max(float(info.min), -_LARGEST), min(float(info.max), _LARGEST)
        self.epsilon = float(info.eps) if dtype.kind == "f" else 0.0
        self._columns: list[Array] = []
        ranks = [np.ndim(each) for each in self.known.values() if isinstance(each, np.ndarray)]
        self._rank = max([self.part.rank, *ranks])
        self._width = max([1 if self._is_scalar else self.value.size, *(self.sizes[place] for place in self.places)])

    @property
    def _is_scalar(self) -> bool:
        """Return True if each element of what is watched has one number for all inputs, of which one element is run."""
        return self.part.is_by_element and self.count == 1 and self.value.size > _MOST_APART

    def filled(self, numbers: Array) -> Array:
        """Return the input for numbers; where there are none, it is as it was."""
        spread = np.broadcast_to(numbers.reshape(self.value.shape if self.count > 1 else ()), self.value.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            made = (np.where(np.isfinite(spread), spread, 0.0) * self.direction).astype(self.value.dtype)
        return np.where(np.isfinite(spread), made, self.value)

    def rounded(self, numbers: Array) -> Array:
        """Return the nearest numbers of the type, or whole numbers below."""
        if not self.epsilon:
            return np.floor(numbers)
        with np.errstate(over="ignore"):
            return numbers.astype(self.value.dtype).astype(np.float64)

    def found(self, constants: Sequence[float], end: float) -> Iterator[FoundNumbers]:
        """Yield the numbers at which something may be decided otherwise. constants: of the region."""
        known = self._known(constants)
        most = _MOST_AT_ONCE if self.part.is_by_element else _MOST_ONE_BY_ONE
        if self.count == 1:
            self._choose_columns(known)
        rows = find_numbers(self, self._watched(), known, most, end)
        by_bits = self._by_bits() if self.count > 1 or self.value.size == 1 else ()
        for row, may_cancel in itertools.chain(rows, map(FoundNumbers, by_bits)):
            yield FoundNumbers(np.where((row >= self._least) & (row <= self._most), row, np.nan), may_cancel)

    def _known(self, constants: Sequence[float]) -> Array:
        powers = range(_SMALLEST_POWER if self.epsilon else 0, _LARGEST_POWER + 1)
        parts = (1.0, 1.25, 1.5, 1.75) if self.part.is_by_element else (1.0,)
        numbers = {sign * share * 2.0**power for power in powers for sign in (1, -1) for share in parts}
        numbers |= {0.0, *constants}
        if not self.epsilon and self.part.is_by_element:
            numbers |= set(range(*_DENSE)) if self._width * (_DENSE[1] - _DENSE[0]) <= _MOST_NUMBERS else set()
        known = np.unique(self.rounded(np.array(sorted(numbers))))
        return known[(known >= self._least) & (known <= self._most)]

    def _watched(self) -> list[Watched]:
        counts = [1] * len(self.places) if self.count > 1 else [each.size for each in self._columns]
        pairs = zip(self.places, counts, strict=True)
        return [self.part.watches[place].traits for place, count in pairs for _ in range(count)]

    def _choose_columns(self, known: Array) -> None:
        """Choose elements of each value that are watched: of those that stand alike to 0 everywhere, one."""
        results = self._results(known[:, None], _gap)
        self._columns = []
        for values in results:
            signs = np.sign(values)
            _, first = np.unique(signs, axis=1, return_index=True)
            self._columns.append(np.sort(first)[:_MOST_COLUMNS])

    def gaps(self, numbers: Array) -> Array:
        """Return the functions, [rows, functions, elements], for numbers, [rows, elements]."""
        results = self._results(numbers, _gap)
        if self.count > 1:
            return np.stack(results, axis=1)
        columns = [values[:, chosen] for values, chosen in zip(results, self._columns, strict=True)]
        return np.concatenate(columns, axis=1)[:, :, None]

    def _results(self, numbers: Array, of: Any) -> list[Array]:
        """Return, for each watch, a function of its values, [rows, elements]."""
        if self.part.is_by_element:
            most = max(_MOST_NUMBERS // self._width, 1)
            pieces = [self._at_once(numbers[start : start + most], of) for start in range(0, len(numbers), most)]
            return [np.concatenate(each) for each in zip(*pieces, strict=True)]
        rows = [self._row(self.part.run({**self.known, self.name: self.filled(row)}), of) for row in numbers]
        sizes = [max(row[place].size for row in rows) for place in range(len(self.places))]
        return [
            np.stack([row[place] if row[place].size == size else np.full(size, np.nan) for row in rows])
            for place, size in enumerate(sizes)
        ]

    def _at_once(self, numbers: Array, of: Any) -> list[Array]:
        """Return `_results` of a run in which the numbers are a new first dimension."""
        count = len(numbers)
        shape = (1,) * self.value.ndim if self._is_scalar else self.value.shape
        whole = (count, *(1,) * (self._rank - len(shape)), *shape)
        with np.errstate(over="ignore", invalid="ignore"):
            given = numbers.astype(self.value.dtype)
        given = np.broadcast_to(given, (count, math.prod(shape))).reshape(whole)
        known = {name: _first(each) for name, each in self.known.items()} if self._is_scalar else self.known
        values = self.part.run({**known, self.name: given})
        made = []
        for place in self.places:
            if values is None:
                own = np.full((count, self.sizes[place]), np.nan)
            else:
                own = of(*values[place])
                # What does not depend on the numbers has no dimension for them.
                missing = (1,) * (len(whole) - 1 - own.ndim)
                own = own if own.ndim == len(whole) else np.broadcast_to(own, (count, *missing, *own.shape))
                own = np.broadcast_to(own, whole) if self.count > 1 else own
            made.append(own.reshape(count, -1))
        return made

    def _row(self, values: Sequence[tuple[Array, ...]] | None, of: Any) -> list[Array]:
        if values is None:
            return [np.empty(0) for _ in self.places]
        return [of(*values[place]).reshape(-1) for place in self.places]

    def _by_bits(self) -> Iterator[Array]:
        """Yield whole numbers, found bit by bit, at which what bit operators compute is equal to what it is compared
        with.
        """
        for position, place in enumerate(self.places):
            if self.epsilon or not self.part.watches[place].has_bits or not self.part.watches[place].traits.is_compared:
                continue
            bits = min(self.value.dtype.itemsize * 8, 50)
            for start in (0, -1) if self._least < 0 else (0,):
                chosen = np.full((1, self.count), float(start))
                for bit in reversed(range(bits)):
                    turned = (chosen.astype(np.int64) ^ (1 << bit)).astype(np.float64)
                    turned = np.where((turned >= self._least) & (turned <= self._most), turned, chosen)
                    sizes = self._results(np.concatenate([chosen, turned]), _other_bits)[position]
                    chosen = np.where(sizes[1] < sizes[0], turned, chosen)
                yield from (chosen[0] + step for step in (0, 1, -1))


def _first(value: Value) -> Value:
    return value.reshape(-1)[:1].reshape((1,) * value.ndim) if isinstance(value, np.ndarray) else value


def _gap(value: Array, other: Array | None = None) -> Array:
    """Return a value, or the difference of two."""
    if value.dtype.kind not in "biuf":
        return np.full(value.shape, np.nan)
    with np.errstate(invalid="ignore", over="ignore"):
        return value.astype(np.float64) - (0.0 if other is None else other.astype(np.float64))


def _other_bits(value: Array, other: Array | None = None) -> Array:
    """Return the number that the bits make in which two whole numbers differ."""
    if other is None or value.dtype.kind not in "iu" or other.dtype.kind not in "iu":
        return _gap(value, other)
    return (value.astype(np.int64) ^ other.astype(np.int64)).view(np.uint64).astype(np.float64)
