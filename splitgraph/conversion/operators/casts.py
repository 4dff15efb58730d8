"""Cast and CastLike: attributes that have no effect on most types, and infinities in float8."""

from __future__ import annotations

from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.registry import (
    changed,
    downward,
    exact,
    unchanged,
    upward,
)
from splitgraph.conversion.writing.adapter_context import Inexact, Step
from splitgraph.deferred import np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NAMES, DTYPE_NUMBERS

_GREATEST = {"float8e4m3fnuz": 240.0, "float8e5m2fnuz": 57344.0}

_REAL = frozenset({"float16", "bfloat16", "float32", "float64"})

_EIGHT_BITS = frozenset({"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"})


unchanged("Cast", 9, 13, 19, 21, 23, 25, 28)
changed("Cast", 6, "the target type changed from a name to a number")


@exact("Cast", 6)
def cast_target_spelling(c: Crossing) -> bool:
    """Cast 1|6: the target type is a name below opset 6 and a number from then on."""
    to = c.value("to")
    types = TensorProto.DataType
    if c.upward and to in list(types.keys()):
        c.set("to", types.Value(to), "from opset 6 on the type is a number")
        return True
    if not c.upward and isinstance(to, int) and to in types.values():
        c.set("to", types.Name(to), "below opset 6 the type is a name")
        return True
    return False


@downward("Cast CastLike", 19)
def without_saturation(step: Step) -> None:
    """Below 19, there is no attribute saturate, which is about float8 only."""
    if _target(step) in _EIGHT_BITS:
        raise Inexact(f"{_target(step)} does not exist below it")
    step.drop("saturate", why="it is about float8 only")


changed(
    "Cast CastLike", 24, "saturating infinity to float8 FNUZ types gives NaN below it, the greatest value from then on"
)


@exact("Cast CastLike", 24)
def float8_infinity_unaffected(c: Crossing) -> bool:
    """Cast, CastLike at 24: the target is known and not one of the FNUZ types, or saturation is off."""
    if c.value("saturate", 1) == 0:
        return True
    to = c.value("to")
    fnuz = (TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ)
    if isinstance(to, int):
        return to not in fnuz
    dtype = c.dtype(1)
    return c.lower.op == "CastLike" and dtype is not None and not dtype.endswith("fnuz")


@upward("Cast CastLike", 24)
def infinity_is_not_a_number(step: Step) -> None:
    """Below 24, infinity saturates to NaN in the float8 FNUZ types, from then on to the greatest number: NaN is put in
    its place first.
    """
    if _target(step) in _GREATEST:
        _exchange_infinity(step, float("nan"), signed=False)


def _target(step: Step) -> str:
    if step.form.op_type == "CastLike":
        return step.known_dtype(1)
    return DTYPE_NAMES[step.known_value("to")]


def _exchange_infinity(step: Step, number: float, *, signed: bool) -> None:
    """Put a number in the place of infinities, with their sign; saturation is known to be on, or assumed to be."""
    if step.known_value("saturate", 1) == 0:
        return
    dtype = step.known_dtype(0)
    if dtype == "string":
        raise Inexact("a string may be that of infinity")
    if dtype not in _REAL | _EIGHT_BITS:
        return
    wide = dtype if dtype in _REAL else "float32"
    data = step.inputs[0] if wide == dtype else step.emit("Cast", [step.inputs[0]], "wide", to=DTYPE_NUMBERS[wide])
    held = step.constant(np.array(number), "number", wide)
    if signed:
        held = step.emit("Mul", [step.emit("Sign", [data], "sign"), held], "greatest")
    step.inputs[0] = step.emit("Where", [step.emit("IsInf", [data], "is_infinite"), held, data], "finite")


@downward("Cast CastLike", 24)
def infinity_is_the_greatest(step: Step) -> None:
    """Below 24, infinity saturates to NaN in the float8 FNUZ types, from then on to the greatest number: this is put in
    its place first. round_mode is about float8e8m0 only.
    """
    target = _target(step)
    if target == "float8e8m0":
        raise Inexact("float8e8m0 does not exist below it")
    step.drop("round_mode", why="it is about float8e8m0 only")
    if target in _GREATEST and step.known_value("saturate", 1) != 0:
        _exchange_infinity(step, _GREATEST[target], signed=True)


unchanged("CastLike", 19, 21, 23, 25)
