"""Old versions of operators that move, select or count elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from .model_cases import ModelCase
from .old_operators import Array, case, floats


def reshaping() -> Iterator[ModelCase]:
    """Attributes that became inputs: shape, axes, split; and Concat's default axis."""
    x = floats(2, 3, 4)
    yield case("0 and -1", 1, "Reshape", [x], x.reshape(2, 12), shape=[0, -1], consumed_inputs=[0])
    yield case("plain", 1, "Reshape", [x], x.reshape(4, 6), shape=[4, 6])
    n = np.arange(6, dtype=np.int64)
    yield case("integers", 5, "Reshape", [n, np.array([3, 2])], n.reshape(3, 2), held=[1])
    one = floats(1, 3, 1, 2)
    yield case("axes", 1, "Squeeze", [one], one.reshape(3, 2), axes=[0, 2])
    yield case("all", 1, "Squeeze", [one], one.reshape(3, 2))
    yield case("axes", 1, "Unsqueeze", [x], x.reshape(1, 2, 3, 1, 4), axes=[0, 3])
    # By position in what comes out, whatever their order.
    yield case("unordered", 1, "Unsqueeze", [x], x.reshape(1, 2, 3, 1, 4), axes=[3, 0])
    yield case("axis 2", 1, "Flatten", [x], x.reshape(6, 4), axis=2)
    yield case("axis 0", 9, "Flatten", [x], x.reshape(1, 24), axis=0)
    yield case("default axis", 1, "Concat", [x, floats(2, 1, 4)], np.concatenate([x, floats(2, 1, 4)], 1))
    yield case("axis 0", 4, "Concat", [x, x], np.concatenate([x, x], 0), axis=0)
    yield case("lengths", 1, "Split", [x], x[:, :1], x[:, 1:], axis=1, split=[1, 2])
    yield case("equal", 2, "Split", [x], x[..., :2], x[..., 2:], axis=2)
    square = floats(1, 8, 2, 3)
    blocks = square.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6)
    yield case("depth first", 1, "DepthToSpace", [square], blocks, blocksize=2)


def repeating() -> Iterator[ModelCase]:
    """Tile along one axis, Pad by other names."""
    x = floats(2, 3)
    tiles, axis = np.array([3], np.float32), np.array([1], np.float32)
    yield case("one axis", 1, "Tile", [x, tiles, axis], np.tile(x, (1, 3)), held=[1, 2])
    yield case("first axis", 1, "Tile", [x, tiles, axis * 0], np.tile(x, (3, 1)), held=[1, 2])
    yield case("repeats", 6, "Tile", [x, np.array([2, 1])], np.tile(x, (2, 1)), held=[1])
    y = floats(1, 2, 4, 5)
    # All beginnings first, then all ends.
    widths = [(0, 0), (1, 0), (1, 2), (0, 3)]
    pads = [before for before, _ in widths] + [after for _, after in widths]
    for opset, name in ((1, "paddings"), (2, "pads")):
        filled = np.pad(y, widths, constant_values=1.5)
        yield case("constant", opset, "Pad", [y], filled, value=1.5, **{name: pads})
        yield case("default", opset, "Pad", [y], np.pad(y, widths), **{name: pads})
        inner = [(0, 0), (0, 0), (1, 2), (0, 3)]
        given = {name: [before for before, _ in inner] + [after for _, after in inner]}
        yield case("reflect", opset, "Pad", [y], np.pad(y, inner, mode="reflect"), mode="reflect", **given)
        yield case("edge", opset, "Pad", [y], np.pad(y, inner, mode="edge"), mode="edge", **given)
    yield case(
        "negative", 2, "Pad", [y], np.pad(y, [(0, 0), (0, 0), (0, 0), (0, 1)])[:, :, 1:], pads=[0, 0, -1, 0, 0, 0, 0, 1]
    )


