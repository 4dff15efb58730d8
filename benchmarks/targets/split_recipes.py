"""Recipes of the forms that have a Split: where the lengths come from, and what is around the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from recipes import SHAPE, Array, Body, Expectation, Recipe, Shape, cut

# Adds to a body what gives the lengths, and tells the name of the tensor.
Source = Callable[[Body, Sequence[int]], str]
AXIS = {"axis": 1}


def initializer(body: Body, lengths: Sequence[int]) -> str:
    """Lengths in an initializer."""
    return body.weight("s", lengths)


def constant_tensor(body: Body, lengths: Sequence[int]) -> str:
    """Lengths in the attribute `value` of a Constant."""
    return body.constant("s", lengths)


def constant_ints(body: Body, lengths: Sequence[int]) -> str:
    """Lengths in the attribute `value_ints` of a Constant."""
    body.node("Constant", [], ["s"], value_ints=lengths)
    return "s"


def behind_identity(body: Body, lengths: Sequence[int]) -> str:
    """Lengths of a Constant that go through an Identity."""
    body.node("Identity", [body.constant("c", lengths)], ["s"])
    return "s"


def behind_cast(body: Body, lengths: Sequence[int]) -> str:
    """Lengths of an int32 initializer that a Cast makes int64."""
    body.node("Cast", [body.weight("c", lengths, "int32")], ["s"], to=7)
    return "s"


def left_empty(body: Body, lengths: Sequence[int]) -> str:
    """An input of the node that is there and has no name."""
    return ""


def graph_input(body: Body, lengths: Sequence[int]) -> str:
    """Lengths that the caller gives."""
    return "s"


def computed(body: Body, lengths: Sequence[int]) -> str:
    """Lengths n // 3 and n - n // 3, where n is the size of axis 1."""
    third = computed_third(body)
    body.node("Sub", ["n", third], ["rest"])
    body.node("Concat", [third, "rest"], ["s"], axis=0)
    return "s"


def computed_third(body: Body) -> str:
    """Adds `n`, the size of axis 1 of x, and gives the name of a third of it."""
    body.weight("i1", [1])
    body.weight("c3", [3])
    body.node("Shape", ["x"], ["shape"])
    body.node("Gather", ["shape", "i1"], ["n"], axis=0)
    body.node("Div", ["n", "c3"], ["third"])
    return "third"


def split(
    opset: int,
    lengths: Sequence[int],
    attributes: Mapping[str, Any] = AXIS,
    source: Source | None = None,
    *,
    outputs: Sequence[str] | None = None,
    returned: Sequence[int] | None = None,
    wrapped: bool = False,
    unknown: Sequence[str | None] | None = None,
    **more: Any,
) -> Recipe:
    """One Split into parts of these lengths.

    source: what gives the input `split`; None where the node has no such input. outputs: names of the node's outputs.
    returned: which parts the model returns; None for all. wrapped: a Relu before the node, and a Neg after each output.
    unknown: how the model states the size of each part along the axis; None where the lengths are stated. more: fields
    of the Recipe.
    """
    body = Body()
    inputs = ["x"]
    if source is not None:
        inputs.append(source(body, lengths))
    if wrapped:
        body.node("Relu", ["x"], ["r"])
        inputs[0] = "r"
    made = outputs or [f"{'t' if wrapped else 'y'}{index}" for index in range(len(lengths))]
    body.node("Split", inputs, made, **attributes)
    if wrapped:
        negate(body, made)
    axis = attributes.get("axis", 0)
    chosen = range(len(lengths)) if returned is None else returned
    if returned is not None:
        more["names"] = [f"y{index}" for index in chosen]
    if "dims" in more or unknown is not None:
        more["declared"] = stated(more.get("dims", SHAPE), axis, lengths if unknown is None else unknown)
    if source is graph_input:
        more["more"] = {"s": np.array(lengths, np.int64)}
    expect = parts(lengths, axis, wrapped)
    return Recipe(opset, body, lambda x: [expect(x)[index] for index in chosen], **more)


def parts(lengths: Sequence[int], axis: int, wrapped: bool = False) -> Expectation:
    """What a split gives, of the Relu and negated where it is wrapped."""

    def expect(x: Array) -> list[Array]:
        return [-part for part in cut(np.maximum(x, 0), lengths, axis)] if wrapped else cut(x, lengths, axis)

    return expect


def negate(body: Body, names: Sequence[str]) -> None:
    """Add a Neg for each value, which gives the outputs of the model."""
    for index, name in enumerate(names):
        body.node("Neg", [name], [f"y{index}"])


def stated(dims: Shape, axis: int, sizes: Sequence[int | str | None]) -> list[Shape]:
    """The stated shapes of parts: those of the input, with another size along the axis."""
    axis %= len(dims)
    return [[size if index == axis else dim for index, dim in enumerate(dims)] for size in sizes]


def zero_then_concat(empty: Literal["split", "constant", "dropped"] = "split") -> Recipe:
    """Parts of the lengths 2, 0 and 4, joined in the opposite order.

    empty: where the empty part comes from: the Split, or a constant in its place; or the part is dropped.
    """
    body = Body()
    lengths, made = ([2, 0, 4], ["a", "b", "c"]) if empty == "split" else ([2, 4], ["a", "c"])
    body.node("Split", ["x", body.weight("s", lengths)], made, axis=1)
    if empty == "constant":
        body.weight("b", np.zeros((2, 0, 8)), "float32")
    body.node("Concat", ["c", "a"] if empty == "dropped" else ["c", "b", "a"], ["y0"], axis=1)
    return Recipe(13, body, lambda x: [np.concatenate(cut(x, [2, 0, 4], 1)[::-1], 1)])


def chain() -> Recipe:
    """A Split of the second part of a Split."""
    body = Body()
    body.node("Split", ["x", body.weight("s1", [2, 4])], ["y0", "r"], axis=1)
    body.node("Split", ["r", body.weight("s2", [1, 3])], ["y1", "y2"], axis=1)
    return Recipe(13, body, parts([2, 1, 3], 1))


def shared_lengths() -> Recipe:
    """Two Splits that read one initializer."""
    body = Body()
    body.weight("s", [2, 4])
    body.node("Split", ["x", "s"], ["y0", "t"], axis=1)
    body.node("Split", ["x", "s"], ["u", "y1"], axis=1)
    return Recipe(13, body, parts([2, 4], 1))
