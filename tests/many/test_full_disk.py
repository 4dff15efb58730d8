"""Reports that a batch writes on a full disk: the old file stays or the new one is there, whole. A limit of the size of
files stands for the disk.
"""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line.program import Run

from splitgraph.commands.batch import write_index
from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.findings.outcome import Outcome
from splitgraph.many.reports import ReportFile, read_report, write_junit

OLD = "<old/>\n"
OUTCOMES = [Outcome("infer", f"{name}.onnx", "clean", seconds=1.0) for name in "abc"]


@contextmanager
def room_for(most: int) -> Iterator[None]:
    """No file of this process takes more bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def begin_report(folder: Path) -> None:
    ReportFile(folder / "written", OUTCOMES).close()


# What is written, and to which file of a folder.
WRITTEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "JUnit": (lambda folder: write_junit(folder / "written", "infer", OUTCOMES, 1), "written"),
    "JUnit of nothing": (lambda folder: write_junit(folder / "written", "infer", [], 1), "written"),
    "what is kept of a report": (begin_report, "written"),
    "the page of many models": (lambda folder: write_index(folder, OUTCOMES, title=None), "index.html"),
}


@pytest.mark.parametrize(("write", "name"), WRITTEN.values(), ids=WRITTEN)
def test_the_old_file_stays(write: Callable[[Path], None], name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(OLD)
    with room_for(100), pytest.raises(SplitgraphError, match="cannot be written: File too large") as caught:
        write(tmp_path)
    assert caught.value.diagnostics[0].code == "SG109"
    assert (tmp_path / name).read_text() == OLD
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(("write", "name"), WRITTEN.values(), ids=WRITTEN)
def test_nothing_is_left_where_nothing_was(write: Callable[[Path], None], name: str, tmp_path: Path) -> None:
    with room_for(100), pytest.raises(SplitgraphError, match="cannot be written"):
        write(tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("write", "name"), WRITTEN.values(), ids=WRITTEN)
def test_what_fits_replaces_the_file_behind_a_link(write: Callable[[Path], None], name: str, tmp_path: Path) -> None:
    (tmp_path / "old").write_text(OLD)
    os.chmod(tmp_path / "old", 0o600)
    (tmp_path / name).symlink_to("old")
    write(tmp_path)
    assert (tmp_path / name).is_symlink()
    assert (tmp_path / "old").read_text() != OLD
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == sorted([name, "old"])


def test_a_report_has_whole_lines_only(tmp_path: Path) -> None:
    report = ReportFile(tmp_path / "r.jsonl")
    report.add(OUTCOMES[0])
    size = (tmp_path / "r.jsonl").stat().st_size
    with room_for(size + 20), pytest.raises(SplitgraphError, match=r"r\.jsonl cannot be written: File too large"):
        report.add(OUTCOMES[1])
    assert (tmp_path / "r.jsonl").stat().st_size == size
    report.add(OUTCOMES[2])
    report.close()
    lines = (tmp_path / "r.jsonl").read_text().splitlines()
    assert [json.loads(line)["model"] for line in lines] == ["a.onnx", "c.onnx"]
    assert read_report(tmp_path / "r.jsonl") == [OUTCOMES[0], OUTCOMES[2]]


@pytest.mark.parametrize("arguments", [["-o", "page.html"], ["--svg", "s", "-o", "page.html"]])
def test_a_page_that_does_not_fit(arguments: list[str], run: Run, zoo: Path) -> None:
    Path("page.html").write_text(OLD)
    with room_for(100):
        code, _, err = run("report", "zoo/a.onnx", *arguments, "--force")
    assert (code, "page.html: cannot be written: File too large" in err) == (2, True)
    assert Path("page.html").read_text() == OLD


def test_a_batch_tells_of_its_models_all_the_same(run: Run, zoo: Path) -> None:
    Path("r.xml").write_text(OLD)
    with room_for(100):
        code, out, err = run("infer", "zoo", "--junit", "r.xml", "--force", "--json", "--jobs", "1")
    assert (code, "r.xml: cannot be written: File too large" in err) == (2, True)
    assert len(json.loads(out)["models"]) == 3
    assert Path("r.xml").read_text() == OLD
