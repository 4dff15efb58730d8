"""Writes the files of the table of targets from measured answers.

    python benchmarks/targets/table.py FORMS RESULT...

FORMS is the folder of the models that were measured (`forms.py` writes it), each RESULT a file that `measure.py` wrote.
A release of a runtime that reads more or less than the one before is a diff of its file in
`splitgraph/runtimes/table/`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

sys.path.insert(0, str(Path(__file__).parent))

from derive import Row, derive, is_operator
from prose import PROSE
from whole_models import PREFIX

from splitgraph.inference import walk_model
from splitgraph.runtimes.node_traits import traits_of
from splitgraph.runtimes.target import Answer
from splitgraph.runtimes.traits import FORMS, MODIFIERS

TABLE = Path(__file__).parents[2] / "splitgraph" / "runtimes" / "table"
# Forms of this prefix only probe opsets and IR versions.
_PROBE = "zz_"
# Forms of this prefix are models that the specification forbids.
_INVALID = "x_"


def main(folder: Path, results: Sequence[Path]) -> None:
    """Write the file of each result."""
    seen: dict[str, frozenset[str] | None] = {}
    for path in results:
        measured = json.loads(path.read_text())
        for form in measured["answers"]:
            if form not in seen:
                seen[form] = _traits(folder / f"{form}.onnx")
        entry = entry_of(measured, seen, folder)
        target = TABLE / f"{entry['name']}@{entry['version']}.json"
        target.write_text(json.dumps(entry, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{target.name}: {len(entry['forms'])} forms, {sum(map(len, _bad(entry)))} of them not read")


def _traits(path: Path) -> frozenset[str] | None:
    """All traits of a model, None for one that is invalid."""
    model = onnx.load(path)
    walked = walk_model(model)
    if any(found.severity == "error" for found in walked.diagnostics):
        return None
    # Operators are traits of a form, too: where one of them is to blame, the way to write the split is not.
    nodes = list(traits_of(model, walked))
    operators = {name for node in nodes for name in (node.label, node.node.op_type)}
    return frozenset(operators).union(*(node.traits for node in nodes))


def entry_of(measured: Mapping[str, Any], seen: Mapping[str, frozenset[str] | None], folder: Path) -> dict[str, Any]:
    """The file of a runtime. seen: the traits of each form."""
    prose, answers = PROSE[measured["runtime"]], measured["answers"]
    newest_opset, newest_ir = _limits(folder, {form: answer for form, (answer, _) in answers.items()})
    rows: list[Row] = []
    whole: list[tuple[frozenset[str], Answer, str]] = []
    for form, (answer, reason) in sorted(answers.items()):
        # What an adapter cannot give to the runtime says nothing of the runtime.
        is_told = not form.startswith((_PROBE, _INVALID)) and "harness" not in reason
        traits = seen[form] if is_told else None
        if traits and (newest_opset is None or _opset(folder, form) <= newest_opset):
            told: Answer = "dies" if answer == "hangs" else answer
            if form.startswith(PREFIX):
                whole.append((traits, told, reason))
            else:
                rows.append((traits, told))
    found = derive(rows, whole)
    alone = {next(iter(traits)): answer for traits, answer in found.failures.items() if len(traits) == 1}
    known = {**dict.fromkeys(found.reads, "reads"), **alone}
    ordered = {trait: known[trait] for trait in (*FORMS, *MODIFIERS) if trait in known}
    types = {trait: known[trait] for trait in sorted(known) if trait not in ordered and not is_operator(trait)}
    together = [(sorted(traits), answer) for traits, answer in found.failures.items() if len(traits) > 1]
    return {
        "name": measured["runtime"],
        "title": prose.title,
        "version": measured["version"],
        "measured": measured["date"],
        "how": prose.how,
        "sources": [],
        "newest_opset": newest_opset,
        "newest_ir_version": newest_ir,
        "unnamed_dimensions": prose.unnamed_dimensions,
        "forms": {trait: answer for trait, answer in ordered.items() if trait in FORMS},
        "modifiers": {trait: answer for trait, answer in ordered.items() if trait in MODIFIERS},
        "types": types,
        "together": [
            {"traits": traits, "answer": answer, "note": next(filter(None, map(prose.notes.get, traits)), "")}
            for traits, answer in sorted(together)
        ],
        "notes": {trait: note for trait, note in prose.notes.items() if known.get(trait, "reads") != "reads"},
    }


def _bad(entry: Mapping[str, Any]) -> list[list[str]]:
    return [[trait for trait, answer in entry["forms"].items() if answer != "reads"]]


def _opset(folder: Path, form: str) -> int:
    imports = onnx.load(folder / f"{form}.onnx", load_external_data=False).opset_import
    return max((entry.version for entry in imports if entry.domain in ("", "ai.onnx")), default=1)


def _limits(folder: Path, answers: Mapping[str, str]) -> tuple[int | None, int | None]:
    """The newest opset and IR version that were read; None where a version that does not exist was read, too."""
    opsets, versions = {}, {}
    for form, answer in answers.items():
        if form.startswith(f"{_PROBE}ir"):
            versions[int(form.split("_")[1][2:])] = answer
        elif form.startswith((f"{_PROBE}add", f"{_PROBE}split", f"{_PROBE}nat")):
            number = int(form.split("_op")[1].split("_")[0])
            # Also a model of this opset with the IR version of its time counts.
            opsets[number] = "reads" if "reads" in (answer, opsets.get(number)) else answer
    return _newest(opsets), _newest(versions)


def _newest(answers: Mapping[int, str]) -> int | None:
    if not answers or answers[max(answers)] == "reads":
        return None
    return max((number for number, answer in answers.items() if answer == "reads"), default=None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(each) for each in sys.argv[2:]])
