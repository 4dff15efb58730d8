"""DFT, STFT and MelWeightMatrix: the axis of DFT became an input (20), and all are written with older operators below
their first opset.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from splitgraph.conversion.notation.formula import Formula, Term, has_no_zero, wide_float
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.registry import RANK_HINT, changed, downward, edited, upward
from splitgraph.model.deferred import np
from splitgraph.model.value_type import DTYPE_NAMES

# Larger matrices are computed at run time, from the sines and cosines of one turn.
_MOST_ELEMENTS = 2**16


@dataclass(frozen=True, slots=True)
class _Transform:
    """A transform along the second of three dimensions.

    dtype: to compute in. inverse, half: with onesided, the forward transform gives the first half of the frequencies;
    the inverse one takes that half and gives real numbers. length: of the whole transform. taken, given: the number of
    elements of the signal (or of the spectrum) that count, and the number of elements of the result.
    """

    dtype: str
    inverse: bool
    half: bool
    length: Term
    taken: Term
    given: Term

    def matrices(self) -> tuple[Term, Term]:
        """Return the matrices for real and imaginary parts: the cosines, and the sines with the sign of the
        direction.
        """
        f = self.length.formula
        rows, columns = (f.counting(count) for count in (self.given, self.taken))
        known = [places.elements.size for places in (rows, columns) if places.elements is not None]
        if len(known) == 2 and math.prod(known) > _MOST_ELEMENTS:
            rows = f.value(rows.name, "int64")
        # The remainder keeps the angles small, and exact.
        place = rows.reshape(-1, 1) * columns.reshape(1, -1) % self.length.reshape(1)
        angles = f.counting(self.length).cast("float64") * (2 * np.pi) / self.length.cast("float64")
        tables = [f.apply("Cos", angles), f.apply("Sin", angles)]
        if not self.inverse:
            tables[1] = tables[1] * -1.0
        else:
            tables = [table / self.length.cast("float64") for table in tables]
        cosines, sines = (table.cast(self.dtype).take(place) for table in tables)
        if not (self.inverse and self.half):
            return cosines, sines
        # Every frequency, except 0 and half of the length, also stands for its mirror image.
        doubled = (columns > 0) & (columns * 2 < self.length)
        weights = doubled.cast(self.dtype) + 1.0
        return cosines * weights, sines * weights

    def apply(self, real: Term, imaginary: Term | None) -> list[Term]:
        """Multiply a signal with the matrices. Return the real part, and the imaginary one unless that is 0."""
        cosines, sines = self.matrices()
        results = [cosines @ real]
        if not (self.inverse and self.half):
            results.append(sines @ real)
        if imaginary is not None:
            results[0] = results[0] - (sines @ imaginary)
            results[1:] = [result + (cosines @ imaginary) for result in results[1:]]
        return results


# DFT ----------------------------------------------------------------------------------------------------------------


@downward("DFT", 17)
def transform_by_matrices(node: NodeAtBoundary) -> None:
    """Multiply the signal with a matrix of cosines and one of sines, the sum that the document gives. Missing elements
    count as 0 and are omitted; excess elements are cut off.
    """
    dtype, rank = node.known_dtype(), node.known_rank()
    parts = (node.input_type(0).shape or (None,))[-1]
    if parts not in (1, 2):
        raise Inexact("whether the signal is real or complex is not known", "declare the shape of the input")
    inverse, half = bool(node.known_value_or_default("inverse")), bool(node.known_value_or_default("onesided"))
    if half and not inverse and parts == 2:
        raise Inexact("half of a transform is for real input only")
    axis, f = node.known_value_or_default("axis") % rank, Formula(node)
    sizes = f.sizes(node.inputs[0], rank)
    room, length = sizes[axis], (sizes[axis] - 1) * 2 if inverse and half else sizes[axis]
    if node.uses_input(1):
        length = _number(node, f, 1, "int64")
    if length.elements is not None and length.elements <= 0:
        raise Inexact("it has no length, as has the inverse of half a transform of one element")
    bins = length / 2 + 1
    taken = room.at_most(bins if inverse and half else length) if node.uses_input(1) else room
    given = bins if half and not inverse else length
    transform = _Transform(wide_float(dtype), inverse, half, length, taken, given)
    three = f.vector([f.product(sizes[:axis]), room, f.product(sizes[axis + 1 : -1])])
    data, dense = f.input(0).cast(transform.dtype), has_no_zero(node, node.inputs[0])
    signals = [data] if parts == 1 else [data.take([part], rank - 1) for part in range(2)]
    signals = [signal.with_shape(three, dense=dense) for signal in signals]
    if taken is not room:
        signals = [signal.sliced(0, taken.reshape(1), 1) for signal in signals]
    shape = f.vector([*sizes[:axis], given, *sizes[axis + 1 : -1], 1])
    results = transform.apply(signals[0], signals[1] if parts == 2 else None)
    f.give(f.joined([result.with_shape(shape, dense=dense) for result in results], rank - 1).cast(dtype))


changed(
    "DFT",
    20,
    "the attribute axis became an input, and the default axis changed from 1 to the last but one",
    hint=RANK_HINT,
)


@edited("DFT", 20)
def axis_is_last_but_one(node: NodeAtBoundary) -> None:
    """Keep a node when the axis is the last but one, the default from 20 on. The rank must be known."""
    rank = node.rank(0)
    if rank is None or rank < 3:
        raise Inexact
    if not node.upward:
        if node.uses_input(2):
            raise Inexact
        node.set("axis", rank - 2, "below opset 20 the default axis is 1, not the last but one")
        return
    if node.value("axis", 1) not in (rank - 2, -2):
        raise Inexact
    node.drop("axis", why="it is the default axis from opset 20 on")


@upward("DFT", 20)
def make_axis_an_input(node: NodeAtBoundary) -> None:
    """Turn the attribute axis, 1 when absent, into a constant. The default of the input is another one: the last but
    one.
    """
    node.require_types()
    node.inputs.extend([""] * (2 - len(node.inputs)))
    has = node.has("axis")
    node.inputs.append(node.attribute_as_input("axis") if has else node.constant(1, "axis"))


@downward("DFT", 20)
def make_axis_an_attribute(node: NodeAtBoundary) -> None:
    """Turn a constant axis into an attribute; the default of the input becomes -2.

    An axis that is known only at run time: the signal is reshaped to four dimensions, the second of which is the axis,
    the first those before it, and the third those behind it.
    """
    node.require_types()
    if node.uses_input(2) and node.elements(2) is None:
        _transform_in_four_dimensions(node)
        return
    axis = node.constant_ints(2, "axis")[0] if node.uses_input(2) else -2
    del node.inputs[2:]
    while node.inputs[-1] == "":
        node.inputs.pop()
    node.set("axis", axis, f"it is an attribute {node.side}")


def _transform_in_four_dimensions(node: NodeAtBoundary) -> None:
    """Transform along an axis that is known only at run time."""
    rank, f = node.known_rank(), Formula(node)
    modes = {name: node.known_value(name, 0) for name in ("inverse", "onesided")}
    sizes, places = f.sizes(node.inputs[0], rank), f.counting(rank)
    axis = f.given(2, "int64").reshape(1).from_front(rank)
    signal, is_axis = f.vector([*sizes[:-1], 1]), places.equals(axis)
    sides = [f.where(side, signal, f.number([1])) for side in (places < axis, is_axis, places > axis)]
    four = f.joined([*(f.apply("ReduceProd", side, keepdims=1) for side in sides), f.vector(sizes[-1:])])
    folded = f.input(0).with_shape(four, dense=has_no_zero(node, node.inputs[0]))
    length = [f.input(1)] if node.uses_input(1) else []
    transformed = f.apply("DFT", folded, *length, axis=1, **modes)
    transformed_shape = f.shape(transformed.name)
    shape = f.where(is_axis, transformed_shape.take(1), f.vector(sizes))
    shape = f.where(places.equals(rank - 1), transformed_shape.take(3), shape)
    node.reasons["axis"] = f"the axis is an attribute {node.side}, and known only at run time"
    f.give(transformed.with_shape(shape, dense=False))


# STFT ---------------------------------------------------------------------------------------------------------------


@downward("STFT", 17)
def transform_frames(node: NodeAtBoundary) -> None:
    """Gather the frames, multiply them with the window, and transform them by DFT."""
    node.dialect = 17
    f, shape = Formula(node), node.input_type(0).shape
    is_flat = shape is not None and len(shape) == 2
    onesided = node.known_value_or_default("onesided")
    if onesided and not is_flat and (shape or (None,))[-1] != 1:
        raise Inexact("half of a transform is for real input only")
    signal = f.input(0).unsqueezed(2) if is_flat else f.input(0)
    room = f.sizes(node.inputs[0], 3)[1]
    hop = _number(node, f, 1, "int64")
    if node.uses_input(3):
        length = _number(node, f, 3, "int64")
    else:
        length = f.sizes(node.inputs[2], 1)[0] if node.uses_input(2) else room
    frames = (room - length) / hop + 1
    framed = signal.take(f.counting(frames).reshape(-1, 1) * hop + f.counting(length).reshape(1, -1), 1)
    if node.uses_input(2):
        framed = framed * f.input(2).reshape(-1, 1)
    f.give(f.apply("DFT", framed, axis=2, onesided=onesided))


# MelWeightMatrix ----------------------------------------------------------------------------------------------------


@downward("MelWeightMatrix", 17)
def write_triangles(node: NodeAtBoundary) -> None:
    """Compute the edges of the triangles, whole numbers of frequencies, in float64. Each column rises from one edge to
    the next, where it is 1, and falls to the edge after that.
    """
    f = Formula(node)
    bands, length, rate = (_number(node, f, index, "int64") for index in range(3))
    low, high = (_number(node, f, index, "float64") for index in (3, 4))
    low, high = (f.apply("Log", hertz / 700.0 + 1.0) * (2595 / np.log(10)) for hertz in (low, high))
    between = (high - low) / (bands + 2).cast("float64")
    mel = f.counting(bands + 2).cast("float64") * between + low
    hertz = ((mel * (np.log(10) / 2595)).exp() - 1.0) * 700.0
    edges = ((length + 1).cast("float64") * hertz / rate.cast("float64")).floor()
    column = f.counting(bands)
    start, peak, end = (edges.take(column + offset).reshape(1, -1) for offset in range(3))
    place = f.counting(length / 2 + 1).cast("float64").reshape(-1, 1)
    rises, falls = ~(place < start) & (place < peak), (place > peak) & (place < end)
    weights = f.where(falls, (end - place) / (end - peak), 0)
    weights = f.where(rises, (place - start) / (peak - start), weights)
    weights = f.where(~((place < peak) | (place > peak)), 1, weights)
    f.give(weights.cast(DTYPE_NAMES[node.known_value_or_default("output_datatype")]))


# Helpers of several operators ---------------------------------------------------------------------------------------


def _number(node: NodeAtBoundary, f: Formula, index: int, dtype: str) -> Term:
    """Return an input of one element as a scalar."""
    node.known_dtype(index)
    return f.given(index).cast(dtype).reshape()
