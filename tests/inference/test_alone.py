"""What nodes do to sizes, as their inference rules say it: which size makes which, and which have to be equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from onnx import helper

from splitgraph.inference.alone import Alone, Given, Source
from splitgraph.model.value_type import Contents, tensor, vector

Input = Sequence[int] | Contents | None


def _numbers(*items: int) -> Contents:
    return vector(items)


def _given(each: Input) -> Given | None:
    if each is None:
        return None
    if isinstance(each, Contents):
        return Given(tensor("int64", each.shape), each)
    return Given(tensor("float32", each))


def _node(op_type: str, inputs: Sequence[Input], attributes: dict[str, Any], outputs: int = 1) -> Any:
    names = ["" if each is None else f"x{at}" for at, each in enumerate(inputs)]
    return helper.make_node(op_type, names, [f"y{at}" for at in range(outputs)], **attributes)


OPSET = {"": 20, "com.microsoft": 1}
UNKNOWN: list[Any] = [
    # Several sizes make one, a size is rounded, or nothing of the inputs says it.
    pytest.param("Concat", [(2, 5), (3, 5)], {"axis": 0}, 0, None, id="a sum"),
    pytest.param("Flatten", [(2, 3, 5)], {"axis": 2}, 0, None, id="a product"),
    pytest.param("AveragePool", [(1, 3, 9)], {"kernel_shape": [2], "strides": [2]}, 2, None, id="rounded"),
    pytest.param("Split", [(7, 5), _numbers(3, 4)], {}, 0, 1, id="a length beside others"),
    pytest.param("Slice", [(8, 5), _numbers(-6), _numbers(8), _numbers(0)], {}, 0, None, id="from the end"),
    pytest.param("ConstantOfShape", [_numbers(4, 5)], {}, 0, None, id="elements that say no sizes"),
    pytest.param("NonZero", [(4, 5)], {}, 1, None, id="the elements decide"),
]


@pytest.mark.parametrize(("operator", "inputs", "attributes", "axis", "said_by"), UNKNOWN)
def test_no_single_size(
    operator: str, inputs: list[Input], attributes: dict[str, Any], axis: int, said_by: int | None
) -> None:
    node, given = _node(operator, inputs, attributes), [*map(_given, inputs)]
    assert Alone().made(node, OPSET, given, 0, axis, said_by) is None


MADE: list[Any] = [
    # The sources, and the size of them that gives 12.
    pytest.param("Relu", [(3, 5)], {}, 1, None, [(0, 1)], 12, id="handed on"),
    pytest.param("Add", [(3, 5), (5,)], {}, 1, None, [(0, 1), (1, 0)], 12, id="of two operands"),
    pytest.param("Add", [(3, 5), (1,)], {}, 1, None, [(0, 1)], 12, id="beside 1"),
    pytest.param("Transpose", [(3, 5, 7)], {"perm": [2, 0, 1]}, 0, None, [(0, 2)], 12, id="moved"),
    pytest.param("Pad", [(3, 5), _numbers(0, 1, 0, 2)], {}, 1, None, [(0, 1)], 9, id="padded"),
    pytest.param("DepthToSpace", [(1, 4, 3, 5)], {"blocksize": 2}, 3, None, [(0, 3)], 6, id="doubled"),
    pytest.param("Conv", [(2, 3, 8), (4, 3, 3)], {"pads": [1, 1]}, 2, None, [(0, 2)], 12, id="convolved"),
    pytest.param("Gather", [(9, 5), _numbers(0, 2, 4)], {}, 0, None, [(1, 0)], 12, id="of known indices"),
    pytest.param("Gather", [(9, 5), _numbers(0, 2, 4)], {}, 1, None, [(0, 1)], 12, id="beside the indices"),
    pytest.param("ReduceSum", [(3, 5), _numbers(0)], {"keepdims": 0}, 0, None, [(0, 1)], 12, id="reduced"),
    pytest.param("Expand", [(1, 5), _numbers(4, 5)], {}, 0, 1, [(1, 0, True)], 12, id="an element"),
    pytest.param("Expand", [(4, 5), _numbers(4, 1)], {}, 1, 1, [(0, 1)], 12, id="beside an element of 1"),
    pytest.param("Expand", [(4, 5), _numbers(4, 5)], {}, 1, 1, [(0, 1), (1, 1, True)], 12, id="both"),
    pytest.param("ConstantOfShape", [_numbers(4, 5)], {}, 0, 0, [(0, 0, True)], 12, id="a shape"),
    pytest.param("Tile", [(1, 5), _numbers(4, 1)], {}, 0, 1, [(1, 0, True)], 12, id="repeated"),
    pytest.param(
        "Slice", [(8, 5), _numbers(2), _numbers(6), _numbers(0)], {}, 0, 2, [(2, 0, True)], 14, id="an end within"
    ),
    pytest.param("Slice", [(8, 5), _numbers(0), _numbers(8), _numbers(0)], {}, 0, 2, [(0, 0)], 12, id="all of it"),
    pytest.param(
        "Slice", [(8, 5), _numbers(4), _numbers(8), _numbers(0)], {}, 0, 2, [(2, 0, True)], 16, id="an end at the end"
    ),
]


@pytest.mark.parametrize(("operator", "inputs", "attributes", "axis", "said_by", "sources", "size"), MADE)
def test_one_size(
    operator: str,
    inputs: list[Input],
    attributes: dict[str, Any],
    axis: int,
    said_by: int | None,
    sources: list[tuple[int, ...]],
    size: int,
) -> None:
    node, given = _node(operator, inputs, attributes), [*map(_given, inputs)]
    made = Alone().made(node, OPSET, given, 0, axis, said_by)
    assert made is not None
    assert sorted(made.sources) == sorted(Source(*each) for each in sources)  # type: ignore[arg-type]
    assert made.size_for(12) == size


def test_a_range_grows_with_its_steps() -> None:
    scalars = [Contents((), (number,)) for number in (0, 12, 3)]
    made = Alone().made(_node("Range", scalars, {}), OPSET, [*map(_given, scalars)], 0, 0, 1)
    assert made is not None and made.sources == (Source(1, 0, True),)
    assert made.size_for(10) == 30


EQUAL: list[Any] = [
    pytest.param("Relu", [(3, 5)], {}, [], id="alone"),
    pytest.param("Add", [(3, 5), (3, 1)], {}, [{(0, 0), (1, 0)}], id="1 is broadcast"),
    pytest.param("MatMul", [(2, 3, 5), (5, 4)], {}, [{(0, 2), (1, 0)}], id="the inner dimensions"),
    pytest.param("MatMul", [(3, 1), (1, 4)], {}, [], id="an inner dimension of 1"),
    pytest.param("Concat", [(3, 5), (2, 5)], {"axis": 0}, [{(0, 1), (1, 1)}], id="beside the axis"),
    pytest.param("Gather", [(3, 5), _numbers(0, 1, 2)], {}, [], id="indices need nothing"),
    pytest.param("Where", [(3, 5), (5,), (3, 1)], {}, [{(0, 0), (2, 0)}, {(0, 1), (1, 0)}], id="three operands"),
]


@pytest.mark.parametrize(("operator", "inputs", "attributes", "expected"), EQUAL)
def test_equal_sizes(operator: str, inputs: list[Input], attributes: dict[str, Any], expected: list[Any]) -> None:
    node, given = _node(operator, inputs, attributes), [*map(_given, inputs)]
    found = Alone().equal_sizes(node, OPSET, given)
    assert [{source[:2] for source in group} for group in found] == expected


def test_a_size_of_1_that_has_to_be_larger_is_found() -> None:
    node, given = _node("Concat", [(3, 5), (3, 1)], {"axis": 0}), [_given((3, 5)), _given((3, 1))]
    assert [{source[:2] for source in group} for group in Alone().equal_sizes(node, OPSET, given)] == [{(0, 1), (1, 1)}]


def test_remembered_answers_are_those_of_a_new_room() -> None:
    room = Alone()
    for case in MADE * 2:
        operator, inputs, attributes, axis, said_by, *_ = case.values
        arguments = _node(operator, inputs, attributes), OPSET, [*map(_given, inputs)], 0, axis, said_by
        assert room.made(*arguments) == Alone().made(*arguments)
