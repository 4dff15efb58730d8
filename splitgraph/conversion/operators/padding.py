"""Pad and CenterCropPad: paddings became pads (2) and an input (11), axes (18) and mode=wrap (19) were added; sizes of
CenterCropPad may be int32.
"""

from __future__ import annotations

from splitgraph.conversion.known_values import Array
from splitgraph.conversion.notation.formula import FLOATS, Formula, Term
from splitgraph.conversion.notation.function_bodies import expand
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary, require_few_axes
from splitgraph.conversion.operators.registry import always, changed, downward, unchanged, upward, value_is_one_of
from splitgraph.model.deferred import np

# Pad ----------------------------------------------------------------------------------------------------------------

unchanged("Pad", 13, 18, 21, 23, 24, 25)
changed("Pad", 2, "paddings was renamed to pads, and Pad-1's document contradicts its own example on their order")


@upward("Pad", 2)
def rename_paddings(node: NodeAtBoundary) -> None:
    """Rename paddings to pads. Both documents say that all beginnings come before all ends. The example of Pad-1, with
    both pads of an axis together, is older than opset 1 (onnx/onnx#261, #268).
    """
    node.require_types()
    paddings = node.known_value("paddings")
    node.drop("paddings", why=f"it is called pads {node.side}")
    node.set("pads", list(paddings), "the new name of paddings")


@downward("Pad", 2)
def rename_pads(node: NodeAtBoundary) -> None:
    """Rename pads to paddings. Pad-1 does not say that negative pads remove elements."""
    node.require_types()
    pads = node.known_value("pads")
    if min(pads, default=0) < 0:
        raise Inexact("only from it on negative pads remove elements")
    node.drop("pads", why=f"it is called paddings {node.side}")
    node.set("paddings", list(pads), "the new name of pads")


changed("Pad", 11, "the attributes pads and value became inputs")


@upward("Pad", 11)
def make_pads_an_input(node: NodeAtBoundary) -> None:
    """Turn pads into a constant, and a value that is not 0 into another constant of the type of the data."""
    node.require_types()
    value = node.known_value_or_default("value")
    node.inputs.append(node.attribute_as_input("pads"))
    node.drop("value", why=f"it is an input {node.side}")
    if value != 0 or np.signbit(value):
        node.inputs.append(node.like_data(value, "value"))


@downward("Pad", 11)
def make_pads_an_attribute(node: NodeAtBoundary) -> None:
    """Turn constant pads into an attribute, and a constant value that float32 holds. Gather the padded tensor where
    they are known only at run time, and for other types than floats.
    """
    pads, value = node.elements(1), node.elements(2) if node.uses_input(2) else np.zeros(1)
    mode = node.known_value_or_default("mode")
    number = 0.0 if mode != "constant" else _as_float32(value)
    if node.known_dtype(0) not in FLOATS or pads is None or number is None:
        _pad_by_gathering(node, mode)
        return
    del node.inputs[1:]
    node.set("pads", [int(count) for count in pads], f"it is an attribute {node.side}")
    node.set("value", number, f"it is an attribute {node.side}")


def _as_float32(value: Array | None) -> float | None:
    """Return the number that a value holds, None unless float32 holds it."""
    if value is None or value.dtype.kind not in "fV":
        return None
    number = float(value.reshape(-1)[0])
    with np.errstate(over="ignore"):
        return number if np.isnan(number) or float(np.float32(number)) == number else None


