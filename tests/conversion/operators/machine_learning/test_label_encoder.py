"""LabelEncoder-1, -2 and -4, in every direction."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from conversion.operators.machine_learning.versions import OneNode, check, every, operators, refusal, texts
from onnx import numpy_helper

NAN = float("nan")
STRINGS = texts("a", "b", "c", "no such key", "", "_Unused")
INTEGERS = every([0, 1, 2, 5, -1, 7, 2**62, -(2**63)], "int64")
FLOATS = every([0.0, -0.0, 1.5, NAN, 2.0, np.inf, 1e9], "float32")
DATA = {"strings": STRINGS, "int64s": INTEGERS, "floats": FLOATS}


def _tensor(array: Any) -> Any:
    return numpy_helper.from_array(np.asarray(array), "t")


# Refusals and what stays ----------------------------------------------------------------------------------------------


REFUSED = {
    "no classes": OneNode("LabelEncoder", 1, STRINGS, {"default_int64": 1}),
    "no keys": OneNode("LabelEncoder", 4, INTEGERS, {"keys_int64s": [1], "values_int64s": [1, 2]}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_no_kernel_reads_is_refused(name: str) -> None:
    one = REFUSED[name]
    assert refusal(one, 2 if one.version == 1 else 1)


KEPT = {
    "2 to 4": (OneNode("LabelEncoder", 2, INTEGERS, {"keys_int64s": [1, 5], "values_floats": [0.5, 2.5]}), 4),
    "2 to 3": (OneNode("LabelEncoder", 2, FLOATS, {"keys_floats": [1.5, NAN], "values_int64s": [3, 4]}), 3),
    "4 to 2": (OneNode("LabelEncoder", 4, STRINGS, {"keys_strings": ["a"], "values_int64s": [9]}), 2),
    "4 to 5": (OneNode("LabelEncoder", 4, STRINGS, {"keys_strings": ["a"], "values_int64s": [9]}), 5),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_means_the_same_stays_as_it_is(name: str) -> None:
    one, version = KEPT[name]
    assert check(one, version).graph.node[0] == one.model().graph.node[0]


# Version 1 ------------------------------------------------------------------------------------------------------------


CLASSES: dict[str, dict[str, Any]] = {
    "plain": {"classes_strings": ["a", "b", "c"]},
    "defaults": {"classes_strings": ["a", "b"], "default_int64": -7, "default_string": "none"},
    "repeated": {"classes_strings": ["a", "b", "a", "c", "b"]},
    "one": {"classes_strings": ["b"]},
}


@pytest.mark.parametrize("data", [STRINGS, INTEGERS], ids=["strings", "integers"])
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_classes_become_keys_and_come_back(name: str, version: int, data: Any) -> None:
    newer = check(OneNode("LabelEncoder", 1, data, CLASSES[name]), version)
    assert operators(newer) == ["ai.onnx.ml.LabelEncoder"]
    attributes = {each.name: each for each in newer.graph.node[0].attribute}
    assert "classes_strings" not in attributes
    again = OneNode("LabelEncoder", version, data, {name: _value(each) for name, each in attributes.items()})
    assert operators(check(again, 1)) == ["ai.onnx.ml.LabelEncoder"]


def _value(attribute: Any) -> Any:
    from onnx import helper

    return helper.get_attribute_value(attribute)


# Version 2 to 1 -------------------------------------------------------------------------------------------------------


KEYS = {"strings": ["a", "b", "c", "b"], "int64s": [5, 1, 2, 1], "floats": [1.5, 0.0, NAN, 1.5]}
VALUES: dict[str, list[Any]] = {
    "strings": ["x", "y", "z", "w"],
    "int64s": [9, -1, 0, 4],
    "floats": [0.5, NAN, -0.0, 3.0],
}
OPTIONS: dict[str, dict[str, Any]] = {
    "": {},
    "defaults": {"default_string": "none", "default_int64": 77, "default_float": 0.25},
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("keys", "values"), [*product(KEYS, VALUES)])
@pytest.mark.parametrize(("version", "goal"), [(2, 1), (3, 1), (2, 4), (4, 2), (4, 1)])
def test_every_pair_of_types(keys: str, values: str, options: str, version: int, goal: int) -> None:
    table = {f"keys_{keys}": KEYS[keys], f"values_{values}": VALUES[values], **OPTIONS[options]}
    check(OneNode("LabelEncoder", version, DATA[keys], table), goal)


IN_PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "permutation": ("strings", {"keys_strings": ["a", "b", "c"], "values_int64s": [2, 0, 1]}),
    "holes": ("strings", {"keys_strings": ["a", "b"], "values_int64s": [3, 5]}),
    "texts with holes": ("int64s", {"keys_int64s": [0, 5], "values_strings": ["x", "y"], "default_string": "q"}),
}


@pytest.mark.parametrize("name", IN_PLACES)
def test_positions_become_classes(name: str) -> None:
    data, table = IN_PLACES[name]
    assert operators(check(OneNode("LabelEncoder", 2, DATA[data], table), 1)) == ["ai.onnx.ml.LabelEncoder"]


@pytest.mark.parametrize("values", [[1, 1], [-1, 0], [0, 2**40]], ids=["equal", "negative", "far"])
def test_other_positions_take_two_nodes(values: list[int]) -> None:
    one = OneNode("LabelEncoder", 2, STRINGS, {"keys_strings": ["a", "b"], "values_int64s": values})
    assert operators(check(one, 1)) == ["ai.onnx.ml.LabelEncoder", "Gather"]


# Tensors --------------------------------------------------------------------------------------------------------------


TENSORS: dict[str, tuple[Any, Any, Any]] = {
    "float64 to float64": (every([0.1, NAN, -0.0, 5], "float64"), every([0.1, NAN, 0.0], "float64"), [0.25]),
    "float64 to int64": (every([0.1, NAN, 7], "float64"), every([3, 4], "int64"), [5]),
    "float64 to string": (every([0.1, NAN, 7], "float64"), texts("x", "y"), ["z"]),
    "string to float64": (texts("a", "b", "z"), every([0.1, 0.2], "float64"), [0.5]),
    "int64 to float64": (every([4, 5, 6], "int64"), every([0.1, 0.2], "float64"), [0.5]),
    "int64 to int64": (every([4, 5, 6], "int64"), every([10, 20], "int64"), [30]),
    "float32 to float32": (every([4, 5, NAN], "float32"), every([10, 20], "float32"), [30]),
    "string to string": (texts("a", "b", "z"), texts("x", "y"), ["w"]),
}


@pytest.mark.parametrize("has_default", [True, False], ids=["default", "no default"])
@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("goal", [1, 2, 3])
def test_tensors_become_lists_or_nodes(name: str, goal: int, has_default: bool) -> None:
    data, values, default = TENSORS[name]
    keys = data[: len(values)]
    table = {"keys_tensor": _tensor(keys), "values_tensor": _tensor(values)}
    if has_default:
        held = texts(*default) if values.dtype == object else every(default, str(values.dtype))
        table["default_tensor"] = _tensor(held)
    check(OneNode("LabelEncoder", 4, data, table), goal)


def test_a_default_tensor_beside_lists_counts() -> None:
    table = {"keys_floats": [1.0], "values_floats": [2.0], "default_tensor": _tensor(every([5], "float32"))}
    check(OneNode("LabelEncoder", 4, FLOATS, {**table, "default_float": 3.0}), 2)


def test_keys_of_nan_equal_nothing_before_version_4() -> None:
    one = OneNode("LabelEncoder", 2, FLOATS, {"keys_floats": [NAN, NAN], "values_int64s": [3, 4]})
    assert "ai.onnx.ml.LabelEncoder" not in operators(check(one, 4))


@pytest.mark.parametrize("shape", [(), (2, 3), (0,), (1, 2, 1)], ids=str)
def test_an_input_has_any_shape(shape: tuple[int, ...]) -> None:
    data = np.resize(FLOATS, shape).astype("float32")
    one = OneNode("LabelEncoder", 4, data, {"keys_floats": [1.5, NAN], "values_int64s": [3, 4]}, free=None)
    check(one, 2)


@pytest.mark.parametrize("opset", [9, 11, 13, 22])
def test_both_domains_go_at_once(opset: int) -> None:
    one = OneNode("LabelEncoder", 4, FLOATS, {"keys_floats": [1.5, NAN], "values_strings": ["x", "y"]}, opset=18)
    check(one, 1, opset=opset)
