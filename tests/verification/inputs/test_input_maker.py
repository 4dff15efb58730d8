"""Inputs that are drawn for a model, case by case."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from splitgraph.verification.inputs.model_inputs import InputError

from ..drawing import draw, maker
from ..small_models import constant, model_of, node, split_model, value

INT64, INT32, BOOL, STRING = TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.STRING


def identity(dims: Any, dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    return model_of([node("Identity", ["x"], ["y"])], [value("x", dims, dtype)], [value("y", None, dtype)])


WRONG_ARGUMENTS = [
    ({"bind": {"M": 3}}, "no symbol 'M'; it has: N"),
    ({"bind": {"N": -1}}, "cannot be -1"),
    ({"bind": {"N": 2.5}}, "cannot be 2.5"),
    ({"given": {"z": np.zeros((2, 4), np.float32)}}, "no input 'z'; the inputs of the model are x: "),
    ({"given": {"x": np.zeros((2, 4))}}, "type float64; the model takes float32"),
    ({"given": {"x": [[0.0] * 4]}}, "is a list; the model takes an array"),
    ({"given": {"x": np.array([["a"] * 4])}}, "type string; the model takes float32"),
    ({"given": {"x": np.zeros((2, 4, 1), np.float32)}}, r"shape \[2, 4, 1\]; the model takes"),
    ({"given": {"x": np.zeros((2, 5), np.float32)}}, "dimension 1 of the input 'x' is 5; the model takes 4"),
    ({"given": {"x": np.zeros((2, 4), np.float32)}, "bind": {"N": 3}}, "is 2, but N is 3 elsewhere"),
]


@pytest.mark.parametrize(("options", "reason"), WRONG_ARGUMENTS)
def test_arguments_that_fit_nothing(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        maker(identity(("N", 4)), **options)


IMPOSSIBLE = [
    (identity((1 << 20, 1 << 10)), "takes more than 256 MiB"),
    (identity((1 << 40, 1 << 40)), "takes more than 256 MiB"),
]


@pytest.mark.parametrize(("model", "reason"), IMPOSSIBLE)
def test_models_that_no_inputs_can_be_made_for(model: onnx.ModelProto, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        draw(model)


def test_a_binding_against_an_obligation() -> None:
    with pytest.raises(InputError, match="no sizes"):
        draw(split_model(13, dims=("N", 4)), bind={"N": 3})


def test_a_map_cannot_be_made_up() -> None:
    model = identity(("N",))
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    model.graph.input[0].type.CopyFrom(onnx.TypeProto(map_type=onnx.TypeProto.Map(key_type=7, value_type=tensor)))
    with pytest.raises(InputError, match="cannot create"):
        draw(model)


def test_conditions_go_both_ways_and_combine() -> None:
    inputs = [value("c", (), BOOL), value("d", (), BOOL)]
    nodes = [node("And", ["c", "d"], ["e"])]
    drawn = draw(model_of(nodes, inputs, [value("e", (), BOOL)]), cases=4)
    assert {(bool(case["c"]), bool(case["d"])) for case in drawn} == {
        (a, b) for a in (True, False) for b in (True, False)
    }


def test_sequences_and_optionals() -> None:
    inputs = [
        helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, ("N", 4)),
        helper.make_value_info("o", helper.make_optional_type_proto(helper.make_tensor_type_proto(1, ("N",)))),
    ]
    nodes = [node("ConcatFromSequence", ["s"], ["y"], axis=0), node("OptionalHasElement", ["o"], ["h"])]
    drawn = draw(model_of(nodes, inputs, ["y", value("h", (), BOOL)]))
    assert [len(case["s"]) for case in drawn] == [2, 3, 2]
    assert [case["o"] is None for case in drawn] == [False, True, False]
    assert drawn[0]["s"][0].shape == (len(drawn[0]["o"]), 4)


def test_a_default_is_overridden_in_the_second_case_only() -> None:
    model = model_of(
        [node("Add", ["x", "w"], ["y"])], [value("x"), value("w", (4,))], ["y"], [constant("w", np.ones(4), np.float32)]
    )
    assert ["w" in case for case in draw(model)] == [False, True, False]
    assert "w" not in maker(model).draw(1, 1)[0]


def test_given_arrays_fix_the_sizes_of_the_others() -> None:
    model = model_of([node("MatMul", ["x", "y"], ["z"])], [value("x", ("N", "K")), value("y", ("K", "M"))], ["z"])
    given = {"x": np.ones((3, 7), np.float32)}
    made = maker(model, given=given, bind={"M": 11})
    values, _ = made.draw(0)
    assert values["x"] is given["x"]
    assert values["y"].shape == (7, 11)
    assert made.varies
    assert not maker(identity(("N", 4)), given={"x": np.zeros((2, 4), np.float32)}).varies


def test_the_same_seed_draws_the_same() -> None:
    model = split_model(18, num_outputs=2)
    first, again, other = (draw(model, seed=seed) for seed in (1, 1, 2))
    assert all((a["x"] == b["x"]).all() for a, b in zip(first, again, strict=True))
    assert not all((a["x"] == b["x"]).all() for a, b in zip(first, other, strict=True))
