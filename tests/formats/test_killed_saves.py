"""A save that is killed at any moment leaves the old file or the new one, whole; the next one removes what it left.

10 moments by default and 60 with `-m slow`; `tests/campaigns/killed_saves.py` takes any number.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from killed_saves import PLACES, is_right, killed_saves

from splitgraph.formats.atomic_write import WriteTogether, remove_abandoned
from splitgraph.processes.folders import owned

# From here on, not all moments are early ones.
MANY = 60


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("moments", [5, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_save_is_killed_at_any_moment(moments: int, place: str, tmp_path: Path) -> None:
    found = killed_saves(tmp_path, moments, place)
    assert len(found) == moments
    assert [each for each in found if not is_right(each)] == []
    assert moments < MANY or any(each["left"] for each in found)
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
