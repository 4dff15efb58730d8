"""Changes that onnx's evaluator ignores: it does not overrule the engine that sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from verifying import verify_models

from ..model_pairs import Pair

pytestmark = pytest.mark.usefixtures("in_process")
F, I32, I64 = np.float32, np.int32, np.int64
RNG = np.random.default_rng(3)
RECURRENT = "float[5, 2, 4] x => float y"


def weights(gates: int) -> dict[str, Any]:
    shapes = {"w": (1, 3 * gates, 4), "r": (1, 3 * gates, 3), "b": (1, 6 * gates), "p": (1, 9)}
    made = {name: RNG.normal(size=shape).astype(F) for name, shape in shapes.items()}
    return made | {"l": I32([5, 2]), "full": I32([5, 5])}


def recurrent(op_type: str, before: str, after: str, *, is_behind: bool = False) -> Pair:
    """Two models of attributes and more inputs, such as "clip = 0.5; l"."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op_type]

    def body(text: str, x: str) -> str:
        attributes, _, more = text.partition(";")
        listed = ", ".join(filter(None, ("hidden_size = 3", attributes.strip())))
        inputs = ", ".join(filter(None, (x, "w", "r", "b", more.strip())))
        return f"y = {op_type}<{listed}>({inputs})"

    second = f"i = Identity(x) {body(after, 'i')}" if is_behind else body(after, "x")
    return Pair(RECURRENT, body(before, "x"), second, constants=weights(gates))


def resized(before: str, after: str, scales: Any = (1, 1, 0.5, 2)) -> Pair:
    bodies = [f"y = Resize<{text}>(x, , s)" for text in (before, after)]
    return Pair("float[1, 1, 3, 5] x => float y", bodies[0], bodies[1], constants={"s": F(scales)})


def function(attributes: str) -> str:
    return (
        '<domain: "local", opset_import: ["": 18]> '
        f"Layer (x, w, r, b) => (y) {{ y = LSTM<hidden_size = 3{attributes}>(x, w, r, b) }}"
    )


def branch(attributes: str) -> str:
    layer = f"LSTM<hidden_size = 3{attributes}>(x, w, r, b)"
    return (
        f"c = Constant<value = bool {{1}}>() y = If(c) <then_branch = t () => (float a) {{ a = {layer} }}, "
        f"else_branch = e () => (float d) {{ d = {layer} }}>"
    )


