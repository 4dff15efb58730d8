"""Write docs/diagnostics.md from the table of codes: `python docs/make_diagnostics.py`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from splitgraph.acceptance import ACCEPTABLE, told_acceptance
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
}

ACCEPTING = """\
## Accepting findings

An error blocks a conversion, even if the error has nothing to do with what is converted. Such an error can be accepted
by name:

```
splitgraph upgrade model.onnx --opset 18 --accept SG302@main/resize --accept SG212@main/postprocess/*
```

- `CODE` accepts every error of this code. `CODE@LOCATION` accepts the error at this location, as `infer` prints the
  location; a location that ends in `/*` stands for everything below it.
- In Python, `infer`, `upgrade`, `downgrade`, `convert` and `check` have the keyword `accept`:
  `splitgraph.upgrade(model, 18, accept=["SG302@main/resize"])`.
- For every call of the command line: `accept = ["SG302"]` in the table `[tool.splitgraph]` of a `pyproject.toml`. The
  command line looks for the table from the current folder upwards. The Python API reads no configuration.
- The result lists what was accepted: in the text, as `accepted` in JSON, as `Analysis.accepted` and `Rewrite.accepted`.
  `infer` then exits with 0. An acceptance that no error needs is a note
  ([SG604](#sg604-acceptance-that-nothing-needs)).

An accepted error is the user's word that the node does what it should, and nothing more. The node stays byte for byte,
and nothing is concluded from it: the types of its outputs are unknown, unless `value_info` declares them. What is
converted may depend on these types; then the conversion is refused as after an unknown operator.

An error can be accepted if it concerns one node, and if neither the meaning of other nodes nor the conversion depends
on that node. So these cannot be accepted:

- an error of a split, except a split with only one reading, which conversions repair (SG207);
- an error of a node that the conversion has to change, or whose operator changes its meaning between the two opsets;
- an error of a call of a local function, or of a node with subgraphs (If, Loop, Scan): the nodes in them depend on it;
- an error of a graph or of the file: a cycle, a name that nothing defines, an opset that does not exist.

A code that can never be accepted is refused with the reason (exit code 2). If only the node is in the way, the error
stays and its help gives the reason. Codes that can be accepted:
"""


def diagnostics_page() -> str:
    """The page as Markdown: every code with its title, what it means and what to do."""
    parts = [
        "# Diagnostic codes\n",
        "Generated from `splitgraph/diagnostics.py` by `docs/make_diagnostics.py`; do not edit by hand.",
        "`splitgraph explain SG203` prints one of them.\n",
        ACCEPTING,
        "| code | finding | if accepted |\n|---|---|---|",
        *(f"| [{code}](#{_anchor(code)}) | {CODES[code].title} | {told} |" for code, told in ACCEPTABLE.items()),
        "",
    ]
    for digit, codes in groupby(sorted(CODES), key=lambda code: code[2]):
        parts.append(f"## {SECTIONS[digit]}\n")
        for code in codes:
            info = CODES[code]
            parts.append(f"### {code}: {info.title}\n\n{info.meaning}\n\n*What to do:* {info.help}\n")
            parts.append(f"*Can be accepted:* {told_acceptance(code)}\n")
    return "\n".join(parts)


def _anchor(code: str) -> str:
    """The anchor that GitHub makes of the heading of a code."""
    heading = f"{code}: {CODES[code].title}".lower()
    return "".join("-" if char == " " else char for char in heading if char.isalnum() or char in " -_")


if __name__ == "__main__":
    PAGE.write_text(diagnostics_page(), encoding="utf-8")
