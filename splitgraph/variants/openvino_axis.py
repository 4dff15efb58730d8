"""What both OpenVINO splits share: the axis as an input, and which axis it must be where only run time knows it."""

from __future__ import annotations

from collections.abc import Callable

from splitgraph.canonical import SplitSite, resolve_axis
from splitgraph.dim import DimLike, Facts

INTEGER_TYPES = frozenset(
    {
        "int2",
        "int4",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint2",
        "uint4",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "u1",
        "u3",
        "u6",
    }
)


def read_axis(site: SplitSite, *, vector_allowed: bool) -> tuple[bool, int | None]:
    """Whether the axis input is valid, and the axis; None where only run time knows it."""
    axis = site.input(1)
    if axis.dtype is not None and axis.dtype not in INTEGER_TYPES:
        site.find("SG218", f"the axis must be an integer, not {axis.dtype}")
        return False, None
    contents = site.contents(1)
    shape = axis.shape if contents is None else contents.shape
    if shape is not None and len(shape) > (1 if vector_allowed else 0):
        site.find(
            "SG218",
            f"the axis must be a scalar{' or of shape [1]' if vector_allowed else ''}, not of rank {len(shape)}",
        )
        return False, None
    size = shape[0] if shape else None
    if size is not None and not site.require(
        size, "==", 1, code="SG218", message=f"the axis must be one number, not {size}"
    ):
        return False, None
    return resolve_axis(site, None if contents is None else contents.scalar, site.input(0))


def possible_axes(site: SplitSite, axis: int | None, fits: Callable[[Facts, DimLike], bool]) -> list[int] | None:
    """The axes that it can be: the one that is known, else those whose dimension the parts fit; None when the shape is
    unknown.

    An axis tensor of unknown size could still be no axis at all, so nothing is concluded from it.
    """
    if axis is not None:
        return [axis]
    data, given = site.input(0), site.input(1)
    if data.shape is None or given.shape is None or not all(isinstance(dim, int) for dim in given.shape):
        return None
    return [index for index, dim in enumerate(data.shape) if dim is None or fits(site.facts.child(), dim)]


def only_one(axes: list[int] | None) -> int | None:
    """The axis where it can be only one."""
    return axes[0] if axes is not None and len(axes) == 1 else None