def selecting() -> Iterator[ModelCase]:
    """Slice, TopK, Scatter, OneHot and their like."""
    x = floats(4, 5, 6)
    yield case("no axes", 1, "Slice", [x], x[1:3, :4], starts=[1, 0], ends=[3, 4])
    yield case("negative", 1, "Slice", [x], x[:, -3:-1], starts=[-3], ends=[-1], axes=[1])
    yield case("beyond", 1, "Slice", [x], x[..., 2:], starts=[2], ends=[2**31 - 1], axes=[2])
    yield case("far beyond", 1, "Slice", [x], x[:, 0:], starts=[-1000], ends=[2**63 - 1], axes=[1])
    yield case("empty", 1, "Slice", [x], x[4:], starts=[7], ends=[9], axes=[0])
    yield case("unordered", 1, "Slice", [x], x[1:2, :, 3:5], starts=[3, 1], ends=[5, 2], axes=[2, 0])
    n = np.arange(24).reshape(4, 6)
    yield case("integers", 1, "Slice", [n], n[1:, 2:4], starts=[1, 2], ends=[4, 4])
    bounds = [np.array([1, -4]), np.array([3, 1000]), np.array([0, 2])]
    yield case("inputs", 10, "Slice", [x, *bounds], x[1:3, :, -4:], held=[1, 2, 3])
    for axis in (0, 1, -1):
        order = np.argsort(-x, axis=axis, kind="stable")
        picked = np.take(order, range(3), axis=axis)
        values = np.take_along_axis(x, picked, axis)
        yield case(f"axis {axis}", 1, "TopK", [x], values, picked, k=3, **({} if axis == -1 else {"axis": axis}))
        yield case(f"axis {axis}", 10, "TopK", [x, np.array([3])], values, picked, held=[1], axis=axis)
    yield case("axis 1", 1, "Gather", [x, np.array([[0, 2], [4, 1]])], np.take(x, [[0, 2], [4, 1]], 1), axis=1)
    indices = np.array([[1, 0, 2], [0, 2, 1]])
    scattered = np.zeros((3, 3), np.float32)
    np.put_along_axis(scattered, indices, floats(2, 3), 0)
    yield case("axis 0", 9, "Scatter", [np.zeros((3, 3), np.float32), indices, floats(2, 3)], scattered)
    columns = np.array([[1, 3]])
    row = floats(1, 5)
    placed = row.copy()
    np.put_along_axis(placed, columns, floats(1, 2), 1)
    yield case("axis 1", 9, "Scatter", [row, columns, floats(1, 2)], placed, axis=1)
    yield case("negative axis", 9, "Scatter", [row, columns, floats(1, 2)], placed, axis=-1)


def one_hot() -> Iterator[ModelCase]:
    """Below 11, an index outside 0 to depth - 1 gives no hot value, a negative one as well."""
    values = np.array([2.0, 5.0], np.float32)
    for label, given in (("within", [0, 2, 3]), ("outside", [0, 4, 7]), ("negative", [1, -1, -4])):
        indices = np.array(given, np.int64)
        hot = np.where(indices[:, None] == np.arange(4), values[1], values[0]).astype(np.float32)
        # Constant indices must not be negative, says onnx's shape inference.
        if label != "negative":
            yield case(f"{label} held", 9, "OneHot", [indices, np.array([4]), values], hot, held=[0, 1])
        yield case(label, 9, "OneHot", [indices, np.array([4]), values], hot, held=[1, 2])
    grid = np.array([[0, 1], [2, 0]], np.int64)
    hot = np.where(grid[:, None, :] == np.arange(3)[:, None], values[1], values[0]).astype(np.float32)
    yield case("axis 1", 9, "OneHot", [grid, np.array([3]), values], hot, axis=1)


