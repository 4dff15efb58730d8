"""Split-1 (opset 1): cut a tensor into parts along an axis. The lengths are an attribute or a floating-point input.

Inputs: input (T); split (T, 1-D, optional): the lengths, whole numbers in the floating-point type of the data.
Attributes: axis (the schema has no default; splitgraph reads 0); split (ints): the lengths. Without lengths, the parts
are equal. Outputs: one or more. T: float16, float32, float64.

No runtime in use today executes Split-1. Its floating-point lengths are the reason why Split-2 dropped the second
input.
"""

from __future__ import annotations

from splitgraph.dim import Dim
from splitgraph.splits.canonical import CanonicalSplit, SplitSite, dimension_on, resolve_axis, split_by_lengths
from splitgraph.splits.lowering import LowerRequest
from splitgraph.splits.shared import count_matches, finish, lift_attribute_split, lower_attribute_split, vector_size
from splitgraph.splits.variant import FLOAT_TYPES, Variant


def lift(site: SplitSite) -> CanonicalSplit | None:
    """Read a Split-1 node; a lengths input is a floating-point tensor of whole numbers."""
    if not site.has_input(1):
        return lift_attribute_split(site)
    if "split" in site.attribute_names():
        site.find("SG208", "Split-1 has lengths both as an attribute and as an input; only one is allowed")
        return None
    data, lengths = site.input(0), site.input(1)
    if lengths.dtype is not None and data.dtype is not None and lengths.dtype != data.dtype:
        site.find("SG211", f"the lengths of Split-1 must have the data's type {data.dtype}, not {lengths.dtype}")
        return None
    size = vector_size(site, 1)
    valid, axis = resolve_axis(site, site.attribute("axis", 0), data)
    if size is None or not count_matches(site, size) or not valid:
        return None
    whole = _whole_numbers(site, len(site.outputs))
    return None if whole is None else finish(site, split_by_lengths(site, axis, dimension_on(data, axis), whole))


def _whole_numbers(site: SplitSite, count: int) -> list[int | Dim | None] | None:
    contents = site.contents(1)
    if contents is None:
        return [None] * count
    numbers: list[int | Dim | None] = []
    for item in contents.items:
        if isinstance(item, float) and not item.is_integer():
            site.find("SG211", f"the length {item} is not a whole number")
            return None
        numbers.append(int(item) if isinstance(item, (int, float)) else None)
    return numbers


def lower(request: LowerRequest) -> None:
    """Write a Split-1 node: like Split-2, with the axis always written, since this version has no default for it."""
    lower_attribute_split(request, axis_required=True, negative_axis=False)


VARIANT = Variant(
    op_type="Split",
    domain="",
    since_version=1,
    inputs=(1, 2),
    outputs=(1, None),
    attributes={"axis": "int", "split": "ints"},
    dtypes=FLOAT_TYPES,
    lift=lift,
    lower=lower,
)
