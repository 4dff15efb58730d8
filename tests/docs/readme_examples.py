"""The examples of README.md and docs/: the commands of a page run in order in one folder with the models.

`python tests/docs/readme_examples.py` writes what they print now into the pages.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
# How long many models take differs from run to run.
SECONDS = re.compile(r" in \d+\.\d s$", re.MULTILINE)
# What is said of a verification that takes long on a busy machine.
TOOK_LONG = re.compile(r"\n?verification took \d+ s; --no-verify skips it")
# So does whether another version of a runtime is there, in place of the one that was asked for.
OTHER_VERSION = re.compile(r"(?<=not installed here) \([\d.]+ is\)")
PYTHON = re.compile(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```", re.DOTALL)


# Examples that run a model in a runtime, which the tests do not install.
IN_RUNTIME = re.compile(r"--target (openvino) ")


# Runs commands one after the other in one process, so that splitgraph is imported once and the engines start once.
_RUNNER = """
import json, os, sys, tempfile
from splitgraph.cli import main
from splitgraph.verification import budget
# On a machine that is busy, verification takes longer, and has the time for it.
budget._FEW_SECONDS = budget._SEARCHING_SECONDS = 120.0
printed = os.dup(1)
shown = []
for arguments in json.load(sys.stdin):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        main(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        for file in (out, err):
            file.seek(0)
        shown.append((out.read() + err.read()).decode())
os.write(printed, json.dumps(shown).encode())
"""


def pages() -> list[Path]:
    """Return README.md and the pages of docs/ with examples: console blocks, and Python with what it prints."""
    written = {page: page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md")))}
    return [page for page, text in written.items() if CONSOLE.search(text) or PYTHON.search(text)]


def run(script: str, folder: Path, given: str = "") -> str:
    """Return what a Python script prints, results first, then what goes to stderr."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "COLUMNS": "140", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, encoding="utf-8", input=given,
        check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def outputs(commands: Sequence[str], folder: Path) -> dict[str, str]:
    """Return what each command prints; they run in order."""
    typed = json.dumps([shlex.split(command)[2:] for command in commands])
    shown = json.loads(run(_RUNNER, folder, typed))
    return dict(zip(commands, map(_plain, shown), strict=True))


def _plain(output: str) -> str:
    """Return what a command prints without what differs from run to run."""
    for varying, plain in ((SECONDS, " in 1.0 s"), (OTHER_VERSION, ""), (TOOK_LONG, "")):
        output = varying.sub(plain, output.rstrip())
    return output


def commands_of(block: str) -> list[str]:
    """Return the lines of a console block that are commands."""
    return [line for line in block.splitlines() if line.startswith("$ splitgraph ")]


def _can_run(command: str, told: str) -> bool:
    """Return False for a command that needs a runtime which is not here in the version that the page shows."""
    runtime = IN_RUNTIME.search(command)
    if runtime is None:
        return True
    try:
        here = version(runtime[1])
    except PackageNotFoundError:
        return False
    # The package has a number of its build behind.
    return not told or any(here.startswith(word) for word in re.findall(r"\d+\.\d+\.\d+", told))


def _told(text: str, command: str) -> str:
    """Return what a page shows as the output of a command."""
    after = text.partition(f"{command}\n")[2]
    return re.split(r"\n\$ |\n```|```", after, maxsplit=1)[0].rstrip()


def present(text: str) -> str:
    """Return a page with the present output in every example."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "models", folder / "models")
        commands = [command for block in CONSOLE.findall(text) for command in commands_of(block)]
        assert len(commands) == len(set(commands))
        told = {command: _told(text, command) for command in commands}
        told = {command: output for command, output in told.items() if not _can_run(command, output)}
        shown = outputs([command for command in commands if command not in told], folder) | told
        text = CONSOLE.sub(
            lambda block: (
                "```console\n"
                + "\n".join(f"{command}\n{shown[command]}\n" for command in commands_of(block[1]))
                + "```"
            ),
            text,
        )
        return PYTHON.sub(lambda block: f"```python\n{block[1]}```\n\n```\n{run(block[1], folder)}```", text)


if __name__ == "__main__":
    for page in pages():
        page.write_text(present(page.read_text(encoding="utf-8")), encoding="utf-8")
