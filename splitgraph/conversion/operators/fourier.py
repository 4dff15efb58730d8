"""DFT, STFT and MelWeightMatrix: the axis of DFT became an input (20), and all are written with older operators below
their first opset.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from splitgraph.conversion.operators.predicates import RANK_HINT
from splitgraph.conversion.operators.registry import changed, downward, edited, upward
from splitgraph.conversion.writing.formula import Formula, Term
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.reshaping import replace_by_reshape, reshape
from splitgraph.conversion.writing.shape_nodes import has_no_zero, replace_by_cast, wide_float, widened
from splitgraph.deferred import np

# Larger matrices are computed at run time, from the sines and cosines of one turn.
_MOST_ELEMENTS = 2**16


@dataclass(frozen=True, slots=True)
class _Transform:
    """A transform along the second of three dimensions.

    dtype: to compute in. inverse, half: with onesided, the forward transform gives the first half of the frequencies;
    the inverse one takes that half and gives real numbers. length: of the whole transform. taken, given: the number of
    elements of the signal (or of the spectrum) that count, and the number of elements of the result.
    """

    formula: Formula
    dtype: str
    inverse: bool
    half: bool
    length: Term
    taken: Term
    given: Term

    def matrices(self) -> tuple[Term, Term]:
        """Gives the matrices for real and imaginary parts: the cosines, and the sines with the sign of the
        direction.
        """
        formula = self.formula
        rows, columns = (formula.counting(count) for count in (self.given, self.taken))
        known = [places.elements.size for places in (rows, columns) if places.elements is not None]
        if len(known) == 2 and math.prod(known) > _MOST_ELEMENTS:
            rows = formula.held(rows.name, "int64")
        turns = rows.reshape(-1, 1) * columns.reshape(1, -1)
        # The remainder keeps the angles small, and exact.
        place = formula.apply("Mod", np.mod, [turns, self.length.reshape(1)])
        angles = formula.counting(self.length).cast("float64") * (2 * np.pi) / self.length.cast("float64")
        tables = [formula.apply("Cos", np.cos, [angles]), formula.apply("Sin", np.sin, [angles])]
        if not self.inverse:
            tables[1] = tables[1] * -1.0
        else:
            tables = [table / self.length.cast("float64") for table in tables]
        cosines, sines = (formula.gather(table.cast(self.dtype), place, 0) for table in tables)
        if not (self.inverse and self.half):
            return cosines, sines
        # Every frequency, except 0 and half of the length, also stands for its mirror image.
        doubled = (columns > 0) & (columns * 2 < self.length)
        weights = doubled.cast(self.dtype) + 1.0
        return cosines * weights, sines * weights


# DFT ----------------------------------------------------------------------------------------------------------------


@downward("DFT", 17)
def transform_by_matrices(node: NodeAtBoundary) -> None:
    """Multiplies the signal with a matrix of cosines and one of sines, the sum that the document gives. Missing
    elements count as 0 and are omitted; excess elements are cut off.
    """
    dtype, rank = node.known_dtype(), node.known_rank()
    parts = (node.input_type(0).shape or (None,))[-1]
    if parts not in (1, 2):
        raise Inexact("whether the signal is real or complex is not known", "declare the shape of the input")
    inverse, half = bool(node.known_value_or_default("inverse")), bool(node.known_value_or_default("onesided"))
    if half and not inverse and parts == 2:
        raise Inexact("half of a transform is for real input only")
    axis, formula = node.known_value_or_default("axis") % rank, Formula(node)
    sizes = formula.sizes(node.inputs[0], rank)
    room, length = sizes[axis], (sizes[axis] - 1) * 2 if inverse and half else sizes[axis]
    if node.uses_input(1):
        length = _number(node, formula, 1, "int64")
    if length.elements is not None and length.elements <= 0:
        raise Inexact("it has no length, as has the inverse of half a transform of one element")
    bins = length // 2 + 1
    taken = room.at_most(bins if inverse and half else length) if node.uses_input(1) else room
    given = bins if half and not inverse else length
    wide = wide_float(dtype)
    transform = _Transform(formula, wide, inverse, half, length, taken, given)
    before, behind = formula.product(sizes[:axis]), formula.product(sizes[axis + 1 : -1])
    data = widened(node, node.inputs[0], dtype, wide)
    three = formula.vector([before, room, behind])
    dense = has_no_zero(node, node.inputs[0])
    signals = []
    for part in range(parts):
        signal = data
        if parts == 2:
            signal = node.write("Gather", [data, node.constant([part], "part")], "part", axis=rank - 1)
        signal = _reshaped(node, signal, three, dense)
        if taken is not room:
            bounds = [formula.vector([bound]).name for bound in (0, taken, 1)]
            signal = node.write("Slice", [signal, *bounds], "taken")
        signals.append(signal)
    results = _multiply_by_matrices(node, *transform.matrices(), signals, real_only=inverse and half)
    shape = formula.vector([*sizes[:axis], given, *sizes[axis + 1 : -1], 1])
    shaped = [_reshaped(node, result, shape, dense) for result in results]
    whole = node.write("Concat", shaped, "whole", axis=rank - 1)
    replace_by_cast(node, whole, wide, dtype)


def _reshaped(node: NodeAtBoundary, data: str, shape: Term, dense: bool) -> str:
    """Emits a Reshape to a shape that the formula gives."""
    return reshape(node, data, shape.name, "reshaped", dense=dense)


def _multiply_by_matrices(
    node: NodeAtBoundary, cosines: Term, sines: Term, signals: list[str], *, real_only: bool
) -> list[str]:
    """Gives the real and the imaginary part of the products; real_only: the real part only."""

    def times(matrix: Term, signal: str) -> str:
        return node.write("MatMul", [matrix.name, signal], "product")

    real, *imaginary = signals
    result = [times(cosines, real), *([] if real_only else [times(sines, real)])]
    if imaginary:
        result[0] = node.write("Sub", [result[0], times(sines, imaginary[0])], "real")
        if not real_only:
            result[1] = node.write("Add", [result[1], times(cosines, imaginary[0])], "imaginary")
    return result


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
    """Turns the attribute axis, 1 when absent, into a constant. The default of the input is another one: the last but
    one.
    """
    node.require_types()
    node.inputs.extend([""] * (2 - len(node.inputs)))
    has = node.has("axis")
    node.inputs.append(node.attribute_as_input("axis") if has else node.constant(1, "axis"))


@downward("DFT", 20)
def make_axis_an_attribute(node: NodeAtBoundary) -> None:
    """Turns a constant axis into an attribute; the default of the input becomes -2.

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
    """Transforms along an axis that is known only at run time."""
    data, length, axis_input = node.inputs
    rank, formula = node.known_rank(), Formula(node)
    modes = {name: node.known_value(name, 0) for name in ("inverse", "onesided")}
    sizes, places = formula.sizes(data, rank), formula.number(range(rank))
    axis = formula.given(axis_input, "int64").reshape(1)
    axis = formula.where(axis < 0, axis + rank, axis)
    signal, is_axis = formula.vector([*sizes[:-1], 1]), places.equals(axis)
    sides = [formula.where(side, signal, formula.number([1])) for side in (places < axis, is_axis, places > axis)]
    folds = [node.write("ReduceProd", [side.name], "size", keepdims=1) for side in sides]
    four = node.write("Concat", [*folds, formula.vector(sizes[-1:]).name], "folded_shape", axis=0)
    folded = reshape(node, data, four, "folded", dense=has_no_zero(node, data))
    found = node.write("DFT", [folded, length] if length else [folded], "found", axis=1, **modes)
    found_shape = formula.held(node.write("Shape", [found], "found_shape"), "int64")
    shape = formula.where(is_axis, formula.element(found_shape, 1), formula.vector(sizes))
    shape = formula.where(places.equals(rank - 1), formula.element(found_shape, 3), shape)
    node.reasons["axis"] = f"the axis is an attribute {node.side}, and known only at run time"
    replace_by_reshape(node, found, shape.name, dense=False)


