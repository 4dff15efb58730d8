"""Pad and Clip: attributes that became inputs, axes, and padding by wrapping around."""

from __future__ import annotations

import numpy as np

from splitgraph.conversion.adapters.registry import downward, upward
from splitgraph.conversion.shape_nodes import dimension, static_shape, typed
from splitgraph.conversion.step import Inexact, Step
from splitgraph.value_type import DTYPE_NUMBERS

_WIDER = {"int8": 6, "int16": 6, "uint8": 6, "uint16": 6, "uint32": 7}
_GREATEST_FLOAT32 = float(np.finfo(np.float32).max)


@upward("Pad", 2)
def pads_from_paddings(step: Step) -> None:
    """The attribute was renamed. Both documents of it say that all beginnings come before all ends; the example of
    Pad-1, with the two of an axis together, is older than opset 1 (onnx/onnx#261, #268).
    """
    step.require_types()
    paddings = step.known_value("paddings")
    step.drop("paddings", why=f"it is called pads {step.side}")
    step.set("pads", list(paddings), "the new name of paddings")


@downward("Pad", 2)
def paddings_from_pads(step: Step) -> None:
    """The attribute was renamed; Pad-1 does not say that negative pads remove elements."""
    step.require_types()
    pads = step.known_value("pads")
    if min(pads, default=0) < 0:
        raise Inexact("only from it on negative pads remove elements")
    step.drop("pads", why=f"it is called paddings {step.side}")
    step.set("paddings", list(pads), "the new name of pads")


@upward("Pad", 11)
def pads_as_input(step: Step) -> None:
    """pads becomes a constant; value, where it is not 0, another one of the type of the data."""
    step.require_types()
    value = step.known_value("value", 0.0)
    step.inputs.append(step.attribute_as_input("pads"))
    step.drop("value", why=f"it is an input {step.side}")
    if value != 0 or np.signbit(value):
        step.inputs.append(step.like_data(value, "value"))


@downward("Pad", 11)
def pads_as_attribute(step: Step) -> None:
    """A constant pads becomes an attribute; so does a constant value that a float32 holds."""
    step.require_types()
    pads = step.constant_ints(1, "pads")
    value = step.elements(2) if step.uses_input(2) else np.zeros(1)
    if value is None and step.known_value("mode", "constant") == "constant":
        raise Inexact(f"constant_value is an attribute {step.side}, and here it is known only at run time")
    number = 0.0 if value is None else float(value.reshape(-1)[0])
    if not np.isnan(number) and float(np.float32(number)) != number:
        raise Inexact(f"constant_value is a float32 {step.side}, which does not hold {number}")
    del step.inputs[1:]
    step.set("pads", pads, f"it is an attribute {step.side}")
    step.set("value", number, f"it is an attribute {step.side}")


@downward("Pad", 18)
def pads_of_all_axes(step: Step) -> None:
    """Below 18 there are pads for all axes: none for those that are left out."""
    step.require_types()
    axes, rank = step.constant_ints(3, "axes"), step.known_rank(0)
    axes = [axis % rank for axis in axes]
    places = [*axes, *(axis + rank for axis in axes)]
    pads = step.elements(1)
    if pads is not None:
        whole = [0] * 2 * rank
        for place, count in zip(places, pads, strict=True):
            whole[place] = int(count)
        step.inputs[1] = step.constant(whole, "pads")
    else:
        none = step.constant([0] * 2 * rank, "no_pads")
        step.inputs[1] = step.emit("ScatterElements", [none, step.constant(places, "places"), step.inputs[1]], "pads")
    del step.inputs[3:]


@downward("Pad", 19)
def wrapped_by_gathering(step: Step) -> None:
    """Each axis is gathered at the indices from -begin to length + end, modulo its length."""
    step.require_types()
    if step.known_value("mode", "constant") != "wrap":
        raise Inexact("its mode is unknown")
    rank = step.known_rank(0)
    given = step.constant_ints(3, "axes") if step.uses_input(3) else list(range(rank))
    axes = [axis % rank for axis in given]
    pads, sizes = step.elements(1), static_shape(step, step.inputs[0])
    data, shape = step.inputs[0], step.emit("Shape", [step.inputs[0]], "shape")
    if not axes:
        step.replace("Identity", [data])
    for place, axis in enumerate(axes):
        if pads is not None and sizes is not None and sizes[axis] > 0:
            begin, end = int(pads[place]), int(pads[place + len(axes)])
            indices = step.constant(np.arange(-begin, sizes[axis] + end) % sizes[axis], "indices")
        else:
            length = dimension(step, shape, axis, "length")
            begins, ends = (dimension(step, step.inputs[1], at, "pad") for at in (place, place + len(axes)))
            first = step.emit("Neg", [begins], "first")
            past = step.emit("Add", [length, ends], "past")
            row = step.emit("Range", [first, past, step.constant(1, "one")], "row")
            indices = step.emit("Mod", [row, length], "indices")
        if place == len(axes) - 1:
            step.replace("Gather", [data, indices], axis=axis)
        else:
            data = step.emit("Gather", [data, indices], "wrapped", axis=axis)


