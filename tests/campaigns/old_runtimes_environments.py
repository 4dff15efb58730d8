"""Environments with old onnxruntimes: a Python that is old enough for their wheels, and a folder for each of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

# The Pythons for which both onnxruntimes have wheels, the one to take first at the front.
PYTHONS = ("3.11", "3.10", "3.9", "3.8")
# onnxruntimes of that time were built for numpy 1.
NUMPY = "numpy<2"


@dataclass(frozen=True, slots=True)
class Runtime:
    """An old onnxruntime, and the opset of the exports that it is given."""

    version: str
    opset: int


RUNTIMES = (Runtime("1.15.1", 11), Runtime("1.17.3", 17))


def find_python(given: Path | None = None) -> Path | None:
    """A Python that the old onnxruntimes have wheels for: the given one, this one, one on PATH, one of pyenv.

    None where there is none. Raises ClickException where the given one is not such a Python.
    """
    if given is not None:
        if version_of(given) not in PYTHONS:
            raise click.ClickException(f"{given} is not a Python from {PYTHONS[-1]} to {PYTHONS[0]}")
        return given
    return first_fitting(_candidates())


def first_fitting(candidates: Iterable[Path]) -> Path | None:
    """The first of them that runs and is of a fitting version."""
    return next((path for path in candidates if version_of(path) in PYTHONS), None)


def _candidates() -> Iterator[Path]:
    yield Path(sys.executable)
    for version in PYTHONS:
        found = shutil.which(f"python{version}")
        if found is not None:
            yield Path(found)
    root = _pyenv_root()
    for version in PYTHONS:
        yield from sorted(root.glob(f"versions/{version}.*/bin/python"))


def _pyenv_root() -> Path:
    """Where pyenv keeps its Pythons: as it says itself, or its usual place."""
    if shutil.which("pyenv") is not None:
        done = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return Path(done.stdout.strip())
    return Path.home() / ".pyenv"


def version_of(python: Path) -> str:
    """The version of an interpreter, such as "3.11"; "" for what does not run, as pyenv's shims of other versions."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def environment(runtime: Runtime, python: Path, cache: Path) -> Path:
    """The interpreter of an environment with that onnxruntime, which is made in the cache where it is not there."""
    folder = cache / f"onnxruntime-{runtime.version}"
    interpreter = folder / "bin" / "python"
    if _has(interpreter, runtime):
        return interpreter
    subprocess.run([str(python), "-m", "venv", "--clear", str(folder)], check=True)
    install = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, f"onnxruntime=={runtime.version}", NUMPY], check=True)
    if not _has(interpreter, runtime):
        raise click.ClickException(f"onnxruntime {runtime.version} was installed, but cannot be imported")
    return interpreter


def _has(interpreter: Path, runtime: Runtime) -> bool:
    """Whether an environment is complete: an installation may have been interrupted."""
    if not interpreter.exists():
        return False
    command = [str(interpreter), "-I", "-c", "import onnxruntime; print(onnxruntime.__version__)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() == runtime.version
