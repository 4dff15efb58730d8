"""What the layers of OpenVINO say about sizes: the rules of ONNX, with attributes and inputs where a layer has them.

Nodes are those of the mirror of an IR, whose attributes are texts.
"""

from __future__ import annotations

from collections.abc import Mapping

from splitgraph.conversion.sizes.follow import Operators, Rule, Site
from splitgraph.conversion.sizes.readings import TO_THE_END
from splitgraph.conversion.sizes.rules import (
    fit_gathered,
    fit_product,
    read_bounds,
    read_lengths,
    read_shape,
    read_sides,
)
from splitgraph.dim import Dim, DimLike
from splitgraph.inference.rules.openvino.attributes import flag, number, numbers, operator_set, text
from splitgraph.inference.rules.openvino.control_flow import ports_of
from splitgraph.splits.openvino_split_1 import DOMAIN


def _reshape(site: Site) -> None:
    read_shape(site, zeros_are_sizes=not flag(site.ctx, "special_zero", False))


def _broadcast(site: Site) -> None:
    """A target of the data's own size is the data's size at any size."""
    dims, target, mode = site.dims(0), site.numbers(1), text(site.ctx, "mode", "numpy")
    if dims is None or target is None:
        return
    first = len(target) - len(dims)
    entries = site.numbers(2) if mode == "explicit" else tuple(range(first, len(target)))
    read: list[DimLike] = list(target)
    for dim, entry in zip(dims, entries or (), strict=False):
        if 0 <= entry < len(read) and site.wanted.moves(dim) and read[entry] == site.wanted.before(dim):
            read[entry] = dim
    site.restate_if_other(1, target, read)


def _slice(site: Site) -> None:
    read_bounds(site, (1, 2, 3, 4))


def _strided_slice(site: Site) -> None:
    """An end at the end of the data is the end of any data."""
    dims, begin, end = site.dims(0), site.numbers(1), site.numbers(2)
    steps = site.numbers(3) if site.ctx.has_input(3) else (1,) * len(begin or ())
    if dims is None or begin is None or end is None or steps is None:
        return
    first, last = list(begin), list(end)
    for entry, axis in _axes_of_entries(site, len(begin), len(dims)):
        if entry >= min(len(end), len(steps)):
            return
        masked = _has(site, "begin_mask", entry), _has(site, "end_mask", entry)
        if steps[entry] < 0 and True in masked:
            continue
        written = (0 if masked[0] else begin[entry], TO_THE_END if masked[1] else end[entry], steps[entry])
        start, stop = site.bounds(dims[axis], written, entry, len(end))
        first[entry], last[entry] = begin[entry] if masked[0] else start, end[entry] if masked[1] else stop
    site.restate_if_other(1, begin, first)
    site.restate_if_other(2, end, last)


def _axes_of_entries(site: Site, count: int, rank: int) -> list[tuple[int, int]]:
    """Return each entry of a StridedSlice that cuts an axis, and the axis."""
    found, axis = [], 0
    for entry in range(count):
        if _has(site, "ellipsis_mask", entry):
            taken = sum(not _has(site, "new_axis_mask", later) for later in range(entry + 1, count))
            axis += max(rank - axis - taken, 0)
        elif not _has(site, "new_axis_mask", entry):
            if axis < rank and not _has(site, "shrink_axis_mask", entry):
                found.append((entry, axis))
            axis += 1
    return found


def _has(site: Site, mask: str, entry: int) -> bool:
    bits = numbers(site.ctx, mask) or ()
    return entry < len(bits) and bits[entry] != 0


def _variadic_split(site: Site) -> None:
    """Parts of one length stay equal parts; -1 is what the others leave."""
    axis, lengths = site.numbers(1), site.numbers(2)
    if not axis or lengths is None or len(lengths) < 2:
        return
    dim = site.moving_dim(axis[0])
    old = None if dim is None else site.wanted.before(dim)
    if dim is None or not isinstance(old, int):
        return
    rest = old - sum(length for length in lengths if length != -1)
    if -1 not in lengths:
        read_lengths(site, 2, lengths, dim)
    elif {rest} == {length for length in lengths if length != -1}:
        site.doubt(2, lengths.index(-1), f"one of {len(lengths)} equal parts of {dim}, or what the others leave")


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


def _assign(site: Site) -> None:
    """A variable keeps its size from one run to the next."""
    moving = [dim for dim in site.dims(0) or () if isinstance(dim, Dim) and site.wanted.moves(dim)]
    if moving:
        site.ctx.find("SG302", f"the variable has a fixed shape, and gets one with {moving[0]}")


def _sliced(site: Site) -> None:
    """Iterations over slices go from the first to the last one, which is counted from the end."""
    for entry in ports_of(site.ctx, "port_map"):
        if entry.tag != "input" or entry.external is None or entry.axis is None or entry.axis < 0:
            continue
        dims = site.dims(entry.external) or ()
        last = entry.end if entry.stride > 0 else entry.start
        if entry.axis < len(dims) and site.wanted.moves(dims[entry.axis]) and last >= 0:
            site.ctx.find("SG302", f"the slices along axis {entry.axis} end at {last}, a number of the old size")


def _loop(site: Site) -> None:
    """A number of iterations that is a size may be that size."""
    _sliced(site)
    count = site.numbers(0)
    if not count:
        return
    for position in range(2, site.ctx.input_count):
        for dim in site.dims(position) or ():
            if site.wanted.moves(dim) and site.wanted.before(dim) == count[0]:
                site.doubt(0, 0, f"{count[0]} iterations whatever the sizes, or {dim}")
                return


RULES: Mapping[str, Rule] = {
    "Assign": _assign,
    "Broadcast": _broadcast,
    "GatherElements": _gather_elements,
    "Interpolate": _interpolate,
    "Loop": _loop,
    "MatMul": _matmul,
    "Reshape": _reshape,
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "TensorIterator": _sliced,
    "VariadicSplit": _variadic_split,
}
# The input that says a size, by layer.
_SAYING = {
    "Broadcast": 1,
    "Interpolate": 1,
    "Loop": 0,
    "Range": 1,
    "Reshape": 1,
    "Slice": 2,
    "StridedSlice": 2,
    "Tile": 1,
    "VariadicSplit": 2,
}
LAYERS = Operators(DOMAIN, {(DOMAIN, name): rule for name, rule in RULES.items()}, _SAYING)
