"""The table of diagnostic codes."""

from __future__ import annotations

from pathlib import Path

import splitgraph
from splitgraph.findings.diagnostics import CODES


def test_every_code_is_given_somewhere() -> None:
    sources = [path for path in Path(splitgraph.__file__).parent.rglob("*.py") if path.name != "diagnostics.py"]
    text = "".join(path.read_text() for path in sources)
    assert [code for code in CODES if f'"{code}"' not in text] == []
