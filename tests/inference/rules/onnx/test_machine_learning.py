"""Classical machine learning (ai.onnx.ml): refusals, and types and shapes against what onnxruntime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, defs, helper, numpy_helper

from splitgraph.dim import Dim, evaluate
from splitgraph.inference import infer_model
from splitgraph.inference.context import rule_of
from splitgraph.inference.rules import load_rules

SIZES = ({"N": 2, "M": 3, "K": 5}, {"N": 4, "M": 1, "K": 3})
# An input: element type and shape.
Input = tuple[str, list[int | str]]
# Operator and version, inputs, attributes, expected types.
Case = tuple[str, int, list[Input], dict[str, Any], list[str]]

TABLE: list[Input] = [("float32", ["N", 3])]
ROW: list[Input] = [("float32", [3])]
KERNEL: dict[str, Any] = {"kernel_type": "LINEAR", "kernel_params": [1.0, 0.0, 0.0]}
LEAVES: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
TREE: dict[str, Any] = {**LEAVES, "nodes_values": [0.5, 0.0, 0.0]}
CLASSES: dict[str, Any] = {"class_treeids": [0, 0], "class_nodeids": [1, 2], "class_weights": [1.0, 1.0]}
TARGETS: dict[str, Any] = {
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 1],
    "target_weights": [1.0, 1.0],
}
FLAT_TREE: dict[str, Any] = {
    "tree_roots": [0],
    "nodes_featureids": [0],
    "nodes_modes": numpy_helper.from_array(np.zeros(1, np.uint8)),
    "nodes_truenodeids": [0],
    "nodes_falsenodeids": [1],
    "nodes_trueleafs": [1],
    "nodes_falseleafs": [1],
    "leaf_targetids": [0, 1],
}


def machine(classes: int, **more: Any) -> dict[str, Any]:
    """A support vector machine with one vector of three features for each class."""
    pairs = classes * (classes - 1) // 2
    return {
        **KERNEL,
        "classlabels_ints": list(range(classes)),
        "vectors_per_class": [1] * classes,
        "support_vectors": [1.0] * (3 * classes),
        "coefficients": [1.0] * max(1, classes * (classes - 1)),
        "rho": [0.0] * max(1, pairs),
        **({"prob_a": [1.0] * pairs, "prob_b": [1.0] * pairs} if more.pop("probabilities", False) else {}),
        **more,
    }


def doubles(*values: float) -> TensorProto:
    return numpy_helper.from_array(np.array(values))


def reading(feature: int) -> dict[str, Any]:
    """A tree whose only branch reads a feature; its leaves name others, which nobody reads."""
    return {**TREE, **TARGETS, "nodes_featureids": [feature, 99, 99], "n_targets": 2}


CASES: list[Case] = [
    (
        "ArrayFeatureExtractor",
        1,
        [("float32", ["N", "M", 3]), ("int64", ["K", 2])],
        {},
        ["float32[N, M, 2*K]"],
    ),
    ("ArrayFeatureExtractor", 1, [("string", ["N"]), ("int64", ["K"])], {}, ["string[1, K]"]),
    ("ArrayFeatureExtractor", 1, [("int64", ["N", 3]), ("int64", [])], {}, ["int64[N, 1]"]),
    ("Binarizer", 1, [("float32", ["N", "M", 3])], {"threshold": 0.5}, ["float32[N, M, 3]"]),
    ("CategoryMapper", 1, [("string", ["N", "M"])], {"cats_strings": ["a"], "cats_int64s": [0]}, ["int64[N, M]"]),
    ("CategoryMapper", 1, [("int64", ["N"])], {"cats_strings": ["a"], "cats_int64s": [0]}, ["string[N]"]),
    ("FeatureVectorizer", 1, [*TABLE, ("float32", ["N", 2])], {"inputdimensions": [3, 2]}, ["float32[N, 5]"]),
    ("FeatureVectorizer", 1, [("int64", ["N", "M"])], {"inputdimensions": [4]}, ["float32[N, 4]"]),
    ("FeatureVectorizer", 1, ROW, {"inputdimensions": [3]}, ["float32[1, 3]"]),
    ("Imputer", 1, [("float32", ["N", "M"])], {"imputed_value_floats": [1.0]}, ["float32[N, M]"]),
    ("Imputer", 1, [("int64", ["N", "M"])], {"imputed_value_int64s": [1]}, ["int64[N, M]"]),
    ("LabelEncoder", 1, [("string", ["N", "M"])], {"classes_strings": ["a"]}, ["int64[N, M]"]),
    ("LabelEncoder", 1, [("int64", ["N"])], {"classes_strings": ["a"]}, ["string[N]"]),
    ("LabelEncoder", 2, [("int64", ["N", 3])], {"keys_int64s": [1], "values_floats": [2.0]}, ["float32[N, 3]"]),
    ("LabelEncoder", 2, [("string", [])], {"keys_strings": ["a"], "values_int64s": [2]}, ["int64[]"]),
    (
        "LabelEncoder",
        4,
        [("float64", ["N", "M"])],
        {"keys_tensor": doubles(1.0), "values_tensor": doubles(2.0), "default_tensor": doubles(0.0)},
        ["float64[N, M]"],
    ),
    (
        "LinearClassifier",
        1,
        TABLE,
        {"coefficients": [1.0] * 9, "intercepts": [0.0] * 3, "classlabels_ints": [1, 2, 3]},
        ["int64[N]", "float32[N, 3]"],
    ),
    (
        "LinearClassifier",
        1,
        [("int64", ["N", 3])],
        {"coefficients": [1.0] * 3, "intercepts": [0.0], "classlabels_strings": ["a", "b"]},
        ["string[N]", "float32[N, 2]"],
    ),
    (
        "LinearClassifier",
        1,
        ROW,
        {"coefficients": [1.0] * 6, "intercepts": [0.0] * 2, "classlabels_ints": [1, 2]},
        ["int64[1]", "float32[1, 2]"],
    ),
    ("LinearRegressor", 1, TABLE, {"coefficients": [1.0] * 3}, ["float32[N, 1]"]),
    ("LinearRegressor", 1, ROW, {"coefficients": [1.0] * 6, "targets": 2}, ["float32[1, 2]"]),
    ("Normalizer", 1, [("int64", ["N", "M"])], {"norm": "L2"}, ["float32[N, M]"]),
    ("Normalizer", 1, [("float32", ["N"])], {"norm": "MAX"}, ["float32[N]"]),
    ("OneHotEncoder", 1, [("int64", ["N", "M"])], {"cats_int64s": [0, 1, 2, 3]}, ["float32[N, M, 4]"]),
    ("OneHotEncoder", 1, [("string", [])], {"cats_strings": ["a", "b"]}, ["float32[2]"]),
    ("Scaler", 1, [("int64", ["N", "M"])], {"scale": [2.0], "offset": [0.0]}, ["float32[N, M]"]),
    ("SVMClassifier", 1, TABLE, machine(2), ["int64[N]", "float32[N, 2]"]),
    ("SVMClassifier", 1, TABLE, machine(4), ["int64[N]", "float32[N, 6]"]),
    ("SVMClassifier", 1, TABLE, machine(4, probabilities=True), ["int64[N]", "float32[N, 4]"]),
    ("SVMClassifier", 1, ROW, machine(1), ["int64[1]", "float32[1, 2]"]),
    (
        "SVMClassifier",
        1,
        TABLE,
        {**KERNEL, "classlabels_strings": ["a", "b", "c", "d"], "coefficients": [1.0] * 12, "rho": [0.0]},
        ["string[N]", "float32[N, 4]"],
    ),
    (
        "SVMRegressor",
        1,
        TABLE,
        {**KERNEL, "n_supports": 1, "support_vectors": [1.0] * 3, "coefficients": [1.0], "rho": [0.0]},
        ["float32[N, 1]"],
    ),
    ("SVMRegressor", 1, ROW, {**KERNEL, "coefficients": [1.0] * 3, "rho": [0.0]}, ["float32[1, 1]"]),
    (
        "TreeEnsembleClassifier",
        1,
        TABLE,
        {**TREE, **CLASSES, "class_ids": [0, 1], "classlabels_int64s": [5, 6]},
        ["int64[N]", "float32[N, 2]"],
    ),
    (
        "TreeEnsembleClassifier",
        3,
        TABLE,
        {**TREE, **CLASSES, "class_ids": [0, 0], "classlabels_strings": ["a", "b"]},
        ["string[N]", "float32[N, 2]"],
    ),
    (
        "TreeEnsembleClassifier",
        1,
        ROW,
        {**TREE, **CLASSES, "class_ids": [0, 2], "classlabels_int64s": [1, 2, 3]},
        ["int64[1]", "float32[1, 3]"],
    ),
    ("TreeEnsembleRegressor", 1, TABLE, {**TREE, **TARGETS, "n_targets": 2}, ["float32[N, 2]"]),
    (
        "TreeEnsembleRegressor",
        3,
        [("float64", ["N", 3])],
        {
            **LEAVES,
            **{name: held for name, held in TARGETS.items() if name != "target_weights"},
            "nodes_values_as_tensor": doubles(0.5, 0.0, 0.0),
            "target_weights_as_tensor": doubles(1.0, 1.0),
            "n_targets": 3,
        },
        ["float32[N, 3]"],
    ),
    (
        "TreeEnsemble",
        5,
        [("float64", ["N", 3])],
        {**FLAT_TREE, "nodes_splits": doubles(0.5), "leaf_weights": doubles(1.0, 2.0), "n_targets": 2},
        ["float64[N, 2]"],
    ),
]

# Operator and version, inputs, attributes, part of the message.
REFUSED: list[tuple[str, int, list[Input], dict[str, Any], str]] = [
    ("ArrayFeatureExtractor", 1, [("float32", []), ("int64", [2])], {}, "is a scalar"),
    ("Imputer", 1, [("float32", [])], {"imputed_value_floats": [1.0]}, "is a scalar"),
    ("Scaler", 1, [("float32", [])], {}, "is a scalar"),
    ("Scaler", 1, TABLE, {"scale": [1.0] * 2, "offset": [0.0] * 2}, "2 factors for 3 features"),
    ("Scaler", 1, ROW, {"scale": [1.0] * 2, "offset": [0.0] * 2}, "2 factors for 3 features"),
    ("Scaler", 1, [("float32", ["N", 3, 4])], {"scale": [1.0] * 5, "offset": [0.0] * 5}, "5 factors for 3 features"),
    ("Normalizer", 1, [("float32", ["N", 2, 3])], {}, "rank 3; it must be [C] or [N, C]"),
    ("LinearRegressor", 1, [("float32", [])], {}, "rank 0; it must be [C] or [N, C]"),
    ("LinearRegressor", 1, TABLE, {"targets": 0}, "'targets' is 0"),
    ("OneHotEncoder", 1, [("int64", ["N"])], {}, "exactly one"),
    ("OneHotEncoder", 1, [("int64", ["N"])], {"cats_int64s": [1], "cats_strings": ["a"]}, "exactly one"),
    ("FeatureVectorizer", 1, TABLE, {"inputdimensions": [3, 2]}, "2 inputdimensions for 1 inputs"),
    ("FeatureVectorizer", 1, [("float32", [2, 3]), ("float32", [4, 3])], {}, "numbers of rows must be equal"),
    ("LabelEncoder", 2, [("int64", [2])], {"values_floats": [1.0], "values_strings": ["a"]}, "more than one"),
    ("LabelEncoder", 2, [("int64", [2])], {"keys_strings": ["a"], "values_floats": [1.0]}, "the keys are string"),
    ("LabelEncoder", 2, [("int64", [2])], {"keys_int64s": [1, 2], "values_floats": [1.0]}, "2 keys for 1 values"),
    ("LabelEncoder", 4, [("int64", [2])], {"keys_int64s": [1]}, "none of the attributes values_*"),
    ("SVMClassifier", 1, TABLE, {}, "one must be given"),
    ("TreeEnsembleClassifier", 3, TABLE, {}, "one must be given"),
    ("TreeEnsembleRegressor", 3, TABLE, {"n_targets": 0}, "'n_targets' is 0"),
    ("TreeEnsembleRegressor", 3, TABLE, reading(3), "a branch reads feature 3; the input has 3 columns"),
    ("TreeEnsembleRegressor", 1, ROW, reading(3), "a branch reads feature 3; the input has 3 columns"),
    ("TreeEnsembleRegressor", 3, ROW, {"n_targets": 1}, "rank 1; it must have rank 2"),
    ("TreeEnsembleClassifier", 3, ROW, {"classlabels_int64s": [1]}, "rank 1; it must have rank 2"),
    (
        "TreeEnsemble",
        5,
        TABLE,
        {**FLAT_TREE, "nodes_splits": doubles(0.5), "leaf_weights": doubles(1.0, 2.0)},
        "has the type float64; it must be float32",
    ),
    (
        "TreeEnsemble",
        5,
        [("float64", ["N", 3])],
        {**FLAT_TREE, "nodes_splits": doubles(0.5), "leaf_weights": doubles(1.0)},
        "leaf_targetids has 2, leaf_weights has 1",
    ),
    ("ZipMap", 1, TABLE, {}, "one must be given"),
    ("ZipMap", 1, TABLE, {"classlabels_int64s": [1, 2]}, "must be equal, not 3 and 2"),
    ("CastMap", 1, TABLE, {}, "is a tensor, not a map"),
    ("DictVectorizer", 1, TABLE, {"string_vocabulary": ["a"]}, "is a tensor, not a map"),
    ("Binarizer", 1, [("string", ["N"])], {}, "input 0 is string"),
]


def model_of(
    operator: str, version: int, inputs: list[Input], attributes: dict[str, Any], outputs: int
) -> onnx.ModelProto:
    values = [
        helper.make_tensor_value_info(f"i{index}", helper.np_dtype_to_tensor_dtype(np.dtype(_numpy(dtype))), shape)
        for index, (dtype, shape) in enumerate(inputs)
    ]
    return with_inputs(operator, version, values, attributes, outputs)


def with_inputs(
    operator: str, version: int, values: list[onnx.ValueInfoProto], attributes: dict[str, Any], outputs: int
) -> onnx.ModelProto:
    results = [f"o{index}" for index in range(outputs)]
    names = [value.name for value in values]
    node = helper.make_node(operator, names, results, domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name=name) for name in results])
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def _numpy(dtype: str) -> str:
    return "object" if dtype == "string" else dtype


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def feed(given: Input, sizes: dict[str, int]) -> np.ndarray:
    """Zeros, which are positions and categories everywhere, and the string "a"."""
    shape = [sizes.get(dim, 0) if isinstance(dim, str) else dim for dim in given[1]]
    return np.full(shape, "a" if given[0] == "string" else 0, _numpy(given[0]))


def test_every_operator_has_a_rule() -> None:
    load_rules()
    names = {schema.name for schema in defs.get_all_schemas_with_history() if schema.domain == "ai.onnx.ml"}
    assert names
    assert not [name for name in names if rule_of("ai.onnx.ml", name) is None]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]}-{case[4]}")
def test_an_invalid_node_is_a_finding(case: Any) -> None:
    outputs = 2 if case[0].endswith("Classifier") else 1
    (found,) = infer_model(model_of(*case[:4], outputs)).diagnostics
    assert found.code == "SG302" and case[4] in found.message


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[4][-1]}")
def test_types_and_shapes_are_those_of_onnxruntime(case: Case) -> None:
    operator, version, inputs, attributes, expected = case
    model = model_of(operator, version, inputs, attributes, len(expected))
    analysis = infer_model(model)
    assert analysis.ok and not analysis.obligations
    found = [analysis.types[f"o{position}"] for position in range(len(expected))]
    assert [str(known) for known in found] == expected
    session = session_of(model)
    for sizes in SIZES:
        outputs = session.run(None, {f"i{index}": feed(given, sizes) for index, given in enumerate(inputs)})
        for known, real in zip(found, outputs, strict=True):
            assert _numpy(str(known.dtype)) == str(real.dtype)
            shape = [evaluate(dim, sizes) if isinstance(dim, Dim) else dim for dim in known.shape or ()]
            assert shape == list(real.shape)


SPLITTING: dict[str, Any] = {**FLAT_TREE, "nodes_splits": doubles(0.5), "leaf_weights": doubles(1.0, 2.0)}
FEATURES: list[Input] = [("float32", ["N", "C"])]
EIGHT: dict[str, Any] = {"coefficients": [1.0] * 8}
# Operator, version, inputs, attributes, what the attributes require of the sizes.
REQUIRING: list[tuple[str, int, list[Input], dict[str, Any], list[str]]] = [
    ("Scaler", 1, FEATURES, {"scale": [2.0], "offset": [0.0]}, []),
    ("Scaler", 1, FEATURES, {"scale": [2.0] * 8, "offset": [0.0] * 8}, ["C == 8"]),
    ("Scaler", 1, [("float32", ["C"])], {"scale": [2.0] * 8, "offset": [0.0] * 8}, ["C == 8"]),
    ("Scaler", 1, [("float32", ["N", "C", 4])], {"scale": [2.0] * 8, "offset": [0.0] * 8}, ["C == 8"]),
    ("Scaler", 1, [("float32", ["N", 4, "C"])], {"scale": [2.0] * 8, "offset": [0.0] * 8}, ["C == 8"]),
    # One engine has the features on axis 1, the other on the last axis.
    ("Scaler", 1, [("float32", ["N", "C", "D"])], {"scale": [2.0] * 8, "offset": [0.0] * 8}, []),
    ("Scaler", 1, [("float32", ["N", 8, "D"])], {"scale": [2.0] * 8, "offset": [0.0] * 8}, []),
    ("Imputer", 1, FEATURES, {"imputed_value_floats": [1.0]}, []),
    ("Imputer", 1, FEATURES, {"imputed_value_floats": [1.0] * 8}, ["C == 8"]),
    ("LinearClassifier", 1, FEATURES, {"coefficients": [1.0] * 24, "intercepts": [0.0] * 3}, ["C == 8"]),
    ("LinearRegressor", 1, FEATURES, EIGHT, ["C == 8"]),
    ("LinearRegressor", 1, [("float32", ["C"])], EIGHT, ["C == 8"]),
    ("SVMRegressor", 1, FEATURES, {**KERNEL, **EIGHT}, ["C == 8"]),
    ("SVMClassifier", 1, FEATURES, machine(4), ["C == 3"]),
    ("TreeEnsembleRegressor", 1, FEATURES, reading(5), ["C >= 6"]),
    ("TreeEnsembleRegressor", 3, FEATURES, reading(5), ["C >= 6"]),
    ("TreeEnsemble", 5, [("float64", ["N", "C"])], {**SPLITTING, "nodes_featureids": [5], "n_targets": 2}, ["C >= 6"]),
    ("ZipMap", 1, FEATURES, {"classlabels_int64s": [1, 2]}, ["C == 2"]),
]


@pytest.mark.parametrize("case", REQUIRING, ids=lambda case: f"{case[0]}-{case[1]}-{case[2][0][1]}-{case[4]}")
def test_attributes_require_a_number_of_features(case: Any) -> None:
    *node, expected = case
    analysis = infer_model(model_of(*node, 2 if node[0].endswith("Classifier") else 1))
    assert analysis.ok and [str(each) for each in analysis.obligations] == expected


def test_an_imputer_with_values_for_other_features_runs_in_one_engine_only() -> None:
    analysis = infer_model(model_of("Imputer", 1, TABLE, {"imputed_value_floats": [1.0, 2.0]}, 1))
    (found,) = analysis.diagnostics
    assert analysis.ok and (found.code, found.severity) == ("SG302", "warning")
    assert "2 imputed values for 3 features" in found.message and "onnxruntime" in found.message


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[4][-1]}")
def test_the_shape_of_an_input_may_be_unknown(case: Case) -> None:
    operator, version, inputs, attributes, expected = case
    model = model_of(operator, version, inputs, attributes, len(expected))
    exact = infer_model(model).types
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")
    analysis = infer_model(model)
    assert analysis.ok
    for position in range(len(expected)):
        known = analysis.types[f"o{position}"]
        assert known.dtype == exact[f"o{position}"].dtype
        assert known.rank in (None, exact[f"o{position}"].rank)


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "expected"),
    [
        # What onnxruntime refuses, or sizes by what the node does not say.
        ("LinearClassifier", TABLE, {"coefficients": [1.0] * 6, "classlabels_ints": [1, 2]}, "float32[N, ?]"),
        ("TreeEnsembleRegressor", TABLE, {}, "float32[N, ?]"),
        ("FeatureVectorizer", TABLE, {}, "float32[N, ?]"),
        ("LabelEncoder", [("int64", ["N"])], {}, "?[N]"),
    ],
)
def test_what_stays_open(operator: str, inputs: list[Input], attributes: dict[str, Any], expected: str) -> None:
    analysis = infer_model(model_of(operator, 3, inputs, attributes, 2 if operator == "LinearClassifier" else 1))
    assert analysis.ok
    assert str(analysis.types["o1" if operator == "LinearClassifier" else "o0"]) == expected


@pytest.mark.parametrize("version", [1, 4, 5, 6])
@pytest.mark.parametrize(
    ("operator", "attributes"),
    [("TreeEnsemble", {"nodes_modes": 5, "tree_roots": [0]}), ("TreeEnsembleRegressor", {"n_targets": [1]})],
)
def test_an_operator_of_another_version_is_checked_all_the_same(
    operator: str, version: int, attributes: dict[str, Any]
) -> None:
    found = infer_model(model_of(operator, version, TABLE, attributes, 1)).diagnostics
    deprecated = operator == "TreeEnsembleRegressor" and version >= 5
    assert [each.code for each in found if each.severity == "error"] == ["SG214" if deprecated else "SG212"]


def map_input(key: int, value: int) -> onnx.ValueInfoProto:
    info = onnx.ValueInfoProto(name="i0")
    info.type.map_type.key_type = key
    info.type.map_type.value_type.CopyFrom(helper.make_tensor_type_proto(value, []))
    return info


INT64, FLOAT, STRING = TensorProto.INT64, TensorProto.FLOAT, TensorProto.STRING


@pytest.mark.parametrize(
    ("operator", "types", "attributes", "expected", "data"),
    [
        ("CastMap", (INT64, FLOAT), {}, "float32[...]", {1: 2.0, 3: 4.0}),
        ("CastMap", (INT64, FLOAT), {"cast_to": "TO_INT64"}, "int64[...]", {1: 2.0}),
        (
            "CastMap",
            (INT64, FLOAT),
            {"cast_to": "TO_STRING", "map_form": "SPARSE", "max_map": 7},
            "string[...]",
            {1: 2.0},
        ),
        ("DictVectorizer", (STRING, FLOAT), {"string_vocabulary": ["a", "b", "c"]}, "float32[1, 3]", {"a": 2.0}),
        ("DictVectorizer", (INT64, FLOAT), {"int64_vocabulary": [1, 2]}, "float32[1, 2]", {1: 2.0}),
    ],
)
def test_maps_to_tensors(
    operator: str, types: tuple[int, int], attributes: dict[str, Any], expected: str, data: Any
) -> None:
    model = with_inputs(operator, 1, [map_input(*types)], attributes, 1)
    known = infer_model(model).types["o0"]
    assert str(known) == expected
    (real,) = session_of(model).run(None, {"i0": data})
    assert _numpy(str(known.dtype)) == str(real.dtype)
    assert known.shape is None or list(known.shape) == list(real.shape)


@pytest.mark.parametrize(
    ("attributes", "key"),
    [({"classlabels_int64s": [1, 2, 3]}, "int64"), ({"classlabels_strings": ["a", "b", "c"]}, "string")],
)
def test_tensors_to_maps(attributes: dict[str, Any], key: str) -> None:
    model = model_of("ZipMap", 1, TABLE, attributes, 1)
    known = infer_model(model).types["o0"]
    assert known.kind == "sequence" and known.element is not None
    assert (known.element.kind, known.element.dtype) == ("map", key)
    assert known.element.element is not None and known.element.element.dtype == "float32"
    (real,) = session_of(model).run(None, {"i0": np.zeros((2, 3), np.float32)})
    assert len(real) == 2 and isinstance(next(iter(real[0])), int if key == "int64" else str)


def test_what_a_converter_declares_of_a_map_is_no_contradiction() -> None:
    model = model_of("ZipMap", 1, TABLE, {"classlabels_int64s": [1, 2, 3]}, 1)
    declared = model.graph.output[0].type.sequence_type.elem_type.map_type
    declared.key_type = TensorProto.INT64
    declared.value_type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    assert not infer_model(model).diagnostics
