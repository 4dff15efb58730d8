"""Operators of onnxruntime (domain com.microsoft) that arrange, count, choose and hash elements."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike, product
from splitgraph.inference.context import NodeContext, rule
from splitgraph.inference.rules.onnx.elementwise import same_type
from splitgraph.inference.rules.onnx.imaging import grid_sample
from splitgraph.inference.rules.onnx.joining import range_
from splitgraph.inference.rules.operands import InvalidNode, dims_of, int_attribute, normal_axis, operator
from splitgraph.inference.rules.signatures import shaped, shapes
from splitgraph.model.value_type import ValueType, tensor

DOMAIN = "com.microsoft"

rule("SampleOp", domain=DOMAIN)(same_type)
operator("GridSample", domain=DOMAIN)(grid_sample)
operator("Range", domain=DOMAIN)(range_)

# For each word, a number for each filter.
shaped("WordConvEmbedding", "Sequence: W L", "W: F 1 ? E", "B: F", "C: ? E", gives="1 W F", domain=DOMAIN)


@operator("UnfoldTensor", domain=DOMAIN)
def unfold(ctx: NodeContext) -> Sequence[ValueType]:
    """Slide a window along an axis; the elements of each window are a new last axis."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    size, step = int_attribute(ctx, "size", 0), int_attribute(ctx, "step", 1)
    if size < 1 or step < 1:
        raise InvalidNode(f"size is {size} and step is {step}; both must be at least 1")
    if dims is None:
        return [tensor(dtype, None)]
    axis = normal_axis(int_attribute(ctx, "dim", -1), len(dims), "dim")
    if not ctx.facts.prove_ge(dims[axis], size) and isinstance(dims[axis], int):
        raise InvalidNode(f"size is {size}, and the dimension of axis {axis} is {dims[axis]}")
    return [tensor(dtype, (*dims[:axis], (dims[axis] - size) // step + 1, *dims[axis + 1 :], size))]


@operator("MurmurHash3", gives=(None,), domain=DOMAIN)
def murmur_hash(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute a number of 32 bits for each element."""
    return [tensor("uint32" if int_attribute(ctx, "positive", 1) else "int32", dims_of(ctx, 0))]


@operator("NGramHashMapping", gives=(0, 0), domain=DOMAIN)
def hash_of_ngrams(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute numbers for the tokens that end at each one, and keep the last tokens for the next call."""
    longest, heads = int_attribute(ctx, "max_ngram_size", 0), int_attribute(ctx, "n_head_per_ngram", 0)
    sizes: dict[str, DimLike | None] = {"H": (longest - 1) * heads, "P": longest - 1}
    # There may be more multipliers than are needed.
    inputs = ("input_ids: B S", "", "vocab_sizes: H", "past_ids: B P", "head_offsets: H")
    return shapes(ctx, *inputs, sizes=sizes, gives=("0 B S H", "0 B P"))


@operator("MoEGroupRouter", gives=(0, "float32", "float32"), domain=DOMAIN)
def group_router(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute a number for each expert of each token; leading dimensions become one."""
    dims = dims_of(ctx, 0)
    tokens = {"T": product(dims[:-1]) if dims else None}
    inputs = ("logits: ... I", "expert_bias: E", "projection_weight: E I")
    return shapes(ctx, *inputs, sizes=tokens, gives=("0 T E", "float32 T E", "float32 T E"))
