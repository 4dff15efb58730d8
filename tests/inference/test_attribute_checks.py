"""What attributes, inputs and outputs of a node demand of each other, by the specification."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import ModelProto, TensorProto, helper

import splitgraph

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
ML, PREVIEW = "ai.onnx.ml", "ai.onnx.preview"


def model_of(
    op_type: str,
    inputs: dict[str, tuple[int, list[Any]]],
    outputs: list[str],
    opset: int,
    domain: str = "",
    constants: dict[str, list[int]] | None = None,
    order: list[str] | None = None,
    **attributes: Any,
) -> ModelProto:
    given = [helper.make_tensor_value_info(name, *held) for name, held in inputs.items()]
    held = [helper.make_tensor(name, INT64, [len(items)], items) for name, items in (constants or {}).items()]
    names = order or [*inputs, *(constants or {})]
    node = helper.make_node(op_type, names, outputs, name="n", domain=domain, **attributes)
    declared = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    imports = [helper.make_opsetid("", opset if not domain else 21), helper.make_opsetid(domain or "other", opset)]
    return helper.make_model(
        helper.make_graph([node], "g", given, declared, held), opset_imports=imports, ir_version=10
    )


def conv(op_type: str = "Conv", **attributes: Any) -> ModelProto:
    inputs = {"x": (FLOAT, [1, 1, 4, 4]), "w": (FLOAT, [1, 1, 3, 3])}
    return model_of(op_type, inputs, ["y"], 17, **attributes)


def pool(op_type: str, **attributes: Any) -> ModelProto:
    return model_of(op_type, {"x": (FLOAT, [1, 1, 4, 4])}, ["y"], 17, kernel_shape=[3, 3], **attributes)


def attention(
    rank: int = 4, outputs: list[str] | None = None, heads: tuple[int, int] = (4, 2), **attributes: Any
) -> ModelProto:
    order = attributes.pop("order", None)
    shapes = [[2, heads[0], 3, 8], [2, heads[1], 5, 8], [2, heads[1], 5, 8]]
    if rank == 3:
        shapes = [[2, 3, 8 * heads[0]], [2, 5, 8 * heads[1]], [2, 5, 8 * heads[1]]]
    inputs = {name: (FLOAT, shape) for name, shape in zip("qkv", shapes, strict=True)}
    inputs |= {name: (FLOAT, [2, heads[1], 6, 8]) for name in ("pk", "pv")}
    inputs["n"] = (INT64, [2])
    return model_of("Attention", inputs, outputs or ["y"], 25, order=order or ["q", "k", "v"], **attributes)


def flex(query: list[int], key: list[int], value: list[int]) -> ModelProto:
    inputs = {"q": (FLOAT, query), "k": (FLOAT, key), "v": (FLOAT, value)}
    return model_of("FlexAttention", inputs, ["y"], 1, PREVIEW)


def linear(rule: str, *, decay: bool, beta: bool, heads: tuple[int, int] = (2, 2)) -> ModelProto:
    inputs = {name: (FLOAT, [1, 3, 4]) for name in "qkv"} | {name: (FLOAT, [1, 3, 2]) for name in "db"}
    order = ["q", "k", "v", "", "d" if decay else "", "b" if beta else ""]
    return model_of(
        "LinearAttention",
        inputs,
        ["y", "s"],
        27,
        order=order,
        q_num_heads=heads[0],
        kv_num_heads=heads[1],
        update_rule=rule,
    )


def encoder(version: int = 4, **attributes: Any) -> ModelProto:
    return model_of("LabelEncoder", {"x": (STRING, [3])}, ["y"], version, ML, keys_strings=["a", "b"], **attributes)


def mapper(**attributes: Any) -> ModelProto:
    return model_of("CategoryMapper", {"x": (STRING, [3])}, ["y"], 1, ML, **attributes)


def one_hot(opset: int, indices: list[int], depth: list[int]) -> ModelProto:
    constants = {"i": indices, "d": depth}
    return model_of("OneHot", {"v": (FLOAT, [2])}, ["y"], opset, constants=constants, order=["i", "d", "v"])


def default(kind: int, values: list[Any], dims: list[int]) -> TensorProto:
    return helper.make_tensor("default", kind, dims, values)


def einsum(left: list[int], right: list[int]) -> ModelProto:
    inputs = {"x": (FLOAT, left), "z": (FLOAT, right)}
    return model_of("Einsum", inputs, ["y"], 17, equation="...i,...i->...i")


def classical(op_type: str, outputs: list[str] | None = None, version: int = 1, **attributes: Any) -> ModelProto:
    return model_of(op_type, {"x": (FLOAT, [2, 3])}, outputs or ["y"], version, ML, **attributes)


def linear_classifier(**attributes: Any) -> ModelProto:
    given = {"coefficients": [1.0] * 6, "intercepts": [0.0, 0.0], **attributes}
    return classical("LinearClassifier", ["y", "z"], **given)


NODES = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.0, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
LEAVES = {"treeids": [0, 0], "nodeids": [1, 2], "ids": [0, 0], "weights": [1.0, 2.0]}


def trees(**attributes: Any) -> ModelProto:
    leaves = {f"target_{name}": items for name, items in LEAVES.items()}
    return classical("TreeEnsembleRegressor", version=3, **{**NODES, **leaves, "n_targets": 1, **attributes})


def tree_classifier(**attributes: Any) -> ModelProto:
    leaves = {f"class_{name}": items for name, items in LEAVES.items()}
    given = {**NODES, **leaves, "classlabels_int64s": [0, 1], **attributes}
    return classical("TreeEnsembleClassifier", ["y", "z"], 3, **given)


def recurrent(op_type: str, activations: list[str]) -> ModelProto:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op_type]
    inputs = {"x": (FLOAT, [2, 1, 3]), "w": (FLOAT, [1, 2 * gates, 3]), "r": (FLOAT, [1, 2 * gates, 2])}
    return model_of(op_type, inputs, ["y"], 17, hidden_size=2, activations=activations)


def image(op_type: str, inputs: dict[str, tuple[int, list[Any]]], **attributes: Any) -> ModelProto:
    return model_of(op_type, {"x": (FLOAT, [1, 4, 5, 5]), **inputs}, ["y"], 17, **attributes)


ROIS = {"r": (FLOAT, [2, 4]), "i": (INT64, [2])}

INVALID = {
    "labels of both types": linear_classifier(classlabels_ints=[0, 1], classlabels_strings=["a", "b"]),
    "coefficients for no whole number of features": linear_classifier(coefficients=[1.0] * 5, classlabels_ints=[0, 1]),
    "offsets unlike factors": classical("Scaler", offset=[1.0], scale=[1.0, 2.0, 3.0]),
    "nothing to impute": classical("Imputer"),
    "two values to impute": classical("Imputer", imputed_value_floats=[1.0], imputed_value_int64s=[1]),
    "labels of a map of both types": classical(
        "ZipMap", classlabels_int64s=[0, 1, 2], classlabels_strings=["a", "b", "c"]
    ),
    "fewer thresholds than nodes": trees(nodes_values=[0.0, 0.0]),
    "fewer modes than nodes": trees(nodes_modes=["BRANCH_LEQ", "LEAF"]),
    "an unknown mode of nodes": trees(nodes_modes=["BRANCH_LEQ", "LEAF", "TWIG"]),
    "fewer targets than leaves": trees(target_ids=[0]),
    "fewer weights than leaves": tree_classifier(class_weights=[1.0]),
    "an unknown activation": recurrent("RNN", ["Nonsense"]),
    "an unknown activation of several": recurrent("LSTM", ["Sigmoid", "Tanh", "Gelu"]),
    "an unknown activation of GRU": recurrent("GRU", ["Sigmoid", "Softmax"]),
    "a region of no size": image("LRN", {}, size=0),
    "a negative number of samples": image("RoiAlign", ROIS, sampling_ratio=-1),
    "pooled to nothing": image("MaxRoiPool", {"r": (FLOAT, [2, 5])}, pooled_shape=[0, 2]),
    "pads beside SAME_UPPER": conv(auto_pad="SAME_UPPER", pads=[1, 1, 1, 1]),
    "pads of 0 beside SAME_LOWER": conv(auto_pad="SAME_LOWER", pads=[0, 0, 0, 0]),
    "pads beside VALID": conv(auto_pad="VALID", pads=[1, 1, 1, 1]),
    "pads beside auto_pad, transposed": conv("ConvTranspose", auto_pad="SAME_UPPER", pads=[1, 1, 1, 1]),
    "an unknown auto_pad": conv(auto_pad="SAME"),
    "negative index before version 11": one_hot(9, [-1, 1], [3]),
    "negative depth": one_hot(9, [0, 1], [-3]),
    "negative depth from version 11 on": one_hot(11, [-1, 1], [-3]),
    "left window of -2": attention(left_window_size=-2),
    "right window of -5": attention(right_window_size=-5),
    "an unknown output mode": attention(qk_matmul_output_mode=4),
    "a present without the other": attention(outputs=["y", "k1", ""]),
    "the other present alone": attention(outputs=["y", "", "v1"]),
    "heads for rank 4": attention(q_num_heads=4, kv_num_heads=2),
    "no heads for rank 3": attention(3),
    "heads that do not divide": attention(heads=(4, 3)),
    "heads of rank 3 that do not divide": attention(3, heads=(4, 3), q_num_heads=4, kv_num_heads=3),
    "lengths beside a past": attention(order=["q", "k", "v", "", "pk", "pv", "n"]),
    "lengths beside a present": attention(order=["q", "k", "v", "", "", "", "n"], outputs=["y", "k1", "v1"]),
    "half a past": attention(order=["q", "k", "v", "", "pk"]),
    "flex: heads that do not divide": flex([1, 4, 2, 8], [1, 3, 5, 8], [1, 3, 5, 8]),
    "flex: other lengths": flex([1, 4, 2, 8], [1, 2, 5, 8], [1, 2, 6, 8]),
    "flex: other heads": flex([1, 4, 2, 8], [1, 2, 5, 8], [1, 4, 5, 8]),
    "flex: other head sizes": flex([1, 4, 2, 8], [1, 2, 5, 7], [1, 2, 5, 8]),
    "linear takes no decay": linear("linear", decay=True, beta=False),
    "linear takes no beta": linear("linear", decay=False, beta=True),
    "gated takes no beta": linear("gated", decay=True, beta=True),
    "gated needs decay": linear("gated", decay=False, beta=False),
    "delta takes no decay": linear("delta", decay=True, beta=True),
    "gated_delta needs both": linear("gated_delta", decay=True, beta=False),
    "linear heads that do not divide": linear("linear", decay=False, beta=False, heads=(4, 3)),
    "a default of another type": encoder(values_int64s=[1, 2], default_tensor=default(FLOAT, [0.0], [1])),
    "a default of more elements": encoder(values_int64s=[1, 2], default_tensor=default(INT64, [0, 1], [2])),
    "a scalar default": encoder(values_int64s=[1, 2], default_tensor=default(INT64, [0], [])),
    "fewer values than keys": encoder(values_int64s=[1]),
    "two lists of values": encoder(values_int64s=[1, 2], values_floats=[1.0, 2.0]),
    "categories of other lengths": mapper(cats_int64s=[1], cats_strings=["a", "b"]),
    "integers without strings": mapper(cats_int64s=[1]),
    "strings without integers": mapper(cats_strings=["a"]),
    "no categories": mapper(),
    "a cast to complex": model_of("Cast", {"x": (FLOAT, [2])}, ["y"], 21, to=TensorProto.COMPLEX64),
    "a cast to a type that is newer": model_of("Cast", {"x": (FLOAT, [2])}, ["y"], 13, to=TensorProto.FLOAT8E4M3FN),
    "quantized to floats": model_of(
        "QuantizeLinear", {"x": (FLOAT, [2]), "s": (FLOAT, [])}, ["y"], 21, output_dtype=TensorProto.FLOAT16
    ),
    "random strings": model_of("RandomUniform", {}, ["y"], 17, shape=[2], dtype=STRING),
    "random integers": model_of("RandomNormalLike", {"x": (FLOAT, [2])}, ["y"], 17, dtype=INT64),
    "an ellipsis of other ranks": einsum([2, 3], [4, 2, 3]),
}
VALID = {
    "labels": linear_classifier(classlabels_ints=[0, 1]),
    "factors": classical("Scaler", offset=[1.0, 2.0, 3.0], scale=[1.0, 2.0, 3.0]),
    "a value to impute": classical("Imputer", imputed_value_floats=[1.0]),
    "labels of a map": classical("ZipMap", classlabels_int64s=[0, 1, 2]),
    "trees": trees(),
    "trees with rates": trees(nodes_hitrates=[1.0, 1.0, 1.0]),
    "trees that classify": tree_classifier(),
    "an activation": recurrent("RNN", ["Relu"]),
    "activations in small letters": recurrent("LSTM", ["sigmoid", "tanh", "tanh"]),
    "a region": image("LRN", {}, size=3),
    "as many samples as fit": image("RoiAlign", ROIS, sampling_ratio=0),
    "pooled": image("MaxRoiPool", {"r": (FLOAT, [2, 5])}, pooled_shape=[1, 2]),
    "pads": conv(pads=[1, 1, 1, 1]),
    "pads beside NOTSET": conv(auto_pad="NOTSET", pads=[1, 1, 1, 1]),
    "auto_pad": conv(auto_pad="SAME_UPPER"),
    "transposed": conv("ConvTranspose", auto_pad="SAME_UPPER"),
    # Runtimes run these, and let auto_pad decide.
    "pooling with both": pool("MaxPool", auto_pad="SAME_UPPER", pads=[1, 1, 1, 1]),
    "average pooling with both": pool("AveragePool", auto_pad="VALID", pads=[0, 0, 0, 0]),
    "indices": one_hot(9, [0, 1], [3]),
    "negative index": one_hot(11, [-1, 1], [3]),
    "windows": attention(left_window_size=-1, right_window_size=0),
    "a window": attention(left_window_size=2),
    "both presents": attention(outputs=["y", "k1", "v1"], order=["q", "k", "v", "", "pk", "pv"]),
    "lengths": attention(order=["q", "k", "v", "", "", "", "n"]),
    "rank 3": attention(3, q_num_heads=4, kv_num_heads=2),
    "as many heads": attention(heads=(3, 3)),
    "flex": flex([1, 4, 2, 8], [1, 2, 5, 8], [1, 2, 5, 6]),
    "linear": linear("linear", decay=False, beta=False),
    "gated": linear("gated", decay=True, beta=False),
    "delta": linear("delta", decay=False, beta=True),
    "gated_delta": linear("gated_delta", decay=True, beta=True),
    "a default": encoder(values_int64s=[1, 2], default_tensor=default(INT64, [0], [1])),
    "a default of its own attribute": encoder(2, values_int64s=[1, 2], default_int64=7),
    "categories": mapper(cats_int64s=[1, 2], cats_strings=["a", "b"]),
    "a cast": model_of("Cast", {"x": (FLOAT, [2])}, ["y"], 21, to=TensorProto.FLOAT8E4M3FN),
    "quantized": model_of(
        "QuantizeLinear", {"x": (FLOAT, [2]), "s": (FLOAT, [])}, ["y"], 21, output_dtype=TensorProto.INT8
    ),
    "an ellipsis that broadcasts": einsum([1, 3], [4, 3]),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid(name: str) -> None:
    errors = [found for found in splitgraph.infer(INVALID[name]).diagnostics if found.severity == "error"]
    assert errors
    assert {found.location for found in errors} == {"main/n"}


@pytest.mark.parametrize("name", VALID)
def test_valid(name: str) -> None:
    assert not splitgraph.infer(VALID[name]).diagnostics
