"""Mixtures of experts of com.microsoft.

Every expert computes every token, and the router's weights choose: no operator of ai.onnx multiplies by a matrix that
the data chooses without copying it for each token.
"""

from __future__ import annotations

from typing import Any

from splitgraph.conversion.notation.formula import Formula, Term, has_no_zero
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.microsoft.activations import swish
from splitgraph.conversion.operators.microsoft.packed_weights import codes_of, is_constant, middle_codes
from splitgraph.conversion.operators.standard import standard

_DEFAULTS: dict[str, Any] = {
    "activation_type": "relu",
    "activation_alpha": 1.0,
    "activation_beta": 0.0,
    "k": 1,
    "normalize_routing_weights": 0,
    "swiglu_fusion": 0,
    "swiglu_limit_after_activation": 0,
    "use_sparse_mixer": 0,
}


@standard("MoE", opset=20, **_DEFAULTS)
def write_experts(node: NodeAtBoundary) -> None:
    """Write two layers for each expert, and their sum by the weights of the router."""
    if node.uses_input(6) or node.uses_input(7):
        raise Inexact("it has a third layer, which onnxruntime does not run on a CPU")
    f = Formula(node)
    weights = [_plain(node, f, index) for index in (2, 4)]
    shares = _shares(node, f, normalized=bool(node.known_value_or_default("normalize_routing_weights")))
    _give_sum(node, f, shares, weights, (3, 5))


def _plain(node: NodeAtBoundary, f: Formula, index: int) -> Term:
    """Return the weights of a layer, for each expert a matrix whose columns are the outputs."""
    if index == 2 and (node.shape(2) or (None,))[-1] != (node.shape(0) or (None,))[-1]:
        raise Inexact("its first weights do not end with the size of a token", "declare the shapes of both")
    return f.input(index).cast("float32").transposed(0, 2, 1)


def _shares(node: NodeAtBoundary, f: Formula, *, normalized: bool) -> Term:
    """Return the weight of each expert for each token, 0 for those that are not chosen.

    Of equal probabilities the kernel takes the last ones, and TopK the first ones.
    """
    if node.known_value_or_default("use_sparse_mixer"):
        raise Inexact("use_sparse_mixer has no effect on a CPU, against its document", "leave the attribute out")
    probabilities = f.apply("Softmax", f.input(1).cast("float32"), axis=-1)
    count = f.size(2, 0)
    backwards = (count - 1) - f.counting(count)
    many = f.number([node.known_value_or_default("k")])
    best, places = f.write("TopK", [probabilities.take(backwards, 1), many], "float32", "int64", axis=-1)
    if normalized:
        best = best / best.reduced("ReduceSum", [1], keepdims=True)
    none = f.filled(probabilities.shape(), 0, "float32")
    return f.apply("ScatterElements", none, (count - 1) - places, best, axis=1)


def _give_sum(node: NodeAtBoundary, f: Formula, shares: Term, weights: list[Term], biases: tuple[int, int]) -> None:
    """Compute both layers of each expert, and sum over the experts."""
    shape = node.shape(0)
    if shape is None or shape[-1] is None:
        raise Inexact("the size of a token is unknown", "declare the shape of the input")
    tokens = f.input(0).cast("float32").shaped([-1, f.size(0, len(shape) - 1)]).unsqueezed(0)
    hidden = _activated(node, f, _layer(node, f, tokens, weights[0], biases[0]))
    results = _layer(node, f, hidden, weights[1], biases[1])
    each = shares.transposed(1, 0).unsqueezed(2)
    # An expert that is not chosen must not make infinity times 0.
    chosen = f.where(each.equals(0), 0.0, results) * each
    total = chosen.reduced("ReduceSum", [0])
    if len(shape) > 2:
        total = total.with_shape(f.shape(node.inputs[0]), dense=has_no_zero(node, node.inputs[0]))
    f.give(total.cast(node.known_dtype(0)))


def _layer(node: NodeAtBoundary, f: Formula, data: Term, weights: Term, bias: int) -> Term:
    result = data @ weights
    return result + f.input(bias).cast("float32").unsqueezed(1) if node.uses_input(bias) else result


def _activated(node: NodeAtBoundary, f: Formula, data: Term) -> Term:
    """Apply the activation between the layers."""
    kind = node.known_value_or_default("activation_type")
    if kind == "swiglu":
        return _gated(node, f, data)
    if kind == "gelu":
        return f.apply("Gelu", data, approximate="tanh")
    if kind not in ("relu", "silu", "identity"):
        raise Inexact(f"the activation {kind!r} is none that onnxruntime runs there")
    return f.apply("Relu", data) if kind == "relu" else swish(data) if kind == "silu" else data


