"""Write docs/targets.md from the table of targets: `python docs/make_targets.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import splitgraph
from splitgraph.runtimes.target import Target
from splitgraph.runtimes.traits import FORMS, MODIFIERS, title

PAGE = Path(__file__).with_name("targets.md")

_INTRODUCTION = """\
# Which runtime reads which split

Generated from `splitgraph/runtimes/table/` by `docs/make_targets.py`; do not edit by hand.

Exporters write one form of split, and runtimes read others. Each runtime below was run on some 180 small models, each
with one form of split, and on the models of [`models/`](../models/README.md), and its results were compared with what
NumPy computes. Where a runtime cannot be run here, its own documents and issue threads say what it reads.

```
splitgraph check model.onnx --target mnn            what MNN refuses in this model, or silently computes wrong
splitgraph check model.onnx --all-targets           one line for each runtime
splitgraph convert model.onnx --target mnn          another form for what MNN does not read, and for nothing else
```

`convert --target` prefers the form that the model has. Otherwise it takes, in this order: equal parts or
`num_outputs`, constant lengths, computed lengths, a Slice for each part. It writes only forms that the runtime is
known to read. Sequences become plain splits, local functions are inlined, a left-out axis is written out, and an
output without a name gets one. An empty part leaves the Concat that reads it, or becomes a constant. The opset stays
where the runtime reads it. If no form is read, splitgraph says which nodes are in the way.

A name with a version means that version: `onnxruntime@1.15`, `opencv@4`, `openvino@2023.3`. `--opset` chooses the
opset, too.
"""

_LEGEND = """\
`.` right · `r` refused · `W` silently wrong · `s` right data of another rank · `X` the process dies · empty: not known
"""

_TOLD = {"refuses": "refused", "wrong": "wrong", "rank": "another rank", "dies": "dies"}
_MARKS = {"reads": ".", "refuses": "r", "wrong": "W", "rank": "s", "dies": "X"}


def targets_page() -> str:
    """The page as Markdown."""
    known = splitgraph.targets()
    measured = {key: target for key, target in known.items() if target.measured}
    parts = [_INTRODUCTION, "## The runtimes\n", *_runtimes(known), "## Forms of split\n", _LEGEND]
    parts += [*_matrix(known, FORMS), "## What is unusual about a split\n"]
    parts += [*_matrix(known, MODIFIERS), "## Element types\n", *_matrix(known, _types(measured.values()))]
    parts += ["## In words\n", *_notes(known), "## How this was measured\n", _HARNESS]
    return "\n".join(parts)


_HARNESS = """\
`benchmarks/targets/` has the models and one adapter for each runtime. Each model runs in a process of its own, so
that a death or a hang is an answer, too. The table is made anew by:

```
python benchmarks/targets/measure.py --forms forms
python benchmarks/targets/measure.py --models forms --all --cache environments --results results
python benchmarks/targets/table.py forms results/*.json && python docs/make_targets.py
```

A trait of a split is read if a model with it is read. Of a model that is not read, the trait is to blame that no
other model shows as read; `benchmarks/targets/derive.py` says how this is decided. An answer that depends on several
traits together is in the section "In words". A runtime that is not in the table can be added by a pull request with
one file; `docs/reference/schemas/target.schema.json` describes it.
"""


def _runtimes(known: Mapping[str, Target]) -> Iterator[str]:
    yield "| `--target` | runtime | newest opset | newest IR version | known from |\n|---|---|---|---|---|"
    for target in known.values():
        limits = (target.newest_opset, target.newest_ir_version)
        shown = " | ".join("no limit seen" if each is None and target.measured else str(each or "") for each in limits)
        source = f"measured {target.measured}: {target.how}" if target.measured else _sources(target)
        yield f"| `{target.key}` | {target.label} | {shown} | {source} |"
    yield ""


def _sources(target: Target) -> str:
    return "not run here: " + ", ".join(f"[{number}]({url})" for number, url in enumerate(target.sources, 1))


def _types(known: Iterable[Target]) -> list[str]:
    """The element types of which something is known, in the order of their names."""
    traits = {trait for target in known for trait in (*target.reads, *_alone(target))}
    return sorted(trait for trait in traits if trait not in FORMS and trait not in MODIFIERS and "-" not in trait)


def _alone(target: Target) -> dict[str, str]:
    """What the target does with each trait that it does not read alone."""
    return {next(iter(each.traits)): each.answer for each in target.failures if len(each.traits) == 1}


def _matrix(known: Mapping[str, Target], traits: Iterable[str]) -> Iterator[str]:
    """A table with a row for each target and a column for each trait: the columns have numbers, and a list below."""
    traits = list(traits)
    yield "| | " + " | ".join(str(number) for number in range(1, len(traits) + 1)) + " |"
    yield "|---|" + "---|" * len(traits)
    for target in known.values():
        alone = _alone(target)
        cells = ["." if trait in target.reads else _MARKS[alone[trait]] if trait in alone else " " for trait in traits]
        yield f"| {target.label} | " + " | ".join(cells) + " |"
    yield ""
    yield "\n".join(f"{number}. {title(trait)}" for number, trait in enumerate(traits, 1))
    yield ""


def _notes(known: Mapping[str, Target]) -> Iterator[str]:
    for target in known.values():
        told = []
        for failure in target.failures:
            what = " with ".join(title(trait) for trait in sorted(failure.traits, key=lambda trait: trait not in FORMS))
            if failure.note or len(failure.traits) > 1:
                answer = {"refuses": "refused", "wrong": "wrong", "rank": "another rank", "dies": "dies"}[
                    failure.answer
                ]
                told.append(f"{what} ({answer}){': ' + failure.note if failure.note else ''}")
        if told:
            yield f"- **{target.label}.** {'; '.join(dict.fromkeys(told))}."
    yield ""


if __name__ == "__main__":
    PAGE.write_text(targets_page(), encoding="utf-8")
