"""Celu, written with Elu below its first opset; the other activation functions do not change."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.node_at_boundary import NodeAtBoundary

unchanged("Elu HardSigmoid Selu", 6, 22)
unchanged("Erf", 13)
unchanged("HardSwish Mish Softplus Softsign ThresholdedRelu", 22)
unchanged("LeakyRelu", 6, 16)
unchanged("Relu", 6, 13, 14)
unchanged("Sigmoid Tanh", 6, 13)

unchanged("Celu", 28)


@downward("Celu", 12)
def write_celu_with_elu(node: NodeAtBoundary) -> None:
    """Writes max(0, x) + min(0, alpha * (exp(x / alpha) - 1)): for a positive alpha this is alpha times the Elu of x /
    alpha.

    The function body of the specification does this with an alpha of one dimension, so that the result of a scalar
    would have one dimension too.
    """
    data, dtype = node.inputs[0], node.known_dtype()
    alpha = node.known_value_or_default("alpha")
    scale = node.constant(alpha, "alpha", dtype)
    scaled = node.write("Div", [data, scale], "scaled")
    if alpha > 0:
        node.replace("Mul", [node.write("Elu", [scaled], "elu"), scale])
        return
    one = node.constant(1.0, "one", dtype)
    curve = node.write(
        "Mul", [node.write("Sub", [node.write("Exp", [scaled], "exp"), one], "less_one"), scale], "curve"
    )
    # min(0, curve) is -max(0, -curve).
    negative = node.write("Relu", [node.write("Neg", [curve], "negated")], "negative")
    node.replace("Sub", [node.write("Relu", [data], "positive"), negative])
