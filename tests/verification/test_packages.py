"""Packages and their versions: the tables are those of pyproject.toml."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

from splitgraph.verification import installation
from splitgraph.verification.installation import (
    EXTRAS,
    REQUIRED,
    PackageReport,
    examine,
    optional_packages,
    required_packages,
)

PYPROJECT = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
# Extras of the project itself.
OF_DEVELOPERS = ("all", "test", "dev", "browser", "docs")


def requirements(text: str) -> dict[str, str]:
    """Each package of a list of requirements with its oldest version."""
    return dict(re.findall(r'"([\w-]+)>=([\d.]+)[^"]*"', text))


def test_the_required_packages_are_those_of_the_project() -> None:
    (listed,) = re.findall(r"^dependencies = \[(.*?)^\]", PYPROJECT, re.MULTILINE | re.DOTALL)
    # Older Pythons need a parser of TOML.
    found = {name: oldest for name, oldest in requirements(listed).items() if name in REQUIRED or name != "tomli"}
    assert {name: oldest for name, oldest in REQUIRED.items() if name != "protobuf"} == found


def test_the_extras_are_those_of_the_project() -> None:
    (table,) = re.findall(r"^\[project\.optional-dependencies\]\n(.*?)^\[", PYPROJECT, re.MULTILINE | re.DOTALL)
    listed = dict(re.findall(r"^([\w-]+) = (\[.*?\])$", table, re.MULTILINE | re.DOTALL))
    assert set(EXTRAS) == set(listed) - set(OF_DEVELOPERS)
    for name, extra in EXTRAS.items():
        assert requirements(listed[name]) == {extra.package: extra.oldest}
        assert extra.adds


@pytest.mark.parametrize(
    ("installed", "oldest", "is_too_old"),
    [
        (None, "1.20", False),
        ("1.20", "1.20", False),
        ("1.20.0", "1.20", False),
        ("1.9.9", "1.20", True),
        ("1.20rc1", "1.20", False),
        ("2", "1.20", False),
        ("13.9.4", "13", False),
        ("12.6.0", "13", True),
        ("3.20.3", "", False),
        ("2026.4.1-22037-abc", "2025.0", False),
    ],
)
def test_versions_are_compared_by_their_numbers(installed: str | None, oldest: str, is_too_old: bool) -> None:
    assert PackageReport("package", installed, oldest).is_too_old == is_too_old


def test_what_is_missing_or_too_old_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"numpy": "1.20.1", "onnxruntime": "1.17.0"}

    def version(name: str) -> str:
        if name == "defusedxml":
            raise metadata.PackageNotFoundError(name)
        return versions.get(name, "9999.1")

    monkeypatch.setattr(installation.metadata, "version", version)
    monkeypatch.setattr("splitgraph.verification.installation.ENGINES", ())
    found = examine()
    assert [(each.code, each.severity, each.location) for each in found.diagnostics] == [
        ("SG802", "error", "numpy"),
        ("SG802", "error", "defusedxml"),
        ("SG802", "warning", "onnxruntime"),
    ]
    assert not found.ok


def test_what_is_installed_here_is_found() -> None:
    assert {each.name: each.version for each in required_packages()} == {
        name: metadata.version(name) for name in REQUIRED
    }
    assert set(optional_packages()) == set(EXTRAS)


def test_a_variant_of_a_package_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation.metadata, "packages_distributions", lambda: {"onnxruntime": ["onnxruntime-gpu"]})
    monkeypatch.setattr(installation.metadata, "version", lambda name: "1.24.1")
    assert optional_packages()["onnxruntime"] == PackageReport("onnxruntime-gpu", "1.24.1", "1.20")
