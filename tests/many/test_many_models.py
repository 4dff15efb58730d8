"""Commands on many models: lines, the summary, exit codes, results, reports."""

from __future__ import annotations

import json
import os
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_line.program import Run, split_model
from json_schemas import wrong

from splitgraph.findings.outcome import STATUSES, Outcome, Status
from splitgraph.many.reports import write_junit
from splitgraph.reports.batch_pages import outcome_lines, summary_page
from splitgraph.reports.text import plain_text

UPGRADE = ("upgrade", "--opset", "18", "--no-verify", "--jobs", "1")


def files(folder: str) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())


def report(name: str = "r.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def statuses(name: str = "r.jsonl") -> dict[str, str]:
    return {each["model"]: each["status"] for each in report(name)}


@pytest.mark.parametrize(
    ("typed", "code", "told"),
    [
        (["infer", "empty"], "SG601", "there is no model in the folder empty"),
        (["infer", "zoo", "--exclude", "*"], "SG601", "--exclude leaves out every model of zoo"),
        (["infer", "zoo", "--resume"], "SG601", "--resume needs --report"),
        (["infer", "zoo", "--report", "taken.txt"], "SG108", "taken.txt exists; give another name with --report"),
        (["infer", "zoo", "--junit", "taken.txt"], "SG108", "taken.txt exists; give another name with --junit"),
        (["infer", "zoo", "--report", "no/r.jsonl"], "SG109", "the folder no of --report does not exist"),
        (["infer", "zoo", "--junit", "empty"], "SG601", "--junit is a file, and empty is a folder"),
        (["infer", "zoo", "--report", "taken.txt", "--resume"], "SG601", "taken.txt is no report of splitgraph"),
        (["infer", "zoo", "-o", "taken.txt"], "SG109", "with many models -o is a folder, and taken.txt is a file"),
        ([*UPGRADE, "zoo", "-o", "out", "--in-place"], "SG601", "--in-place overwrites the models"),
        ([*UPGRADE, "zoo", "-o", "out", "--diff"], "SG601", "--diff is for one model"),
        (["verify", "zoo", "taken.txt", "--pairs"], "SG601", "--pairs compares two folders"),
    ],
)
def test_refused_before_any_work(typed: list[str], code: str, told: str, run: Run, zoo: Path) -> None:
    os.mkdir("empty")
    Path("taken.txt").write_text("not a report\n")
    before = files(".")
    exit_code, out, err = run(*typed)
    assert (exit_code, out) == (2, "")
    assert err.startswith(f"error: {told}")
    assert err.endswith(f"[{code}]\n")
    assert files(".") == before


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_jobs_is_a_number(jobs: str, run: Run, zoo: Path) -> None:
    code, out, err = run("infer", "zoo", "--jobs", jobs)
    assert (code, out) == (2, "")
    assert "--jobs" in err


def test_a_folder(run: Run, zoo: Path) -> None:
    code, out, err = run("infer", "zoo", "--jobs", "1")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:3] == [
        "clean         zoo/a.onnx · opset 13 · 1 split",
        "clean         zoo/deep/b.onnx · opset 13 · 1 split",
        "clean         zoo/deep/new.onnx · opset 18 · 1 split",
    ]
    assert lines[4].startswith("infer · 3 models in ")
    assert [line.split() for line in lines[5:]] == [["models", "models", "with", "each", "code"], ["clean", "3"]]


def test_a_tree_is_mirrored(run: Run, zoo: Path) -> None:
    code, out, err = run(*UPGRADE, "zoo", "-o", "out")
    assert (code, err) == (0, "")
    assert files("out") == ["a.onnx", "deep/b.onnx", "deep/new.onnx"]
    assert onnx.load("out/deep/b.onnx").opset_import[0].version == 18
    assert Path("out/deep/new.onnx").read_bytes() == Path("zoo/deep/new.onnx").read_bytes()
    assert "unchanged     zoo/deep/new.onnx · opset 18, as wanted · wrote out/deep/new.onnx" in out
    assert "converted     zoo/a.onnx · opset 13 → 18 · 1 node rewritten · wrote out/a.onnx" in out


def test_named_models_get_their_default_names(run: Run, zoo: Path) -> None:
    assert run(*UPGRADE, "zoo/a.onnx", "zoo/deep/b.onnx", "-o", "out/")[0] == 0
    assert files("out") == ["a.opset18.onnx", "b.opset18.onnx"]


def test_without_output_results_are_beside_the_models(run: Run, zoo: Path) -> None:
    assert run(*UPGRADE, "zoo", "--exclude", "deep/")[0] == 0
    assert "a.opset18.onnx" in files("zoo")


