"""How the operators of onnx hand a size on, seen from the output: to which axis of which input, or to a constant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from splitgraph.conversion.sizes.origins import StepBack
from splitgraph.conversion.sizes.rules import ELEMENTWISE
from splitgraph.dim import Dim
from splitgraph.inference.rules.onnx.elementwise import SAME_TYPE, UNARY

# Outputs of the shape of the first input.
_HANDS_ON = (
    *UNARY,
    *SAME_TYPE,
    "BatchNormalization",
    "Cast",
    "CastLike",
    "Clip",
    "CumSum",
    "Dropout",
    "Hardmax",
    "Identity",
    "InstanceNormalization",
    "IsNaN",
    "LayerNormalization",
    "LogSoftmax",
    "Relu",
    "ScatterElements",
    "ScatterND",
    "Softmax",
    "Trilu",
)


def hand_on(step: StepBack) -> None:
    step.back(0, step.axis)


def broadcast(step: StepBack) -> None:
    rank = step.rank
    found = False
    for position in range(len(step.producer.node.input)):
        shape = step.shape(position)
        axis = step.axis - (rank - len(shape))
        if axis >= 0 and shape[axis] == step.size:
            step.back(position, axis)
            found = True
    if not found:
        raise step.stuck()


def _transpose(step: StepBack) -> None:
    transpose(step, step.producer.attribute("perm"))  # type: ignore[arg-type]


def transpose(step: StepBack, order: Sequence[int] | None) -> None:
    """order: None for the reverse one."""
    step.back(0, order[step.axis] if order else len(step.shape(0)) - 1 - step.axis)


def expand(step: StepBack) -> None:
    data, rank = step.shape(0), step.rank
    axis = step.axis - (rank - len(data))
    if axis >= 0 and data[axis] != 1:
        step.back(0, axis)
    numbers = step.items(1) or ()
    entry = step.axis - (rank - len(numbers))
    if entry >= 0 and numbers[entry] != 1:
        step.state(1, entry, step.dim)


def _constant_of_shape(step: StepBack) -> None:
    step.state(0, step.axis, step.dim)


def range_back(step: StepBack) -> None:
    start, delta = step.numbers(0), step.numbers(2)
    if start is None or delta is None:
        raise step.stuck()
    step.state(1, 0, start[0] + step.dim * delta[0])


def _slice(step: StepBack) -> None:
    cut(step, (1, 2, 4, 3))


def cut(step: StepBack, positions: tuple[int, int, int, int]) -> None:
    """A slice. positions: of starts, ends, steps and axes."""
    starts, ends, steps, axes = map(step.numbers, positions)
    data = step.shape(0)
    if starts is None or ends is None:
        raise step.stuck()
    axes = axes or tuple(range(len(starts)))
    steps = steps or (1,) * len(axes)
    entry = next((at for at, axis in enumerate(axes) if axis % len(data) == step.axis), None)
    if entry is None or data[step.axis] == step.size:
        step.back(0, step.axis)
        return
    if starts[entry] < 0 or steps[entry] != 1:
        raise step.stuck()
    step.state(positions[1], entry, starts[entry] + step.dim)


def _resize(step: StepBack) -> None:
    resize(step, 3, step.producer.attribute("axes"))  # type: ignore[arg-type]


def resize(step: StepBack, position: int, axes: Sequence[int] | None) -> None:
    """position: of the sizes. axes: None for all."""
    where = [axis % step.rank for axis in axes or range(step.rank)]
    if step.axis not in where or not step.items(position):
        raise step.stuck()
    step.state(position, where.index(step.axis), step.dim)


def tile(step: StepBack) -> None:
    data, repeats = step.shape(0), step.numbers(1)
    if repeats is None:
        raise step.stuck()
    if repeats[step.axis] == 1:
        step.back(0, step.axis)
    elif data[step.axis] == 1:
        step.state(1, step.axis, step.dim)
    else:
        raise step.stuck()


def reshape(step: StepBack) -> None:
    """The size stands in the data where as many elements are before and after it."""
    data, out = step.shape(0), step.origins._shape(step.producer.scope.path, step.name)
    if any(isinstance(dim, Dim) for dim in (*data, *out)):
        raise step.stuck()
    left, right = prod(out[: step.axis]), prod(out[step.axis + 1 :])
    for axis, size in enumerate(data):
        before, after = prod(data[:axis]), prod(data[axis + 1 :])
        if left % before or right % after:
            continue
        outer, inner = left // before, right // after
        if outer * step.size * inner == size:
            step.back(0, axis, outer * step.dim * inner)
            return
    raise step.stuck()


def _concat(step: StepBack) -> None:
    join(step, step.producer.attribute("axis", 1))  # type: ignore[arg-type]


def join(step: StepBack, axis: int) -> None:
    """A Concat along the axis."""
    if step.axis == axis % step.rank:
        raise step.stuck()
    for position in range(len(step.producer.node.input)):
        step.back(position, step.axis)


def _gather(step: StepBack) -> None:
    gather(step, step.producer.attribute("axis", 0))  # type: ignore[arg-type]


def gather(step: StepBack, along: int) -> None:
    """The indices' dimensions stand in place of the axis."""
    data, indices = step.shape(0), step.shape(1)
    axis = along % len(data)
    if step.axis < axis:
        step.back(0, step.axis)
    elif step.axis < axis + len(indices):
        step.back(1, step.axis - axis)
    else:
        step.back(0, step.axis - len(indices) + 1)


