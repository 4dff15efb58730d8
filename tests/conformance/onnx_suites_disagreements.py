"""Where splitgraph and onnx's own tests disagree: who is right, and why. A test compares this list with what is found.

Each entry: the outcome as `onnx_suites.judge` names it, who is right ("splitgraph", "onnx", "both" where the
specification leaves it open), why, and the tests.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Right = Literal["splitgraph", "onnx", "both"]


class Group(NamedTuple):
    """Tests that disagree for one reason."""

    outcome: str
    right: Right
    why: str
    tests: tuple[str, ...]


_INFER, _CONVERT, _UP, _DOWN = (
    "shape_inference_test",
    "version_converter_test",
    "automatic_upgrade_test",
    "automatic_downgrade_test",
)


def _named(suite: str, *tests: str) -> tuple[str, ...]:
    return tuple(f"{suite}::test_{test}" for test in tests)


GROUPS = (
    Group(
        "refuses",
        "splitgraph",
        "the coefficients are for an input of 2 columns, and the input has 5 (onnxruntime refuses to run the model)",
        _named(_INFER, "linearclassifier_2D_input"),
    ),
    Group(
        "refuses",
        "splitgraph",
        "the model is invalid: the test gives each input the same type or shape, whatever the operator takes, and "
        "onnx's converter does not look (runtimes refuse the model)",
        _named(
            _UP,
            *("AffineGrid_2D", "AffineGrid_3D", "Col2Im_4D", "Col2Im_5D", "ConstantOfShape", "Conv_3"),
            *("GatherElements", "GatherND", "GRU_1", "GRU_2", "GRU_3", "LSTM_1", "LSTM_2", "LSTM_3"),
            *(
                "NonMaxSuppression",
                "QLinearConv",
                "QLinearMatMul",
                "RNN_1",
                "RNN_2",
                "RNN_3",
                "ScatterND_1",
                "ScatterND_2",
            ),
            *("SoftmaxCrossEntropyLoss", "TfIdfVectorizer", "DFT", "CenterCropPad", "StringConcat"),
            *("Convinteger", "RotaryEmbedding_5", "STFT"),
        )
        + _named(
            _CONVERT,
            "concat_3_5",
            "split_with_optional_input",
            "quantize_21_20",
            "dequantize_21_20",
            "if_subgraph_10_11",
        )
        + _named(_INFER, "rnn_layout", "onehot_empty_depth", "resize_size", "parse_data_with_unsupported_tensor_type")
        + _named(_INFER, "parse_data_with_undefined_tensor_type"),
    ),
    Group(
        "refuses",
        "splitgraph",
        "the operator was removed before this opset; onnx uses its last version",
        _named(_INFER, "upsample", "upsample_raw_data", "scatter", "scatter_axis1"),
    ),
    Group(
        "refuses",
        "splitgraph",
        "the elements of the sequence have ranks or dimensions that no concatenation fits, as the test wants to see "
        "what is inferred of them",
        _named(
            _INFER,
            *("concat_from_sequence_unknown_shape", "concat_from_sequence_unknown_dim_size"),
            *("concat_from_sequence_axis", "concat_from_sequence_neg_axis"),
        ),
    ),
    Group(
        "refuses",
        "both",
        "onnx casts unsigned integers to float and back, which loses digits; splitgraph is exact or refuses",
        _named(_CONVERT, "prelu_9_8", "matmul_9_8", "gemm_9_8"),
    ),
    Group(
        "refuses",
        "both",
        "the scales are an initializer that is an input as well, which a caller may replace; onnx takes it for "
        "constant",
        _named(
            _CONVERT,
            *("upsample_with_initializer_9_8", "upsample_with_long_initializer_name_9_8"),
            "upsample_with_raw_initializer_9_8",
        ),
    ),
    Group(
        "refuses",
        "splitgraph",
        "BatchNormalization below opset 6 takes four dimensions and needs consumed_inputs, which the test leaves out",
        _named(_CONVERT, "batch_normalization_8_5", "batch_normalization_5_8"),
    ),
    Group(
        "accepts",
        "splitgraph",
        "the conversion is exact: other operators, another type or the function body replace the operator; "
        "onnx's converter has no such rewrite",
        _named(
            _CONVERT,
            *("quantize_21_20", "dequantize_21_20", "where_bfloat16_16_15_fails", "scatter_16_15_bfloat16_fails"),
            *("scatter_16_15_reduction_add_mul_fails", "scatter_18_17_reduction_max_min_fails"),
            *("range_27_26_low_precision_fails", "resize_18_17_rejects_antialias"),
            *("resize_18_17_rejects_aspect_ratio_policy", "resize_18_17_rejects_axes"),
            *("resize_19_17_rejects_half_pixel_symmetric", "celu_28_27_unsupported_type_fails"),
            *("bitshift_28_27_unsupported_type_fails", "einsum_28_27_bfloat16_fails", "mod_float_fmod_0_28_27_fails"),
        )
        + _named(
            _DOWN,
            *("dft20_unknown_axis", "attention_25_to_24_window_fails", "LinearAttention_downgrade_fails"),
            *("BitShift_signed_downgrade_fails", "CausalConvWithState_downgrade_fails"),
            *("optional_has_element18_downgrade_fails", "optional_has_element18_without_input_downgrade_fails"),
            *("optional_get_element18_downgrade_fails", "space_to_depth_crd_downgrade_fails"),
        ),
    ),
    Group(
        "accepts",
        "both",
        "a node of a domain of its own without outputs, which the converter's graph cannot hold; splitgraph keeps it",
        _named(_CONVERT, "rejects_captured_node_without_output", "softmax_13_12_rejects_reshape_without_output"),
    ),
    Group(
        "accepts",
        "both",
        "a value without a declared element type; onnx refuses it only in strict mode",
        _named(_INFER, "empty_graph", "concat_missing_shape"),
    ),
    Group(
        "accepts",
        "both",
        "a declared shape that the nodes do not give: runtimes warn and run, and so does splitgraph",
        _named(_INFER, "transpose_preexisting_incorrect_shape"),
    ),
    Group(
        "accepts",
        "both",
        "a dimension or an element beyond 64 bits: splitgraph computes with integers of any size, and leaves such a "
        "dimension undeclared; nobody can run the model",
        (
            *_named(_INFER, "concat_axis_overflow", "pad_legacy_total_padding_overflow"),
            "data_propagation_test::test_add_overflow",
            "data_propagation_test::test_sub_overflow",
            "data_propagation_test::test_mul_overflow",
        ),
    ),
    Group(
        "accepts",
        "splitgraph",
        "a call may leave the last outputs of its function out",
        _named(_INFER, "function_output_count_mismatch_does_not_crash"),
    ),
    Group(
        "accepts",
        "both",
        "the test registers its own schema with onnx; the record does not contain this schema",
        _named(_INFER, "check_type_when_schema_has_empty_io"),
    ),
    Group(
        "other",
        "splitgraph",
        "the attribute onesided of STFT is 1 by default, which onnx's inference takes for 0; onnxruntime and the "
        "reference evaluator give what splitgraph infers",
        _named(_INFER, "stft_reals"),
    ),
    Group(
        "less",
        "splitgraph",
        "the axes are computed at run time, in any order; onnx reads bounds for the first axes",
        _named(_INFER, "slice_with_input_shape_steps", "slice_with_input_shape_axes"),
    ),
    Group(
        "less",
        "both",
        "a scale that float32 rounds: runtimes compute the size in different precision",
        _named(_INFER, "resize_scale_precision_large_dim"),
    ),
    Group(
        "less",
        "both",
        "a scalar has no row by the specification; onnxruntime gives one",
        _named(_INFER, "nonzero_scalar"),
    ),
)
DISAGREEMENTS = {(test, group.outcome): group for group in GROUPS for test in group.tests}
