"""--accept, accept in pyproject.toml, and --assume-defaults on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest

from splitgraph.cli import program

from .program import Run, files

INVALID = "[bad] y = Sqrt(z) [s] a, b = Split<axis = 1>(x)"
# Of every command that has the option, a call that the error blocks.
CALLS = {
    "infer": ["infer", "bad.onnx"],
    "upgrade": ["upgrade", "bad.onnx", "--opset", "18", "--no-verify"],
    "downgrade": ["downgrade", "bad.onnx", "--opset", "11", "--no-verify"],
    "convert": ["convert", "bad.onnx", "--to", "variadic-split", "--no-verify"],
    "reshape": ["reshape", "bad.onnx", "--input-shape", "x=M,4", "--no-verify"],
    "check": ["check", "bad.onnx", "--target", "onnxruntime"],
}
WRONG = {
    "unknown": ("SG399", "there is no code 'SG399'; did you mean 'SG3"),
    "lower case": ("sg302", "did you mean 'SG302'?"),
    "a split": ("SG204", "SG204 (lengths do not sum to the dimension) cannot be accepted"),
    "a location": ("SG302@bad", "did you mean main/bad?"),
    "no location": ("SG302@", "the location after @ is empty"),
}


@pytest.fixture
def folder(folder: Path) -> Path:
    """The folder with bad.onnx, too: a node before the split is invalid."""
    head = '<ir_version: 8, opset_import: ["": 13]> g (float[N, 4] x, int64[3] z) => (float[N, 2] a, float[N, 2] b)'
    onnx.save(onnx.parser.parse_model(f"{head} {{ {INVALID} }}"), "bad.onnx")
    return folder


def test_the_commands_that_have_the_options() -> None:
    for option in ("--accept", "--assume-defaults"):
        found = {
            name for name, command in program.commands.items() if any(option in each.opts for each in command.params)
        }
        assert found == set(CALLS)


@pytest.mark.parametrize("command", CALLS)
def test_the_error_blocks(command: str, folder: Path, run: Run) -> None:
    code, out, err = run(*CALLS[command])
    assert code == 1
    assert "SG302" in out + err
    assert files(folder) == {"bad.onnx", "model.onnx"}


@pytest.mark.parametrize("command", CALLS)
@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_what_is_refused(command: str, text: str, message: str, folder: Path, run: Run) -> None:
    code, out, err = run(*CALLS[command], "--accept", text)
    assert (code, out) == (2, "")
    assert message in err
    assert files(folder) == {"bad.onnx", "model.onnx"}
    code, out, err = run(*CALLS[command], "--accept", text, "--json")
    (found,) = json.loads(out)["diagnostics"]
    assert (code, found["code"]) == (2, "SG601")
    assert message in found["message"]


@pytest.mark.parametrize("command", CALLS)
def test_a_stale_acceptance_is_a_note(command: str, folder: Path, run: Run) -> None:
    model = ["model.onnx" if each == "bad.onnx" else each for each in CALLS[command]]
    code, out, err = run(*model, "--accept", "SG302@main/bad")
    assert code == 0
    assert "SG606" in out + err
    assert "the model has no error SG302 at main/bad" in out + err


@pytest.mark.parametrize("command", CALLS)
def test_a_misspelt_location_is_told_beside_the_error(command: str, folder: Path, run: Run) -> None:
    code, out, err = run(*CALLS[command], "--accept", "SG302@main/bat")
    assert code == 1
    assert "did you mean SG302@main/bad?" in out + err


@pytest.mark.parametrize("command", CALLS)
def test_an_accepted_error_is_shown_as_accepted(command: str, folder: Path, run: Run) -> None:
    code, out, err = run(*CALLS[command], "--accept", "SG302")
    assert code == 0, err
    assert "accepted  SG302  main/bad" in out + err
    made = {
        "upgrade": "bad.opset18.onnx",
        "downgrade": "bad.opset11.onnx",
        "convert": "bad.variadic-split.onnx",
        "reshape": "bad.reshaped.onnx",
    }
    assert files(folder) == {"bad.onnx", "model.onnx", *([made[command]] if command in made else [])}
    code, out, err = run(
        *CALLS[command], "--accept", "SG302@main/*", "--json", *(["--force"] if command in made else [])
    )
    document = json.loads(out)
    assert (code, document["ok"]) == (0, True)
    assert [(found["code"], found["location"]) for found in document["accepted"]] == [("SG302", "main/bad")]


def test_the_summary_counts_what_was_accepted(folder: Path, run: Run) -> None:
    assert "1 error accepted. No findings." in run("infer", "bad.onnx", "--accept", "SG302")[1]


def test_infer_writes_a_model_with_an_accepted_error(folder: Path, run: Run) -> None:
    assert run("infer", "bad.onnx", "-o", "typed.onnx")[0] == 1
    assert run("infer", "bad.onnx", "-o", "typed.onnx", "--accept", "SG302")[0] == 0
    assert "typed.onnx" in files(folder)
    # Nothing is claimed of what the node gives.
    assert "y" not in {value.name for value in onnx.load("typed.onnx").graph.value_info}


@pytest.mark.parametrize("command", CALLS)
def test_the_configuration(command: str, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text('[tool.splitgraph]\naccept = ["SG302"]\n')
    inner = folder / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    call = ["../bad.onnx" if each == "bad.onnx" else each for each in CALLS[command]]
    assert run(*call)[0] == 0
    # What is accepted twice is accepted once.
    code, out, err = run(*call, "--accept", "SG302", *(["--force"] if command not in ("infer", "check") else []))
    assert (code, (out + err).count("accepted  SG302")) == (0, 1)
    (folder / "pyproject.toml").write_text('[tool.splitgraph]\naccept = ["SG102"]\n')
    code, out, err = run(*call)
    assert (code, out) == (2, "")
    assert "SG102 (cycle) cannot be accepted" in err


def test_the_other_commands_read_no_configuration(folder: Path, run: Run) -> None:
    (folder / "pyproject.toml").write_text("[tool.splitgraph")
    assert run("explain", "SG302")[0] == 0
    assert run("verify", "model.onnx", "model.onnx", "--engine", "reference", "--samples", "1")[0] == 0
    assert run("infer", "model.onnx")[0] == 2


def test_explain_says_what_can_be_accepted(run: Run) -> None:
    assert "Can be accepted with --accept." in run("explain", "SG302")[1]
    assert "accept" not in run("explain", "SG204")[1]
