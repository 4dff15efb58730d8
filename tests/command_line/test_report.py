"""`splitgraph report`: one page for a model or a rewrite, one picture for a split; all or nothing."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest

from splitgraph import Change
from splitgraph.formats import open_model
from splitgraph.work.reporting import reasons

from .program import Run, files, split_model


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("report", "Give one MODEL or more, or two models with"),
        ("report -o r.html", "Give one MODEL or more, or two models with"),
        ("report --before model.onnx -o r.html", "Give one MODEL or more, or two models with"),
        ("report model.onnx --after model.onnx -o r.html", "Give one MODEL or more, or two models with"),
        ("report --before model.onnx --after model.onnx --svg s -o r.svg", "--svg draws a split of one model"),
        ("report model.onnx --svg t -o r.svg", "there is no split 't'"),
        ("report model.onnx --svg main/t -o r.svg", "did you mean 'main/s'"),
        ("report missing.onnx -o r.html", "no such file"),
        ("report empty.onnx -o r.html", "empty"),
        ("report model.onnx -o model.onnx --force", "-o writes a page, and model.onnx is a name for a model"),
        ("report model.onnx -o there.html", "pass --force to overwrite it"),
        ("report --before model.onnx --after missing.onnx -o r.html", "no such file"),
        ("report model.onnx -o nowhere/r.html", "does not exist"),
        ("report model.onnx -o -", "give the path of a file"),
    ],
)
def test_refusals_write_nothing(arguments: str, told: str, run: Run, folder: Path) -> None:
    Path("there.html").write_text("kept")
    Path("empty.onnx").write_bytes(b"")
    before = files(folder)
    code, out, err = run(*arguments.split())
    assert (code, out) == (2, "")
    assert told in " ".join(err.split())
    assert files(folder) == before
    assert Path("there.html").read_text() == "kept"


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ("report model.onnx -o r.html", "r.html"),
        ("report model.onnx", "model.report.html"),
        ("report model.onnx --svg s", "model.report.svg"),
        ("report deep/deep.onnx", "deep/deep.report.html"),
        ("report --before model.onnx --after deep/deep.onnx", "deep/deep.report.html"),
        ("report model.onnx -o out/", "out/model.report.html"),
        ("report model.onnx -o there.html --force", "there.html"),
        ("report --before model.onnx --after model.onnx -o both.html", "both.html"),
        ("report model.onnx -o titled.html --title TITLE", "titled.html"),
    ],
)
def test_pages(arguments: str, written: str, run: Run, folder: Path) -> None:
    Path("there.html").write_text("old")
    Path("deep").mkdir()
    shutil.copy("model.onnx", "deep/deep.onnx")
    assert run(*arguments.split()) == (0, f"wrote {Path(written)}\n", "")
    text = Path(written).read_text(encoding="utf-8")
    if written.endswith(".svg"):
        assert text.startswith("<svg xmlns=")
        return
    name = "deep.onnx" if "deep" in written else "model.onnx"
    title = "TITLE" if "TITLE" in arguments else f"model.onnx → {name}" if "--before" in arguments else name
    assert text.startswith("<!DOCTYPE html>")
    assert f"<title>{title}</title>" in text


@pytest.mark.parametrize(
    ("way", "told"),
    [
        (["upgrade", "--opset", "18"], {"main/s": "opset 18"}),
        (["downgrade", "--opset", "11"], {"main/s": "opset 11"}),
        (["convert", "--to", "slice"], {"main/s": "convert --to slice"}),
        (None, {}),
    ],
)
def test_reasons_of_changes(way: list[str] | None, told: dict[str, str], run: Run, folder: Path) -> None:
    if way is None:
        # Nobody's conversion: the axis is another one.
        onnx.save(split_model(18, (6, 6), axis=0, num_outputs=2), "after.onnx")
    else:
        assert run(way[0], "model.onnx", *way[1:], "--no-verify", "-o", "after.onnx", "--quiet")[0] == 0
    found = {change.location: change.why for change in found_reasons("model.onnx", "after.onnx")}
    assert found == told


def found_reasons(before: str, after: str) -> Sequence[Change]:
    return reasons(open_model(before, weights="leave"), open_model(after, weights="leave"))


@pytest.mark.parametrize("wanted", ["s", "main/s"])
def test_a_picture(wanted: str, run: Run, folder: Path) -> None:
    assert run("report", "model.onnx", "--svg", wanted, "-o", "s.svg") == (0, "wrote s.svg\n", "")
    assert Path("s.svg").read_text(encoding="utf-8").startswith("<svg xmlns=")


def test_the_page_beside_the_model_is_not_overwritten(run: Run, folder: Path) -> None:
    assert run("report", "model.onnx")[0] == 0
    code, out, err = run("report", "model.onnx")
    assert (code, out) == (2, "")
    assert "model.report.html exists; choose another name with -o, or pass --force" in err
    assert run("report", "model.onnx", "--force")[0] == 0


def test_pages_of_many_models_are_beside_them(run: Run, folder: Path) -> None:
    Path("deep").mkdir()
    shutil.copy("model.onnx", "deep/deep.onnx")
    assert run("report", ".", "--jobs", "1")[0] == 0
    assert files(folder) == {"model.onnx", "model.report.html", "deep"}
    assert Path("deep/deep.report.html").is_file()


def test_a_model_with_errors_gets_a_page_and_exit_code_1(run: Run, folder: Path) -> None:
    onnx.save(split_model(shape=("N", 7)), "wrong.onnx")
    code, out, err = run("report", "wrong.onnx", "-o", "r.html")
    assert (code, out) == (1, "wrote r.html\n")
    assert err == "error: wrong.onnx: 1 error\n"
    assert "SG206" in Path("r.html").read_text(encoding="utf-8")


def test_formats_that_do_not_compare_are_refused(run: Run, folder: Path) -> None:
    models = Path(__file__).parents[2] / "models"
    arguments = ("report", "--before", "model.onnx", "--after", str(models / "interval_split.xml"), "-o", "r.html")
    code, _, err = run(*arguments)
    assert code == 2
    assert "only models of one format are compared" in err
    assert not Path("r.html").exists()


@pytest.mark.parametrize("number, told", [(0, "equal on "), (1, "different: ")])
def test_a_page_says_what_became_of_each_part(run: Run, folder: Path, number: int, told: str) -> None:
    assert run("upgrade", "model.onnx", "--opset", "18")[0] == 0
    model = onnx.load("model.opset18.onnx")
    split = next(node for node in model.graph.node if node.op_type == "Split")
    if number:
        split.output[:] = list(reversed(split.output))
    onnx.save(model, "after.onnx")
    assert run("report", "--before", "model.onnx", "--after", "after.onnx", "--verify", "-o", "page.html")[0] == 0
    page = (folder / "page.html").read_text("utf-8")
    assert told in page
    assert ("verified equal on 3 inputs (onnxruntime)" in page) == (number == 0)
