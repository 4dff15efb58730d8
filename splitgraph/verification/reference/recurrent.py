"""Run RNN, GRU and LSTM with everything that their specifications allow.

onnx's evaluator ignores clip, activations, input_forget and sequence_lens. These kernels are written from the text of
the operators, which is the same in all versions but for `layout` (since 14). They compute in float64 and round once.

Decisions where the specification leaves something open, as onnxruntime decides it:

- `clip` bounds what the gates give to f and g. The cell state that an LSTM gives to h is not clipped.
- `activation_alpha` and `activation_beta` hold numbers only for the functions that take them, in their order. Without a
  number, LeakyRelu, HardSigmoid and Elu take the default of the operator of their name. Affine, ScaledTanh and
  ThresholdedRelu are refused then: onnxruntime takes 0, and the operators have other defaults or none.
- Behind the end of a sequence Y is 0. Y_h and Y_c are those of the last step; of an empty sequence they are 0.
- A reverse direction reads each sequence from its own end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from splitgraph.verification.reference.kernels import Array, KernelError, filled
from splitgraph.verification.values import UnsupportedError

RECURRENT_VERSIONS: Mapping[str, Sequence[int]] = {
    "RNN": (1, 7, 14, 22),
    "GRU": (1, 3, 7, 14, 22),
    "LSTM": (1, 7, 14, 22),
}

_DIRECTIONS: Mapping[str, tuple[bool, ...]] = {
    "forward": (False,),
    # As the schema of GRU-1 spells its default.
    "foward": (False,),
    "reverse": (True,),
    "bidirectional": (False, True),
}
# The functions of each operator if none are named, and how many gates its weights hold.
_DEFAULTS: Mapping[str, tuple[tuple[str, ...], int]] = {
    "RNN": (("Tanh",), 1),
    "GRU": (("Sigmoid", "Tanh"), 3),
    "LSTM": (("Sigmoid", "Tanh", "Tanh"), 4),
}


def _sigmoid(values: Array) -> Array:
    # Each side of 0 in the form that does not overflow.
    powers = np.exp(-np.abs(values))
    return np.asarray(np.where(values >= 0, 1.0, powers) / (1.0 + powers))


class _Function(NamedTuple):
    """An activation: what it computes of x and of the numbers that it takes: alpha, or alpha and beta. numbers: their
    defaults, None for a number that must be given.
    """

    compute: Callable[..., Any]
    numbers: Sequence[float | None] = ()


_FUNCTIONS: Mapping[str, _Function] = {
    "relu": _Function(lambda x: np.maximum(x, 0)),
    "tanh": _Function(np.tanh),
    "sigmoid": _Function(_sigmoid),
    "softsign": _Function(lambda x: x / (1 + np.abs(x))),
    "softplus": _Function(lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))),
    "affine": _Function(lambda x, alpha, beta: alpha * x + beta, (None, None)),
    "leakyrelu": _Function(lambda x, alpha: np.where(x >= 0, x, alpha * x), (0.01,)),
    "thresholdedrelu": _Function(lambda x, alpha: np.where(x > alpha, x, 0.0), (None,)),
    "scaledtanh": _Function(lambda x, alpha, beta: alpha * np.tanh(beta * x), (None, None)),
    "hardsigmoid": _Function(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), (0.2, 0.5)),
    "elu": _Function(lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0))), (1.0,)),
}


@dataclass(frozen=True, slots=True)
class _Direction:
    """What one direction reads. weights, recurrence, bias: of each gate. peepholes: of the gates i, o and f."""

    weights: Sequence[Array]
    recurrence: Sequence[Array]
    input_bias: Sequence[Array]
    state_bias: Sequence[Array]
    peepholes: Sequence[Array]
    functions: Sequence[Callable[[Array], Array]]
    clip: float
    is_coupled: bool
    is_linear_first: bool

    def gate(self, number: int, x: Array, state: Array, more: Array | float = 0.0) -> Array:
        """Return what a gate gives to its function."""
        inner = self.input_bias[number] + self.state_bias[number] + state @ self.recurrence[number].T + more
        return self.clipped(x @ self.weights[number].T + inner)

    def clipped(self, values: Array) -> Array:
        """Return the values within the threshold."""
        return np.asarray(np.clip(values, -self.clip, self.clip))


def run_recurrent(
    op_type: str, _: int, inputs: Sequence[Array | None], attributes: Mapping[str, Any], __: int
) -> tuple[Array, ...]:
    """Run an RNN, GRU or LSTM of any version; return (Y, Y_h), and Y_c of an LSTM.

    inputs: X, W, R, B, sequence_lens, initial_h, initial_c, P; None for an omitted one. Raises KernelError for
    attributes that the specification does not allow.
    """
    x, weights, recurrence, bias, lengths, state, cell, peepholes = filled(inputs, 8)
    if x is None or weights is None or recurrence is None:
        raise KernelError(f"{op_type} needs X, W and R")
    given = {name: value for name, value in attributes.items() if value is not None}
    is_batch_first = bool(given.get("layout", 0))
    reverses = _DIRECTIONS.get(str(given.get("direction", "forward")))
    if reverses is None:
        raise KernelError(f"direction is {given['direction']!r}; it must be forward, reverse or bidirectional")
    count, gates = len(reverses), _DEFAULTS[op_type][1]
    hidden = recurrence.shape[-1]
    if weights.shape[:2] != (count, gates * hidden) or given.get("hidden_size", hidden) != hidden:
        raise KernelError(f"{op_type} has weights {weights.shape} and {recurrence.shape}, which do not fit together")
    wide = np.asarray(x, np.float64)
    steps = np.swapaxes(wide, 0, 1) if is_batch_first else wide
    batch = steps.shape[1]
    ends = np.full(batch, len(steps)) if lengths is None else np.asarray(lengths).astype(np.int64)
    states = [_initial(value, (count, batch, hidden), is_batch_first) for value in (state, cell)]
    functions = _functions(op_type, given, count)
    rows, last = [], []
    for number, is_reverse in enumerate(reverses):
        own = _Direction(
            np.split(weights[number].astype(np.float64), gates),
            np.split(recurrence[number].astype(np.float64), gates),
            *_biases(bias, number, gates, hidden),
            [*np.zeros((3, hidden))] if peepholes is None else np.split(peepholes[number].astype(np.float64), 3),
            functions[number],
            float(given.get("clip", np.inf)),
            bool(given.get("input_forget", 0)),
            bool(given.get("linear_before_reset", 0)),
        )
        made, ending = _run_direction(_STEPS[op_type], own, steps, ends, [each[number] for each in states], is_reverse)
        rows.append(made)
        last.append(ending)
    y, ending = np.stack(rows, axis=1), [np.stack(each) for each in zip(*last, strict=True)]
    if is_batch_first:
        y, ending = np.moveaxis(y, 2, 0), [np.swapaxes(each, 0, 1) for each in ending]
    with np.errstate(over="ignore"):
        results = [np.ascontiguousarray(value.astype(x.dtype)) for value in (y, *ending)]
    return tuple(results[: 3 if op_type == "LSTM" else 2])


def _initial(value: Array | None, shape: tuple[int, int, int], is_batch_first: bool) -> Array:
    if value is None:
        return np.zeros(shape)
    wide = np.asarray(value, np.float64)
    return np.broadcast_to(np.swapaxes(wide, 0, 1) if is_batch_first else wide, shape)


def _biases(bias: Array | None, number: int, gates: int, hidden: int) -> tuple[Sequence[Array], Sequence[Array]]:
    if bias is None:
        return [*np.zeros((gates, hidden))], [*np.zeros((gates, hidden))]
    parts = np.split(bias[number].astype(np.float64), 2 * gates)
    return parts[:gates], parts[gates:]


def _functions(op_type: str, given: Mapping[str, Any], count: int) -> list[list[Callable[[Array], Array]]]:
    """Return the functions of each direction."""
    default = _DEFAULTS[op_type][0]
    names = [str(name) for name in given.get("activations", ())] or [*default] * count
    needed = count * len(default)
    # The default of RNN in its schema is for two directions.
    if len(names) < needed:
        raise KernelError(f"{op_type} names {len(names)} activations; it needs {needed}")
    numbers = iter(given.get("activation_alpha", ())), iter(given.get("activation_beta", ()))
    made = [_function(name, numbers) for name in names[:needed]]
    return [made[start : start + len(default)] for start in range(0, len(made), len(default))]


def _function(name: str, given: Sequence[Iterator[float]]) -> Callable[[Array], Array]:
    function = _FUNCTIONS.get(name.lower())
    if function is None:
        raise KernelError(f"there is no activation {name!r}; there are: {', '.join(_FUNCTIONS)}")
    numbers = [next(own, default) for own, default in zip(given, function.numbers, strict=False)]
    if None in numbers:
        raise UnsupportedError(f"engines do not agree on {name} without activation_alpha and activation_beta")
    return lambda values: np.asarray(function.compute(values, *numbers))


# A step: from x and the states, the new states, the first of which is the hidden state.
_Step = Callable[[_Direction, Array, Sequence[Array]], tuple[Array, ...]]


def _run_direction(
    step: _Step, own: _Direction, steps: Array, ends: Array, states: Sequence[Array], is_reverse: bool
) -> tuple[Array, Sequence[Array]]:
    """Return the hidden states of all steps, and the states behind the last one of each sequence."""
    made = np.zeros((len(steps), *states[0].shape))
    is_empty = (ends == 0)[:, None]
    for place in reversed(range(len(steps))) if is_reverse else range(len(steps)):
        is_inside = (place < ends)[:, None]
        new = step(own, steps[place], states)
        states = [np.where(is_inside, one, old) for one, old in zip((*new, states[1])[:2], states, strict=True)]
        made[place] = np.where(is_inside, states[0], 0)
    return made, [np.where(is_empty, 0, state) for state in states]


def _rnn_step(own: _Direction, x: Array, states: Sequence[Array]) -> tuple[Array, ...]:
    return (own.functions[0](own.gate(0, x, states[0])),)


def _gru_step(own: _Direction, x: Array, states: Sequence[Array]) -> tuple[Array, ...]:
    f, g = own.functions
    state = states[0]
    update, reset = f(own.gate(0, x, state)), f(own.gate(1, x, state))
    if own.is_linear_first:
        inner = reset * (state @ own.recurrence[2].T + own.state_bias[2])
        new = g(own.clipped(x @ own.weights[2].T + inner + own.input_bias[2]))
    else:
        new = g(own.gate(2, x, reset * state))
    return ((1 - update) * new + update * state,)


def _lstm_step(own: _Direction, x: Array, states: Sequence[Array]) -> tuple[Array, ...]:
    f, g, h = own.functions
    state, cell = states
    into = f(own.gate(0, x, state, own.peepholes[0] * cell))
    kept = 1 - into if own.is_coupled else f(own.gate(2, x, state, own.peepholes[2] * cell))
    cell = kept * cell + into * g(own.gate(3, x, state))
    out = f(own.gate(1, x, state, own.peepholes[1] * cell))
    return out * h(cell), cell


_STEPS: Mapping[str, _Step] = {"RNN": _rnn_step, "GRU": _gru_step, "LSTM": _lstm_step}
