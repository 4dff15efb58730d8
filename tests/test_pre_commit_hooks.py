"""The hooks of .pre-commit-hooks.yaml, run by pre-commit itself in a repository of models."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

# pre-commit makes a fresh environment for the hooks: it is in the extra dev, and needs a package index.
in_pre_commit = pytest.mark.slow

ROOT = Path(__file__).parent.parent
MODELS = {"good": "split13_equal.onnx", "wrong": "split18_neither.onnx"}


def run(*command: str, folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    # Hooks must not find the package of this checkout, nor the settings of the user.
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    environment |= {"PRE_COMMIT_HOME": str(home), "GIT_CONFIG_GLOBAL": os.devnull, "NO_COLOR": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps the environment of the hooks, so that one is enough for all tests."""
    return tmp_path_factory.mktemp("pre-commit")


@pytest.fixture
def hooked(tmp_path: Path, home: Path) -> Path:
    """A repository that uses the hooks of this checkout's latest commit."""
    assert run("git", "init", "--quiet", folder=tmp_path, home=home).returncode == 0
    commit = run("git", "rev-parse", "HEAD", folder=ROOT, home=home).stdout.strip()
    lines = [
        "repos:",
        f"- repo: {ROOT.as_uri()}",
        f"  rev: {commit}",
        "  hooks:",
        "  - id: splitgraph-infer",
        "  - id: splitgraph-check",
        "    args: [--target, onnxruntime, --target, mnn]",
    ]
    (tmp_path / ".pre-commit-config.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def pre_commit(*arguments: str, folder: Path, home: Path) -> tuple[int, str]:
    done = run(sys.executable, "-m", "pre_commit", *arguments, folder=folder, home=home)
    return done.returncode, done.stdout + done.stderr


def test_the_hooks_are_commands_in_one_process() -> None:
    """As pre-commit runs them: the entry, its arguments, and all files at once. Clean models print nothing."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert [hook["id"] for hook in hooks] == ["splitgraph-infer", "splitgraph-check"]
    good, wrong = (str(ROOT / "models" / name) for name in MODELS.values())
    for hook in hooks:
        assert hook["require_serial"] is True
        program, *command = [*hook["entry"].split(), *hook.get("args", ())]
        for models, code in (([good], 0), ([good, good], 0), ([wrong], 1), ([good, wrong], 1)):
            done = run(sys.executable, "-m", program, *command, *models, folder=ROOT, home=ROOT)
            said = done.stdout + done.stderr
            assert (done.returncode, "SG207" in said, good in said) == (code, bool(code), False), said


@in_pre_commit
def test_pre_commit_accepts_the_manifest(home: Path) -> None:
    assert pre_commit("validate-manifest", ".pre-commit-hooks.yaml", folder=ROOT, home=home) == (0, "")


@in_pre_commit
@pytest.mark.parametrize(
    ("kind", "infers", "checks"),
    [("text", "Skipped", "Skipped"), ("wrong", "Failed", "Failed"), ("good", "Passed", "Passed")],
)
def test_hooks_look_at_changed_models(kind: str, infers: str, checks: str, hooked: Path, home: Path) -> None:
    if kind == "text":
        (hooked / "README.md").write_text("No model is here.\n", encoding="utf-8")
    else:
        shutil.copy(ROOT / "models" / MODELS[kind], hooked / "model.onnx")
    assert run("git", "add", "--all", folder=hooked, home=home).returncode == 0
    code, text = pre_commit("run", folder=hooked, home=home)
    hooks = [line for line in text.splitlines() if line.startswith("splitgraph ")]
    results = {line.partition("...")[0]: re.split(r"[.)]", line)[-1] for line in hooks}
    assert results == {"splitgraph infer": infers, "splitgraph check": checks}, text
    assert code == (1 if kind == "wrong" else 0)
    assert ("SG207" in text) == (kind == "wrong")
