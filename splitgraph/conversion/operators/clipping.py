"""Clip: bounds that were attributes and became inputs."""

from __future__ import annotations

from splitgraph.attribute_values import UNRESOLVED
from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.registry import (
    changed,
    downward,
    exact,
    unchanged,
    upward,
)
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.shape_nodes import (
    typed,
)
from splitgraph.deferred import np
from splitgraph.value_type import DTYPE_NUMBERS

_WHERE_SINCE = 9
_WIDER = {"int8": 6, "int16": 6, "uint8": 6, "uint16": 6, "uint32": 7}
_GREATEST_FLOAT32 = float.fromhex("0x1.fffffep127")

unchanged("Clip", 12, 13)
changed("Clip", 6, "below it, an absent bound is the limit of the type; from then on that of float32")


@exact("Clip", 6)
def clip_bounds_agree(crossing: Crossing) -> bool:
    """Clip 1|6: both bounds are written, or the limits of float32 are the limits of the type."""
    bounds = [crossing.value("min"), crossing.value("max")]
    if all(bound is not None and bound is not UNRESOLVED for bound in bounds):
        return True
    crossing.accept_default("min", "max")
    return UNRESOLVED not in bounds and crossing.dtype(0) == "float32"


@upward("Clip", 6)
def clip_by_limits(context: AdapterContext) -> None:
    """Below 6 an absent bound is the limit of the type, which is written out; that of float64 is no float32, as the
    attributes are, but can be an input from opset 11 on.
    """
    context.require_types()
    dtype = context.known_dtype(0)
    limit = float(np.finfo(dtype).max)
    bounds = [context.known_value("min", -limit), context.known_value("max", limit)]
    context.drop("consumed_inputs", "min", "max", why="bounds are written out")
    if dtype != "float64":
        context.set("min", bounds[0], "the default is that of float32 from opset 6 on")
        context.set("max", bounds[1], "the default is that of float32 from opset 6 on")
        return
    if context.facts.target < 11:
        raise Inexact("the limits of float64 are no float32, which the bounds are", "go to opset 11 or above")
    context.dialect = 11
    context.inputs.extend(context.constant(bound, "bound", np.float64) for bound in bounds)


changed("Clip", 11, "the attributes min and max became inputs")


@exact("Clip", 11)
def clip_without_bounds(crossing: Crossing) -> bool:
    """Clip 6|11: no bounds, and the limits of float32, the defaults below 11, are the limits of the type."""
    if crossing.dtype(0) != "float32":
        return False
    if not crossing.upward:
        return not crossing.uses_input(1) and not crossing.uses_input(2)
    defaults = crossing.lower.attributes
    return all(
        crossing.value(name, defaults[name].default_value) == defaults[name].default_value for name in ("min", "max")
    )


@upward("Clip", 11)
def bounds_as_inputs(context: AdapterContext) -> None:
    """min and max become constants of the type of the data; absent, they are the limits of float32."""
    context.require_types()
    low, high = context.known_value("min", -_GREATEST_FLOAT32), context.known_value("max", _GREATEST_FLOAT32)
    context.drop("min", "max", why=f"it is an input {context.side}")
    context.inputs.extend([context.like_data(low, "min"), context.like_data(high, "max")])


@downward("Clip", 11)
def bounds_as_attributes(context: AdapterContext) -> None:
    """Constant bounds that a float32 holds become attributes; absent ones are the limits of the type. Others are chosen
    where the data is beyond them, which no NaN is.
    """
    context.require_types()
    limit = float(np.finfo(context.known_dtype(0)).max)
    values = []
    for index, absent in ((1, -limit), (2, limit)):
        found = context.elements(index) if context.uses_input(index) else np.asarray(absent)
        values.append(None if found is None else float(found.reshape(-1)[0]))
    low, high = values
    if low is not None and high is not None and _as_float32_pair(low, high):
        del context.inputs[1:]
        context.set("min", low, f"it is an attribute {context.side}")
        context.set("max", high, f"it is an attribute {context.side}")
        return
    dtype = context.known_dtype(0)
    context.inputs.extend([""] * (3 - len(context.inputs)))
    for index, absent in ((1, -limit), (2, limit)):
        context.inputs[index] = context.inputs[index] or context.tensor(typed([absent], dtype), "limit")
    _choose(context)


def _as_float32_pair(low: float, high: float) -> bool:
    """True for bounds that float32 holds, in order: which of them counts otherwise is specified from 13 on only."""
    with np.errstate(over="ignore"):
        return low <= high and all(float(np.float32(bound)) == bound for bound in (low, high))


def _choose(context: AdapterContext) -> None:
    """min where the data is less, then max where that is greater; without NaN in the bounds."""
    data, *bounds = context.inputs
    chosen = [(operator, bound) for operator, bound in zip(("Less", "Greater"), bounds, strict=False) if bound]
    for operator, bound in chosen:
        beyond = context.emit(operator, [data, bound], "is_beyond")
        if bound is chosen[-1][1]:
            context.replace("Where", [beyond, bound, data])
        else:
            data = context.emit("Where", [beyond, bound, data], "bounded")
    if not chosen:
        context.replace("Identity", [data])


@downward("Clip", 12)
def integers_by_choice(context: AdapterContext) -> None:
    """Below 12 Clip takes floating-point numbers only; of integers the bound is chosen where they are beyond it.
    Below 9 nothing chooses, and those of 32 bits are clipped as float64.
    """
    dtype = context.known_dtype(0)
    if not dtype.startswith(("int", "uint")) or dtype.endswith(("int4", "int2")):
        context.require_types()
        raise Inexact(f"it does not clip {dtype}")
    may_choose = context.facts.target >= _WHERE_SINCE or dtype not in ("int32", "uint32")
    wider = _WIDER.get(dtype) if may_choose else DTYPE_NUMBERS["float64"]
    if wider is None:
        _choose(context)
        return
    # Engines compare few types of integers.
    context.inputs[:] = [
        context.emit("Cast", [name], "as_integer", to=wider) if name else "" for name in context.inputs
    ]
    old = context.redirect(0, "clipped")
    if may_choose:
        _choose(context)
    context.emit_after("Cast", [context.outputs[0]], old, to=DTYPE_NUMBERS[dtype])
