"""Recipes of the forms without a Split: Slice, Gather, SplitToSequence, local functions, StringSplit, and Add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from recipes import SHAPE, Array, Body, Recipe, cut
from split_recipes import computed_third, negate, parts, stated

OPENVINO = "org.openvinotoolkit"


def slices(
    opset: int,
    lengths: Sequence[int],
    *,
    axis: int = 1,
    integers: str = "int64",
    last_end: int | None = None,
    from_end: int = 0,
    step: bool = False,
    shared: bool = False,
    wrapped: bool = False,
    **more: Any,
) -> Recipe:
    """A Slice for each part, with its bounds in initializers.

    last_end: another end for the last part. from_end: how many of the last bounds count from the end of the axis, not
    the very last one. step: whether a step of 1 is given. shared: whether an end is also the
    start of the next part. more: fields of the Recipe.
    """
    body = Body()
    bounds = [int(bound) for bound in np.cumsum([0, *lengths])]
    for index in range(len(bounds) - 1 - from_end, len(bounds) - 1):
        bounds[index] -= bounds[-1]
    starts, ends = bounds[:-1], [*bounds[1:-1], bounds[-1] if last_end is None else last_end]
    if shared:
        names = [body.weight(f"b{index}", [bound], integers) for index, bound in enumerate(bounds)]
        pairs = list(pairwise(names))
    else:
        pairs = [
            (body.weight(f"start{index}", [start], integers), body.weight(f"end{index}", [end], integers))
            for index, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]
    common = [body.weight("axis", [axis], integers)]
    if step:
        common.append(body.weight("step", [1], integers))
    source, results = _around(body, len(lengths), wrapped)
    for (start, end), result in zip(pairs, results, strict=True):
        body.node("Slice", [source, start, end, *common], [result])
    return _finished(opset, body, lengths, axis, results, wrapped, more)


def slices_with_attributes(opset: int, lengths: Sequence[int], wrapped: bool = False) -> Recipe:
    """A Slice of opset 1 for each part, whose bounds are attributes."""
    body = Body()
    source, results = _around(body, len(lengths), wrapped)
    bounds = np.cumsum([0, *lengths]).tolist()
    for start, end, result in zip(bounds[:-1], bounds[1:], results, strict=True):
        body.node("Slice", [source], [result], axes=[1], starts=[start], ends=[end])
    return _finished(opset, body, lengths, 1, results, wrapped, {})


def computed_slices(**more: Any) -> Recipe:
    """Slices up to n // 3, and from there to n, where n is the size of axis 1."""
    body = Body()
    third = computed_third(body)
    zero, axis = body.weight("z", [0]), body.weight("axis", [1])
    body.node("Slice", ["x", zero, third, axis], ["y0"])
    body.node("Slice", ["x", third, "n", axis], ["y1"])
    if "dims" in more:
        more["declared"] = stated(more["dims"], 1, [None, None])
    return Recipe(13, body, parts([2, 4], 1), **more)


def gathers(opset: int, lengths: Sequence[int], wrapped: bool = False) -> Recipe:
    """A Gather of all indices of each part."""
    body = Body()
    source, results = _around(body, len(lengths), wrapped)
    bounds = np.cumsum([0, *lengths])
    for index, result in enumerate(results):
        chosen = body.weight(f"g{index}", np.arange(bounds[index], bounds[index + 1]))
        body.node("Gather", [source, chosen], [result], axis=1)
    return _finished(opset, body, lengths, 1, results, wrapped, {})


def sequence(
    opset: int,
    lengths: Sequence[int],
    split: int | list[int] | None = None,
    *,
    integers: str = "int64",
    **attributes: int,
) -> Recipe:
    """A SplitToSequence along axis 1 into parts of these lengths, and a SequenceAt for each part."""
    body = Body()
    inputs = ["x"] if split is None else ["x", body.weight("s", split, integers)]
    body.node("SplitToSequence", inputs, ["q"], axis=1, **attributes)
    for index in range(len(lengths)):
        body.node("SequenceAt", ["q", body.weight(f"k{index}", index)], [f"y{index}"])

    def expect(x: Array) -> list[Array]:
        # The specification ignores keepdims where `split` is given.
        dropped = split is None and attributes.get("keepdims", 1) == 0
        return [part.squeeze(1) if dropped else part for part in cut(x, lengths, 1)]

    return Recipe(opset, body, expect)


def sequence_at_last() -> Recipe:
    """The last part of a sequence, read by a position that counts from the end."""
    body = Body()
    body.node("SplitToSequence", ["x", body.weight("s", [2, 4])], ["q"], axis=1)
    body.node("SequenceAt", ["q", body.weight("k", -1)], ["y0"])
    return Recipe(13, body, lambda x: [cut(x, [2, 4], 1)[1]])


def joined_sequence() -> Recipe:
    """A sequence of parts that is joined again."""
    body = Body()
    body.node("SplitToSequence", ["x", body.weight("s", [2, 4])], ["q"], axis=1)
    body.node("ConcatFromSequence", ["q"], ["y0"], axis=1)
    return Recipe(13, body, lambda x: [x])


