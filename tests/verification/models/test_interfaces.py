"""The declared inputs and outputs of two models are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from splitgraph.verification.models.model_pair import compare_interfaces, wrong_shapes, wrong_types

from ..small_models import constant, model_of, node, value

F = np.float32


def base() -> onnx.ModelProto:
    """x and a default w give a and b."""
    nodes = [node("Add", ["x", "w"], ["s"]), node("Split", ["s"], ["a", "b"], num_outputs=2)]
    inputs = [value("x"), value("w", (4,))]
    return model_of(nodes, inputs, [value("a"), value("b")], [constant("w", [1, 2, 3, 4], np.float32)])


def swap_outputs(model: onnx.ModelProto) -> None:
    first = onnx.ValueInfoProto()
    first.CopyFrom(model.graph.output[0])
    del model.graph.output[0]
    model.graph.output.append(first)


def set_type(index: int, elem_type: int) -> Callable[[onnx.ModelProto], None]:
    return lambda model: setattr(model.graph.output[index].type.tensor_type, "elem_type", elem_type)


def drop_default(model: onnx.ModelProto) -> None:
    del model.graph.initializer[:]


def hold_sparsely(model: onnx.ModelProto) -> None:
    (held,) = model.graph.initializer
    indices = helper.make_tensor("", TensorProto.INT64, [4], [0, 1, 2, 3])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(held, indices, [4]))
    del model.graph.initializer[:]


def sequence_output(model: onnx.ModelProto) -> None:
    model.graph.output[0].CopyFrom(helper.make_tensor_sequence_value_info("a", TensorProto.FLOAT, None))


INTERFACES: list[tuple[Callable[[onnx.ModelProto], Any], str, str]] = [
    (swap_outputs, "a", "another order: a, b in the first model and b, a in the second"),
    (lambda m: m.graph.output.pop(), "b", "the second model has no output 'b'"),
    (lambda m: m.graph.output.append(value("s")), "s", "new output 's'"),
    (lambda m: m.graph.output.append(m.graph.output[0]), "a", "more often"),
    (lambda m: setattr(m.graph.output[0], "name", "c"), "a", "the second model has no output 'a'"),
    (lambda m: setattr(m.graph.input[0], "name", "z"), "x", "the second model has no input 'x'"),
    (lambda m: m.graph.input.pop(0), "x", "the second model has no input 'x'"),
    (lambda m: m.graph.input.pop(1), "w", "the second model has no input 'w'"),
    (lambda m: m.graph.input.append(value("new")), "new", "new input 'new'"),
    (drop_default, "w", "has no default in the second model"),
    (set_type(1, TensorProto.DOUBLE), "b", "declared float32 in the first model and float64 in the second"),
    (
        lambda m: m.graph.output[0].type.tensor_type.shape.dim.add(),
        "a",
        "rank 2 in the first model and with rank 3",
    ),
    (lambda m: m.graph.input[0].type.tensor_type.shape.dim.pop(), "x", "the input 'x' is declared with rank 2"),
    (sequence_output, "a", "as a tensor in the first model and as a sequence in the second"),
]


@pytest.mark.parametrize(("change", "name", "reason"), INTERFACES)
def test_interfaces_that_differ(change: Callable[[onnx.ModelProto], Any], name: str, reason: str) -> None:
    after = base()
    change(after)
    found = compare_interfaces(base(), after)
    assert found is not None
    assert (found.name, found.case) == (name, None)
    assert reason in found.reason


def test_a_sparse_default_that_is_lost_is_a_difference() -> None:
    before, after = base(), base()
    hold_sparsely(before)
    assert compare_interfaces(before, base()) is compare_interfaces(base(), before) is None
    drop_default(after)
    found = compare_interfaces(before, after)
    assert found is not None
    assert "has no default in the second model" in found.reason


def add_default(model: onnx.ModelProto) -> None:
    model.graph.input.append(value("new", ()))
    model.graph.initializer.append(constant("new", 1, np.float32))


SAME_INTERFACES: list[Callable[[onnx.ModelProto], Any]] = [
    lambda m: None,
    lambda m: m.graph.input.reverse(),
    lambda m: m.graph.output[0].type.tensor_type.ClearField("shape"),
    set_type(0, 0),
    lambda m: m.graph.output[0].ClearField("type"),
    lambda m: setattr(m.graph.output[0].type.tensor_type.shape.dim[0], "dim_param", "M"),
    add_default,
]


@pytest.mark.parametrize("change", SAME_INTERFACES)
def test_interfaces_that_do_not(change: Callable[[onnx.ModelProto], Any]) -> None:
    after = base()
    change(after)
    assert compare_interfaces(base(), after) is None


def test_before_ir_4_an_initializer_is_no_input() -> None:
    before, after = base(), base()
    before.ir_version = 3
    del after.graph.input[1]
    assert compare_interfaces(before, after) is None


NESTED = [
    (
        helper.make_tensor_sequence_value_info("a", TensorProto.INT64, None),
        "float32 in the first model and int64",
    ),
    (
        helper.make_tensor_sequence_value_info("a", TensorProto.FLOAT, [2, 3]),
        "rank 1 in the first model and with rank 2",
    ),
]


@pytest.mark.parametrize(("declared", "reason"), NESTED)
def test_the_elements_of_sequences_are_compared(declared: onnx.ValueInfoProto, reason: str) -> None:
    before, after = base(), base()
    before.graph.output[0].CopyFrom(helper.make_tensor_sequence_value_info("a", TensorProto.FLOAT, [2]))
    after.graph.output[0].CopyFrom(declared)
    found = compare_interfaces(before, after)
    assert found is not None
    assert reason in found.reason


def test_values_that_are_not_as_declared() -> None:
    declared = [value("x", (1, "N")), value("y", None), value("z", ("N",), TensorProto.INT64)]
    given = {"x": np.zeros((2, 3), F), "y": np.zeros(2, np.float64), "z": [F([1])], "other": F([1])}
    assert wrong_shapes(declared, given) == {"x": "declared with shape [1, N] but has shape [2, 3]"}
    assert wrong_types(declared, given) == {"y": "declared with type float32 but has type float64"}
    assert wrong_shapes(declared, {"x": np.zeros((1, 3, 1), F)}).keys() == {"x"}
    assert wrong_shapes(declared, {"x": np.zeros((1, 5), F)}) == wrong_types(declared, {"x": np.zeros((1, 5), F)}) == {}
