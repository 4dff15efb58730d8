"""Gates and mixtures of streams of com.microsoft. Kernels compute types of 16 bits in float32, and round once."""

from __future__ import annotations

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.microsoft.normalizations import (
    inverse_root_mean_square,
    merge_branches,
    split_by_branch,
    widened,
)
from splitgraph.conversion.operators.microsoft.scaled_products import inverse_root
from splitgraph.conversion.operators.standard import standard


@standard("GatedAdd")
def write_gated_add(node: NodeAtBoundary) -> None:
    """Add the gated product, which is rounded to the type of the inputs first."""
    if node.uses_input(3):
        raise Inexact("onnxruntime refuses gate_weight on a CPU, so that nothing can be compared with it")
    f = Formula(node)
    f.give(f.input(0) + f.input(1) * f.input(2))


@standard("LinearAttentionGate")
def write_linear_attention_gate(node: NodeAtBoundary) -> None:
    """Write the decay, and the rate of updates."""
    f, dtype = Formula(node), node.known_dtype()
    decay = f.apply("Softplus", widened(f, 0) + f.input(1)) * f.input(2)
    rate = f.apply("Sigmoid", widened(f, 3)).cast(dtype) if node.uses_output(1) else None
    f.give(decay.cast(dtype), rate)


@standard("EngramGate", epsilon=1e-5)
def write_engram_gate(node: NodeAtBoundary) -> None:
    """Gate the value by how well the normalized key and query agree, and normalize the result."""
    f, dtype, epsilon = Formula(node), node.known_dtype(), node.known_value_or_default("epsilon")

    def normalized(data: Term, scale: int) -> Term:
        return data * inverse_root_mean_square(data, epsilon) * widened(f, scale)

    agreement = normalized(widened(f, 0), 3) * normalized(widened(f, 1), 4)
    dot = agreement.reduced("ReduceSum", [-1], keepdims=True) * inverse_root(f.size(0, 3))
    root = f.apply("Max", abs(dot), f.number(1e-6, dot.dtype)).sqrt()
    gated = f.apply("Sigmoid", f.apply("Sign", dot) * root) * widened(f, 2).unsqueezed(2)
    f.give(gated.cast(dtype), normalized(gated, 5).cast(dtype) if node.uses_output(1) else None)


# Streams: branches (..., branches, size), or beside each other on the last axis ---------------------------------------


@standard("HyperConnectionPreMix", num_branches=0, reduction_scale=1.0)
def write_hyper_connection_pre_mix(node: NodeAtBoundary) -> None:
    """Sum the weighted streams."""
    f, dtype, branches = Formula(node), node.known_dtype(), node.known_value_or_default("num_branches")
    rank = node.known_rank() + (1 if branches else 0)
    streams = split_by_branch(f, 0, node.known_rank(), branches)
    total = (streams * _weights(f, 1, rank, branches)).reduced("ReduceSum", [-2])
    scale = node.known_value_or_default("reduction_scale")
    f.give((total if scale == 1 else total * scale).cast(dtype))


@standard("HyperConnectionPostMix", num_branches=0)
def write_hyper_connection_post_mix(node: NodeAtBoundary) -> None:
    """Mix the streams, and add the weighted output of a block to each."""
    f, dtype, branches = Formula(node), node.known_dtype(), node.known_value_or_default("num_branches")
    flat = node.known_rank()
    rank = flat + (1 if branches else 0)
    streams = split_by_branch(f, 0, flat, branches)
    if node.uses_input(3):
        order = [*range(rank - 2), rank - 1, rank - 2]
        streams = widened(f, 3).transposed(*order) @ streams
    result = streams + _weights(f, 2, rank, branches) * widened(f, 1).unsqueezed(rank - 2)
    f.give((merge_branches(f, result, flat, 0) if branches else result).cast(dtype))


def _weights(f: Formula, index: int, rank: int, branches: int) -> Term:
    """Return weights that broadcast to streams of a rank: one for each branch, or for each element."""
    node, weights = f.node, widened(f, index)
    if node.known_rank(index) == rank:
        return weights
    last = (node.shape(index) or (None,))[-1]
    if not branches or last == branches:
        return weights.unsqueezed(rank - 1)
    if isinstance(last, int):
        return split_by_branch(f, index, rank - 1, branches)
    raise Inexact("its weights are for branches or for elements, and their sizes do not tell", "declare the shapes")
