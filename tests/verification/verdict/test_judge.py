"""What verification makes of engines that refuse, crash or disagree, with engines that are made up."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from verifying import verify_models

from splitgraph.verification.engines.engine_process import EngineFailure, EngineRun, Workplace

from ..small_models import halves, split_model

Answer = Callable[[list[Any]], EngineRun]


def output(case: int) -> list[np.ndarray]:
    """What the model gives: something else for each case, or it would show nothing."""
    return [np.full((1, 2, 4), case, np.float32), np.full((1, 2, 4), -case, np.float32)]


def answers(attempts: list[Any]) -> EngineRun:
    """Both models give the same, and the first something else with other weights."""
    run = EngineRun()
    for attempt in attempts:
        for outputs in run.outputs:
            outputs[attempt.case, attempt.attempt] = output(attempt.case)
    return run


def crashes_on_the_second(attempts: list[Any]) -> EngineRun:
    run = EngineRun()
    run.outputs[0][0, 0] = output(0)
    run.failures.append(EngineFailure("run", 1, 0, True, "crashed (SIGSEGV)"))
    return run


def refuses_the_second(attempts: list[Any]) -> EngineRun:
    run = crashes_on_the_second(attempts)
    run.failures[:] = [EngineFailure("run", 1, 0, False, "the lengths do not sum")]
    return run


def refuses_the_second_at_times(attempts: list[Any], reason: str = "5 does not divide into 2") -> EngineRun:
    """The second case; the last one is what the engine lacks something for."""
    run = answers(attempts)
    for case, unsupported, said in ((1, False, reason), (2, True, "not supported")):
        del run.outputs[1][case, 0]
        run.failures.append(EngineFailure("run", 1, case, unsupported, said))
    return run


def refuses_empty_parts(attempts: list[Any]) -> EngineRun:
    run = refuses_the_second_at_times(attempts, "Invalid num_outputs value of 4. Size of dimension being split is 2")
    del run.failures[1]
    return run


def crashes_at_times(attempts: list[Any]) -> EngineRun:
    run = answers(attempts)
    del run.outputs[1][1, 0]
    run.failures.append(EngineFailure("run", 1, 1, True, "crashed (SIGSEGV)"))
    return run


def cannot_load_the_second(attempts: list[Any]) -> EngineRun:
    return EngineRun(failures=[EngineFailure("load", 1, None, True, "NOT_IMPLEMENTED")])


def calls_the_second_invalid(attempts: list[Any]) -> EngineRun:
    run = EngineRun(failures=[EngineFailure("load", 1, None, True, "Split '': has 3 inputs", invalid=True)])
    run.outputs[0].update({(attempt.case, attempt.attempt): output(attempt.case) for attempt in attempts})
    return run


def calls_both_invalid(attempts: list[Any]) -> EngineRun:
    return EngineRun(failures=[EngineFailure("load", 0, None, True, "Split '': has 3 inputs", invalid=True)])


def refuses_the_first(attempts: list[Any]) -> EngineRun:
    return EngineRun(
        failures=[EngineFailure("run", 0, attempt.case, False, "index out of range") for attempt in attempts]
    )


def differs(attempts: list[Any]) -> EngineRun:
    run = answers(attempts)
    run.outputs[1][0, 0] = [output(0)[0] + np.float32(1), output(0)[1]]
    return run


def gives_doubles(attempts: list[Any]) -> EngineRun:
    run = answers(attempts)
    for outputs in run.outputs:
        outputs[0, 0] = [output(0)[0].astype(np.float64), output(0)[1]]
    return run


DECISIONS: list[tuple[Answer, Answer, str, str]] = [
    # onnxruntime, reference, verdict, engine
    (answers, differs, "equal", "onnxruntime"),
    (differs, answers, "different", "onnxruntime"),
    (crashes_on_the_second, answers, "equal", "reference"),
    (crashes_on_the_second, crashes_on_the_second, "not-run", ""),
    (cannot_load_the_second, differs, "different", "reference"),
    (cannot_load_the_second, cannot_load_the_second, "not-run", ""),
    (refuses_the_first, answers, "equal", "reference"),
    (refuses_the_first, refuses_the_first, "not-run", ""),
    (gives_doubles, answers, "equal", "reference"),
    (gives_doubles, gives_doubles, "not-run", ""),
    (calls_both_invalid, calls_both_invalid, "not-run", ""),
    (calls_both_invalid, answers, "equal", "reference"),
    (calls_the_second_invalid, answers, "different", "onnxruntime"),
    (calls_the_second_invalid, differs, "different", "onnxruntime"),
    (calls_the_second_invalid, crashes_on_the_second, "different", "onnxruntime"),
    (cannot_load_the_second, calls_the_second_invalid, "different", "reference"),
    (refuses_the_second, answers, "equal", "reference"),
    (refuses_the_second, differs, "different", "reference"),
    (refuses_the_second, crashes_on_the_second, "different", "onnxruntime"),
    (crashes_on_the_second, refuses_the_second, "different", "reference"),
    (refuses_the_second, refuses_the_first, "different", "onnxruntime"),
    (refuses_the_second, refuses_the_second, "different", "onnxruntime"),
    (refuses_the_second_at_times, answers, "different", "onnxruntime"),
    (refuses_the_second_at_times, cannot_load_the_second, "different", "onnxruntime"),
    (cannot_load_the_second, refuses_the_second_at_times, "different", "reference"),
    (crashes_at_times, answers, "equal", "reference"),
    (crashes_at_times, refuses_the_second_at_times, "different", "reference"),
    (refuses_empty_parts, answers, "equal", "reference"),
    (refuses_empty_parts, crashes_on_the_second, "different", "onnxruntime"),
    (refuses_empty_parts, refuses_the_second_at_times, "different", "onnxruntime"),
]
# What these say of the second model is final where onnxruntime says it, which is then no engine that failed.
FINAL = (calls_the_second_invalid, refuses_the_second_at_times)


@pytest.mark.parametrize(("onnxruntime", "reference", "verdict", "engine"), DECISIONS)
def test_how_engines_decide(
    monkeypatch: pytest.MonkeyPatch, onnxruntime: Answer, reference: Answer, verdict: str, engine: str
) -> None:
    made = {"onnxruntime": onnxruntime, "reference": reference}
    monkeypatch.setattr(Workplace, "run", lambda self, name, attempts, seconds, **options: made[name](attempts))
    found = verify_models(halves(), halves())
    assert (found.verdict, found.engine) == (verdict, engine), found
    failed = [name for name in made if any(d.message.startswith(name) for d in found.diagnostics)]
    expected = [name for name, answer in made.items() if answer not in (answers, differs)]
    assert failed == ([] if onnxruntime in FINAL else expected)


def test_where_the_second_model_fails_is_said_with_what_was_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Workplace, "run", lambda self, name, attempts, seconds, **options: refuses_the_second_at_times(attempts)
    )
    found = verify_models(halves(), halves())
    assert (found.verdict, found.engine, found.cases, found.max_abs_diff) == ("different", "onnxruntime", 1, 0.0)
    assert found.first_difference is not None
    assert (found.first_difference.name, found.first_difference.case) == ("", 1)
    assert found.first_difference.reason.endswith("that the first one runs on: 5 does not divide into 2")
    assert found.diagnostics == ()


def test_the_reference_evaluator_is_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"reference": refuses_the_second_at_times, "onnxruntime": answers}
    monkeypatch.setattr(Workplace, "run", lambda self, name, attempts, seconds, **options: made[name](attempts))
    found = verify_models(split_model(6), split_model(6))
    assert (found.verdict, found.engine) == ("equal", "onnxruntime")


@pytest.mark.parametrize(("accepted", "verdict"), [(1, "different"), (99, "not-run")])
def test_an_invalid_second_model_is_told_as_soon_as_the_first_one_runs(
    monkeypatch: pytest.MonkeyPatch, accepted: int, verdict: str
) -> None:
    def run(self: Workplace, name: str, attempts: list[Any], seconds: float, **options: Any) -> EngineRun:
        found = calls_the_second_invalid([each for each in attempts if each.attempt >= accepted])
        found.failures.extend(
            EngineFailure("run", 0, each.case, False, "no") for each in attempts if each.attempt < accepted
        )
        return found

    monkeypatch.setattr(Workplace, "run", run)
    assert verify_models(halves(), halves()).verdict == verdict


@pytest.mark.parametrize(("opset", "first"), [(6, "reference"), (7, "onnxruntime")])
def test_the_order_of_the_engines(monkeypatch: pytest.MonkeyPatch, opset: int, first: str) -> None:
    asked: list[str] = []
    shares: list[float] = []

    def run(self: Workplace, name: str, attempts: list[Any], seconds: float, **options: Any) -> EngineRun:
        asked.append(name)
        shares.append(seconds)
        return cannot_load_the_second(attempts)

    monkeypatch.setattr(Workplace, "run", run)
    assert verify_models(split_model(opset), split_model(18, num_outputs=2), timeout=90).verdict == "not-run"
    assert (asked[0], len(asked)) == (first, 2)
    assert shares[0] <= 60 < shares[1] <= 90


def test_an_engine_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = verify_models(halves(), halves(), engine="onnxruntime")
    assert (found.verdict, found.diagnostics[0].message) == ("not-run", "onnxruntime: is not installed")
    assert {diagnostic.help for diagnostic in found.diagnostics} == {
        "Install it: pip install onnxruntime",
        "onnxruntime is not installed. Install it: pip install onnxruntime",
    }
    found = verify_models(halves(), halves(), samples=1)
    assert (found.verdict, found.engine, found.diagnostics) == ("equal", "reference", ())


@pytest.mark.parametrize(
    ("accepted", "groups"), [(0, [[0]]), (1, [[0], [1, 2]]), (3, [[0], [1, 2], list(range(3, 11))])]
)
def test_further_inputs_are_drawn_only_until_one_is_accepted(
    monkeypatch: pytest.MonkeyPatch, accepted: int, groups: list[list[int]]
) -> None:
    ran: list[list[int]] = []

    def run(self: Workplace, name: str, attempts: list[Any], seconds: float, **options: Any) -> EngineRun:
        ran.append(sorted({attempt.attempt for attempt in attempts}))
        refused = [EngineFailure("run", 0, each.case, False, "no") for each in attempts if each.attempt < accepted]
        found = answers([each for each in attempts if each.attempt == accepted])
        found.failures.extend(refused)
        return found

    monkeypatch.setattr(Workplace, "run", run)
    found = verify_models(halves(), halves())
    assert (found.verdict, found.cases, ran) == ("equal", 3, groups)
