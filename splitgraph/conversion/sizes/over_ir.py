"""Says along which axes a layer of OpenVINO mixes places, as `over.py` does for onnx's operators.

Each layer is listed here or in `APART_LAYERS`. Nothing is known of any other layer: those that take boxes of images,
decode sequences, or read bags of embeddings say in the elements of an input which item they take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from splitgraph.conversion.sizes.follow import Over, Site, SizeFlow
from splitgraph.conversion.sizes.over import (
    OF_NUMBERS,
    OVER,
    Place,
    attends,
    is_whole,
    multiplies,
    of_all,
    of_data,
    on_axes,
    positions,
    to_the_last,
)
from splitgraph.inference.rules.openvino.aliases import KEEP_TYPE
from splitgraph.inference.rules.openvino.attributes import flag, number, numbers
from splitgraph.inference.rules.openvino.control_flow import ports_of
from splitgraph.model.schemas import kinds
from splitgraph.model.schemas.kinds import (
    LAYER_OPERATORS,
    LAYER_REDUCTIONS,
    LAYER_SHAPE_INPUTS,
    layers_like,
    names,
)
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


def _iterations(site: Site) -> Iterable[Place]:
    """Return the axes that are sliced for iterations, if these carry values on or take several slices at once."""
    slices = [entry for entry in ports_of(site.ctx, "port_map") if entry.tag == "input" and entry.axis is not None]
    carries = bool(ports_of(site.ctx, "back_edges"))
    for entry in slices:
        if entry.external is not None and entry.axis is not None and (carries or entry.part_size != 1):
            yield entry.external, entry.axis


# Layers that do as the operator of onnx of their name.
_AS_IN_ONNX = names("Col2Im Einsum GridSample Multinomial NonMaxSuppression NonZero")
_FROM_CHANNELS = names(
    "BinaryConvolution Convolution ConvolutionBackpropData DeformableConvolution ExtractImagePatches GroupConvolution "
    "GroupConvolutionBackpropData GroupNormalization I420toBGR I420toRGB ISTFT NV12toBGR NV12toRGB RegionYolo "
    "ReorgYolo STFT"
)
_LAYERS: Mapping[str, Over] = {
    **{name: OVER["", name] for name in _AS_IN_ONNX},
    **dict.fromkeys(names("Concat GatherElements"), _along(0)),
    **dict.fromkeys(names("LogSoftmax ShuffleChannels SoftMax"), _along(1)),
    "TopK": _along(-1),
    **dict.fromkeys(names("CumSum LRN NormalizeL2 RDFT Reverse Split Unique VariadicSplit"), _said_by(1)),
    **dict.fromkeys(LAYER_REDUCTIONS, _said_by(1)),
    "Roll": _said_by(2),
    "ScatterElementsUpdate": _said_by(3),
    "SliceScatter": _said_by(5),
    **dict.fromkeys(names("DFT IDFT IRDFT"), lambda site: [*_said_by(1)(site), *of_data(site, [-1])]),
    "Gather": _indexed(2),
    "ScatterUpdate": _indexed(3),
    **dict.fromkeys(_FROM_CHANNELS, to_the_last(1)),
    **dict.fromkeys(names("AdaptiveAvgPool AdaptiveMaxPool AvgPool Interpolate MaxPool"), to_the_last(2)),
    **dict.fromkeys(names("AUGRUCell GRN GRUCell LSTMCell RNNCell"), on_axes(1)),
    **dict.fromkeys(names("AUGRUSequence GRUSequence LSTMSequence RNNSequence"), on_axes(1, 2)),
    "Inverse": on_axes(-1, -2),
    **dict.fromkeys(names("Loop TensorIterator"), _iterations),
    "Bucketize": lambda site: [(1, 0)],
    # Each tuple says one place.
    "GatherND": lambda site: [(1, max(len(site.dims(1) or ()) - 1, 0))],
    "GatherTree": lambda site: [(position, axis) for position in (0, 1) for axis in (0, 2)],
    "MVN": _mean_variance,
    "MatMul": _matmul,
    "Pad": _pad,
    "ReverseSequence": lambda site: of_data(site, [number(site.ctx, "seq_axis", 1)]),
    "ScaledDotProductAttention": attends,
    "ScatterNDUpdate": positions,
    "SearchSorted": lambda site: [(0, max(len(site.dims(0) or ()) - 1, 0))],
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "Tile": _tile,
}
OVER_LAYERS: Mapping[tuple[str, str], Over] = {(DOMAIN, name): over for name, over in _LAYERS.items()}
# Layers of which the rules of `reshape` say what they need to be apart are among them, and those with bodies.
_MOVING = kinds.LAYOUT | names(
    "Assign Broadcast Clamp Convert ConvertPromoteTypes DepthToSpace FakeQuantize If IsFinite NotEqual OneHot "
    "RandomUniform Range ReadValue ShapeOf SpaceToDepth SquaredDifference"
)
APART_LAYERS = frozenset({*_MOVING, *LAYER_OPERATORS, *KEEP_TYPE.split()} - _LAYERS.keys())

_LAYOUT = kinds.LAYOUT | names("Broadcast Concat Convert ConvertLike")
# What these compute depends on the numbers that say their shapes.
_MEASURED = names(
    "DFT Eye IDFT IRDFT ISTFT Multinomial NonMaxSuppression PriorBox PriorBoxClustered RDFT Range STFT TopK"
)
FLOW_OF_LAYERS = SizeFlow(
    shapes=frozenset(("ShapeOf",)),
    saying={kind: says for kind, says in {**LAYER_SHAPE_INPUTS, "Broadcast": (1, 2)}.items() if kind not in _MEASURED},
    layout=_LAYOUT,
    of_sizes=_LAYOUT
    | layers_like(OF_NUMBERS)
    | {"Gather", "ReduceProd", "Slice", "Split", "StridedSlice", "VariadicSplit"},
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
