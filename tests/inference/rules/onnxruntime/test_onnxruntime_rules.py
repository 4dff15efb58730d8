"""onnxruntime's own operators (com.microsoft): refusals, and types and shapes against what onnxruntime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from splitgraph.dim import Dim, evaluate, symbols_of
from splitgraph.inference import infer_model
from splitgraph.inference.analysis import Analysis

# An input: dtype, shape, and optionally the value of all its elements, which makes it a constant.
Input = tuple[Any, ...] | None

SIZES = {"B": 2, "S": 3, "L": 4, "P": 5, "H": 7, "W": 6}
QUANTIZED: tuple[Input, Input] = (("float32", [], 1), ("uint8", [], 1))
PROJECTION: tuple[Input, ...] = (("float32", ["B", "S", 8]), ("float32", [8, 24]), ("float32", [24]))
NORM: tuple[Input, ...] = (("float32", ["B", "S", 8]), ("float32", ["B", "S", 8]), ("float32", [8]))
TOKENS: tuple[Input, Input] = (("int32", ["B"], 2), ("int32", [1], 3))
STATE: tuple[Input, Input] = (("float32", ["B", 2, "P", 8]), ("float32", ["B", 2, "P", 8]))
GROUPED: tuple[Input, ...] = (
    ("float32", ["B", 1, 32]),
    ("float32", ["B", 1, 16]),
    ("float32", ["B", 1, 16]),
)
HEADS = {"num_heads": 4, "kv_num_heads": 2}


def floats(*shape: int | str) -> Input:
    return ("float32", list(shape))


def bytes_of(*shape: int | str) -> Input:
    return ("uint8", list(shape))


# name, operator, inputs, attributes, expected types
CASES: list[tuple[str, str, tuple[Input, ...], dict[str, Any], list[str]]] = [
    ("attention", "Attention", PROJECTION, {"num_heads": 2}, ["float32[B, S, 8]", "float32[2, B, 2, S, 4]"]),
    (
        "attention-past",
        "Attention",
        (*PROJECTION, None, floats(2, "B", 2, "P", 4)),
        {"num_heads": 2, "unidirectional": 1},
        ["float32[B, S, 8]", "float32[2, B, 2, P + S, 4]"],
    ),
    (
        "attention-sizes",
        "Attention",
        (floats("B", "S", 8), floats(8, 28), floats(28)),
        {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 12]},
        ["float32[B, S, 12]"],
    ),
    (
        "multi-head",
        "MultiHeadAttention",
        (floats("B", "S", 8), floats("B", "L", 8), floats("B", "L", 8)),
        {"num_heads": 2},
        ["float32[B, S, 8]", "float32[B, 2, L, 4]", "float32[B, 2, L, 4]"],
    ),
    (
        "multi-head-values",
        "MultiHeadAttention",
        (floats("B", "S", 8), floats("B", "L", 8), floats("B", "L", 12)),
        {"num_heads": 2},
        ["float32[B, S, 12]"],
    ),
    (
        "multi-head-past",
        "MultiHeadAttention",
        (*(floats("B", "S", 8),) * 3, None, None, None, *(floats("B", 2, "P", 4),) * 2),
        {"num_heads": 2},
        ["float32[B, S, 8]", "float32[B, 2, P + S, 4]", "float32[B, 2, P + S, 4]"],
    ),
    (
        "multi-head-cross",
        "MultiHeadAttention",
        (floats("B", "S", 8), floats("B", 2, "L", 4), floats("B", 2, "L", 4)),
        {"num_heads": 2},
        ["float32[B, S, 8]"],
    ),
    (
        "multi-head-decoder",
        "DecoderMaskedMultiHeadAttention",
        (floats("B", 1, 8),) * 3,
        {"num_heads": 2},
        ["float32[B, 1, 8]"],
    ),
    (
        "grouped",
        "GroupQueryAttention",
        (floats("B", "S", 32), floats("B", "S", 16), floats("B", "S", 16), None, None, *TOKENS),
        HEADS,
        ["float32[B, S, 32]", "float32[B, 2, 3, 8]", "float32[B, 2, 3, 8]"],
    ),
    (
        "grouped-packed",
        "GroupQueryAttention",
        (floats("B", "S", 64), None, None, None, None, *TOKENS),
        HEADS,
        ["float32[B, S, 32]", "float32[B, 2, 3, 8]", "float32[B, 2, 3, 8]"],
    ),
    (
        "grouped-past",
        "GroupQueryAttention",
        (*GROUPED, *STATE, ("int32", ["B"], 5), ("int32", [1], 6)),
        HEADS,
        ["float32[B, 1, 32]", "float32[B, 2, max(P, 6), 8]", "float32[B, 2, max(P, 6), 8]"],
    ),
    (
        "grouped-longer-buffer",
        "GroupQueryAttention",
        (*GROUPED, *STATE, *TOKENS),
        HEADS,
        ["float32[B, 1, 32]", "float32[B, 2, max(P, 3), 8]", "float32[B, 2, max(P, 3), 8]"],
    ),
    (
        "skip-norm",
        "SkipLayerNormalization",
        NORM,
        {},
        ["float32[B, S, 8]", "float32[B, S, 1]", "float32[B, S, 1]", "float32[B, S, 8]"],
    ),
    (
        "skip-simplified-norm",
        "SkipSimplifiedLayerNormalization",
        NORM,
        {},
        ["float32[B, S, 8]", "float32[B, S, 1]", "float32[B, S, 1]", "float32[B, S, 8]"],
    ),
    (
        "simplified-norm",
        "ai.onnx::SimplifiedLayerNormalization",
        (floats("B", "S", 8), floats(8)),
        {"axis": -1},
        ["float32[B, S, 8]", "float32[B, S, 1]"],
    ),
    ("gelu", "Gelu", (floats("B", "S", 8),), {}, ["float32[B, S, 8]"]),
    ("quick-gelu", "QuickGelu", (floats("B", "S", 8),), {}, ["float32[B, S, 8]"]),
    ("fast-gelu", "FastGelu", (floats("B", "S", 8), floats(8)), {}, ["float32[B, S, 8]"]),
    ("bias-gelu", "BiasGelu", (floats("B", "S", 8), floats(8)), {}, ["float32[B, S, 8]"]),
    (
        "matmul-transposed",
        "FusedMatMul",
        (floats("B", "S", 8), floats("B", "L", 8)),
        {"transB": 1},
        ["float32[B, S, L]"],
    ),
    (
        "matmul-batch",
        "FusedMatMul",
        (floats("S", "B", 6, 8), floats("B", 6, 8, "L")),
        {"transBatchA": 1},
        ["float32[B, 6, S, L]"],
    ),
    (
        "matmul-batch-transposed",
        "FusedMatMul",
        (floats(8, "B", "S"), floats("B", "L", 8)),
        {"transB": 1, "transBatchA": 1, "transA": 1},
        ["float32[B, S, L]"],
    ),
    (
        "embedding",
        "EmbedLayerNormalization",
        (("int32", ["B", "S"], None), None, floats(10, 8), floats(10, 8), None, floats(8), floats(8)),
        {},
        ["float32[B, S, 8]", "int32[B]", "float32[B, S, 8]"],
    ),
    (
        "rotary",
        "RotaryEmbedding",
        (floats("B", 2, "S", 4), ("int64", ["B", "S"], None), floats(10, 2), floats(10, 2)),
        {},
        ["float32[B, 2, S, 4]"],
    ),
    (
        "attention-quantized",
        "QAttention",
        (bytes_of("B", "S", 8), bytes_of(8, 24), floats(24), *(("float32", [], 1),) * 2, None, *(bytes_of(1),) * 2),
        {"num_heads": 2},
        ["float32[B, S, 8]", "float32[2, B, 2, S, 4]"],
    ),
    (
        "matmul-bits",
        "MatMulNBits",
        (floats("B", "S", 32), ("uint8", [6, 1, 16], 1), ("float32", [6], 1)),
        {"N": 6, "K": 32, "bits": 4, "block_size": 32},
        ["float32[B, S, 6]"],
    ),
    (
        "matmul-bnb4",
        "MatMulBnb4",
        (floats("B", 32), ("uint8", [96], 1), ("float32", [12], 1)),
        {"N": 6, "K": 32, "block_size": 16, "quant_type": 1},
        ["float32[B, 6]"],
    ),
    (
        "conv",
        "FusedConv",
        (floats("B", 3, "H", 5), floats(4, 3, 3, 3), floats(4)),
        {"activation": "Relu"},
        ["float32[B, 4, H - 2, 3]"],
    ),
    ("gemm", "FusedGemm", (floats("B", 8), floats(8, 3), floats(3)), {"activation": "Relu"}, ["float32[B, 3]"]),
    (
        "matmul-dynamic",
        "DynamicQuantizeMatMul",
        (floats("B", 8), ("uint8", [8, 3], 1), ("float32", [1], 1)),
        {},
        ["float32[B, 3]"],
    ),
    (
        "matmul-to-float",
        "MatMulIntegerToFloat",
        (bytes_of("B", 8), ("uint8", [8, 3], 1), ("float32", [1], 1), ("float32", [1], 1)),
        {},
        ["float32[B, 3]"],
    ),
    (
        "gemm-quantized",
        "QGemm",
        (bytes_of("B", 8), *QUANTIZED, ("uint8", [3, 8], 1), *QUANTIZED, None, *QUANTIZED),
        {"transB": 1},
        ["uint8[B, 3]"],
    ),
    (
        "add-quantized",
        "QLinearAdd",
        (bytes_of("B", 1, 8), *QUANTIZED, bytes_of("S", 8), *QUANTIZED, *QUANTIZED),
        {},
        ["uint8[B, S, 8]"],
    ),
    ("sigmoid-quantized", "QLinearSigmoid", (bytes_of("B", 8), *QUANTIZED, *QUANTIZED), {}, ["uint8[B, 8]"]),
    (
        "concat-quantized",
        "QLinearConcat",
        (*QUANTIZED, bytes_of("B", 8), *QUANTIZED, bytes_of("S", 8), *QUANTIZED),
        {"axis": 0},
        ["uint8[B + S, 8]"],
    ),
    (
        "global-pool-quantized",
        "QLinearGlobalAveragePool",
        (bytes_of("B", "S", "L", 3), *QUANTIZED, *QUANTIZED),
        {"channels_last": 1},
        ["uint8[B, 1, 1, 3]"],
    ),
    (
        "pool-quantized",
        "QLinearAveragePool",
        (bytes_of("B", 3, "H", "W"), *QUANTIZED, *QUANTIZED),
        {"kernel_shape": [3, 2]},
        ["uint8[B, 3, H - 2, W - 1]"],
    ),
    (
        "pool-quantized-last",
        "QLinearAveragePool",
        (bytes_of("B", "H", "W", 3), *QUANTIZED, *QUANTIZED),
        {"kernel_shape": [3, 2], "channels_last": 1},
        ["uint8[B, H - 2, W - 1, 3]"],
    ),
    (
        "where-quantized",
        "QLinearWhere",
        (("bool", ["B", 8]), bytes_of("B", 8), *QUANTIZED, bytes_of(8), *QUANTIZED, *QUANTIZED),
        {},
        ["uint8[B, 8]"],
    ),
    (
        "conv-quantized",
        "QLinearConv",
        (bytes_of("B", 3, "H", 5), *QUANTIZED, ("uint8", [4, 3, 3, 3], 1), *QUANTIZED, *QUANTIZED),
        {},
        ["uint8[B, 4, H - 2, 3]"],
    ),
    ("quantize", "QuantizeLinear", (floats("B", 8), ("float32", [], 1), ("int8", [], 1)), {}, ["int8[B, 8]"]),
    ("dequantize", "DequantizeLinear", (bytes_of("B", 8), ("float32", [], 1)), {}, ["float32[B, 8]"]),
    (
        "gather-quantized",
        "GatherBlockQuantized",
        (("uint8", [10, 16], 1), ("int64", ["B", "S"], None), ("float32", [10, 1], 1)),
        {"gather_axis": 0, "quantize_axis": 1, "block_size": 32, "bits": 4},
        ["float32[B, S, 32]"],
    ),
    ("expand-dims", "ExpandDims", (floats("B", 8), ("int32", [], -1)), {}, ["float32[B, 8, 1]"]),
    ("distances", "CDist", (floats("B", 8), floats("S", 8)), {"metric": "euclidean"}, ["float32[B, S]"]),
    ("inverse", "Inverse", (floats("B", 3, 3),), {}, ["float32[B, 3, 3]"]),
    (
        "experts",
        "MoE",
        (floats("B", 8), floats("B", 2), floats(2, 16, 8), None, floats(2, 8, 16)),
        {"k": 1},
        ["float32[B, 8]"],
    ),
    (
        "max-pool-last",
        "NhwcMaxPool",
        (bytes_of("B", "H", "W", 3),),
        {"kernel_shape": [3, 2], "strides": [2, 1]},
        ["uint8[B, (H + 1)//2 - 1, W - 1, 3]"],
    ),
    ("scaled-silu", "ScaledSiLU", (floats("B", 8),), {"alpha": 1.0}, ["float32[B, 8]"]),
    (
        "gather-tuples",
        "GatherND",
        (floats("B", 3, 8), ("int64", ["S", 2], None)),
        {},
        ["float32[S, 8]"],
    ),
    (
        "crops",
        "CropAndResize",
        (floats("B", 3, "H", "W"), floats("S", 4), ("int32", ["S"], 0), ("int32", [2], 5)),
        {},
        ["float32[S, 3, 5, 5]"],
    ),
    (
        "n-grams",
        "NGramRepeatBlock",
        (("int64", ["B", "S"], None), floats("B", 10)),
        {"ngram_size": 2},
        ["float32[B, 10]"],
    ),
]

# name, operator, inputs, attributes, part of the message
REFUSED: list[tuple[str, str, tuple[Input, ...], dict[str, Any], str]] = [
    ("no-heads", "Attention", PROJECTION, {}, "'num_heads' is 0"),
    (
        "rotary-cache",
        "RotaryEmbedding",
        (floats("B", 2, "S", 8), ("int64", ["B", "S"], None), floats(10, 2), floats(10, 2)),
        {},
        "cos_cache",
    ),
    ("flat-input", "Attention", (floats("B", 8), floats(8, 24)), {"num_heads": 2}, "rank 2; it must have rank 3"),
    ("weights-by-three", "Attention", (floats(2, 3, 8), floats(8, 25)), {"num_heads": 2}, "25 is not divisible by 3"),
    ("heads-by-groups", "GroupQueryAttention", GROUPED, {"num_heads": 3, "kv_num_heads": 2}, "a multiple of"),
    ("inner", "FusedMatMul", (floats("B", 8), floats(7, "L")), {}, "inner dimensions must be equal"),
    ("packed-rows", "MatMulNBits", (floats("B", 31), None, None), {"N": 6, "K": 32}, "[B, 31]; it must be [..., 32]"),
    (
        "concat-ranks",
        "QLinearConcat",
        (*QUANTIZED, bytes_of("B"), *QUANTIZED, bytes_of("B", 2)),
        {"axis": 0},
        "same rank",
    ),
]


def value_of(given: tuple[Any, ...]) -> np.ndarray:
    """The data of an input: the value it is made of, small numbers for floats, zeros for positions."""
    shape = [SIZES.get(dim, dim) for dim in given[1]]
    if len(given) > 2 and given[2] is not None:
        return np.full(shape, given[2], given[0])
    if given[0] == "float32":
        return np.random.default_rng(0).random(shape).astype(np.float32)
    return np.zeros(shape, given[0]) if given[0] == "int64" else np.ones(shape, given[0])


def model_of(operator: str, inputs: tuple[Input, ...], attributes: dict[str, Any], outputs: int) -> onnx.ModelProto:
    """A model of one node; inputs with a value and static shape are initializers."""
    values, constants, names = [], [], []
    for position, given in enumerate(inputs):
        names.append("" if given is None else f"i{position}")
        if given is None:
            continue
        if len(given) > 2 and given[2] is not None and all(isinstance(dim, int) for dim in given[1]):
            constants.append(numpy_helper.from_array(value_of(given), names[-1]))
        else:
            dtype = helper.np_dtype_to_tensor_dtype(np.dtype(given[0]))
            values.append(helper.make_tensor_value_info(names[-1], dtype, given[1]))
    domain, _, op_type = operator.rpartition("::")
    results = [f"o{position}" for position in range(outputs)]
    node = helper.make_node(op_type, names, results, domain=domain or "com.microsoft", **attributes)
    shown = [onnx.ValueInfoProto(name=name) for name in results]
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(
        helper.make_graph([node], "g", values, shown, constants), opset_imports=imports, ir_version=9
    )


def inferred(case: tuple[str, str, tuple[Input, ...], dict[str, Any], Any]) -> tuple[onnx.ModelProto, Analysis]:
    _, operator, inputs, attributes, expected = case
    model = model_of(operator, inputs, attributes, len(expected) if isinstance(expected, list) else 1)
    return model, infer_model(model)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_an_invalid_node_is_a_finding(case: tuple[str, str, tuple[Input, ...], dict[str, Any], str]) -> None:
    _, analysis = inferred(case)
    (found,) = analysis.diagnostics
    assert found.code == "SG302" and case[4] in found.message
    assert analysis.types["o0"].shape is None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_types_and_shapes_are_those_of_onnxruntime(case: Any) -> None:
    model, analysis = inferred(case)
    assert analysis.ok and not analysis.completeness.unknown_operators
    found = [analysis.types[f"o{position}"] for position in range(len(case[4]))]
    assert [str(known) for known in found] == case[4]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    fed = {value.name for value in model.graph.input}
    feeds = {f"i{i}": value_of(given) for i, given in enumerate(case[2]) if given is not None and f"i{i}" in fed}
    for known, real in zip(found, session.run(None, feeds), strict=True):
        assert known.dtype == str(real.dtype)
        assert [evaluate(dim, SIZES) if isinstance(dim, Dim) else dim for dim in known.shape or ()] == list(real.shape)


def test_what_is_computed_at_run_time_stays_open_once() -> None:
    inputs = (floats("B", "S", 32), floats("B", "S", 16), floats("B", "S", 16), None, None, TOKENS[0], ("int32", [1]))
    analysis = infer_model(model_of("GroupQueryAttention", inputs, HEADS, 3))
    key, value = analysis.types["o1"].shape, analysis.types["o2"].shape
    assert key is not None and key == value
    assert isinstance(key[2], Dim) and not symbols_of(key[2]) & SIZES.keys()


def test_the_shape_of_an_input_may_be_unknown() -> None:
    for _, operator, inputs, attributes, expected in CASES:
        model = model_of(operator, inputs, attributes, len(expected))
        exact = infer_model(model).types
        for value in model.graph.input:
            value.type.tensor_type.ClearField("shape")
        analysis = infer_model(model)
        assert analysis.ok, (operator, analysis.diagnostics)
        for position in range(len(expected)):
            known = analysis.types[f"o{position}"]
            assert known.dtype == exact[f"o{position}"].dtype
            assert known.rank in (None, exact[f"o{position}"].rank)


def test_how_many_elements_are_distinct_stays_open_once() -> None:
    analysis = infer_model(model_of("Unique", (floats("S"),), {}, 3))
    assert [str(analysis.types[name]) for name in ("o0", "o1", "o2")] == ["float32[unk0]", "int64[S]", "int64[unk0]"]


@pytest.mark.parametrize("operator", ["NhwcConv", "NhwcFusedConv"])
@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"kernel_shape": [3, 2], "strides": [1, 2], "pads": [1, 0, 1, 0]}, "float32[B, H, W//2, 4]"),
        ({"auto_pad": "SAME_UPPER"}, "float32[B, H, W, 4]"),
        ({}, "float32[B, ?, ?, 4]"),
    ],
)
def test_a_convolution_with_channels_last(operator: str, attributes: dict[str, Any], expected: str) -> None:
    """onnxruntime runs these on other processors than the CPU only."""
    analysis = infer_model(model_of(operator, (floats("B", "H", "W", 3), floats(4, 3, 3, 2)), attributes, 1))
    assert str(analysis.types["o0"]) == expected
