"""Write docs/diagnostics.md from the table of codes: `python docs/make_diagnostics.py`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from splitgraph.diagnostics import CODES

PAGE = Path(__file__).with_name("diagnostics.md")

# The first digit of a code says what it is about.
SECTIONS = {
    "1": "The file and the model as a whole",
    "2": "The split operators",
    "3": "Inference of everything else",
    "4": "Conversion",
    "5": "Verification",
    "6": "How the program was called",
    "7": "What a target reads",
    "8": "The installation",
}


def diagnostics_page() -> str:
    """The page as Markdown: every code with its title, what it means and what to do."""
    parts = [
        "# Diagnostic codes\n",
        "Generated from `splitgraph/diagnostics.py` by `docs/make_diagnostics.py`; do not edit by hand.",
        "`splitgraph explain SG203` prints one of them.\n",
    ]
    for digit, codes in groupby(sorted(CODES), key=lambda code: code[2]):
        parts.append(f"## {SECTIONS[digit]}\n")
        for code in codes:
            info = CODES[code]
            parts.append(f"### {code}: {info.title}\n\n{info.meaning}\n\n*What to do:* {info.help}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(diagnostics_page(), encoding="utf-8")
