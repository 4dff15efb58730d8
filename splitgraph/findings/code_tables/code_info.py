"""What is told of a diagnostic code."""

from __future__ import annotations

from typing import NamedTuple


class CodeInfo(NamedTuple):
    """One row of the table of codes: a title, its meaning, and advice."""

    title: str
    meaning: str
    help: str