def reduced(operator: str, compute: Callable[..., Array]) -> Recipe:
    """A reduction of opset 18 along axis 1, which is an input."""
    body = Body()
    body.node(operator, ["x", body.weight("along", [1])], ["y0"], keepdims=1)
    return Recipe(18, body, lambda x: [compute(x, axis=1, keepdims=True)])


def empty_constant() -> Recipe:
    """A part without elements as an initializer that the model returns, beside another part."""
    body = Body()
    body.weights.append(numpy_helper.from_array(np.zeros((2, 0, 8), np.float32), "empty"))
    body.node("Identity", ["empty"], ["y0"])
    body.node("Relu", ["x"], ["y1"])
    return Recipe(13, body, lambda x: [np.zeros((2, 0, 8), np.float32), np.maximum(x, 0)])


def identity() -> Recipe:
    """What a split into one part is, between other nodes: a model of an Identity alone is a question of its own."""
    body = Body()
    source, results = _around(body, 1, True)
    body.node("Identity", [source], results)
    return _finished(13, body, SHAPE[1:2], 1, results, True, {})


def function_of_slices() -> Recipe:
    """OpenVINO's VariadicSplit with one input, as a function of Slices."""
    body = Body()
    start, first, last = body.constant("start", [0]), body.constant("end0", [2]), body.constant("end1", [6])
    axis = body.constant("axis", [1])
    body.node("Slice", ["x", start, first, axis], ["y0"])
    body.node("Slice", ["x", first, last, axis], ["y1"])
    return _called(OPENVINO, "VariadicSplit", body)


def function_of_lengths() -> Recipe:
    """OpenVINO's VariadicSplit with axis and lengths as inputs, as a function that computes the bounds."""
    body = Body()
    zero, one, two = (body.constant(f"c{index}", [index]) for index in range(3))
    body.node("Reshape", ["axis", body.constant("all", [-1])], ["axes"])
    body.node("Slice", ["lengths", zero, one], ["first"])
    body.node("Slice", ["lengths", one, two], ["second"])
    body.node("Add", ["first", "second"], ["end"])
    body.node("Slice", ["x", zero, "first", "axes"], ["y0"])
    body.node("Slice", ["x", "first", "end", "axes"], ["y1"])
    given = Body()
    given.weight("axis", 1)
    given.weight("lengths", [2, 4])
    return _called(OPENVINO, "VariadicSplit", body, given, ["axis", "lengths"])


def function_of_split() -> Recipe:
    """A function of another domain that holds a Split."""
    body = Body()
    body.node("Split", ["x", body.constant("s", [2, 4])], ["y0", "y1"], axis=1)
    return _called("my.domain", "MySplit", body)


def string_split() -> Recipe:
    """StringSplit-20 at spaces: the words, and how many there are."""
    body = Body()
    body.node("StringSplit", ["x"], ["y0", "y1"], delimiter=" ")

    def expect(x: Array) -> list[Array]:
        return [np.array([text.split(" ") for text in x], object), np.array([2, 2], np.int64)]

    return Recipe(20, body, expect, (2,), kind="str", declared=[(2, None), (2,)])


def add(opset: int, ir_version: int) -> Recipe:
    """x + x: whether a model of this opset and IR version is read at all."""
    body = Body()
    body.node("Add", ["x", "x"], ["y0"])
    return Recipe(opset, body, lambda x: [x + x], ir_version=ir_version)


def _around(body: Body, count: int, wrapped: bool) -> tuple[str, list[str]]:
    """What the parts are taken from, and the names of the parts; a Relu is added where the parts are wrapped."""
    if wrapped:
        body.node("Relu", ["x"], ["r"])
    return ("r" if wrapped else "x"), [f"{'t' if wrapped else 'y'}{index}" for index in range(count)]


def _finished(
    opset: int,
    body: Body,
    lengths: Sequence[int],
    axis: int,
    results: Sequence[str],
    wrapped: bool,
    more: dict[str, Any],
) -> Recipe:
    if wrapped:
        negate(body, results)
    if "dims" in more:
        more["declared"] = stated(more["dims"], axis, lengths)
    return Recipe(opset, body, parts(lengths, axis, wrapped), **more)


def _called(domain: str, name: str, body: Body, given: Body | None = None, more: Sequence[str] = ()) -> Recipe:
    """A model that calls a function with this body on x and on more inputs."""
    inputs, outputs = ["x", *more], ["y0", "y1"]
    opsets = [helper.make_opsetid("", 13)]
    function: onnx.FunctionProto = helper.make_function(domain, name, inputs, outputs, body.nodes, opsets)
    calling = given or Body()
    calling.node(name, inputs, outputs, domain=domain)
    return Recipe(13, calling, parts([2, 4], 1), SHAPE, functions=[function], ir_version=8)
