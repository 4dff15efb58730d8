"""Draw values for the inputs of a region, on which two operators differ that agree on ordinary numbers.

- steps: 0 and -0.0, halves, small whole numbers, and the constants of the region with their neighbours, and the
  multiples of those that may be scales: for `>` against `>=`, the rounding of ties, thresholds, the ends of a
  quantization.
- ends: the smallest and largest integers of a type, and floating-point numbers that narrower types cannot hold: for
  saturation, wrapping, and overflow.
- tiny: numbers of which squares are still no 0: for what is 0 in a narrower type, and for what is compared with 0.
- gaps: NaN and the infinities between ordinary numbers.
- mixed: few numbers, special ones among them, in all combinations: for two inputs that meet, and for ties.
- counts: numbers of iterations, and lengths of sequences (see `amounts`).
- normal: ordinary numbers, several times: for weights that the values of the model do not show.
- rows: each row of a table, those that differ first (see `rows`).

The elements of larger constants are steps, too (see `limits`), numbers between the constants (see `between`), and
numbers at which values inside of the region meet limits (see `inner_limits`), several constants at once and positions
of the greatest element (see `several`). Small steps are drawn beside large ones, and without them (see `magnitudes`).

Shapes are those of the values that reach the region; only where nothing but empty ones does, dimensions of size 0 grow
(see `local_check`). A region with a loop that may not end on other values is drawn up to steps alone. Values that no
element of the model's inputs reaches (sizes, constants) do not change: what is known of them, the second model may
rely on. Nor do lengths and positions. What divisors of integers are computed from takes any number but 0. Boxes stay as
large as they are: what an engine does for one may take time in proportion to its area.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeGuard

import numpy as np
import onnx

from splitgraph.model.schemas import kinds
from splitgraph.options import ATOL_WRITTEN_OUT
from splitgraph.verification.models.dependence import may_not_end
from splitgraph.verification.models.model_files import elements_of, is_default_domain, scoped_nodes
from splitgraph.verification.regions.drawing.allowed import Allowed
from splitgraph.verification.regions.drawing.amounts import (
    NamedAxes,
    OpenAxes,
    draw_counts,
    draw_fractions,
    draw_lengths,
    draw_longer,
    draw_sequences,
)
from splitgraph.verification.regions.drawing.between import draw_between
from splitgraph.verification.regions.drawing.inner_limits import at_inner_limits
from splitgraph.verification.regions.drawing.limits import MULTIPLES, draw_limits
from splitgraph.verification.regions.drawing.magnitudes import apart
from splitgraph.verification.regions.drawing.mixed import WORDS, draw_mixed, is_flags, words_of
from splitgraph.verification.regions.drawing.ranges import Range
from splitgraph.verification.regions.drawing.repeating import drawn_elements, repeated
from splitgraph.verification.regions.drawing.rows import MOST_ROWS, Models, draw_rows
from splitgraph.verification.regions.drawing.several import draw_peaks, draw_several
from splitgraph.verification.regions.drawing.tree_paths import draw_paths
from splitgraph.verification.regions.finding.constants import dense_tensor
from splitgraph.verification.regions.finding.folding import computed_tables
from splitgraph.verification.values import Array, Value, tensors_of

Kind = Literal["captured", "normal", "together", "steps", "ends", "gaps", "mixed", "rows", "counts", "jumps", "tiny"]
# Numbers of ordinary size, of which no sum overflows.
ORDINARY: Collection[str] = ("captured", "normal", "together", "rows", "counts")
# Numbers at which engines agree; others prove a difference only if the arbiter confirms it.
PLAIN: Collection[str] = (*ORDINARY, "steps")
# Numbers so large, or so small, that sums and products of them end in infinities or in 0.
_OVERFLOWING: Collection[str] = ("steps", "ends", "jumps")

_STEPS = (0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.5, 1.0, -1.0, 2.0, -2.0, 3.0, 0.25, 6.0)
# Beside these, a number is rounded otherwise.
_ROUNDED: Mapping[float, bool] = {0.5: False, 1.0: False}
_ENDS_OF_HALVES = (12.0, -12.0, 65504.0, -65504.0, 300.0, -300.0, 2049.0, -2049.0, 1e-7, 1000.0)
_ENDS = (65520.0, -65520.0, 1e6, -1e6, 16777217.0, -16777217.0, 1e9, -1e9, 1e18, -1e18, 256.0, 300.0)
# Exponentials of these overflow, or those of numbers that are a few tens larger.
_POWERS: Mapping[str, Sequence[float]] = {
    "float32": (20.0, -20.0, 95.0, -95.0),
    "float64": (20.0, -20.0, 95.0, -95.0, 750.0, -750.0),
}
_TINY: Mapping[str, Sequence[float]] = {
    **dict.fromkeys(("float32", "bfloat16"), (1e-9, 1e-12, 1e-18)),
    "float64": (1e-9, 1e-12, 1e-25, 1e-60, 1e-150),
}
_LARGEST_TINY = 1e-6
_WHOLE_ENDS = (-(2**31), 2**31 - 1, 2**31, 2**32 + 1, 2**53 + 1, 1000, 65536, -1000, 100, 128)
# Of the ends of a type, so many numbers are spread over the whole range of 8 bits.
_SPREAD = 15
# How many constants of a region are tried, of tensors of at most so many elements.
_MOST_CONSTANTS, _FEW = 24, 64
# In how many cases at most the numbers of a kind are tried: more if all inputs have few elements. One of so many
# elements is a gap.
_MOST_CASES, _MOST_SMALL_CASES = 12, 64
_EACH = 4
# Several draws as one tell how large the numbers of each column are (see `comparison.surroundings`).
_NORMAL_CASES = 8
_LARGE = 2**14
# Numbers of a narrower type are drawn like those of float32.
_MOST_BITS = 16
# The square of this number overflows float16.
_ROOT_OF_LARGEST_HALF = 256
_NUMERALS = ("0", "-1", "2.5", "-0.5", "1e10", "-3e-3", "inf", "NaN", "1e40")
_ANY: Mapping[str, Range] = {}
_CLOSED: tuple[OpenAxes, NamedAxes] = {}, ()


class Drawn(NamedTuple):
    """Values for the inputs of a region. kind: what is unusual about them."""

    kind: Kind
    values: Mapping[str, Value]


def draw(
    models: Models,
    base: Mapping[str, Value],
    fixed: Collection[str],
    seed: int,
    ranges: Mapping[str, Range] = _ANY,
    axes: tuple[OpenAxes, NamedAxes] = _CLOSED,
) -> Iterator[Drawn]:
    """Yield values for the inputs of a region, with the shapes and types of those in `base`.

    models: the region before and after, each with the folder of its external data. fixed: inputs that do not change.
    ranges: the least and the largest number of inputs that cannot be any. axes: open and named ones, along which inputs
    may get other sizes.
    """
    allowed = Allowed(models, base, fixed, ranges)
    for kind, every in _drawn(models, base, allowed, fixed, seed, axes):
        drawn = {name: value for name, value in every.items() if value is not base[name]}
        for values in (drawn, *(apart(drawn) if kind == "steps" else ())):
            only = allowed.only(values, kind, is_plain=kind in PLAIN)
            told: Kind = "tiny" if kind == "steps" and _are_tiny(only.values()) else kind
            # Of a scalar, NumPy gives no array, and engines take nothing else.
            arrays = {name: np.asarray(each) if isinstance(each, np.generic) else each for name, each in only.items()}
            yield Drawn(told, dict(every) | arrays)


def _are_tiny(values: Iterable[Value]) -> bool:
    """Return True if all fractions among some values are tiny, and not all are 0: a limit may lie beside 0."""
    arrays = [each for each in values if isinstance(each, np.ndarray) and _is_fraction(each.dtype)]
    largest = max((float(np.abs(each.astype(np.float64)).max(initial=0.0)) for each in arrays), default=0.0)
    return 0 < largest <= _LARGEST_TINY


def may_overflow(kind: str, atol: float, *, regroups: bool) -> bool:
    """Return True if an infinity and NaN are no difference on numbers of a kind. So they are not on unusual numbers of
    any kind where sums were put together in another way, and where operators were written out, which the absolute
    tolerance tells: formulas meet NaN at other places. regroups: see `regroups_sums`.
    """
    return kind in _OVERFLOWING or (kind not in ORDINARY and (regroups or atol >= ATOL_WRITTEN_OUT))


def least_difference(kind: str, atol: float) -> float:
    """Return the absolute difference that is allowed on numbers of a kind: tiny ones vanish beside any other, and show
    no more than what a model decides by them.
    """
    return max(atol, ATOL_WRITTEN_OUT) if kind == "tiny" else atol


def overflow_in_float16(inputs: Mapping[str, Value]) -> bool:
    """Return True if products of some inputs are no numbers in float16."""
    arrays = (array for value in inputs.values() for array in tensors_of(value) if array.dtype == np.float16)
    return any(bool((np.abs(array) >= _ROOT_OF_LARGEST_HALF).any()) for array in arrays)


def is_fully_drawn(models: Iterable[onnx.ModelProto]) -> bool:
    """Return True if a region is drawn with all kinds of values, which loops and tables of many rows prevent."""
    return not any(may_not_end(model, {}) or _has_long_table(model) for model in models)


def _has_long_table(model: onnx.ModelProto) -> bool:
    dims = {tensor.name: tensor.dims for tensor in model.graph.initializer}
    tables = (
        dims.get(n.input[0]) for n, _ in scoped_nodes(model) if n.op_type in kinds.READS_AT and n.input[1] not in dims
    )
    return any(table and max(table) > MOST_ROWS for table in tables)


def _drawn(
    models: Models,
    base: Mapping[str, Value],
    allowed: Allowed,
    fixed: Collection[str],
    seed: int,
    axes: tuple[OpenAxes, NamedAxes],
) -> Iterator[Drawn]:
    """Yield values for the inputs of a region, allowed or not."""
    (before, _), (after, _) = models
    both = before, after
    numbers = _constants(models)
    counts = {name: int(value.flat[0]) for name, value in base.items() if _is_count(value)}
    is_open = any(may_not_end(model, counts) for model in both)
    if not is_open:
        allowed.free_conditions(fixed)
    kept = allowed.kept
    free = {
        name: value for name, value in base.items() if name not in kept and isinstance(value, np.ndarray) and value.size
    }
    rng = np.random.default_rng(seed)
    # Large values hold all of the numbers at once.
    is_large = sum(value.size for value in free.values()) > _LARGE
    repetitions = 0 if not free else 1 if is_large else _NORMAL_CASES
    for _ in range(repetitions):
        yield Drawn("normal", dict(base) | {name: _ordinary(value, rng) for name, value in free.items()})
    # Equal elements in each row.
    for _ in range(repetitions):
        yield Drawn("mixed", dict(base) | {name: _of_two(value, rng) for name, value in free.items()})
    # A sum of 0 divides only where all elements are 0, and only equal ones have no variance.
    for number in (0, 1) if free else ():
        alike = {name: _of_two(value, rng, (number, number + 1)) for name, value in free.items()}
        yield Drawn("mixed", dict(base) | alike)
    words = words_of(both)
    kinds: Sequence[Kind] = ("steps",) if is_open else ("steps", "ends", "gaps")
    for kind in kinds:
        for values in _unusual(free, kind, numbers, rng):
            yield Drawn(kind, dict(base) | values)
    for values in _gaps_alone(free) if not is_open else ():
        yield Drawn("gaps", dict(base) | values)
    for values in draw_mixed(free, words) if not is_open else ():
        yield Drawn("mixed", dict(base) | values)
    for values in _one_end(free) if not is_open else ():
        yield Drawn("ends", dict(base) | values)
    for values in _numerals(both, free, numbers):
        yield Drawn("steps", dict(base) | values)
    for values in _tiny(free, base) if not is_open else ():
        yield Drawn("tiny", values)
    said = {name: value for name, value in base.items() if name in kept and name not in fixed}
    for values in draw_fractions(said):
        yield Drawn("counts", dict(base) | values)
    for values in draw_counts(both, base, numbers):
        yield Drawn("counts", dict(base) | values)
    indexed = {name: value for name, value in base.items() if name not in fixed}
    turned = _turned({name: value for name, value in indexed.items() if is_flags(value) and value.size == 1})
    for values in draw_rows(models, base, indexed):
        yield Drawn("rows", dict(base) | values)
        # Both branches read the rows.
        if turned:
            yield Drawn("rows", dict(base) | turned | values)
        # A row may show only beside the largest number, as a power of two by which it is divided.
        beside = {name: each for name, each in free.items() if each.dtype.kind in "iu" and name not in values}
        if beside:
            largest = {name: np.full_like(each, np.iinfo(each.dtype).max) for name, each in beside.items()}
            yield Drawn("ends", dict(base) | largest | values)
    for values in draw_limits(models, base, free, rng):
        yield Drawn("steps", dict(base) | values)
    for values in draw_paths(both, free, axes[0]):
        has_gaps = any(np.isnan(value).any() for value in values.values())
        yield Drawn("gaps" if has_gaps else "rows", dict(base) | values)
    for values in draw_sequences(base, numbers, axes[0]):
        yield Drawn("counts", dict(base) | values)
    for values in draw_longer(both, free, axes[0]):
        yield Drawn("rows", dict(base) | values)
    # What is kept may be a size.
    for values in draw_lengths(both, free, axes, numbers, words) if not kept else ():
        yield Drawn("counts", dict(base) | values)
    for values in draw_between(free, numbers, rng) if not is_open else ():
        yield Drawn("steps", dict(base) | values)
    for values in at_inner_limits(models, base, free, numbers) if not is_open else ():
        yield Drawn("steps", dict(base) | values)
    for values in draw_several(models, free, rng):
        yield Drawn("steps", dict(base) | values)
    for values in draw_peaks(models, free, numbers) if not is_open else ():
        yield Drawn("mixed", dict(base) | values)


def _one_end(free: Mapping[str, Array]) -> Iterator[dict[str, Value]]:
    """Yield integers that are all at the end of their type, and half of that: sums of them are beyond it."""
    whole = {name: value for name, value in free.items() if value.dtype.kind in "iu"}
    for part in (1, 2) if whole else ():
        yield {name: np.full_like(value, np.iinfo(value.dtype).max // part) for name, value in whole.items()}


def _gaps_alone(free: Mapping[str, Array]) -> Iterator[dict[str, Value]]:
    """Yield NaN and infinities that no number stands among: a window may hold nothing else."""
    fractions = {name: value for name, value in free.items() if _is_fraction(value.dtype)}
    for number in (np.nan, np.inf, -np.inf) if fractions else ():
        yield {name: np.full(value.shape, number).astype(value.dtype) for name, value in fractions.items()}


def _numerals(
    models: Iterable[onnx.ModelProto], free: Mapping[str, Array], constants: Iterable[float]
) -> Iterator[dict[str, Value]]:
    """Yield texts that a Cast makes numbers of, those of a region among them."""
    if not any(node.op_type == "Cast" for model in models for node, _ in scoped_nodes(model)):
        return
    own = (int(number) if number.is_integer() else number for number in constants)
    numerals = np.array([*map(str, own), *_NUMERALS], dtype=object)
    for name, value in ((name, value) for name, value in free.items() if value.dtype.kind in "OUS"):
        for start in range(0, numerals.size, value.size):
            yield {name: repeated(np.roll(numerals, -start), value.shape)}


def _ordinary(value: Array, rng: np.random.Generator) -> Array:
    """Return other ordinary elements for a value."""
    return drawn_elements(lambda size: _ordinary_elements(value.dtype, size, rng), value.shape)


def _ordinary_elements(dtype: np.dtype[Any], size: int, rng: np.random.Generator) -> Array:
    if dtype.kind in "OUS":
        return np.asarray(rng.choice(np.array(WORDS, dtype=object), size=size), dtype=object)
    if dtype.kind == "b":
        return np.asarray(rng.uniform(size=size) < 0.5)
    if dtype.kind == "c":
        return np.asarray(rng.standard_normal(size) + 1j * rng.standard_normal(size), dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(max(int(info.min), -100), min(int(info.max), 100), size, endpoint=True).astype(dtype)
    return np.asarray(rng.standard_normal(size)).astype(np.float32).astype(dtype)


def _unusual(
    free: Mapping[str, Array], kind: Kind, constants: Mapping[float, bool], rng: np.random.Generator
) -> Iterator[dict[str, Value]]:
    """Yield unusual elements of a kind for the inputs."""
    lists = {name: _numbers(value.dtype, kind, constants) for name, value in free.items()}
    lists = {name: numbers for name, numbers in lists.items() if numbers.size}
    cases = max((-(-numbers.size // free[name].size) for name, numbers in lists.items()), default=0)
    others = [name for name in free if name not in lists]
    is_small = all(value.size <= _FEW for value in free.values())
    most = _MOST_SMALL_CASES if is_small else _MOST_CASES
    for case in range(min(max(cases, 2 if cases and len(lists) > 1 else cases), most)):
        made: dict[str, Value] = {name: _ordinary(free[name], rng) for name in others}
        for place, (name, numbers) in enumerate(lists.items()):
            # In the first case, inputs meet their equals.
            start = case * free[name].size + 3 * place * (case % 2)
            made[name] = _filled(free[name], np.roll(numbers, -start), kind)
        yield made
        # Both branches meet the numbers.
        conditions = {name: made[name] for name in others if is_flags(free[name]) and free[name].size == 1}
        if conditions:
            yield made | _turned(conditions)


def _turned(conditions: Mapping[str, Value]) -> dict[str, Value]:
    """Return the other branches."""
    return {name: np.asarray(np.logical_not(value)) for name, value in conditions.items()}


def _tiny(free: Mapping[str, Array], base: Mapping[str, Value]) -> Iterator[dict[str, Value]]:
    """Yield tiny numbers of each size, for one input after the other, and for all of them."""
    fitting = {name: value for name, value in free.items() if value.dtype.name in _TINY}
    for size in sorted({size for value in fitting.values() for size in _TINY[value.dtype.name]}):
        made = {
            name: repeated(np.roll([size, -size, 2 * size], place).astype(value.dtype), value.shape)
            for place, (name, value) in enumerate(fitting.items())
            if size in _TINY[value.dtype.name]
        }
        yield dict(base) | made
        yield from (dict(base) | {name: value} for name, value in made.items() if len(fitting) > 1)


def _is_fraction(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"


def _is_count(value: Value) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray) and value.dtype == np.int64 and value.size == 1


def _of_two(value: Array, rng: np.random.Generator, ends: tuple[int, int] = (0, 2)) -> Array:
    """Return zeros and ones in any order. ends: the first number, and the one after the last one."""
    if value.dtype.kind in "OUS":
        words = np.array(WORDS[slice(*ends)], dtype=object)
        return drawn_elements(lambda size: np.array(rng.choice(words, size=size), dtype=object), value.shape)
    return drawn_elements(lambda size: np.asarray(rng.integers(*ends, size)).astype(value.dtype), value.shape)


def _filled(value: Array, numbers: Array, kind: Kind) -> Array:
    if kind == "gaps":
        filled = np.array(value)
        flat = filled.reshape(-1)
        step = _EACH if flat.size > _EACH else 1
        flat[::step] = repeated(numbers, flat[::step].size)
        return filled
    return repeated(numbers, value.shape)


def _numbers(dtype: np.dtype[Any], kind: Kind, constants: Mapping[float, bool]) -> Array:
    """Return the numbers of a kind in a type; none if the type has no such numbers."""
    if dtype.kind in "iu":
        return _whole_numbers(dtype, kind, constants)
    if not _is_fraction(dtype):
        return np.empty(0, dtype)
    is_half = dtype.itemsize * 8 <= _MOST_BITS
    if kind == "steps":
        multiples = (times * number for number, is_scale in constants.items() if is_scale for times in MULTIPLES)
        return _unique(
            [*_with_neighbours(dtype, {**constants, **_ROUNDED}), *_STEPS, *_POWERS.get(dtype.name, ()), *multiples],
            dtype,
        )
    if kind == "ends":
        return np.array(_ENDS_OF_HALVES if is_half else _ENDS).astype(dtype)
    return np.array([np.nan, np.inf, -np.inf, -0.0]).astype(dtype)


def _with_neighbours(dtype: np.dtype[Any], constants: Iterable[float]) -> Iterator[float]:
    """Yield each constant, and its neighbours in a type."""
    for number in constants:
        with np.errstate(over="ignore", under="ignore"):
            rounded = np.asarray(number).astype(dtype if dtype.kind == "f" else np.float32)
            around = [float(np.nextafter(rounded, rounded.dtype.type(end))) for end in (np.inf, -np.inf)]
        if np.isfinite(rounded):
            yield from (float(rounded), *around)


def _unique(candidates: Sequence[float], dtype: np.dtype[Any]) -> Array:
    with np.errstate(over="ignore"):
        numbers = np.array(candidates, np.float64).astype(dtype)
    # As bits, because -0.0 is equal to 0.
    bits = numbers.view(np.dtype(f"u{dtype.itemsize}"))
    _, places = np.unique(bits, return_index=True)
    return numbers[np.sort(places)]


def _whole_numbers(dtype: np.dtype[Any], kind: Kind, constants: Iterable[float]) -> Array:
    if kind == "gaps" or dtype.itemsize * 8 < 8:
        return np.empty(0, dtype)
    info = np.iinfo(dtype)
    if kind == "steps":
        whole = [int(number) + step for number in constants if float(number).is_integer() for step in (0, 1, -1)]
        candidates = [*whole, 0, 1, -1, 2, 3, -2, -3, 7, -7]
    else:
        half = int(info.max) // 2
        candidates = [info.min, info.max, info.min + 1, info.max - 1, half, half + 1, -1, *_WHOLE_ENDS]
        if dtype.itemsize == 1:
            candidates += range(info.min, info.max, _SPREAD)
    return np.array([number for number in dict.fromkeys(map(int, candidates)) if info.min <= number <= info.max], dtype)


def _constants(models: Models) -> dict[float, bool]:
    """Return numbers of small constants and of attributes of a region, each with whether it may be the scale of a
    quantization: a number of iterations, an axis or a limit of integers is none.
    """
    constants: dict[float, bool] = {}
    for model, folder in models:
        tensors = [*model.graph.initializer]
        for node, _ in scoped_nodes(model):
            is_constant = node.op_type == "Constant" and is_default_domain(node.domain)
            tensor = dense_tensor(node) if is_constant else None
            tensors += [tensor] if tensor is not None else []
            for attribute in node.attribute if not is_constant else ():
                if attribute.type == onnx.AttributeProto.FLOAT and is_default_domain(node.domain):
                    constants[attribute.f] = attribute.f > 0
                elif attribute.type == onnx.AttributeProto.GRAPH:
                    tensors += attribute.g.initializer
        for tensor in tensors:
            if np.prod(tensor.dims) <= _FEW:
                elements = _elements(tensor, folder)
                is_fraction = elements.dtype.kind not in "iu"
                for number in map(float, elements.ravel().tolist()):
                    constants[number] = constants.get(number, False) or (is_fraction and number > 0)
        # What nodes compute of constants is a limit as well.
        computed = (made for made in computed_tables(model, folder).values() if made.size <= _FEW)
        for made in (made for made in computed if made.dtype.kind in "fiu"):
            for number in map(float, made.ravel().tolist()):
                constants.setdefault(number, False)
    finite = [(number, is_scale) for number, is_scale in constants.items() if np.isfinite(number)]
    return dict(finite[:_MOST_CONSTANTS])


def _elements(tensor: onnx.TensorProto, folder: Path) -> Array:
    """Return the elements of a tensor of real numbers; none of other tensors."""
    nothing: Array = np.empty(0)
    if tensor.data_type == onnx.TensorProto.STRING:
        return nothing
    array = elements_of(tensor, folder)
    return nothing if array.dtype.kind in "cb" else array
