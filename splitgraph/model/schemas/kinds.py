"""What kind of operator it is, once for all who ask. A test holds each table against the inference rules."""

from __future__ import annotations

from collections.abc import Mapping

from splitgraph.model.onnx_proto import NodeProto

LAYER_DOMAIN = "org.openvinotoolkit"

REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"),
    *("ReduceSum", "ReduceSumSquare"),
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
