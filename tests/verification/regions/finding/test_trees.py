"""What trees say that changes no result is not compared."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import helper

import splitgraph
from splitgraph.verification.regions.finding.constants import held_constants

TREES: dict[str, Any] = {
    "n_targets": 1,
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.5, -2.0],
}


def _model(**more: Any) -> onnx.ModelProto:
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **{**TREES, **more})
    given, made = (helper.make_tensor_value_info(name, 1, ["N", size]) for name, size in (("x", 2), ("y", 1)))
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    graph = helper.make_graph([node], "g", [given], [made])
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"nodes_hitrates": [1.0, 0.5, 0.5]}, False),
        ({"nodes_missing_value_tracks_true": [0, 0, 0]}, False),
        ({"nodes_missing_value_tracks_true": [1, 0, 0]}, True),
        ({"base_values": [0.0]}, True),
    ],
)
def test_what_changes_no_result_is_no_constant(more: dict[str, Any], told: bool) -> None:
    known = {constant.name for constant in held_constants(_model())}
    assert ({constant.name for constant in held_constants(_model(**more))} != known) == told


@pytest.mark.parametrize("standard", [True, False])
def test_trees_with_hit_rates_are_verified(standard: bool) -> None:
    model = _model(nodes_hitrates=[1.0, 0.5, 0.5], nodes_missing_value_tracks_true=[0, 0, 0])
    opset = None if standard else {"ai.onnx.ml": 5}
    rewrite = splitgraph.convert(model, standard=standard, opset=opset, verify=True)
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal"


def test_another_threshold_is_a_difference() -> None:
    other = _model(nodes_values=[0.75, 0.0, 0.0])
    assert splitgraph.verify(_model(), other).verdict == "different"
