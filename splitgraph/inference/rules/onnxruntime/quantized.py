"""Quantised operators of onnxruntime (domain com.microsoft)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext, rule
from splitgraph.inference.rules.broadcasting import broadcast_dims
from splitgraph.inference.rules.onnx.convolution import convolved, pooled_dims
from splitgraph.inference.rules.onnx.elementwise import same_type
from splitgraph.inference.rules.onnx.joining import joined_dims
from splitgraph.inference.rules.onnx.matmul import product_dims, product_of_matrices
from splitgraph.inference.rules.onnx.quantization import check_quantized_conv, check_scale
from splitgraph.inference.rules.onnx.reduction import reduced_dims
from splitgraph.inference.rules.operands import (
    InvalidNode,
    dims_of,
    int_attribute,
    ints_attribute,
    normal_axes,
    normal_axis,
    operator,
    ranked_dims,
)
from splitgraph.inference.rules.signatures import ONE, PER_COLUMN, expect_shapes, shapes
from splitgraph.model.value_type import ValueType, tensor

DOMAIN = "com.microsoft"

rule("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", domain=DOMAIN)(same_type)


@operator("QuantizeLinear", gives=(2,), domain=DOMAIN)
def quantize_linear(ctx: NodeContext) -> Sequence[ValueType]:
    """Round to integers in the type of the zero point, uint8 without one."""
    check_scale(ctx)
    return [tensor(ctx.input(2).dtype if ctx.has_input(2) else "uint8", dims_of(ctx, 0))]


@operator("DequantizeLinear", gives=(1,), domain=DOMAIN)
def dequantize_linear(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute floats in the type of the scale."""
    check_scale(ctx)
    return [tensor(ctx.input(1).dtype, dims_of(ctx, 0))]


