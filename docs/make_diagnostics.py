"""Write docs/diagnostics.md from the table of codes: `python docs/make_diagnostics.py`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from splitgraph.findings.acceptance import ACCEPTABLE, acceptance_text
from splitgraph.findings.codes import CODES, SECTIONS
from splitgraph.inference.repairs import FIRST_OPSET, INT32_INPUTS, NEWER_TYPES

PAGE = Path(__file__).with_name("diagnostics.md")

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
  ([SG606](#sg606-acceptance-that-nothing-needs)).

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


LENIENT = """\
## Invalid by the letter, run by runtimes

A finding is a warning, not an error, where a model is invalid only by the letter: at least two of onnxruntime, OpenVINO
and onnx's reference evaluator run it, with one meaning and equal results. Each case was measured with a minimal model,
in a process of its own for each engine (onnxruntime 1.32.0, OpenVINO 2026.4.1, onnx 1.23.2);
`tests/inference/test_lenient_types_in_engines.py` measures all of them again.

**Nodes out of order** (SG112): onnxruntime and OpenVINO sort them. **Two equal initializers of one name** in the main
graph (SG104): all three engines run the model.

**An output without a name that is not optional** (SG212), such as the indices of TopK: the reference evaluator runs the
node, and so does OpenVINO where it has the operator. onnxruntime and onnx's checker refuse it. Commands that change the
opset give the output a name.

**Element types** (SG302): OpenVINO and the reference evaluator run the nodes of this table, with exactly the results of
the node that the schema allows. onnxruntime refuses them; the finding says so. `upgrade`, `downgrade` and `convert`
keep such a node, and refuse the model if they would have to write the node in another way.
"""

STRICT = """\
These stay errors, although engines ran a minimal model with equal results (once, when the table was written). They can
be accepted by name where the table of codes above allows that.

| finding | run by | why it stays an error |
|---|---|---|"""
ALL, TWO = "onnxruntime, OpenVINO, reference", "OpenVINO, reference"
STAYS = (
    ("SG301, an element type that the nodes contradict", TWO, "whether the declaration or the node is wrong is open"),
    ("SG104, different initializers of one name", ALL, "all take the last one; the author may have meant the other"),
    ("SG111, elements in raw_data and in a typed field", ALL, "all take raw_data; the two fields may differ"),
    ("SG103, two versions of ai.onnx", ALL, "which version a node means is open; it did not matter in the model"),
    ("SG214, Celu, Round, Einsum, Trilu, GreaterOrEqual at an older opset", TWO, "which version is meant is open"),
    ("SG212, an integer as an attribute of type float", TWO, "conversions would have to write the attribute anew"),
    ("SG302, ConstantOfShape with an int32 shape", TWO, "a test of onnx demands the error"),
    ("SG302, integers for Sum, Sqrt, Floor; booleans for MatMul", TWO, "no version of the operator says the meaning"),
    ("SG302, Pad and TopK of integers, before versions that allow them", TWO, "not decided; accept the error by name"),
    ("SG302, the other inputs of integers that are int8, int16 or uint8", TWO, "only some of the operators run so"),
)


def diagnostics_page() -> str:
    """The page as Markdown: every code with its title, what it means and what to do."""
    parts = [
        "# Diagnostic codes\n",
        "<!-- Generated from `splitgraph/findings/` by `docs/make_diagnostics.py`; do not edit by hand. -->\n",
        "`splitgraph explain SG203` prints one of them.\n",
        ACCEPTING,
        "| code | finding | if accepted |\n|---|---|---|",
        *(f"| [{code}](#{_anchor(code)}) | {CODES[code].title} | {told} |" for code, told in ACCEPTABLE.items()),
        "",
        LENIENT,
        *_lenient_rows(),
        "",
        STRICT,
        *(f"| {' | '.join(row)} |" for row in STAYS),
        "",
    ]
    for section, codes in SECTIONS.items():
        parts.append(f"## {section}\n")
        for code, info in codes.items():
            parts.append(f"### {code}: {info.title}\n\n{info.meaning}\n\n*What to do:* {info.help}\n")
            parts.append(f"*Can be accepted:* {acceptance_text(code)}\n")
    return "\n".join(parts)


def _lenient_rows() -> Iterator[str]:
    """The rows of the table of element types that only schemas forbid."""
    yield "| operator | the schema forbids | runtimes read the node |\n|---|---|---|"
    by_inputs = groupby(sorted(INT32_INPUTS, key=lambda op: (INT32_INPUTS[op], op)), key=INT32_INPUTS.__getitem__)
    for inputs, operators in by_inputs:
        noun = "input" if len(inputs) == 1 else "one or more of the inputs"
        yield f"| {', '.join(operators)} | int32 as {noun} {', '.join(map(str, inputs))} | as if int32 were int64 |"
    by_types = groupby(sorted(NEWER_TYPES, key=lambda op: (NEWER_TYPES[op], op)), key=NEWER_TYPES.__getitem__)
    for (newer, types), operators in by_types:
        first = f"before version {newer}, from opset {FIRST_OPSET}"
        yield f"| {', '.join(operators)} {first} | {', '.join(types)} | like version {newer} |"


def _anchor(code: str) -> str:
    """The anchor that GitHub makes of the heading of a code."""
    heading = f"{code}: {CODES[code].title}".lower()
    return "".join("-" if char == " " else char for char in heading if char.isalnum() or char in " -_")


if __name__ == "__main__":
    PAGE.write_text(diagnostics_page(), encoding="utf-8")
