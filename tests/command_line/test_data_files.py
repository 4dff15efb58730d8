"""What a command says of the data files that its result depends on."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from formats.tiny_models import large
from json_schemas import wrong

from .program import Run


@pytest.fixture
def external(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with zoo/m.onnx, whose weights are in zoo/w.bin, and zoo/whole.onnx, which holds its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zoo").mkdir()
    model = onnx.load(large(tmp_path / "zoo" / "whole.onnx"))
    onnx.save(model, "zoo/m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    return tmp_path


UPGRADE = ["upgrade", "zoo/m.onnx", "--opset", "18", "--no-verify"]
THERE = ["upgrade", "zoo/m.onnx", "--opset", "13"]
NEEDED, COPIED = "needs the data file of the original, zoo/w.bin\n", "copied the data file that it needs, out/w.bin\n"
SAID = {
    "upgraded beside the model": (UPGRADE, NEEDED),
    "upgraded in place": ([*UPGRADE, "--in-place"], NEEDED),
    "upgraded into a folder": ([*UPGRADE, "-o", "out/"], COPIED),
    "linked": ([*UPGRADE, "-o", "out/", "--external-data=link"], "linked the data file that it needs, out/w.bin\n"),
    "downgraded": (["downgrade", "zoo/m.onnx", "--opset", "11", "--no-verify", "-o", "out/"], COPIED),
    "converted": (["convert", "zoo/m.onnx", "--to", "slice", "--no-verify"], NEEDED),
    "for a target": (["convert", "zoo/m.onnx", "--target", "ncnn", "--no-verify", "-o", "out/"], COPIED),
    "the IR version": (["convert", "zoo/m.onnx", "--ir-version", "9", "--no-verify"], NEEDED),
    "a copy of what is there": ([*THERE, "-o", "out/"], COPIED),
    "inferred": (["infer", "zoo/m.onnx", "-o", "zoo/n.onnx"], NEEDED),
    "inferred into a folder": (["infer", "zoo/m.onnx", "-o", "out/"], COPIED),
    "weights put beside": (
        [*UPGRADE, "-o", "out/", "--external-data=beside"],
        "wrote its weights to out/m.opset18.onnx.data\n",
    ),
}
NOTHING = {
    "a model that holds its weights": ["upgrade", "zoo/whole.onnx", "--opset", "18", "--no-verify"],
    "inferred, not written": ["infer", "zoo/m.onnx"],
    "a dry run": [*UPGRADE, "--dry-run"],
    "what is there": THERE,
}


@pytest.mark.parametrize("arguments", NOTHING.values(), ids=NOTHING)
def test_nothing_is_said_where_no_file_is_needed(arguments: list[str], run: Run, external: Path) -> None:
    code, out, _ = run(*arguments)
    assert (code, "data file" in out, "weights to" in out) == (0, False, False)


@pytest.mark.parametrize(("arguments", "words"), SAID.values(), ids=SAID)
def test_the_data_file_is_named(arguments: list[str], words: str, run: Run, external: Path) -> None:
    code, out, _ = run(*[argument.replace("/", os.sep) for argument in arguments])
    assert (code, out.endswith(words.replace("/", os.sep))) == (0, True), out


def test_a_copy_that_is_there_already_is_a_copy(run: Run, external: Path) -> None:
    assert run(*UPGRADE, "-o", "out/")[0] == 0
    assert run(*UPGRADE, "-o", "out/", "--force")[1].endswith(COPIED)


def test_many_data_files_take_one_line(run: Run, external: Path) -> None:
    model = onnx.load("zoo/whole.onnx")
    for number in range(5):
        tensor = onnx.numpy_helper.from_array(np.ones(300, np.float32), f"v{number}")
        onnx.external_data_helper.set_external_data(tensor, f"v{number}.bin")
        model.graph.initializer.append(tensor)
    onnx.save(model, "zoo/many.onnx")
    out = run("infer", "zoo/many.onnx", "-o", "zoo/n.onnx")[1]
    names = [os.path.join("zoo", f"v{number}.bin") for number in range(3)]
    assert out.endswith(f"needs the data file of the original, {', '.join(names)} and 2 more\n")


def test_json_says_so(run: Run, external: Path) -> None:
    document = json.loads(run(*UPGRADE, "-o", "out/", "--json")[1])
    assert document["data_files"] == [{"path": os.path.join("out", "w.bin"), "how": "copied"}]
    assert wrong(document, "rewrite") == []
    document = json.loads(run("upgrade", "zoo/whole.onnx", "--opset", "18", "--no-verify", "--json")[1])
    assert document["data_files"] == []


def test_many_models_say_so(run: Run, external: Path) -> None:
    arguments = ["upgrade", "zoo", "--opset", "18", "--no-verify", "-o", "out", "--jobs", "1", "--report", "r.jsonl"]
    lines = {line.split(" · ")[0].split()[1]: line for line in run(*arguments)[1].splitlines() if "converted  " in line}
    found = {name: line.partition(" · wrote ")[2] for name, line in lines.items() if "zoo" in name}
    m, whole = (os.path.join("zoo", name) for name in ("m.onnx", "whole.onnx"))
    assert found[m] == f"{os.path.join('out', 'm.onnx')}, which needs {os.path.join('out', 'w.bin')} (copied)"
    assert found[whole] == os.path.join("out", "whole.onnx")
    outcomes = {each["model"]: each for each in map(json.loads, Path("r.jsonl").read_text().splitlines())}
    assert outcomes[m]["data_files"] == {os.path.join("out", "w.bin"): "copied"}
    assert [wrong(each, "outcome") for each in outcomes.values()] == [[], []]
    assert run(*arguments, "--resume", "--json")[0] == 0
