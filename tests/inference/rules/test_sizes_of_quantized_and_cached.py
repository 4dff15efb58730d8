"""Sizes that DynamicQuantizeLSTM, Col2Im, TensorScatter, CausalConvWithState, QLinearMatMul, ConvTranspose demand."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from node_models import NEWEST_OPSET, infer_nodes
from onnx import helper, numpy_helper

import splitgraph

# The inputs of a DynamicQuantizeLSTM with 3 features, a batch of 2, 4 hidden units and one direction.
LSTM: dict[str, tuple[str, list[int]]] = {
    "X": ("float32", [5, 2, 3]),
    "W": ("int8", [1, 3, 16]),
    "R": ("int8", [1, 4, 16]),
    "B": ("float32", [1, 32]),
    "sequence_lens": ("int32", [2]),
    "initial_h": ("float32", [1, 2, 4]),
    "initial_c": ("float32", [1, 2, 4]),
    "P": ("float32", [1, 12]),
    "W_scale": ("float32", [1]),
    "W_zero_point": ("int8", [1]),
    "R_scale": ("float32", [1]),
    "R_zero_point": ("int8", [1]),
}
# What fits, first; then what does not, with the text of the finding.
FITS: list[dict[str, list[int]]] = [
    {},
    {"W_scale": [1, 16], "W_zero_point": [1, 16]},
    {"R_scale": [1, 16], "R_zero_point": [1, 16]},
    {"X": [1, 2, 3]},
]
CONTRADICT: list[tuple[dict[str, list[int]], str]] = [
    ({"sequence_lens": [3]}, "sequence_lens"),
    ({"initial_h": [1, 3, 4]}, "initial_h"),
    ({"initial_h": [2, 2, 4]}, "initial_h"),
    ({"initial_h": [1, 2, 5]}, "initial_h"),
    ({"initial_c": [1, 3, 4]}, "initial_c"),
    ({"initial_c": [2, 2, 4]}, "initial_c"),
    ({"X": [5, 2, 4]}, "W (input 1) has the shape [1, 3, 16]; it must be [1, 4, 16]"),
    ({"W": [2, 3, 16]}, "W (input 1) has the shape [2, 3, 16]; it must be [1, 3, 16]"),
    ({"R": [2, 4, 16]}, "R (input 2) has the shape [2, 4, 16]; it must be [1, 4, 16]"),
    ({"W": [1, 3, 20]}, "W (input 1) has the shape [1, 3, 20]; it must be [1, 3, 16]"),
    ({"B": [1, 31]}, "B (input 3)"),
    ({"P": [1, 11]}, "P (input 7)"),
    ({"W_scale": [2]}, "W_scale"),
    ({"R_zero_point": [2]}, "R_zero_point"),
]


def lstm(changes: dict[str, list[int]]) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model, whose weights are constants, and the data of its inputs."""
    data = {name: np.ones(changes.get(name, shape), kind) for name, (kind, shape) in LSTM.items()}
    # onnxruntime demands zero points of 0 for each column.
    data |= {name: array * 0 for name, array in data.items() if name.endswith("zero_point")}
    fed = {name: data[name] for name in ("X", "sequence_lens", "initial_h", "initial_c")}
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in fed.items()
    ]
    node = helper.make_node("DynamicQuantizeLSTM", list(LSTM), ["Y", "h", "c"], domain="com.microsoft", hidden_size=4)
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output]
    held = [numpy_helper.from_array(array, name) for name, array in data.items() if name not in fed]
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", values, outputs, held)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), fed