def _matmul(step: StepBack) -> None:
    multiply(step, transposed=(False, False))


def multiply(step: StepBack, transposed: tuple[bool, bool]) -> None:
    """A product of matrices, some of them transposed."""
    one, other = step.shape(0), step.shape(1)
    if len(one) < 2 or len(other) < 2:
        raise step.stuck()
    if step.axis == step.rank - 1:
        step.back(1, len(other) - (2 if transposed[1] else 1))
    elif step.axis == step.rank - 2:
        step.back(0, len(one) - (1 if transposed[0] else 2))
    else:
        broadcast(step)


def _gemm(step: StepBack) -> None:
    transposed = step.producer.attribute("transA" if step.axis == 0 else "transB", 0)
    step.back(step.axis, step.axis if not transposed else 1 - step.axis)


def _items_alone(step: StepBack) -> None:
    """Each item is computed by itself."""
    if step.axis:
        raise step.stuck()
    step.back(0, 0)


def _recurrent(step: StepBack) -> None:
    """The first output has steps, directions, items, and hidden values; or items first."""
    axes = {0: 0, 1: 1} if step.producer.attribute("layout", 0) else {0: 0, 2: 1}
    if step.name != step.producer.node.output[0] or step.axis not in axes:
        raise step.stuck()
    step.back(0, axes[step.axis])


def _unsqueeze(step: StepBack) -> None:
    unsqueeze(step, step.producer.attribute("axes") or step.numbers(1))  # type: ignore[arg-type]


def unsqueeze(step: StepBack, axes: Sequence[int] | None) -> None:
    """axes: those that are added, None for unknown ones."""
    if axes is None:
        raise step.stuck()
    added = {axis % step.rank for axis in axes}
    step.back(0, step.axis - sum(axis < step.axis for axis in added))


def _squeeze(step: StepBack) -> None:
    squeeze(step, step.producer.attribute("axes") or step.numbers(1))  # type: ignore[arg-type]


def squeeze(step: StepBack, axes: Sequence[int] | None) -> None:
    """axes: those that are removed, None for all of 1."""
    data = step.shape(0)
    gone = (
        {axis for axis, size in enumerate(data) if size == 1} if axes is None else {axis % len(data) for axis in axes}
    )
    step.back(0, [axis for axis in range(len(data)) if axis not in gone][step.axis])


STEPS: Mapping[str, Callable[[StepBack], None]] = {
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Expand": expand,
    "Gather": _gather,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Range": range_back,
    "Reshape": reshape,
    "Resize": _resize,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Tile": tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": broadcast,
    **dict.fromkeys(("AveragePool", "Conv", "ConvTranspose", "GlobalAveragePool", "MaxPool"), _items_alone),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    **dict.fromkeys(ELEMENTWISE, broadcast),
    **dict.fromkeys(_HANDS_ON, hand_on),
}
