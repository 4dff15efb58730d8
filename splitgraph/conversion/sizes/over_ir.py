"""Says along which axes a layer of OpenVINO mixes places, as `over.py` does for onnx's operators.

Each layer is listed here or in `APART_LAYERS`. Nothing is known of any other layer: those that take boxes of images,
decode sequences, or read bags of embeddings say in the elements of an input which item they take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from splitgraph.conversion.sizes.follow import Over, Site, SizeFlow
from splitgraph.conversion.sizes.over import (
    Place,
    attends,
    is_whole,
    multiplies,
    of_all,
    of_data,
    on_axes,
    positions,
    sums_letters,
    to_the_last,
)
from splitgraph.inference.rules.openvino.aliases import KEEP_TYPE
from splitgraph.inference.rules.openvino.attributes import flag, number, numbers
from splitgraph.inference.rules.openvino.control_flow import ports_of
from splitgraph.model.schemas.kinds import LAYER_OPERATORS, LAYER_REDUCTIONS, LAYER_SHAPE_INPUTS
from splitgraph.splits.openvino_split_1 import DOMAIN


def _along(default: int) -> Over:
    """Return a function for a layer that mixes places along the axis of an attribute."""
    return lambda site: of_data(site, [number(site.ctx, "axis", default)])


def _said_by(position: int) -> Over:
    """Return a function for a layer whose axes are an input; if that is not constant, the layer mixes all axes."""

    def over(site: Site) -> Iterable[Place]:
        axes = site.numbers(position) if site.ctx.has_input(position) else None
        return of_all(site) if axes is None else of_data(site, axes)

    return over


def _indexed(position: int) -> Over:
    """Return a function for a layer that takes or writes elements by indices along an axis, if these are constant."""
    along = _said_by(position)
    return lambda site: along(site) if site.numbers(1) is not None else ()


def _matmul(site: Site) -> Iterable[Place]:
    return multiplies(site, flag(site.ctx, "transpose_a", False), flag(site.ctx, "transpose_b", False))


def _slice(site: Site) -> Iterable[Place]:
    starts, stops, steps = (site.items(position) for position in (1, 2, 3))
    axes = site.numbers(4) if site.ctx.has_input(4) else tuple(range(len(starts or ())))
    if starts is None or stops is None or steps is None or axes is None:
        return of_all(site)
    dims = site.dims(0) or ()
    cuts = zip(axes, starts, stops, steps, strict=False)
    return of_data(site, [axis for axis, *cut in cuts if not is_whole(dims, axis, *cut)])


def _strided_slice(site: Site) -> Iterable[Place]:
    dims, begin, end = site.dims(0) or (), site.items(1), site.items(2)
    steps = site.items(3) if site.ctx.has_input(3) else (1,) * len(begin or ())
    if begin is None or end is None or steps is None:
        return of_all(site)
    parts = []
    for entry, axis in axes_of_entries(site, len(begin), len(dims), are_shrunk=True):
        if entry >= min(len(end), len(steps)):
            return of_all(site)
        start = 0 if has_bit(site, "begin_mask", entry) else begin[entry]
        stop = dims[axis] if has_bit(site, "end_mask", entry) else end[entry]
        is_cut = has_bit(site, "shrink_axis_mask", entry) or not is_whole(dims, axis, start, stop, steps[entry])
        parts += [axis] if is_cut else []
    return of_data(site, parts)


def axes_of_entries(site: Site, count: int, rank: int, *, are_shrunk: bool = False) -> list[tuple[int, int]]:
    """Return each entry of a StridedSlice that cuts an axis, and the axis. are_shrunk: those of one element, too."""
    found, axis = [], 0
    for entry in range(count):
        if has_bit(site, "ellipsis_mask", entry):
            taken = sum(not has_bit(site, "new_axis_mask", later) for later in range(entry + 1, count))
            axis += max(rank - axis - taken, 0)
        elif not has_bit(site, "new_axis_mask", entry):
            if axis < rank and (are_shrunk or not has_bit(site, "shrink_axis_mask", entry)):
                found.append((entry, axis))
            axis += 1
    return found


def has_bit(site: Site, mask: str, entry: int) -> bool:
    """Return True for an entry of a StridedSlice that is in a mask."""
    bits = numbers(site.ctx, mask) or ()
    return entry < len(bits) and bits[entry] != 0


def _pad(site: Site) -> Iterable[Place]:
    begins, ends = site.numbers(1), site.numbers(2)
    if begins is None or ends is None:
        return of_all(site)
    return of_data(site, [axis for axis, pads in enumerate(zip(begins, ends, strict=False)) if any(pads)])


def _tile(site: Site) -> Iterable[Place]:
    repeats = site.numbers(1)
    first = len(site.dims(0) or ()) - len(repeats or ())
    return of_data(site, [first + at for at, count in enumerate(repeats or ()) if count != 1 and first + at >= 0])


def _mean_variance(site: Site) -> Iterable[Place]:
    """Return the axes of a mean and variance; version 1 has no input for them, and takes all but the first."""
    return _said_by(1)(site) if site.ctx.has_input(1) else to_the_last(1)(site)


def _unique(site: Site) -> Iterable[Place]:
    return _said_by(1)(site)


def _iterations(site: Site) -> Iterable[Place]:
    """Return the axes that are sliced for iterations, if these carry values on or take several slices at once."""
    slices = [entry for entry in ports_of(site.ctx, "port_map") if entry.tag == "input" and entry.axis is not None]
    carries = bool(ports_of(site.ctx, "back_edges"))
    for entry in slices:
        if entry.external is not None and entry.axis is not None and (carries or entry.part_size != 1):
            yield entry.external, entry.axis


_FROM_CHANNELS = """
    BinaryConvolution Convolution ConvolutionBackpropData DeformableConvolution ExtractImagePatches GroupConvolution
    GroupConvolutionBackpropData GroupNormalization I420toBGR I420toRGB ISTFT NV12toBGR NV12toRGB RegionYolo ReorgYolo
    STFT
