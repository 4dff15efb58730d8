"""What the versions with lengths as an input share: reading them, writing them as a constant or a computed tensor."""

from __future__ import annotations

from splitgraph.canonical import (
    CanonicalSplit,
    SplitSite,
    dimension_on,
    resolve_axis,
    split_by_lengths,
    split_contents,
    split_equally,
)
from splitgraph.contents import vector
from splitgraph.variants.lowering import LowerRequest, computed_lengths, copy_node


def count_matches(site: SplitSite, count: int) -> bool:
    """Report when the number of lengths is not the number of outputs; no shape is needed to know."""
    if count == len(site.outputs):
        return True
    site.find("SG202", f"{count} length(s) for {len(site.outputs)} output(s); one is required for each")
    return False


def finish(site: SplitSite, split: CanonicalSplit | None) -> CanonicalSplit | None:
    """Follow the contents of the data into the parts, and give the split back."""
    if split is not None:
        split_contents(site, split, site.contents(0))
    return split


def vector_size(site: SplitSite, index: int) -> int | None:
    """How many elements a 1-D lengths input has: as known, else as many as there are outputs; None when it is not 1-D
    (reported).
    """
    lengths = site.input(index)
    contents = site.contents(index)
    shape = lengths.shape if contents is None else contents.shape
    if lengths.kind not in ("tensor", "unknown"):
        site.find("SG211", f"the lengths must be a tensor, not a value of kind {lengths.kind}")
        return None
    if shape is None:
        return len(site.outputs)
    if len(shape) != 1:
        site.find("SG211", f"the lengths must be a 1-D tensor, not of rank {len(shape)}")
        return None
    size = shape[0]
    if isinstance(size, int):
        return size
    count = len(site.outputs)
    message = f"{size} lengths for {count} output(s); one is required for each"
    if size is not None and not site.require(size, "==", count, code="SG202", message=message):
        return None
    return count


def lift_lengths_input(site: SplitSite) -> CanonicalSplit | None:
    """Read a split whose lengths are input 1, an int64 1-D tensor."""
    data, lengths = site.input(0), site.input(1)
    typed = lengths.dtype in (None, "int32", "int64")
    if lengths.dtype == "int32":
        site.tolerate("SG211", "the lengths must be int64, not int32", "OpenVINO and the reference evaluator")
    elif not typed:
        site.find("SG211", f"the lengths must be int64, not {lengths.dtype}")
    size = vector_size(site, 1)
    counted = size is not None and count_matches(site, size)
    valid, axis = resolve_axis(site, site.attribute("axis", 0), data)
    if not (typed and counted and valid):
        return None
    contents = site.contents(1)
    given = [None] * len(site.outputs) if contents is None else contents.dims
    split = split_by_lengths(site, axis, dimension_on(data, axis), given)
    if split is not None and split.lengths is not None and (contents is None or None in contents.items):
        site.refine_input(1, vector(split.lengths))
    return finish(site, split)


def lift_equal_parts(site: SplitSite) -> CanonicalSplit | None:
    """Read a split into as many equal parts as there are outputs."""
    valid, axis = resolve_axis(site, site.attribute("axis", 0), site.input(0))
    if not valid:
        return None
    return finish(site, split_equally(site, axis, dimension_on(site.input(0), axis), len(site.outputs)))


def lower_lengths_input(request: LowerRequest) -> None:
    """Write a node with the lengths as input 1."""
    request.builder.main(copy_node(request, [request.node.input[0], computed_lengths(request)]))
