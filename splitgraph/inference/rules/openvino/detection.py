"""OpenVINO's layers that choose boxes, or make them: the number of chosen boxes has an upper bound."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike, dim_min, product
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.openvino.attributes import (
    element_type,
    flag,
    layer,
    number,
    numbers,
    operator_set,
    text,
)
from splitgraph.inference.rules.operands import (
    InvalidNode,
    at_most,
    dims_of,
    dims_of_rank,
    exact_quotient,
    largest,
    merged_dim,
    normal_axis,
    ranked_dims,
    scalar_dim,
)
from splitgraph.inference.rules.signatures import expect_shapes, shaped, shapes
from splitgraph.model.value_type import ValueType, tensor
from splitgraph.splits.openvino_split_1 import DOMAIN

# From this operator set on, the selected boxes are as many as are left, and their number is an output.
_AS_MANY_AS_LEFT = 5


@layer("NonMaxSuppression", "NMSRotated", gives=(None,))
def non_max_suppression(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the batch, class and box of each selection, its scores, and the number of selections."""
    boxes, scores = dims_of_rank(ctx, 0, 3), dims_of_rank(ctx, 1, 3)
    most_of_class = scalar_dim(ctx, 2) if ctx.has_input(2) else 0
    dtype, version = element_type(ctx, "output_type", "int64"), operator_set(ctx)
    factors: tuple[DimLike, ...] | None = None
    if boxes is not None and scores is not None:
        candidates = merged_dim(ctx, boxes[1], scores[2], "the numbers of boxes and of scores")
        if most_of_class is not None:
            factors = (scores[0], scores[1], dim_min(candidates, most_of_class))
    if ctx.node.op_type == "NonMaxSuppression" and version < _AS_MANY_AS_LEFT:
        # What OpenVINO infers of the versions before, it does not compute.
        padded = version == _AS_MANY_AS_LEFT - 1 and factors is not None
        return [tensor(dtype, (product(factors) if padded and factors is not None else None, 3))]
    left = ctx.fresh() if factors is None else at_most(ctx, *factors)
    return [tensor(dtype, (left, 3)), tensor(None, (left, 3)), tensor(dtype, (1,))][: len(ctx.outputs)]