def _gated(node: NodeAtBoundary, f: Formula, data: Term) -> Term:
    """Return gate * sigmoid(alpha * gate) * (linear + beta), where gates and linear parts come in turn."""
    if node.known_value_or_default("swiglu_fusion") != 1 or node.known_value_or_default(
        "swiglu_limit_after_activation"
    ):
        raise Inexact("onnxruntime runs swiglu with swiglu_fusion=1 and no limit after the activation only")
    outputs = (node.shape(2) or (None, None))[1]
    if not isinstance(outputs, int):
        raise Inexact("the size of the first layer is unknown", "declare the shape of its weights")
    parts = data.reshape(0, 0, outputs // 2, 2)
    gate, linear = parts.take(0, 3), parts.take(1, 3)
    limit = node.known_value("swiglu_limit")
    if limit is not None:
        gate, linear = gate.at_most(limit), linear.clipped(-limit, limit)
    beta = node.known_value_or_default("activation_beta")
    return swish(gate, node.known_value_or_default("activation_alpha")) * (linear + beta if beta else linear)


# QMoE ---------------------------------------------------------------------------------------------------------------


@standard("QMoE", opset=21, expert_weight_bits=4, quant_type="int", weights_prepacked=-1, accuracy_level=0, **_DEFAULTS)
def write_quantized_experts(node: NodeAtBoundary) -> None:
    """Write the layers with dequantized weights. The kernel may round the data to int8 (accuracy_level 4, and weights
    of 8 bits), which approximates this product.
    """
    if any(node.uses_input(index) for index in (8, 9, 10, 13)):
        raise Inexact("it has a third layer, which onnxruntime does not run on a CPU")
    if any(node.uses_input(index) for index in range(14, 21)):
        raise Inexact("it has scales or weights of a router that onnxruntime does not read on a CPU")
    if node.known_value_or_default("quant_type") != "int":
        raise Inexact("onnxruntime reads weights as integers on a CPU, whatever quant_type says")
    many = (node.shape(2) or (None,))[0]
    if not node.known_value_or_default("normalize_routing_weights") and many != node.known_value_or_default("k"):
        raise Inexact(
            "onnxruntime normalizes the weights of the router on a CPU, although normalize_routing_weights is 0",
            "set normalize_routing_weights to 1, which is what it computes",
        )
    f = Formula(node)
    weights = [_dequantized(node, f, data, zeros, name) for data, zeros, name in ((2, 11, "fc1"), (5, 12, "fc2"))]
    _give_sum(node, f, _shares(node, f, normalized=True), weights, (4, 7))


def _dequantized(node: NodeAtBoundary, f: Formula, data: int, zeros: int, layer: str) -> Term:
    """Return the weights of a layer as numbers, for each expert a matrix whose columns are the outputs."""
    bits = node.known_value(f"{layer}_expert_weight_bits") or node.known_value_or_default("expert_weight_bits")
    if bits not in (2, 4, 8) or node.known_value_or_default("weights_prepacked") == 1:
        raise Inexact("its weights are not of 2, 4 or 8 bits in the layout of the document")
    shape = node.shape(data) or ()
    known = [size for size in shape if isinstance(size, int)]
    if len(known) != 3:
        raise Inexact("the sizes of its weights are unknown", "declare their shapes")
    experts, outputs, inputs = known[0], known[1], known[2] * 8 // bits
    block = node.known_value("block_size", 0) or inputs
    blocks = -(-inputs // block)
    narrow = is_constant(node, data) and (not node.uses_input(zeros) or is_constant(node, zeros))
    codes = codes_of(node, f, data, bits, (experts, outputs, inputs), narrow=narrow)
    if not node.uses_input(zeros):
        points = middle_codes(node, f, bits, codes.dtype, (experts, outputs, blocks))
    elif node.known_value("block_size", 0):
        points = codes_of(node, f, zeros, bits, (experts, outputs, blocks), narrow=narrow)
    else:
        whole = (experts, outputs, 1)
        points = codes_of(node, f, zeros, bits, (experts, outputs), narrow=narrow, gives=whole)
    if points.dtype != codes.dtype:
        codes, points = codes.cast("uint8"), points.cast("uint8")
    scales = f.input(data + 1).cast("float32").reshape(experts, outputs, blocks)
    numbers = f.apply("DequantizeLinear", codes, scales, points, gives="float32", axis=2, block_size=block)
    return numbers.transposed(0, 2, 1)


# MoEGroupRouter -----------------------------------------------------------------------------------------------------


@standard("MoEGroupRouter", n_group=1, topk_group=1, group_topk=2, router_sentinel=-10000.0)
def write_group_router(node: NodeAtBoundary) -> None:
    """Choose the groups whose best experts have the largest sum, then the best experts of these groups; give the
    logarithm of their share, and a number of its own for the others.
    """
    if node.uses_input(2) or node.uses_output(1) or node.uses_output(2) or not node.uses_output(0):
        raise Inexact("it projects its input, or gives full scores, which is written with no operators here")
    f, dtype = Formula(node), node.known_dtype(0)
    groups = node.known_value_or_default("n_group")
    experts = (node.shape(0) or (None,))[-1]
    if not isinstance(experts, int):
        raise Inexact("the number of experts is unknown", "declare the shape of the input")
    each = experts // groups
    shares = f.apply("Sigmoid", f.input(0).cast("float32").reshape(-1, experts))
    scores = shares + f.input(1).cast("float32")
    in_groups = scores.reshape(-1, groups, each)
    best = _largest(f, in_groups, min(node.known_value_or_default("group_topk"), each))[0].reduced("ReduceSum", [2])
    chosen = _marked(f, best, _largest(f, best, node.known_value_or_default("topk_group"))[1])
    lowest = f.number(float("-inf"), "float32")
    allowed = f.where(chosen.unsqueezed(2), in_groups, lowest).reshape(-1, experts)
    places = _largest(f, allowed, node.known_value("top_k"))[1]
    taken = _marked(f, allowed, places) & (allowed > lowest)
    logarithms = f.apply("Log", shares.at_least(1e-20))
    f.give(f.where(taken, logarithms, node.known_value_or_default("router_sentinel")).cast(dtype))


def _largest(f: Formula, data: Term, count: int) -> list[Term]:
    """Return the largest elements along the last axis, and their places."""
    return f.write("TopK", [data, f.number([count])], data.dtype, "int64", axis=-1)


def _marked(f: Formula, data: Term, places: Term) -> Term:
    """Tell which elements of a matrix are at these places of their row."""
    none = f.filled(data.shape(), 0, "int32")
    ones = f.filled(places.shape(), 1, "int32")
    return f.apply("ScatterElements", none, places, ones, axis=1).cast("bool")
