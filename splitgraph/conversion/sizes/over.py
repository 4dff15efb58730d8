"""Says along which axes a node mixes places: it sums, sorts or normalises over them, or takes some by their number.

Such an axis cannot be a batch. Each operator of onnx is listed here or in `APART`. An operator in `APART` handles each
place of every axis by itself, or moves whole places. Nothing is known of any other operator.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from splitgraph.conversion.sizes.digits import is_one_factor
from splitgraph.conversion.sizes.follow import Over, Site, SizeFlow
from splitgraph.dim import DimLike, symbols_of
from splitgraph.inference.rules.operands import has_argument
from splitgraph.model.schemas import kinds

# An end from which on a slice takes everything, in any type of its bounds.
_TO_THE_END = 2**31 - 1
# An input, and an axis of it.
Place = tuple[int, int]


def of_data(site: Site, axes: Iterable[int]) -> list[Place]:
    """Return these axes of the data, without those that it does not have."""
    rank = len(site.dims(0) or ())
    return [(0, axis % rank) for axis in axes if -rank <= axis < rank]


def _axis(default: int) -> Over:
    return lambda site: of_data(site, [site.ctx.attribute("axis", default)])


def to_the_last(first: int) -> Over:
    """Return a function for an operator that mixes places along all axes of the data from one on."""
    return lambda site: of_data(site, range(first, len(site.dims(0) or ())))


def on_axes(*axes: int) -> Over:
    """Return a function for an operator that mixes places along these axes of the data."""
    return lambda site: of_data(site, axes)


def of_all(site: Site) -> list[Place]:
    """Return all axes of all inputs."""
    return [
        (position, axis) for position in range(site.ctx.input_count) for axis in range(len(site.dims(position) or ()))
    ]


def _axes_or_all(default: tuple[int, ...] | None = None) -> Over:
    """Return a function for an operator with the attribute `axes`; without it, the operator mixes all axes."""
    return lambda site: of_data(site, site.ctx.attribute("axes", default) or range(len(site.dims(0) or ())))


def _axis_or_all(site: Site) -> list[Place]:
    axis = site.ctx.attribute("axis")
    return of_all(site) if axis is None else of_data(site, [axis])


def _softmax(site: Site) -> list[Place]:
    """Return the given axis; below opset 13, also all axes behind it."""
    if site.ctx.since_version >= 13:
        return of_data(site, [site.ctx.attribute("axis", -1)])
    return _to_the_end(1)(site)


def _to_the_end(default: int) -> Callable[[Site], list[Place]]:
    def over(site: Site) -> list[Place]:
        rank = len(site.dims(0) or ())
        axis = site.ctx.attribute("axis", default)
        return of_data(site, range(axis % rank, rank)) if -rank <= axis < rank else []

    return over


def _integers(items: Sequence[DimLike] | None) -> tuple[int, ...] | None:
    """Return a list if all of its elements are numbers."""
    known = tuple(item for item in items or () if isinstance(item, int))
    return None if items is None or len(known) < len(items) else known


def _reduce(site: Site) -> list[Place]:
    axes = _integers(site.listed("axes"))
    if axes is None and has_argument(site.ctx, "axes"):
        return []
    is_noop = site.ctx.attribute("noop_with_empty_axes", 0)
    return of_data(site, axes or (() if is_noop else range(len(site.dims(0) or ()))))


def multiplies(site: Site, transpose_a: bool = False, transpose_b: bool = False) -> list[Place]:
    """Return the inner axes of a matrix product."""
    one, other = len(site.dims(0) or ()), len(site.dims(1) or ())
    inner = one - 2 if transpose_a else one - 1, other - 1 if transpose_b else other - 2
    return [(at, max(axis, 0)) for at, (axis, rank) in enumerate(zip(inner, (one, other), strict=True)) if rank]


def _gemm(site: Site) -> list[Place]:
    return [(0, 0 if site.ctx.attribute("transA", 0) else 1), (1, 1 if site.ctx.attribute("transB", 0) else 0)]


def _sums_letters(site: Site) -> list[Place]:
    """Return the axes whose letters the output of an Einsum does not have: it sums over them."""
    equation = site.ctx.attribute("equation", "")
    text = (equation.decode() if isinstance(equation, bytes) else equation).replace(" ", "")
    terms, arrow, out = text.partition("->")
    parts = terms.split(",")
    if not arrow:
        out = "".join(letter for letter in terms if letter.isalpha() and terms.count(letter) == 1)
    found = []
    for position, term in enumerate(parts):
        rank = len(site.dims(position) or ())
        before, dots, after = term.partition("...")
        letters = [*enumerate(before), *enumerate(after, rank - len(after))] if dots else [*enumerate(term)]
        found += [(position, axis) for axis, letter in letters if letter not in out]
    return found


def _recurrent(site: Site) -> list[Place]:
    steps = 1 if site.ctx.attribute("layout", 0) else 0
    return [(0, steps), (0, 2)]


def attends(site: Site) -> list[Place]:
    """Return the axes of positions and of features of queries, keys and values."""
    ranks = [len(site.dims(position) or ()) for position in range(3)]
    return [(position, axis) for position, rank in enumerate(ranks) if rank > 2 for axis in (rank - 2, rank - 1)]


def _indexed(site: Site) -> list[Place]:
    """Return the axis along which elements are taken by indices: constant ones; or computed ones that do not depend on
    the items, along an axis that was merged of items and others.
    """
    places, own, dims = [*_axis(0)(site)], site.dims(1), site.dims(0) or ()
    if site.numbers(1) is not None or own is None or not places:
        return places if site.numbers(1) is not None else []
    dim, read = dims[places[0][1]], {name for size in own for name in symbols_of(size)}
    is_apart = is_one_factor(dim) or not read.isdisjoint(symbols_of(dim) & site.wanted.batch)
    return [] if is_apart or not read <= {*site.wanted.old, *site.wanted.places} else places


def _slice(site: Site) -> list[Place]:
    """Return the axes of which a part is taken."""
    dims, starts, ends = site.dims(0) or (), site.listed("starts"), site.listed("ends")
    axes, steps = (_integers(site.listed(name)) for name in ("axes", "steps"))
    if starts is None or ends is None:
        return []
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    parts = []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=False):
        parts += [] if is_whole(dims, axis, start, end, step) else [axis]
    return of_data(site, parts)


def is_whole(dims: Sequence[DimLike], axis: int, start: DimLike, end: DimLike, step: DimLike) -> bool:
    """Return True for a slice of all of an axis. Of a batch of 1, a slice to 4 is not all of it."""
    own = dims[axis] if -len(dims) <= axis < len(dims) else None
    return start == 0 and step == 1 and (end == own or (isinstance(end, int) and end >= _TO_THE_END))


def positions(site: Site) -> list[Place]:
    """Return the first axes, along which elements are written or taken by tuples of indices, if these are constant."""
    depth = (site.dims(1) or (0,))[-1]
    return of_data(site, range(depth)) if site.numbers(1) is not None and isinstance(depth, int) else []


def _batch_normalization(site: Site) -> list[Place]:
    """Return the axes over which the mean and variance are taken: in training, all but that of the channels."""
    rank = len(site.dims(0) or ())
    return [(0, axis) for axis in range(rank) if axis != 1] if site.ctx.attribute("training_mode", 0) else []


def _spectrum(site: Site) -> list[Place]:
    """Return the axis of the signal, and that of its real and imaginary parts."""
    axis = site.ctx.attribute("axis", 1) if site.ctx.since_version < 20 else (site.numbers(2) or (-2,))[0]
    return of_data(site, [axis, -1])


def _roi_align(site: Site) -> list[Place]:
    return [*of_data(site, range(2, 4)), *([(0, 0)] if site.numbers(2) is not None else [])]


def _tile(site: Site) -> list[Place]:
    return of_data(site, [axis for axis, count in enumerate(site.numbers(1) or ()) if count != 1])


def _scan(site: Site) -> list[Place]:
    count = site.ctx.attribute("num_scan_inputs", 0)
    axes = site.ctx.attribute("scan_input_axes") or (0,) * count
    first = site.ctx.input_count - count
    return [(first + at, axis % max(len(site.dims(first + at) or ()), 1)) for at, axis in enumerate(axes)]


def _cumulated(site: Site) -> list[Place]:
    return of_data(site, site.numbers(1) or ())


def _reversed(site: Site) -> list[Place]:
    return of_data(site, [site.ctx.attribute("time_axis", 0)])


def _padded(site: Site) -> list[Place]:
    pads = _integers(site.listed("pads")) or ()
    axes = _integers(site.listed("axes")) or range(len(pads) // 2)
    half = len(pads) // 2
    return of_data(site, [axis for at, axis in enumerate(axes) if at < half and (pads[at] or pads[at + half])])


_ONNX: Mapping[str, Over] = {
    **dict.fromkeys(
        kinds.names("ArgMax ArgMin GatherElements Scatter ScatterElements Split SplitToSequence"), _axis(0)
    ),
    **dict.fromkeys(kinds.names("LpNormalization SwiGLU TopK"), _axis(-1)),
    "Concat": _axis(1),
    "TensorScatter": _axis(-2),
    **dict.fromkeys(kinds.names("Hardmax LogSoftmax Softmax"), _softmax),
    **dict.fromkeys(kinds.names("LayerNormalization RMSNormalization"), _to_the_end(-1)),
    **dict.fromkeys(kinds.names("Compress Unique"), _axis_or_all),
    "CenterCropPad": _axes_or_all(),
    "MeanVarianceNormalization": _axes_or_all((0, 2, 3)),
    **dict.fromkeys(kinds.REDUCES, _reduce),
    **dict.fromkeys(kinds.names("CumProd CumSum"), _cumulated),
    **dict.fromkeys(kinds.names("CausalConvWithState GroupNormalization LRN STFT"), to_the_last(1)),
    **dict.fromkeys(kinds.CONVOLUTIONS, to_the_last(1)),
    **dict.fromkeys(kinds.SPATIAL, to_the_last(2)),
    **dict.fromkeys(kinds.names("AffineGrid Col2Im"), on_axes(1, 2)),
    **dict.fromkeys(kinds.names("Det Trilu"), on_axes(-1, -2)),
    "EyeLike": on_axes(0, 1),
    "Multinomial": on_axes(1),
    "TfIdfVectorizer": on_axes(-1),
    **dict.fromkeys(kinds.names("DynamicQuantizeLinear ImageDecoder NonZero StringNormalizer"), of_all),
    **dict.fromkeys(kinds.names("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"), of_all),
    **dict.fromkeys(kinds.names("Attention LinearAttention"), attends),
    **dict.fromkeys(kinds.names("MatMul MatMulInteger"), multiplies),
    **dict.fromkeys(kinds.RECURRENT, _recurrent),
    "BatchNormalization": _batch_normalization,
    "DFT": _spectrum,
    "Einsum": _sums_letters,
    "Gather": _indexed,
    "Gemm": _gemm,
    "NonMaxSuppression": lambda site: [(0, 1), (0, 2), (1, 1), (1, 2)],
    "Pad": _padded,
    "QLinearMatMul": lambda site: [(0, len(site.dims(0) or ()) - 1), (3, max(len(site.dims(3) or ()) - 2, 0))],
    "ReverseSequence": _reversed,
    "RoiAlign": _roi_align,
    "Scan": _scan,
    "ScatterND": positions,
    "Slice": _slice,
    "Tile": _tile,
}
_ONNXRUNTIME: Mapping[str, Over] = {
    "Attention": on_axes(1, 2),
    "DynamicQuantizeLSTM": of_all,
    "DynamicQuantizeMatMul": of_all,
    "GroupQueryAttention": attends,
    "MultiHeadAttention": attends,
}
OVER: Mapping[tuple[str, str], Over] = {
    **{("", name): over for name, over in _ONNX.items()},
    **{("com.microsoft", name): over for name, over in _ONNXRUNTIME.items()},
}
# Operators of which the rules of `reshape` say what they need to be apart are among them, and those with bodies.
APART = (
    kinds.BY_ELEMENT
    | kinds.MOVED
    | kinds.MADE
    | kinds.SIZES
    | kinds.names(
        "BitCast DequantizeLinear Dropout If Loop Optional OptionalGetElement OptionalHasElement QuantizeLinear"
    )
    | kinds.names("RotaryEmbedding SequenceLength SequenceMap StringSplit")
) - _ONNX.keys()
# Inputs that say more than a shape: what is computed depends on the numbers.
_MEASURED: Mapping[str, Collection[int]] = {
    **dict.fromkeys(("BlackmanWindow", "DFT", "HammingWindow", "HannWindow", "MelWeightMatrix"), range(3)),
    **dict.fromkeys(("Range", "STFT", "TopK"), range(4)),
}
_LAYOUT = kinds.LAYOUT | {"Cast", "Concat"}
OF_NUMBERS = kinds.BASIC | kinds.DIVIDED | kinds.BITS & kinds.BROADCASTS | {"Max", "Min"}
FLOW = SizeFlow(
    shapes=kinds.SIZES,
    saying={
        kind: tuple(position for position in says if position not in _MEASURED.get(kind, ()))
        for kind, says in kinds.SHAPE_INPUTS.items()
    },
    layout=_LAYOUT,
    of_sizes=_LAYOUT | OF_NUMBERS | {"Gather", "ReduceProd", "Slice", "Split"},
    picking={
        "Gather": "axis",
        "GatherElements": "axis",
        "GatherND": None,
        "ScatterElements": "axis",
        "ScatterND": None,
    },
    finding={"ArgMax": (0, 0), "ArgMin": (0, 0), "TopK": (1, -1)},
)
