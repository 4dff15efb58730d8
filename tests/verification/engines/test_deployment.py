"""Whether the result loads in onnxruntime as a deployment loads it, with an optimiser that fails as it is told to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from verifying import verify_models

from splitgraph.verification import worker
from splitgraph.verification.engine_settings import EngineSettings
from splitgraph.verification.engines.engine_process import EngineFailure, EngineRun, Workplace, _collect
from splitgraph.verification.engines.onnxruntime_engine import LEVELS, session_at
from splitgraph.verification.verdict.judge import deployment_note

from ..small_models import split_model

ALL, EXTENDED, BASIC, NONE = LEVELS
BEFORE, AFTER = split_model(13), split_model(18, num_outputs=2)

# At which levels loading the first and the second model fails; what is reported.
FAILING = {
    "none": (set(), set(), None),
    "the default": (set(), {ALL}, EXTENDED),
    "two levels": (set(), {ALL, EXTENDED}, BASIC),
    "every level": (set(), {ALL, EXTENDED, BASIC}, NONE),
    "both at the default": ({ALL}, {ALL}, EXTENDED),
    "both, the one before less": ({ALL}, {ALL, EXTENDED}, BASIC),
    "the one before alone": ({ALL}, set(), None),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", FAILING)
def test_a_failure_of_the_optimiser_is_a_warning_that_names_what_works(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after, works = FAILING[name]

    def load(level: str, path: Path, folder: Path | None, settings: EngineSettings) -> Any:
        if level in (before if path.stem == "model_0" else after):
            raise RuntimeError("[ONNXRuntimeError] : 1 : FAIL : a fusion left an edge")
        return session_at(level, path, folder, settings)

    monkeypatch.setattr(worker, "session_at", load)
    found = verify_models(BEFORE, AFTER, engine="onnxruntime")
    assert found.verdict == "equal"
    assert [(each.code, each.severity) for each in found.diagnostics] == ([("SG508", "warning")] if works else [])
    for each in found.warnings:
        assert each.message.startswith(f"onnxruntime loads the result with {works}, but not with its default, {ALL}: ")
        assert "a fusion left an edge" in each.message
        assert ("The first model fails in the same way" in each.message) == (ALL in before)
        assert f"graph_optimization_level to {works}" in each.help


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
def test_only_onnxruntime_is_asked_and_only_once(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[tuple[str, str]] = []

    def load(level: str, path: Path, folder: Path | None, settings: EngineSettings) -> Any:
        loaded.append((level, path.stem))
        return session_at(level, path, folder, settings)

    monkeypatch.setattr(worker, "session_at", load)
    assert verify_models(BEFORE, AFTER, engine=engine).verdict == "equal"  # type: ignore[arg-type]
    assert loaded == ([(ALL, "model_1")] if engine == "onnxruntime" else [])


def test_a_result_that_differs_is_not_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Workplace, *_: object, **options: object) -> EngineRun:
        return EngineRun(
            failures=[EngineFailure("load", 1, None, True, "invalid", invalid=True)], undeployed={1: {ALL: "invalid"}}
        )

    monkeypatch.setattr(Workplace, "run", run)
    found = verify_models(BEFORE, AFTER, engine="onnxruntime")
    assert "SG508" not in {each.code for each in found.diagnostics}


EVENTS = """{"event": "start", "stage": "deploy", "model": 1, "level": "ORT_ENABLE_ALL"}
"""
ENDS = {
    "a crash": ("crashed (SIGSEGV)", {1: {ALL: "crashed (SIGSEGV)"}}),
    "no time": ("did not finish within 3 seconds", {}),
    "a kill": ("ended with exit status 1", {}),
}


@pytest.mark.parametrize("name", ENDS)
def test_an_optimiser_that_crashes_ends_nothing_else(name: str, tmp_path: Path) -> None:
    abnormal, undeployed = ENDS[name]
    (tmp_path / "events.jsonl").write_text(EVENTS)
    found = _collect(tmp_path, abnormal, 1 << 30)
    assert (found.undeployed, found.failures) == (undeployed, [])


def test_nothing_is_said_of_a_result_that_loads() -> None:
    assert deployment_note(EngineRun()) is None
    assert deployment_note(EngineRun(undeployed={0: {ALL: "fails"}})) is None
    assert deployment_note(EngineRun(deviating={0: "gives other outputs", 1: "gives other outputs"})) is None


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("deviating", ["second", "both"])
def test_an_optimiser_that_changes_the_outputs_is_a_warning(deviating: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(level: str, path: Path, folder: Path | None, settings: EngineSettings) -> Any:
        session = session_at(level, path, folder, settings)
        return session if path.stem == "model_0" and deviating == "second" else _Doubling(session)

    monkeypatch.setattr(worker, "session_at", load)
    found = verify_models(BEFORE, AFTER, engine="onnxruntime")
    assert found.verdict == "equal"
    assert [each.code for each in found.diagnostics] == (["SG508"] if deviating == "second" else [])
    assert all("gives other outputs: at [0, 0]" in each.message for each in found.diagnostics)


class _Doubling:
    """A session that doubles each output."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run(self, *given: Any) -> list[Any]:
        return [2 * output for output in self._session.run(*given)]