def _pad_by_gathering(node: NodeAtBoundary, mode: str) -> None:
    """Gather the padded tensor axis by axis. Elements that are not from the data come from a slice of the constant
    value, appended to the data. Needs opset 9, and opset 10 to wrap.
    """
    rank, f = node.known_rank(0), Formula(node)
    axes = [axis % rank for axis in (node.constant_ints(3, "axes") if node.uses_input(3) else range(rank))]
    require_few_axes(len(axes))
    data, pads = f.input(0), f.given(1, "int64")
    shape, sizes = f.shape(data.name), f.sizes(data.name, rank)
    if mode == "constant":
        value = f.input(2).reshape() if node.uses_input(2) else f.number(0, node.known_dtype(0))
    for place, axis in enumerate(axes):
        begin, end, length = pads.take(place), pads.take(place + len(axes)), sizes[axis]
        if begin.elements == 0 and end.elements == 0:
            continue
        count = (length + begin + end).at_least(0)
        places = _source_places(f.counting(count), length, begin, end, mode)
        if mode == "constant":
            before = [shape.take(range(axis))] if axis else []
            behind = [shape.take(range(axis + 1, rank))] if axis + 1 < rank else []
            beyond = value.expanded(f.joined([*before, f.number([1]), *behind]))
            data = f.joined([data, beyond], axis)
        data = data.take(places, axis)
        is_known = shape.elements is not None and count.elements is not None
        shape = f.put(shape, f.number([axis]), count.reshape(1)) if is_known else f.shape(data.name)
    f.give(data)


def _source_places(numbers: Term, length: Term, begin: Term, end: Term, mode: str) -> Term:
    """Compute the place from which each element along a padded axis comes; `length` is the place of the appended slice.
    numbers: count the elements of the padded axis.
    """
    f, places, last = numbers.formula, numbers - begin, length - 1
    if mode == "edge":
        return places.clipped(0, last)
    if mode == "reflect":
        if places.elements is not None:
            # The period is once forwards and once backwards; a single element is its own reflection.
            period = (last * 2).at_least(1)
            places = places % period
            return f.where(places > last, period - places, places)
        places = f.where(places < 0, -places, places)
        beyond = places - last
        return f.where(beyond > 0, last - beyond, places)
    if mode == "wrap":
        # Negative pads shorten the axis first. Where nothing is left there is nothing to divide, but engines check the
        # divisor.
        removed = begin.at_most(0)
        kept = length + removed + end.at_most(0)
        if kept.elements is not None and kept.elements < 1 and max(int(pad.elements or 0) for pad in (begin, end)) > 0:
            raise Inexact("negative pads remove all, and nothing is left that could be wrapped around")
        return (numbers - (begin - removed)) % kept.at_least(1) - removed
    return f.where(places > last, length, f.where(places < 0, length, places))


@downward("Pad", 18)
def pad_all_axes(node: NodeAtBoundary) -> None:
    """Add pads of 0 for the axes that the node does not name. Below 18 there are pads for all axes."""
    node.require_types()
    rank = node.known_rank(0)
    f = Formula(node)
    axes = f.given(3).cast("int64").from_front(rank)
    none, places = f.number([0] * 2 * rank), f.joined([axes, axes + rank])
    node.inputs[1] = f.put(none, places, f.given(1, "int64")).name
    del node.inputs[3:]


changed("Pad", 19, "mode=wrap was added", up=always, down=value_is_one_of("mode", "constant", "reflect", "edge"))


@downward("Pad", 19)
def wrap_by_gathering(node: NodeAtBoundary) -> None:
    """Gather each axis at the indices from -begin to length + end, modulo its length.

    The document does not say whether elements that negative pads remove come back at the other end. In onnxruntime they
    do not, and here neither.
    """
    if node.known_value_or_default("mode") != "wrap":
        node.require_types()
        raise Inexact("its mode is unknown")
    _pad_by_gathering(node, "wrap")


# CenterCropPad ------------------------------------------------------------------------------------------------------


@downward("CenterCropPad", 18)
def cast_sizes_to_int64(node: NodeAtBoundary) -> None:
    """Cast sizes of int32: the function body computes with the sizes and the shape of the data, which is int64."""
    if node.known_dtype(1) == "int64":
        expand(node)
        return
    node.dialect = node.upper.since_version
    node.inputs[1] = Formula(node).input(1).cast("int64").name
