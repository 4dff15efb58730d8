"""Write docs/targets.md and the pages about operators from the table of targets: `python docs/make_targets.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from target_operators import operator_matrix, runtime_pages
from target_splits import split_matrix, split_notes

import splitgraph
from splitgraph.runtimes.target import Target

PAGE = Path(__file__).with_name("targets.md")
OPERATORS_PAGE = Path(__file__).with_name("target-operators.md")
PAGES = Path(__file__).with_name("targets")

_INTRODUCTION = """\
# Which runtime reads which model

<!-- Generated from `splitgraph/runtimes/table/` by `docs/make_targets.py`; do not edit by hand. -->

The question is about the model: does it run there, and if not, how can it be made to run? Each runtime below was given
some 2,000 to 7,000 models of one operator each: onnx's node tests and nodes as models have them, at every version of
every operator, with constants and inputs, with fixed and with unknown dimensions. Its results were compared with what
the tests expect. Splits were measured in some 180 forms more. Where a runtime cannot be run here, its own
documents and issue threads say what it reads.

```
splitgraph check model.onnx --target mnn            what MNN does with each node of this model
splitgraph check model.onnx --all-targets           which runtimes run it, as it is and after a conversion
splitgraph convert model.onnx --target mnn          a model that MNN reads, if there is one
```

`check` says of every node what was measured: it is read; refused; silently wrong; some cases like it are not read; or
nothing like it was measured. "reads all nodes" is said only if every node is known to be read. A model has many
nodes, and a runtime may still fail over how they come together. [The
campaign](../benchmarks/targets/README.md#before-and-after-convert---target) says how often that was so.

`convert --target` leaves a model alone that the runtime reads. One that has something in its way is folded first ([what
is known is written](folding.md)), so that what only computes sizes is gone; where that is not enough, -1 stands for a
size beside a dimension that must not be 0 then, and a note says so (SG423). Then what runtimes round in their own
ways, such as a Log of constants, becomes a constant, too. After that, it changes only what is not read. The model keeps
its opset if that is read; otherwise it goes to the nearest opset at which most nodes are known to be read. An operator
that the runtime lacks is written with
others, as its function body or as older opsets wrote it. Of splits, equal parts or `num_outputs` come first, then
constant lengths, computed lengths, and a Slice for each part. Sequences become plain splits, local functions are
inlined, a left-out axis is written out, and an output without a name gets one. An empty part leaves the Concat that
reads it, or becomes a constant. An import of another domain that nothing uses is dropped where the runtime refuses it.
Operators of ai.onnx.ml go to the newest version of their domain that the runtime reads. Where it does not read them,
they are written in operators of ai.onnx, as `--standard` writes them, and so are those of com.microsoft.
If something remains, nothing is written, and splitgraph says which nodes are in the way and which runtimes read them.

A name with a version means that version: `onnxruntime@1.15`, `opencv@4`, `openvino@2023.3`. `--opset` chooses the
opset, too.
"""

_LEGEND = """\
What `check` says of a split of `float32[2, 6, 8]` along the second axis into two parts, written in different ways. `.`
right · `r` refused · `W` silently wrong · `X` the process dies · empty: not known
"""

_OPERATORS = """\
# Which runtime reads which operator

<!-- Generated from `splitgraph/runtimes/table/operators/` by `docs/make_targets.py`; do not edit by hand. -->

`splitgraph check model.onnx --target mnn` says it of each node of a model ([runtimes](runtimes.md), [which runtime
reads which model](targets.md)).

The newest version of the operator that is read. `18*`: not in every case; the page of the runtime says which. `r` no
version is read · `W` silently wrong · `X` the process dies · `-` its documents say that it is not read, a number in
brackets that it is · empty: not measured. The names of the runtimes lead to their pages.
"""


_ELSEWHERE = """\
[Which runtime reads which operator](target-operators.md) is a table of all operators, with the newest version that is
read.
"""


def operators_page() -> str:
    """The page of all operators as Markdown."""
    return "\n".join([_OPERATORS, *operator_matrix(splitgraph.targets())])


def targets_page() -> str:
    """The page as Markdown."""
    known = splitgraph.targets()
    parts = [_INTRODUCTION, "## The runtimes\n", *_runtimes(known), "## Operators\n", _ELSEWHERE]
    parts += ["## Splits\n", _LEGEND, *split_matrix(known)]
    parts += ["## In words\n", *split_notes(known), "## How this was measured\n", _HARNESS]
    return "\n".join(parts)


_HARNESS = """\
Each model ran in a process of its own, so that a death or a hang is an answer, too. `benchmarks/targets/` has the
models and one adapter for each runtime, and [says how](../benchmarks/targets/README.md) the table is made anew. A
runtime that is not in the table can be added by a pull request with one file;
`docs/reference/schemas/target.schema.json` describes it.
"""


def _runtimes(known: Mapping[str, Target]) -> Iterator[str]:
    yield "| `--target` | runtime | newest opset | newest IR version | known from |\n|---|---|---|---|---|"
    for target in known.values():
        limits = (target.newest_opset, target.newest_ir_version)
        shown = " | ".join("no limit seen" if each is None and target.measured else str(each or "") for each in limits)
        source = f"measured {target.measured}: {target.how}" if target.measured else _sources(target)
        page = f"[`{target.key}`](targets/{target.key}.md)" if target.operators.entries else f"`{target.key}`"
        yield f"| {page} | {target.label} | {shown} | {source} |"
    yield ""


def _sources(target: Target) -> str:
    return "not run here: " + ", ".join(f"[{number}]({url})" for number, url in enumerate(target.sources, 1))


if __name__ == "__main__":
    PAGE.write_text(targets_page(), encoding="utf-8")
    OPERATORS_PAGE.write_text(operators_page(), encoding="utf-8")
    PAGES.mkdir(exist_ok=True)
    for key, text in runtime_pages(splitgraph.targets()).items():
        (PAGES / f"{key}.md").write_text(text, encoding="utf-8")
