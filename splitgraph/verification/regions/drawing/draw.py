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

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeGuard

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
from splitgraph.verification.regions.drawing.kinds_of_numbers import (
    Unusual,
    draw_ends,
    draw_gaps,
    draw_numerals,
    draw_tiny,
    draw_unusual,
    is_fraction,
    of_two,
    ordinary,
    turned,
)
from splitgraph.verification.regions.drawing.limits import draw_limits
from splitgraph.verification.regions.drawing.magnitudes import apart
from splitgraph.verification.regions.drawing.mixed import draw_mixed, is_flags, words_of
from splitgraph.verification.regions.drawing.ranges import Range
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

_LARGEST_TINY = 1e-6
# How many constants of a region are tried, of tensors of at most so many elements.
_MOST_CONSTANTS, _FEW = 24, 64
# Several draws as one tell how large the numbers of each column are (see `comparison.surroundings`).
_NORMAL_CASES = 8
_LARGE = 2**14
# The square of this number overflows float16.
_ROOT_OF_LARGEST_HALF = 256
_ANY: Mapping[str, Range] = {}
_CLOSED: tuple[OpenAxes, NamedAxes] = {}, ()


class _DrawnRegion(NamedTuple):
    """What is drawn for. free: the inputs that take any elements. said: other inputs that are not fixed, such as sizes.
    numbers: constants of the models, each with whether it may be a scale. words: texts of the models. axes: as in
    `draw`. has_kept: some inputs keep their elements. may_not_end: a loop may take very long on other numbers.
    """

    models: Models
    base: Mapping[str, Value]
    fixed: Collection[str]
    free: Mapping[str, Array]
    said: Mapping[str, Value]
    has_kept: bool
    numbers: Mapping[float, bool]
    words: Sequence[str]
    axes: tuple[OpenAxes, NamedAxes]
    may_not_end: bool

    @property
    def pair(self) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        """Return both models."""
        (before, _), (after, _) = self.models
        return before, after


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
    arrays = [each for each in values if isinstance(each, np.ndarray) and is_fraction(each.dtype)]
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
    counts = {name: int(value.flat[0]) for name, value in base.items() if _is_count(value)}
    is_open = any(may_not_end(model, counts) for model, _ in models)
    if not is_open:
        allowed.free_conditions(fixed)
    kept, rng = allowed.kept, np.random.default_rng(seed)
    free = {
        name: value for name, value in base.items() if name not in kept and isinstance(value, np.ndarray) and value.size
    }
    said = {name: value for name, value in base.items() if name in kept and name not in fixed}
    words = words_of([model for model, _ in models])
    region = _DrawnRegion(models, base, fixed, free, said, bool(kept), _constants(models), words, axes, is_open)
    groups = _numbers(region, rng), _counts(region), _rows(region), _of_what_it_computes(region, rng)
    for kind, values in itertools.chain(*groups):
        yield Drawn(kind, {**base, **values})


def _numbers(region: _DrawnRegion, rng: np.random.Generator) -> Iterator[Drawn]:
    """Yield numbers of each kind, whatever the region computes."""
    free, is_open = region.free, region.may_not_end
    # Large values hold all of the numbers at once.
    is_large = sum(value.size for value in free.values()) > _LARGE
    repetitions = 0 if not free else 1 if is_large else _NORMAL_CASES
    for _ in range(repetitions):
        yield Drawn("normal", {name: ordinary(value, rng) for name, value in free.items()})
    # Equal elements in each row.
    for _ in range(repetitions):
        yield Drawn("mixed", {name: of_two(value, rng) for name, value in free.items()})
    # A sum of 0 divides only where all elements are 0, and only equal ones have no variance.
    for number in (0, 1) if free else ():
        yield Drawn("mixed", {name: of_two(value, rng, (number, number + 1)) for name, value in free.items()})
    kinds: Sequence[Unusual] = ("steps",) if is_open else ("steps", "ends", "gaps")
    for kind in kinds:
        yield from (Drawn(kind, values) for values in draw_unusual(free, kind, region.numbers, rng))
    if not is_open:
        yield from (Drawn("gaps", values) for values in draw_gaps(free))
        yield from (Drawn("mixed", values) for values in draw_mixed(free, region.words))
        yield from (Drawn("ends", values) for values in draw_ends(free))
    yield from (Drawn("steps", values) for values in draw_numerals(region.pair, free, region.numbers))
    if not is_open:
        yield from (Drawn("tiny", values) for values in draw_tiny(free))


def _counts(region: _DrawnRegion) -> Iterator[Drawn]:
    """Yield other numbers of iterations, sizes and rates."""
    yield from (Drawn("counts", values) for values in draw_fractions(region.said))
    yield from (Drawn("counts", values) for values in draw_counts(region.pair, region.base, region.numbers))


def _rows(region: _DrawnRegion) -> Iterator[Drawn]:
    """Yield inputs at which tables are read at each of their rows."""
    indexed = {name: value for name, value in region.base.items() if name not in region.fixed}
    other_branches = turned({name: value for name, value in indexed.items() if is_flags(value) and value.size == 1})
    for values in draw_rows(region.models, region.base, indexed):
        yield Drawn("rows", values)
        # Both branches read the rows.
        if other_branches:
            yield Drawn("rows", {**other_branches, **values})
        # A row may show only beside the largest number, as a power of two by which it is divided.
        beside = {name: each for name, each in region.free.items() if each.dtype.kind in "iu" and name not in values}
        if beside:
            largest = {name: np.full_like(each, np.iinfo(each.dtype).max) for name, each in beside.items()}
            yield Drawn("ends", {**largest, **values})


def _of_what_it_computes(region: _DrawnRegion, rng: np.random.Generator) -> Iterator[Drawn]:
    """Yield values that follow from what the region computes: its limits, trees, sequences, lengths and sums."""
    models, base, free, numbers = region.models, region.base, region.free, region.numbers
    open_axes, is_open = region.axes[0], region.may_not_end
    yield from (Drawn("steps", values) for values in draw_limits(models, base, free, rng))
    for values in draw_paths(region.pair, free, open_axes):
        has_gaps = any(np.isnan(value).any() for value in values.values())
        yield Drawn("gaps" if has_gaps else "rows", values)
    yield from (Drawn("counts", values) for values in draw_sequences(base, numbers, open_axes))
    yield from (Drawn("rows", values) for values in draw_longer(region.pair, free, open_axes))
    # What is kept may be a size.
    if not region.has_kept:
        lengths = draw_lengths(region.pair, free, region.axes, numbers, region.words)
        yield from (Drawn("counts", values) for values in lengths)
    if not is_open:
        yield from (Drawn("steps", values) for values in draw_between(free, numbers, rng))
        yield from (Drawn("steps", values) for values in at_inner_limits(models, base, free, numbers))
    yield from (Drawn("steps", values) for values in draw_several(models, free, rng))
    if not is_open:
        yield from (Drawn("mixed", values) for values in draw_peaks(models, free, numbers))


def _is_count(value: Value) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray) and value.dtype == np.int64 and value.size == 1


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
