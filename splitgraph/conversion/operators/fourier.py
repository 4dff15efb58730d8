"""Fourier transforms: DFT along an axis that is known only at run time; DFT, STFT and
MelWeightMatrix below the opset at which they came to be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.predicates import RANK_HINT
from splitgraph.conversion.operators.registry import changed, downward, exact, upward
from splitgraph.conversion.writing.adapter_context import Inexact, Step
from splitgraph.conversion.writing.formula import Formula, Term
from splitgraph.conversion.writing.reshaping import reshaped
from splitgraph.conversion.writing.shape_nodes import has_no_zero
from splitgraph.deferred import np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

# A matrix of more elements is worked out at run time, from the sines and cosines of one turn.
_MOST_ELEMENTS = 2**16


@downward("DFT", 17)
def transform_by_matrices(step: Step) -> None:
    """The sum that the document gives, as a product with a matrix: of the cosines, and of the sines, of the angles that
    the transform turns by. What is missing of the length counts as 0 and is left out; what is too much is cut off.
    """
    dtype, rank = step.known_dtype(), step.known_rank()
    parts = (step.input_type(0).shape or (None,))[-1]
    if parts not in (1, 2):
        raise Inexact("whether the signal is real or complex is not known", "declare the shape of the input")
    inverse, half = bool(step.known_value("inverse", 0)), bool(step.known_value("onesided", 0))
    if half and not inverse and parts == 2:
        raise Inexact("half of a transform is for real input only")
    axis, formula = step.known_value("axis", 1) % rank, Formula(step)
    sizes = formula.sizes(step.inputs[0], rank)
    room, length = sizes[axis], (sizes[axis] - 1) * 2 if inverse and half else sizes[axis]
    if step.uses_input(1):
        length = _number(step, formula, 1, "int64")
    if length.elements is not None and length.elements <= 0:
        raise Inexact("it has no length, as has the inverse of half a transform of one element")
    bins = length // 2 + 1
    taken = room.at_most(bins if inverse and half else length) if step.uses_input(1) else room
    given = bins if half and not inverse else length
    wide = "float64" if dtype == "float64" else "float32"
    transform = _Transform(formula, wide, inverse, half, length, taken, given)
    before, behind = formula.product(sizes[:axis]), formula.product(sizes[axis + 1 : -1])
    data = step.inputs[0] if dtype == wide else step.emit("Cast", [step.inputs[0]], "wide", to=DTYPE_NUMBERS[wide])
    three = formula.vector([before, room, behind])
    dense = has_no_zero(step, step.inputs[0])
    signals = []
    for part in range(parts):
        signal = data
        if parts == 2:
            signal = step.emit("Gather", [data, step.constant([part], "part")], "part", axis=rank - 1)
        signal = _reshaped(step, signal, three, dense)
        if taken is not room:
            bounds = [formula.vector([bound]).name for bound in (0, taken, 1)]
            signal = step.emit("Slice", [signal, *bounds], "taken")
        signals.append(signal)
    results = _products(step, *transform.matrices(), signals, real_only=inverse and half)
    shape = formula.vector([*sizes[:axis], given, *sizes[axis + 1 : -1], 1])
    shaped = [_reshaped(step, result, shape, dense) for result in results]
    whole = step.emit("Concat", shaped, "whole", axis=rank - 1)
    step.replace("Cast", [whole], to=DTYPE_NUMBERS[dtype]) if dtype != wide else step.replace("Identity", [whole])


def _products(step: Step, cosines: Term, sines: Term, signals: list[str], *, real_only: bool) -> list[str]:
    """The real and the imaginary part of the products, or the real one."""

    def times(matrix: Term, signal: str) -> str:
        return step.emit("MatMul", [matrix.name, signal], "product")

    real, *imaginary = signals
    result = [times(cosines, real), *([] if real_only else [times(sines, real)])]
    if imaginary:
        result[0] = step.emit("Sub", [result[0], times(sines, imaginary[0])], "real")
        if not real_only:
            result[1] = step.emit("Add", [result[1], times(cosines, imaginary[0])], "imaginary")
    return result


def _reshaped(step: Step, data: str, shape: Term, dense: bool) -> str:
    operator, inputs, attributes = reshaped(step, data, shape.name, dense=dense)
    return step.emit(operator, inputs, "reshaped", **attributes)


changed(
    "DFT",
    20,
    "the attribute axis became an input, and the default axis changed from 1 to the last but one",
    hint=RANK_HINT,
)


@exact("DFT", 20)
def dft_axis(c: Crossing) -> bool:
    """DFT 17|20: the axis is the last but one, the default from opset 20 on; needs the rank."""
    rank = c.rank(0)
    if rank is None or rank < 3:
        return False
    if not c.upward:
        if c.uses_input(2):
            return False
        c.set("axis", rank - 2, "below opset 20 the default axis is 1, not the last but one")
        return True
    if c.value("axis", 1) not in (rank - 2, -2):
        return False
    c.drop("axis", why="it is the default axis from opset 20 on")
    return True


@upward("DFT", 20)
def transform_axis_as_input(step: Step) -> None:
    """The attribute axis, 1 when absent, becomes a constant; the default of the input is the last but one."""
    step.require_types()
    step.inputs.extend([""] * (2 - len(step.inputs)))
    has = step.has("axis")
    step.inputs.append(step.attribute_as_input("axis") if has else step.constant(1, "axis"))


@downward("DFT", 20)
def transform_axis_as_attribute(step: Step) -> None:
    """A constant axis becomes an attribute; the default, the last but one, is -2 there. Along an axis that is known
    only at run time the signal is transformed in four dimensions, of which the axis is the second: those before it and
    those behind it are made one each.
    """
    step.require_types()
    if step.uses_input(2) and step.elements(2) is None:
        _transform_folded(step)
        return
    axis = step.constant_ints(2, "axis")[0] if step.uses_input(2) else -2
    del step.inputs[2:]
    while step.inputs[-1] == "":
        step.inputs.pop()
    step.set("axis", axis, f"it is an attribute {step.side}")


def _transform_folded(step: Step) -> None:
    data, length, axis_input = step.inputs
    rank, formula = step.known_rank(), Formula(step)
    modes = {name: step.known_value(name, 0) for name in ("inverse", "onesided")}
    sizes, places = formula.sizes(data, rank), formula.number(range(rank))
    axis = formula.given(axis_input, "int64").reshape(1)
    axis = formula.where(axis < 0, axis + rank, axis)
    signal, is_axis = formula.vector([*sizes[:-1], 1]), places.equals(axis)
    sides = [formula.where(side, signal, formula.number([1])) for side in (places < axis, is_axis, places > axis)]
    folds = [step.emit("ReduceProd", [side.name], "size", keepdims=1) for side in sides]
    four = step.emit("Concat", [*folds, formula.vector(sizes[-1:]).name], "folded_shape", axis=0)
    operator, inputs, attributes = reshaped(step, data, four, dense=has_no_zero(step, data))
    folded = step.emit(operator, inputs, "folded", **attributes)
    found = step.emit("DFT", [folded, length] if length else [folded], "found", axis=1, **modes)
    found_shape = formula.held(step.emit("Shape", [found], "found_shape"), "int64")
    shape = formula.where(is_axis, formula.element(found_shape, 1), formula.vector(sizes))
    shape = formula.where(places.equals(rank - 1), formula.element(found_shape, 3), shape)
    operator, inputs, attributes = reshaped(step, found, shape.name, dense=False)
    step.reasons["axis"] = f"the axis is an attribute {step.side}, and known only at run time"
    step.replace(operator, inputs, **attributes)


@dataclass(frozen=True, slots=True)
class _Transform:
    """A transform along the second of three dimensions.

    dtype: to compute in. inverse, half: with onesided, the forward transform gives the first half of the frequencies,
    and the inverse one takes it and gives real numbers. length: of the whole transform. taken, given: how many
    elements of the signal, or of the spectrum, count, and how many there are afterwards.
    """

    formula: Formula
    dtype: str
    inverse: bool
    half: bool
    length: Term
    taken: Term
    given: Term

    def matrices(self) -> tuple[Term, Term]:
        """What real and imaginary parts are multiplied with: the cosines, and the sines as they turn."""
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
        # Every frequency but 0 and half of the length stands for its mirror image, too.
        doubled = (columns > 0) & (columns * 2 < self.length)
        weights = doubled.cast(self.dtype) + 1.0
        return cosines * weights, sines * weights


@downward("STFT", 17)
def transform_frames(step: Step) -> None:
    """The frames are gathered, multiplied with the window, and transformed by DFT."""
    step.dialect = 17
    signal, shape = step.inputs[0], step.input_type(0).shape
    is_flat = shape is not None and len(shape) == 2
    if is_flat:
        signal = step.emit("Unsqueeze", [signal, step.constant([2], "axis")], "signal")
    onesided = step.known_value("onesided", 1)
    if onesided and not is_flat and (shape or (None,))[-1] != 1:
        raise Inexact("half of a transform is for real input only")
    formula = Formula(step)
    room = formula.sizes(signal, 3)[1]
    hop = _number(step, formula, 1, "int64")
    if step.uses_input(3):
        length = _number(step, formula, 3, "int64")
    else:
        length = formula.sizes(step.inputs[2], 1)[0] if step.uses_input(2) else room
    frames = (room - length) // hop + 1
    places = formula.counting(frames).reshape(-1, 1) * hop + formula.counting(length).reshape(1, -1)
    framed = step.emit("Gather", [signal, places.name], "frames", axis=1)
    if step.uses_input(2):
        column = step.emit("Reshape", [step.inputs[2], step.constant([-1, 1], "column")], "window")
        framed = step.emit("Mul", [framed, column], "windowed")
    step.replace("DFT", [framed], axis=2, onesided=onesided)


@downward("MelWeightMatrix", 17)
def triangles_written_out(step: Step) -> None:
    """The edges of the triangles, whole numbers of frequencies, are found in float64; each column rises from one to the
    next, where it is 1, and falls to the one after that.
    """
    formula = Formula(step)
    bands, length, rate = (_number(step, formula, index, "int64") for index in range(3))
    low, high = (_number(step, formula, index, "float64") for index in (3, 4))
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
    step.replace("Cast", [weights.name], to=step.known_value("output_datatype", TensorProto.FLOAT))


def _number(step: Step, formula: Formula, index: int, dtype: str) -> Term:
    """An input of one element as a scalar."""
    return formula.given(step.inputs[index], step.known_dtype(index)).cast(dtype).reshape()
