"""How operators of ai.onnx.ml stand in models of skl2onnx, LightGBM and XGBoost: linear models, trees, scalers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from case_graph import CaseGraph
from factor_recipes import Change, Recipe, changes

DOMAIN = "ai.onnx.ml"
# The opset of ai.onnx beside these operators; runtimes of three years ago read it.
_OPSET = 13
_ROWS, _FEATURES = 4, 3
_OPEN: Sequence[Change] = ({"open": (0,)},)


def _rows(g: CaseGraph, T: str, open: Any) -> str:
    return g.data((_ROWS, _FEATURES), T, open=open)


def _weights(g: CaseGraph, *shape: int) -> list[float]:
    return [float(each) for each in g.numbers(*shape).ravel()]


# Linear models --------------------------------------------------------------------------------------------------------


def _linear_regressor(g: CaseGraph, targets: Any = None, post: Any = None, open: Any = ()) -> None:
    number = targets or 1
    held = {"coefficients": _weights(g, number, _FEATURES), "targets": targets, "post_transform": post}
    held["intercepts"] = _weights(g, number)
    g.use(g.put("LinearRegressor", [_rows(g, "float32", open)], **held))


def _linear_classifier(g: CaseGraph, labels: str = "ints", several: Any = 0, post: Any = "LOGISTIC",
                       used: str = "11", T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    held = {"coefficients": _weights(g, 2, _FEATURES), "intercepts": _weights(g, 2)}
    held |= {"multi_class": several, "post_transform": post}
    held |= {"classlabels_strings": ["no", "yes"]} if labels == "strings" else {"classlabels_ints": [0, 1]}
    _use_classes(g, g.put("LinearClassifier", [_rows(g, T, open)], used, **held), used)


def _use_classes(g: CaseGraph, made: Sequence[str], used: str) -> None:
    """The labels and the scores of a classifier, as many of them as are used."""
    results = list(made)
    if used[0] == "1":
        g.use([results.pop(0)], "int64")
    g.use(results)


_LINEAR = [{"targets": 2}, {"post": "LOGISTIC"}, *_OPEN]
_LINEAR_CLASSES = changes(
    [{"post": None}, {"post": "SOFTMAX"}, {"several": 1}],
    [{"labels": "strings", "used": "u1"}, {"used": "u1"}, {"used": "1u"}, {"T": "float64"}, {"T": "int64"}],
    _OPEN,
)

# Rows by columns ------------------------------------------------------------------------------------------------------


def _scaler(g: CaseGraph, T: str = "float32", open: Any = ()) -> None:
    offset, scale = _weights(g, _FEATURES), _weights(g, _FEATURES)
    g.use(g.put("Scaler", [_rows(g, T, open)], offset=offset, scale=scale))


def _normalizer(g: CaseGraph, norm: Any = "L2", T: str = "float32", open: Any = ()) -> None:
    g.use(g.put("Normalizer", [_rows(g, T, open)], norm=norm))


def _imputer(g: CaseGraph, replaced: Any = float("nan"), T: str = "float32", open: Any = ()) -> None:
    kept: dict[str, Any] = {"imputed_value_floats": _weights(g, _FEATURES), "replaced_value_float": replaced}
    if T == "int64":
        kept = {"imputed_value_int64s": list(range(_FEATURES)), "replaced_value_int64": 2}
    g.use(g.put("Imputer", [_rows(g, T, open)], **kept), T)


def _binarizer(g: CaseGraph, threshold: Any = 0.1, T: str = "float32", open: Any = ()) -> None:
    g.use(g.put("Binarizer", [_rows(g, T, open)], threshold=threshold), T)


def _one_hot_encoder(g: CaseGraph, zeros: Any = 1, T: str = "float32", open: Any = ()) -> None:
    categories = np.arange(_ROWS * _FEATURES).reshape(_ROWS, _FEATURES) % 4
    data = g.data((_ROWS, _FEATURES), T, open=open, array=categories - np.array(0.5 if T == "float32" else 0, T))
    g.use(g.put("OneHotEncoder", [data], cats_int64s=[0, 1, 2, 3], zeros=zeros))


def _take_columns(g: CaseGraph, data: str = "data", at: str = "init", T: str = "float32",
                  open: Any = ()) -> None:  # fmt: skip
    """Columns of rows, or labels of a list at the places of the largest scores."""
    held = _rows(g, T, open) if data == "data" else g.given(g.numbers(_FEATURES, dtype=T), data)
    if at == "computed":
        place = g.add("ArgMax", [g.data((_ROWS, _FEATURES), open=open)], axis=1)
    else:
        place = g.given([0, 2], at, "int64")
    g.use(g.put("ArrayFeatureExtractor", [held, place]), T)


_FLOATS_AND_INTEGERS = [{"T": "float64"}, {"T": "int64"}]
_TAKING = changes(
    [{"at": "node"}, *_FLOATS_AND_INTEGERS, {"T": "int32"}],
    [{"data": "init", "at": "computed", "T": kind} for kind in ("int64", "int32", "float32")],
    ({"data": "init", "at": "computed", "T": kind, "open": (0,)} for kind in ("int64", "int32")),
    _OPEN,
)

# Trees ----------------------------------------------------------------------------------------------------------------


def _trees(number: int, *, tracks: bool, hits: bool) -> dict[str, Any]:
    """Trees of two branches and three leaves each, as nodes in lists."""
    nodes = [(tree, node) for tree in range(number) for node in range(5)]
    branches = {0: (0, 1, 2), 1: (2, 3, 4)}
    held: dict[str, Any] = {
        "nodes_treeids": [tree for tree, _ in nodes],
        "nodes_nodeids": [node for _, node in nodes],
        "nodes_modes": ["BRANCH_LEQ" if node in branches else "LEAF" for _, node in nodes],
        "nodes_featureids": [branches[node][0] if node in branches else 0 for _, node in nodes],
        "nodes_truenodeids": [branches[node][1] if node in branches else 0 for _, node in nodes],
        "nodes_falsenodeids": [branches[node][2] if node in branches else 0 for _, node in nodes],
        "nodes_values": [0.3 * node - 0.1 * tree if node in branches else 0.0 for tree, node in nodes],
    }
    if tracks:
        held["nodes_missing_value_tracks_true"] = [0] * len(nodes)
    if hits:
        held["nodes_hitrates"] = [1.0] * len(nodes)
    return held


def _leaves(g: CaseGraph, number: int, kind: str, results: int = 1) -> dict[str, Any]:
    """What each leaf gives, for each target or class."""
    # The first branch leads to the branch 1, so the leaves are 2, 3 and 4.
    leaves = [(tree, node, each) for tree in range(number) for node in (2, 3, 4) for each in range(results)]
    return {
        f"{kind}_treeids": [tree for tree, _, _ in leaves],
        f"{kind}_nodeids": [node for _, node, _ in leaves],
        f"{kind}_ids": [each for _, _, each in leaves],
        f"{kind}_weights": _weights(g, len(leaves)),
    }


def _tree_regressor(g: CaseGraph, trees: int = 2, targets: int = 1, aggregate: Any = None, base: Any = None,
                    tracks: bool = True, hits: bool = True, T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    held = _trees(trees, tracks=tracks, hits=hits) | _leaves(g, trees, "target", targets)
    held |= {"n_targets": targets, "aggregate_function": aggregate, "base_values": base, "post_transform": "NONE"}
    g.use(g.put("TreeEnsembleRegressor", [_rows(g, T, open)], **held))


def _tree_classifier(g: CaseGraph, trees: int = 2, classes: int = 2, labels: str = "ints",
                     base: Any = None, post: Any = "NONE", tracks: bool = True, hits: bool = True, used: str = "11",
                     T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    # One weight for each leaf says how likely the second of two classes is.
    held = _trees(trees, tracks=tracks, hits=hits) | _leaves(g, trees, "class", max(classes, 1))
    held |= {"base_values": base, "post_transform": post}
    number = max(classes, 2)
    held |= (
        {"classlabels_strings": [f"c{each}" for each in range(number)]}
        if labels == "strings"
        else {"classlabels_int64s": list(range(number))}
    )
    _use_classes(g, g.put("TreeEnsembleClassifier", [_rows(g, T, open)], used, **held), used)


_TREES = changes(
    [{"trees": 1}, {"tracks": False}, {"hits": False}, {"T": "float64"}],
    _OPEN,
)
_REGRESSING = [*_TREES, {"targets": 2}, {"aggregate": "AVERAGE"}, {"base": [0.5]}]
_CLASSIFYING = changes(
    _TREES,
    [{"classes": 1, "post": "LOGISTIC"}, {"classes": 1, "post": "LOGISTIC", "base": [0.5]}, {"T": "int64"}],
    [{"post": "SOFTMAX"}, {"labels": "strings", "used": "u1"}, {"used": "u1"}, {"used": "1u"}],
)

# Support vectors ------------------------------------------------------------------------------------------------------


def _kernel(g: CaseGraph, kernel: str, vectors: int) -> Mapping[str, Any]:
    held: dict[str, Any] = {"kernel_type": kernel, "kernel_params": [0.3, 0.2, 3.0]}
    return {**held, "support_vectors": _weights(g, vectors, _FEATURES)}


def _vector_regressor(g: CaseGraph, kernel: str = "RBF", one: Any = None, open: Any = ()) -> None:
    held = {"n_supports": 5, "coefficients": _weights(g, 5), "rho": [0.2], "one_class": one, "post_transform": "NONE"}
    g.use(g.put("SVMRegressor", [_rows(g, "float32", open)], **_kernel(g, kernel, 5), **held))


def _vector_classifier(g: CaseGraph, kernel: str = "RBF", likely: bool = True, used: str = "11",
                       T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    held: dict[str, Any] = {"vectors_per_class": [3, 2], "coefficients": _weights(g, 5), "rho": [0.2]}
    held |= {"classlabels_ints": [0, 1], "post_transform": "NONE"}
    held |= {"prob_a": [-1.5], "prob_b": [0.1]} if likely else {}
    _use_classes(g, g.put("SVMClassifier", [_rows(g, T, open)], used, **_kernel(g, kernel, 5), **held), used)


_KERNELS = changes(({"kernel": each} for each in ("LINEAR", "POLY", "SIGMOID")), _OPEN)


def _of_ml(operator: str, build: Any, changed: Sequence[Change], family: str = "") -> Recipe:
    return Recipe(operator, build, changed, domain=DOMAIN, at=_OPSET, family=family)


def _scores(build: Any) -> Any:
    """Build a classifier of which only the scores are used: not every runtime takes labels in place of the node."""

    def made(g: CaseGraph, used: str = "u1", open: Any = ()) -> None:
        build(g, used=used, open=open)

    return made


ML: Sequence[Recipe] = (
    _of_ml("LinearRegressor", _linear_regressor, _LINEAR),
    _of_ml("LinearClassifier", _linear_classifier, _LINEAR_CLASSES),
    _of_ml("Scaler", _scaler, [*_FLOATS_AND_INTEGERS, *_OPEN]),
    _of_ml("Normalizer", _normalizer, [{"norm": "L1"}, {"norm": "MAX"}, {"T": "float64"}, *_OPEN]),
    _of_ml("Imputer", _imputer, [{"replaced": None}, {"T": "int64"}, *_OPEN]),
    _of_ml("Binarizer", _binarizer, [{"threshold": None}, *_OPEN]),
    _of_ml("ArrayFeatureExtractor", _take_columns, _TAKING),
    _of_ml("TreeEnsembleRegressor", _tree_regressor, _REGRESSING),
    _of_ml("TreeEnsembleClassifier", _tree_classifier, _CLASSIFYING),
    _of_ml("OneHotEncoder", _one_hot_encoder, [{"zeros": 0}, {"T": "int64"}, *_OPEN]),
    _of_ml("SVMRegressor", _vector_regressor, [*_KERNELS, {"one": 1}]),
    _of_ml(
        "SVMClassifier",
        _vector_classifier,
        [*_KERNELS, {"likely": False}, {"T": "float64"}, {"used": "u1"}, {"used": "1u"}],
    ),
    *(
        _of_ml(operator, _scores(build), _OPEN, family="scores")
        for operator, build in (
            ("LinearClassifier", _linear_classifier),
            ("TreeEnsembleClassifier", _tree_classifier),
            ("SVMClassifier", _vector_classifier),
        )
    ),
)
