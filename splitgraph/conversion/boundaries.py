"""Every place where an operator of ai.onnx changed, and what was decided about it.

Each decision was derived from the signatures of both versions and the differences between their documents (onnx.defs).
KEPT: the operator means the same wherever both schemas allow the node (attributes, inputs, outputs, types: the schema
guard); an attribute that one version lacks means at its default what the operator does without it, and what a later
document only words better is the same. RULES: the meaning changed, or which values are allowed. A boundary is named by
the first opset of the newer version.
"""

from __future__ import annotations

from dataclasses import dataclass

from splitgraph.conversion import shape_rules, value_rules
from splitgraph.conversion.boundary_crossing import Crossing, Predicate


def always(_: Crossing) -> bool:
    """In this direction only the schemas differ."""
    return True


def never(_: Crossing) -> bool:
    """The node alone cannot be exact: other nodes or inputs would be needed."""
    return False


# These have conversions of their own, between all their versions.
SPLIT_OPERATORS = frozenset({"Split", "SplitToSequence", "StringSplit"})


@dataclass(frozen=True, slots=True)
class Rule:
    """A boundary at which keeping a node is exact only when a predicate says so.

    reason: what changed, completing "<operator> changes at opset N: ...". up, down: when keeping is exact in that
    direction. hint: what else could help the user besides stopping before the boundary.
    """

    reason: str
    up: Predicate = never
    down: Predicate = never
    hint: str = ""


_KEPT_BY_VERSIONS: dict[tuple[int, ...], str] = {
    (2, 11, 18): "LpPool",
    (2, 22): "GlobalLpPool",
    (6, 9, 11, 13): "Gemm",
    (6, 9, 16): "PRelu",
    (6, 12, 13): "Max Min",
    (6, 13): "Abs Ceil Exp Floor Log Mean Neg Reciprocal Sigmoid Sqrt Sum Tanh",
    (6, 13, 14): "Add Div Mul Relu Sub",
    (6, 13, 22): "Dropout",
    (6, 16): "LeakyRelu",
    (6, 22): "Elu HardSigmoid Selu",
    (7, 10, 11, 19): "AveragePool",
    (8, 10, 11, 12): "MaxPool",
    (9,): "BatchNormalization",
    (9, 11, 13, 19, 21, 23, 24, 25): "Constant",
    (9, 13): "Greater Less MatMul",
    (9, 13, 19, 21, 23, 25, 28): "Cast",
    (9, 13, 21, 23, 24, 25): "Flatten",
    (11,): "NonMaxSuppression",
    (11, 13): "Gather",
    (11, 13, 16, 19, 21, 23, 24, 25): "Loop",
    (11, 13, 19): "Equal",
    (11, 13, 28): "DepthToSpace",
    (11, 22): "Conv MaxUnpool",
    (11, 24): "TopK",
    (12, 13): "ArgMax ArgMin Clip GatherND",
    (12, 13, 15): "Pow",
    (12, 13, 20): "ReduceMax ReduceMin",
    (13,): (
        "Concat Erf Expand GatherElements LRN Mod NonZero ReduceL1 ReduceL2 ReduceMean "
        "ReduceProd ReduceSumSquare Sign Slice SoftmaxCrossEntropyLoss Tile"
    ),
    (13, 14, 16, 19, 21, 23, 24, 25): "Identity",
    (13, 14, 19, 21, 23, 24, 25): "Reshape",
    (13, 15, 19, 21, 23, 24, 25): "Shape",
    (13, 16): "ScatterElements ScatterND",
    (13, 16, 19, 21, 23, 24, 25): "If",
    (13, 18, 21, 23, 24, 25): "Pad",
    (13, 19, 21, 23, 24, 25): "Size",
    (13, 20): "IsNaN",
    (13, 21, 23, 24, 25): "Transpose",
    (13, 22): "NegativeLogLikelihoodLoss",
    (13, 28): "ReduceLogSum ReduceLogSumExp SpaceToDepth",
    (14,): "CumSum",
    (14, 22): "GRU LSTM RNN",
    (16,): "GreaterOrEqual LessOrEqual Where",
    (16, 19, 21, 23, 24, 25): "Scan",
    (18,): "Resize",
    (18, 28): "OptionalGetElement OptionalHasElement",
    (19, 21, 23, 24, 25, 28): "DequantizeLinear QuantizeLinear",
    (19, 21, 23, 25): "CastLike",
    (20,): "IsInf",
    (20, 21, 23, 24, 25): "ConstantOfShape",
    (21,): "QLinearMatMul",
    (21, 23, 24, 25): "Squeeze Unsqueeze",
    (22,): (
        "Acos Acosh Asin Asinh Atan Atanh Bernoulli ConvTranspose Cos Cosh DeformConv Det EyeLike "
        "GlobalAveragePool GlobalMaxPool GridSample HardSwish InstanceNormalization LpNormalization MaxRoiPool "
        "Mish Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike RoiAlign Round Sin Sinh "
        "Softplus Softsign Tan ThresholdedRelu"
    ),
    (27,): "Range",
    (28,): "Celu Compress Einsum OneHot Optional ReverseSequence Unique",
}
KEPT: frozenset[tuple[str, int]] = frozenset(
    (op, version) for versions, ops in _KEPT_BY_VERSIONS.items() for op in ops.split() for version in versions
)


