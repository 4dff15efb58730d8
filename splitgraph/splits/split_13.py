"""Split-13 (opsets 13 to 17): the lengths are an optional input.

Inputs: input (T); split (int64, 1-D, optional): the lengths, each >= 0, which sum to the dimension. Without lengths,
the parts are equal, and their number must divide the dimension. Attribute: axis (default 0, in [-rank, rank - 1]).
Outputs: one or more. T: every type up to bfloat16.

Changed from Split-11: the attribute `split` became an input, so run time may compute the lengths; bfloat16.
"""

from __future__ import annotations

from splitgraph.splits.canonical import CanonicalSplit, SplitSite
from splitgraph.splits.lowering import LowerRequest, computed_lengths, copy_node
from splitgraph.splits.shared import lift_equal_parts, lift_lengths_input
from splitgraph.splits.variant import ALL_TYPES_IR4, Variant


def lift(site: SplitSite) -> CanonicalSplit | None:
    """Read a Split-13 node: lengths when the input is given, equal parts otherwise."""
    return lift_lengths_input(site) if site.has_input(1) else lift_equal_parts(site)


def lower(request: LowerRequest) -> None:
    """Write a Split-13 node: equal parts without lengths, all other splits with a constant or computed lengths
    input.
    """
    inputs = [request.node.input[0]]
    is_equal = request.split.form == "equal" or request.divisible
    if request.explicit_lengths or not is_equal:
        inputs.append(computed_lengths(request))
    request.builder.main(copy_node(request, inputs))


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
