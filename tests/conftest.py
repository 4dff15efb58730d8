"""What all tests have in common: hundreds of processes that they start find splitgraph compiled."""

from __future__ import annotations

import compileall
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "splitgraph"


def pytest_configure(config: pytest.Config) -> None:
    """Where PYTHONDONTWRITEBYTECODE is set, each process would compile the package anew, longer than it then works.

    Once, before the workers start; what is compiled and has not changed since stays as it is.
    """
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(PACKAGE, quiet=2)
