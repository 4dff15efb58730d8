"""What the tests of several files of this folder are given."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from splitgraph.execution.engines import engine_process, worker

collect_ignore = [] if importlib.util.find_spec("openvino") else ["engines/test_openvino_engine.py"]


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the worker in this process, which saves the start of a child; for models that crash nothing."""

    def run_worker(folder: Path, seconds: float) -> str:
        worker.main(folder)
        return ""

    monkeypatch.setattr(worker, "_limit", lambda seconds, memory: None)
    monkeypatch.setattr(engine_process, "_run_worker", run_worker)