def _each(ops: str, version: int, rule: Rule) -> dict[tuple[str, int], Rule]:
    return {(op, version): rule for op in ops.split()}


_SHAPES_HINT = "or give the inputs static shapes"
_BRANCH_HINT = "or declare the shapes of what the branches give"
_RANK_HINT = "or declare the shape of the input"
_MINUS_AXIS = "below it, an axis must not be negative"
_AXES_INPUT = "the attribute axes became an input"

RULES: dict[tuple[str, int], Rule] = {
    **_each(
        "Add Sub Mul Div And Or Xor Equal Greater Less Pow",
        7,
        Rule(
            "below it, the second input broadcasts only with broadcast=1, along `axis`; from then on as in NumPy",
            shape_rules.limited_broadcast_is_numpy,
            shape_rules.numpy_broadcast_is_limited,
            _SHAPES_HINT,
        ),
    ),
    **_each(
        "Max Mean Min Sum",
        8,
        Rule("below it, all inputs must have the same shape", always, shape_rules.shapes_equal, _SHAPES_HINT),
    ),
    ("Gemm", 7): Rule(
        "below it, C broadcasts only with broadcast=1, and only when it is one element or a row",
        shape_rules.gemm_drops_broadcast,
        shape_rules.gemm_broadcasts_suffix,
        _SHAPES_HINT,
    ),
    ("PRelu", 7): Rule(
        "below it, a slope of length C is for each channel; from then on it broadcasts as in NumPy",
        shape_rules.slope_is_shared_or_last,
        shape_rules.slope_is_shared_or_last,
        _SHAPES_HINT,
    ),
    # Training and inference
    ("BatchNormalization", 6): Rule(
        "below it, the input has four dimensions", always, shape_rules.rank_is_4, _RANK_HINT
    ),
    ("BatchNormalization", 7): Rule(
        "below it, is_test tells inference from training; from then on the number of outputs does",
        value_rules.batch_normalization_mode,
        value_rules.batch_normalization_mode,
    ),
    ("BatchNormalization", 14): Rule(
        "below it, training has five outputs; from then on three, with training_mode=1",
        value_rules.batch_normalization_inference,
        value_rules.batch_normalization_inference,
    ),
    ("BatchNormalization", 15): Rule(
        "from it on, training computes the statistics of 16-bit inputs in float32",
        value_rules.batch_statistics_in_float,
        value_rules.batch_statistics_in_float,
    ),
    ("Dropout", 7): Rule(
        "below it, is_test tells inference from training, and inference fills in no mask",
        value_rules.dropout_test_mode,
        value_rules.dropout_test_mode,
    ),
    ("Dropout", 10): Rule("the mask became boolean", value_rules.mask_unused, value_rules.mask_unused),
    ("Dropout", 12): Rule(
        "the attribute ratio became an input, training_mode was added, and the mask of inference is all ones",
        value_rules.dropout_without_ratio,
        value_rules.dropout_without_ratio,
    ),
    ("InstanceNormalization", 6): Rule(
        "below it, the input has four dimensions", always, shape_rules.rank_is_4, _RANK_HINT
    ),
    ("GRU", 3): Rule("the default direction was misspelt below it", value_rules.gru_direction, always),
    **_each(
        "GRU LSTM RNN",
        7,
        Rule(
            "below it, output_sequence=1 says that Y is wanted",
            value_rules.sequence_output,
            value_rules.sequence_output,
        ),
    ),
    # Attributes that became inputs
    ("Reshape", 5): Rule("the attribute shape became an input"),
    ("Tile", 6): Rule("the inputs tiles and axis became one input repeats"),
    ("Upsample", 7): Rule("the attributes height_scale and width_scale became scales"),
    ("Upsample", 9): Rule("the attribute scales became an input"),
    ("Slice", 10): Rule("the attributes starts, ends and axes became inputs"),
    ("TopK", 10): Rule("the attribute k became an input"),
    ("Clip", 11): Rule(
        "the attributes min and max became inputs", value_rules.clip_without_bounds, value_rules.clip_without_bounds
    ),
    ("Pad", 11): Rule("the attributes pads and value became inputs"),
    ("ReduceSum", 13): Rule(_AXES_INPUT, shape_rules.reduces_all_axes, shape_rules.reduces_all_axes),
    ("Squeeze", 13): Rule(_AXES_INPUT, shape_rules.squeezes_all_ones, shape_rules.squeezes_all_ones),
    ("Unsqueeze", 13): Rule(_AXES_INPUT),
    **_each(
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare",
        18,
        Rule(_AXES_INPUT, shape_rules.reduces_all_axes, shape_rules.reduces_all_axes),
    ),
    ("DFT", 20): Rule(
        "the attribute axis became an input, and the default axis changed from 1 to the last but one",
        shape_rules.dft_axis,
        shape_rules.dft_axis,
        _RANK_HINT,
    ),
    # Axes
    ("Concat", 4): Rule(
        "below it, the default axis is 1; from then on the axis must be given", shape_rules.concat_axis_written, always
    ),
    **_each(
        "ArgMax ArgMin Compress Concat Flatten Hardmax LogSoftmax Softmax",
        11,
        Rule(_MINUS_AXIS, always, shape_rules.axes_counted_from_front("axis"), _RANK_HINT),
    ),
    **_each(
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
        "ReduceSumSquare",
        11,
        Rule(_MINUS_AXIS, always, shape_rules.axes_counted_from_front("axes"), _RANK_HINT),
    ),
    ("Squeeze", 11): Rule(_MINUS_AXIS, always, shape_rules.squeezed_axes_in_order, _RANK_HINT),
    ("Unsqueeze", 11): Rule(
        _MINUS_AXIS, always, shape_rules.axes_counted_from_front("axes", rank_of_output=True), _RANK_HINT
    ),
    ("Scan", 11): Rule(_MINUS_AXIS, always, shape_rules.scan_axes_counted_from_front),
    ("Slice", 11): Rule(
        "below it, the axes must not be negative, and here they are an input", always, shape_rules.no_axes_input(3)
    ),
    ("OneHot", 11): Rule(
        "below it, negative indices give no hot value; from then on they count from the end",
        shape_rules.index_cannot_be_negative,
        shape_rules.one_hot_downward,
    ),
    **_each(
        "Hardmax LogSoftmax Softmax",
        13,
        Rule(
            "below it, all dimensions from axis (1 by default) on are normalized together; from then on, only the axis "
            "(-1 by default)",
            shape_rules.normalizes_last_axis,
            shape_rules.normalizes_last_axis,
            _RANK_HINT,
        ),
    ),
    # Values of attributes
    ("Pad", 2): Rule("paddings was renamed to pads, and Pad-1's document contradicts its own example on their order"),
    ("Cast", 6): Rule(
        "the target type changed from a name to a number",
        value_rules.cast_target_spelling,
        value_rules.cast_target_spelling,
    ),
    ("Clip", 6): Rule(
        "below it, an absent bound is the limit of the type; from then on that of float32",
        value_rules.clip_bounds_agree,
        value_rules.clip_bounds_agree,
    ),
    ("ConvTranspose", 11): Rule(
        "padding worked out from auto_pad or output_shape is distributed the other way round",
        value_rules.transposed_padding_is_explicit,
        value_rules.transposed_padding_is_explicit,
    ),
    ("Constant", 12): Rule(
        "constants given as value_int, value_floats and so on were added", always, value_rules.constant_as_tensor
    ),
    **_each(
        "QuantizeLinear DequantizeLinear",
        13,
        Rule(
            "below it, there is one scale for the whole tensor",
            always,
            shape_rules.scale_is_scalar,
            "or declare the scale a scalar",
        ),
    ),
    ("Resize", 13): Rule(
        "tf_half_pixel_for_nn was removed, and sizes may no longer come together with (empty) scales",
        value_rules.resize_mode_survives,
        always,
    ),
    ("RoiAlign", 16): Rule(
        "the default shift by half a pixel was added, and runtimes changed what mode=max computes",
        value_rules.roi_pixel_shift,
        value_rules.roi_pixel_shift,
    ),
    **_each(
        "ScatterElements ScatterND",
        18,
        Rule(
            "reduction=max and min were added",
            always,
            value_rules.value_in("reduction", "none", "none", "add", "mul"),
        ),
    ),
    ("Pad", 19): Rule(
        "mode=wrap was added", always, value_rules.value_in("mode", "constant", "constant", "reflect", "edge")
    ),
    ("MeanVarianceNormalization", 13): Rule(
        "from then on, onnx's shape inference fails on it without axes", value_rules.mean_variance_axes, always
    ),
    ("Resize", 19): Rule("half_pixel_symmetric was added", always, value_rules.resize_mode_existed),
    ("GridSample", 20): Rule(
        "modes were renamed, and inputs that are not images were added",
        value_rules.grid_sample_mode,
        value_rules.grid_sample_mode,
        _RANK_HINT,
    ),
    **_each(
        "AveragePool LpPool MaxPool",
        22,
        Rule(
            "with ceil_mode=1, windows that start in the padding at the end are left out from then on",
            shape_rules.windows_start_inside,
            shape_rules.windows_start_inside,
        ),
    ),
    **_each(
        "Cast CastLike",
        24,
        Rule(
            "saturating infinity to float8 FNUZ types gives NaN below it, the greatest value from then on",
            value_rules.float8_infinity_unaffected,
            value_rules.float8_infinity_unaffected,
        ),
    ),
    ("BitShift", 28): Rule("below it, shifts by as many bits as the type has, or more, are undefined", always),
    ("Mod", 28): Rule("fmod=0 on floats was added", always, value_rules.modulus_of_integers),
    # Other changes of meaning
    ("Scan", 9): Rule("the batch axis and sequence_lens were removed"),
    ("Upsample", 10): Rule("it is deprecated from then on; Resize replaces it"),
    ("Scatter", 11): Rule("it is deprecated from then on; ScatterElements replaces it"),
    ("If", 11): Rule(
        "below it, both branches must give the same shapes",
        always,
        shape_rules.branches_give_equal_shapes,
        _BRANCH_HINT,
    ),
    ("Resize", 11): Rule(
        "the inputs changed, and the way coordinates are transformed, implicit below it, became an attribute"
    ),
    ("ConstantFill", 9): Rule("it was experimental, and is gone from then on; ConstantOfShape replaces it"),
    ("GroupNormalization", 21): Rule("scale and bias are for each channel, not for each group, from then on"),
    ("Attention", 24): Rule(
        "a mask shorter than the keys is broadcast below it, padded with -inf from then on",
        shape_rules.mask_covers_all_keys,
        shape_rules.mask_covers_all_keys,
        "or declare the shapes of mask and key",
    ),
    ("Attention", 25): Rule(
        "from it on, the past or present of keys and values must be given together and not with nonpad_kv_seqlen, and "
        "inputs of rank 4 take no number of heads",
        shape_rules.attention_is_given_whole,
        always,
    ),
}


def decision(op: str, version: int) -> Rule | None:
    """The rule of the boundary at which `version` is the newer one; None when only the schemas differ."""
    if (op, version) in KEPT:
        return None
    return RULES.get((op, version), UNDECIDED)


UNDECIDED = Rule("this version of splitgraph does not know what changed", hint="or install a newer splitgraph")
