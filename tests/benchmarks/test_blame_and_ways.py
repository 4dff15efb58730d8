"""What the measured cases of an operator say: the traits to blame, and the entry of the table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "targets"))

from blame import entry_of, rules_of
from factor_table import operator_of
from measure import first_of_each
from ways import WAYS, of_type


def sets(*texts: str) -> list[frozenset[str]]:
    return [frozenset(text.split()) for text in texts]


@pytest.mark.parametrize(
    ("read", "failing", "rules", "left"),
    [
        (["a b"], [], [], 0),
        # A trait that no case has that is read.
        (["a"], ["a b"], [("b", "refuses", 1)], 0),
        # The one that most cases have.
        (["a"], ["a b c", "a b d"], [("b", "refuses", 2)], 0),
        # Each alone is read, and not together.
        (["a", "b", "c"], ["a b"], [("a b", "refuses", 1)], 0),
        # Nothing tells them apart.
        (["a b"], ["a b"], [], 1),
        (["a b", "a c"], ["a b c", "a b c d"], [("d", "refuses", 1), ("b c", "refuses", 2)], 0),
        # One case of a rank is too little to blame the rank.
        (["rank2"], ["rank2"], [], 1),
    ],
)
def test_rules(read: list[str], failing: list[str], rules: list[tuple[str, str, int]], left: int) -> None:
    found = rules_of(sets(*read), [(traits, "refuses") for traits in sets(*failing)])
    assert found == ([(frozenset(traits.split()), answer, cases) for traits, answer, cases in rules], left)


def test_the_shape_is_blamed_for_several_cases_only() -> None:
    rank = frozenset({"rank 3"})
    assert rules_of([frozenset()], [(rank, "wrong")]) == ([], 1)
    assert rules_of([frozenset()], [(rank, "wrong")] * 2) == ([(rank, "wrong", 2)], 0)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("a", "reads", ""), ("b", "reads", "")], {"reads": 2, "unread": ["c"]}),
        ([("a", "refuses", "no kernel"), ("c", "refuses", "no kernel")], {"refuses": 2, "said": "no kernel"}),
        (
            [("a", "reads", ""), ("b", "dies", "signal 11"), ("b", "refuses", "at /src/a.cpp:7"), ("c", "reads", "")],
            {"reads": 2, "refuses": 1, "dies": 1, "rules": [[["b"], "dies", 2]], "unread": ["b"], "said": "signal 11"},
        ),
        (
            [("a b c", "reads", ""), ("a b", "wrong", "y has other values")],
            {"reads": 1, "wrong": 1, "unexplained": 1, "like": ["a", "b"], "said": "y has other values"},
        ),
    ],
)  # fmt: skip
def test_entries(rows: list[tuple[str, str, str]], expected: dict[str, Any]) -> None:
    given = [(frozenset(traits.split()), answer, said) for traits, answer, said in rows]
    assert entry_of(given, frozenset("abc")) == expected


def test_names_of_cases() -> None:
    cases = ["Add-14.001.add.constant", "Add-14.002.add.inputs", "ai.onnx.ml.Scaler-1.003.node4.model"]
    assert [operator_of(case) for case in cases] == ["Add-14", "Add-14", "ai.onnx.ml.Scaler-1"]
    assert first_of_each(cases, 1) == cases[:1]
    assert first_of_each(cases, None) == cases


ADD = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["": 14]> g (float[2, 3] x, float[3] z) => (float[2, 3] y) { y = Add(x, z) }'
)
INPUTS = {"x": np.ones((2, 3), np.float32), "z": np.full(3, 2.5, np.float32)}


@pytest.mark.parametrize(
    ("way", "shape", "names"),
    [
        ("inputs", [2, 3], ["x", "z"]),
        ("constant", [2, 3], ["x"]),
        ("dim0", ["d0", 3], ["x"]),
        ("dim1", [2, "d1"], ["x"]),
    ],
)
def test_the_ways_of_a_model(way: str, shape: list[Any], names: list[str]) -> None:
    made = WAYS[way](ADD, INPUTS)
    assert made is not None
    model, inputs = made
    assert [value.name for value in model.graph.input] == list(inputs) == names
    assert [dim.dim_param or dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim] == shape
    onnx.checker.check_model(model, full_check=True)


def test_a_model_of_another_element_type() -> None:
    made = of_type(ADD, INPUTS, "int64")
    assert made is not None
    model, inputs = made
    assert {array.dtype.name for array in inputs.values()} == {"int64"}
    assert all(array.min() >= 1 for array in inputs.values())
    onnx.checker.check_model(model, full_check=True)
    # The operator does not take it; or it is the type that the model has.
    assert of_type(ADD, INPUTS, "bool") is None
    assert of_type(ADD, INPUTS, "float32") is None