def test_in_place(run: Run, zoo: Path) -> None:
    assert run(*UPGRADE, "zoo", "--in-place")[0] == 0
    assert files("zoo") == [".hidden/c.onnx", "a.onnx", "deep/b.onnx", "deep/new.onnx", "page.xml", "readme.txt"]
    assert onnx.load("zoo/a.onnx").opset_import[0].version == 18


def test_one_wrong_model_does_not_stop_the_others(run: Run, zoo: Path) -> None:
    Path("zoo/b.onnx").write_bytes(b"\xff" * 99)
    Path("zoo/empty.onnx").touch()
    shutil.copy(Path(__file__).parents[2] / "models" / "string_split20.onnx", "zoo/s.onnx")
    code, out, err = run("downgrade", "--opset", "13", "--no-verify", "zoo", "-o", "out", "--jobs", "2")
    assert (code, err) == (1, "")
    assert files("out") == ["a.onnx", "deep/b.onnx", "deep/new.onnx"]
    summary = {line.split("  ")[1]: line.split()[1:] for line in out.splitlines()[-5:]}
    assert summary["failed"] == ["2", "SG101", "2"]
    assert summary["refused"] == ["1", "SG404", "1"]
    assert "SG404 main/split StringSplit exists from opset 20 on" in out
    assert "(and 1 more finding)" in out


def test_an_existing_result_is_refused_and_forced(run: Run, zoo: Path) -> None:
    os.makedirs("out")
    Path("out/a.onnx").write_bytes(b"mine")
    code, out, _ = run(*UPGRADE, "zoo", "-o", "out")
    assert code == 1
    assert Path("out/a.onnx").read_bytes() == b"mine"
    assert "SG108 out/a.onnx out/a.onnx exists" in out
    assert "deep/b.onnx" in files("out")
    assert run(*UPGRADE, "zoo", "-o", "out", "--force")[0] == 0
    assert Path("out/a.onnx").read_bytes() != b"mine"


def test_two_models_with_one_result(run: Run, zoo: Path) -> None:
    shutil.copy("zoo/a.onnx", "a.onnx")
    code, out, _ = run(*UPGRADE, "a.onnx", "zoo/a.onnx", "-o", "out/")
    assert code == 1
    assert "the result of a.onnx goes to out/a.opset18.onnx, too" in out
    assert files("out") == ["a.opset18.onnx"]


@pytest.mark.parametrize(
    ("skip", "code", "status"),
    [([], 0, "kept"), (["--skip-newer"], 0, "kept"), (["--no-skip-newer"], 1, "refused")],
)
def test_models_beyond_the_opset(skip: list[str], code: int, status: str, run: Run, zoo: Path) -> None:
    typed = ["upgrade", "--opset", "13", "--no-verify", "zoo", "-o", "out", "--report", "r.jsonl", *skip]
    assert run(*typed)[0] == code
    assert statuses()["zoo/deep/new.onnx"] == status
    assert "deep/new.onnx" not in files("out")


def test_an_older_model_is_copied_by_a_downgrade(run: Run, zoo: Path) -> None:
    typed = ["downgrade", "--opset", "16", "--no-verify", "zoo", "--report", "r.jsonl"]
    code, out, _ = run(*typed, "-o", "out")
    assert (code, files("out")) == (0, ["a.onnx", "deep/b.onnx", "deep/new.onnx"])
    assert Path("out/a.onnx").read_bytes() == Path("zoo/a.onnx").read_bytes()
    assert "kept          zoo/a.onnx · opset 13, older already · wrote out/a.onnx" in out
    assert "older than wanted; copied as they are" in out
    assert set(statuses().values()) == {"kept", "converted"}
    # The copies of the first call are not made again.
    assert run(*typed, "-o", "out", "--resume")[0] == 0
    assert run(*typed, "-o", "out")[0] == 2


def test_what_is_left_out_is_named(run: Run, zoo: Path) -> None:
    out = run("upgrade", "--opset", "16", "--no-verify", "zoo", "-o", "out")[1]
    assert "newer than wanted; left as they are, without a result: zoo/deep/new.onnx" in out
    assert files("out") == ["a.onnx", "deep/b.onnx"]


@pytest.mark.parametrize("status", STATUSES)
def test_one_word_for_a_status(status: Status, tmp_path: Path) -> None:
    outcome = Outcome("upgrade", "a.onnx", status)
    first = plain_text(outcome_lines(outcome)).split()[0]
    row = plain_text(summary_page("upgrade", [outcome], seconds=1, resumed=0)).splitlines()[-1].split()[0]
    assert (first, row, outcome.document()["status"]) == (status, status, status)
    write_junit(tmp_path / "r.xml", "upgrade", [outcome], 1)
    told = {value for each in ET.parse(tmp_path / "r.xml").iter() for value in (each.get("type"), each.get("message"))}
    # A test case of JUnit that passes has no word of its own.
    assert told - {None} == (set() if outcome.ok and status != "kept" else {status})


