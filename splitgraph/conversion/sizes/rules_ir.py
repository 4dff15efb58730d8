"""The rules of OpenVINO's layers for new sizes: those of ONNX, with attributes and inputs where a layer has them.

Nodes are those of the mirror of an IR, whose attributes are texts.
"""

from __future__ import annotations

from collections.abc import Mapping

from splitgraph.conversion.sizes.alike import ask_about_weights
from splitgraph.conversion.sizes.follow import Operators, Rule, Site
from splitgraph.conversion.sizes.over_ir import APART_LAYERS, FLOW_OF_LAYERS, OVER_LAYERS, axes_of_entries, has_bit
from splitgraph.conversion.sizes.readings import (
    TO_THE_END,
    read_count,
    read_depth,
    read_indices,
    read_lengths,
    read_lengths_of_sequences,
    read_limit,
    read_output,
    read_sides,
    read_sizes,
    read_slice,
)
from splitgraph.conversion.sizes.rules import (
    fit_gathered,
    fit_product,
    fit_state,
    fit_tuples,
    fit_written,
    read_bounds,
    read_shape,
    squeezed_axes,
)
from splitgraph.conversion.sizes.values import VALUES_OF_LAYERS, read_larger_or_values, read_values
from splitgraph.conversion.sizes.windows import POOLINGS, read_window
from splitgraph.dim import Dim, DimLike
from splitgraph.inference.rules.openvino.attributes import flag, number, numbers, operator_set, text
from splitgraph.inference.rules.openvino.control_flow import passed_to_body, ports_of
from splitgraph.model.value_type import vector
from splitgraph.splits.openvino_split_1 import DOMAIN


def _reshape(site: Site) -> None:
    read_shape(site, zeros_are_sizes=not flag(site.ctx, "special_zero", False))


def _broadcast(site: Site) -> None:
    """A target of the data's own size is the data's size at any size."""
    dims, target, mode = site.dims(0), site.numbers(1), text(site.ctx, "mode", "numpy")
    if dims is None or target is None:
        return
    first = len(target) - len(dims)
    axes = site.numbers(2) if mode == "explicit" else tuple(range(first, len(target)))
    data = dict(zip(axes or (), dims, strict=False))
    read: list[DimLike] = list(target)
    for entry, size in enumerate(target):
        dim = data.get(entry, 1)
        if site.wanted.changes(dim) and size == site.wanted.before(dim):
            read[entry] = dim
        elif dim == 1:
            read[entry] = site.either(1, entry, site.alike(size))
    site.restate_numbers(1, read)


def _tile(site: Site) -> None:
    dims = site.dims(0)
    read_sizes(site, 1, () if dims is None else [axis for axis, dim in enumerate(dims) if dim == 1])


def _gather(site: Site) -> None:
    along = site.numbers(2)
    if along and not number(site.ctx, "batch_dims", 0):
        read_indices(site, along[0])


def _top_k(site: Site) -> None:
    dim = site.changing_dim(number(site.ctx, "axis", -1))
    if dim is not None:
        read_count(site, dim)


def _reverse_sequence(site: Site) -> None:
    read_lengths_of_sequences(site, number(site.ctx, "seq_axis", 1))


def _recurrent(site: Site) -> None:
    read_lengths_of_sequences(site, 1, _SAYING[site.ctx.node.op_type])


def _slice(site: Site) -> None:
    read_bounds(site, (1, 2, 3, 4))


def _strided_slice(site: Site) -> None:
    """An end at the end of the data is the end of any data."""
    dims, begin, end = site.dims(0), site.numbers(1), site.numbers(2)
    steps = site.numbers(3) if site.ctx.has_input(3) else (1,) * len(begin or ())
    if dims is None or begin is None or end is None or steps is None:
        return
    first, last = list[DimLike](begin), list[DimLike](end)
    for entry, axis in axes_of_entries(site, len(begin), len(dims)):
        if entry >= min(len(end), len(steps)):
            return
        masked = has_bit(site, "begin_mask", entry), has_bit(site, "end_mask", entry)
        if steps[entry] < 0 and True in masked:
            continue
        written = (0 if masked[0] else begin[entry], TO_THE_END if masked[1] else end[entry], steps[entry])
        start, stop = read_slice(site, dims[axis], written, entry, len(end))
        first[entry], last[entry] = begin[entry] if masked[0] else start, end[entry] if masked[1] else stop
    site.restate_if_other(1, begin, first)
    site.restate_if_other(2, end, last)


def _variadic_split(site: Site) -> None:
    """Parts of one length stay equal parts; -1 is what the others leave."""
    axis, lengths = site.numbers(1), site.numbers(2)
    dim = site.changing_dim(axis[0]) if axis else None
    if dim is not None and lengths is not None and len(lengths) > 1:
        read_lengths(site, 2, lengths, dim)


