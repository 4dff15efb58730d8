"""How large a model is: parameters, bytes, and multiply-adds as an expression of its symbols."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

import splitgraph

MODELS = Path(__file__).parents[2] / "models"
F = np.float32


def _model(signature: str, body: str, functions: str = "", opset: int = 24, **constants: np.ndarray) -> onnx.ModelProto:
    head = (
        f'<ir_version: 10, opset_import: ["" : {opset}, "com.microsoft" : 1, "local" : 1]> g ({signature}) {{ {body} }}'
    )
    model = parser.parse_model(head.replace(" => ", ") => (") + functions)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return model


# By name: the model, and what its multiply-adds are.
COUNTED = {
    "a product of matrices": (_model("float[N,3,4] x, float[4,5] w => float[N,3,5] y", "y = MatMul(x, w)"), "60*N"),
    "of vectors": (_model("float[K] x, float[K] w => float y", "y = MatMul(x, w)"), "K"),
    "Gemm, transposed": (
        _model("float[4,N] x, float[5,4] w => float[N,5] y", "y = Gemm<transA=1, transB=1>(x, w)"),
        "20*N",
    ),
    "a convolution in groups": (
        _model(
            "float[N,4,8,8] x => float[N,6,8,8] y",
            "y = Conv<group=2, pads=[1,1,1,1]>(x, w)",
            w=np.zeros((6, 2, 3, 3), F),
        ),
        f"{6 * 8 * 8 * 2 * 9}*N",
    ),
    "a transposed convolution": (
        _model("float[N,4,8] x => float[N,6,9] y", "y = ConvTranspose(x, w)", w=np.zeros((4, 6, 2), F)),
        f"{4 * 8 * 6 * 2}*N",
    ),
    "an LSTM": (
        _model(
            "float[T,N,3] x => float[T,1,N,5] y",
            "y = LSTM<hidden_size=5>(x, w, r)",
            w=np.zeros((1, 20, 3), F),
            r=np.zeros((1, 20, 5), F),
        ),
        f"{20 * 8}*N*T",
    ),
    "Einsum": (
        _model("float[N,T,4] x, float[N,S,4] w => float[N,T,S] y", 'y = Einsum<equation="ntd,nsd->nts">(x, w)'),
        "4*N*S*T",
    ),
    "Attention": (
        _model("float[N,2,T,4] q, float[N,2,S,4] k, float[N,2,S,6] v => float[N,2,T,6] y", "y = Attention(q, k, v)"),
        "20*N*S*T",
    ),
    "a layer of onnxruntime": (
        _model("float[N,4] x, float[4,5] w => float[N,5] y", "y = com.microsoft.FusedMatMul(x, w)"),
        "20*N",
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_multiply_adds(name: str) -> None:
    model, wanted = COUNTED[name]
    costs = splitgraph.infer(model).costs
    assert costs is not None
    assert (str(costs.multiply_adds), costs.not_counted) == (wanted, 0)


def test_what_only_adds_or_moves_costs_nothing() -> None:
    costs = splitgraph.infer(_model("float[N] x => float[N] y", "a = Add(x, x) y = Relu(a)")).costs
    assert costs == (0, 0, 0, 0)


@pytest.mark.parametrize(
    "model",
    [
        _model("float x, float[4,5] w => float y", "y = MatMul(x, w)"),
        _model(
            "float[N,4] x, float[4,5] w => float[N,5] y",
            "y = local.f(x, w)",
            '<domain: "local", opset_import: ["" : 24]> f (a, b) => (c) { c = MatMul(a, b) }',
        ),
    ],
    ids=["unknown size", "in a function"],
)
def test_what_is_not_counted_is_said(model: onnx.ModelProto) -> None:
    if not model.functions:
        model.graph.input[0].type.tensor_type.ClearField("shape")
        model.graph.output[0].type.tensor_type.ClearField("shape")
    costs = splitgraph.infer(model).costs
    assert costs is not None
    assert (costs.multiply_adds, costs.not_counted) == (0, 1)


def test_parameters_of_every_graph_and_their_bytes() -> None:
    model = _model("float[4] x => float[4] y", "y = Add(x, c)", c=np.zeros(4, F))
    model.graph.initializer.append(helper.make_tensor("q", onnx.TensorProto.INT4, [5], bytes(3), raw=True))
    model.graph.node.append(
        helper.make_node("Constant", [], ["d"], value=numpy_helper.from_array(np.zeros(2, np.int64)))
    )
    costs = splitgraph.infer(model).costs
    assert costs is not None
    assert costs[:2] == (4 + 5 + 2, 16 + 3 + 16)


def test_no_weight_is_read() -> None:
    model = _model("float[N,4] x => float[N,5] y", "y = MatMul(x, w)")
    weight = model.graph.initializer.add(name="w", dims=[4, 5], data_type=onnx.TensorProto.FLOAT)
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="nowhere.bin")
    costs = splitgraph.infer(model).costs
    assert costs == (20, 80, *splitgraph.infer(model).costs[2:])  # type: ignore[index]
    assert str(costs[2]) == "20*N"  # type: ignore[index]


def test_an_ir_has_no_costs() -> None:
    assert splitgraph.infer(MODELS / "interval_split.xml").costs is None


def test_the_page_and_the_document_say_it() -> None:
    analysis = splitgraph.infer(MODELS / "gpt2.opset17.onnx")
    costs = analysis.document()["costs"]
    assert costs["parameters"] == 18_490
    assert costs["multiply_adds"] == "96*batch*past_len*seq + 96*batch*seq*seq + 14976*batch*seq"
