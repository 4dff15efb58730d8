"""The checks of `pipeline_checks`, run in one process of their own: OpenVINO may crash, and costs every process."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
CHECKS = [
    node.name
    for node in ast.parse((FOLDER / "pipeline_checks.py").read_text("utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
]


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    """What each check has to say, "" for one that passed."""
    command = [sys.executable, str(FOLDER / "run_checks.py"), "pipeline_checks"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr
    results: dict[str, str] = json.loads(ran.stdout)
    return results


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.sample(4)
def test_in_a_pipeline(check: str, told: dict[str, str]) -> None:
    assert told[check] == "", told[check]
