"""The judge of opset conversions finds what it is there to find, and its workers survive what engines do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from splitgraph.conversion.opset import convert_opset
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.verification.engines.engine import Loaded

from . import opset_judge
from .model_cases import ModelCase, opset_of
from .opset_cases import WRAPS, Wrap, has_interface, node_cases, operators_of, wrapped
from .opset_judge import Judge, Status, Verdict, is_random
from .opset_report import faults, reasons, share, table, ways_of
from .opset_workers import Job, judge_all

X = np.array([-1.0, 0.0, 2.0], dtype=np.float32)
Y = np.abs(X)


def case(node: onnx.NodeProto | None = None, expected: Any = Y, opset: int = 13) -> ModelCase:
    """Abs, or another operator of one input and one output."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph([node or helper.make_node("Abs", ["x"], ["y"])], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return ModelCase("a_case", model, [([X], [expected])], 1e-3, 1e-7)


def other_operator(model: onnx.ModelProto) -> None:
    model.graph.node[0].op_type = "Neg"


def no_such_operator(model: onnx.ModelProto) -> None:
    model.graph.node[0].op_type = "Abz"


def other_opset(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 16


def newer_ir(model: onnx.ModelProto) -> None:
    model.ir_version = 9


def other_output(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = model.graph.node[0].output[0] = "z"


def other_type(model: onnx.ModelProto) -> None:
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE


def other_shape(model: onnx.ModelProto) -> None:
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 4


def fail(_: onnx.ModelProto) -> None:
    raise KeyError("a bug")


FAULTS: Sequence[tuple[Callable[[onnx.ModelProto], None], Status]] = (
    (other_operator, "wrong"),
    (no_such_operator, "invalid"),
    (other_opset, "invalid"),
    (newer_ir, "invalid"),
    (other_output, "invalid"),
    (other_type, "invalid"),
    (other_shape, "invalid"),
    (fail, "crashed"),
)


@pytest.mark.parametrize(("edit", "status"), FAULTS, ids=lambda given: getattr(given, "__name__", given))
def test_fault_is_found(monkeypatch: pytest.MonkeyPatch, edit: Callable[[onnx.ModelProto], None], status: str) -> None:
    def convert(model: onnx.ModelProto, target: int) -> Rewrite:
        rewrite = convert_opset(model, target)
        edit(rewrite.model)
        return rewrite

    monkeypatch.setattr(opset_judge, "convert_opset", convert)
    assert Judge(case()).judge(18).status == status


def test_change_of_the_given_model_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def convert(model: onnx.ModelProto, target: int) -> Rewrite:
        rewrite = convert_opset(model, target)
        model.graph.doc_string = "changed"
        return rewrite

    monkeypatch.setattr(opset_judge, "convert_opset", convert)
    assert "changed the model" in Judge(case()).judge(18).detail


def test_equal_and_refused() -> None:
    assert Judge(case()).judge(18) == Verdict("equal", engine="onnxruntime")
    unique = case(helper.make_node("Unique", ["x"], ["y"], axis=0), np.unique(X, axis=0))
    verdict = Judge(unique).judge(8)
    assert verdict.status == "refused"
    assert [code for code, _ in verdict.reasons] == ["SG404"]


def test_engine_that_differs_on_the_original_is_no_judge() -> None:
    assert Judge(case(expected=X)).judge(18).status == "doubtful"


def test_engine_that_runs_the_original_must_run_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(engine: str, path: Any) -> Any:
        if onnx.load(path).opset_import[0].version == 18:
            raise RuntimeError("bad model")
        return Loaded(lambda feeds, _: [np.abs(feeds["x"])])

    monkeypatch.setattr(opset_judge, "load_engine", load)
    assert Judge(case()).judge(18) == Verdict("invalid", "bad model", "onnxruntime")


def test_no_engine_is_no_judgement(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(engine: str, path: Any) -> Any:
        raise NotImplementedError("no kernel")

    monkeypatch.setattr(opset_judge, "load_engine", load)
    assert Judge(case()).judge(18).status == "unjudged"


def test_types_and_shapes_of_random_values_are_compared() -> None:
    node = helper.make_node("Bernoulli", ["x"], ["y"])
    assert is_random(case(node, opset=15).model)
    assert Judge(case(node, np.full(3, 7, np.float32), 15)).judge(18).status == "equal"
    assert Judge(case(node, np.zeros(4, np.float32), 15)).judge(18).status == "doubtful"
    training = helper.make_node("Dropout", ["x", "", "mode"], ["y"])
    assert is_random(case(training).model)
    assert not is_random(case(helper.make_node("Dropout", ["x"], ["y"])).model)


def test_there_and_back() -> None:
    assert Judge(case()).judge(28, 13).status == "equal"
    assert ways_of(case(), (12, 18), (12, 18), (13, 20)) == [
        ("up to 18", (18,)),
        ("down to 12", (12,)),
        ("20 and back", (20, 13)),
    ]


class Deadly:
    """Data that ends the process that reads it, as an engine may that runs on it."""

    def __iter__(self) -> Iterator[Any]:
        os._exit(3)


def test_workers_survive_a_crash() -> None:
    whole = case()
    jobs = [Job(whole, [(18,)]), Job(replace(whole, data_sets=Deadly()), [(18,), (17,)]), Job(whole, [(17,)])]
    verdicts = list(judge_all(jobs))
    assert [[verdict.status for verdict in found] for found in verdicts] == [["equal"], ["unjudged"] * 2, ["equal"]]


@pytest.mark.parametrize("wrap", WRAPS)
def test_wrapped_cases_are_valid_and_give_the_same(wrap: Wrap) -> None:
    named = {case.name: case for case in node_cases()}
    # Slice has no attributes that a call could give.
    plain, op_type = ("test_softmax_axis_0", "Softmax") if wrap == "references" else ("test_slice", "Slice")
    made = wrapped(named[plain], wrap)
    assert made is not None
    assert opset_of(made.model) == opset_of(named[plain].model)
    assert op_type in operators_of(made.model)
    around = {"if": "If", "function": "Wrapped", "references": "Wrapped"}
    assert [node.op_type for node in made.model.graph.node] == [around.get(wrap, op_type)]
    onnx.checker.check_model(made.model, full_check=True)
    assert Judge(made).judge(28).status == "equal"


@pytest.mark.parametrize(("opset", "possible"), [(18, False), (19, True)])
def test_type_of_an_input_that_does_not_exist_below_is_no_loss(opset: int, possible: bool) -> None:
    model = case(opset=21).model
    assert has_interface(model, 1)
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(model.graph.output[0].type))
    assert (has_interface(model, 10), has_interface(model, 11)) == (False, True)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT8E5M2
    assert has_interface(model, opset) == possible


def test_report() -> None:
    refusal = Verdict("refused", reasons=(("SG404", "Mish exists from opset 18 on and 'a'"), ("SG404", "Mish exists")))
    found = {
        "up to 18": [
            ("a", Verdict("equal")),
            ("b", refusal),
            ("c", refusal),
            ("four", Verdict("wrong", "four differs")),
        ]
    }
    assert share(found["up to 18"]) == 25
    assert [line.split() for line in table(found)][1][:5] == ["up", "to", "18", "4", "25.0%"]
    assert list(faults(found, "wrong")) == ["wrong up to 18: four: ... differs"]
    assert list(reasons(found["up to 18"])) == [
        "    2 (0 alone)  Mish@18: b, c",
        "           2  SG404 Mish exists from opset 18 on and '...'",
        "    2 (0 alone)  Mish@?: b, c",
        "           2  SG404 Mish exists",
    ]
