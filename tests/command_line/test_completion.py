"""Shells complete commands, options, values and files: click's scripts ask the program by `_SPLITGRAPH_COMPLETE`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from splitgraph.cli import program
from splitgraph.findings.codes import CODES
from splitgraph.runtimes.target import targets

from .program import ROOT, in_child

COMMANDS = list(program.commands)
FILE = ["file"]

# What was typed, and what completes the last word.
CASES = [
    ("splitgraph nonsense", []),
    ("splitgraph infer --nonsense", []),
    ("splitgraph verify a.onnx b.onnx --engine x", []),
    ("splitgraph check m.onnx --target abacus", []),
    ("splitgraph ", COMMANDS),
    ("splitgraph do", ["downgrade", "doctor"]),
    ("splitgraph --ver", ["--version"]),
    ("splitgraph upgrade --ops", ["--opset"]),
    ("splitgraph upgrade --no", ["--no-verify", "--no-skip-newer"]),
    ("splitgraph verify a.onnx b.onnx --engine ", ["auto", "reference", "onnxruntime", "openvino"]),
    ("splitgraph convert m.onnx --to s", ["split", "slice"]),
    ("splitgraph infer m.onnx --external-data l", ["link"]),
    ("splitgraph check m.onnx --target openv", [name for name in targets() if name.startswith("openv")]),
    ("splitgraph convert m.onnx --target m", [name for name in targets() if name.startswith("m")]),
    ("splitgraph explain sg2", [code for code in CODES if code.startswith("SG2")]),
    ("splitgraph doctor --j", ["--json"]),
    # The shell itself lists the files.
    ("splitgraph infer ", FILE),
    ("splitgraph infer models/gp", FILE),
    ("splitgraph verify a.onnx ", FILE),
    ("splitgraph upgrade m.onnx --opset 18 -o ", FILE),
]


def completed(shell: str, typed: str) -> list[str]:
    """What the program answers to a shell: the texts, and "file" where the shell lists files."""
    words = typed.split(" ")
    # fish gives the last word, the others its position.
    current = words[-1] if shell == "fish" else str(len(words) - 1)
    environment = {"_SPLITGRAPH_COMPLETE": f"{shell}_complete", "COMP_WORDS": typed, "COMP_CWORD": current}
    done = in_child("-m", "splitgraph", **environment)
    assert (done.returncode, done.stderr) == (0, "")
    # Nothing is one empty line.
    lines = done.stdout.splitlines() if done.stdout.strip() else []
    if shell == "zsh":
        # Three lines for each: kind, text, description.
        pairs = list(zip(lines[::3], lines[1::3], strict=True))
    else:
        pairs = [(kind, text.partition("\t")[0]) for kind, _, text in (line.partition(",") for line in lines)]
    return ["file" if kind == "file" else text for kind, text in pairs]


@pytest.mark.parametrize(("typed", "expected"), CASES)
def test_bash(typed: str, expected: list[str]) -> None:
    assert completed("bash", typed) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.parametrize(("typed", "expected"), [CASES[0], CASES[5], CASES[10], CASES[16]])
def test_other_shells(shell: str, typed: str, expected: list[str]) -> None:
    assert completed(shell, typed) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_program_prints_a_script_for_each_shell(shell: str) -> None:
    done = in_child("-m", "splitgraph", _SPLITGRAPH_COMPLETE=f"{shell}_source")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_SPLITGRAPH_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_itself_completes(tmp_path: Path) -> None:
    """As a person has it: the script is read by bash, which calls its function for the words that were typed."""
    program = tmp_path / "splitgraph"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m splitgraph "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    typed = """
eval "$(_SPLITGRAPH_COMPLETE=bash_source splitgraph)"
complete -p splitgraph
COMP_WORDS=(splitgraph convert model.onnx --to s) COMP_CWORD=4
_splitgraph_completion splitgraph
echo "${COMPREPLY[@]}"
"""
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["complete -o nosort -F _splitgraph_completion splitgraph", "split slice"]
