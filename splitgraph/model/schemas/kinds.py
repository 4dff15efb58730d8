"""What kind of operator it is, once for all who ask. A test holds each table against the inference rules.

An operator stands in one row of `_KINDS`: how the shape of its first result comes about, and what its numbers are. A
new operator that computes each element from one is a name in such a row: its shape, what it demands of its input, and
how it takes other element types, follow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from splitgraph.model.onnx_proto import NodeProto

LAYER_DOMAIN = "org.openvinotoolkit"


def names(text: str) -> frozenset[str]:
    """Return the names that a text lists."""
    return frozenset(text.split())


# By the shape of the first result, and by the numbers. The shapes:
# - each: an element is computed from the element of the first input at its place. Other inputs only fit the first one.
# - broadcasts: an element is computed from one element of each input.
# - keeps: the shape is that of the first input, but other elements are read, too, or parameters along an axis.
# - reduces: the first input is reduced along axes.
# The numbers:
# - picked: elements of the first input. placed: elements of any inputs, 0 or 1. An attribute may make them sums.
# - compared: truths about the order of numbers. ordered: the largest, the smallest, or where these are.
# - signed, whole: another sign, or no fraction. basic: the nearest number to a sum, a difference or a product.
# - added: sums and products of many numbers. divided: a quotient or remainder, exact if all numbers are integers.
# - rounded: computed from real numbers in any other way.
# - logical, bits, texts: of booleans, bits and texts. converted: to another type, or quantized.
# - drawn: by chance. made: of a shape, or of a few numbers that say what is made.
# - sizes: those of the first input, whatever its elements are.
_KINDS: Mapping[tuple[str, str], str] = {
    ("each", "picked"): "Identity",
    ("each", "compared"): "IsInf IsNaN",
    ("each", "ordered"): "Clip Relu Sign",
    ("each", "signed"): "Abs Neg",
    ("each", "whole"): "Ceil Floor Round",
    ("each", "logical"): "Not",
    ("each", "bits"): "BitwiseNot",
    ("each", "texts"): "RegexFullMatch",
    ("each", "converted"): "Cast CastLike",
    ("each", "rounded"): "Acos Acosh Affine Asin Asinh Atan Atanh Celu Cos Cosh Elu Erf Exp Gelu HardSigmoid HardSwish "
    "LeakyRelu Log Mish PRelu ParametricSoftplus Reciprocal Scale ScaledTanh Selu Shrink Sigmoid Sin Sinh Softplus "
    "Softsign Sqrt Swish Tan Tanh ThresholdedRelu",
    ("broadcasts", "placed"): "Where",
    ("broadcasts", "compared"): "Equal Greater GreaterOrEqual Less LessOrEqual",
    ("broadcasts", "ordered"): "Max Min",
    ("broadcasts", "basic"): "Add Mul Sub",
    ("broadcasts", "added"): "Sum",
    ("broadcasts", "divided"): "Div Mod",
    ("broadcasts", "logical"): "And Or Xor",
    ("broadcasts", "bits"): "BitShift BitwiseAnd BitwiseOr BitwiseXor",
    ("broadcasts", "texts"): "StringConcat",
    ("broadcasts", "rounded"): "Mean Pow",
    ("keeps", "picked"): "ReverseSequence",
    ("keeps", "placed"): "Scatter TensorScatter Trilu",
    ("keeps", "placed by default"): "ScatterElements ScatterND",
    ("keeps", "added"): "CumProd CumSum",
    ("keeps", "bits"): "BitCast",
    ("keeps", "converted"): "DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
    ("keeps", "drawn"): "Bernoulli Dropout RandomNormalLike RandomUniformLike",
    ("keeps", "made"): "EyeLike",
    ("keeps", "rounded"): "BatchNormalization CausalConvWithState GroupNormalization Hardmax InstanceNormalization LRN "
    "LayerNormalization LogSoftmax LpNormalization MeanVarianceNormalization RMSNormalization RotaryEmbedding Softmax "
    "SwiGLU",
    ("reduces", "ordered"): "ReduceMax ReduceMin",
    ("reduces", "added"): "ReduceProd ReduceSum ReduceSumSquare",
    ("reduces", "rounded"): "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean",
    ("", "picked"): "Compress DepthToSpace Expand Flatten Gather GatherElements GatherND Reshape SequenceAt "
    "SequenceErase Slice SpaceToDepth Split SplitToSequence Squeeze Tile Transpose Unsqueeze",
    ("", "placed"): "CenterCropPad Concat ConcatFromSequence MaxUnpool OneHot SequenceConstruct SequenceInsert",
    ("", "placed by default"): "Pad",
    ("", "compared"): "NonZero",
    ("", "drawn"): "Multinomial RandomNormal RandomUniform",
    (
        "",
        "made",
    ): "BlackmanWindow Constant ConstantOfShape HammingWindow HannWindow MelWeightMatrix Range SequenceEmpty",
    ("", "sizes"): "Shape Size",
    ("", "converted"): "QLinearConv QLinearMatMul",
    ("", "ordered"): "ArgMax ArgMin GlobalMaxPool MaxPool MaxRoiPool TopK Unique",
    ("", "added"): "ConvInteger Gemm MatMul MatMulInteger",
    ("", "rounded"): "AveragePool Conv ConvTranspose DeformConv Det Einsum GRU GlobalAveragePool GlobalLpPool "
    "GridSample LSTM LpPool NegativeLogLikelihoodLoss RNN Resize RoiAlign SoftmaxCrossEntropyLoss Upsample",
}


def _of(place: int, *kinds: str) -> frozenset[str]:
    return frozenset(name for kind, text in _KINDS.items() if kind[place] in kinds for name in text.split())


EACH, BROADCASTS, REDUCES = _of(0, "each"), _of(0, "broadcasts"), _of(0, "reduces")
BY_ELEMENT = EACH | BROADCASTS
# The first result is like the first input, but for its element type.
KEEPS_SHAPE = EACH | _of(0, "keeps")
REDUCTIONS = (*sorted(REDUCES),)
PICKED, PLACED, COMPARED, ORDERED = _of(1, "picked"), _of(1, "placed"), _of(1, "compared"), _of(1, "ordered")
SIGNED, WHOLE, BASIC, ADDED = _of(1, "signed"), _of(1, "whole"), _of(1, "basic"), _of(1, "added")
DIVIDED, ROUNDED, LOGICAL, BITS = _of(1, "divided"), _of(1, "rounded"), _of(1, "logical"), _of(1, "bits")
MADE, SIZES = _of(1, "drawn", "made"), _of(1, "sizes")
MOVED = PICKED | PLACED
# Operators that only move elements while an attribute has its default.
MOVED_BY_DEFAULT: Mapping[str, tuple[str, str]] = {
    "Pad": ("mode", "constant"),
    "ScatterElements": ("reduction", "none"),
    "ScatterND": ("reduction", "none"),
}
# Operators that give all elements of the first input in their order, so that only the shape is another; and those that
# give its axes in another order, or repeat them.
RESHAPES = names("Flatten Identity Reshape Squeeze Unsqueeze")
LAYOUT = RESHAPES | names("Expand Tile Transpose")
# Operators that compute along the same axes of their inputs.
CONVOLUTIONS = names("Conv ConvInteger ConvTranspose DeformConv QLinearConv")
POOLS = names("AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool")
PRODUCTS = names("Gemm MatMul MatMulInteger QLinearMatMul")
RECURRENT = names("GRU LSTM RNN")
# Operators that compute along all axes behind batch and channels, for each channel alone.
SPATIAL = POOLS | names("GridSample InstanceNormalization MaxRoiPool MaxUnpool Resize Upsample")
# Operators that say at which position of an axis its largest, or smallest, element stands.
ARG_REDUCES = names("ArgMax ArgMin")
# Operators that read, or write, at the positions that their second input holds.
READS_AT = names("Gather GatherElements GatherND")
WRITES_AT = names("Scatter ScatterElements ScatterND")
# Layers of OpenVINO that compute each element as an operator of onnx does, under its name or another one. Some read as
# inputs what the operator is told by attributes, or the other way round.
_SAME_LAYERS = names(
    "Abs Acos Acosh Add Asin Asinh Atan Atanh BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cos Cosh Elu Equal Erf Exp "
    "Floor Gelu Greater HardSigmoid IsInf IsNaN Less Log Mish Mod Relu Round Selu Sigmoid Sign Sin Sinh Sqrt Swish Tan "
    "Tanh"
)
LAYER_OPERATORS: Mapping[str, str] = {
    **{name: name for name in sorted(_SAME_LAYERS)},
    "BitwiseLeftShift": "BitShift",
    "BitwiseRightShift": "BitShift",
    "Ceiling": "Ceil",
    "ConvertLike": "CastLike",
    "Divide": "Div",
    "FloorMod": "Mod",
    "GreaterEqual": "GreaterOrEqual",
    "HSwish": "HardSwish",
    "LessEqual": "LessOrEqual",
    "LogicalAnd": "And",
    "LogicalNot": "Not",
    "LogicalOr": "Or",
    "LogicalXor": "Xor",
    "Maximum": "Max",
    "Minimum": "Min",
    "Multiply": "Mul",
    "Negative": "Neg",
    "PReLU": "PRelu",
    "Power": "Pow",
    "ReLU": "Relu",
    "Select": "Where",
    "SoftPlus": "Softplus",
    "SoftSign": "Softsign",
    "Subtract": "Sub",
}
LAYER_REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogicalAnd", "ReduceLogicalOr", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSum"),
)
# The inputs whose elements say the shape of a result, by operator: sizes, or the part of another input that is taken.
SHAPE_INPUTS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), (0,)),
    **dict.fromkeys(("AffineGrid", "CenterCropPad", "Expand", "OneHot", "Reshape", "Tile", "TopK", "Upsample"), (1,)),
    **dict.fromkeys(("Split", "SplitToSequence"), (1,)),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "CropAndResize": (3,),
    "DFT": (1, 2),
    "Loop": (0,),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Resize": (2, 3),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
}
# The same of OpenVINO's layers.
LAYER_SHAPE_INPUTS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("AdaptiveAvgPool", "AdaptiveMaxPool", "Broadcast", "Multinomial", "OneHot"), (1,)),
    **dict.fromkeys(("Reshape", "SparseFillEmptyRows", "Split", "Tile", "TopK"), (1,)),
    **dict.fromkeys(("BatchToSpace", "SpaceToBatch", "StridedSlice"), (1, 2, 3)),
    **dict.fromkeys(("Col2Im", "DFT", "IDFT", "IRDFT", "Interpolate", "Pad", "RDFT", "VariadicSplit"), (1, 2)),
    **dict.fromkeys(("ConvolutionBackpropData", "GroupConvolutionBackpropData", "NonMaxSuppression"), (2,)),
    **dict.fromkeys(("Loop", "PriorBox", "PriorBoxClustered", "RandomUniform"), (0,)),
    "EmbeddingSegmentsSum": (3,),
    "Eye": (0, 1, 3),
    "ISTFT": (2, 3, 4),
    "Range": (0, 1, 2),
    "STFT": (2, 3),
    "SegmentMax": (2,),
    "Slice": (1, 2, 3, 4),
}
# Parts of the names of operators that draw random numbers, in any domain. A Dropout has an input that says whether it
# does.
_DRAWING = ("Bernoulli", "BiasDropout", "BitmaskDropout", "Multinomial", "Random", "Sampling")
_TRAINING_INPUT = 2


def may_draw(node: NodeProto) -> bool:
    """Return True for an operator that may draw random numbers. Since opset 12 a Dropout does only where an input asks
    for it; before, none does when a model is run.
    """
    if node.op_type == "Dropout":
        return len(node.input) > _TRAINING_INPUT and bool(node.input[_TRAINING_INPUT])
    return any(part in node.op_type for part in _DRAWING)


def shape_inputs(node: NodeProto) -> tuple[int, ...]:
    """Return the inputs of a node, or of a layer in the mirror of an IR, whose elements say the shape of a result."""
    return (LAYER_SHAPE_INPUTS if node.domain == LAYER_DOMAIN else SHAPE_INPUTS).get(node.op_type, ())


def layers_like(operators: Collection[str]) -> frozenset[str]:
    """Return the layers that compute as some operators of onnx do."""
    return frozenset(layer for layer, operator in LAYER_OPERATORS.items() if operator in operators)
