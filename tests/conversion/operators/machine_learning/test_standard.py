"""Operators of ai.onnx.ml in those of ai.onnx alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.machine_learning.trees import (
    MODES,
    Branch,
    Growing,
    Leaf,
    new_attributes,
    old_attributes,
    tensor,
)
from conversion.operators.machine_learning.versions import OneNode, every, run, texts

import splitgraph
from splitgraph.conversion.operators.standard import registered
from splitgraph.model.schemas.table import operator_names
from splitgraph.model.scopes import MACHINE_LEARNING

NAN = float("nan")
ROWS = np.random.default_rng(0).standard_normal((5, 3)).astype("float32")
INTEGERS = np.random.default_rng(1).integers(-3, 4, (5, 3))
WITH_ZEROS = np.where(np.abs(ROWS) < 0.5, 0, ROWS).astype("float32")
WITH_ZEROS[2] = 0


def check(one: OneNode, opsets: Sequence[int] = (17, 11), tolerance: float = 2e-6) -> None:
    """Compare the standard form with the kernel."""
    model = one.declared()
    wanted = run(model, one.data)
    for opset in opsets:
        result = splitgraph.convert(model, standard=True, opset=opset).model
        assert {node.domain for node in result.graph.node} <= {""}
        assert {entry.domain for entry in result.opset_import} == {""}
        if one.free is not None:
            onnx.checker.check_model(result, full_check=True)
        for kernel, got in zip(wanted, run(result, one.data), strict=True):
            assert (got.dtype, got.shape) == (kernel.dtype, kernel.shape), opset
            if kernel.dtype.kind == "f":
                np.testing.assert_allclose(got, kernel, tolerance, tolerance, err_msg=str(opset))
            else:
                np.testing.assert_array_equal(got, kernel, err_msg=str(opset))


# What stays -----------------------------------------------------------------------------------------------------------


def test_every_operator_has_a_form_or_a_reason() -> None:
    forms, reasons = registered(MACHINE_LEARNING)
    assert forms | reasons == set(operator_names(MACHINE_LEARNING))
    assert not forms & reasons


STAYING = {
    "strings": (OneNode("LabelEncoder", 2, texts("a"), {"keys_strings": ["a"], "values_int64s": [1]}), "strings"),
    "categories of strings": (OneNode("OneHotEncoder", 1, texts("a", "b"), {"cats_strings": ["a"]}), "string"),
    "a map": (OneNode("ZipMap", 1, ROWS, {"classlabels_int64s": [1, 2, 3]}), "--drop-zipmap"),
    "strings to numbers": (
        OneNode("CategoryMapper", 1, texts("a"), {"cats_strings": ["a"], "cats_int64s": [1]}),
        "strings",
    ),
    "three dimensions": (OneNode("Scaler", 1, ROWS[None], {"offset": [0.0] * 3, "scale": [1.0] * 3}), "two dimensions"),
    "no rank": (OneNode("Normalizer", 1, ROWS, {"norm": "L1"}, free=None), "rank"),
    "post transform": (
        OneNode(
            "TreeEnsemble",
            5,
            ROWS,
            {**new_attributes(Growing(1).trees(2, [[0]]), "float32"), "n_targets": 1, "post_transform": 2},
        ),
        "SOFTMAX by the specification",
    ),
}


@pytest.mark.parametrize("name", STAYING)
def test_what_has_no_form_stays_with_a_note(name: str) -> None:
    one, text = STAYING[name]
    model = one.model()
    rewrite = splitgraph.convert(model, standard=True)
    assert rewrite.model.graph == model.graph
    (note,) = (finding for finding in rewrite.diagnostics if finding.code == "SG425")
    assert note.severity == "info"
    assert text in note.message
    assert not rewrite.changes


def test_a_node_that_stays_goes_to_the_version_that_is_asked_for() -> None:
    one = OneNode("LabelEncoder", 1, texts("a", "b"), {"classes_strings": ["a", "b"]})
    rewrite = splitgraph.convert(one.model(), standard=True, opset={"": 13, "ai.onnx.ml": 4})
    assert rewrite.to_opset == {"": 13, "ai.onnx.ml": 4}
    assert rewrite.model.graph.node[0].attribute[0].name == "keys_strings"
    assert run(rewrite.model, one.data)[0].tolist() == [0, 1]


# Features -------------------------------------------------------------------------------------------------------------


SCALER: dict[str, Any] = {"offset": [0.5, -1.0, 2.0], "scale": [2.0, 0.3, -1.5]}
FEATURES: dict[str, OneNode] = {
    **{
        f"Scaler {data.dtype}": OneNode("Scaler", 1, data, SCALER)
        for data in (ROWS, ROWS.astype("float64"), INTEGERS, INTEGERS.astype("int32"))
    },
    "Scaler row": OneNode("Scaler", 1, ROWS[0], SCALER),
    "Scaler one number": OneNode("Scaler", 1, ROWS[None], {"offset": [0.5], "scale": [3.0]}),
    "Scaler free": OneNode("Scaler", 1, ROWS, SCALER, free=True),
    **{
        f"Normalizer {norm} {data.dtype} {data.shape}": OneNode("Normalizer", 1, data, {"norm": norm})
        for norm in ("MAX", "L1", "L2")
        for data in (WITH_ZEROS, -np.abs(WITH_ZEROS), ROWS[1], INTEGERS, WITH_ZEROS.astype("float64"))
    },
    "Normalizer default": OneNode("Normalizer", 1, ROWS),
    "Binarizer": OneNode("Binarizer", 1, WITH_ZEROS, {"threshold": 0.25}),
    "Binarizer default": OneNode("Binarizer", 1, WITH_ZEROS[None], free=None),
    "Imputer NaN": OneNode(
        "Imputer",
        1,
        np.where(ROWS < 0, NAN, ROWS).astype("float32"),
        {"imputed_value_floats": [1.0, 2.0, 3.0], "replaced_value_float": NAN},
    ),
    "Imputer value": OneNode("Imputer", 1, WITH_ZEROS, {"imputed_value_floats": [7.5], "replaced_value_float": 0.0}),
    "Imputer default": OneNode("Imputer", 1, WITH_ZEROS, {"imputed_value_floats": [7.5]}),
    "Imputer int64": OneNode("Imputer", 1, INTEGERS, {"imputed_value_int64s": [7, 8, 9], "replaced_value_int64": -1}),
    "Imputer int64 one": OneNode("Imputer", 1, INTEGERS, {"imputed_value_int64s": [7], "replaced_value_int64": 2}),
    **{
        f"OneHotEncoder {data.dtype} {data.shape}": OneNode("OneHotEncoder", 1, data, {"cats_int64s": [2, -1, 0, 9]})
        for data in (
            INTEGERS,
            INTEGERS[0],
            (INTEGERS + 0.7).astype("float32"),
            INTEGERS.astype("float64"),
        )
    },
    "OneHotEncoder no zeros": OneNode("OneHotEncoder", 1, np.array([1, 2]), {"cats_int64s": [1, 2, 3], "zeros": 0}),
    "LabelEncoder int64": OneNode("LabelEncoder", 2, INTEGERS, {"keys_int64s": [0, 2, 0], "values_int64s": [5, 6, 7]}),
    "LabelEncoder far": OneNode("LabelEncoder", 2, INTEGERS, {"keys_int64s": [0, 2**60], "values_floats": [5.5, 6.5]}),
    "LabelEncoder float": OneNode(
        "LabelEncoder",
        3,
        every([1.5, NAN, -0.0, 9], "float32"),
        {"keys_floats": [1.5, NAN, 0.0], "values_int64s": [5, 6, 7]},
    ),
    "LabelEncoder NaN": OneNode(
        "LabelEncoder",
        4,
        every([1.5, NAN, -0.0, 9], "float32"),
        {"keys_floats": [1.5, NAN, 0.0], "values_floats": [5.0, 6.0, 7.0]},
    ),
    "LabelEncoder double": OneNode(
        "LabelEncoder",
        4,
        every([0.1, NAN, 9], "float64"),
        {"keys_tensor": tensor([0.1, NAN], "float64"), "values_tensor": tensor([1.1, 2.2], "float64")},
    ),
}


@pytest.mark.parametrize("name", FEATURES)
def test_features(name: str) -> None:
    check(FEATURES[name])


def _model(node: onnx.NodeProto, *arrays: Any, free: bool = False) -> onnx.ModelProto:
    helper = onnx.helper
    given = [
        helper.make_tensor_value_info(
            f"x{place}",
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [f"x{place}_{axis}" for axis in range(array.ndim)] if free else array.shape,
        )
        for place, array in enumerate(arrays)
    ]
    graph = helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name="y")])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


SEVERAL: dict[str, tuple[str, dict[str, Any], list[Any], bool]] = {
    "extract": ("ArrayFeatureExtractor", {}, [ROWS, np.array([[2, 0]])], False),
    "extract free": ("ArrayFeatureExtractor", {}, [ROWS, np.array([2, 0, 0])], True),
    "extract a row": ("ArrayFeatureExtractor", {}, [ROWS[0], np.array([1])], False),
    "extract deep": ("ArrayFeatureExtractor", {}, [ROWS[None], np.array([1, 2])], False),
    "vectorize": ("FeatureVectorizer", {"inputdimensions": [3, 3]}, [ROWS, WITH_ZEROS], False),
    "vectorize cut": ("FeatureVectorizer", {"inputdimensions": [2, 5]}, [INTEGERS, INTEGERS], False),
    "vectorize free": (
        "FeatureVectorizer",
        {"inputdimensions": [2, 5]},
        [ROWS.astype("float64"), INTEGERS.astype("float64")],
        True,
    ),
    "vectorize one": ("FeatureVectorizer", {"inputdimensions": [4]}, [ROWS], True),
}


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("opset", [17, 11])
def test_several_inputs(name: str, opset: int) -> None:
    import onnxruntime

    operator, attributes, arrays, free = SEVERAL[name]
    names = [f"x{place}" for place in range(len(arrays))]
    node = onnx.helper.make_node(operator, names, ["y"], domain="ai.onnx.ml", **attributes)
    model = _model(node, *arrays, free=free)
    result = splitgraph.convert(model, standard=True, opset=opset).model
    assert {made.domain for made in result.graph.node} == {""}
    feeds = dict(zip(names, arrays, strict=True))
    wanted, got = (
        onnxruntime.InferenceSession(each.SerializeToString()).run(None, feeds)[0] for each in (model, result)
    )
    assert wanted.dtype == got.dtype
    np.testing.assert_array_equal(got, wanted)


# Linear models and support vector machines ----------------------------------------------------------------------------


POSTS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
_DRAWN = np.random.default_rng(5)


def _numbers(count: int) -> list[float]:
    return [float(each) for each in _DRAWN.standard_normal(count).astype("float32")]


LINEAR: dict[str, OneNode] = {
    **{
        f"regressor {count} {post}": OneNode(
            "LinearRegressor",
            1,
            ROWS,
            {
                "coefficients": _numbers(3 * count),
                "intercepts": _numbers(count),
                "targets": count,
                "post_transform": post,
            },
        )
        for count in (1, 3)
        for post in POSTS
    },
    "regressor without intercepts": OneNode("LinearRegressor", 1, ROWS, {"coefficients": _numbers(3)}),
    **{
        f"classifier {kind} {post} {data.dtype}": OneNode(
            "LinearClassifier",
            1,
            data,
            {"coefficients": _numbers(9), "intercepts": _numbers(3), "post_transform": post, **labels},
            outputs=2,
        )
        for post in POSTS
        for data in (ROWS, INTEGERS, ROWS.astype("float64"))
        for kind, labels in (
            ("ints", {"classlabels_ints": [7, 5, 9]}),
            ("strings", {"classlabels_strings": ["a", "b", "c"]}),
        )
    },
    **{
        f"classifier of two {rows} {post}": OneNode(
            "LinearClassifier",
            1,
            ROWS,
            {
                "coefficients": _numbers(3 * rows),
                "intercepts": _numbers(rows),
                "post_transform": post,
                "classlabels_ints": [7, 5],
            },
            outputs=2,
        )
        for rows in (1, 2)
        for post in POSTS[: 5 if rows == 2 else 4]
    },
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_models(name: str) -> None:
    check(LINEAR[name], tolerance=2e-3 if "PROBIT" in name else 4e-6)


KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
SVM: dict[str, OneNode] = {
    **{
        f"regressor {kind} {one_class}": OneNode(
            "SVMRegressor",
            1,
            ROWS,
            {
                "kernel_type": kind,
                "kernel_params": [0.4, 0.3, 2.0],
                "support_vectors": _numbers(12),
                "coefficients": _numbers(4),
                "rho": _numbers(1),
                "n_supports": 4,
                "one_class": one_class,
            },
        )
        for kind in KERNELS
        for one_class in (0, 1)
    },
    **{
        f"classifier {kind} {len(sizes)} {labels}": OneNode(
            "SVMClassifier",
            1,
            ROWS,
            {
                "kernel_type": kind,
                "kernel_params": [0.4, 0.3, 2.0],
                "support_vectors": _numbers(3 * sum(sizes)),
                "coefficients": _numbers((len(sizes) - 1) * sum(sizes)),
                "rho": _numbers(len(sizes) * (len(sizes) - 1) // 2),
                "vectors_per_class": sizes,
                labels: named[: len(sizes)],
            },
            outputs=2,
        )
        for kind in KERNELS
        for sizes in ([2, 3], [1, 3, 2], [2, 1, 2, 2])
        for labels, named in (("classlabels_ints", [7, 8, 9, 4]), ("classlabels_strings", ["a", "b", "c", "d"]))
    },
}


@pytest.mark.parametrize("name", SVM)
def test_support_vector_machines(name: str) -> None:
    check(SVM[name], tolerance=2e-5)


# The first rows make the kernels of some vectors infinite, and of others NaN.
FAR = np.array([[np.inf, 0.0], [0.0, -np.inf], [np.nan, 1.0], [2.0, 1.0], [-1.0, 0.5]], "float32")
INFINITE = {
    f"{kind} {sizes}": OneNode(
        "SVMClassifier",
        1,
        FAR,
        {
            "kernel_type": kind,
            "kernel_params": [0.4, 0.3, 2.0],
            "support_vectors": [float(each) for each in range(-3, 2 * sum(sizes) - 3)],
            "coefficients": [0.5 - 0.75 * (place % 3) for place in range((len(sizes) - 1) * sum(sizes))],
            "rho": [0.1 * place for place in range(len(sizes) * (len(sizes) - 1) // 2)],
            "vectors_per_class": sizes,
            "classlabels_ints": [7, 8, 9, 4][: len(sizes)],
        },
        outputs=2,
    )
    for kind in KERNELS
    for sizes in ([2, 3], [1, 3, 2], [1, 1, 1, 1], [2, 0, 1])
}


@pytest.mark.parametrize("name", INFINITE)
def test_an_infinite_kernel_counts_for_its_own_classes_alone(name: str) -> None:
    check(INFINITE[name], tolerance=2e-5)


# Trees ----------------------------------------------------------------------------------------------------------------


TARGETS: dict[str, tuple[int, list[list[int]]]] = {"one": (1, [[0]]), "some": (3, [[0], [1, 2], [0, 2]])}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("modes", [MODES[:1], MODES[3:4], MODES[5:], MODES], ids=len)
@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_trees(aggregate: str, targets: str, modes: Sequence[str], dtype: str) -> None:
    growing = Growing(len(modes) + len(aggregate), modes)
    count, sets = TARGETS[targets]
    trees, data = growing.trees(4, sets), growing.data(9, dtype)
    attributes = old_attributes(trees, "target", dtype)
    more = {"n_targets": count, "aggregate_function": aggregate, "base_values_as_tensor": tensor([0.25] * count, dtype)}
    check(OneNode("TreeEnsembleRegressor", 3, data, {**attributes, **more}), tolerance=0)


@pytest.mark.parametrize("members", [False, True], ids=["", "members"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("free", [False, True])
def test_new_ensembles(members: bool, dtype: str, free: bool) -> None:
    growing = Growing(11, members=members)
    trees, data = growing.trees(6, [[0], [1]]), growing.data(9, dtype)
    attributes = {**new_attributes(trees, dtype), "n_targets": 2}
    check(OneNode("TreeEnsemble", 5, data, attributes, free=free), tolerance=0)


@pytest.mark.parametrize("labels", ["classlabels_int64s", "classlabels_strings"])
@pytest.mark.parametrize(("count", "sets"), [(3, [[0, 1, 2]]), (3, [[0], [2]]), (2, [[0]]), (2, [[0, 1]])])
@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_tree_classifiers(post: str, count: int, sets: list[list[int]], labels: str) -> None:
    growing = Growing(count + len(sets) + len(post))
    named: list[Any] = [10, 20, 30][:count] if labels.endswith("int64s") else ["a", "b", "c"][:count]
    attributes = old_attributes(growing.trees(5, sets), "class")
    data = growing.data(9, "float32")
    check(OneNode("TreeEnsembleClassifier", 1, data, {**attributes, labels: named, "post_transform": post}, outputs=2))


@pytest.mark.parametrize("rows", [1, 0])
def test_trees_of_leaves_alone_give_a_row_for_each_row(rows: int) -> None:
    attributes = {**old_attributes([Leaf(((0, 1.5),)), Leaf(((0, 2.0),))], "target"), "n_targets": 1}
    check(OneNode("TreeEnsembleRegressor", 1, ROWS[:rows], attributes, free=True))


@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("other", MODES)
def test_every_number_is_unequal_to_a_threshold_of_nan(other: str, missing: int) -> None:
    inner = Branch(1, other, NAN, bool(missing), Leaf(((0, 2.0),)), Leaf(((0, 4.0),)))
    trees = [Branch(0, "BRANCH_NEQ", NAN, bool(missing), inner, Leaf(((0, 1.0),)))]
    attributes = {**old_attributes(trees, "target"), "n_targets": 1}
    data = every([[1, 2, 0], [NAN, NAN, 0], [3, NAN, 0], [NAN, 4, 0]], "float32")
    check(OneNode("TreeEnsembleRegressor", 1, data, attributes), tolerance=0)


@pytest.mark.parametrize("labels", [[7, 8], [7, 8, 9]], ids=len)
def test_a_value_of_a_leaf_is_no_weight_of_a_class(labels: list[int]) -> None:
    held = [Branch(0, "BRANCH_LEQ", 0.0, False, Leaf(((0, 0.25), (1, -0.5))), Leaf(())), Leaf(((0, 0.5), (1, 1.0)))]
    attributes = {**old_attributes(held, "class"), "nodes_values": [0.0, 7.0, 5.0, 3.0], "classlabels_int64s": labels}
    check(OneNode("TreeEnsembleClassifier", 1, ROWS, attributes, outputs=2))
