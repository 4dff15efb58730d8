"""Normalisation, activation, embedding and matrix products of onnxruntime (domain com.microsoft)."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike, ceildiv, product
from splitgraph.inference.context import NodeContext, rule
from splitgraph.inference.rules.broadcasting import broadcast_dims
from splitgraph.inference.rules.onnx.elementwise import same_type
from splitgraph.inference.rules.onnx.indexing import gather_nd
from splitgraph.inference.rules.onnx.matmul import gemm, product_dims, transposed
from splitgraph.inference.rules.onnx.reduction import normalized
from splitgraph.inference.rules.operands import (
    InvalidNode,
    dims_of,
    exact_quotient,
    int_attribute,
    known_dtype,
    like_input,
    normal_axis,
    operator,
    ranked_dims,
    scalar_dim,
)
from splitgraph.inference.rules.signatures import expect_shapes, shaped, shapes
from splitgraph.model.value_type import ValueType, tensor

DOMAIN = "com.microsoft"

rule(
    "BiasSoftmax",
    "Gelu",
    "GroupNorm",
    "LongformerAttention",
    "QMoE",
    "QuickGelu",
    "ScaledSiLU",
    "Trilu",
    domain=DOMAIN,
)(same_type)
operator("FusedGemm", domain=DOMAIN)(gemm)
operator("GatherND", domain=DOMAIN)(gather_nd)


shaped("Inverse", "X: ... N N", gives="0 ... N N", domain=DOMAIN)
shaped("BiasGelu FastGelu", "input: ... H", "bias: H", gives="0 ... H", domain=DOMAIN)
shaped("BiasAdd", "X: B S C", "bias: C", "skip: B S C", gives="0 B S C", domain=DOMAIN)
# The input, and which elements are kept.
shaped("BiasDropout", "data: ...", gives=("0 ...", "bool ..."), domain=DOMAIN)
# The normalised sum of two inputs, and the sum.
shaped("SkipGroupNorm", "X: ...", gives=("0 ...", "0 ..."), domain=DOMAIN)
# The distinct elements, where each element went, and how often each occurs.
shaped("Unique", "x: N", gives=("0 U", "int64 N", "int64 U"), domain=DOMAIN)
# The distance of each row of the first input from each row of the second.
shaped("CDist", "A: M K", "B: N K", gives="0,1 M N", domain=DOMAIN)
# The scores, without those of tokens that would repeat.
shaped("NGramRepeatBlock", "input_ids: B ?", "scores: B V", gives="1 B V", domain=DOMAIN)
_EMBEDDINGS = (
    *("input_ids: B S", "segment_ids: B S", "word_embedding: ? H", "position_embedding: ? H"),
    *("segment_embedding: ? H", "gamma: H", "beta: H", "mask: B S"),
)
# The sum of embeddings, the number of tokens of each sequence, and the sum before it was normalised.
shaped(
    "EmbedLayerNormalization",
    *_EMBEDDINGS,
    "position_ids: ? S",
    gives=("2 B S H", "int32 B", "2 B S H"),
    domain=DOMAIN,
)
shaped("QEmbedLayerNormalization", *_EMBEDDINGS, gives=("8 B S H", "int32 B", "8 B S H"), domain=DOMAIN)


@operator("MoE", domain=DOMAIN)
def mixture_of_experts(ctx: NodeContext) -> Sequence[ValueType]:
    """Run each token through the experts that its router chooses."""
    dims = dims_of(ctx, 0)
    tokens = None if dims is None or len(dims) not in (2, 3) else product(dims[:-1])
    sizes = {"T": tokens, "H": dims[-1] if dims else None}
    # The weights were transposed in the first versions of the operator.
    weights = ("fc1_experts_weights: E ? H | E H ?", "", "fc2_experts_weights: E H ? | E ? H")
    expect_shapes(ctx, "input: T H | ? ? H", "router_probs: T E", *weights, sizes=sizes)
    return [like_input(ctx)]


@operator("SimplifiedLayerNormalization", gives=(1, None))
@operator("SimplifiedLayerNormalization", gives=(1, None), domain=DOMAIN)
def simplified_layer_normalization(ctx: NodeContext) -> Sequence[ValueType]:
    """Divide the input by its root mean square, in the scale's type, and return the inverse of the root."""
    output, statistics = normalized(ctx)
    return [tensor(ctx.input(1).dtype, output.shape), statistics]


@operator("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", gives=(0, None, None, 0), domain=DOMAIN)
def skip_layer_normalization(ctx: NodeContext) -> Sequence[ValueType]:
    """Normalise the sum of two inputs, and return statistics and the sum itself."""
    dims = dims_of(ctx, 0)
    more = ("bias: H",) if ctx.node.op_type.startswith("SkipSimplified") else ("beta: H", "bias: H")
    length = dims[1] if dims is not None and len(dims) == 3 else None
    skip = "skip: ?... H" if length is None else "skip: ? S H | S H"
    gives = ("0,1,2 ... H", "float32 ... 1", "float32 ... 1", "0,1,2 ... H")
    return shapes(ctx, "input: ... H", skip, "gamma: H", *more, sizes={"S": length}, gives=gives)


