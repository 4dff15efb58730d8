"""Split-18 (opset 18 on): exactly one of the input `split` and the attribute `num_outputs` must be given.

Inputs: input (T); split (int64, 1-D, optional): the lengths, each >= 0, which sum to the dimension. Attributes: axis
(default 0, in [-rank, rank - 1]); num_outputs (int >= 1, equal to the number of outputs): the parts are chunks of
ceil(dim / num_outputs), the last one smaller. Outputs: one or more. T: every type up to bfloat16.

Changed from Split-13: a node without lengths needs num_outputs, and a dimension that does not divide evenly needs no
lengths any more. Converters often wrote neither (onnx/onnx#5222): that is invalid, though its meaning is plain. A node
with fewer outputs than num_outputs is invalid, too; `inference/repairs.py` adds the missing outputs where engines
agree.
"""

from __future__ import annotations

from splitgraph.splits.canonical import CanonicalSplit, SplitSite, dimension_on, resolve_axis, split_into_chunks
from splitgraph.splits.lowering import LowerRequest, computed_lengths, copy_node, set_int
from splitgraph.splits.shared import finish, lift_lengths_input
from splitgraph.splits.variant import ALL_TYPES_IR4, Variant


def lift(site: SplitSite) -> CanonicalSplit | None:
    """Read a Split-18 node: lengths when the input is given, num_outputs chunks otherwise."""
    given, counted = site.has_input(1), "num_outputs" in site.attribute_names()
    if given and counted:
        site.find("SG208", "both the input split and the attribute num_outputs are given; exactly one of them must be")
        return None
    if given:
        return lift_lengths_input(site)
    outputs = len(site.outputs)
    if not counted:
        site.find(
            "SG207", "neither the input split nor the attribute num_outputs is given; exactly one of them must be"
        )
        return None
    count = site.attribute("num_outputs")
    if isinstance(count, int) and count != outputs:
        site.find("SG209", f"num_outputs is {count}, but the node has {outputs} output(s); the two must be equal")
        return None
    valid, axis = resolve_axis(site, site.attribute("axis", 0), site.input(0))
    if not valid:
        return None
    return finish(site, split_into_chunks(site, axis, dimension_on(site.input(0), axis), outputs))


def lower(request: LowerRequest) -> None:
    """Write a Split-18 node: num_outputs for equal parts and chunks, a lengths input for everything else."""
    # Equal parts become num_outputs, too: it means the same wherever equal parts are valid.
    if request.explicit_lengths or request.split.form not in ("equal", "chunks"):
        request.builder.main(copy_node(request, [request.node.input[0], computed_lengths(request)]))
        return
    node = copy_node(request, request.node.input[:1])
    set_int(node, "num_outputs", request.parts)
    request.builder.main(node)


VARIANT = Variant(
    op_type="Split",
    domain="",
    since_version=18,
    inputs=(1, 2),
    outputs=(1, None),
    attributes={"axis": "int", "num_outputs": "int"},
    dtypes=ALL_TYPES_IR4,
    lift=lift,
    lower=lower,
)
