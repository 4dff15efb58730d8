"""OpenVINO VariadicSplit-1: parts of any lengths, one of which may be -1, the rest of the dimension.

Inputs: data (any type), axis (integer scalar or of shape [1], may be negative), split_lengths (any integer type, 1-D,
each >= 0 but at most one -1; they sum to the dimension). Outputs: as many as lengths.
Inside an ONNX file it is a model-local function of domain org.splitgraph, VariadicSplit_<number of outputs>, with the
same three inputs.
"""

from __future__ import annotations

from typing import Literal

from splitgraph.canonical import (
    CanonicalSplit,
    SplitSite,
    certain_lengths,
    dimension_on,
    listed,
    split_by_lengths,
    split_contents,
)
from splitgraph.dim import DimLike, Facts, Obligation, sum_dims
from splitgraph.variants.lengths_input import count_matches
from splitgraph.variants.lowering import (
    LowerRequest,
    axis_tensor,
    computed_lengths,
    copy_node,
    lengths_with_rest,
    written_axis,
)
from splitgraph.variants.openvino_axis import INTEGER_TYPES, only_one, possible_axes, read_axis
from splitgraph.variants.variant import Variant

DOMAIN = "org.splitgraph"
FUNCTION_PREFIX = "VariadicSplit_"
# The metadata of a VariadicSplit node under this key says which form of Split it was, for the way back.
FORM_KEY = "splitgraph.form"


def lift(site: SplitSite) -> CanonicalSplit | None:
    """Read a VariadicSplit; lengths that are wrong in themselves are reported even when rank or axis is unknown."""
    given = _read_lengths(site)
    valid, axis = read_axis(site, vector_allowed=True)
    if given is None or not valid:
        return None
    axes = possible_axes(site, axis, lambda facts, dim: _fits(facts, dim, given))
    axis = only_one(axes)
    if not given:
        total = dimension_on(site.input(0), axis)
        if total is not None:
            site.require(total, "==", 0, code="SG204", message=f"there are no lengths, and the dimension is {total}")
        return None
    split = split_by_lengths(site, axis, dimension_on(site.input(0), axis), given, rest_allowed=True)
    if split is None:
        return None
    if axes == []:
        site.find("SG204", f"the lengths {listed(given)} fit no dimension of {site.input(0)}, whichever the axis is")
        return None
    split_contents(site, split, site.contents(0))
    return split


def _fits(facts: Facts, dim: DimLike, lengths: list[DimLike | None]) -> bool:
    """False when the dimension cannot be the sum of the lengths, or with a rest or unknown ones less than that."""
    certain = certain_lengths(facts, lengths, rest_allowed=True)
    known = [length for length in certain if length is not None]
    relation: Literal["==", ">="] = "==" if len(known) == len(certain) else ">="
    return facts.require(Obligation(dim, relation, sum_dims(known))) != "contradiction"


def _read_lengths(site: SplitSite) -> list[DimLike | None] | None:
    lengths, contents = site.input(2), site.contents(2)
    if lengths.dtype is not None and lengths.dtype not in INTEGER_TYPES:
        site.find("SG211", f"split_lengths must be integers, not {lengths.dtype}")
        return None
    shape = lengths.shape if contents is None else contents.shape
    if shape is not None and len(shape) != 1:
        site.find("SG211", f"split_lengths must be a 1-D tensor, not of rank {len(shape)}")
        return None
    outputs = len(site.outputs)
    count = shape[0] if shape else None
    # Without outputs to count against (a node that is being built), an unknown number of lengths leaves nothing to say.
    if isinstance(count, int) and outputs and not count_matches(site, count):
        return None
    size = count if isinstance(count, int) else outputs
    if not size and not isinstance(count, int):
        return None
    return [None] * size if contents is None else list(contents.dims)


def lower(request: LowerRequest) -> None:
    """Write a call of the function VariadicSplit_<n>: constant lengths where known, -1 for a single unknown one, else a
    computed tensor.
    """
    axis = written_axis(request)
    axis_name = axis_tensor(request) if axis is None else request.builder.constant(axis, "axis")
    lengths = lengths_with_rest(request.split)
    lengths_name = computed_lengths(request) if lengths is None else request.builder.constant(lengths, "split_lengths")
    node = copy_node(
        request, [request.node.input[0], axis_name, lengths_name], request.builder.function_node(request.parts), keep=()
    )
    node.domain = DOMAIN
    request.builder.main(node)


VARIANT = Variant(
    op_type="VariadicSplit",
    domain=DOMAIN,
    since_version=1,
    inputs=(3, 3),
    outputs=(0, None),
    attributes={},
    dtypes=None,
    lift=lift,
    lower=lower,
)