@operator("DynamicQuantizeMatMul", domain=DOMAIN)
def dynamic_quantize_matmul(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply a float matrix by a quantised one."""
    columns = _columns(ctx, 1)
    shapes = (f"b_scale: {PER_COLUMN}", f"b_zero_point: {PER_COLUMN}", "bias: N")
    expect_shapes(ctx, "", "", *shapes, sizes={"N": columns})
    return [tensor(ctx.input(0).dtype, product_dims(ctx, dims_of(ctx, 0), dims_of(ctx, 1)))]


@operator("MatMulIntegerToFloat", gives=(2,), domain=DOMAIN)
def matmul_integer_to_float(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply two quantised matrices, in the type of their scales."""
    scales, zeros = (
        (f"a_scale: {ONE}", f"b_scale: {PER_COLUMN}"),
        (f"a_zero_point: {ONE}", f"b_zero_point: {PER_COLUMN}"),
    )
    expect_shapes(ctx, "", "", *scales, *zeros, "bias: N", sizes={"N": _columns(ctx, 1)})
    return [tensor(ctx.input(2).dtype, product_dims(ctx, dims_of(ctx, 0), dims_of(ctx, 1)))]


def _columns(ctx: NodeContext, index: int) -> DimLike | None:
    dims = dims_of(ctx, index)
    return dims[-1] if dims is not None and len(dims) > 1 else None


@operator("MatMulInteger16", gives=("int32",), domain=DOMAIN)
def matmul_integer_16(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply 16-bit integers in 32 bits."""
    return [tensor("int32", product_dims(ctx, dims_of(ctx, 0), dims_of(ctx, 1)))]


@operator("QGemm", gives=(None,), domain=DOMAIN)
def gemm(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply two quantised matrices. The result is quantised if there is a zero point for it."""
    shape = product_of_matrices(ctx, 0, 3)
    dtype = ctx.input(8).dtype if ctx.has_input(8) else ctx.input(1).dtype
    return [tensor(dtype, shape)]


@operator("QLinearAdd", "QLinearMul", domain=DOMAIN)
def arithmetic(ctx: NodeContext) -> Sequence[ValueType]:
    """Broadcast quantised operands to one shape."""
    return [tensor(ctx.input(0).dtype, broadcast_dims(ctx, (dims_of(ctx, 0), dims_of(ctx, 3))))]


@operator("QLinearWhere", gives=(1,), domain=DOMAIN)
def where(ctx: NodeContext) -> Sequence[ValueType]:
    """Choose elements of two quantised inputs by the first input."""
    return [tensor(ctx.input(1).dtype, broadcast_dims(ctx, [dims_of(ctx, index) for index in (0, 1, 4)]))]


@operator("QLinearConcat", gives=(1,), domain=DOMAIN)
def concat(ctx: NodeContext) -> Sequence[ValueType]:
    """Join quantised inputs, each with its scale and zero point, along the axis."""
    dtype = ctx.input(1).dtype
    shapes = [dims_of(ctx, index) for index in range(2, len(ctx.node.input), 3)]
    known = [dims for dims in shapes if dims is not None]
    if not known:
        return [tensor(dtype, None)]
    rank = len(known[0])
    if any(len(dims) != rank for dims in known):
        raise InvalidNode(f"the inputs must have the same rank, not the ranks {sorted({len(dims) for dims in known})}")
    return [tensor(dtype, joined_dims(ctx, shapes, normal_axis(int_attribute(ctx, "axis", 1), rank)))]


@operator("QLinearConv", gives=(7,), domain=DOMAIN)
def conv(ctx: NodeContext) -> Sequence[ValueType]:
    """Convolve quantised tensors, whose channels may come last. The weights are laid out as ever."""
    dtype, data, weights = ctx.input(7).dtype, dims_of(ctx, 0), dims_of(ctx, 3)
    check_quantized_conv(ctx)
    last = bool(int_attribute(ctx, "channels_last", 0))
    if data is not None and last and len(data) > 2:
        data = (data[0], data[-1], *data[1:-1])
    result = convolved(ctx, data, weights, 8)
    if last and result is not None:
        result = (result[0], *result[2:], result[1])
    return [tensor(dtype, result)]


@operator("QLinearAveragePool", domain=DOMAIN)
def average_pool(ctx: NodeContext) -> Sequence[ValueType]:
    """Average each window of a quantised tensor, whose channels may come last."""
    dims = dims_of(ctx, 0)
    last = bool(int_attribute(ctx, "channels_last", 0))
    if dims is not None and last and len(dims) > 2:
        dims = (dims[0], dims[-1], *dims[1:-1])
    result = pooled_dims(ctx, dims)
    if last and result is not None:
        result = (result[0], *result[2:], result[1])
    return [tensor(ctx.input(0).dtype, result)]


@operator("QLinearGlobalAveragePool", domain=DOMAIN)
def global_average_pool(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute one number for each channel of a quantised tensor."""
    dims = dims_of(ctx, 0)
    if dims is None:
        return [tensor(ctx.input(0).dtype, None)]
    if len(dims) < 3:
        raise InvalidNode(f"the input has rank {len(dims)}; it must have batch, channels and a spatial dimension")
    sides = (1,) * (len(dims) - 2)
    last = int_attribute(ctx, "channels_last", 0)
    return [tensor(ctx.input(0).dtype, (dims[0], *sides, dims[-1]) if last else (*dims[:2], *sides))]


@operator("QLinearReduceMean", domain=DOMAIN)
def reduce_mean(ctx: NodeContext) -> Sequence[ValueType]:
    """Average a quantised tensor over the axes."""
    dims, axes = dims_of(ctx, 0), ints_attribute(ctx, "axes")
    if dims is None:
        return [tensor(ctx.input(0).dtype, None)]
    chosen = normal_axes(axes, len(dims)) if axes else tuple(range(len(dims)))
    return [tensor(ctx.input(0).dtype, reduced_dims(dims, chosen, bool(int_attribute(ctx, "keepdims", 1))))]


@operator("DynamicQuantizeLSTM", gives=(0, 0, 0), domain=DOMAIN)
def dynamic_quantize_lstm(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute all hidden states, the last ones, and the last cell states, for each direction. Weights are transposed:
    their last axis has the rows of the four gates.
    """
    hidden: DimLike | None = ranked_dims(ctx, 2, 3)[1]
    if ctx.has_attribute("hidden_size"):
        hidden = int_attribute(ctx, "hidden_size", 0)
    scale, state = "D | D G", "D B H"
    counts = {"G": 4, "F": 8, "E": 3}
    parts = {letter: None if hidden is None else count * hidden for letter, count in counts.items()}
    directions = 2 if ctx.attribute("direction", "forward") == "bidirectional" else 1
    return shapes(
        ctx,
        *("X: T B I", "W: D I G", "R: D H G", "B: D F", "sequence_lens: B"),
        *(f"initial_h: {state}", f"initial_c: {state}", "P: D E"),
        *(f"W_scale: {scale}", f"W_zero_point: {scale}", f"R_scale: {scale}", f"R_zero_point: {scale}"),
        sizes={"D": directions, "H": hidden, **parts},
        gives=("0 T D B H", f"0 {state}", f"0 {state}"),
    )


# Operators of onnxruntime-extensions ----------------------------------------------------------------------------------


_DOMAINS = ("ai.onnx.contrib", "com.microsoft.extensions")

# The element type of each output; nothing is said of further ones.
_TYPES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("BertTokenizer", "HfBertTokenizer", "GPT2Tokenizer", "CLIPTokenizer", "RobertaTokenizer", "HfJsonTokenizer"),
        ("int64", "int64", "int64"),
    ),
    **dict.fromkeys(("BertTokenizerDecoder", "BpeDecoder", "SentencepieceDecoder", "TrieDetokenizer"), ("string",)),
    **dict.fromkeys(("BasicTokenizer", "BlingFireSentenceBreaker"), ("string",)),
    "WordpieceTokenizer": ("string", "int32", "int64"),
    "SentencepieceTokenizer": ("int32", "int64"),
    "TrieTokenizer": ("int64",),
    "StringSplit": ("int64", "string", "int64"),
    "StringRegexSplitWithOffsets": ("string", "int64", "int64"),
    "StringECMARegexSplitWithOffsets": ("string", "int64", "int64"),
    **dict.fromkeys(("StringConcat", "StringJoin", "StringSlice", "VectorToString", "StringMapping"), ("string",)),
    **dict.fromkeys(("StringToVector", "RaggedTensorToDense"), ("int64",)),
    **dict.fromkeys(("DecodeImage", "EncodeImage", "DrawBoundingBoxes"), ("uint8",)),
    "AudioDecoder": ("float32",),
}
# Those that give one element for each of the first input.
_FOR_EACH: Mapping[str, str] = {
    **dict.fromkeys(("StringUpper", "StringLower", "StringStrip"), "string"),
    **dict.fromkeys(("StringRegexReplace", "StringECMARegexReplace"), "string"),
    **dict.fromkeys(("StringLength", "StringHash", "StringHashFast"), "int64"),
    **dict.fromkeys(("StringToHashBucket", "StringToHashBucketFast"), "int64"),
}


def _typed(ctx: NodeContext) -> Sequence[ValueType]:
    return [tensor(dtype, None) for dtype in _TYPES[ctx.node.op_type]]


def _for_each(ctx: NodeContext) -> Sequence[ValueType]:
    return [tensor(_FOR_EACH[ctx.node.op_type], dims_of(ctx, 0))]


for _domain in _DOMAINS:
    rule(*_TYPES, domain=_domain)(_typed)
    rule(*_FOR_EACH, domain=_domain)(_for_each)
