"""The layers of OpenVINO's operator sets: which type and version a layer can have.

Source: the operator sets of openvino's Python package, and the layers that an IR has besides.
"""

from __future__ import annotations

# The newest operator set, of OpenVINO 2026.4. A set has the layers of those before it.
NEWEST_SET = 17
_PREFIX = "opset"

_TEXT = """
AUGRUCell AUGRUSequence Abs Acos Acosh AdaptiveAvgPool AdaptiveMaxPool Add Asin Asinh Assign Atan Atanh AvgPool
BatchNormInference BatchToSpace BinaryConvolution BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr
BitwiseRightShift BitwiseXor Broadcast Bucketize CTCGreedyDecoder CTCGreedyDecoderSeqLen CTCLoss Ceiling Clamp
Col2Im Concat Const Convert ConvertLike ConvertPromoteTypes Convolution ConvolutionBackpropData Cos Cosh CumSum
DFT DeformableConvolution DeformablePSROIPooling DepthToSpace DetectionOutput Divide Einsum Elu
EmbeddingBagOffsets EmbeddingBagOffsetsSum EmbeddingBagPacked EmbeddingBagPackedSum EmbeddingSegmentsSum Equal
Erf ErfInv Exp ExperimentalDetectronDetectionOutput ExperimentalDetectronGenerateProposalsSingleImage
ExperimentalDetectronPriorGridGenerator ExperimentalDetectronROIFeatureExtractor ExperimentalDetectronTopKROIs
ExtractImagePatches Eye FakeConvert FakeQuantize Floor FloorMod GRN GRUCell GRUSequence Gather GatherElements
GatherND GatherTree Gelu GenerateProposals Greater GreaterEqual GridSample GroupConvolution
GroupConvolutionBackpropData GroupNormalization GroupedMatMul HSigmoid HSwish HardSigmoid I420toBGR I420toRGB
IDFT IRDFT ISTFT Identity If Interpolate Inverse IsFinite IsInf IsNaN LRN LSTMCell LSTMSequence Less LessEqual
Log LogSoftmax LogicalAnd LogicalNot LogicalOr LogicalXor Loop MVN MatMul MatrixNms MaxPool Maximum Minimum Mish
Mod MulticlassNms Multinomial Multiply NMSRotated NV12toBGR NV12toRGB Negative NonMaxSuppression NonZero
NormalizeL2 NotEqual OneHot PReLU PRelu PSROIPooling Pad Parameter Power PriorBox PriorBoxClustered Proposal
RDFT RNNCell RNNSequence ROIAlign ROIAlignRotated ROIPooling RandomUniform Range ReLU ReadValue ReduceL1
ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum RegionYolo Relu
ReorgYolo Reshape Result Reverse ReverseSequence Roll Round STFT ScaledDotProductAttention ScatterElementsUpdate
ScatterNDUpdate ScatterUpdate SearchSorted SegmentMax Select Selu ShapeOf ShuffleChannels Sigmoid Sign Sin Sinh
Slice SliceScatter SoftMax SoftPlus SoftSign Softmax SpaceToBatch SpaceToDepth SparseFillEmptyRows Split Sqrt
SquaredDifference Squeeze StridedSlice StringTensorPack StringTensorUnpack Subtract Swish Tan Tanh
TensorIterator Tile TopK Transpose Unique Unsqueeze VariadicSplit Xor
"""
# Case tells no two of them apart.
_TYPES = frozenset(_TEXT.lower().split())


def fault_of_layer(type_: str, version: str) -> str | None:
    """Why OpenVINO has no such layer; None for a layer that it has, and for one of an extension."""
    number = version.removeprefix(_PREFIX)
    if not version.startswith(_PREFIX):
        return None
    if not (number.isascii() and number.isdigit() and 1 <= int(number[:9]) <= NEWEST_SET):
        return f"OpenVINO has no operator set {version}; splitgraph knows opset1 to opset{NEWEST_SET}"
    if type_.lower() not in _TYPES:
        return f"OpenVINO has no layer {type_} in {version}"
    return None
