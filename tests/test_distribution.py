"""The name under which splitgraph is installed: that of the package belongs to another project on the package index."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import splitgraph

ROOT = Path(__file__).parent.parent
TEXTS = sorted(
    path
    for pattern in ("splitgraph/**/*.py", "docs/**/*.md", "benchmarks/*", "models/*.md", "*.md", "*.toml", ".ci/*")
    for path in ROOT.glob(pattern)
    if path.is_file()
)
# Of the text that the Apache Software Foundation publishes.
LICENCE = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
# What would install the other project: pip's command, or a requirement, with the name of the package.
FORBIDDEN = re.compile(r"pip3? (?:install|download)[^\n`&|;]*?(?<![\w./-])splitgraph\b|(?<![\w./-])splitgraph\[")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_text_installs_the_other_project(path: Path) -> None:
    found = FORBIDDEN.findall(path.read_text(encoding="utf-8", errors="replace"))
    assert not found, f"say how to install it from where the user has it: {found}"


@pytest.mark.parametrize(
    ("text", "is_forbidden"),
    [
        ("pip install splitgraph", True),
        ("pip install 'splitgraph[openvino]'", True),
        ("pip3 install -U splitgraph", True),
        ('all = ["splitgraph[onnxruntime]"]', True),
        ("pip install '.[openvino]'", False),
        ("pip install onnx-splitgraph", False),
        ("pip install openvino", False),
        ("splitgraph upgrade model.onnx", False),
        ('test = ["onnx-splitgraph[onnxruntime]"]', False),
    ],
)
def test_what_is_forbidden(text: str, is_forbidden: bool) -> None:
    assert bool(FORBIDDEN.search(text)) == is_forbidden


def test_the_distribution_has_a_name_of_its_own() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r'^name = "onnx-splitgraph"$', text, re.MULTILINE)
    assert re.search(r'^splitgraph = "splitgraph.cli:main"$', text, re.MULTILINE)
    assert 'packages = ["splitgraph"]' in text


def test_the_wheel_has_the_data_of_the_package() -> None:
    # hatchling packs every file below the package that nothing excludes.
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wheel = text.partition("[tool.hatch.build.targets.wheel]\n")[2].partition("\n[")[0]
    assert wheel.split("\n")[:1] == ['packages = ["splitgraph"]']
    assert not re.search(r"^(?:exclude|only-include|only-packages)\b", text, re.MULTILINE)
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split() if (ROOT / ".gitignore").exists() else []
    assets = [("reports/html/assets", suffix) for suffix in ("js", "css", "html")]
    vendored = [("reports/html/assets/vendor", suffix) for suffix in ("js", "LICENSE", "md")]
    for folder, suffix in (("model/schemas", "txt"), ("runtimes/table", "json"), *assets, *vendored):
        assert list((ROOT / "splitgraph" / folder).glob(f"*.{suffix}"))
        assert not [line for line in ignored if line.endswith(suffix) or "splitgraph" in line]


def test_the_licence_is_the_published_text() -> None:
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == LICENCE
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'license = "Apache-2.0"\nlicense-files = ["LICENSE"]\n' in text


def test_the_security_policy_is_of_this_release() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    series = ".".join(splitgraph.__version__.split(".")[:2])
    assert f"the latest release ({series}.x)" in text
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).exists(), target
