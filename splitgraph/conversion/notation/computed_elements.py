"""What operators of ONNX give for known elements in a formula: computed at conversion, not by a node at run time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from splitgraph.conversion.known_values import Array
from splitgraph.model.deferred import np
from splitgraph.model.value_type import MAX_WRITTEN

# Up to this number of elements, the model holds a result; beyond, nodes compute it at run time.
_KEPT = 2**16


def _quotient(dividend: Array, divisor: Array) -> Any:
    """Divide as Div does: integers are rounded towards 0."""
    if dividend.dtype.kind not in "iu":
        return np.true_divide(dividend, divisor)
    down = np.floor_divide(dividend, divisor)
    return down + (((dividend < 0) != (divisor < 0)) & (down * divisor != dividend)).astype(down.dtype)


# How NumPy computes known elements: with the same IEEE arithmetic, in the same type, as the operators of ONNX.
_COMPUTED: Mapping[str, str | Callable[..., Any]] = {
    **{name: name.lower() for name in ("Add", "Ceil", "Cos", "Equal", "Exp", "Floor", "Greater", "Less", "Log", "Sin")},
    **{name: f"logical_{name.lower()}" for name in ("And", "Or", "Xor", "Not")},
    "Abs": "abs",
    "Sub": "subtract",
    "Mul": "multiply",
    "Neg": "negative",
    "Round": "rint",
    "Sign": "sign",
    "Max": "maximum",
    "Min": "minimum",
    "Where": "where",
    "Div": _quotient,
    "Concat": lambda *parts, axis: np.concatenate(parts, axis),
    "Gather": lambda data, places, axis=0: np.take(data, places, axis),
    "Mod": lambda dividend, divisor, fmod=0: (np.fmod if fmod else np.mod)(dividend, divisor),
    "Transpose": lambda data, perm: data.transpose(perm),
}


def computed(op_type: str, known: Sequence[Array], dtype: str, attributes: Mapping[str, Any]) -> Array | None:
    """Return the elements that an operator gives; None where a node has to compute them, or where they are too many."""
    compute = _COMPUTED.get(op_type)
    if compute is None or not _is_small(known):
        return None
    # Infinities and NaN may stand in a branch that Where does not choose.
    with np.errstate(all="ignore"):
        function = getattr(np, compute) if isinstance(compute, str) else compute
        result: Array = np.asarray(function(*known, **attributes), dtype=dtype)
    return result if result.size <= max(_KEPT, *(elements.size for elements in known)) else None


def _is_small(known: Sequence[Array]) -> bool:
    """Return True when the result from these elements needs little memory."""
    try:
        return math.prod(np.broadcast_shapes(*(elements.shape for elements in known))) <= MAX_WRITTEN
    except ValueError:
        # The arrays do not broadcast: Concat joins them, or Gather takes from one of them.
        return math.prod(elements.size for elements in known) <= MAX_WRITTEN
