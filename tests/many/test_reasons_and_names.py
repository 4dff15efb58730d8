"""What a call with many models tells of results that were not verified, and the names that it does not take."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest
from command_line.program import Run, split_model

from splitgraph.findings.diagnostics import diagnostic
from splitgraph.findings.outcome import Outcome
from splitgraph.many.plan import Limits, plan_jobs
from splitgraph.many.sources import find_sources
from splitgraph.reports.batch_pages import outcome_lines, summary_page
from splitgraph.reports.printing import print_result
from splitgraph.work.task import FileTask

UPGRADE = ("upgrade", "--opset", "18", "--no-verify")


def why(code: str) -> Outcome:
    found = (
        diagnostic("SG405", "something else", severity="warning"),
        diagnostic(code, "no engine", severity="warning"),
    )
    return Outcome("upgrade", "a.onnx", "converted", diagnostics=found, verdict="not-run", said="NOT VERIFIED")


def test_why_a_result_is_not_verified(capsys: pytest.CaptureFixture[str]) -> None:
    equal = Outcome("upgrade", "b.onnx", "converted", verdict="equal", said="verified equal")
    outcomes = [why("SG501"), why("SG501"), why("SG506"), equal]
    print_result([block for outcome in outcomes for block in outcome_lines(outcome)])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        *(f"converted a.onnx · NOT VERIFIED|{code} no engine".split("|") for code in ("SG501", "SG501", "SG506")),
        ["converted b.onnx · verified equal"],
    ] or lines == [
        *("converted a.onnx · NOT VERIFIED", "SG501 no engine") * 2,
        *("converted a.onnx · NOT VERIFIED", "SG506 no engine"),
        "converted b.onnx · verified equal",
    ]
    print_result(summary_page("upgrade", outcomes, seconds=1, resumed=0))
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "converted 4" in rows
    assert "not-run 3 of those converted: SG501 2, SG506 1" in rows


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome("upgrade", "b.onnx", "converted", verdict="equal"),
        # The caller does not want to know.
        Outcome("upgrade", "b.onnx", "converted"),
        Outcome("upgrade", "b.onnx", "unchanged"),
        Outcome("infer", "b.onnx", "clean"),
    ],
)
def test_nothing_is_said_of_what_is_verified_or_need_not_be(
    outcome: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    print_result([*outcome_lines(outcome), *summary_page("upgrade", [outcome], seconds=1, resumed=0)])
    assert "not verified" not in capsys.readouterr().out.lower()


def test_a_folder_that_is_closed_fails_alone(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = os.scandir

    def closed(path: str | os.PathLike[str]) -> object:
        if os.path.basename(path) == "deep":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", closed)
    for argument in ("zoo", "zo?", "zoo/**"):
        plan = plan_jobs(FileTask("infer"), find_sources([argument]), Limits(), None)
        assert [job.model for job in plan.jobs] == ["zoo/a.onnx"]
        assert [outcome.diagnostics[0].message for outcome in plan.failed] in (
            ["the folder zoo/deep cannot be read: Permission denied"],
            # glob looks into folders, too, and keeps silent about those that it cannot read.
            [],
        )
        assert argument == "zoo/**" or plan.failed


@pytest.mark.parametrize(
    "files",
    [
        ["--report", "out/r.jsonl"],
        ["--junit", "out/r.xml"],
        ["--report", "out/logs/r.jsonl", "--junit", "out/logs/r.xml"],
        ["--report", "./out/../out/r.jsonl"],
    ],
)
def test_reports_in_the_folder_that_the_call_makes(files: list[str], run: Run, zoo: Path) -> None:
    assert run(*UPGRADE, "zoo", "-o", "out", *files)[0] == 0
    assert all(os.path.isfile(file) for file in files[1::2])
    assert os.path.isfile("out/deep/b.onnx")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (
            ["upgrade", "--opset", "18", "zoo/a.onnx", "zoo/deep/b.onnx", "-o", "one.onnx"],
            "one.onnx is the name of a file",
        ),
        (["infer", "zoo", "-o", "one.xml"], "one.xml is the name of a file"),
        (["report", "zoo", "-o", "site.html"], "site.html is the name of a file"),
        (["convert", "--to", "slice", "zoo/*.onnx", "-o", "out/one.onnx"], "out/one.onnx is the name of a file"),
        (["infer", "zoo", "--report", "x.html"], "use splitgraph report MODEL -o FILE for a page"),
        (["infer", "zoo", "--report", "x.xml"], "use --junit FILE for JUnit XML"),
        (["infer", "zoo", "--report", "x.onnx"], "x.onnx is a name for a model"),
        (["infer", "zoo", "--report", "x.svg"], "x.svg is a name for a picture"),
        (["infer", "zoo", "--junit", "x.json"], "--junit writes JUnit XML, and x.json is a name for JSON"),
        (["infer", "zoo", "--junit", "x.jsonl"], "use --report FILE for lines of JSON"),
        (["infer", "zoo", "--junit", "x.html"], "x.html is a name for a page"),
        (["infer", "zoo/a.onnx", "--report", "x.HTML"], "x.HTML is a name for a page"),
        (["infer", "zoo/a.onnx", "-o", "x.html"], "use splitgraph report MODEL -o FILE for a page"),
        (["infer", "zoo/a.onnx", "-o", "x.jsonl"], "x.jsonl is a name for lines of JSON"),
        (["upgrade", "--opset", "18", "zoo/a.onnx", "-o", "x.npz"], "x.npz is a name for arrays"),
        (["report", "zoo/a.onnx", "-o", "x.onnx"], "x.onnx is a name for a model"),
        (["report", "zoo/a.onnx", "-o", "x.xml"], "x.xml is a name for OpenVINO IR"),
        (["report", "zoo/a.onnx", "-o", "x.json"], "x.json is a name for JSON"),
        (["infer", "zoo", "--report", "taken.jsonl", "--resume"], "taken.jsonl is no report of splitgraph"),
    ],
)
def test_names_of_other_kinds_of_files(typed: list[str], told: str, run: Run, zoo: Path) -> None:
    Path("taken.jsonl").write_text("no report\n")
    before = sorted(os.listdir("."))
    code, out, err = run(*typed)
    assert (code, out) == (2, "")
    assert told in " ".join(err.split())
    assert sorted(os.listdir(".")) == before


@pytest.mark.parametrize(
    ("typed", "file"),
    [
        (["infer", "zoo", "--report", "r"], "r"),
        (["infer", "zoo", "--report", "r.json"], "r.json"),
        (["infer", "zoo", "--report", "r.log"], "r.log"),
        (["infer", "zoo", "--junit", "r.junit"], "r.junit"),
        (["infer", "zoo/a.onnx", "-o", "model"], "model"),
        (["infer", "zoo", "-o", "one.onnx/"], "one.onnx/a.onnx"),
        (["infer", "zoo", "-o", "v1.2"], "v1.2/a.onnx"),
        (["report", "zoo/a.onnx", "-o", "page.htm"], "page.htm"),
    ],
)
def test_names_that_are_taken(typed: list[str], file: str, run: Run, zoo: Path) -> None:
    assert run(*typed)[0] == 0
    assert os.path.isfile(file)


@pytest.mark.parametrize(
    ("call", "beside", "left_out"),
    [
        (["upgrade", "--opset", "20"], "a.opset18.onnx", True),
        (["downgrade", "--opset", "11"], "a.opset18.split.onnx", True),
        (["convert", "--to", "slice"], "a.slice.onnx", True),
        (["convert", "--to", "slice"], "a.openvino@2023.3.onnx", True),
        (["convert", "--target", "openvino"], "a.opset13.openvino.onnx", True),
        # As wanted already, so that nothing is in the way.
        (["upgrade", "--opset", "18"], "a.opset18.onnx", False),
        (["convert", "--to", "slice"], "other.slice.onnx", False),
        (["convert", "--to", "slice"], "a.int8.onnx", False),
        (["convert", "--to", "slice"], "a.opsetx.onnx", False),
        (["convert", "--to", "slice", "-o", "out"], "a.slice.onnx", False),
        (["infer"], "a.slice.onnx", False),
    ],
)
@pytest.mark.sample(4)
def test_results_of_earlier_calls(call: list[str], beside: str, left_out: bool, run: Run, zoo: Path) -> None:
    onnx.save(split_model(18, num_outputs=2), f"zoo/{beside}")
    dry = [] if call[0] == "infer" else ["--no-verify", "--dry-run"]
    _, out, err = run(*call, "zoo", *dry)
    assert (f"left out 1 result of earlier calls, beside the models: zoo/{beside}" in " ".join(err.split())) == left_out
    assert (f"zoo/{beside} · " not in out) == left_out