def _interpolate(site: Site) -> None:
    version = operator_set(site.ctx)
    position = 3 if version < 11 else 2
    if version < 4:
        read_sides(site, 1, numbers(site.ctx, "axes"))
    elif text(site.ctx, "shape_calculation_mode") == "sizes" and not site.ctx.has_input(position):
        read_sides(site, 1, None)
    elif text(site.ctx, "shape_calculation_mode") == "sizes":
        axes = site.numbers(position)
        if axes is not None:
            read_sides(site, 1, axes)


def _matmul(site: Site) -> None:
    fit_product(site, (flag(site.ctx, "transpose_a", False), flag(site.ctx, "transpose_b", False)))


def _gather_elements(site: Site) -> None:
    fit_gathered(site, number(site.ctx, "axis", 0))


def _gather_nd(site: Site) -> None:
    fit_tuples(site, number(site.ctx, "batch_dims", 0))


def _scatter_elements(site: Site) -> None:
    axis = site.numbers(3)
    if axis:
        fit_gathered(site, axis[0])


def _squeeze(site: Site) -> None:
    """Without axes, or with none of them, those of 1 are removed."""
    axes = squeezed_axes(site) if not site.ctx.has_input(1) or site.numbers(1) == () else ()
    if axes:
        site.restate(1, vector(axes))


def _assign(site: Site) -> None:
    """A variable keeps its size from one run to the next."""
    changing = [dim for dim in site.dims(0) or () if isinstance(dim, Dim) and site.wanted.changes(dim)]
    if changing:
        site.ctx.find("SG302", f"the variable has a fixed shape, and gets one with {changing[0]}")


def _sliced(site: Site) -> None:
    """Iterations over slices go from the first to the last one, which is counted from the end."""
    for entry in ports_of(site.ctx, "port_map"):
        if entry.tag != "input" or entry.external is None or entry.axis is None or entry.axis < 0:
            continue
        dims = site.dims(entry.external) or ()
        last = entry.end if entry.stride > 0 else entry.start
        if entry.axis < len(dims) and site.wanted.changes(dims[entry.axis]) and last >= 0:
            site.ctx.find("SG302", f"the slices along axis {entry.axis} end at {last}, a number of the old size")


def _loop(site: Site) -> None:
    """A number of iterations that is a size may be that size."""
    read_sizes(site, 0)
    _iterations(site)


def _iterations(site: Site) -> None:
    """What an iteration carries on has the size that went in."""
    _sliced(site)
    given, elements, back, outside = passed_to_body(site.ctx)
    with site.ctx.quietly():
        body = site.ctx.walk_body("body", given, elements=elements)
    if body is not None:
        site.keep_body()
    for position, result in back.items():
        kind = given[position]
        if body is not None and kind is not None and position in outside:
            fit_state(site, outside[position], kind, body.types[result])


def _deconvolution(site: Site) -> None:
    """The size of the result may be given, whatever the size of the data."""
    sizes, dims = site.numbers(2) or (), (site.dims(0) or ())[2:]
    for axis, (size, dim) in enumerate(zip(sizes, dims, strict=False), 2):
        if site.wanted.changes(dim):
            site.block(f"its third input says {size} along axis {axis} whatever {dim} is; say it by pads instead")


RULES: Mapping[str, Rule] = {
    "Assign": _assign,
    "Broadcast": _broadcast,
    "Col2Im": lambda site: read_sizes(site, 1),
    **dict.fromkeys(("ConvolutionBackpropData", "GroupConvolutionBackpropData"), _deconvolution),
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ScatterNDUpdate": fit_written,
    "Identity": read_output,
    "Interpolate": _interpolate,
    "Loop": _loop,
    "MatMul": _matmul,
    **dict.fromkeys(POOLINGS, read_window),
    **dict.fromkeys(VALUES_OF_LAYERS, read_values),
    "Maximum": read_larger_or_values,
    "OneHot": read_depth,
    "Range": read_limit,
    "Reshape": _reshape,
    **dict.fromkeys(("GRUSequence", "LSTMSequence", "RNNSequence"), _recurrent),
    "ReverseSequence": _reverse_sequence,
    "ScatterElementsUpdate": _scatter_elements,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "TensorIterator": _iterations,
    "Tile": _tile,
    "TopK": _top_k,
    "VariadicSplit": _variadic_split,
}
# The input that says a size, by layer.
_SAYING = {
    "Broadcast": 1,
    "Col2Im": 1,
    "GRUSequence": 2,
    "Gather": 1,
    "Identity": 0,
    "Interpolate": 1,
    "LSTMSequence": 3,
    "Loop": 0,
    "OneHot": 1,
    "RNNSequence": 2,
    "Range": 1,
    "Reshape": 1,
    "ReverseSequence": 1,
    "Slice": 2,
    "StridedSlice": 2,
    "Tile": 1,
    "TopK": 1,
    "VariadicSplit": 2,
}
LAYERS = Operators(
    DOMAIN,
    {(DOMAIN, name): rule for name, rule in RULES.items()},
    _SAYING,
    OVER_LAYERS,
    APART_LAYERS,
    FLOW_OF_LAYERS,
    ask_about_weights,
    VALUES_OF_LAYERS,
)
