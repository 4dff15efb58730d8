"""Reads windows that are as large as the data that they pool: they take all of it at any size, or keep their size.

The window is an attribute, which holds numbers. So the pooling that takes everything at any size is written as a global
one, which onnx has and an IR has not: there, the window can only stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitgraph.conversion.sizes.follow import Rule, Site
from splitgraph.conversion.sizes.needs import Meaning, Stays
from splitgraph.dim import Dim, DimLike
from splitgraph.model.attributes import attribute_value
from splitgraph.model.onnx_proto import NodeProto

# The attributes of the window, and the poolings of onnx and of an IR that have them.
_KERNELS = ("kernel_shape", "kernel")
_PADS = ("pads", "pads_begin", "pads_end")
POOLINGS = ("AveragePool", "AvgPool", "LpPool", "MaxPool")
# The same poolings of everything, with the attributes that these have.
GLOBAL = {"AveragePool": "GlobalAveragePool", "LpPool": "GlobalLpPool", "MaxPool": "GlobalMaxPool"}
ATTRIBUTES_OF_GLOBAL = ("p",)
_STAYS = Stays("{}", "If it takes all of the data, make it a global pooling in the model first.")
_PART = Stays("{}", "If it is a part of the data, export the model with that size.")
# Smaller windows are common: each halves an image.
_LEAST_PART = 4
# Poolings that pad by themselves.
_SAME = ("SAME_UPPER", "SAME_LOWER", "same_upper", "same_lower")


def window_of(node: NodeProto) -> tuple[int, ...]:
    """Return the window of a pooling; nothing for any other node."""
    if node.op_type not in POOLINGS:
        return ()
    held = {each.name: attribute_value(each) for each in node.attribute}
    return next((_integers(held[name]) for name in _KERNELS if name in held), ())


def _integers(written: object) -> tuple[int, ...]:
    """Return the numbers of an attribute, which an IR has as a text."""
    text = written.decode() if isinstance(written, bytes) else written
    if isinstance(text, str):
        parts = [part.strip() for part in text.split(",")]
        return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()
    return tuple(text) if isinstance(text, Sequence) else ()


def read_window(site: Site) -> None:
    """Read the window of a pooling. One that is as large as a dimension that changes may follow it, or stay."""
    ctx, kernel, dims = site.ctx, window_of(site.ctx.node), (site.dims(0) or ())[2:]
    padding = _text(ctx.attribute("auto_pad", ""))
    if len(kernel) != len(dims) or padding in _SAME or any(any(_integers(ctx.attribute(name, ()))) for name in _PADS):
        return
    whole = [site.wanted.before(dim) == size for size, dim in zip(kernel, dims, strict=True)]
    can_follow = all(whole) and may_be_global(site.follower.operators.domain, ctx.node)
    changing = {
        entry: dim
        for entry, (size, dim) in enumerate(zip(kernel, dims, strict=True))
        if whole[entry] and isinstance(dim, Dim) and site.wanted.changes(dim) and size > 1
    }
    # Where one of them follows, all do.
    first = [entry for entry in changing if _follows(site, entry)][:1] if can_follow else []
    stays = Stays("{}") if can_follow else _STAYS
    for entry in first or changing:
        meanings = [Meaning(kernel[entry]), Meaning(changing[entry])]
        site.either(ctx.input_count, entry, meanings, is_value=not can_follow, stays=stays)
    if first and any(_follows(site, entry) is False for entry in changing):
        site.block("takes everything along one axis, and a window along another one")
    elif first:
        _take_everything(site, dims, kernel)
    for entry, (size, dim) in enumerate(zip(kernel, dims, strict=True)):
        strides = _integers(ctx.attribute("strides", ()))
        if entry not in changing and size >= _LEAST_PART and strides[entry : entry + 1] == (size,):
            _read_part(site, entry, size, dim)


def _read_part(site: Site, entry: int, size: int, dim: DimLike) -> None:
    """Windows side by side that part a dimension into two or three may do so at any size, as an adaptive pooling is
    exported. Such a window can only stay.
    """
    old = site.wanted.before(dim)
    if isinstance(dim, Dim) and site.wanted.changes(dim) and isinstance(old, int) and old in (2 * size, 3 * size):
        meanings = [Meaning(size), Meaning(dim // (old // size))]
        site.either(site.ctx.input_count, entry, meanings, is_value=True, stays=_PART)


def _follows(site: Site, entry: int) -> bool | None:
    """Return whether the user or the search has an entry follow; None if neither says so."""
    position = site.ctx.input_count
    decided, chosen = site.decided(position, entry), site.follower.choices.get((site.place(position), entry))
    return isinstance(decided, Dim) if decided is not None else None if chosen is None else chosen == 1


def may_be_global(domain: str, node: NodeProto) -> bool:
    """Return True for a pooling that can be written as a global one, which has no second output. domain: of its
    operators.
    """
    return domain == "" and node.op_type in GLOBAL and sum(map(bool, node.output)) == 1


def _take_everything(site: Site, dims: Sequence[DimLike], kernel: Sequence[int]) -> None:
    """Read the data as if it had the size of the window, of which one element is left."""
    ctx = site.ctx
    for dim in filter(site.wanted.changes, dims):
        site.computes_over(dim)
    kind = ctx.input(0).with_shape([*(site.dims(0) or ())[:2], *kernel])
    ctx.given[0], ctx.inputs[0] = ctx.walk.state.knowledge.of(kind), kind
    site.follower.seen.taking_all[ctx.walk.path, ctx.index] = True


def _text(written: object) -> str:
    return written.decode() if isinstance(written, bytes) else str(written)


RULES: Mapping[tuple[str, str], Rule] = {("", name): read_window for name in POOLINGS}
