"""Numbers of features that attributes of ai.onnx.ml fix: others are refused with the node, and the rows are free."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import splitgraph

EIGHT = [float(number) for number in range(8)]
KERNEL: dict[str, Any] = {"kernel_type": "LINEAR", "kernel_params": [1.0, 0.0, 0.0]}
TREE: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [5, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "nodes_values": [0.5, 0.0, 0.0],
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.0, 2.0],
    "n_targets": 1,
}
FIXED: dict[str, dict[str, Any]] = {
    "FeatureVectorizer": {"inputdimensions": [8]},
    "Imputer": {"imputed_value_floats": EIGHT},
    "LinearClassifier": {"coefficients": EIGHT * 3, "intercepts": [0.0] * 3, "classlabels_ints": [0, 1, 2]},
    "LinearRegressor": {"coefficients": EIGHT * 2, "targets": 2},
    "Scaler": {"scale": EIGHT, "offset": EIGHT},
    "SVMClassifier": {**KERNEL, "classlabels_ints": [0, 1, 2], "coefficients": EIGHT * 3, "rho": [0.0]},
    "SVMRegressor": {**KERNEL, "coefficients": EIGHT, "rho": [0.0]},
    "ZipMap": {"classlabels_int64s": list(range(8))},
}


def table(operator: str, attributes: dict[str, Any]) -> onnx.ModelProto:
    """Return a model that reads a table of eight columns."""
    results = ["l", "y"] if operator.endswith("Classifier") else ["y"]
    node = helper.make_node(operator, ["x"], results, name="fixed", domain="ai.onnx.ml", **attributes)
    outputs = [onnx.ValueInfoProto(name=name) for name in results]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])], outputs)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


@pytest.mark.parametrize("columns", [16, "C"])
@pytest.mark.parametrize("operator", FIXED)
def test_another_number_of_features_is_refused(operator: str, columns: int | str) -> None:
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.reshape(table(operator, FIXED[operator]), {"x": [4, columns]})
    assert [(found.code, found.location) for found in caught.value.diagnostics] == [("SG420", "main/fixed")]


@pytest.mark.parametrize("operator", FIXED)
def test_the_rows_are_free(operator: str) -> None:
    assert splitgraph.reshape(table(operator, FIXED[operator]), {"x": ["N", 8]}).diagnostics == ()


def test_a_tree_needs_the_features_that_it_reads() -> None:
    made = table("TreeEnsembleRegressor", TREE)
    for columns in (6, 16, "C"):
        splitgraph.reshape(made, {"x": [4, columns]})
    with pytest.raises(splitgraph.ConversionError, match="main/fixed"):
        splitgraph.reshape(made, {"x": [4, 5]})


def test_one_number_for_all_features_leaves_them_free() -> None:
    for operator, attributes in (
        ("Scaler", {"scale": [2.0], "offset": [0.0]}),
        ("Imputer", {"imputed_value_floats": [1.0]}),
    ):
        splitgraph.reshape(table(operator, attributes), {"x": [4, "C"]})


@pytest.mark.parametrize(
    ("operator", "indices", "follows"),
    [("GatherND", [[6]], None), ("Gather", [6], [-1]), ("ReverseSequence", [7, 1], [5, 1])],
)
def test_an_index_or_a_length_that_a_smaller_size_has_not(operator: str, indices: Any, follows: Any) -> None:
    """It is refused, or has one reading left: the last element, and all of the steps."""
    node = helper.make_node(operator, ["x", "i"], ["y"], name="fixed")
    made = table(operator, {})
    made.graph.node[0].CopyFrom(node)
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 7
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 2
    made.graph.initializer.append(helper.make_tensor("i", TensorProto.INT64, np.shape(indices), np.ravel(indices)))
    if follows is None:
        with pytest.raises(splitgraph.ConversionError, match="main/fixed"):
            splitgraph.reshape(made, {"x": [5, 2]})
        return
    after = splitgraph.reshape(made, {"x": [5, 2]}).model
    read = after.graph.node[-1].input[1]
    (constant,) = (each for each in after.graph.initializer if each.name == read)
    assert numpy_helper.to_array(constant).tolist() == follows
