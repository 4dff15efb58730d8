"""RNN, GRU and LSTM with everything that they have, as onnxruntime computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from splitgraph.verification.reference import evaluator
from splitgraph.verification.reference.kernels import KernelError
from splitgraph.verification.reference.recurrent import run_recurrent
from splitgraph.verification.values import UnsupportedError

from ..small_models import model_of, node, value

STEPS, BATCH, READ, HIDDEN = 5, 3, 4, 2
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
INPUTS = ("x", "w", "r", "b", "lens", "h", "c", "p")
OUTPUTS = ("y", "y_h", "y_c")
Arrays = dict[str, Any]


def arrays(op_type: str, directions: int = 1) -> Arrays:
    rng, gates = np.random.default_rng(3), GATES[op_type] * HIDDEN
    shapes = {
        "x": (STEPS, BATCH, READ),
        "w": (directions, gates, READ),
        "r": (directions, gates, HIDDEN),
        "b": (directions, 2 * gates),
        "h": (directions, BATCH, HIDDEN),
        "c": (directions, BATCH, HIDDEN),
        "p": (directions, 3 * HIDDEN),
    }
    made: Arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return made | {"lens": np.array([5, 2, 0], np.int32)}


def model(op_type: str, given: Arrays, opset: int, attributes: dict[str, Any]) -> Any:
    names = [name if name in given else "" for name in INPUTS]
    while not names[-1]:
        names.pop()
    outputs = OUTPUTS[: 3 if op_type == "LSTM" else 2]
    types = [value(name, held.shape, helper.np_dtype_to_tensor_dtype(held.dtype)) for name, held in given.items()]
    return model_of([node(op_type, names, outputs, hidden_size=HIDDEN, **attributes)], types, outputs, opset=opset)


# Operator, the optional inputs, and the attributes.
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "rnn": ("RNN", "", {}),
    "rnn with a bias": ("RNN", "b", {}),
    "rnn with lengths": ("RNN", "lens", {}),
    "rnn in reverse with lengths": ("RNN", "b lens h", {"direction": "reverse"}),
    "rnn in both directions": ("RNN", "b lens h", {"direction": "bidirectional"}),
    "rnn with a clip": ("RNN", "", {"clip": 0.5}),
    "rnn with a function for each direction": (
        "RNN",
        "",
        {"direction": "bidirectional", "activations": ["Relu", "Softsign"]},
    ),
    "gru": ("GRU", "", {}),
    "gru with lengths": ("GRU", "b lens h", {}),
    "gru with a clip": ("GRU", "b", {"clip": 0.25}),
    "gru with a linear layer first": ("GRU", "b h", {"linear_before_reset": 1}),
    "gru with a linear layer first, clipped": ("GRU", "b h", {"linear_before_reset": 1, "clip": 0.25}),
    "gru with other functions": ("GRU", "b", {"activations": ["HardSigmoid", "Relu"]}),
    "gru in both directions": ("GRU", "b lens h", {"direction": "bidirectional"}),
    "lstm": ("LSTM", "", {}),
    "lstm with lengths": ("LSTM", "b lens", {}),
    "lstm with states": ("LSTM", "b h c", {}),
    "lstm with peepholes": ("LSTM", "b h c p", {}),
    "lstm with a clip": ("LSTM", "b c", {"clip": 0.3}),
    "lstm with coupled gates": ("LSTM", "b c", {"input_forget": 1}),
    "lstm with other functions": ("LSTM", "b", {"activations": ["Sigmoid", "Tanh", "Relu"]}),
    "lstm with everything": (
        "LSTM",
        "b lens h c p",
        {"direction": "bidirectional", "clip": 0.7, "activations": ["HardSigmoid", "Softplus", "Elu"] * 2},
    ),
    "numbers for the functions that take them": (
        "LSTM",
        "b",
        {
            "activations": ["Sigmoid", "ScaledTanh", "LeakyRelu"],
            "activation_alpha": [1.7, 0.2],
            "activation_beta": [0.6],
        },
    ),
    "affine": ("RNN", "b", {"activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.1]}),
    "a threshold": ("GRU", "b", {"activations": ["Sigmoid", "ThresholdedRelu"], "activation_alpha": [0.0]}),
}


@pytest.mark.parametrize("opset", [7, 14])
@pytest.mark.parametrize("name", CASES)
def test_as_onnxruntime_computes_them(name: str, opset: int) -> None:
    op_type, names, attributes = CASES[name]
    held = arrays(op_type, 2 if attributes.get("direction") == "bidirectional" else 1)
    given = {key: held[key] for key in ("x", "w", "r", *names.split())}
    made = model(op_type, given, opset, attributes)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    found = evaluator.run(evaluator.load(made), given)
    for own, expected in zip(found, session.run(None, given), strict=True):
        assert isinstance(own, np.ndarray)
        assert own.dtype == expected.dtype
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_the_other_layout_moves_the_batch(name: str) -> None:
    """onnxruntime does not run it."""
    op_type, names, attributes = CASES[name]
    held = arrays(op_type, 2 if attributes.get("direction") == "bidirectional" else 1)
    kept = ("x", "w", "r", *names.split())
    plain = run_recurrent(op_type, 14, [held[key] if key in kept else None for key in INPUTS], attributes, 3)
    held |= {key: held[key].swapaxes(0, 1) for key in ("x", "h", "c")}
    given = [held[key] if key in kept else None for key in INPUTS]
    y, *states = run_recurrent(op_type, 14, given, attributes | {"layout": 1}, 3)
    np.testing.assert_array_equal(y, plain[0].transpose(2, 0, 1, 3))
    for state, expected in zip(states, plain[1:], strict=True):
        np.testing.assert_array_equal(state, expected.swapaxes(0, 1))


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_the_type_is_kept(dtype: Any) -> None:
    given = {key: held.astype(dtype) for key, held in arrays("GRU").items() if key in ("x", "w", "r")}
    for found in evaluator.run(evaluator.load(model("GRU", given, 14, {})), given):
        assert isinstance(found, np.ndarray)
        assert found.dtype == dtype


REFUSED: dict[str, tuple[str, dict[str, Any], type[Exception], str]] = {
    "a function without its numbers": ("RNN", {"activations": ["Affine"]}, UnsupportedError, "engines do not agree"),
    "an unknown function": ("RNN", {"activations": ["Sine"]}, KernelError, "no activation 'Sine'"),
    "too few functions": ("LSTM", {"activations": ["Tanh"]}, KernelError, "it needs 3"),
    "an unknown direction": ("GRU", {"direction": "sideways"}, KernelError, "must be forward, reverse"),
    "weights of one direction for two": ("GRU", {"direction": "bidirectional"}, KernelError, "do not fit together"),
    "another size": ("GRU", {"hidden_size": 7}, KernelError, "do not fit together"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    op_type, attributes, error, told = REFUSED[name]
    held = arrays(op_type)
    with pytest.raises(error, match=told):
        run_recurrent(op_type, 14, [held["x"], held["w"], held["r"]], attributes, 2)
