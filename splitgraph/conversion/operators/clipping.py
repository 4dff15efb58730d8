"""Clip: the bounds became inputs (11), and integers were allowed (12)."""

from __future__ import annotations

from splitgraph.attributes import UNRESOLVED
from splitgraph.conversion.operators.registry import changed, downward, edited, exact, unchanged, upward
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.shape_nodes import typed
from splitgraph.deferred import np
from splitgraph.value_type import DTYPE_NUMBERS

_WHERE_SINCE = 9
_WIDER = {"int8": 6, "int16": 6, "uint8": 6, "uint16": 6, "uint32": 7}

unchanged("Clip", 12, 13)
changed("Clip", 6, "below it, an absent bound is the limit of the type; from then on that of float32")


@edited("Clip", 6)
def bounds_are_written_or_float32(node: NodeAtBoundary) -> None:
    """Keep a node when it has both bounds, or the data is float32, whose limits are the defaults on both sides."""
    bounds = [node.value("min"), node.value("max")]
    if all(bound is not None and bound is not UNRESOLVED for bound in bounds):
        return
    node.accept_default("min", "max")
    if not (UNRESOLVED not in bounds and node.dtype(0) == "float32"):
        raise Inexact


@upward("Clip", 6)
def write_limits_as_bounds(node: NodeAtBoundary) -> None:
    """Writes out absent bounds: below 6, they are the limits of the type. The limits of float64 fit no attribute, which
    is float32, but fit an input from opset 11 on.
    """
    node.require_types()
    dtype = node.known_dtype(0)
    limit = float(np.finfo(dtype).max)
    bounds = [node.known_value("min", -limit), node.known_value("max", limit)]
    node.drop("consumed_inputs", "min", "max", why="bounds are written out")
    if dtype != "float64":
        node.set("min", bounds[0], "the default is that of float32 from opset 6 on")
        node.set("max", bounds[1], "the default is that of float32 from opset 6 on")
        return
    if node.target < 11:
        raise Inexact("the limits of float64 are no float32, which the bounds are", "go to opset 11 or above")
    node.dialect = 11
    node.inputs.extend(node.constant(bound, "bound", np.float64) for bound in bounds)


changed("Clip", 11, "the attributes min and max became inputs")


@exact("Clip", 11)
def bounds_are_limits_of_float32(node: NodeAtBoundary) -> bool:
    """True when the data is float32 and the node has no bounds, or bounds that are the limits of float32."""
    if node.dtype(0) != "float32":
        return False
    if not node.upward:
        return not node.uses_input(1) and not node.uses_input(2)
    defaults = node.lower.attributes
    return all(
        node.value(name, defaults[name].default_value) == defaults[name].default_value for name in ("min", "max")
    )


@upward("Clip", 11)
def make_bounds_inputs(node: NodeAtBoundary) -> None:
    """Turns min and max into constants of the type of the data. Absent ones are the limits of float32."""
    node.require_types()
    low, high = node.known_value_or_default("min"), node.known_value_or_default("max")
    node.drop("min", "max", why=f"it is an input {node.side}")
    node.inputs.extend([node.like_data(low, "min"), node.like_data(high, "max")])


@downward("Clip", 11)
def make_bounds_attributes(node: NodeAtBoundary) -> None:
    """Turns constant bounds that float32 holds into attributes. Absent ones are the limits of the type. With other
    bounds, Where chooses the bound where the data is beyond it.
    """
    node.require_types()
    limit = float(np.finfo(node.known_dtype(0)).max)
    values = []
    for index, absent in ((1, -limit), (2, limit)):
        found = node.elements(index) if node.uses_input(index) else np.asarray(absent)
        # OpenVINO and the reference evaluator broadcast bounds of several elements, as Where does.
        values.append(float(found.reshape(-1)[0]) if found is not None and found.size == 1 else None)
    low, high = values
    if low is not None and high is not None and _fit_float32_in_order(low, high):
        del node.inputs[1:]
        node.set("min", low, f"it is an attribute {node.side}")
        node.set("max", high, f"it is an attribute {node.side}")
        return
    dtype = node.known_dtype(0)
    node.inputs.extend([""] * (3 - len(node.inputs)))
    for index, absent in ((1, -limit), (2, limit)):
        node.inputs[index] = node.inputs[index] or node.tensor(typed([absent], dtype), "limit")
    _choose_bounds(node)


def _fit_float32_in_order(low: float, high: float) -> bool:
    """True when float32 holds both bounds and they are in order. Only from 13 on the document says which bound counts
    otherwise.
    """
    with np.errstate(over="ignore"):
        return low <= high and all(float(np.float32(bound)) == bound for bound in (low, high))


def _choose_bounds(node: NodeAtBoundary) -> None:
    """Chooses min where the data is less, then max where the data is greater. The bounds hold no NaN."""
    data, *bounds = node.inputs
    chosen = [(operator, bound) for operator, bound in zip(("Less", "Greater"), bounds, strict=False) if bound]
    for operator, bound in chosen:
        beyond = node.write(operator, [data, bound], "is_beyond")
        if bound is chosen[-1][1]:
            node.replace("Where", [beyond, bound, data])
        else:
            data = node.write("Where", [beyond, bound, data], "bounded")
    if not chosen:
        node.replace("Identity", [data])


@downward("Clip", 12)
def clip_integers(node: NodeAtBoundary) -> None:
    """Chooses the bound where integers are beyond it. Below 12, Clip takes floating-point types only. Below 9 there is
    no Where: 32-bit integers are clipped as float64.
    """
    dtype = node.known_dtype(0)
    if not dtype.startswith(("int", "uint")) or dtype.endswith(("int4", "int2")):
        node.require_types()
        raise Inexact(f"it does not clip {dtype}")
    may_choose = node.target >= _WHERE_SINCE or dtype not in ("int32", "uint32")
    wider = _WIDER.get(dtype) if may_choose else DTYPE_NUMBERS["float64"]
    if wider is None:
        _choose_bounds(node)
        return
    # Engines compare only some types of integers.
    node.inputs[:] = [node.write("Cast", [name], "as_integer", to=wider) if name else "" for name in node.inputs]
    old = node.redirect(0, "clipped")
    if may_choose:
        _choose_bounds(node)
    node.write_after("Cast", [node.outputs[0]], old, to=DTYPE_NUMBERS[dtype])
