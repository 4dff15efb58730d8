"""Cast and CastLike: target types became numbers (6), saturate (19) and round_mode (24) matter for few types, and
infinity saturates differently (24).
"""

from __future__ import annotations

from splitgraph.conversion.operators.registry import changed, downward, edited, exact, unchanged, upward
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
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
def target_can_be_respelled(node: NodeAtBoundary) -> None:
    """Keep a node when the target type is known. Writes the type as a name below opset 6 and as a number from 6 on."""
    to = node.value("to")
    types = TensorProto.DataType
    if node.upward and to in list(types.keys()):
        node.set("to", types.Value(to), "from opset 6 on the type is a number")
        return
    if not node.upward and isinstance(to, int) and to in types.values():
        node.set("to", types.Name(to), "below opset 6 the type is a name")
        return
    raise Inexact


@downward("Cast CastLike", 19)
def drop_saturate(node: NodeAtBoundary) -> None:
    """Drops saturate, which only float8 uses and which does not exist below 19."""
    if _target(node) in _EIGHT_BITS:
        raise Inexact(f"{_target(node)} does not exist below it")
    node.drop("saturate", why="it is about float8 only")


def _target(node: NodeAtBoundary) -> str:
    """Gives the target type of the node."""
    if node.op_type == "CastLike":
        return node.known_dtype(1)
    return DTYPE_NAMES[node.known_value("to")]


changed(
    "Cast CastLike", 24, "saturating infinity to float8 FNUZ types gives NaN below it, the greatest value from then on"
)


@exact("Cast CastLike", 24)
def has_no_saturating_fnuz(node: NodeAtBoundary) -> bool:
    """True when the target type is known and no FNUZ type, or when saturation is off."""
    if node.value_or_default("saturate") == 0:
        return True
    to = node.value("to")
    fnuz = (TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ)
    if isinstance(to, int):
        return to not in fnuz
    dtype = node.dtype(1)
    return node.lower.op == "CastLike" and dtype is not None and not dtype.endswith("fnuz")


@upward("Cast CastLike", 24)
def replace_infinity_by_nan(node: NodeAtBoundary) -> None:
    """Replaces infinity by NaN first: below 24, infinity saturates to NaN in the float8 FNUZ types, from 24 on to the
    greatest number.
    """
    if _target(node) in _GREATEST:
        _replace_infinity(node, float("nan"), signed=False)


def _replace_infinity(node: NodeAtBoundary, number: float, *, signed: bool) -> None:
    """Replaces infinities by a number. signed: the number gets the sign of the infinity. Does nothing where saturation
    is off.
    """
    if node.known_value_or_default("saturate") == 0:
        return
    dtype = node.known_dtype(0)
    if dtype == "string":
        raise Inexact("a string may be that of infinity")
    if dtype not in _REAL | _EIGHT_BITS:
        return
    wide = dtype if dtype in _REAL else "float32"
    data = widened(node, node.inputs[0], dtype, wide)
    held = node.constant(np.array(number), "number", wide)
    if signed:
        held = node.write("Mul", [node.write("Sign", [data], "sign"), held], "greatest")
    node.inputs[0] = node.write("Where", [node.write("IsInf", [data], "is_infinite"), held, data], "finite")


@downward("Cast CastLike", 24)
def replace_infinity_by_greatest(node: NodeAtBoundary) -> None:
    """Replaces infinity by the greatest number first: below 24, infinity saturates to NaN in the float8 FNUZ types.
    Drops round_mode, which only float8e8m0 uses.
    """
    target = _target(node)
    if target == "float8e8m0":
        raise Inexact("float8e8m0 does not exist below it")
    node.drop("round_mode", why="it is about float8e8m0 only")
    if target in _GREATEST and node.known_value_or_default("saturate") != 0:
        _replace_infinity(node, _GREATEST[target], signed=True)
