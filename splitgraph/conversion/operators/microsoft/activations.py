"""Activations of com.microsoft, and sums that were fused with one."""

from __future__ import annotations

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import NodeAtBoundary
from splitgraph.conversion.operators.standard import standard

# Gelu by the error function, and by a hyperbolic tangent, which differs from it by up to 5e-4.
_EXACT, _BY_TANH = "none", "tanh"


def gelu(data: Term, approximate: str = _EXACT) -> Term:
    """Return x * P(X <= x) for a normally distributed X. Needs opset 20."""
    return data.formula.apply("Gelu", data, approximate=approximate)


def swish(data: Term, alpha: float = 1.0) -> Term:
    """Return x * sigmoid(alpha * x)."""
    scaled = data if alpha == 1.0 else data * alpha
    return data * data.formula.apply("Sigmoid", scaled)


@standard("Gelu", opset=20)
def write_gelu(node: NodeAtBoundary) -> None:
    """Write the Gelu of ai.onnx."""
    f = Formula(node)
    f.give(gelu(f.input(0)))


@standard("BiasGelu", opset=20)
def write_bias_gelu(node: NodeAtBoundary) -> None:
    """Write the sum, and its Gelu."""
    f = Formula(node)
    f.give(gelu(f.input(0) + f.input(1)))


@standard("FastGelu", opset=20)
def write_fast_gelu(node: NodeAtBoundary) -> None:
    """Write the sum, and its Gelu by a hyperbolic tangent."""
    f = Formula(node)
    data = f.input(0) + f.input(1) if node.uses_input(1) else f.input(0)
    f.give(gelu(data, _BY_TANH))


@standard("QuickGelu", alpha=1.702)
def write_quick_gelu(node: NodeAtBoundary) -> None:
    """Write x * sigmoid(alpha * x)."""
    alpha, f = node.known_value_or_default("alpha"), Formula(node)
    f.give(swish(f.input(0), alpha))


@standard("ScaledSiLU", alpha=1.0)
def write_scaled_silu(node: NodeAtBoundary) -> None:
    """Write the scaled data times its sigmoid; a second input is the scale, in place of the attribute."""
    alpha, f = node.known_value_or_default("alpha"), Formula(node)
    scaled = f.input(0) * (f.input(1) if node.uses_input(1) else alpha)
    f.give(scaled * f.apply("Sigmoid", scaled))
