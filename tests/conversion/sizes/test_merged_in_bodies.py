"""Dimensions that the body of a loop merges and takes apart: each goes back to its place."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import splitgraph

_WEIGHTS = "float[4, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}"
_STATE = "int64 i, bool c, float[?, ?, ?] s"


def looped(body: str, targets: str, size: str = "2, 6, 4") -> ModelProto:
    """Return a model that gives x three times to a body, which makes r of s."""
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[{size}] x) => (float[a, b, d] y) '
        f"<int64 n = {{3}}, bool true = {{1}}, {_WEIGHTS}, {targets}> {{ y = Loop(n, true, x) <body = turn "
        f"({_STATE}) => (bool o, float[?, ?, ?] r) {{ o = Identity(c) {body} }}> }}"
    )


def scanned(body: str, targets: str) -> ModelProto:
    """Return a model that gives x to a body for each of three steps, which makes r of s."""
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[2, 6, 4] x, float[3, 1] steps) => (float[a, b, d] y) '
        f"{{ y = Scan <num_scan_inputs = 1, body = turn (float[?, ?, ?] s, float[1] step) => (float[?, ?, ?] r) "
        f"<{_WEIGHTS}, {targets}> {{ {body} }}> (x, steps) }}"
    )


DENSE = "m = Reshape(s, k) p = MatMul(m, w) q = Tanh(p) r = Reshape(q, t)"
TWICE = f"{DENSE.replace(' r = Reshape(q, t)', '')} e = Reshape(q, t) f = Flatten<axis = 2>(e) r = Reshape(f, t)"
_T = "int64[3] t = {2, 6, 4}"
MODELS = {
    "numbers": looped(DENSE, f"int64[2] k = {{12, 4}}, {_T}"),
    "a rest in the first target": looped(DENSE, f"int64[2] k = {{-1, 4}}, {_T}"),
    "a rest in both": looped(DENSE, "int64[2] k = {-1, 4}, int64[3] t = {-1, 6, 4}"),
    "a rest beside the length": looped(DENSE, "int64[2] k = {-1, 4}, int64[3] t = {2, -1, 4}"),
    "equal sizes": looped(DENSE, "int64[2] k = {-1, 4}, int64[3] t = {6, 6, 4}", "6, 6, 4"),
    "merged twice": looped(TWICE, f"int64[2] k = {{-1, 4}}, {_T}"),
    "a Scan": scanned(DENSE, f"int64[2] k = {{-1, 4}}, {_T}"),
}


def _inputs(made: ModelProto, *shape: int) -> dict[str, np.ndarray]:
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32) / 8
    return {"x": x, "steps": np.zeros((3, 1), np.float32)} if len(made.graph.input) > 1 else {"x": x}


def _expected(made: ModelProto, x: np.ndarray) -> np.ndarray:
    """Return what three turns give, which treat each vector alone."""
    weights = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7], np.float32).reshape(4, 4)
    for _ in range(3):
        x = np.tanh(x @ weights)
    return x


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("asked", "shape"), [([None, "T", 4], (None, 9, 4)), (["N", None, 4], (5, 6, 4)), (["N", "T", 4], (5, 9, 4))]
)
def test_merged_dimensions_go_back(name: str, asked: list[str | int | None], shape: tuple[int | None, ...]) -> None:
    made = MODELS[name]
    old = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    wanted = [size if dim is None else dim for dim, size in zip(asked, old, strict=True)]
    after = splitgraph.reshape(made, {"x": wanted}, verify=False).model
    sizes = [size if new is None else new for new, size in zip(shape, old, strict=True)]
    inputs = _inputs(made, *sizes)
    found = ReferenceEvaluator(after).run(None, inputs)[0]
    np.testing.assert_allclose(found, _expected(made, inputs["x"]), rtol=1e-5, atol=1e-6)


def test_a_body_that_makes_a_vector_of_all() -> None:
    made = looped("m = Reshape(s, k) r = Reshape(m, t)", "int64[1] k = {-1}, int64[3] t = {4, 6, 2}", "4, 6, 2")
    after = splitgraph.reshape(made, {"x": [4, "T", 2]}, verify=False).model
    inputs = _inputs(made, 4, 9, 2)
    assert (ReferenceEvaluator(after).run(None, inputs)[0] == inputs["x"]).all()


def test_a_body_that_mixes_its_rows_is_refused() -> None:
    """What goes in as rows comes out as parts of others: at another length, these are other rows."""
    made = looped("m = Transpose<perm = [1, 0, 2]>(s) r = Reshape(m, t)", "int64[3] t = {2, 6, 4}")
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.reshape(made, {"x": [2, "T", 4]}, verify=False)
    assert {(each.code, each.location) for each in refused.value.diagnostics} == {("SG420", "main/Loop#0")}