# STFT ---------------------------------------------------------------------------------------------------------------


@downward("STFT", 17)
def transform_frames(node: NodeAtBoundary) -> None:
    """Gathers the frames, multiplies them with the window, and transforms them by DFT."""
    node.dialect = 17
    signal, shape = node.inputs[0], node.input_type(0).shape
    is_flat = shape is not None and len(shape) == 2
    if is_flat:
        signal = node.write("Unsqueeze", [signal, node.constant([2], "axis")], "signal")
    onesided = node.known_value_or_default("onesided")
    if onesided and not is_flat and (shape or (None,))[-1] != 1:
        raise Inexact("half of a transform is for real input only")
    formula = Formula(node)
    room = formula.sizes(signal, 3)[1]
    hop = _number(node, formula, 1, "int64")
    if node.uses_input(3):
        length = _number(node, formula, 3, "int64")
    else:
        length = formula.sizes(node.inputs[2], 1)[0] if node.uses_input(2) else room
    frames = (room - length) // hop + 1
    places = formula.counting(frames).reshape(-1, 1) * hop + formula.counting(length).reshape(1, -1)
    framed = node.write("Gather", [signal, places.name], "frames", axis=1)
    if node.uses_input(2):
        column = node.write("Reshape", [node.inputs[2], node.constant([-1, 1], "column")], "window")
        framed = node.write("Mul", [framed, column], "windowed")
    node.replace("DFT", [framed], axis=2, onesided=onesided)


# MelWeightMatrix ----------------------------------------------------------------------------------------------------


@downward("MelWeightMatrix", 17)
def write_triangles(node: NodeAtBoundary) -> None:
    """Computes the edges of the triangles, whole numbers of frequencies, in float64. Each column rises from one edge to
    the next, where it is 1, and falls to the edge after that.
    """
    formula = Formula(node)
    bands, length, rate = (_number(node, formula, index, "int64") for index in range(3))
    low, high = (_number(node, formula, index, "float64") for index in (3, 4))
    low, high = (formula.apply("Log", np.log, [hertz / 700.0 + 1.0]) * (2595 / np.log(10)) for hertz in (low, high))
    between = (high - low) / (bands + 2).cast("float64")
    mel = formula.counting(bands + 2).cast("float64") * between + low
    hertz = (formula.apply("Exp", np.exp, [mel * (np.log(10) / 2595)]) - 1.0) * 700.0
    edges = ((length + 1).cast("float64") * hertz / rate.cast("float64")).floor()
    column = formula.counting(bands)
    start, peak, end = (formula.gather(edges, column + offset, 0).reshape(1, -1) for offset in range(3))
    place = formula.counting(length // 2 + 1).cast("float64").reshape(-1, 1)
    zero, one = formula.number(0.0, "float64"), formula.number(1.0, "float64")
    rises, falls = ~(place < start) & (place < peak), (place > peak) & (place < end)
    weights = formula.where(falls, (end - place) / (end - peak), zero)
    weights = formula.where(rises, (place - start) / (peak - start), weights)
    weights = formula.where(~((place < peak) | (place > peak)), one, weights)
    node.replace("Cast", [weights.name], to=node.known_value_or_default("output_datatype"))


# Helpers of several operators ---------------------------------------------------------------------------------------


def _number(node: NodeAtBoundary, formula: Formula, index: int, dtype: str) -> Term:
    """Gives an input of one element as a scalar."""
    return formula.given(node.inputs[index], node.known_dtype(index)).cast(dtype).reshape()
