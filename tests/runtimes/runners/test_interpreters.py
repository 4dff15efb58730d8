"""Which Python runs a runtime."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.runtimes.runners.interpreters import KINDS, interpreter_for
from splitgraph.runtimes.target import targets


@pytest.fixture
def others(tmp_path: Path) -> dict[str, str]:
    """Other Pythons, by name; one has a name with a sign of its own."""
    made = {}
    for name in ("first", "second", "a=b"):
        path = tmp_path / name
        path.symlink_to(sys.executable)
        made[name] = str(path)
    return made


def test_this_python_is_the_default() -> None:
    assert interpreter_for(KINDS["opencv"]) == sys.executable


def test_the_variable_comes_before_the_default(others: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITGRAPH_RUNTIME_opencv", others["first"])
    # The link is kept: an environment is known by it.
    assert interpreter_for(KINDS["opencv"]) == others["first"]
    assert interpreter_for(KINDS["tract"]) == sys.executable


def test_what_the_caller_names_comes_first(others: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITGRAPH_RUNTIME_opencv", others["first"])
    opencv, tract = KINDS["opencv"], KINDS["tract"]
    assert interpreter_for(opencv, [others["second"]]) == others["second"]
    named = [f"tract={others['second']}"]
    assert (interpreter_for(opencv, named), interpreter_for(tract, named)) == (others["first"], others["second"])
    both = [others["first"], f"tract={others['second']}"]
    assert (interpreter_for(opencv, both), interpreter_for(tract, both)) == (others["first"], others["second"])
    assert interpreter_for(opencv, [others["a=b"]]) == others["a=b"]


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("no/such/python", "the Python 'no/such/python' is no program; give the path of a Python that has OpenCV"),
        ("opencv=no/such/python", "the Python 'no/such/python' is no program"),
        (os.devnull, "is no program"),
        ("rknn=python", "there is no runner for 'rknn'; there are: onnxruntime, openvino, opencv, tract, mnn, tvm"),
    ],
)
def test_a_python_that_does_not_exist(named: str, told: str) -> None:
    with pytest.raises(SplitgraphError, match=told):
        interpreter_for(KINDS["opencv"], [named])


def test_a_variable_that_names_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITGRAPH_RUNTIME_opencv", "no/such/python")
    with pytest.raises(SplitgraphError, match="of SPLITGRAPH_RUNTIME_opencv is no program"):
        interpreter_for(KINDS["opencv"])


def test_every_runner_is_of_a_target_and_has_a_program() -> None:
    names = {target.name for target in targets().values()}
    assert set(KINDS) <= names
    assert all(kind.program.exists() for kind in KINDS.values())
