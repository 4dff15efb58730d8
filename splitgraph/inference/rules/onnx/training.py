"""Training: gradients and optimizers (domain ai.onnx.preview.training), and the losses of ai.onnx."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.indices import require_indices
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    expect_dims,
    like_input,
    merged_dim,
    operator,
    ranked_dims,
)
from splitgraph.model.value_type import ValueType, tensor

DOMAIN = "ai.onnx.preview.training"

# After the learning rate and the step there are these groups of tensors, one tensor of each for each that is optimized:
# how many groups, and which of them come back with new values.
_GROUPS = {"Adagrad": (3, (0, 2)), "Adam": (4, (0, 2, 3)), "Momentum": (3, (0, 2))}


@operator("Gradient", gives=(), domain=DOMAIN)
def gradient(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute the derivative by each tensor that `xs` names, which are the first inputs."""
    count = len(ctx.attribute("xs") or ())
    if not len(ctx.outputs) <= count <= ctx.input_count:
        raise InvalidNode(f"xs names {count} tensors for {ctx.input_count} inputs and {len(ctx.outputs)} outputs")
    return [like_input(ctx, index) for index in range(count)]


@operator("Adagrad", "Adam", "Momentum", gives=(), domain=DOMAIN)
def optimizer(ctx: NodeContext) -> Sequence[ValueType]:
    """Return the new values of the optimized tensors, then of the state that is kept for them, each of its old type."""
    groups, renewed = _GROUPS[ctx.node.op_type]
    tensors = ctx.input_count - 2
    if tensors < groups or tensors % groups:
        raise InvalidNode(f"{tensors} inputs after the first two; {groups} are required for each optimized tensor")
    size = tensors // groups
    for index in range(2 + size, ctx.input_count):
        dims = dims_of(ctx, 2 + (index - 2) % size)
        if dims is not None:
            expect_dims(ctx, index, dims, f"input {index}")
    indices = [2 + group * size + position for group in renewed for position in range(size)]
    return [like_input(ctx, index) for index in indices]


@operator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", gives=(0, 0))
def loss(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute a loss for each label, or one for all; the second output has the logarithms of the probabilities."""
    dtype, scores, labels = ctx.input(0).dtype, dims_of(ctx, 0), dims_of(ctx, 1)
    label_dims = _labels(ctx, scores, labels)
    weights = ranked_dims(ctx, 2, 1)
    if scores is not None:
        merged_dim(ctx, scores[1], weights[0], "the numbers of classes and of class weights")
        if not ctx.is_unresolved("ignore_index"):
            require_indices(ctx, 1, scores, 1, ignored=ctx.attribute("ignore_index"))
    shape = label_dims if ctx.attribute("reduction", "mean") == "none" else ()
    return [tensor(dtype, shape), tensor(dtype, scores)]


def _labels(ctx: NodeContext, scores: Dims | None, labels: Dims | None) -> Dims | None:
    """Return the dimensions of the labels: those of the scores without the classes."""
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
