"""Activations that matrix products and convolutions of com.microsoft apply to their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from splitgraph.conversion.notation.formula import Term
from splitgraph.conversion.notation.node_at_boundary import Inexact


def _apply(operator: str, *names: str) -> Callable[..., Term]:
    """Return a function that applies an operator; its parameters become attributes of these names."""
    return lambda data, *numbers: data.formula.apply(operator, data, **dict(zip(names, numbers, strict=True)))


def _parametric_softplus(data: Term, alpha: float, beta: float) -> Term:
    return data.formula.apply("Softplus", data * beta) * alpha


def _scaled_tanh(data: Term, alpha: float, beta: float) -> Term:
    return data.formula.apply("Tanh", data * beta) * alpha


def _clip(data: Term, low: float, high: float) -> Term:
    return data.formula.apply("Clip", data, data.like(low), data.like(high))


def _hard_swish(data: Term) -> Term:
    """Return x * clip(x / 6 + 1/2, 0, 1); ai.onnx has HardSwish from opset 14 on."""
    return data * data.formula.apply("HardSigmoid", data, alpha=1 / 6, beta=0.5)


# The form of each activation, and the parameters that it takes, none of which has a default.
_FORMS: Mapping[str, tuple[Callable[..., Term], Sequence[str]]] = {
    **{name: (_apply(name), ()) for name in ("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign")},
    **{name: (_apply(name, "alpha"), ("alpha",)) for name in ("LeakyRelu", "Elu", "ThresholdedRelu")},
    "HardSigmoid": (_apply("HardSigmoid", "alpha", "beta"), ("alpha", "beta")),
    "Selu": (_apply("Selu", "alpha", "gamma"), ("alpha", "gamma")),
    "ParametricSoftplus": (_parametric_softplus, ("alpha", "beta")),
    "ScaledTanh": (_scaled_tanh, ("alpha", "beta")),
    "Clip": (_clip, ("min", "max")),
    "HardSwish": (_hard_swish, ()),
}


def parameters_of(activation: str, known: Sequence[str]) -> Sequence[str]:
    """Return the names of the parameters of an activation, which is one of `known`; raise Inexact for another one."""
    if activation not in known:
        raise Inexact(f"the activation {activation!r} is none that onnxruntime runs there")
    return _FORMS[activation][1]


def activated(data: Term, activation: str, numbers: Sequence[float]) -> Term:
    """Apply an activation with its parameters."""
    form, names = _FORMS[activation]
    if len(numbers) != len(names):
        raise Inexact(f"{activation} takes {len(names)} parameters, and {len(numbers)} are given")
    return form(data, *numbers)
