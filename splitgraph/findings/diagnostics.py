"""Diagnostics: a finding, its location, and advice; and the errors that carry them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from splitgraph.findings.codes import CODES
from splitgraph.findings.near_names import meant, meant_file, nearest

__all__ = [
    "CODES",
    "LONGEST_NAME",
    "LONGEST_TEXT",
    "ConversionError",
    "Diagnostic",
    "InternalError",
    "ModelError",
    "Severity",
    "SplitgraphError",
    "VerificationError",
    "abridged",
    "diagnostic",
    "findings_phrase",
    "meant",
    "meant_file",
    "nearest",
    "with_words_abridged",
]

Severity = Literal["error", "warning", "info"]

# Characters of a message in the short form of a finding.
_SHOWN = 80


@dataclass(frozen=True, slots=True, repr=False)
class Diagnostic:
    """One finding.

    code: what `splitgraph explain` explains ("SG203"). severity: only an "error" makes a model wrong. message: what was
    found and what is allowed. location: graph, subgraph and node ("main/encoder/Split_4"), a file name, or "". help:
    what to do.
    node: the name of the node ("Split_4"), or its operator and position in its graph if it has no name ("Split#4").
    operator: of the node, with its version ("Split-13"). target: the runtime and its version ("mnn@3.6.1"), of a
    finding about what a runtime reads. blocking_opset: of a blocker of a conversion, the first version of ai.onnx on
    the way that the node cannot reach: 15 where a downgrade can stop at 16. Each is None where it does not apply.
    """

    code: str
    severity: Severity
    message: str
    location: str = ""
    help: str = ""
    # The location says the same, and the same finding may be made before its node is looked up.
    node: str | None = field(default=None, compare=False)
    operator: str | None = field(default=None, compare=False)
    target: str | None = None
    blocking_opset: int | None = None

    def __repr__(self) -> str:
        """Return what a notebook shows: severity, code, place, and the beginning of the message."""
        where = f" at {abridged(self.location)}" if self.location else ""
        text = self.message if len(self.message) <= _SHOWN else f"{self.message[:_SHOWN]}…"
        return f"<Diagnostic: {self.severity} {self.code}{where}: {text}>"


def diagnostic(
    code: str,
    message: str,
    location: str = "",
    *,
    severity: Severity = "error",
    help: str | None = None,
    node: str | None = None,
    operator: str | None = None,
    target: str | None = None,
    blocking_opset: int | None = None,
) -> Diagnostic:
    """Return a Diagnostic of a known code; by default its help comes from the table of codes."""
    text = abridged(with_words_abridged(message), LONGEST_TEXT)
    help = CODES[code].help if help is None else help
    return Diagnostic(code, severity, text, location, help, node, operator, target, blocking_opset)


# The longest name, and the longest text, that is displayed in full; in characters.
LONGEST_NAME = 500
LONGEST_TEXT = 10_000
_LONG_WORD = re.compile(rf"\S{{{LONGEST_NAME + 1},}}")


def abridged(text: str, most: int = LONGEST_NAME) -> str:
    """Return a name or text for display. A very long one is reduced to its ends and its length."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}…{text[-most // 4 :]} ({len(text):,} characters)"


def with_words_abridged(text: str) -> str:
    """Return a text for display, with every very long word (usually a name) abridged."""
    return text if len(text) <= LONGEST_NAME else _LONG_WORD.sub(lambda match: abridged(match.group()), text)


def _printable_lines(text: str) -> str:
    """Return a message of several lines; its other control characters, such as those of a terminal, become escapes."""
    if text.isprintable():
        return text
    shown = (char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode() for char in text)
    return "".join(shown)


def findings_phrase(findings: Iterable[Diagnostic]) -> str:
    """Return how many findings of each severity: "1 error, 2 warnings"; "no findings" without any."""
    numbers = Counter[str](finding.severity for finding in findings)
    nouns = {"error": "error", "warning": "warning", "info": "note"}
    told = [f"{numbers[each]:,} {noun}{'s' * (numbers[each] != 1)}" for each, noun in nouns.items() if numbers[each]]
    return ", ".join(told) or "no findings"


class SplitgraphError(Exception):
    """Base of every error that splitgraph raises on purpose.

    diagnostics: one for each finding; empty if the message is complete.
    """

    diagnostics: tuple[Diagnostic, ...]

    def __init__(self, message: str, diagnostics: Iterable[Diagnostic] = ()) -> None:
        super().__init__(_printable_lines(with_words_abridged(message)))
        self.diagnostics = tuple(diagnostics)


class ModelError(SplitgraphError):
    """The file cannot be read as a model, or cannot be written."""


class ConversionError(SplitgraphError):
    """The model cannot be converted exactly; `.diagnostics` holds every blocker."""


class InternalError(SplitgraphError):
    """A fault of splitgraph, such as a result with an error that the model does not have. Nothing is written."""


class VerificationError(SplitgraphError):
    """The rewritten model and the original gave different results."""
