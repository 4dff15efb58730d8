"""Windows of a pooling that are as large as what they pool: a global pooling, or a window of this size at any size.

The window is an attribute, which holds numbers. So it can stay, and a model whose pooling is to take everything is made
so first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitgraph.conversion.sizes.follow import Rule, Site
from splitgraph.conversion.sizes.needs import Meaning, Stays
from splitgraph.dim import Dim
from splitgraph.model.attributes import attribute_value
from splitgraph.model.onnx_proto import NodeProto

# The attributes of the window, and the poolings of onnx and of an IR that have them.
_KERNELS = ("kernel_shape", "kernel")
_PADS = ("pads", "pads_begin", "pads_end")
POOLINGS = ("AveragePool", "AvgPool", "LpPool", "MaxPool")
_STAYS = Stays("{}", "If it takes all of the data, make it a global pooling in the model first.")
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
    """A window that takes all of a dimension that changes may take all of it at any size."""
    ctx, kernel, dims = site.ctx, window_of(site.ctx.node), (site.dims(0) or ())[2:]
    padding = _text(ctx.attribute("auto_pad", ""))
    if len(kernel) != len(dims) or padding in _SAME or any(any(_integers(ctx.attribute(name, ()))) for name in _PADS):
        return
    for entry, (size, dim) in enumerate(zip(kernel, dims, strict=True)):
        if isinstance(dim, Dim) and site.wanted.moves(dim) and size > 1 and size == site.wanted.before(dim):
            site.either(ctx.input_count, entry, [Meaning(size), Meaning(dim)], is_value=True, stays=_STAYS)


def _text(written: object) -> str:
    return written.decode() if isinstance(written, bytes) else str(written)


RULES: Mapping[tuple[str, str], Rule] = {("", name): read_window for name in POOLINGS}
