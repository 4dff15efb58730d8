"""Training: gradients and optimizers (domain ai.onnx.preview.training), and the losses of ai.onnx."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.indices import require_indices
from splitgraph.inference.rules.operands import InvalidNode, dims_of, expect_dims, like_input, operator
from splitgraph.inference.rules.signatures import shapes
from splitgraph.model.value_type import ValueType

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
    each = " N ..." if ctx.attribute("reduction", "mean") == "none" else ""
    result = shapes(ctx, "scores: N C ...", "labels: N ...", "weights: C", gives=(f"0{each}", "0 N C ..."))
    scores = dims_of(ctx, 0)
    if scores is not None and not ctx.is_unresolved("ignore_index"):
        require_indices(ctx, 1, scores, 1, ignored=ctx.attribute("ignore_index"))
    return result