def test_dry_run_writes_nothing(run: Run, zoo: Path) -> None:
    before = files(".")
    code, out, _ = run(*UPGRADE, "zoo", "-o", "out", "--dry-run")
    assert code == 0
    assert "converted     zoo/a.onnx · opset 13 → 18 · 1 node rewritten\n" in out
    assert files(".") == before
    # Nothing is in its way: no file is written.
    assert run(*UPGRADE, "zoo", "-o", "out")[0] == 0
    assert run(*UPGRADE, "zoo", "-o", "out")[0] == 1
    assert run(*UPGRADE, "zoo", "-o", "out", "--dry-run")[0] == 0


def test_quiet_tells_what_is_wrong(run: Run, zoo: Path) -> None:
    assert run(*UPGRADE, "zoo", "-o", "out", "--quiet") == (0, "", "")
    Path("zoo/empty.onnx").touch()
    code, out, err = run(*UPGRADE, "zoo", "-o", "out2", "--quiet")
    assert (code, out) == (1, "")
    assert [line.split()[0] for line in err.splitlines()] == ["failed", "SG101"]


@pytest.mark.parametrize(
    "typed",
    [
        ["infer", "zoo"],
        [*UPGRADE, "zoo", "-o", "out"],
        ["check", "zoo", "--target", "mnn"],
        ["check", "zoo", "--all-targets"],
        ["convert", "zoo", "--to", "slice", "-o", "out", "--no-verify"],
        ["convert", "zoo", "--target", "openvino@2023.3", "-o", "out", "--no-verify"],
        ["verify", "zoo", "zoo", "--pairs", "--samples", "1", "--engine", "reference"],
    ],
)
def test_documents_and_reports(typed: list[str], run: Run, zoo: Path) -> None:
    Path("zoo/broken.onnx").write_bytes(b"\xff" * 99)
    code, out, err = run(*typed, "--json", "--report", "r.jsonl", "--junit", "r.xml", "--jobs", "2")
    document = json.loads(out)
    assert wrong(document, "many") == []
    lines = report()
    assert [fault for line in lines for fault in wrong(line, "outcome")] == []
    assert code == 1
    assert document["ok"] is False
    assert document["counts"]["failed"] == 1
    by_name = {each["model"]: each for each in document["models"]}
    assert by_name == {each["model"]: {k: v for k, v in each.items() if k != "splitgraph"} for each in lines}
    assert len(by_name) == 4
    assert all(each["files"] for each in lines)
    assert "failed        zoo/broken.onnx\n" in err
    suite = ET.parse("r.xml").getroot()[0]
    assert {case.get("name") for case in suite} == set(by_name)
    assert suite.get("tests") == "4"
    assert [case.get("name") for case in suite if case.find("error") is not None] == ["zoo/broken.onnx"]


def test_hostile_names_in_junit(run: Run, zoo: Path) -> None:
    name = "zoo/<&\x1b\"'\x00.onnx".replace("\x00", "\x01")
    onnx.save(split_model(), name)
    Path(name).write_bytes(b"\xff")
    assert run("infer", "zoo", "--junit", "r.xml", "--jobs", "1")[0] == 1
    names = {case.get("name") for case in ET.parse("r.xml").getroot().iter("testcase")}
    assert "zoo/<&\\x1b\"'\\x01.onnx" in names


def test_resumed(run: Run, zoo: Path) -> None:
    Path("zoo/broken.onnx").write_bytes(b"\xff" * 99)
    call = (*UPGRADE, "zoo", "-o", "out", "--report", "r.jsonl")
    assert run(*call)[0] == 1
    whole = sorted(Path("r.jsonl").read_text().splitlines())
    # Interrupted while the last line was written, before two others.
    Path("r.jsonl").write_text("\n".join(whole[:2]) + "\n" + whole[2][:30])
    first = {json.loads(line)["model"] for line in whole[:2]} - {"zoo/broken.onnx"}
    for name in files("out"):
        if f"zoo/{name}" not in first:
            Path("out", name).unlink()
    code, out, _ = run(*call, "--resume")
    assert code == 1
    assert f"{len(first)} of an earlier call" in out
    assert sorted(map(without_seconds, Path("r.jsonl").read_text().splitlines())) == list(map(without_seconds, whole))


def without_seconds(line: str) -> str:
    return json.dumps({**json.loads(line), "seconds": 0})


