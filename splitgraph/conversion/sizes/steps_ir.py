"""Where the sizes of OpenVINO's layers come from: the steps back of ONNX, with attributes and inputs where a layer has
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from splitgraph.conversion.sizes.origins import StepBack
from splitgraph.conversion.sizes.steps import (
    broadcast,
    cut,
    expand,
    gather,
    hand_on,
    join,
    multiply,
    range_back,
    reshape,
    resize,
    squeeze,
    tile,
    transpose,
    unsqueeze,
)
from splitgraph.inference.rules.openvino.aliases import BROADCAST, BROADCAST_LOGIC, KEEP_TYPE, RENAMED

_HANDS_ON = {*KEEP_TYPE.split(), *RENAMED, "Clamp", "Convert", "Identity", "ScatterElementsUpdate", "ScatterNDUpdate"}
_OTHERS = ("Divide", "FakeQuantize", "NotEqual", "PReLU", "Select", "SquaredDifference")
ELEMENTWISE = (*BROADCAST, *BROADCAST_LOGIC, *_OTHERS)
# Attributes of a StridedSlice with which its entries are not its axes, in order.
_RESHAPING = ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask")


def _text(step: StepBack, name: str, default: str) -> str:
    return str(step.producer.attribute(name, default)).strip().lower()


def _is_set(step: StepBack, name: str) -> bool:
    return _text(step, name, "false") in ("true", "1")


def _bits(step: StepBack, name: str) -> Sequence[str]:
    return [bit.strip() for bit in _text(step, name, "").split(",") if bit.strip()]


def _broadcast(step: StepBack) -> None:
    if _text(step, "mode", "numpy") not in ("numpy", "bidirectional"):
        raise step.stuck()
    expand(step)


def _elementwise(step: StepBack) -> None:
    if _text(step, "auto_broadcast", "numpy") == "pdpd":
        raise step.stuck()
    broadcast(step)


def _concat(step: StepBack) -> None:
    join(step, int(_text(step, "axis", "0")))


def _gather(step: StepBack) -> None:
    along = step.numbers(2)
    if not along or _text(step, "batch_dims", "0") != "0":
        raise step.stuck()
    gather(step, along[0])


def _matmul(step: StepBack) -> None:
    multiply(step, (_is_set(step, "transpose_a"), _is_set(step, "transpose_b")))


def _transpose(step: StepBack) -> None:
    order = step.numbers(1)
    if order is None:
        raise step.stuck()
    transpose(step, order or None)


def _unsqueeze(step: StepBack) -> None:
    unsqueeze(step, step.numbers(1))


def _squeeze(step: StepBack) -> None:
    squeeze(step, step.numbers(1) or None)


def _slice(step: StepBack) -> None:
    cut(step, (1, 2, 3, 4))


def _strided_slice(step: StepBack) -> None:
    """Entries are axes, where no mask adds or removes one."""
    starts, ends, entry = step.numbers(1), step.numbers(2), step.axis
    if any("1" in _bits(step, mask) for mask in _RESHAPING):
        raise step.stuck()
    if step.shape(0)[entry] == step.size:
        step.back(0, entry)
        return
    steps = step.numbers(3) if len(step.producer.node.input) > 3 else (1,) * step.rank
    if not starts or not ends or not steps or not entry < min(len(starts), len(ends), len(steps)):
        raise step.stuck()
    start = 0 if "1" in _bits(step, "begin_mask")[entry : entry + 1] else starts[entry]
    if start < 0 or steps[entry] != 1 or "1" in _bits(step, "end_mask")[entry : entry + 1]:
        raise step.stuck()
    step.state(2, entry, start + step.dim)


def _interpolate(step: StepBack) -> None:
    if _text(step, "shape_calculation_mode", "") != "sizes":
        raise step.stuck()
    digits = str(step.producer.attribute("operator_set", "")).removeprefix("opset")
    position = 2 if digits.isdigit() and int(digits) >= 11 else 3
    resize(step, 1, step.numbers(position))


STEPS: Mapping[str, Callable[[StepBack], None]] = {
    "Broadcast": _broadcast,
    "Concat": _concat,
    "Gather": _gather,
    "Interpolate": _interpolate,
    "MatMul": _matmul,
    "Range": range_back,
    "Reshape": reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Tile": tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(_HANDS_ON - {"Einsum"}, hand_on),
}