"""
_FROM_SIDES = "AdaptiveAvgPool AdaptiveMaxPool AvgPool GridSample Interpolate MaxPool"
_LAYERS: Mapping[str, Over] = {
    "Bucketize": lambda site: [(1, 0)],
    "Col2Im": on_axes(1, 2),
    "Concat": _along(0),
    "CumSum": _said_by(1),
    "DFT": lambda site: [*_said_by(1)(site), *of_data(site, [-1])],
    "Einsum": sums_letters,
    "GRN": on_axes(1),
    "Gather": _indexed(2),
    "GatherElements": _along(0),
    # Each tuple says one place.
    "GatherND": lambda site: [(1, max(len(site.dims(1) or ()) - 1, 0))],
    "GatherTree": lambda site: [(position, axis) for position in (0, 1) for axis in (0, 2)],
    "IDFT": lambda site: [*_said_by(1)(site), *of_data(site, [-1])],
    "IRDFT": lambda site: [*_said_by(1)(site), *of_data(site, [-1])],
    "Inverse": on_axes(-1, -2),
    "LRN": _said_by(1),
    "LogSoftmax": _along(1),
    "Loop": _iterations,
    "MVN": _mean_variance,
    "MatMul": _matmul,
    "Multinomial": on_axes(1),
    "NonMaxSuppression": lambda site: [(0, 1), (0, 2), (1, 1), (1, 2)],
    "NonZero": of_all,
    "NormalizeL2": _said_by(1),
    "Pad": _pad,
    "RDFT": _said_by(1),
    "Reverse": _said_by(1),
    "ReverseSequence": lambda site: of_data(site, [number(site.ctx, "seq_axis", 1)]),
    "Roll": _said_by(2),
    "ScaledDotProductAttention": attends,
    "ScatterElementsUpdate": _said_by(3),
    "ScatterNDUpdate": positions,
    "ScatterUpdate": _indexed(3),
    "SearchSorted": lambda site: [(0, max(len(site.dims(0) or ()) - 1, 0))],
    "ShuffleChannels": _along(1),
    "Slice": _slice,
    "SliceScatter": _said_by(5),
    "SoftMax": _along(1),
    "Split": _said_by(1),
    "StridedSlice": _strided_slice,
    "TensorIterator": _iterations,
    "Tile": _tile,
    "TopK": _along(-1),
    "Unique": _unique,
    "VariadicSplit": _said_by(1),
    **dict.fromkeys(_FROM_CHANNELS.split(), to_the_last(1)),
    **dict.fromkeys(_FROM_SIDES.split(), to_the_last(2)),
    **dict.fromkeys((f"{kind}Cell" for kind in ("AUGRU", "GRU", "LSTM", "RNN")), on_axes(1)),
    **dict.fromkeys((f"{kind}Sequence" for kind in ("AUGRU", "GRU", "LSTM", "RNN")), on_axes(1, 2)),
    **dict.fromkeys(LAYER_REDUCTIONS, _said_by(1)),
}
OVER_LAYERS: Mapping[tuple[str, str], Over] = {(DOMAIN, name): over for name, over in _LAYERS.items()}
# Layers of which the rules of `reshape` say what they need to be apart are among them, and those with bodies.
_MOVING = """
    Assign Broadcast Clamp Convert ConvertPromoteTypes DepthToSpace FakeQuantize Identity If IsFinite NotEqual OneHot
    RandomUniform Range ReadValue Reshape ShapeOf SpaceToDepth SquaredDifference Squeeze Transpose Unsqueeze
"""
APART_LAYERS = frozenset({*_MOVING.split(), *LAYER_OPERATORS, *KEEP_TYPE.split()} - _LAYERS.keys())

_LAYOUT = frozenset(("Broadcast", "Concat", "Convert", "ConvertLike", "Identity", "Reshape", "Squeeze", "Tile")) | {
    "Transpose",
    "Unsqueeze",
}
# What these compute depends on the numbers that say their shapes.
_MEASURED = frozenset(
    ("DFT", "IDFT", "IRDFT", "ISTFT", "Multinomial", "NonMaxSuppression", "PriorBox", "PriorBoxClustered", "RDFT")
) | {"Eye", "Range", "STFT", "TopK"}
_ARITHMETIC = frozenset(("Add", "Divide", "FloorMod", "Maximum", "Minimum", "Mod", "Multiply", "Subtract"))
FLOW_OF_LAYERS = SizeFlow(
    shapes=frozenset(("ShapeOf",)),
    saying={kind: says for kind, says in {**LAYER_SHAPE_INPUTS, "Broadcast": (1, 2)}.items() if kind not in _MEASURED},
    layout=_LAYOUT,
    of_sizes=_LAYOUT | _ARITHMETIC | {"Gather", "ReduceProd", "Slice", "Split", "StridedSlice", "VariadicSplit"},
    picking={
        "Gather": 2,
        "GatherElements": "axis",
        "GatherND": None,
        "ScatterElementsUpdate": 3,
        "ScatterNDUpdate": None,
        "ScatterUpdate": 3,
    },
    finding={"TopK": (1, -1)},
)
