"""Activation functions below the opset of their operator."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.adapter_context import Step

unchanged("Celu", 28)


@downward("Celu", 12)
def celu_written_out(step: Step) -> None:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)), which for a positive alpha is alpha times the Elu of x / alpha.

    The function body is that for every alpha, with an alpha of one dimension, which a scalar would take on.
    """
    data, dtype = step.inputs[0], step.known_dtype()
    alpha = step.known_value("alpha", 1.0)
    scale = step.constant(alpha, "alpha", dtype)
    scaled = step.emit("Div", [data, scale], "scaled")
    if alpha > 0:
        step.replace("Mul", [step.emit("Elu", [scaled], "elu"), scale])
        return
    one = step.constant(1.0, "one", dtype)
    curve = step.emit("Mul", [step.emit("Sub", [step.emit("Exp", [scaled], "exp"), one], "less_one"), scale], "curve")
    # The negative part, as the Relu of what it is the negative of.
    negative = step.emit("Relu", [step.emit("Neg", [curve], "negated")], "negative")
    step.replace("Sub", [step.emit("Relu", [data], "positive"), negative])


unchanged("Elu HardSigmoid Selu", 6, 22)
unchanged("Erf", 13)
unchanged("HardSwish Mish Softplus Softsign ThresholdedRelu", 22)
unchanged("LeakyRelu", 6, 16)
unchanged("Relu", 6, 13, 14)
unchanged("Sigmoid Tanh", 6, 13)
