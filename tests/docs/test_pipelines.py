"""The examples of docs/pipelines.md and docs/ci.md."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from splitgraph.cli import program

ROOT = Path(__file__).parents[2]
PIPELINES = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")
CI = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of a language."""
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return found


def test_the_example_for_onnx_ir_prints_what_the_page_shows() -> None:
    example = next(block for block in blocks(PIPELINES, "python") if "onnx_ir" in block)
    done = subprocess.run([sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"\n```\n{done.stdout}```\n" in PIPELINES


def test_the_page_lists_every_parameter_of_the_pass_for_olive() -> None:
    # The source is read: the pass imports Olive, which is not installed here.
    module = ast.parse((ROOT / "splitgraph" / "pipelines" / "olive_pass.py").read_text(encoding="utf-8"))
    tables = {ast.unparse(node.target): node.value for node in module.body if isinstance(node, ast.AnnAssign)}
    declared = tables["_PARAMETERS"]
    assert isinstance(declared, ast.Dict)
    rows = PIPELINES.partition("| parameter | value | default |\n|---|---|---|\n")[2].partition("\n\n")[0]
    assert [row.split("`")[1] for row in rows.splitlines()] == [ast.literal_eval(key) for key in declared.keys if key]


def test_the_example_for_pre_commit_uses_the_hooks() -> None:
    (config,) = (yaml.safe_load(block) for block in blocks(PIPELINES, "yaml"))
    hooks = config["repos"][0]["hooks"]
    assert {hook["id"] for hook in hooks} == set(HOOKS)
    assert all(f"`{name}`" in PIPELINES for name in HOOKS)


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_calls_a_command_with_its_options(name: str) -> None:
    hook = HOOKS[name]
    prefix, command, *options = hook["entry"].split(" ")
    assert prefix == "splitgraph"
    known = {spelled for param in program.commands[command].params for spelled in param.opts}
    assert {word for word in [*options, *hook.get("args", [])] if word.startswith("-")} <= known
    assert [bool(re.search(hook["files"], path)) for path in ("a/b.onnx", "b.onnx.data", "onnx.py")] == [
        True,
        False,
        False,
    ]


def steps(value: Any) -> list[str]:
    """Every command of a job, wherever its CI system has it."""
    if isinstance(value, dict):
        return [line for inner in value.values() for line in steps(inner)]
    if isinstance(value, list):
        return [line for inner in value for line in steps(inner)]
    return [value] if isinstance(value, str) and value.startswith("splitgraph ") else []


@pytest.mark.parametrize("block", blocks(CI, "yaml"), ids=["github", "gitlab"])
def test_a_ci_job_is_yaml_and_calls_commands(block: str) -> None:
    called = steps(yaml.safe_load(block))
    assert called
    assert {call.split(" ")[1] for call in called} <= set(program.commands)
    files = [word for call in called for word in call.split(" ") if word.endswith((".jsonl", ".xml"))]
    # Each step has reports of its own.
    assert len(set(files)) == len(files) > 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_lines_for_shells_name_the_variable_of_click(shell: str) -> None:
    assert f"_SPLITGRAPH_COMPLETE={shell}_source splitgraph" in PIPELINES


def test_links_lead_somewhere() -> None:
    for text in (PIPELINES, CI):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
            assert (ROOT / "docs" / target).exists(), target
