"""A save that is killed at any moment leaves the old file or the new one, whole; the next one removes what it left."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from splitgraph.formats.atomic_write import WriteTogether, remove_abandoned
from splitgraph.ownership import owned

CHECKOUT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("saving_worker.py")
# What a killed save may leave: a name that nobody takes for a model, and that says whose it is.
LEFT = re.compile(r"\.splitgraph-[0-9a-f]{16}(-0\.(tmp|old)|\.owner(-new)?)")


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
        assert each["left by the next"] == []
    # Few moments may all be early ones.
    assert moments < 200 or any(each["left"] for each in found)
    assert found[0]["killed"]
    assert found[0]["target"] == "old"


def test_only_what_a_process_that_is_gone_left_is_removed(tmp_path: Path) -> None:
    of_nobody = [".splitgraph-data", ".splitgraph-00-0.old", "model.owner"]
    of_the_dead = [".splitgraph-11-0.tmp", ".splitgraph-11-1.old", ".splitgraph-11.owner", ".splitgraph-33.owner-new"]
    of_the_living = [".splitgraph-22-0.tmp", ".splitgraph-22.owner"]
    for name in [*of_nobody, *of_the_dead, of_the_living[0]]:
        (tmp_path / name).touch()
    with owned(tmp_path / of_the_living[1]):
        remove_abandoned.cache_clear()
        with WriteTogether() as files, files.open(tmp_path / "new") as file:
            file.write(b"new")
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*of_nobody, *of_the_living, "new"])


def test_a_folder_that_cannot_be_listed(tmp_path: Path) -> None:
    remove_abandoned(str(tmp_path / "nowhere"))
    assert list(tmp_path.iterdir()) == []
