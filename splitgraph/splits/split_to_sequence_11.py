"""SplitToSequence-11 (opsets 11 to 23): cut a tensor into a sequence of parts.

Inputs: input (T); split (int32 or int64, optional). A scalar `split` is the size of each chunk, the last one smaller. A
1-D `split` holds the lengths, each >= 0, which sum to the dimension. Without `split`, the chunks have length 1.
Attributes: axis (default 0); keepdims (default 1): with 0 and without `split`, the chunks lose the axis. If `split` is
given, keepdims is ignored, though not by every runtime. Output: one sequence. T: every type but bfloat16 and younger
types.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike
from splitgraph.model.value_type import MAX_ITEMS, MAX_UNKNOWN, SequenceInfo, ValueType, sequence, vector
from splitgraph.splits.canonical import (
    CanonicalSplit,
    SplitSite,
    dimension_on,
    resolve_axis,
    split_by_lengths,
    split_by_size,
)
from splitgraph.splits.lowering import LowerRequest, NotRepresentable
from splitgraph.splits.variant import ALL_TYPES, Variant


def lift(site: SplitSite) -> CanonicalSplit | None:
    """Read a SplitToSequence node."""
    data = site.input(0)
    valid, axis = resolve_axis(site, site.attribute("axis", 0), data)
    if not _lengths_are_integers(site) or not valid:
        return None
    total = dimension_on(data, axis)
    if not site.has_input(1):
        keepdims = site.attribute("keepdims", 1)
        # In a function whose call gives no value, not even the rank of the parts is known.
        return split_by_size(site, axis, total, 1, squeezed=not keepdims) if isinstance(keepdims, int) else None
    contents = site.contents(1)
    shape = site.input(1).shape if contents is None else contents.shape
    if shape is None:
        return CanonicalSplit(axis, total, None, "lengths", None)
    if len(shape) > 1:
        site.find("SG211", f"split must be a scalar or a 1-D tensor, not of rank {len(shape)}")
        return None
    if len(shape) == 0:
        if site.attribute("keepdims", 1) != 1:
            text = "keepdims=0 is ignored with a chunk size, but onnxruntime drops the axis of chunks of length 1"
            site.find("SG219", text, severity="warning")
        size = None if contents is None else contents.dims[0]
        return split_by_size(site, axis, total, size)
    return _lift_lengths(site, axis, total, shape[0])


def _lift_lengths(
    site: SplitSite, axis: int | None, total: DimLike | None, count: DimLike | None
) -> CanonicalSplit | None:
    contents = site.contents(1)
    if contents is not None:
        given = list(contents.dims)
    elif isinstance(count, int) and count <= MAX_UNKNOWN:
        given = [None] * count
    else:
        return CanonicalSplit(axis, total, None, "lengths", count)
    split = split_by_lengths(site, axis, total, given)
    if split is not None and split.lengths is not None and None in given:
        site.refine_input(1, vector(split.lengths))
    return split


def _lengths_are_integers(site: SplitSite) -> bool:
    if not site.has_input(1):
        return True
    lengths = site.input(1)
    if lengths.kind not in ("tensor", "unknown") or lengths.dtype not in (None, "int32", "int64"):
        site.find("SG211", f"split must be a tensor of int32 or int64, not {lengths}")
        return False
    return True


def sequence_type(site: SplitSite, split: CanonicalSplit | None) -> Sequence[ValueType]:
    """Return the type of the sequence: what all parts have in common; each part's own type is kept beside it."""
    data = site.input(0)
    if data.kind != "tensor":
        return [ValueType("sequence")]
    if split is None:
        return [sequence(data.dtype, None)]
    elements = None
    if split.lengths is not None and len(split.lengths) <= MAX_ITEMS:
        # One object for each length: parts are many, and most are alike.
        types = {length: split.part_type(data, index) for index, length in enumerate(split.lengths)}
        elements = tuple(types[length] for length in split.lengths)
    site.set_sequence(0, SequenceInfo(split.count, elements, split.axis, split.total, split.squeezed, split.size))
    return [sequence(data.dtype, split.element_type(data).shape)]


def lower(request: LowerRequest) -> None:
    """A sequence stays a sequence: there is one form of it, unchanged but for its element types."""
    raise NotRepresentable("SG408", "a split into separate outputs is not written as a sequence")


VARIANT = Variant(
    op_type="SplitToSequence",
    domain="",
    since_version=11,
    inputs=(1, 2),
    outputs=(1, 1),
    attributes={"axis": "int", "keepdims": "int"},
    dtypes=ALL_TYPES,
    lift=lift,
    lower=lower,
    output_types=sequence_type,
)
