"""Edits that let an engine read a model and leave its meaning alone."""

from __future__ import annotations

from dataclasses import replace

import onnx
import pytest
from onnx import helper

from splitgraph.model.schemas import version_at
from splitgraph.verification.models import model_files
from splitgraph.verification.models.model_files import name_omitted_outputs, oldest_equal_opset, relabel, scoped_nodes

from ..small_models import graph_of, model_of, node, split_model, value


def one(op_type: str, opset: int, inputs: int = 1) -> onnx.ModelProto:
    return model_of([node(op_type, ["x"] * inputs, ["y"])], [value("x")], ["y"], opset=opset)


RELABELLED = [
    # operator, inputs, opset, the oldest that is the same
    ("Relu", 1, 20, 6),  # 13 and 14 added types and nothing else
    ("Erf", 1, 12, 9),
    ("Where", 3, 20, 9),  # 16 added bfloat16 and nothing else
    ("Equal", 2, 20, 7),
    ("Softmax", 1, 13, 13),
    ("Softmax", 1, 12, 11),  # 11 allowed a negative axis
    ("Split", 1, 18, 18),
    ("Split", 1, 17, 13),
    ("GridSample", 2, 17, 16),
    ("NotAnOperator", 1, 15, 15),
]


@pytest.mark.parametrize(("operator", "inputs", "opset", "oldest"), RELABELLED)
def test_the_oldest_opset_with_the_same_operators(operator: str, inputs: int, opset: int, oldest: int) -> None:
    assert oldest_equal_opset(one(operator, opset, inputs)) == oldest


def test_a_version_that_the_installed_onnx_does_not_have_is_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of it, onnx gives its newest one, which may mean something else."""
    newer = replace(version_at("", "ArgMax", 13), since_version=29)
    monkeypatch.setattr(model_files, "version_at", lambda *_: newer)
    assert oldest_equal_opset(one("ArgMax", 29)) == 29


@pytest.mark.parametrize(("opset", "to", "becomes"), [(20, 19, 19), (20, 18, 18), (20, 26, 20), (20, 17, 20)])
def test_a_model_is_relabelled_only_where_nothing_changes(opset: int, to: int, becomes: int) -> None:
    model = split_model(opset, num_outputs=2)
    assert relabel(model, to, model.ir_version) is (becomes != opset)
    assert model.opset_import[0].version == becomes


def test_a_newer_ir_version_is_lowered() -> None:
    model = one("Relu", 14)
    model.ir_version = 13
    assert relabel(model, 26, 10)
    assert model.ir_version == 10
    assert not relabel(model, 26, 10)


def nested() -> onnx.ModelProto:
    """Splits in the main graph, in both branches of an If, and in a function of an older opset."""
    split = node("Split", ["x"], ["a", ""])
    branch = graph_of([node("Split", ["x"], ["", "inner"])], [], ["inner"], name="branch")
    choice = node("If", ["c"], ["d"], then_branch=branch, else_branch=branch)
    function = helper.make_function(
        "local", "F", ["x"], ["p"], [node("Split", ["x"], ["p", ""])], [helper.make_opsetid("", 13)]
    )
    call = helper.make_node("F", ["x"], ["e"], domain="local")
    return model_of(
        [split, choice, call],
        [value("x"), value("c", (), onnx.TensorProto.BOOL)],
        ["a", "d", "e"],
        functions=[function],
        domains={"local": 1},
    )


def test_nodes_of_every_scope_come_with_their_opset() -> None:
    found = [(each.op_type, imports[""]) for each, imports in scoped_nodes(nested())]
    assert found == [("Split", 18), ("If", 18), ("Split", 18), ("Split", 18), ("F", 18), ("Split", 13)]


def test_omitted_outputs_get_names_of_their_own() -> None:
    model = nested()
    model.graph.node[0].output[0] = "omitted_1"
    name_omitted_outputs(model)
    outputs = [name for each, _ in scoped_nodes(model) if each.op_type == "Split" for name in each.output]
    assert outputs == ["omitted_1", "omitted_0", "omitted_2", "inner", "omitted_3", "inner", "p", "omitted_4"]