@operator("BitmaskDropout", gives=(0, None), domain=DOMAIN)
def dropout(ctx: NodeContext) -> Sequence[ValueType]:
    """Set some elements to 0, and return which ones are kept: a bit for each."""
    dims = dims_of(ctx, 0)
    bits = None if dims is None else ceildiv(product(dims), 32)
    return [tensor(ctx.input(0).dtype, dims), tensor("uint32", (bits,))]


@operator("BiasSplitGelu", domain=DOMAIN)
def bias_split_gelu(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply one half of the last axis by the activation of the other half."""
    size = ranked_dims(ctx, 0, 3)[2]
    half = None if size is None else exact_quotient(ctx, size, 2, "the last dimension into halves")
    return shapes(ctx, "X: B S D", "bias: D", sizes={"E": half}, gives="0 B S E")


@operator("FusedMatMul", "FusedMatMulActivation", "TransposeMatMul", domain=DOMAIN)
def fused_matmul(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply matrices that may be transposed first."""
    a, b = dims_of(ctx, 0), dims_of(ctx, 1)
    a = transposed(a, _flag(ctx, "transA"), _flag(ctx, "transBatchA"))
    b = transposed(b, _flag(ctx, "transB"), _flag(ctx, "transBatchB"))
    return [tensor(known_dtype(ctx, (0, 1)), product_dims(ctx, a, b))]


def _flag(ctx: NodeContext, name: str) -> bool:
    return bool(int_attribute(ctx, name, 0))


@operator("MatMulNBits", "MatMulBnb4", "MatMulFpQ4", domain=DOMAIN)
def matmul_packed(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply by packed weights of K rows and N columns, which are attributes."""
    if ctx.node.op_type == "MatMulFpQ4" or not int_attribute(ctx, "transB", 1):
        return shapes(ctx, "A: ... K", gives="0 ... N")
    rows, columns = int_attribute(ctx, "K", 0), int_attribute(ctx, "N", 0)
    if rows < 1 or columns < 1:
        raise InvalidNode(f"K is {rows} and N is {columns}; both must be at least 1")
    return shapes(ctx, "A: ... K", sizes={"K": rows, "N": columns}, gives="0 ... N")


@operator("GatherBlockQuantized", gives=(2,), domain=DOMAIN)
def gather_block_quantized(ctx: NodeContext) -> Sequence[ValueType]:
    """Take rows of a quantised table, as floats. A byte may hold several elements of the last axis."""
    dtype, dims, indices = ctx.input(2).dtype, dims_of(ctx, 0), dims_of(ctx, 1)
    if dims is None or indices is None:
        return [tensor(dtype, None)]
    axis = normal_axis(int_attribute(ctx, "gather_axis", 0), len(dims), "gather_axis")
    sizes: list[DimLike] = list(dims)
    if ctx.input(0).dtype == "uint8":
        bits = int_attribute(ctx, "bits", 4)
        if bits not in (2, 4, 8):
            raise InvalidNode(f"bits is {bits}; it must be 2, 4 or 8")
        sizes[-1] = sizes[-1] * (8 // bits)
    return [tensor(dtype, (*sizes[:axis], *indices, *sizes[axis + 1 :]))]


@operator("ComplexMul", "ComplexMulConj", domain=DOMAIN)
def complex_product(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply complex numbers, whose parts are on the last axis."""
    return [tensor(known_dtype(ctx, (0, 1)), broadcast_dims(ctx, (dims_of(ctx, 0), dims_of(ctx, 1))))]


@operator("ExpandDims", domain=DOMAIN)
def expand_dims(ctx: NodeContext) -> Sequence[ValueType]:
    """Insert a dimension of 1 at an axis, counted in the output."""
    dims, axis = dims_of(ctx, 0), scalar_dim(ctx, 1)
    if dims is None:
        return [tensor(ctx.input(0).dtype, None)]
    if not isinstance(axis, int):
        return [tensor(ctx.input(0).dtype, (None,) * (len(dims) + 1))]
    where = normal_axis(axis, len(dims) + 1)
    return [tensor(ctx.input(0).dtype, (*dims[:where], 1, *dims[where:]))]


@operator("CropAndResize", domain=DOMAIN)
def crop_and_resize(ctx: NodeContext) -> Sequence[ValueType]:
    """Resize a region of an image for each box, to the height and width that the last input holds."""
    size = ctx.contents(3)
    sides = {} if size is None or len(size.dims) != 2 else dict(zip("HW", size.dims, strict=True))
    given = ("X: ? C ? ?", "rois: R 4", "batch_indices: R", "crop_size: 2")
    return shapes(ctx, *given, sizes=sides, gives="0 R C H W")


@operator("Tokenizer", gives=("string",), domain=DOMAIN)
def tokenizer(ctx: NodeContext) -> Sequence[ValueType]:
    """Split each text into tokens, padded to the longest list in a new last dimension. If there is no text, onnxruntime
    adds no dimension.
    """
    dims = dims_of(ctx, 0)
    if dims is not None and len(dims) not in (1, 2):
        raise InvalidNode(f"input 0 has rank {len(dims)}; it must have rank 1 or 2")
    if dims is not None and 0 in dims:
        return [tensor("string", (0,) if len(dims) == 1 else (dims[0], 0))]
    if dims is None or not all(ctx.facts.prove_ge(dim, 1) for dim in dims):
        return [tensor("string", None)]
    return [tensor("string", (*dims, None))]
