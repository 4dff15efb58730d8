"""Pages on a terminal: colour, width, and names that are no markup."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import pytest

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.reports.pages import (
    analysis_page,
    findings_table,
)
from splitgraph.reports.text import Block, line, plain_text, print_page

from .results import GPT2, make_analysis, make_split


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def without_styles(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def on_terminal(blocks: Sequence[Block], monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "100", **environment}.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    print_page(blocks, stream)
    return stream.getvalue()


def test_a_terminal_gets_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" in on_terminal(analysis_page(GPT2, "gpt2.onnx"), monkeypatch)


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    text = on_terminal([line(("red", "red")), findings_table([diagnostic("SG201", "m")])], monkeypatch, NO_COLOR="1")
    assert "\x1b[3" not in text
    assert "red" in text


def test_without_colour_the_terminal_shows_what_a_pipe_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    page = analysis_page(GPT2, "gpt2.onnx")
    shown = without_styles(on_terminal(page, monkeypatch))
    assert [text.split() for text in shown.splitlines()] == [text.split() for text in plain_text(page).splitlines()]


def test_names_from_a_model_are_never_markup_nor_control_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    split = make_split(
        "[bold]evil[/bold]\x1b]0;title\x07:smile:", location="main/[bold]evil[/bold]\x1b]0;title\x07:smile:"
    )
    found = Diagnostic("SG201", "error", "[red]\x1b[2Jmessage", "main/[/]", "[link=x]help")
    page = analysis_page(make_analysis(split, diagnostics=[found]), "[i]model\x1b[0m.onnx", with_values=True)
    shown = without_styles(on_terminal(page, monkeypatch, COLUMNS="200"))
    for text in (shown, plain_text(page)):
        assert "\x1b" not in text
        assert "\x07" not in text
        assert r"[bold]evil[/bold]\x1b]0;title\x07:smile:" in text
        assert r"[i]model\x1b[0m.onnx" in text
        assert r"[red]\x1b[2Jmessage" in text
        assert "[link=x]help" in text


def test_a_narrow_terminal_folds_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    name, lengths = "a" * 80 + "z", list(range(10, 18))
    page = analysis_page(make_analysis(make_split(name, lengths=lengths)), "m.onnx")
    shown = without_styles(on_terminal(page, monkeypatch, COLUMNS="50"))
    assert all(len(text) <= 50 for text in shown.splitlines())
    assert (shown.count("a") - plain_text(page).replace(name, "").count("a"), shown.count("z")) == (80, 1)
    assert all(str(length) in shown for length in lengths)