@pytest.mark.parametrize(
    ("change", "again"),
    [
        (lambda: None, []),
        (lambda: onnx.save(split_model(14), "zoo/a.onnx"), ["zoo/a.onnx"]),
        (lambda: Path("out/deep/b.onnx").unlink(), ["zoo/deep/b.onnx"]),
    ],
)
def test_what_is_done_again(change: Any, again: list[str], run: Run, zoo: Path) -> None:
    call = (*UPGRADE, "zoo", "-o", "out", "--report", "r.jsonl", "--force")
    assert run(*call)[0] == 0
    change()
    code, out, _ = run(*call, "--resume", "--json")
    assert code == 0
    told = run(*call, "--resume")[1]
    assert "3 of an earlier call" in told
    times = {each["model"] for each in json.loads(out)["models"]}
    assert times == {"zoo/a.onnx", "zoo/deep/b.onnx", "zoo/deep/new.onnx"}
    assert statuses() == {"zoo/a.onnx": "converted", "zoo/deep/b.onnx": "converted", "zoo/deep/new.onnx": "unchanged"}


def test_models_that_were_converted_in_place_are_done(run: Run, zoo: Path) -> None:
    call = (*UPGRADE, "zoo", "--in-place", "--report", "r.jsonl")
    assert run(*call)[0] == 0
    before = Path("r.jsonl").read_text()
    code, out, _ = run(*call, "--resume")
    assert code == 0
    assert "3 of an earlier call" in out
    assert Path("r.jsonl").read_text() == before


def test_other_options_are_done_again(run: Run, zoo: Path) -> None:
    assert run("infer", "zoo", "--report", "r.jsonl")[0] == 0
    _, out, _ = run("infer", "zoo", "--bind", "N=4", "--report", "r.jsonl", "--resume")
    assert "earlier call" not in out
    _, out, _ = run("infer", "zoo", "--bind", "N=4", "--report", "r.jsonl", "--resume")
    assert "3 of an earlier call" in out


@pytest.mark.slow
def test_pairs(run: Run, zoo: Path) -> None:
    assert run(*UPGRADE, "zoo", "-o", "out")[0] == 0
    Path("out/a.onnx").unlink()
    onnx.save(split_model(18, axis=0, num_outputs=2), "out/deep/new.onnx")
    code, _, _ = run("verify", "zoo", "out", "--pairs", "--samples", "1", "--report", "r.jsonl", "--quiet")
    assert code == 1
    assert statuses() == {"zoo/a.onnx": "failed", "zoo/deep/b.onnx": "equal", "zoo/deep/new.onnx": "different"}


def test_pages_and_their_index(run: Run, zoo: Path) -> None:
    Path("zoo/broken.onnx").write_bytes(b"\xff" * 99)
    code, out, _ = run("report", "zoo", "-o", "site", "--title", "The zoo", "--report", "r.jsonl")
    assert code == 1
    pages = ["a.onnx.html", "deep/b.onnx.html", "deep/new.onnx.html"]
    assert files("site") == [*pages, "index.html"]
    index = Path("site/index.html").read_text()
    assert "<title>The zoo</title>" in index
    assert all(f'"./{page}"' in index for page in pages)
    assert "SG101" in index
    code, out, err = run("report", "zoo", "-o", "site")
    assert (code, out) == (2, "")
    assert "site/index.html exists" in err
    assert run("report", "zoo", "-o", "site", "--report", "r.jsonl", "--resume")[0] == 1
    assert run("report", "zoo", "-o", "other", "--svg", "s")[0] == 2


def test_one_model_with_an_option_for_many(run: Run, zoo: Path) -> None:
    _, out, _ = run("infer", "zoo/a.onnx", "--jobs", "1")
    assert "infer · 1 model in " in out


def test_what_was_taken_for_granted_is_told(run: Run, zoo: Path) -> None:
    model = split_model(shape=(4, 6))
    lengths = onnx.numpy_helper.from_array(np.array([2, 4]), "l")
    model.graph.initializer.append(lengths)
    model.graph.input.append(onnx.helper.make_tensor_value_info("l", onnx.TensorProto.INT64, [2]))
    model.graph.node[0].input.append("l")
    model.graph.node.append(onnx.helper.make_node("Sqrt", ["l"], ["root"], name="bad"))
    onnx.save(model, "zoo/premises.onnx")
    call = (*UPGRADE, "zoo", "-o", "out", "--exclude", "deep/", "--report", "r.jsonl", "--junit", "r.xml")
    code, out, _ = run(*call, "--accept", "SG302@main/bad", "--assume-defaults")
    assert code == 0
    told = "accepted 1 error (SG302) · relies on the default of l · wrote out/premises.onnx"
    assert told in out
    line = next(line for line in report() if line["model"] == "zoo/premises.onnx")
    assert [found["location"] for found in line["accepted"]] == ["main/bad"]
    assert line["assumed_defaults"] == ["l"]
    properties = [(each.get("name"), each.get("value")) for each in ET.parse("r.xml").getroot().iter("property")]
    assert [name for name, _ in properties] == ["accepted", "assumed_default"]
    assert run("infer", "zoo", "--accept", "SG302@main/bad")[1].count("accepted 1 error (SG302)") == 1