COUPLED = "input_forget = 1"
DIFFERENT: dict[str, Pair] = {
    "LogSoftmax of far numbers": Pair(
        "float[N, 3] x => float[N, 3] y", "y = LogSoftmax(x)", "s = Softmax(x) y = Log(s)"
    ),
    "LpNormalization by the sum": Pair(
        "float[N, 3] x => float[N, 3] y",
        "y = LpNormalization<p = 1>(x)",
        "s = ReduceSum(x, k) y = Div(x, s)",
        constants={"k": I64([1])},
    ),
    "lengths of an LSTM": recurrent("LSTM", "", "; l"),
    "lengths of a GRU": recurrent("GRU", "", "; l"),
    "lengths of an RNN, behind an Identity": recurrent("RNN", "", "; l", is_behind=True),
    "a clip": recurrent("LSTM", "", "clip = 0.5"),
    "a clip behind an Identity": recurrent("GRU", "", "clip = 0.5", is_behind=True),
    "another clip": recurrent("RNN", "clip = 0.25", "clip = 0.5", is_behind=True),
    "coupled gates": recurrent("LSTM", "", COUPLED, is_behind=True),
    "other functions": recurrent("GRU", "", 'activations = ["Sigmoid", "Relu"]', is_behind=True),
    "another number of a function": recurrent(
        "RNN",
        'activations = ["LeakyRelu"]',
        'activations = ["LeakyRelu"], activation_alpha = [0.3]',
        is_behind=True,
    ),
    "a linear layer first": recurrent("GRU", "", "linear_before_reset = 1", is_behind=True),
    "peepholes": recurrent("LSTM", "; , , , p", "", is_behind=True),
    "in a function": Pair(
        RECURRENT,
        "y = local.Layer(x, w, r, b)",
        "y = local.Layer(x, w, r, b)",
        constants=weights(4),
        functions=(function(""), function(", clip = 0.5")),
    ),
    "in a branch": Pair(RECURRENT, branch(""), branch(", input_forget = 1"), constants=weights(4)),
    "the one element of a resized axis": resized(
        'mode = "cubic"', 'mode = "cubic", coordinate_transformation_mode = "pytorch_half_pixel"'
    ),
    "TopK that is no longer sorted": Pair(
        "float[40] x => float[8] y, int64[8] i",
        "y, i = TopK(x, k)",
        "y, i = TopK<sorted = 0>(x, k)",
        constants={"k": I64([8])},
    ),
    "column by column": Pair(
        "float[1, 1, 4, 4] x => float[1, 1, 2, 2] y, int64[1, 1, 2, 2] i",
        "y, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)",
        "d = Identity(x) y, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2], storage_order = 1>(d)",
    ),
    "unsorted": Pair("float[N] x => float[M] y", "y = Unique<sorted = 0>(x)", "i = Identity(x) y = Unique(i)"),
}
EQUAL: dict[str, Pair] = {
    "lengths that are all": recurrent("LSTM", "", "; full", is_behind=True),
    "functions that are the default": recurrent(
        "LSTM", "", 'activations = ["Sigmoid", "Tanh", "Tanh"]', is_behind=True
    ),
    "a flag that is the default": recurrent("LSTM", "", "input_forget = 0", is_behind=True),
    "a clip that nothing reaches": recurrent("RNN", "", "clip = 1e30", is_behind=True),
    "the same clip": recurrent("GRU", "clip = 0.5", "clip = 0.5", is_behind=True),
    "a default mode": resized('mode = "linear"', 'mode = "linear", coordinate_transformation_mode = "half_pixel"'),
    "more than one element of a resized axis": resized(
        'mode = "linear"', 'mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel"', (1, 1, 2, 2)
    ),
    "TopK that is sorted now": Pair(
        "float[40] x => float[8] y, int64[8] i",
        "y, i = TopK<sorted = 0>(x, k)",
        "y, i = TopK(x, k)",
        constants={"k": I64([8])},
    ),
    "sorted": Pair("float[N] x => float[M] y", "y = Unique(x)", "i = Identity(x) y = Unique<sorted = 1>(i)"),
}


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
@pytest.mark.sample(6)
def test_the_engine_is_believed(name: str) -> None:
    assert verify_models(*DIFFERENT[name].models()).verdict == "different"


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.sample(8)
def test_equal_models_stay_equal(name: str) -> None:
    assert verify_models(*EQUAL[name].models()).verdict == "equal"


# What the evaluator says alone: different, equal, or nothing, with the reason.
ALONE = {
    "a clip behind an Identity": "different",
    "lengths of an LSTM": "different",
    "lengths that are all": "equal",
    "the one element of a resized axis": "different",
    "sorted": "equal",
    "unsorted": "ignores the attribute sorted=0 of Unique",
    "column by column": "ignores the attribute storage_order=1 of MaxPool",
}


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
def test_what_the_evaluator_says_alone(name: str) -> None:
    found = verify_models(*(DIFFERENT | EQUAL)[name].models(), engine="reference")
    if "ignores" in ALONE[name]:
        assert found.verdict == "not-run"
        assert any(ALONE[name] in each.message for each in found.diagnostics)
    else:
        assert found.verdict == ALONE[name]


def test_the_pairs_are_models() -> None:
    for pair in (DIFFERENT | EQUAL).values():
        for model in pair.models():
            onnx.checker.check_model(model)
