"""An environment for each runtime and version: a virtual environment with pip's packages, or a folder with npm's.

An adapter says what its runtime needs:

    PACKAGES   the requirements for pip by version; the first version is the one that is measured by default
    NPM        the packages for npm by version, beside those for pip
    PYTHONS    the Pythons that the packages have wheels for; any where the adapter does not say
    SHARES     the name of another adapter whose environments hold this runtime too
    VARIABLES  environment variables of the process that runs the runtime
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ADAPTERS = Path(__file__).resolve().parent / "adapters"
# Written when an environment is complete, with its requirements: an installation may be interrupted.
_MARK = "complete.json"


class SetupError(Exception):
    """An environment that cannot be made, or a runtime that does not start in its environment."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """An adapter at one version of its runtime."""

    name: str
    version: str
    adapter: Path
    packages: Sequence[str]
    npm: Sequence[str]
    pythons: Sequence[str]
    variables: Mapping[str, str]
    folder: str


def names() -> list[str]:
    """The names of all adapters."""
    return sorted(path.stem for path in ADAPTERS.glob("*.py"))


def versions(name: str) -> list[str]:
    """The versions that an adapter has packages for."""
    return list(_adapter(name).PACKAGES)


def runtime(name: str, version: str | None = None) -> Runtime:
    """The runtime of this name, and of the adapter's first version where none is given.

    Raises SetupError where there is no such adapter or version.
    """
    module = _adapter(name)
    chosen = version or next(iter(module.PACKAGES))
    if chosen not in module.PACKAGES:
        raise SetupError(f"{name} has no version {chosen}; its versions are {', '.join(module.PACKAGES)}")
    return Runtime(
        name,
        chosen,
        ADAPTERS / f"{name}.py",
        module.PACKAGES[chosen],
        _field(module, "NPM", {}).get(chosen, []),
        _field(module, "PYTHONS", []),
        _field(module, "VARIABLES", {}),
        f"{_field(module, 'SHARES', name)}-{chosen}",
    )


def _field(module: ModuleType, name: str, default: Any) -> Any:
    return getattr(module, name, default)


def _adapter(name: str) -> ModuleType:
    """The module of an adapter, which imports its runtime only when it is asked to."""
    path = ADAPTERS / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"adapter_{name}", path)
    if spec is None or spec.loader is None or not path.exists():
        raise SetupError(f"there is no adapter {name}; the adapters are {', '.join(names())}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def interpreter(chosen: Runtime, cache: Path) -> Path:
    """The Python of a runtime's environment, which is made in the cache where it is not there.

    Raises SetupError where the environment cannot be made.
    """
    folder = cache.resolve() / chosen.folder
    python = folder / "bin" / "python"
    needed = [*chosen.packages, *chosen.npm]
    mark = folder / _MARK
    if mark.exists() and set(needed) <= set(json.loads(mark.read_text("utf-8"))):
        return python
    _run([str(_python(chosen)), "-m", "venv", "--clear", str(folder)])
    _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *chosen.packages])
    if chosen.npm:
        # No scripts: what they fetch besides is for graphics processors.
        _run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder), *chosen.npm])
    mark.write_text(json.dumps(needed), "utf-8")
    return python


def _python(chosen: Runtime) -> str:
    """A Python of a fitting version: this one, or one on PATH."""
    own = "{}.{}".format(*sys.version_info[:2])
    if not chosen.pythons or own in chosen.pythons:
        return sys.executable
    for version in chosen.pythons:
        found = shutil.which(f"python{version}")
        if found is not None:
            return found
    raise SetupError(f"{chosen.name} {chosen.version} needs Python {' or '.join(chosen.pythons)}; none is on PATH")


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SetupError(f"{command[0]} is not installed") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()] or done.stderr.splitlines()
        raise SetupError(f"{' '.join(command[:4])} … failed: {lines[-1] if lines else 'it said nothing'}")
