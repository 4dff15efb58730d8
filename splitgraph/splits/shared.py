"""What several split versions share.

- The lengths are an input (Split-1, Split-13, Split-18, VariadicSplit): read, and written as a constant or a computed
  tensor.
- The lengths are the attribute `split`, or the parts are equal (Split-1, Split-2, Split-11).
- The axis is an input (OpenVINO's Split and VariadicSplit): read, and found where only run time knows it.
"""

from __future__ import annotations

from collections.abc import Callable

from splitgraph.dim import DimLike, Facts
from splitgraph.model.value_type import vector
from splitgraph.splits.canonical import (
    CanonicalSplit,
    SplitSite,
    dimension_on,
    resolve_axis,
    split_by_lengths,
    split_contents,
    split_equally,
)
from splitgraph.splits.lowering import (
    LowerRequest,
    NotRepresentable,
    copy_node,
    lengths_reference,
    set_int,
    set_ints,
    written_axis,
)
from splitgraph.splits.slices import emit_slices

# Lengths as an input -------------------------------------------------------------------------------------------------


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
    """Return how many elements a 1-D lengths input has: as known, else as many as there are outputs; None when it is
    not 1-D (reported).
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


# Lengths as an attribute ---------------------------------------------------------------------------------------------


def lift_attribute_split(site: SplitSite) -> CanonicalSplit | None:
    """Read a split whose lengths, if given, are the attribute `split`."""
    lengths = site.attribute("split")
    if lengths is None:
        return lift_equal_parts(site)
    count_fits = not isinstance(lengths, tuple) or count_matches(site, len(lengths))
    valid, axis = resolve_axis(site, site.attribute("axis", 0), site.input(0))
    if not (valid and count_fits):
        return None
    given = lengths if isinstance(lengths, tuple) else [None] * len(site.outputs)
    return finish(site, split_by_lengths(site, axis, dimension_on(site.input(0), axis), given))


def lower_attribute_split(request: LowerRequest, *, axis_required: bool = False, negative_axis: bool = True) -> None:
    """Write the split for an opset below 13, where the lengths are the attribute `split`.

    Equal parts need no attribute. Lengths that are known only at run time cannot be an attribute: Slice nodes are
    written instead. axis_required: this version of Split has no default for `axis`. negative_axis: this version
    documents negative axes. If it does not, the axis is written as a number of at least 0 wherever the rank is known,
    although every runtime accepts a negative one.
    """
    lengths = request.split.static_lengths
    has_reference = lengths_reference(request) is not None
    is_equal = request.split.form == "equal" or request.divisible
    if lengths is None and is_equal and request.explicit_lengths:
        raise NotRepresentable(
            "SG408",
            "the lengths depend on a dynamic dimension, and below opset 13 they can only be an attribute",
            "Upgrade to opset 13 first, or keep equal parts.",
        )
    if lengths is None and not is_equal and not has_reference:
        emit_slices(request)
        return
    # In the body of a function, `split` may refer to an attribute of the function; then it is kept as it is.
    node = copy_node(request, request.node.input[:1], keep=("axis", "split") if has_reference else ("axis",))
    axis, given_axis = written_axis(request), request.axis_attribute
    must_change = given_axis is not None and not negative_axis and given_axis.i != axis
    if axis is not None and (axis_required or must_change):
        set_int(node, "axis", axis)
    if lengths is not None and not has_reference and (request.explicit_lengths or not is_equal):
        set_ints(node, "split", lengths)
    request.builder.main(node)


# The axis as an input ------------------------------------------------------------------------------------------------


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
    """Return whether the axis input is valid, and the axis; None where only run time knows it."""
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
    """Return the axes that are possible: the known axis, or those whose dimension the parts fit; None if the shape is
    unknown.

    An axis tensor of unknown size might be no axis at all, so nothing is concluded from it.
    """
    if axis is not None:
        return [axis]
    data, given = site.input(0), site.input(1)
    if data.shape is None or given.shape is None or not all(isinstance(dim, int) for dim in given.shape):
        return None
    return [index for index, dim in enumerate(data.shape) if dim is None or fits(site.facts.child(), dim)]


def only_one(axes: list[int] | None) -> int | None:
    """Return the axis where it can be only one."""
    return axes[0] if axes is not None and len(axes) == 1 else None
