"""Rows of features that reach every leaf of decision trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import splitgraph
from splitgraph.verification.regions.drawing.tree_paths import draw_paths

# Three branches in a row: x0 <= 0.25, then x1 > 100, then x0 < -3, where NaN goes to the true side.
CHAIN: dict[str, Any] = {
    "n_targets": 1,
    "nodes_treeids": [0] * 7,
    "nodes_nodeids": [*range(7)],
    "nodes_featureids": [0, 1, 0, 0, 0, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_GT", "BRANCH_LT", *["LEAF"] * 4],
    "nodes_values": [0.25, 100.0, -3.0, 0.0, 0.0, 0.0, 0.0],
    "nodes_truenodeids": [1, 2, 3, 0, 0, 0, 0],
    "nodes_falsenodeids": [4, 5, 6, 0, 0, 0, 0],
    "nodes_missing_value_tracks_true": [0, 0, 1, 0, 0, 0, 0],
    "target_treeids": [0] * 4,
    "target_nodeids": [3, 4, 5, 6],
    "target_ids": [0] * 4,
    "target_weights": [1.0, 2.0, 3.0, 4.0],
}


def _model(**more: Any) -> onnx.ModelProto:
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **{**CHAIN, **more})
    given, made = (helper.make_tensor_value_info(name, 1, ["N", size]) for name, size in (("x", 2), ("y", 1)))
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    graph = helper.make_graph([node], "g", [given], [made])
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def _results(model: onnx.ModelProto, rows: Any) -> list[float]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return [float(each) for each in session.run(None, {"x": rows})[0].ravel()]


@pytest.mark.parametrize(
    ("data", "attributes"),
    [
        (np.zeros((2, 3, 1), "float32"), {}),
        (np.zeros((2, 2), "int64"), {}),
        (np.zeros((2, 2), "float32"), {"nodes_modes": ["BRANCH_X"] * 7}),
        (np.zeros((2, 2), "float32"), {"nodes_truenodeids": [9] * 7}),
    ],
    ids=["shape", "type", "mode", "child"],
)
def test_no_row_for_what_no_kernel_runs(data: Any, attributes: dict[str, Any]) -> None:
    assert not [*draw_paths([_model(**attributes)], {"x": data}, {})]


@pytest.mark.parametrize("open_axes", [{}, {"x": [0]}], ids=["closed", "open"])
def test_each_leaf_is_reached(open_axes: dict[str, list[int]]) -> None:
    model = _model()
    drawn = [values["x"] for values in draw_paths([model], {"x": np.zeros((2, 2), "float32")}, open_axes)]
    assert {result for rows in drawn for result in _results(model, rows)} == {1.0, 2.0, 3.0, 4.0}
    assert all(rows.dtype == np.float32 and rows.shape[1] == 2 for rows in drawn)
    assert open_axes or {len(rows) for rows in drawn} == {2}


@pytest.mark.parametrize("place", [0, 1])
def test_a_branch_that_nan_reaches_is_told_from_its_opposite(place: int) -> None:
    tracks = [0, 0, 1, 0, 0, 0, 0]
    tracks[place] = 1
    other = _model(nodes_missing_value_tracks_true=tracks)
    drawn = [values["x"] for values in draw_paths([_model()], {"x": np.zeros((2, 2), "float32")}, {})]
    assert any(_results(_model(), rows) != _results(other, rows) for rows in drawn)
    assert splitgraph.verify(_model(), other).verdict == "different"


def test_rows_with_nan_stand_apart() -> None:
    for values in draw_paths([_model()], {"x": np.zeros((2, 2), "float32")}, {}):
        gaps = np.isnan(values["x"]).any(axis=1)
        assert gaps.all() or not gaps.any()


@pytest.mark.parametrize(
    "change", [{"target_weights": [1.0, 2.0, 3.0, 4.5]}, {"nodes_values": [0.25, 100.0, -4.0] + [0.0] * 4}]
)
def test_one_leaf_of_many_shows_a_difference(change: dict[str, Any]) -> None:
    assert splitgraph.verify(_model(), _model(**change)).verdict == "different"
