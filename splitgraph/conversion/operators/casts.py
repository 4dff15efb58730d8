"""Cast and CastLike: target types became numbers (6), saturate (19) and round_mode (24) matter for few types, and
infinity saturates differently (24).
"""

from __future__ import annotations

from splitgraph.conversion.operators.registry import changed, downward, edited, exact, unchanged, upward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.shape_nodes import widened
from splitgraph.deferred import np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NAMES

_GREATEST = {"float8e4m3fnuz": 240.0, "float8e5m2fnuz": 57344.0}
_REAL = frozenset({"float16", "bfloat16", "float32", "float64"})
_EIGHT_BITS = frozenset({"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"})

unchanged("Cast", 9, 13, 19, 21, 23, 25, 28)
unchanged("CastLike", 19, 21, 23, 25)
changed("Cast", 6, "the target type changed from a name to a number")


@edited("Cast", 6)
def target_can_be_respelled(crossing: AdapterContext) -> None:
    """Keep a node when the target type is known. Writes the type as a name below opset 6 and as a number from 6 on."""
    to = crossing.value("to")
    types = TensorProto.DataType
    if crossing.upward and to in list(types.keys()):
        crossing.set("to", types.Value(to), "from opset 6 on the type is a number")
        return
    if not crossing.upward and isinstance(to, int) and to in types.values():
        crossing.set("to", types.Name(to), "below opset 6 the type is a name")
        return
    raise Inexact


@downward("Cast CastLike", 19)
def drop_saturate(context: AdapterContext) -> None:
    """Drops saturate, which only float8 uses and which does not exist below 19."""
    if _target(context) in _EIGHT_BITS:
        raise Inexact(f"{_target(context)} does not exist below it")
    context.drop("saturate", why="it is about float8 only")


def _target(context: AdapterContext) -> str:
    """Gives the target type of the node."""
    if context.form.op_type == "CastLike":
        return context.known_dtype(1)
    return DTYPE_NAMES[context.known_value("to")]


changed(
    "Cast CastLike", 24, "saturating infinity to float8 FNUZ types gives NaN below it, the greatest value from then on"
)


@exact("Cast CastLike", 24)
def has_no_saturating_fnuz(crossing: AdapterContext) -> bool:
    """True when the target type is known and no FNUZ type, or when saturation is off."""
    if crossing.value_or_default("saturate") == 0:
        return True
    to = crossing.value("to")
    fnuz = (TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ)
    if isinstance(to, int):
        return to not in fnuz
    dtype = crossing.dtype(1)
    return crossing.lower.op == "CastLike" and dtype is not None and not dtype.endswith("fnuz")


@upward("Cast CastLike", 24)
def replace_infinity_by_nan(context: AdapterContext) -> None:
    """Replaces infinity by NaN first: below 24, infinity saturates to NaN in the float8 FNUZ types, from 24 on to the
    greatest number.
    """
    if _target(context) in _GREATEST:
        _replace_infinity(context, float("nan"), signed=False)


def _replace_infinity(context: AdapterContext, number: float, *, signed: bool) -> None:
    """Replaces infinities by a number. signed: the number gets the sign of the infinity. Does nothing where saturation
    is off.
    """
    if context.known_value_or_default("saturate") == 0:
        return
    dtype = context.known_dtype(0)
    if dtype == "string":
        raise Inexact("a string may be that of infinity")
    if dtype not in _REAL | _EIGHT_BITS:
        return
    wide = dtype if dtype in _REAL else "float32"
    data = widened(context, context.inputs[0], dtype, wide)
    held = context.constant(np.array(number), "number", wide)
    if signed:
        held = context.emit("Mul", [context.emit("Sign", [data], "sign"), held], "greatest")
    context.inputs[0] = context.emit("Where", [context.emit("IsInf", [data], "is_infinite"), held, data], "finite")


@downward("Cast CastLike", 24)
def replace_infinity_by_greatest(context: AdapterContext) -> None:
    """Replaces infinity by the greatest number first: below 24, infinity saturates to NaN in the float8 FNUZ types.
    Drops round_mode, which only float8e8m0 uses.
    """
    target = _target(context)
    if target == "float8e8m0":
        raise Inexact("float8e8m0 does not exist below it")
    context.drop("round_mode", why="it is about float8e8m0 only")
    if target in _GREATEST and context.known_value_or_default("saturate") != 0:
        _replace_infinity(context, _GREATEST[target], signed=True)
