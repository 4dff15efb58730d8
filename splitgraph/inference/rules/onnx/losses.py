"""Losses of classification."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import Dims, InvalidNode, dims_of, dims_of_rank, merged_dim, operator
from splitgraph.value_type import ValueType, tensor


@operator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", gives=(0, 0))
def loss(ctx: NodeContext) -> Sequence[ValueType]:
    """A loss for each label, or one for all; the second gives the logarithm of the probabilities, too."""
    dtype, scores, labels = ctx.input(0).dtype, dims_of(ctx, 0), dims_of(ctx, 1)
    each = _labels(ctx, scores, labels)
    weights = dims_of_rank(ctx, 2, 1)
    if scores is not None and weights is not None:
        merged_dim(ctx, scores[1], weights[0], "the numbers of classes and of class weights")
    shape = each if ctx.attribute("reduction", "mean") == "none" else ()
    return [tensor(dtype, shape), tensor(dtype, scores)]


def _labels(ctx: NodeContext, scores: Dims | None, labels: Dims | None) -> Dims | None:
    """The dimensions of the labels: those of the scores without the classes."""
    if scores is None:
        return labels
    if len(scores) < 2:
        raise InvalidNode(f"the scores have rank {len(scores)}; they must have batch and class dimensions")
    expected = (scores[0], *scores[2:])
    if labels is None:
        return expected
    if len(labels) != len(expected):
        raise InvalidNode(f"the labels have rank {len(labels)}; for these scores they must have rank {len(expected)}")
    pairs = zip(expected, labels, strict=True)
    return tuple(merged_dim(ctx, a, b, f"the dimensions {i} of labels and scores") for i, (a, b) in enumerate(pairs))
