"""The distributions that are built from this checkout: what they hold, and what the wheel alone can do.

They need the packages of the extra dev, and a package index for the dependencies of the wheel.
"""

from __future__ import annotations

import email.message
import email.parser
import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
MODEL = ROOT / "models" / "split11_attribute.onnx"
# Files at the root of a checkout that only a checkout needs.
OF_A_CHECKOUT = (".gitignore", ".ci/run")
# Packages that are optional: the wheel must do its main job without them.
OPTIONAL = ("onnxruntime", "openvino", "onnx_ir")


def called(*command: str | Path, folder: Path = ROOT, code: int = 0) -> str:
    """The output of a command, which must end with this exit code."""
    # No package of this checkout may help the installed one.
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def tracked(*paths: str) -> list[str]:
    """The files that git has, relative to the root."""
    return called("git", "ls-files", "-z", "--", *paths).split("\0")[:-1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and with the wheel that was built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    called(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder)
    return folder


def only(files: Sequence[Path]) -> Path:
    (file,) = files
    return file


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return only(list(built.glob("*.whl")))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of a fresh environment that has the wheel and its dependencies, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    called(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    return programs


def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.parser.Parser().parsestr(archive.read(name).decode("utf-8"))


def test_twine_accepts_them_and_the_description_renders(built: Path) -> None:
    assert "PASSED" in called(sys.executable, "-m", "twine", "check", "--strict", *sorted(built.iterdir()))


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not name.endswith("/")}
    # Data files are what is easily forgotten: tables, schemas, py.typed.
    expected = tracked("splitgraph")
    assert [name for name in expected if not name.endswith(".py")]
    assert sorted(set(expected) - packed) == []
    others = {name for name in packed if not name.startswith("splitgraph/")}
    assert all(".dist-info/" in name for name in others), f"files outside of the package: {sorted(others)}"
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in others)


def test_the_sdist_has_every_file_of_the_project(built: Path) -> None:
    archive = only(list(built.glob("*.tar.gz")))
    with tarfile.open(archive) as opened:
        packed = {name.partition("/")[2] for name in opened.getnames()}
    assert sorted(set(tracked()) - packed - set(OF_A_CHECKOUT)) == []


def test_the_metadata_names_the_licence(wheel: Path) -> None:
    found = metadata(wheel)
    assert (found["License-Expression"], found.get_all("License-File")) == ("Apache-2.0", ["LICENSE"])
    assert found["Description-Content-Type"] == "text/markdown"


def test_the_wheel_alone_does_the_main_job(installed: Path, tmp_path: Path) -> None:
    python, splitgraph = installed / "python", installed / "splitgraph"
    missing = f"import importlib.util; print([n for n in {OPTIONAL!r} if importlib.util.find_spec(n)])"
    assert called(python, "-c", missing, folder=tmp_path).strip() == "[]"
    home = Path(called(python, "-c", "import splitgraph; print(splitgraph.__file__)", folder=tmp_path).strip())
    assert ROOT not in home.parents
    result = tmp_path / "result.onnx"
    assert json.loads(called(splitgraph, "infer", MODEL, "--json", folder=tmp_path))["ok"]
    upgraded = called(
        splitgraph, "upgrade", MODEL, "--opset", "18", "--verify", "-o", result, "--json", folder=tmp_path
    )
    assert (json.loads(upgraded)["verified"], json.loads(upgraded)["verification"]["engine"]) == (True, "reference")
    assert "runs" in called(splitgraph, "check", result, "--all-targets", folder=tmp_path, code=1)
    called(python, "-m", "splitgraph", "verify", MODEL, result, folder=tmp_path)
