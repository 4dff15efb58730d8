"""OpenVINO Split-1: equal parts of a dimension.

Inputs: data (any type), axis (integer scalar, may be negative). Attribute: num_splits (>= 1, must divide the dimension;
a dynamic dimension must be able to reach it). Outputs: num_splits.
"""

from __future__ import annotations

from splitgraph.dim import Dim, DimLike, Facts, Obligation
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.schemas.kinds import LAYER_DOMAIN
from splitgraph.splits.canonical import CanonicalSplit, SplitSite, dimension_on, split_contents, split_equally
from splitgraph.splits.lowering import LowerRequest, NotRepresentable, copy_node, set_int, written_axis
from splitgraph.splits.shared import only_one, possible_axes, read_axis
from splitgraph.splits.variant import Variant

DOMAIN = LAYER_DOMAIN
# The domain of layers outside OpenVINO's own operator sets: an extension may give its layers any name.
EXTENSION = f"{DOMAIN}.extension"


def lift(site: SplitSite) -> CanonicalSplit | None:
    """Read an OpenVINO Split."""
    count = site.attribute("num_splits")
    valid, axis = read_axis(site, vector_allowed=False)
    if not isinstance(count, int) or count < 1:
        site.find("SG209", f"num_splits is {count}; it must be an integer of at least 1")
        return None
    if site.outputs and len(site.outputs) != count:
        site.find("SG209", f"num_splits is {count}, but there are {len(site.outputs)} outputs")
        return None
    if not valid:
        return None

    def divides(facts: Facts, dim: DimLike) -> bool:
        if isinstance(dim, Dim) and _too_small(facts, dim, count):
            return False
        return facts.require(Obligation(dim % count, "==", 0)) != "contradiction"

    axes = possible_axes(site, axis, divides)
    if axes == []:
        site.find("SG206", f"no dimension of {site.input(0)} divides into {count} equal parts, whichever the axis is")
        return None
    axis = only_one(axes)
    total = dimension_on(site.input(0), axis)
    if isinstance(total, Dim) and _too_small(site.facts, total, count):
        most = site.facts.range_of(total)[1]
        site.find("SG206", f"dimension {total} on axis {axis} is at most {most}, too small for {count} parts")
        return None
    split = split_equally(site, axis, total, count)
    if split is not None:
        split_contents(site, split, site.contents(0))
    return split


def _too_small(facts: Facts, dim: Dim, count: int) -> bool:
    most = facts.range_of(dim)[1]
    return most is not None and most < count


def lower(request: LowerRequest) -> None:
    """Write an OpenVINO Split: equal lengths of a static dimension only, since it cannot pin a dynamic one."""
    lengths = request.split.static_lengths
    if lengths is None or len(set(lengths)) != 1 or not isinstance(request.split.total, int):
        raise NotRepresentable(
            "SG408",
            "OpenVINO's Split makes equal parts of a static dimension only",
            "Use VariadicSplit (convert --to variadic-split).",
        )
    axis = written_axis(request)
    if axis is None:
        raise NotRepresentable(
            "SG408", "the axis is known only at run time", "Use VariadicSplit (convert --to variadic-split)."
        )
    node: NodeProto = copy_node(request, [request.node.input[0], request.builder.constant(axis, "axis")], keep=())
    node.domain = DOMAIN
    set_int(node, "num_splits", len(lengths))
    request.builder.main(node)


VARIANT = Variant(
    op_type="Split",
    domain=DOMAIN,
    since_version=1,
    inputs=(2, 2),
    outputs=(0, None),
    attributes={"num_splits": "int"},
    dtypes=None,
    lift=lift,
    lower=lower,
)
