"""A save that is killed at any moment leaves the old file or the new one, whole."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("saving_worker.py")
# What a killed save may leave: a name that nobody takes for a model, and that says whose it is.
LEFT = re.compile(r"\.splitgraph-[0-9a-f]{16}\.(tmp|old)")


def killed_saves(folder: Path, moments: int, place: str) -> list[dict[str, Any]]:
    """What was found after saves that were killed, each at another moment."""
    ran = subprocess.run(
        [sys.executable, WORKER, folder, str(moments), place],
        cwd=CHECKOUT,
        env={"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("place", ["beside", "in-place"])
@pytest.mark.parametrize("moments", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_a_save_is_killed_at_any_moment(moments: int, place: str, tmp_path: Path) -> None:
    found = killed_saves(tmp_path, moments, place)
    assert len(found) == moments
    for each in found:
        assert each["target"] in ("old", "new")
        assert all(LEFT.fullmatch(name) for name in each["left"])
        assert each["next"] == "new"
    assert found[0]["killed"]
    assert found[0]["target"] == "old"