@upward("Clip", 6)
def clip_by_limits(step: Step) -> None:
    """Below 6 an absent bound is the limit of the type, which is written out; that of float64, no float32, is what
    Clip-11 means without an input.
    """
    step.require_types()
    dtype = step.known_dtype(0)
    bounds = [step.known_value(name) for name in ("min", "max")]
    step.drop("consumed_inputs", "min", "max", why="bounds are written out")
    limit = float(np.finfo(dtype).max)
    if dtype != "float64":
        for name, bound, absent in zip(("min", "max"), bounds, (-limit, limit), strict=True):
            step.set(name, absent if bound is None else bound, "the default is that of float32 from opset 6 on")
        return
    if step.facts.target < 11:
        raise Inexact("the limits of float64 are no float32, which the bounds are", "go to opset 11 or above")
    step.dialect = 11
    names = [
        "" if bound is None else step.constant(bound, name, np.float64)
        for name, bound in zip(("min", "max"), bounds, strict=True)
    ]
    step.replace("Clip", [step.inputs[0], *names])


@upward("Clip", 11)
def bounds_as_inputs(step: Step) -> None:
    """min and max become constants of the type of the data; absent, they are the limits of float32."""
    step.require_types()
    low, high = step.known_value("min", -_GREATEST_FLOAT32), step.known_value("max", _GREATEST_FLOAT32)
    step.drop("min", "max", why=f"it is an input {step.side}")
    step.inputs.extend([step.like_data(low, "min"), step.like_data(high, "max")])


@downward("Clip", 12)
def integers_by_choice(step: Step) -> None:
    """Below 12 Clip takes floating-point numbers only; of integers the bound is chosen where they are beyond it."""
    dtype = step.known_dtype(0)
    if not dtype.startswith(("int", "uint")) or dtype.endswith(("int4", "int2")):
        step.require_types()
        raise Inexact(f"it does not clip {dtype}")
    wider = _WIDER.get(dtype)
    if wider is None:
        _choose(step)
        return
    # Engines compare few types of integers.
    step.inputs[:] = [step.emit("Cast", [name], "as_integer", to=wider) if name else "" for name in step.inputs]
    old = step.redirect(0, "clipped")
    _choose(step)
    step.emit_after("Cast", [step.outputs[0]], old, to=DTYPE_NUMBERS[dtype])


@downward("Clip", 11)
def bounds_as_attributes(step: Step) -> None:
    """Constant bounds that a float32 holds become attributes; absent ones are the limits of the type. Others are chosen
    where the data is beyond them, which no NaN is.
    """
    step.require_types()
    limit = float(np.finfo(step.known_dtype(0)).max)
    values = []
    for index, absent in ((1, -limit), (2, limit)):
        found = step.elements(index) if step.uses_input(index) else np.asarray(absent)
        values.append(None if found is None else float(found.reshape(-1)[0]))
    if all(value is not None and float(np.float32(value)) == value for value in values):
        del step.inputs[1:]
        step.set("min", values[0], f"it is an attribute {step.side}")
        step.set("max", values[1], f"it is an attribute {step.side}")
        return
    dtype = step.known_dtype(0)
    step.inputs.extend([""] * (3 - len(step.inputs)))
    for index, absent in ((1, -limit), (2, limit)):
        step.inputs[index] = step.inputs[index] or step.tensor(typed([absent], dtype), "limit")
    _choose(step)


def _choose(step: Step) -> None:
    """min where the data is less, then max where that is greater; without NaN in the bounds."""
    data, *bounds = step.inputs
    chosen = [(operator, bound) for operator, bound in zip(("Less", "Greater"), bounds, strict=False) if bound]
    for operator, bound in chosen:
        beyond = step.emit(operator, [data, bound], "is_beyond")
        if bound is chosen[-1][1]:
            step.replace("Where", [beyond, bound, data])
        else:
            data = step.emit("Where", [beyond, bound, data], "bounded")
    if not chosen:
        step.replace("Identity", [data])
