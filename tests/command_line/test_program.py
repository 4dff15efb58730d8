"""The program as a whole: how it is called, wrong usage, and what it does when things go wrong."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.numpy_helper
import pytest

import splitgraph
from splitgraph import cli, open_models, rewrites
from splitgraph.findings import exit_codes
from splitgraph.verification.models import model_files

from .program import ROOT, Run, files, in_child, split_model


def test_the_three_ways_to_call_it_are_one_program() -> None:
    module, checkout = in_child("-m", "splitgraph", "--help"), in_child("cli.py", "--help")
    assert (module.returncode, checkout.returncode) == (0, 0)
    assert module.stdout == checkout.stdout
    assert module.stdout.startswith("Usage: splitgraph ")
    commands = ["infer", "upgrade", "downgrade", "convert", "verify", "explain"]
    listed = [text.split()[0] for text in module.stdout.partition("Commands:")[2].splitlines() if text.strip()]
    assert [name for name in listed if name in commands] == commands


def test_it_starts_with_a_click_whose_types_take_no_parameter() -> None:
    """As those of click 8.1 to 8.3."""
    script = (
        "import click; click.ParamType.__class_getitem__ = None;"
        "from splitgraph.cli import main; raise SystemExit(main(['upgrade', '--help']))"
    )
    done = in_child("-c", script)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_console_script_is_this_program() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'splitgraph = "splitgraph.cli:main"' in text
    assert f'version = "{splitgraph.__version__}"' in text


@pytest.mark.parametrize("option", ["--version", "-V", "-v"])
def test_version(option: str, run: Run) -> None:
    assert run(option) == (0, f"splitgraph {splitgraph.__version__}\n", "")


def test_no_summary_of_a_command_is_cut_off(run: Run) -> None:
    code, out, _ = run("--help")
    listed = out.partition("Commands:")[2].partition("Exit codes:")[0].split("\n")
    summaries = [line.strip() for line in listed if line.strip()]
    assert (code, [line.split()[0] for line in summaries]) == (0, list(cli.program.commands))
    assert all(line.endswith(".") and not line.endswith("..") for line in summaries)


@pytest.mark.parametrize("name", [None, *cli.program.commands])
def test_help_of_a_command(name: str | None, run: Run) -> None:
    words = [] if name is None else [name]
    assert run("help", *words) == run(*words, "--help")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["help", "upgrad"], "There is no command 'upgrad'; did you mean 'upgrade'?"),
        (["infr", "model.onnx"], "There is no command 'infr'; did you mean 'infer'?"),
        (["frob"], "There is no command 'frob'; known are: infer, upgrade"),
        (["upgrade", "m.onnx", "--opste", "18"], "There is no option '--opste'; did you mean '--opset'?"),
        (["upgrade", "m.onnx", "--frobnicate"], "There is no option '--frobnicate'."),
        (["infer", "modle.onnx"], "modle.onnx: no such file; did you mean model.onnx?"),
        (["infer", "model"], "model: no such file; did you mean model.onnx?"),
        (["infer", "nowhere/model.onnx"], "nowhere/model.onnx: no such file ["),
        (["infer", "deap/model.onnx"], "deap/model.onnx: no such file; did you mean deep/model.onnx?"),
        (["infer", "deap/"], "deap: no such file; did you mean deep?"),
        (["check", "model.onnx", "--target", "onnxruntim"], "did you mean 'onnxruntime'"),
        (["report", "model.onnx", "--svg", "main/S"], "did you mean 'main/s'?"),
        (["infer", "model.onnx", "--why", "p_1"], "did you mean 'p1'?"),
        (["infer", "model.onnx", "--why", "P0"], "did you mean 'p0'?"),
        (["verify", "model.onnx", "model.onnx", "--try", "n=4"], "did you mean 'N'?"),
        (["reshape", "model.onnx", "--input-shape", "X=N,6"], "did you mean 'x'?"),
        (["reshape", "model.onnx", "--batch", "8", "--follow", "main/S[0]=N"], "did you mean 'main/s'?"),
    ],
)
def test_near_names_on_the_command_line(typed: list[str], told: str, run: Run, folder: Path) -> None:
    Path("deep").mkdir()
    shutil.copy("model.onnx", "deep")
    code, _, err = run(*typed)
    assert code == 2
    assert told in err


def test_the_help_shows_options_in_groups(run: Run) -> None:
    titles = [line for line in run("upgrade", "--help")[1].splitlines() if line[:1] not in ("", " ")]
    groups = ["Options:", "Sizes:", "Output:", "What is accepted:", "Verification:", "Many models:"]
    assert titles == ["Usage: splitgraph upgrade [OPTIONS] MODEL...", *groups]
    shown = run("verify", "--help")[1].partition("Many models:")[2]
    assert "--jobs" in shown
    assert "--samples" not in shown


def test_the_help_says_what_every_exit_code_means(run: Run) -> None:
    codes = [value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)]
    assert codes == list(exit_codes.MEANINGS)
    told = run("--help")[1].partition("Exit codes:")[2].splitlines()[1:]
    assert [text.split(maxsplit=1) for text in told] == [[str(code), exit_codes.MEANINGS[code]] for code in codes]
    assert max(map(len, told)) <= 80


WRONG_USAGE = [
    [],
    ["frobnicate"],
    ["infer"],
    ["infer", ""],
    ["infer", "model.onnx", "-o", ""],
    ["infer", "model.onnx", "--frobnicate"],
    ["upgrade", "model.onnx"],
    ["upgrade", "model.onnx", "--opset", "eighteen"],
    ["convert", "model.onnx"],
    ["convert", "model.onnx", "--to", "slices"],
    ["verify", "model.onnx"],
    ["verify", "model.onnx", "model.onnx", "--engine", "tensorrt"],
    ["verify", "model.onnx", "model.onnx", "--samples", "0"],
]


@pytest.mark.parametrize("arguments", WRONG_USAGE)
def test_wrong_usage(arguments: list[str], run: Run, folder: Path) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err
    assert files(folder) == {"model.onnx"}


@pytest.mark.parametrize("arguments", [each for each in WRONG_USAGE if each[:1] not in ([], ["frobnicate"])])
def test_wrong_usage_of_a_program(arguments: list[str], run: Run, folder: Path) -> None:
    code, out, err = run(*arguments, "--json")
    (found,) = json.loads(out)["diagnostics"]
    assert (code, found["code"]) == (2, "SG601")
    assert err.startswith(f"error: {found['message']}\n")


def raising(error: BaseException) -> Callable[..., None]:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    return fail


def test_a_fault_of_our_own_is_one_line(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPLITGRAPH_DEBUG", raising=False)
    monkeypatch.setattr(open_models, "inferred", raising(ZeroDivisionError("by\nzero\x1b[2J")))
    code, out, err = run("infer", "model.onnx")
    assert (code, out) == (70, "")
    assert err.startswith(r"internal error: ZeroDivisionError: by\nzero\x1b[2J (please report it")
    assert err.count("\n") == 1
    monkeypatch.setenv("SPLITGRAPH_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run("infer", "model.onnx")


def test_an_interrupt_is_one_line_and_leaves_nothing(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrites, "verify_rewrite", raising(KeyboardInterrupt()))
    code, out, err = run("upgrade", "model.onnx", "--opset", "18")
    assert (code, out, err.strip()) == (130, "", "interrupted")
    assert files(folder) == {"model.onnx"}


# In a process of its own, which the signal would end if nothing received it. It may have been started by `nohup`.
STOPPED_WITHIN_THE_ENGINE = """
import os, signal, sys
from splitgraph import cli
from splitgraph.verification.engines import engine_process