@layer("MatrixNms", "MulticlassNms", gives=(0, None, None))
def class_nms(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the selected boxes of all classes and batches, their positions, and their number for each batch."""
    # With numbers of boxes, each image has boxes of its own, whose classes are the first axis.
    inputs = ("boxes: C N 4", "scores: C N", "roisnum: B") if ctx.has_input(2) else ("boxes: B N 4", "scores: B C N")
    known, count = expect_shapes(ctx, *inputs), element_type(ctx, "output_type", "int64") or "?"
    if known.keys() >= {*"BCN"}:
        known["S"] = at_most(ctx, known["B"], _most_of_a_batch(ctx, known["C"], known["N"]))
    return shapes(ctx, *inputs, sizes=known, gives=("0 S 6", f"{count} S 1", f"{count} B"))


def _most_of_a_batch(ctx: NodeContext, classes: DimLike, boxes: DimLike) -> DimLike:
    """Return an upper bound of the number of selected boxes of a batch."""
    most, kept = number(ctx, "nms_top_k", -1), number(ctx, "keep_top_k", -1)
    background = number(ctx, "background_class", -1)
    if isinstance(classes, int) and 0 <= background < classes and ctx.node.op_type == "MatrixNms":
        classes = classes - 1
    of_a_class = dim_min(boxes, most) if most >= 0 else boxes
    bound = largest(ctx, (classes, of_a_class))
    if kept < 0:
        return classes * of_a_class if bound is None else bound
    return kept if bound is None else min(bound, kept)


@layer("GenerateProposals", gives=(0, 3, None))
def generate_proposals(ctx: NodeContext) -> Sequence[ValueType]:
    """Find boxes and their scores for all images, and how many each image has."""
    inputs = ("im_info: B ?", "", "deltas: B ? ? ?", "scores: B ? ? ?")
    batch = expect_shapes(ctx, *inputs).get("B")
    count = None if batch is None else at_most(ctx, batch, number(ctx, "post_nms_count", 0))
    numbers = element_type(ctx, "roi_num_type", "int64") or "?"
    return shapes(ctx, *inputs, sizes={"N": count}, gives=("0 N 4", "0 N", f"{numbers} B"))


@layer("Proposal", gives=(0, 0))
def proposal(ctx: NodeContext) -> Sequence[ValueType]:
    """Find `post_nms_topn` boxes for each image, and from version 4 on their scores."""
    images, dtype = ranked_dims(ctx, 0, 4)[0], ctx.input(0).dtype
    count = None if images is None else images * number(ctx, "post_nms_topn", 0)
    return [tensor(dtype, (count, 5)), tensor(dtype, (count,))][: len(ctx.outputs)]


# Seven numbers for each detection, in the third axis.
shaped("DetectionOutput", gives="0 1 1 ? 7", domain=DOMAIN)


@layer("PriorBox", "PriorBoxClustered")
def prior_boxes(ctx: NodeContext) -> Sequence[ValueType]:
    """Make corners and variances of the boxes at each place of an image. The first input holds the image's sides."""
    contents = ctx.contents(0)
    sides = None if contents is None or len(contents.dims) != 2 else contents.dims
    count = _boxes_at_a_place(ctx)
    if sides is None or None in sides or count is None:
        return [tensor("float32", (2, None))]
    return [tensor("float32", (2, product([side for side in sides if side is not None]) * count * 4))]


def _boxes_at_a_place(ctx: NodeContext) -> int | None:
    """Return how many boxes a place has; None with densities or fixed sizes."""
    if ctx.node.op_type == "PriorBoxClustered":
        return len(_listed_numbers(ctx, "width"))
    if _listed_numbers(ctx, "density") or _listed_numbers(ctx, "fixed_size"):
        return None
    flips = flag(ctx, "flip", False)
    ratios = {1.0}
    for ratio in _listed_numbers(ctx, "aspect_ratio"):
        ratios |= {round(ratio, 6), round(1 / ratio, 6)} if flips and ratio else {round(ratio, 6)}
    smallest = len(_listed_numbers(ctx, "min_size"))
    if flag(ctx, "scale_all_sizes", True):
        return len(ratios) * smallest + len(_listed_numbers(ctx, "max_size"))
    return len(ratios) + smallest - 1


def _listed_numbers(ctx: NodeContext, name: str) -> list[float]:
    try:
        return [float(entry) for entry in text(ctx, name).split(",") if entry.strip()]
    except ValueError:
        raise InvalidNode(f"attribute {name!r} is {text(ctx, name)!r}; it must be a list of numbers") from None


@layer("RegionYolo")
def region_yolo(ctx: NodeContext) -> Sequence[ValueType]:
    """With softmax, join the axes from `axis` to `end_axis`; else keep the channels of the masked regions."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    if dims is None:
        return [tensor(dtype, None)]
    if flag(ctx, "do_softmax", True):
        first, last = (normal_axis(number(ctx, name, 0), len(dims)) for name in ("axis", "end_axis"))
        return [tensor(dtype, (*dims[:first], product(dims[first : last + 1]), *dims[last + 1 :]))]
    channels = (number(ctx, "classes", 0) + number(ctx, "coords", 0) + 1) * len(numbers(ctx, "mask") or ())
    return [tensor(dtype, (dims[0], channels, *dims[2:]))]


@layer("ReorgYolo")
def reorg_yolo(ctx: NodeContext) -> Sequence[ValueType]:
    """Move blocks of the sides into the channels."""
    dtype, dims = ctx.input(0).dtype, dims_of_rank(ctx, 0, 4)
    stride = (numbers(ctx, "stride") or (1,))[0]
    if dims is None:
        return [tensor(dtype, (None,) * 4)]
    sides = [exact_quotient(ctx, dim, stride, "a side by the stride") for dim in dims[2:]]
    return [tensor(dtype, (dims[0], dims[1] * stride * stride, *sides))]