def reducing() -> Iterator[ModelCase]:
    """Axes as an attribute, and none for all."""
    x = floats(2, 3, 4)
    operators = {
        "ReduceSum": np.sum,
        "ReduceMean": np.mean,
        "ReduceMax": np.max,
        "ReduceMin": np.min,
        "ReduceProd": np.prod,
        "ReduceL1": lambda a, **k: np.sum(np.abs(a), **k),
        "ReduceL2": lambda a, **k: np.sqrt(np.sum(a * a, **k)),
        "ReduceSumSquare": lambda a, **k: np.sum(a * a, **k),
        "ReduceLogSumExp": lambda a, **k: np.log(np.sum(np.exp(a), **k)),
    }
    for (op, compute), (axes, keep) in product(operators.items(), [((1,), 1), ((0, 2), 0), (None, 1)]):
        found = np.asarray(compute(x, axis=axes, keepdims=bool(keep)), np.float32)
        given = {} if axes is None else {"axes": axes}
        yield case(f"{axes} keepdims {keep}", 1, op, [x], found, keepdims=keep, rtol=1e-4, **given)
    yield case("negative", 11, "ReduceSum", [x], x.sum(-2), axes=[-2], keepdims=0)
    tied = np.array([[1, 3, 3], [2, 2, 0]], np.float32)
    yield case("ties", 1, "ArgMax", [tied], tied.argmax(1)[:, None], axis=1)
    yield case("ties", 1, "ArgMin", [tied], tied.argmin(0), axis=0, keepdims=0)
    absolute = np.abs(x)
    yield case("axis", 1, "ReduceLogSum", [absolute], np.log(absolute.sum(1)), axes=[1], keepdims=0)


def resizing() -> Iterator[ModelCase]:
    """Below opset 11, coordinates are divided by the scale, and nearest means rounded down where the tensor grows.

    Where it shrinks the document says nothing; onnx 1.5.0's own test of Resize-10 rounds up.
    """
    x = floats(1, 2, 3, 4)
    for label, scales in (("whole", (2, 3)), ("broken", (1.5, 1.25))):
        height, width = scales
        full = [1.0, 1.0, height, width]
        near, line = resized(x, scales, "nearest"), resized(x, scales, "linear")
        given = {"height_scale": float(height), "width_scale": float(width)}
        yield case(f"nearest {label}", 1, "Upsample", [x], near, mode="nearest", **given)
        yield case(f"bilinear {label}", 1, "Upsample", [x], line, mode="bilinear", **given)
        yield case(f"nearest {label}", 7, "Upsample", [x], near, scales=full)
        yield case(f"linear {label}", 7, "Upsample", [x], line, mode="linear", scales=full)
        held = np.array(full, np.float32)
        for opset, op in ((9, "Upsample"), (10, "Resize")):
            yield case(f"nearest {label}", opset, op, [x, held], near, held=[1])
            yield case(f"linear {label}", opset, op, [x, held], line, held=[1], mode="linear")
            yield case(f"nearest {label}, run time", opset, op, [x, held], near)
    for label, scales in (("down", (0.6, 0.6)), ("both ways", (0.6, 2)), ("other ways", (1.5, 0.5))):
        held = np.array([1, 1, *scales], np.float32)
        for mode in ("nearest", "linear"):
            found = resized(x, scales, mode)
            yield case(f"{mode} {label}", 10, "Resize", [x, held], found, held=[1], mode=mode)
            yield case(f"{mode} {label}, run time", 10, "Resize", [x, held], found, mode=mode)


def resized(x: Array, scales: Sequence[float], mode: str) -> Array:
    """The last two dimensions resized, one after the other."""
    for axis, scale in zip((2, 3), scales, strict=True):
        size = x.shape[axis]
        wide = np.float32(scale)
        position = np.arange(int(np.floor(size * wide)), dtype=np.float32) / wide
        below = np.minimum(np.floor(position).astype(np.int64), size - 1)
        if mode == "nearest":
            nearest = below if wide >= 1 else np.minimum(np.ceil(position).astype(np.int64), size - 1)
            x = np.take(x, nearest, axis)
            continue
        above = np.minimum(below + 1, size - 1)
        share = (np.minimum(position, np.float32(size - 1)) - below).astype(np.float32)
        share = share.reshape([-1 if dim == axis else 1 for dim in range(4)])
        x = np.take(x, below, axis) * (1 - share) + np.take(x, above, axis) * share
    return x


def movement_cases() -> list[ModelCase]:
    """All of the cases here."""
    families = (reshaping, repeating, selecting, one_hot, reducing, resizing)
    return [found for family in families for found in family()]
