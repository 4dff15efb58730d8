"""The tolerances for what other arithmetic gives: of the coarsest type that a model computes with."""

from __future__ import annotations

from typing import Literal

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from splitgraph.execution import verify_models
from splitgraph.execution.rounding import rounding_tolerances

from .small_models import constant, graph_of, model_of, node, value

FLOAT, HALF, BRAIN = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
GIVEN = (1e-4, 1e-5)


def around(dtype: int, *inner: onnx.NodeProto) -> onnx.ModelProto:
    """x cast to a type, nodes from "c" to "d", and cast back."""
    nodes = [node("Cast", ["x"], ["c"], to=dtype), *inner, node("Cast", ["d"], ["y"], to=FLOAT)]
    return model_of(nodes, [value("x"), value("k", (), TensorProto.BOOL)], ["y"])


def kept_in_halves() -> onnx.ModelProto:
    weights = constant("w", np.ones((4, 4)), np.float16)
    nodes = [node("Cast", ["w"], ["f"], to=FLOAT), node("MatMul", ["x", "f"], ["y"])]
    return model_of(nodes, [value("x")], ["y"], [weights])


def in_a_branch() -> onnx.ModelProto:
    bodies = [graph_of([node("Neg", ["c"], [name])], [], [value(name, None, HALF)], name=name) for name in "pq"]
    return around(HALF, node("If", ["k"], ["d"], then_branch=bodies[0], else_branch=bodies[1]))


def in_a_function() -> onnx.ModelProto:
    body = [node("Cast", ["a"], ["b"], to=HALF), node("Neg", ["b"], ["c"]), node("Cast", ["c"], ["d"], to=FLOAT)]
    made = helper.make_function("local", "Rounded", ["a"], ["d"], body, [helper.make_opsetid("", 18)])
    call = helper.make_node("Rounded", ["x"], ["y"], domain="local")
    return model_of([call], [value("x")], ["y"], functions=[made], domains={"local": 1})


TOLERANCES = {
    "floats": (model_of([node("Neg", ["x"], ["y"])], [value("x")], ["y"]), GIVEN),
    "weights kept in halves": (kept_in_halves(), GIVEN),
    "halves that are only moved": (around(HALF, node("Transpose", ["c"], ["d"])), GIVEN),
    "doubles": (around(TensorProto.DOUBLE, node("Neg", ["c"], ["d"])), GIVEN),
    "halves inside": (around(HALF, node("Neg", ["c"], ["d"])), (2**-7, 2**-8)),
    "the coarser of two": (
        around(HALF, node("Neg", ["c"], ["n"]), node("Cast", ["n"], ["b"], to=BRAIN), node("Neg", ["b"], ["d"])),
        (2**-4, 2**-5),
    ),
    "in a branch": (in_a_branch(), (2**-7, 2**-8)),
    "in a function": (in_a_function(), (2**-7, 2**-8)),
}


@pytest.mark.parametrize("name", TOLERANCES)
def test_tolerances_are_those_of_the_coarsest_type_that_computes(name: str) -> None:
    model, expected = TOLERANCES[name]
    assert rounding_tolerances(model, *GIVEN) == expected
    assert rounding_tolerances(model, 0.5, 0.5) == (0.5, 0.5)


@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
def test_one_engine_has_to_meet_the_tolerance_that_is_given(engine: Literal["onnxruntime", "reference"]) -> None:
    one, nearly = (
        model_of([node("Mul", ["x", "k"], ["y"])], [value("x")], ["y"], [constant("k", np.array(factor), np.float32)])
        for factor in (1.0, 1.0 + 5e-5)
    )
    assert verify_models(one, nearly, rtol=1e-6, atol=1e-7, engine=engine).verdict == "different"
    assert verify_models(one, nearly, rtol=1e-4, atol=1e-7, engine=engine).verdict == "equal"
