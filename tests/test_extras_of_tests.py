"""A test module whose imports need an extra that `test` does not install is left out where the extra is missing."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from left_out_tests import left_out
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TESTS = Path(__file__).parent
ROOT = TESTS.parent
# Where the tests import their helpers from.
FOLDERS = (TESTS, TESTS / "campaigns", ROOT)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(extra: str) -> set[str]:
    """Return the packages that an extra installs, with those of the extras that it names and of no extra."""
    found = set()
    for text in (*PROJECT["optional-dependencies"][extra], *PROJECT["dependencies"]):
        requirement = Requirement(text)
        if requirement.name == PROJECT["name"]:
            found |= set().union(*map(requirements, requirement.extras))
        else:
            found.add(canonicalize_name(requirement.name))
    return found


OF_TEST = requirements("test")
OF_OTHERS = set().union(*map(requirements, PROJECT["optional-dependencies"])) - OF_TEST
# What only campaigns install.
OF_CAMPAIGNS = {"olive-ai", "torch"}


def top_imports(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the modules that are imported when a module is; what stands behind `importorskip` is not."""
    for statement in body:
        if "importorskip" in ast.dump(statement):
            return
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        if isinstance(statement, ast.ImportFrom):
            prefix = "." * statement.level + (statement.module or "")
            yield prefix
            yield from (f"{prefix}{'' if prefix.endswith('.') else '.'}{alias.name}" for alias in statement.names)


@cache
def file_of(module: str, importer: Path) -> Path | None:
    """Return the file of a module of the tests; None for any other module."""
    level = len(module) - len(module.lstrip("."))
    parts = module.lstrip(".").split(".")
    folders = [importer.parents[level - 1]] if level else [importer.parent, *FOLDERS]
    candidates = (folder.joinpath(*parts).with_suffix(".py") for folder in folders)
    return next((path for path in candidates if path.is_file() and TESTS in path.parents), None)


@cache
def imports_of(path: Path) -> tuple[str, ...]:
    return tuple(top_imports(ast.parse(path.read_text(encoding="utf-8")).body))


@cache
def needed(path: Path) -> frozenset[str]:
    """Return the modules of other packages that importing a module of the tests needs."""
    found: set[str] = set()
    waiting, seen = [path], {path}
    while waiting:
        importer = waiting.pop()
        for module in imports_of(importer):
            file = file_of(module, importer)
            if file is None:
                found.add(module.lstrip(".").partition(".")[0])
            elif file not in seen:
                seen.add(file)
                waiting.append(file)
    return frozenset(found)


def modules_of(packages: set[str]) -> set[str]:
    """Return the modules of some packages, whether they are installed or not."""
    installed = {
        module
        for module, owners in packages_distributions().items()
        if packages & {canonicalize_name(owner) for owner in owners}
    }
    return installed | {package.replace("-", "_") for package in packages} | {"olive"}


def test_what_a_module_needs_is_found_behind_its_helpers() -> None:
    assert "openvino" in needed(TESTS / "openvino_runtime" / "test_saved_element_types.py")
    assert "openvino" in needed(TESTS / "conversion" / "sizes" / "test_reshape_ir.py")
    assert "olive" not in needed(TESTS / "pipelines" / "test_olive_pass.py")


def test_extras_outside_of_test_are_known() -> None:
    assert {"openvino", "selenium"} <= OF_OTHERS
    assert not OF_OTHERS & {"onnxruntime", "pytest", "numpy"}


def test_a_module_that_needs_another_extra_is_left_out_without_it() -> None:
    missing = modules_of(OF_OTHERS | OF_CAMPAIGNS)
    ignored = left_out(missing)
    tests = [path for path in TESTS.rglob("test_*.py") if path not in ignored]
    assert {str(path.relative_to(TESTS)): needed(path) & missing for path in tests if needed(path) & missing} == {}
