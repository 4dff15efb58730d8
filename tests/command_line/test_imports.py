"""What each command imports: nothing that it does not use, because imports are most of what a small command costs.

`benchmarks/startup.py` measures it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .program import ROOT, in_child

MODEL = str(ROOT / "models" / "split13_equal.onnx")
OTHER = str(ROOT / "models" / "split18_lengths.onnx")
# Prints what the command imports beyond click on the last line.
SCRIPT = """
import sys
import click
known = set(sys.modules)
from splitgraph.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    # A shell that asked for completions.
    pass
print("\\n", *sorted(set(sys.modules) - known))
"""
# The same, on two terminals as far as the program knows.
ON_TERMINAL = "import sys; sys.stdout.isatty = sys.stderr.isatty = lambda: True\n" + SCRIPT

RUNTIMES = ("onnx", "numpy", "onnxruntime", "openvino", "onnx_graphsurgeon", "onnx_ir", "sympy")
# What no command needs before it runs.
STARTING = (
    *RUNTIMES,
    "dataclasses",
    "difflib",
    "google",
    "json",
    "pathlib",
    "rich",
    "signal",
    "splitgraph.api",
    "splitgraph.findings.diagnostics",
    "splitgraph.dim",
    "splitgraph.formats",
    "splitgraph.report",
)
EXPLAINING = (*RUNTIMES, "difflib", "google", "json", "pathlib", "rich", "splitgraph.api", "splitgraph.dim")
INFERRING = (
    *RUNTIMES,
    "difflib",
    "fractions",
    "logging",
    "rich",
    "subprocess",
    "tempfile",
    "splitgraph.commands.rewrite",
    "splitgraph.commands.verify",
    "splitgraph.conversion",
    "splitgraph.verification",
    "splitgraph.formats.openvino_ir",
    "splitgraph.openvino",
    "xml",
    "zipfile",
)
REWRITING = (*RUNTIMES, "rich", "json", "subprocess", "splitgraph.commands.infer", "splitgraph.verification")
# What it says of two models rests on inference and on nothing else.
COMPARING = (*INFERRING, "splitgraph.commands.infer", "splitgraph.runtimes")
REPORTING = (
    *RUNTIMES,
    "rich",
    "subprocess",
    "splitgraph.commands.infer",
    "splitgraph.commands.rewrite",
    "splitgraph.conversion",
    "splitgraph.differences",
    "splitgraph.verification",
    "splitgraph.formats.openvino_ir",
    "splitgraph.reports.html.changes_page",
    "xml",
)
# Parts of rich that no page needs.
RICH_PARTS = ("pygments", "rich.live", "rich.markdown", "rich.progress", "rich.status", "rich.syntax")


def imported(script: str, *arguments: str, folder: Path = ROOT, **environment: str) -> set[str]:
    """The modules that a command imports in a fresh process, and the packages that they are in."""
    done = in_child("-c", script, *arguments, folder=folder, **environment)
    parts = [name.split(".") for name in done.stdout.splitlines()[-1].split()]
    return {".".join(names[:length]) for names in parts for length in range(1, len(names) + 1)}


@pytest.mark.parametrize(
    ("arguments", "forbidden"),
    [
        (["--version"], STARTING),
        (["--help"], STARTING),
        ([], STARTING),
        *(
            ([name, "--help"], STARTING)
            for name in (
                *("infer", "upgrade", "downgrade", "convert", "verify", "diff", "report"),
                *("explain", "doctor"),
            )
        ),
        (["frobnicate"], tuple(name for name in STARTING if name != "difflib")),
        (["explain", "SG203"], EXPLAINING),
        (["explain"], EXPLAINING),
        (["doctor"], (*RUNTIMES, "google", "rich", "splitgraph.api", "splitgraph.inference", "splitgraph.conversion")),
        (["doctor", "--json"], (*RUNTIMES, "google", "rich", "splitgraph.reports.text", "splitgraph.reports.pages")),
        (["infer", MODEL], (*INFERRING, "json", "splitgraph.reports.documents")),
        (["infer", MODEL, "--json"], (*INFERRING, "splitgraph.reports.text", "splitgraph.reports.pages")),
        (["diff", MODEL, MODEL], (*COMPARING, "json", "splitgraph.reports.documents")),
        (["diff", MODEL, OTHER], (*COMPARING, "json", "splitgraph.reports.documents")),
        (["diff", MODEL, OTHER, "--json"], (*COMPARING, "splitgraph.reports.text", "splitgraph.reports.pages")),
        (["upgrade", MODEL, "--opset", "18", "--no-verify", "-o", "out.onnx"], REWRITING),
        (["report", MODEL, "-o", "out.html"], REPORTING),
        (["report", MODEL, "-o", "out.svg", "--svg", "nothing"], (*REPORTING, "splitgraph.reports.html.model_data")),
    ],
)
@pytest.mark.sample(8)
def test_nothing_is_imported_that_is_not_used(arguments: list[str], forbidden: tuple[str, ...], tmp_path: Path) -> None:
    assert imported(SCRIPT, *arguments, folder=tmp_path).intersection(forbidden) == set()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["infer", "--help"]])
def test_help_is_of_a_few_modules(arguments: list[str]) -> None:
    found = {name for name in imported(SCRIPT, *arguments) if name.startswith("splitgraph")}
    modules = ("cli", "commands", "findings", "findings.exit_codes", "options", "processes", "processes.this_process")
    modules = (*modules, *(f"commands.{name}" for name in ("declared", "parameters", "program")))
    assert found == {"splitgraph", *(f"splitgraph.{name}" for name in modules)}


@pytest.mark.parametrize(
    ("arguments", "used", "forbidden"),
    [
        (["infer", MODEL], {"rich.console", "rich.table"}, RICH_PARTS),
        (["infer", "missing.onnx"], {"rich.console"}, RICH_PARTS),
    ],
)
def test_a_terminal_needs_a_few_parts_of_rich(arguments: list[str], used: set[str], forbidden: tuple[str, ...]) -> None:
    found = imported(ON_TERMINAL, *arguments)
    assert used <= found
    assert found.intersection(forbidden) == set()


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("splitgraph in", ["infer"]),
        (
            "splitgraph ",
            ["infer", "upgrade", "downgrade", "convert", "reshape", "check", "verify", "diff", "report", "explain"],
        ),
        ("splitgraph infer --js", ["--json"]),
        ("splitgraph verify a b --engine onnx", ["onnxruntime"]),
    ],
)
def test_shells_complete_without_importing_what_a_command_does(words: str, completed: list[str]) -> None:
    environment = {
        "_SPLITGRAPH_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    done = in_child("-c", SCRIPT, **environment)
    assert [line.partition(",")[2] for line in done.stdout.splitlines()[: len(completed)]] == completed
    found = imported(SCRIPT, **environment)
    assert found.intersection(name for name in STARTING if name.startswith("splitgraph")) == set()