number = int(sys.argv[1])

def stop(engine, workplace, seconds):
    print(workplace)
    os.kill(os.getpid(), number)

signal.signal(number, signal.SIG_DFL)
engine_process._run_worker = stop
try:
    cli.main(["upgrade", "model.onnx", "--opset", "18"])
finally:
    print(signal.getsignal(number) is signal.SIG_DFL)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_stop_ends_engines_and_leaves_nothing(number: int, folder: Path) -> None:
    done = in_child("-c", STOPPED_WITHIN_THE_ENGINE, str(int(number)), folder=folder)
    workplace, is_as_before = done.stdout.splitlines()
    assert (done.returncode, done.stderr, is_as_before) == (128 + number, "", "True")
    assert not Path(workplace).exists()
    assert files(folder) == {"model.onnx"}


def test_a_full_temporary_folder_is_no_fault_of_the_model(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "save_model", raising(OSError(errno.ENOSPC, "No space left on device")))
    code, out, err = run("verify", "model.onnx", "model.onnx", "--json")
    assert (code, json.loads(out)["verdict"]) == (3, "not-run")
    assert "No space left" in json.loads(out)["diagnostics"][0]["message"]
    code, out, err = run("upgrade", "model.onnx", "--opset", "18")
    assert code == 0
    assert "No space left" in err
    assert "TMPDIR" in err


def test_a_reader_that_stops_reading_is_no_error(folder: Path) -> None:
    command = f"'{sys.executable}' -m splitgraph explain; echo $? >&2"
    done = subprocess.run(
        ["bash", "-c", f"({command}) | true"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.stderr.strip() in ("0", "141")


def test_a_terminal_that_cannot_show_a_name_gets_an_escape(folder: Path) -> None:
    model = split_model()
    model.graph.node[0].name = "größe→大"
    onnx.save(model, "model.onnx")
    path = str(folder / "model.onnx")
    done = in_child("-m", "splitgraph", "infer", path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"gr\xf6\xdfe\u2192\u5927" in done.stdout
    done = in_child("-m", "splitgraph", "infer", path, "--json", PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["splits"][0]["node"] == "größe→大"


def test_output_to_a_pipe_has_no_escape_sequences(folder: Path) -> None:
    path = str(folder / "model.onnx")
    done = in_child("-m", "splitgraph", "infer", path, FORCE_COLOR="1", TERM="xterm-256color")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_that_is_closed_is_no_error(folder: Path, closed: str) -> None:
    command = f"'{sys.executable}' -m splitgraph upgrade model.onnx --opset 18 --no-verify {closed}"
    done = subprocess.run(["bash", "-c", command], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 0
    assert "model.opset18.onnx" in files(folder)


@pytest.mark.parametrize("arguments", [["infer", "model.onnx"], ["infer", "model.onnx", "--json"], ["explain"]])
def test_output_that_cannot_be_written_is_told_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == "error: standard output cannot be written: No space left on device\n"
