"""What Split-1, Split-2 and Split-11 share: the parts in the attribute `split`, equal parts without it."""

from __future__ import annotations

from splitgraph.canonical import CanonicalSplit, SplitSite, dimension_on, resolve_axis, split_by_lengths
from splitgraph.variants.lengths_input import count_matches, finish, lift_equal_parts
from splitgraph.variants.lowering import (
    LowerRequest,
    NotRepresentable,
    copy_node,
    lengths_reference,
    set_int,
    set_ints,
    written_axis,
)
from splitgraph.variants.slices import emit_slices


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
    """Write lengths as the attribute, equal parts without, and what only run time knows as Slice nodes.

    axis_required: the version has no default for the axis. negative_axis: it documents negative ones; where it does
    not, the axis is written non-negative as soon as the rank is known (every runtime takes a negative one all the
    same).
    """
    lengths = request.split.static_lengths
    referred = lengths_reference(request) is not None
    equal = request.split.form == "equal" or request.divisible
    if lengths is None and equal and request.explicit_lengths:
        raise NotRepresentable(
            "SG408",
            "the lengths depend on a dynamic dimension, and below opset 13 they can only be an attribute",
            "Upgrade to opset 13 first, or keep equal parts.",
        )
    if lengths is None and not equal and not referred:
        emit_slices(request)
        return
    node = copy_node(request, request.node.input[:1], keep=("axis", "split") if referred else ("axis",))
    axis = written_axis(request)
    attribute = request.axis_attribute
    if axis is not None and (axis_required or (attribute is not None and not negative_axis and attribute.i != axis)):
        set_int(node, "axis", axis)
    if lengths is not None and not referred and (request.explicit_lengths or not equal):
        set_ints(node, "split", lengths)
    request.builder.main(node)
