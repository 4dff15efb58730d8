"""Models around a LayerNormalization, as one node and written as arithmetic, that magnify what it rounds, or do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto

from .small_models import constant, model_of, node, value

FLOAT = TensorProto.FLOAT
WIDTH = 64


def normalization() -> list[onnx.NodeProto]:
    """x to t, as one node."""
    return [node("LayerNormalization", ["x", "weight", "bias"], ["t"], axis=-1, epsilon=1e-5)]


def arithmetic(*, axis: int = -1, epsilon: str = "epsilon", bias: str = "bias") -> list[onnx.NodeProto]:
    """The same from several nodes; other arguments make it wrong."""
    return [
        node("ReduceMean", ["x"], ["mean"], axes=[axis]),
        node("Sub", ["x", "mean"], ["centred"]),
        node("Mul", ["centred", "centred"], ["squared"]),
        node("ReduceMean", ["squared"], ["variance"], axes=[axis]),
        node("Add", ["variance", epsilon], ["positive"]),
        node("Sqrt", ["positive"], ["deviation"]),
        node("Div", ["centred", "deviation"], ["scaled"]),
        node("Mul", ["scaled", "weight"], ["weighted"]),
        node("Add", ["weighted", bias], ["t"]),
    ]


# What follows, from t to y. A sine of many turns, and steps of which some are near a half, magnify what t rounds.
TURNS = [node("Mul", ["t", "many"], ["angle"]), node("Sin", ["angle"], ["y"])]
LOGARITHM = [
    node("Mul", ["t", "t"], ["power"]),
    node("Add", ["power", "tiny"], ["positive_power"]),
    node("Log", ["positive_power"], ["y"]),
]
STEPS = [
    node("Mul", ["t", "many"], ["level"]),
    node("Round", ["level"], ["whole"]),
    node("Mod", ["whole", "sixteen"], ["step"], fmod=1),
    node("MatMul", ["step", "matrix"], ["y"]),
]
QUIET = [node("Mul", ["t", "two"], ["y"])]
HALF_QUIET = [*TURNS[:1], node("Sin", ["angle"], ["sine"]), node("Concat", ["t", "sine"], ["y"], axis=-1)]


def sensitive(
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[str | onnx.ValueInfoProto] = ("y",),
    *,
    dims: Sequence[int | str] = (64, WIDTH),
    **changed: float,
) -> onnx.ModelProto:
    """A model of these nodes at opset 17, by which ReduceMean has its axes as an attribute; changed: constants by name,
    each times a number.
    """
    rng = np.random.default_rng(5)
    constants = {
        "weight": rng.standard_normal(WIDTH),
        "bias": rng.standard_normal(WIDTH),
        "no_bias": np.zeros(WIDTH),
        "epsilon": 1e-5,
        "many": 2e4,
        "tiny": 1e-12,
        "two": 2.0,
        "sixteen": 16.0,
        "matrix": rng.standard_normal((WIDTH, 3)),
    }
    held = [constant(name, np.asarray(array) * changed.get(name, 1.0), np.float32) for name, array in constants.items()]
    return model_of(nodes, [value("x", dims)], outputs, held, opset=17)
