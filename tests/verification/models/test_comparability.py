"""verify_models where nothing can be compared: models that have no meaning, no outputs, or no inputs that fit."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from verifying import verify_models

from splitgraph.verification.engines.engine_process import EngineFailure, EngineRun, Workplace

from ..small_models import constant, model_of, node, split_model, value

NOT_RUN: dict[str, tuple[onnx.ModelProto, onnx.ModelProto, str]] = {
    "the first model is invalid": (
        split_model(13, lengths=[1, 2], axis=1),
        split_model(13, axis=1),
        "the first model is invalid",
    ),
    "both lack the number of outputs": (split_model(18), split_model(18), "both models are invalid"),
    "an input too large": (split_model(13, dims=(1 << 30, 4)), split_model(13, dims=(1 << 30, 4)), "256 MiB"),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", NOT_RUN)
def test_what_cannot_be_run(name: str) -> None:
    before, after, reason = NOT_RUN[name]
    found = verify_models(before, after)
    assert (found.verdict, found.engine, found.cases, found.max_abs_diff) == ("not-run", "", 0, None)
    assert reason in found.diagnostics[-1].message
    assert found.diagnostics[-1].code == "SG501"


MEANINGLESS = {
    "an opset that does not exist": model_of([node("Relu", ["x"], ["y"])], [value("x")], ["y"], opset=99),
    "a cycle": model_of([node("Add", ["x", "y"], ["y"])], [value("x")], ["y"]),
    "a value that nothing defines": model_of([node("Add", ["x", "z"], ["y"])], [value("x")], ["y"]),
    "an input twice": model_of([node("Relu", ["x"], ["y"])], [value("x"), value("x")], ["y"]),
    "an output of two nodes": model_of([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])], [value("x")], ["y"]),
    "an initializer twice": model_of(
        [node("Add", ["x", "w"], ["y"])], [value("x")], ["y"], [constant("w", [number]) for number in (1, 2)]
    ),
}


@pytest.mark.parametrize("broken", MEANINGLESS.values(), ids=MEANINGLESS)
def test_a_model_without_meaning_is_not_compared(broken: onnx.ModelProto) -> None:
    plain = model_of([node("Relu", ["x"], ["y"])], [value("x")], ["y"])
    for models in ((broken, plain), (plain, broken)):
        found = verify_models(*models)
        assert (found.verdict, found.cases) == ("not-run", 0)
        assert "has no defined meaning" in found.diagnostics[0].message
        assert found.diagnostics[0].severity == "error"


def test_a_model_with_equal_initializers_of_one_name_is_compared() -> None:
    """It is a warning: runtimes load the model."""
    once, twice = (
        model_of([node("Add", ["x", "w"], ["y"])], [value("x")], ["y"], [constant("w", [1], np.float32)] * count)
        for count in (1, 2)
    )
    for models in ((once, twice), (twice, once)):
        assert verify_models(*models).verdict == "equal"


NOTHING_TO_COMPARE = {
    "has no graph": onnx.ModelProto(),
    "has no outputs": model_of([node("Relu", ["x"], ["y"])], [value("x")], []),
}


@pytest.mark.parametrize(("fault", "model"), NOTHING_TO_COMPARE.items())
def test_a_model_without_outputs_is_not_equal_to_itself(fault: str, model: onnx.ModelProto) -> None:
    found = verify_models(model, model)
    assert (found.verdict, found.cases, len(found.diagnostics)) == ("not-run", 0, 1)
    assert (found.diagnostics[0].code, found.diagnostics[0].severity) == ("SG501", "error")
    assert fault in found.diagnostics[0].message


WIDE = ("A", "B", "C", "D", "E")
# Gather takes every rank beyond its axis, so that it tells no rank.
FIRST = node("Constant", [], ["first"], value_int=0)
UNKNOWN_RANKS: dict[str, tuple[onnx.ModelProto, str, str]] = {
    "an input": (
        model_of([FIRST, node("Gather", ["x", "first"], ["y"], axis=2)], [value("x", None)], ["y"]),
        "the rank of the input 'x' is unknown",
        "inputs={'x': ...}",
    ),
    "an input beside one that would take gigabytes": (
        model_of(
            [FIRST, node("Gather", ["x", "first"], ["z"], axis=2), node("Neg", ["wide"], ["y"])],
            [value("wide", WIDE), value("x", None)],
            ["y", "z"],
        ),
        "the rank of the input 'x' is unknown",
        "inputs={'x': ...}",
    ),
    "a computed value": (
        model_of(
            [node("Squeeze", ["x"], ["s"]), node("Transpose", ["s"], ["y"], perm=[1, 0])],
            [value("x", WIDE)],
            ["y"],
        ),
        "no engine could run both models",
        "--bind",
    ),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", UNKNOWN_RANKS)
@pytest.mark.sample(1)
def test_a_rank_that_is_unknown_is_named_where_no_inputs_fit(name: str) -> None:
    model, reason, advice = UNKNOWN_RANKS[name]
    found = verify_models(model, model)
    assert (found.verdict, found.diagnostics[-1].code) == ("not-run", "SG501")
    assert reason in found.diagnostics[-1].message
    assert advice in found.diagnostics[-1].help
    assert not any("MiB" in finding.message for finding in found.diagnostics)


def test_memory_that_runs_out_is_the_reason_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = EngineFailure("run", 0, 0, True, "needs more than the 8 GiB of memory: std::bad_alloc")
    monkeypatch.setattr(
        Workplace, "run", lambda self, name, attempts, seconds, **options: EngineRun(failures=[failure])
    )
    model = split_model(13)
    found = verify_models(model, model)
    assert (found.verdict, found.diagnostics[-1].code) == ("not-run", "SG501")
    assert "within the memory limit" in found.diagnostics[-1].message
    assert "--bind" in found.diagnostics[-1].help


@pytest.mark.usefixtures("in_process")
def test_a_rank_that_is_unknown_is_not_blamed_where_an_engine_lacks_something() -> None:
    model = model_of([node("Unheard", ["x"], ["y"])], [value("x", None)], ["y"])
    assert verify_models(model, model).diagnostics[-1].message == "no engine could run both models"
