"""The examples of README.md: their commands run in order in one folder with the models, and what they print.

`python tests/docs/readme_examples.py` writes the present output into README.md.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
# How long many models take differs from run to run.
SECONDS = re.compile(r" in \d+\.\d s$", re.MULTILINE)
PYTHON = re.compile(r"```python\n(.*?)```\n\n```\n(.*?)```", re.DOTALL)


def run(arguments: list[str], folder: Path) -> str:
    """What a command prints, results first, then what goes to stderr."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "140", "NO_COLOR": "1"}
    done = subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    return done.stdout + done.stderr


def shown(block: str, folder: Path) -> str:
    """A console block with the present output of its commands."""
    pieces = []
    for line in block.splitlines():
        if line.startswith("$ splitgraph "):
            output = run([sys.executable, "-m", "splitgraph", *shlex.split(line)[2:]], folder)
            pieces.append(f"{line}\n{SECONDS.sub(' in 1.0 s', output.rstrip())}\n")
    return "\n".join(pieces)


def present(text: str) -> str:
    """README.md with the present output in every example."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "models", folder / "models")
        # Who has tried the examples has these already.
        for written in re.findall(r"^wrote (models/\S+)", text, re.MULTILINE):
            (folder / written).unlink(missing_ok=True)
        text = CONSOLE.sub(lambda found: f"```console\n{shown(found[1], folder)}```", text)
        return PYTHON.sub(
            lambda found: f"```python\n{found[1]}```\n\n```\n{run([sys.executable, '-c', found[1]], folder)}```", text
        )


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(present(readme.read_text(encoding="utf-8")), encoding="utf-8")
