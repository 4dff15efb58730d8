"""Celu, written with Elu below its first opset; the other activation functions do not change."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.adapter_context import AdapterContext

unchanged("Elu HardSigmoid Selu", 6, 22)
unchanged("Erf", 13)
unchanged("HardSwish Mish Softplus Softsign ThresholdedRelu", 22)
unchanged("LeakyRelu", 6, 16)
unchanged("Relu", 6, 13, 14)
unchanged("Sigmoid Tanh", 6, 13)

unchanged("Celu", 28)


@downward("Celu", 12)
def write_celu_with_elu(context: AdapterContext) -> None:
    """Writes max(0, x) + min(0, alpha * (exp(x / alpha) - 1)): for a positive alpha this is alpha times the Elu of x /
    alpha.

    The function body of the specification does this with an alpha of one dimension, so that the result of a scalar
    would have one dimension too.
    """
    data, dtype = context.inputs[0], context.known_dtype()
    alpha = context.known_value_or_default("alpha")
    scale = context.constant(alpha, "alpha", dtype)
    scaled = context.emit("Div", [data, scale], "scaled")
    if alpha > 0:
        context.replace("Mul", [context.emit("Elu", [scaled], "elu"), scale])
        return
    one = context.constant(1.0, "one", dtype)
    curve = context.emit(
        "Mul", [context.emit("Sub", [context.emit("Exp", [scaled], "exp"), one], "less_one"), scale], "curve"
    )
    # min(0, curve) is -max(0, -curve).
    negative = context.emit("Relu", [context.emit("Neg", [curve], "negated")], "negative")
    context.replace("Sub", [context.emit("Relu", [data], "positive"), negative])
