"""The layers of OpenVINO's operator sets: which type and version a layer can have.

Source: the operator sets of openvino's Python package, and the layers that an IR has besides; the first set of each
is the first one that openvino reads it of.
"""

from __future__ import annotations

# The newest operator set, of OpenVINO 2026.4. A set has the layers of those before it.
NEWEST_SET = 17
_PREFIX = "opset"

# Each operator set, and the layers that came with it. OpenVINO also reads a few of later sets as layers of opset1.
_TEXT = """
1: AUGRUCell AUGRUSequence Abs Acos Add Asin Atan AvgPool BatchNormInference BinaryConvolution Broadcast
    CTCGreedyDecoder Ceiling Clamp Concat Const Convert ConvertLike Convolution ConvolutionBackpropData Cos Cosh
    DeformableConvolution DeformablePSROIPooling DepthToSpace DetectionOutput Divide Elu Equal Erf Exp
    FakeQuantize Floor FloorMod GRN Gather GatherTree Greater GreaterEqual GroupConvolution
    GroupConvolutionBackpropData HardSigmoid Interpolate LRN LSTMCell Less LessEqual Log LogicalAnd LogicalNot
    LogicalOr LogicalXor MVN MatMul MaxPool Maximum Minimum Mod Multiply Negative NonMaxSuppression NormalizeL2
    NotEqual OneHot PReLU PRelu PSROIPooling Pad Parameter Power PriorBox PriorBoxClustered Proposal RNNCell
    ROIPooling Range ReLU ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    RegionYolo Relu ReorgYolo Reshape Result Reverse ReverseSequence Select Selu ShapeOf ShuffleChannels Sigmoid
    Sign Sin Sinh SoftMax Softmax SpaceToDepth Split Sqrt SquaredDifference Squeeze StridedSlice Subtract Tan
    Tanh TensorIterator Tile TopK Transpose Unsqueeze VariadicSplit Xor
2: BatchToSpace Gelu SpaceToBatch
3: Assign Bucketize CumSum EmbeddingBagOffsetsSum EmbeddingBagPackedSum EmbeddingSegmentsSum ExtractImagePatches
    GRUCell NonZero ROIAlign ReadValue ScatterElementsUpdate ScatterUpdate
4: Acosh Asinh Atanh CTCLoss HSwish Mish ReduceL1 ReduceL2 ScatterNDUpdate SoftPlus Swish
5: GRUSequence GatherND HSigmoid LSTMSequence LogSoftmax Loop RNNSequence Round
6: CTCGreedyDecoderSeqLen ExperimentalDetectronDetectionOutput ExperimentalDetectronGenerateProposalsSingleImage
    ExperimentalDetectronPriorGridGenerator ExperimentalDetectronROIFeatureExtractor
    ExperimentalDetectronTopKROIs GatherElements
7: DFT Einsum IDFT Roll
8: AdaptiveAvgPool AdaptiveMaxPool I420toBGR I420toRGB If MatrixNms MulticlassNms NV12toBGR NV12toRGB
    RandomUniform Slice
9: Eye GenerateProposals GridSample IRDFT RDFT SoftSign
10: IsFinite IsInf IsNaN Unique
12: GroupNormalization
13: BitwiseAnd BitwiseNot BitwiseOr BitwiseXor FakeConvert Multinomial NMSRotated ScaledDotProductAttention
14: ConvertPromoteTypes Inverse
15: BitwiseLeftShift BitwiseRightShift Col2Im EmbeddingBagOffsets EmbeddingBagPacked ROIAlignRotated STFT
    SearchSorted SliceScatter StringTensorPack StringTensorUnpack
16: ISTFT Identity SegmentMax SparseFillEmptyRows
17: ErfInv GroupedMatMul
"""


def _parsed(text: str) -> dict[str, int]:
    """Return the first operator set of each layer, by the layer's type in lower case: no two types differ only in
    case.
    """
    since: dict[str, int] = {}
    number = 0
    for word in text.lower().split():
        if word.endswith(":"):
            number = int(word[:-1])
        else:
            since[word] = number
    return since


_SINCE = _parsed(_TEXT)


def fault_of_layer(type_: str, version: str) -> str | None:
    """Return why OpenVINO has no such layer; None for a layer that it has, and for a layer of an extension."""
    number = version.removeprefix(_PREFIX)
    if not version.startswith(_PREFIX):
        return None
    if not (number.isascii() and number.isdigit() and 1 <= int(number[:9]) <= NEWEST_SET):
        return f"OpenVINO has no operator set {version}; splitgraph knows opset1 to opset{NEWEST_SET}"
    since = _SINCE.get(type_.lower())
    if since is None:
        return f"OpenVINO has no layer {type_} in {version}"
    if int(number) < since:
        return f"OpenVINO has no layer {type_} in {version}; the layer came with {_PREFIX}{since}"
    return None
