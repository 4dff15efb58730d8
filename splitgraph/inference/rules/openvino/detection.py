"""OpenVINO's layers that choose boxes, or make them: the number of chosen boxes has an upper bound."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike, dim_min, product
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.openvino.attributes import element_type, flag, layer, number, numbers, operator_set, text
from splitgraph.inference.rules.operands import (
    InvalidNode,
    at_most,
    dims_of,
    dims_of_rank,
    exact_quotient,
    normal_axis,
    scalar_dim,
)
from splitgraph.value_type import ValueType, tensor

# From this operator set on, the selected boxes are as many as are left, and their number is an output.
_AS_MANY_AS_LEFT = 5


@layer("NonMaxSuppression", "NMSRotated", gives=(None,))
def non_max_suppression(ctx: NodeContext) -> Sequence[ValueType]:
    """The batch, class and box of each selection, its scores, and the number of selections."""
    boxes, scores = dims_of_rank(ctx, 0, 3), dims_of_rank(ctx, 1, 3)
    most_of_class = scalar_dim(ctx, 2) if ctx.has_input(2) else 0
    count: DimLike | None = None
    if boxes is not None and scores is not None and most_of_class is not None:
        ctx.require(boxes[1], "==", scores[2], message="boxes and scores must be of the same number of boxes")
        count = _selections(ctx, scores[0], scores[1], boxes[1], most_of_class)
    dtype = element_type(ctx, "output_type", "int64")
    if ctx.node.op_type == "NonMaxSuppression" and operator_set(ctx) < _AS_MANY_AS_LEFT:
        return [tensor(dtype, (count, 3))]
    left = ctx.fresh() if count is None else at_most(ctx, count)
    return [tensor(dtype, (left, 3)), tensor(None, (left, 3)), tensor(dtype, (1,))][: len(ctx.outputs)]


def _selections(
    ctx: NodeContext, batch: DimLike, classes: DimLike, boxes: DimLike, most_of_class: DimLike
) -> DimLike | None:
    """The number of selections at most. The first versions pad to it, and the oldest ones have another one."""
    if ctx.node.op_type == "NonMaxSuppression" and operator_set(ctx) < _AS_MANY_AS_LEFT:
        known = isinstance(classes, int) and isinstance(boxes, int) and isinstance(most_of_class, int)
        if not known or (operator_set(ctx) == 4 and not isinstance(batch, int)):  # noqa: PLR2004
            return None
        if operator_set(ctx) < 4:  # noqa: PLR2004
            return dim_min(boxes, most_of_class * classes)
    return batch * classes * dim_min(boxes, most_of_class)


@layer("MatrixNms", "MulticlassNms", gives=(0, None, None))
def class_nms(ctx: NodeContext) -> Sequence[ValueType]:
    """The selected boxes of all classes and batches, their positions, and their number for each batch."""
    boxes, dtype = dims_of_rank(ctx, 0, 3), element_type(ctx, "output_type", "int64")
    by_batch = not ctx.has_input(2)
    scores, counts = dims_of_rank(ctx, 1, 3 if by_batch else 2), None if by_batch else dims_of_rank(ctx, 2, 1)
    batch: DimLike | None
    if by_batch:
        batch, classes = (None, None) if scores is None else scores[:2]
    else:
        batch, classes = None if counts is None else counts[0], None if scores is None else scores[0]
    selected = ctx.fresh()
    if batch is not None and classes is not None and boxes is not None:
        selected_at_most = batch * _of_a_batch(ctx, classes, boxes[1])
        high = ctx.facts.range_of(selected_at_most)[1]
        if high is not None:
            ctx.facts.tighten(str(selected), 0, max(high, 0))
    return [
        tensor(ctx.input(0).dtype, (selected, 6)),
        tensor(dtype, (selected, 1)),
        tensor(dtype, (batch,)),
    ]


def _of_a_batch(ctx: NodeContext, classes: DimLike, boxes: DimLike) -> DimLike:
    most, kept = number(ctx, "nms_top_k", -1), number(ctx, "keep_top_k", -1)
    background = number(ctx, "background_class", -1)
    if isinstance(classes, int) and 0 <= background < classes and ctx.node.op_type == "MatrixNms":
        classes -= 1
    found = classes * (dim_min(boxes, most) if most >= 0 else boxes)
    return dim_min(found, kept) if kept >= 0 else found


@layer("GenerateProposals", gives=(0, 3, None))
def generate_proposals(ctx: NodeContext) -> Sequence[ValueType]:
    """Boxes and their scores for all images, and how many each image has."""
    images, dtype = dims_of_rank(ctx, 0, 2), ctx.input(0).dtype
    batch = None if images is None else images[0]
    count = ctx.fresh() if batch is None else at_most(ctx, batch * number(ctx, "post_nms_count", 0))
    return [
        tensor(dtype, (count, 4)),
        tensor(dtype, (count,)),
        tensor(element_type(ctx, "roi_num_type", "int64"), (batch,)),
    ]


@layer("Proposal", gives=(0, 0))
def proposal(ctx: NodeContext) -> Sequence[ValueType]:
    """As many boxes for each image as `post_nms_topn` says, and their scores from version 4 on."""
    probabilities, dtype = dims_of_rank(ctx, 0, 4), ctx.input(0).dtype
    count = None if probabilities is None else probabilities[0] * number(ctx, "post_nms_topn", 0)
    return [tensor(dtype, (count, 5)), tensor(dtype, (count,))][: len(ctx.outputs)]


@layer("DetectionOutput")
def detection_output(ctx: NodeContext) -> Sequence[ValueType]:
    """Seven numbers for each detection, in the third axis."""
    return [tensor(ctx.input(0).dtype, (1, 1, None, 7))]


@layer("PriorBox", "PriorBoxClustered")
def prior_boxes(ctx: NodeContext) -> Sequence[ValueType]:
    """Corners and variances of the boxes at each place of an image, whose sides the first input holds."""
    contents = ctx.contents(0)
    sides = None if contents is None or len(contents.dims) != 2 else contents.dims  # noqa: PLR2004
    count = _boxes_at_a_place(ctx)
    if sides is None or None in sides or count is None:
        return [tensor("float32", (2, None))]
    return [tensor("float32", (2, product([side for side in sides if side is not None]) * count * 4))]


def _boxes_at_a_place(ctx: NodeContext) -> int | None:
    """How many boxes a place has; None with densities or fixed sizes."""
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
    """With softmax, the axes from `axis` to `end_axis` as one; else the channels of the masked regions."""
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
    """Blocks of the sides moved into the channels."""
    dtype, dims = ctx.input(0).dtype, dims_of_rank(ctx, 0, 4)
    stride = (numbers(ctx, "stride") or (1,))[0]
    if dims is None:
        return [tensor(dtype, (None,) * 4)]
    sides = [exact_quotient(ctx, dim, stride, "a side by the stride") for dim in dims[2:]]
    return [tensor(dtype, (dims[0], dims[1] * stride * stride, *sides))]
