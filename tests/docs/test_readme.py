"""README.md shows what the program does: every example is run, and every file that it links to exists."""

from __future__ import annotations

import re

from readme_examples import CONSOLE, PYTHON, ROOT, present

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_examples_show_the_present_output() -> None:
    assert len(CONSOLE.findall(TEXT)) >= 10
    assert len(PYTHON.findall(TEXT)) == 1
    assert present(TEXT) == TEXT, "python tests/docs/readme_examples.py writes the present output into README.md"


def test_every_command_has_an_example() -> None:
    for command in ("infer", "upgrade", "downgrade", "convert", "check", "report", "diff", "verify", "explain"):
        assert f"$ splitgraph {command} " in TEXT


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / target).exists(), target
