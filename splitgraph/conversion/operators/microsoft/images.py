"""Operators of com.microsoft that sample images."""

from __future__ import annotations

from dataclasses import dataclass

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.standard import standard

# From opset 20 on, ai.onnx calls interpolation after its polynomials.
_NEW_NAMES = {"bilinear": "linear", "bicubic": "cubic"}


@standard("GridSample", opset=16, mode="bilinear")
def write_grid_sample(node: NodeAtBoundary) -> None:
    """Keep the node, with the name that the opset has for the mode."""
    mode, opset = node.known_value_or_default("mode"), Formula(node).opset
    if opset >= 20 and mode in _NEW_NAMES:
        node.set("mode", _NEW_NAMES[mode], "its name from opset 20 on")


@dataclass(frozen=True)
class _Coordinates:
    """Coordinates along one axis of the image, for each box: float32. last: the largest of the image."""

    numbers: Term
    last: Term

    def rounded(self, operator: str) -> _Coordinates:
        """Bring the coordinates to whole ones within the image."""
        whole = self.numbers.formula.apply(operator, self.numbers)
        return _Coordinates(whole.clipped(0, self.last), self.last)

    def moved(self, distance: float) -> _Coordinates:
        """Add to the coordinates."""
        return _Coordinates(self.numbers + distance, self.last)

    def are_inside(self) -> Term:
        """Tell which coordinates are within the image."""
        return ~((self.numbers < 0) | (self.numbers > self.last))

    def beyond(self, corner: _Coordinates) -> Term:
        """Return the distances from whole coordinates."""
        return self.numbers - corner.numbers


@dataclass(frozen=True)
class _Pixels:
    """The pixels of all images, one after the other, and the number of the image of each box."""

    flat: Term
    images: Term

    def at(self, rows: _Coordinates, columns: _Coordinates) -> Term:
        """Return the pixels at whole coordinates, for each box, row and column."""
        height, width = ((places.last + 1.0).cast("int64") for places in (rows, columns))
        y, x = rows.numbers.cast("int64").unsqueezed(2), columns.numbers.cast("int64").unsqueezed(1)
        return self.flat.take((self.images * height + y) * width + x)


@standard("CropAndResize", mode="bilinear", extrapolation_value=0.0)
def write_crop_and_resize(node: NodeAtBoundary) -> None:
    """Look up the pixels at the points of a grid on each box, the nearest ones, or between four of them. Boxes are in
    normalized coordinates; points outside of the image get a value of their own.
    """
    f, mode = Formula(node), node.known_value_or_default("mode")
    if mode not in ("bilinear", "nearest"):
        raise Inexact(f"the mode {mode!r} is none that onnxruntime runs")
    boxes, sizes = f.input(1).cast("float32"), f.given(3).cast("int64")
    rows, columns = (_points(f, boxes, axis, f.size(0, 2 + axis), sizes.take(axis)) for axis in (0, 1))
    flat = f.input(0).transposed(0, 2, 3, 1).shaped([-1, f.size(0, 1)])
    pixels = _Pixels(flat, f.input(2).cast("int64").reshape(-1, 1, 1))
    if mode == "nearest":
        # Halves are rounded up.
        result = pixels.at(rows.moved(0.5).rounded("Floor"), columns.moved(0.5).rounded("Floor"))
    else:
        result = _between(pixels, rows, columns, node.known_dtype(0))
    inside = rows.are_inside().unsqueezed(2) & columns.are_inside().unsqueezed(1)
    outside = node.known_value_or_default("extrapolation_value")
    f.give(f.where(inside.unsqueezed(3), result, outside).transposed(0, 3, 1, 2))


def _points(f: Formula, boxes: Term, axis: int, size: Term, count: Term) -> _Coordinates:
    """Return the coordinates of the points along an axis, for each box: one point lies in the middle of the box, more
    of them reach from one side to the other.
    """
    last, parts = (size - 1).cast("float32"), count.cast("float32") - 1.0
    begin, end = boxes.sliced(axis, axis + 1, 1), boxes.sliced(axis + 2, axis + 3, 1)
    middle = (begin + end) * last * 0.5
    distance = (end - begin) * last / f.where(parts.equals(0), 1.0, parts)
    spread = begin * last + f.counting(count).cast("float32").reshape(1, -1) * distance
    return _Coordinates(f.where(parts.equals(0), middle, spread), last)


def _between(pixels: _Pixels, rows: _Coordinates, columns: _Coordinates, dtype: str) -> Term:
    """Interpolate between the four pixels around each point."""
    left, right = columns.rounded("Floor"), columns.rounded("Ceil")
    top, bottom = rows.rounded("Floor"), rows.rounded("Ceil")
    down = rows.beyond(top).cast(dtype).unsqueezed(2, 3)
    along = columns.beyond(left).cast(dtype).unsqueezed(1, 3)
    edges = []
    for row in (top, bottom):
        first = pixels.at(row, left)
        edges.append(first + (pixels.at(row, right) - first) * along)
    return edges[0] + (edges[1] - edges[0]) * down
