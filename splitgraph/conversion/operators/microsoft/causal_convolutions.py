"""Convolutions of com.microsoft that see the present and the past alone, and keep the last inputs as their state."""

from __future__ import annotations

from typing import Any

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.microsoft.activations import swish
from splitgraph.conversion.operators.microsoft.linear_attention import known_size, text_of
from splitgraph.conversion.operators.microsoft.normalizations import widened
from splitgraph.conversion.operators.standard import standard

# What onnxruntime takes on a GPU alone.
_OTHER_FORMS = ("state_update_capacity", "state_window", "state_length", "input_channel_offset", "input_channels")
_LAST, _UPDATE = 1, 2


def _activated(f: Formula, data: Term) -> Term:
    name = text_of(f.node, "activation")
    if name in ("silu", "swish"):
        return swish(data)
    if name == "none":
        return data
    raise Inexact(f"onnxruntime knows no activation {name!r} for it")


@standard("CausalConvWithState", activation="none", dilation=1, channels_last=0, ndim=1)
def write_causal_conv_with_state(node: NodeAtBoundary) -> None:
    """Write the convolution of the state and the input, and the last inputs."""
    _refuse_other_forms(node)
    f, dtype, dilation = Formula(node), node.known_dtype(), node.known_value_or_default("dilation")
    channels, taps = (known_size(node.shape(1), axis, "the shape of the weight") for axis in (0, 2))
    last, length = bool(node.known_value_or_default("channels_last")), (taps - 1) * dilation
    data = _channels_first(f, 0, channels, last=last)
    state = _channels_first(f, 3, channels, last=last) if node.uses_input(3) else None
    if state is None:
        state = f.filled(f.vector([f.size(0, 0), channels, length]), 0, dtype)
    joined = f.joined([state, data], 2)
    terms = [joined.cast("float32"), widened(f, 1), *((widened(f, 2),) if node.uses_input(2) else ())]
    tokens = f.size(0, 1 if last else 2).reshape(1)
    # Conv of onnxruntime gives no empty result: where there may be no tokens, it gives one more.
    may_be_none = tokens.elements is None or not tokens.elements.any()
    sizes: dict[str, Any] = {"group": channels, "dilations": [dilation], "kernel_shape": [taps]}
    result = f.apply("Conv", *terms, **sizes, pads=[0, int(may_be_none)])
    result = _activated(f, result.sliced(f.number([0]), tokens, 2) if may_be_none else result)
    kept = joined.sliced(tokens, axis=2)
    f.give(*(_back(f, term, node, last=last) for term in (result.cast(dtype), kept)))


def _refuse_other_forms(node: NodeAtBoundary) -> None:
    if node.known_value_or_default("ndim") != 1:
        raise Inexact("onnxruntime refuses it on a CPU for more than one dimension")
    given = [name for name in _OTHER_FORMS if node.known_is_set(name)]
    if given or node.known_value("state_channels_last", -1) != -1 or node.uses_output(_UPDATE):
        name = given[0] if given else "a third output" if node.uses_output(_UPDATE) else "state_channels_last"
        raise Inexact(f"onnxruntime refuses {name} on a CPU, so that nothing can be compared with it")


def _channels_first(f: Formula, index: int, channels: int, *, last: bool) -> Term:
    """Return an input as (batch, channels, length)."""
    data = f.input(index)
    if not last:
        return data
    flat = data if f.node.known_rank(index) == 3 else data.reshape(0, 0, channels)
    return flat.transposed(0, 2, 1)


def _back(f: Formula, data: Term, node: NodeAtBoundary, *, last: bool) -> Term:
    """Return (batch, channels, length) in the layout of the input."""
    if not last:
        return data
    data, rank = data.transposed(0, 2, 1), node.known_rank()
    if rank == 3:
        return data
    sizes = [known_size(node.shape(0), axis, "the shape of the input") for axis in range(2, rank)]
    return data.reshape(0, 0, *sizes)


# Sequences behind each other ------------------------------------------------------------------------------------------


@standard("VarlenCausalConvWithState", activation="none", dilation=1)
def write_varlen_causal_conv_with_state(node: NodeAtBoundary) -> None:
    """Take, for each token and tap, the row of the input or of the state that the tap sees, and sum the products."""
    if node.known_is_set("state_update_capacity") or any(node.uses_input(index) for index in (5, 6, 7)):
        raise Inexact("onnxruntime captures updates and adds to the weights on a GPU only")
    f, dtype, dilation = Formula(node), node.known_dtype(), node.known_value_or_default("dilation")
    channels, taps = (known_size(node.shape(1), axis, "the shape of the weight") for axis in (0, 2))
    held = (taps - 1) * dilation
    rows = f.joined([f.input(0), f.input(4).transposed(0, 2, 1).reshape(-1, channels)], 0)
    bounds, tokens = f.input(2, "int32").cast("int64"), f.size(0, 0)
    starts, ends = bounds.sliced(0, f.size(4, 0).reshape(1), 0), bounds.sliced(1, axis=0)
    counted = f.counting(tokens)
    # The number of the sequence of each token: how many sequences end at or before it.
    later = ~(counted.reshape(-1, 1) < ends.reshape(1, -1))
    sequence = later.cast("int64").reduced("ReduceSum", [1])
    offsets = f.number([(taps - 1 - tap) * dilation for tap in range(taps)])
    since = (counted - starts.take(sequence)).reshape(-1, 1) - offsets
    before = (sequence * held + tokens + held).reshape(-1, 1) + since
    seen = rows.take(f.where(since < 0, before, counted.reshape(-1, 1) - offsets)).cast("float32")
    result = (seen * widened(f, 1).reshape(channels, taps).transposed(1, 0)).reduced("ReduceSum", [1])
    if node.uses_input(3):
        result = result + widened(f, 3)
    f.give(_activated(f, result).cast(dtype), _last_rows(f, rows, starts, ends, held))


def _last_rows(f: Formula, rows: Term, starts: Term, ends: Term, held: int) -> Term:
    """Return the last rows of each sequence, (batch, channels, held): of the input, and of its state before these."""
    places = f.number(list(range(-held, 0))) + ends.reshape(-1, 1)
    since = places - starts.reshape(-1, 1)
    sequence = f.counting(f.size(4, 0)).reshape(-1, 1)
    before = since + (sequence * held + f.size(0, 0) + held)
    return rows.take(f.where(since < 0, before, places)).transposed(0, 2, 1)
