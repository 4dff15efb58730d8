"""Operators that onnxruntime runs and onnx does not have: what is inferred is what onnxruntime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

import splitgraph

FLOATS = np.ones((2, 3, 8, 9), np.float32)
TEXTS = np.array([["a b", "c"]], object)
BORDER, TOKENS = [1, 2, 3, 4], {"mark": 0, "pad_value": "#", "separators": [" "], "mincharnum": 1}


def model(
    op_type: str, data: Any, opset: int, attributes: dict[str, Any], dims: list[Any] | None = None
) -> onnx.ModelProto:
    domain = "com.microsoft" if op_type in ("Tokenizer", "DynamicQuantizeLSTM") else ""
    kind = 8 if data.dtype == object else 1
    inputs, held, outputs = ["x"], [], ["y"]
    if op_type == "DynamicQuantizeLSTM":
        both = attributes["direction"] == "bidirectional"
        count, size = 1 + both, attributes["hidden_size"]
        weights = {"W": (count, data.shape[2], 4 * size), "R": (count, size, 4 * size)}
        held = [numpy_helper.from_array(np.ones(shape, np.int8), name) for name, shape in weights.items()]
        held.append(numpy_helper.from_array(np.ones(count, np.float32), "s"))
        held.append(numpy_helper.from_array(np.zeros(count, np.int8), "z"))
        inputs, outputs = ["x", "W", "R", *[""] * 5, "s", "z", "s", "z"], ["y", "h", "c"]
    graph = helper.make_graph(
        [helper.make_node(op_type, inputs, outputs, domain=domain, **attributes)],
        "g",
        [helper.make_tensor_value_info("x", kind, data.shape if dims is None else dims)],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        held,
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


LSTM = {"hidden_size": 4, "direction": "forward"}
RUN = [
    ("ImageScaler", FLOATS, 9, {"scale": 2.0, "bias": [1.0, 2.0, 3.0]}),
    ("Affine", FLOATS, 9, {"alpha": 2.0, "beta": 1.0}),
    ("Affine", FLOATS[0, 0], 7, {"alpha": 2.0, "beta": 1.0}),
    ("Crop", FLOATS, 9, {"border": BORDER}),
    ("Crop", FLOATS, 9, {"border": BORDER, "scale": [2, 3]}),
    ("Crop", FLOATS, 9, {"border": [0, 1, 0, 0], "scale": [5, 6]}),
    ("Crop", FLOATS, 7, {"border": [4, 4, 5, 4]}),
    ("Tokenizer", TEXTS, 13, TOKENS),
    ("Tokenizer", TEXTS[0], 13, TOKENS),
    ("Tokenizer", TEXTS[:, :0], 13, TOKENS),
    ("Tokenizer", TEXTS[:0], 13, TOKENS),
    ("Tokenizer", TEXTS[0, :0], 13, TOKENS),
    ("DynamicQuantizeLSTM", np.ones((5, 2, 3), np.float32), 13, LSTM),
    ("DynamicQuantizeLSTM", np.ones((5, 2, 3), np.float32), 13, {**LSTM, "direction": "bidirectional"}),
]


@pytest.mark.parametrize(("op_type", "data", "opset", "attributes"), RUN)
def test_what_onnxruntime_gives(op_type: str, data: Any, opset: int, attributes: dict[str, Any]) -> None:
    given = model(op_type, data, opset, attributes)
    found = splitgraph.infer(given)
    assert found.diagnostics == ()
    session = ort.InferenceSession(given.SerializeToString(), providers=["CPUExecutionProvider"])
    for value, result in zip(given.graph.output, session.run(None, {"x": data}), strict=True):
        known = found.types[value.name]
        assert known.dtype == ("string" if result.dtype == object else result.dtype.name)
        assert len(known.shape) == result.ndim
        pairs = zip(known.shape, result.shape, strict=True)
        assert all(mine == size for mine, size in pairs if isinstance(mine, int))
        open_dims = [mine for mine in known.shape if not isinstance(mine, int)]
        assert len(open_dims) == (op_type == "Tokenizer" and 0 not in data.shape)


REFUSED = [
    ("Crop", FLOATS, {"border": [1, 2, 3]}),
    ("Crop", FLOATS, {"border": BORDER, "scale": [2]}),
    ("Crop", FLOATS, {"border": BORDER, "scale": [8, 8]}),
    ("Crop", FLOATS, {"border": [5, 0, 5, 0]}),
    ("Crop", FLOATS[0], {"border": BORDER}),
    ("ImageScaler", FLOATS[0], {"scale": 2.0, "bias": [1.0, 2.0, 3.0]}),
    ("ImageScaler", FLOATS, {"scale": 2.0, "bias": [1.0, 2.0]}),
    ("ImageScaler", FLOATS, {"scale": 2.0, "bias": [1.0]}),
]


@pytest.mark.parametrize(("op_type", "data", "attributes"), REFUSED)
def test_what_onnxruntime_refuses(op_type: str, data: Any, attributes: dict[str, Any]) -> None:
    assert {found.severity for found in splitgraph.infer(model(op_type, data, 9, attributes)).diagnostics} == {"error"}


@pytest.mark.parametrize(("shape", "rank"), [(["N"], None), ([2, "N"], None), ([0, "N"], 2), ([2, 3], 3)])
def test_texts_of_which_there_may_be_none_give_no_rank(shape: list[Any], rank: int | None) -> None:
    assert splitgraph.infer(model("Tokenizer", TEXTS, 13, TOKENS, shape)).types["y"].rank == rank


def test_symbols() -> None:
    found = splitgraph.infer(model("Crop", FLOATS, 9, {"border": BORDER}, ["N", 3, "H", "W"]))
    assert str(found.types["y"]) == "float32[N, 3, H - 6, W - 4]"


@pytest.mark.parametrize("op_type", ["Crop", "Affine", "ImageScaler"])
def test_a_plugin_of_that_name_from_opset_10_on(op_type: str) -> None:
    found = splitgraph.infer(model(op_type, FLOATS, 10, {}))
    assert [each.code for each in found.diagnostics] == ["SG303"]
    assert found.diagnostics[0].help.startswith(f"{op_type} was an experimental operator of onnx below opset 10.")
    assert found.types["y"].shape is None
    converted = splitgraph.upgrade(model(op_type, FLOATS, 10, {}), 13)
    assert [each.code for each in converted.diagnostics] == ["SG303"]
