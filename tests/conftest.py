"""What all tests have in common: processes that they start find splitgraph compiled, and engines that need none."""

from __future__ import annotations

import compileall
import os
from pathlib import Path
from typing import Any

import pytest
from product_samples import mark_rest_as_slow, of_part

PACKAGE = Path(__file__).resolve().parent.parent / "splitgraph"


def pytest_configure(config: pytest.Config) -> None:
    """Where PYTHONDONTWRITEBYTECODE is set, each process would compile the package anew, longer than it then works.

    Once, before the workers start; what is compiled and has not changed since stays as it is.
    """
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(PACKAGE, quiet=2)
    # The runtimes of the machine decide nothing in a test.
    for name in [name for name in os.environ if name.startswith("SPLITGRAPH_RUNTIME_")]:
        del os.environ[name]
    keep_engines()
    check_every_result()
    ask_every_equal()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Tests that take long are run in parts."""
    parser.addoption("--part", metavar="K/N", help="of the tests that are chosen, the K-th of N parts")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before `-m` chooses."""
    mark_rest_as_slow(items)
    if part := config.getoption("--part"):
        items[:], others = of_part(items, part)
        config.hook.pytest_deselected(items=others)


def check_every_result() -> None:
    """Infer the result of every rewrite in every test, also where splitgraph itself sees no need: an error that the
    model did not have raises InternalError.
    """
    from splitgraph import results

    results.has_new_numbers_only = lambda rewrite: False


def ask_every_equal() -> None:
    """Ask every "equal" of every test for its evidence."""
    from verification.evidence_of_equal import missing_evidence

    from splitgraph.verification import verify
    from splitgraph.verification.verification import Verification

    usual = verify._EngineQueue.run

    def run(queue: Any, *arguments: Any) -> Verification:
        found = usual(queue, *arguments)
        missing = missing_evidence(found, queue.question)
        assert not missing, f"equal without evidence: {missing}: {found}"
        return found

    verify._EngineQueue.run = run  # type: ignore[method-assign]


def keep_engines() -> None:
    """Let the processes of engines serve more than one test: pytest changes their environment with every test."""
    from splitgraph.processes import worker_process

    environment = worker_process.environment
    ignored = "PYTEST_CURRENT_TEST"
    worker_process.environment = lambda: {name: text for name, text in environment().items() if name != ignored}


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run engines in this process, which saves the start of a child; for models that crash nothing, where the process
    of an engine is not what a test is about.
    """
    from splitgraph.verification import worker
    from splitgraph.verification.engines import engine_process

    def run_worker(key: str, folder: Path, limits: object) -> str:
        worker.run_job_in(folder)
        return ""

    monkeypatch.setattr(engine_process, "_run_worker", run_worker)
    # Drawn values that take too long would end this process.
    monkeypatch.setattr(worker, "_LATE_SECONDS", 1e6)
