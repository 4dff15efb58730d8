"""Split-13 (opsets 13 to 17): the lengths are an optional input.

Inputs: input (T), split (int64, optional, 1-D, each >= 0, summing to the dimension; without it the parts are equal and
must divide it). Attribute: axis (default 0, in [-rank, rank - 1]). T: every type up to bfloat16. Outputs: one or more.
Changed from Split-11: the attribute `split` became an input, so lengths may be computed at run time; bfloat16.
"""

from __future__ import annotations

from splitgraph.canonical import CanonicalSplit, SplitSite
from splitgraph.variants.lowering import LowerRequest, copy_node
from splitgraph.variants.shared import lift_equal_parts, lift_lengths_input, lower_lengths_input
from splitgraph.variants.variant import ALL_TYPES_IR4, Variant


def lift(site: SplitSite) -> CanonicalSplit | None:
    """Read a Split-13 node: lengths when the input is given, equal parts otherwise."""
    return lift_lengths_input(site) if site.has_input(1) else lift_equal_parts(site)


def lower(request: LowerRequest) -> None:
    """Write a Split-13 node: equal parts without lengths, everything else with a constant or computed lengths input."""
    if (request.split.form == "equal" or request.divisible) and not request.explicit_lengths:
        request.builder.main(copy_node(request, request.node.input[:1]))
        return
    lower_lengths_input(request)


VARIANT = Variant(
    op_type="Split",
    domain="",
    since_version=13,
    inputs=(1, 2),
    outputs=(1, None),
    attributes={"axis": "int"},
    dtypes=ALL_TYPES_IR4,
    lift=lift,
    lower=lower,
)
