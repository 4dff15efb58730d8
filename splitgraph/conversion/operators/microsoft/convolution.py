"""Convolutions and pools of com.microsoft."""

from __future__ import annotations

from typing import Any

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.microsoft.fused_activations import activated, parameters_of
from splitgraph.conversion.operators.standard import standard

# Those that FusedConv takes.
_OF_CONV = ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid", "HardSwish")


def given_attributes(node: NodeAtBoundary, *left_out: str) -> dict[str, Any]:
    """Return the attributes that a node has, but for some."""
    return {name: node.known_value(name) for name in node.attributes if name not in left_out}


def channels_first(data: Term, rank: int) -> Term:
    """Move the channels from the last axis to the second one."""
    return data.transposed(0, rank - 1, *range(1, rank - 1))


def channels_last(data: Term, rank: int) -> Term:
    """Move the channels from the second axis to the last one."""
    return data.transposed(0, *range(2, rank), 1)


@standard("FusedConv")
def write_fused_conv(node: NodeAtBoundary) -> None:
    """Write Conv, the sum with a tensor of its shape, and the activation, in this order."""
    f = Formula(node)
    activation, numbers = node.known_value("activation"), node.known_value("activation_params", ())
    inputs = [f.input(index) for index in range(3) if node.uses_input(index)]
    result = f.apply("Conv", *inputs, **given_attributes(node, "activation", "activation_params"))
    if node.uses_input(3):
        result = result + f.input(3)
    if activation is not None:
        takes = parameters_of(activation, _OF_CONV)
        result = activated(result, activation, list(numbers) if takes else ())
    f.give(result)


@standard("ConvTransposeWithDynamicPads", auto_pad="NOTSET")
def write_conv_transpose_with_dynamic_pads(node: NodeAtBoundary) -> None:
    """Write ConvTranspose with the pads as an attribute; where they are known only at run time, cut them off the
    result without pads.
    """
    if node.known_value_or_default("auto_pad") != "NOTSET":
        raise Inexact("it has pads and auto_pad, and onnxruntime does not say which ones count")
    f, attributes = Formula(node), given_attributes(node, "auto_pad", "pads")
    inputs = [f.input(index) for index in (0, 1, 3) if node.uses_input(index)]
    pads = node.integers(2) if node.uses_input(2) else []
    if pads is not None:
        more: dict[str, Any] = {"pads": pads} if any(pads) else {}
        f.give(f.apply("ConvTranspose", *inputs, **attributes, **more))
        return
    behind = node.known_rank(0) - 2
    whole, counts = f.apply("ConvTranspose", *inputs, **attributes), f.input(2).reshape(-1)
    sizes = whole.shape().sliced(2)
    first, last = counts.sliced(0, behind), sizes - counts.sliced(behind, 2 * behind)
    f.give(f.apply("Slice", whole, first, last, f.number(list(range(2, behind + 2)))))


@standard("NhwcMaxPool")
def write_nhwc_max_pool(node: NodeAtBoundary) -> None:
    """Write MaxPool between two transposes."""
    rank, f = node.known_rank(0), Formula(node)
    pooled = f.apply("MaxPool", channels_first(f.input(0), rank), **given_attributes(node))
    f.give(channels_last(pooled, rank))


@standard("MaxpoolWithMask")
def write_maxpool_with_mask(node: NodeAtBoundary) -> None:
    """Write MaxPool where the mask is known to hide nothing."""
    mask = node.elements(1)
    if mask is None or not mask.all():
        raise Inexact(
            "what a mask hides depends on the order in which the kernel of onnxruntime reads a window", "leave no mask"
        )
    if not node.has("kernel_shape"):
        raise Inexact("it has no kernel_shape")
    # The order of storage is of the indices, which it does not give.
    node.replace("MaxPool", node.inputs[:1], **given_attributes(node, "storage_order"))