def run(model: onnx.ModelProto, fed: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results: list[np.ndarray] = session.run(None, fed)
    return results


@pytest.mark.parametrize("changes", FITS, ids=str)
def test_a_quantized_lstm_that_onnxruntime_runs(changes: dict[str, list[int]]) -> None:
    model, fed = lstm(changes)
    found = splitgraph.infer(model)
    assert (found.diagnostics, found.obligations) == ((), ())
    for name, result in zip(("Y", "h", "c"), run(model, fed), strict=True):
        assert found.types[name].shape == result.shape


@pytest.mark.parametrize(("changes", "said"), CONTRADICT, ids=[str(each) for each, _ in CONTRADICT])
def test_a_quantized_lstm_that_onnxruntime_refuses(changes: dict[str, list[int]], said: str) -> None:
    model, fed = lstm(changes)
    (finding,) = splitgraph.infer(model).diagnostics
    assert (finding.code, finding.severity) == ("SG302", "error")
    assert said in finding.message
    with pytest.raises(Exception, match=r"LSTM|dim|shape|size|scale|zero"):
        run(model, fed)


COLUMNS = "int64[2] sides = {6, 5}, int64[2] block = {2, 3}"
CONV = "s, y = CausalConvWithState(x, w)"
CACHE = "float[2,3,8,4] x, float[2,3,{},4] u, int64[2] w"
MULTIPLY = "uint8[2,4] a, float{} as, uint8{} az, uint8[4,3] b, float bs, uint8 bz, float{} ys, uint8{} yz"
PRODUCT = "y = QLinearMatMul(a, as, az, b, bs, bz, ys, yz)"
BACK = "float[1,2,5] x, float[2,3,3] w"

# The inputs, the nodes, the opset, the initializers, and what must hold; None for an error, "warning" for a warning.
DEMANDS: list[tuple[str, str, int, str, list[str] | str | None]] = [
    ("float[N,12,20] x", "y = Col2Im(x, sides, block)", 18, COLUMNS.replace("2, 3", "2, 2"), []),
    ("float[N,12,15] x", "y = Col2Im(x, sides, block)", 18, COLUMNS, []),
    ("float[N,12,L] x", "y = Col2Im(x, sides, block)", 18, COLUMNS, ["L == 15"]),
    ("float[N,12,16] x", "y = Col2Im(x, sides, block)", 18, COLUMNS, None),
    ("float[N,12,6] x", "y = Col2Im<strides=[2,2]>(x, sides, block)", 18, COLUMNS, []),
    ("float[N,12,15] x", "y = Col2Im<strides=[2,2]>(x, sides, block)", 18, COLUMNS, None),
    ("float[N,12,35] x", "y = Col2Im<pads=[1,1,1,1]>(x, sides, block)", 18, COLUMNS, []),
    ("float[N,12,15] x", "y = Col2Im<pads=[1,1,1,1]>(x, sides, block)", 18, COLUMNS, None),
    ("float[N,12,4] x", "y = Col2Im<dilations=[2,2]>(x, sides, block)", 18, COLUMNS, []),
    ("float[B,3,T] x, float[3,1,4] w", CONV, 27, "", []),
    ("float[B,C,T] x, float[3,K,4] w", CONV, 27, "", ["C == 3", "K == 1"]),
    ("float[B,3,T] x, float[3,2,4] w", CONV, 27, "", None),
    (CACHE.format("8"), "y = TensorScatter(x, u, w)", 24, "", []),
    (CACHE.format("L"), "y = TensorScatter(x, u, w)", 24, "", ["8 >= L"]),
    (CACHE.format("9"), "y = TensorScatter(x, u, w)", 24, "", None),
    (CACHE.format("9"), 'y = TensorScatter<mode="circular">(x, u, w)', 24, "", None),
    (MULTIPLY.format("", "", "", ""), PRODUCT, 21, "", []),
    (MULTIPLY.format("[1]", "[1]", "[1]", "[1]"), PRODUCT, 21, "", []),
    (MULTIPLY.format("[2]", "[2]", "[3]", "[3]"), PRODUCT, 21, "", []),
    (MULTIPLY.format("", "", "[4]", "[4]"), PRODUCT, 21, "", None),
    (MULTIPLY.format("[3]", "[3]", "", ""), PRODUCT, 21, "", None),
    (BACK, "y = ConvTranspose<output_shape=[7]>(x, w)", 21, "", []),
    (BACK, "y = ConvTranspose<output_shape=[1,3,7]>(x, w)", 21, "", "warning"),
    (BACK, "y = ConvTranspose<output_shape=[3,7]>(x, w)", 21, "", None),
]
ROWS = [row for row in DEMANDS if row[2] <= NEWEST_OPSET]


@pytest.mark.parametrize(("inputs", "body", "opset", "constants", "wanted"), ROWS)
def test_what_sizes_demand(inputs: str, body: str, opset: int, constants: str, wanted: list[str] | str | None) -> None:
    found = infer_nodes(inputs, body, opset=opset, constants=constants)
    severities = [(each.code, each.severity) for each in found.diagnostics]
    if isinstance(wanted, list):
        assert severities == []
        assert [str(each) for each in found.obligations] == wanted
    else:
        assert severities == [("SG302", wanted or "error")]
