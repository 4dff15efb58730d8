"""What the program does when something ends a command: one JSON document all the same, and never a traceback."""

from __future__ import annotations

import errno
import io
import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from json_schemas import wrong
from nested_models import branches, calls_in_branches

from splitgraph import cli, open_models, rewrites

from .program import Run, files

COMMANDS = {
    "infer": ("infer", "model.onnx"),
    "upgrade": ("upgrade", "model.onnx", "--opset", "18"),
    "downgrade": ("downgrade", "model.onnx", "--opset", "11"),
    "convert": ("convert", "model.onnx", "--to", "variadic-split"),
    "verify": ("verify", "model.onnx", "model.onnx"),
}
PLACES = {"infer": (open_models, "inferred"), "verify": (open_models, "compared")}
ERRORS = [
    (RecursionError("too\ndeep"), 70, "SG603", "RecursionError: too\ndeep"),
    (AssertionError(), 70, "SG603", "AssertionError: "),
    (MemoryError(), 2, "SG602", "out of memory"),
    (OSError(errno.EMFILE, "Too many open files"), 2, "SG602", "Too many open files"),
]


def schema_of(command: str) -> str:
    return command if command in ("infer", "verify") else "rewrite"


@pytest.mark.parametrize(("error", "code", "found", "message"), ERRORS)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_error_that_nobody_expects_is_told_in_json_too(
    command: str,
    error: Exception,
    code: int,
    found: str,
    message: str,
    run: Run,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.delenv("SPLITGRAPH_DEBUG", raising=False)
    home, name = PLACES.get(command, (rewrites, "rewritten"))
    monkeypatch.setattr(home, name, fail)
    told, out, err = run(*COMMANDS[command], "--json")
    document = json.loads(out)
    assert [wrong(document, schema) for schema in (schema_of(command), "failure")] == [[], []]
    assert (told, [(each["code"], each["message"]) for each in document["diagnostics"]]) == (code, [(found, message)])
    assert err.count("\n") == 1 and "Traceback" not in err
    told, out, plain = run(*COMMANDS[command])
    assert (told, out, plain) == (code, "", err) and files(folder) == {"model.onnx"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_model_that_is_nested_too_deep(command: str, run: Run, folder: Path) -> None:
    onnx.save(calls_in_branches(250), "model.onnx")
    code, out, _ = run(*COMMANDS[command], "--json")
    document = json.loads(out)
    assert wrong(document, schema_of(command)) == []
    assert code == (3 if command == "verify" else 1)
    assert any("nested 250 levels deep" in found["message"] for found in document["diagnostics"])
    assert files(folder) == {"model.onnx"}


def test_a_file_that_is_nested_deeper_than_protobuf_reads(run: Run, folder: Path) -> None:
    (folder / "model.onnx").write_bytes(branches(50).SerializeToString())
    code, out, err = run("infer", "model.onnx", "--json")
    assert (code, json.loads(out)["diagnostics"][0]["code"]) == (2, "SG101") and "100 levels" in err


class Full(io.StringIO):
    """A stream to a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


FULL = "error: standard output cannot be written: No space left on device\n"
PRINTING = [*COMMANDS.values(), ("explain",), ("explain", "SG101"), ("--help",), ("--version",), ("infer", "--help")]
PRINTING += [(*command, "--json") for command in COMMANDS.values()]


@pytest.mark.parametrize("arguments", PRINTING)
def test_output_that_cannot_be_written_is_told_in_one_line(
    arguments: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if arguments[0] == "downgrade":
        # So that there is something to print that is no notice.
        arguments = ("downgrade", "model.onnx", "--opset", "13", *arguments[4:])
    monkeypatch.setattr(sys, "stdout", Full())
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == FULL


def test_an_error_is_told_where_its_document_cannot_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Full())
    assert cli.main(["infer", "nothing.onnx", "--json"]) == 2
    assert capsys.readouterr().err == f"error: nothing.onnx: no such file [SG101]\n{FULL}"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("infer", "nothing.onnx", "--json"), 2),
        (("convert", "model.onnx", "--json"), 2),
        (("downgrade", "model.onnx", "--opset", "18", "--json"), 1),
        (("upgrade", "model.onnx", "--opset", "18", "--no-verify"), 0),
        (("infer", "model.onnx", "--frobnicate"), 2),
    ],
)
def test_notices_that_cannot_be_written_change_nothing_else(
    arguments: tuple[str, ...],
    code: int,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stderr", Full())
    assert cli.main(arguments) == code
    out = capsys.readouterr().out
    assert "--json" not in arguments or json.loads(out)["diagnostics"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("arguments", [("infer", "model.onnx"), ("infer", "model.onnx", "--json"), ("--help",)])
def test_a_full_device(arguments: tuple[str, ...], folder: Path) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "splitgraph", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0 and "Traceback" not in done.stderr and done.stderr.startswith("error: ")
