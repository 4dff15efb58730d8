"""Writes the table of layers of OpenVINO IR from measured answers.

    python benchmarks/targets/layer_table.py CASES KEPT...

CASES is the folder that `ir_cases.py` wrote, each KEPT a file of answers that `measure.py --kept` wrote. The files of
`splitgraph/runtimes/table/layers/` are like those of operators (`operator_table.py`): a line for each layer.

An IR that is read says of all its layers that they are read. Of one that is not read, a layer is to blame: the only one
that no IR that is read has; or the only one with a trait that it has in no IR that is read; or, of several such layers,
the one that the runtime's words name, or the only one that there is. Where nothing tells, the IR says nothing, and is
counted.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from operator_table import Row, entry_of, write_lines  # noqa: E402, the folders above are on the path only now

from splitgraph.formats.openvino_ir import load_ir  # noqa: E402
from splitgraph.runtimes.examine_ir import examine_ir  # noqa: E402
from splitgraph.runtimes.operator_traits import needs_a_case  # noqa: E402

TABLE = Path(__file__).parents[2] / "splitgraph" / "runtimes" / "table" / "layers"
# The layers of an IR, each with the traits of all its nodes.
Layers = Mapping[str, frozenset[str]]


class Measured(NamedTuple):
    """An IR, what a runtime did with it, and the runtime's words."""

    layers: Layers
    answer: str
    said: str


def main(folder: Path, kept: Sequence[Path]) -> None:
    """Write the file of each result, and the traits of all cases."""
    cases = {path.stem: layers_of(path) for path in sorted(folder.glob("*.xml"))}
    known: dict[str, set[str]] = defaultdict(set)
    for layers in cases.values():
        for label, traits in layers.items():
            known[label] |= traits
    TABLE.mkdir(exist_ok=True)
    write_lines(TABLE / "cases.json", {label: sorted(traits) for label, traits in sorted(known.items())})
    for path in kept:
        answers = {name: (answer, said) for name, answer, said in map(json.loads, path.read_text().splitlines())}
        measured = [Measured(cases[name], *answer) for name, answer in sorted(answers.items()) if name in cases]
        rows, left = rows_of(measured)
        entries = {label: entry_of(each, frozenset(known[label])) for label, each in sorted(rows.items())}
        runtime, _, version = path.stem.partition("@")
        when = date.fromtimestamp(path.stat().st_mtime).isoformat()
        head = {"name": runtime, "version": version, "measured": when, "cases": len(measured)}
        write_lines(TABLE / f"{path.stem}.json", head | {"operators": entries})
        read = sum("reads" in entry for entry in entries.values())
        print(
            f"{path.stem}: {len(measured)} IR, {len(entries)} layers, {read} read; "
            f"{len(known) - len(entries)} not known; {len(left)} IR say nothing"
        )
        for each in left:
            print(f"   {each.answer} {' '.join(sorted(each.layers))}: {each.said[:100]}")


def layers_of(path: Path) -> Layers:
    """The layers of an IR."""
    layers: dict[str, frozenset[str]] = {}
    for node in examine_ir(load_ir(path)).nodes:
        layers[node.label] = layers.get(node.label, frozenset()) | node.own
    return layers


def rows_of(measured: Iterable[Measured]) -> tuple[dict[str, list[Row]], list[Measured]]:
    """What was measured of each layer, and the IR of which nothing tells what is to blame."""
    rows: dict[str, list[Row]] = defaultdict(list)
    read: dict[str, set[str]] = defaultdict(set)
    failing = []
    for each in measured:
        if each.answer != "reads":
            failing.append(each)
            continue
        for label, traits in each.layers.items():
            rows[label].append((traits, each.answer, ""))
            read[label] |= traits
    left = []
    # Those with one suspect first: what is refused for certain explains others.
    blamed = set[str]()
    for each in sorted(failing, key=lambda one: len(_suspects(one.layers, read))):
        suspects = _suspects(each.layers, read)
        certain = blamed.intersection(suspects)
        suspects = sorted(certain) if certain else suspects
        suspects = suspects or list(each.layers)
        named = suspects if len(suspects) == 1 else _named(suspects, each.said)
        if len(named) != 1:
            left.append(each)
            continue
        (label,) = named
        if label not in read:
            blamed.add(label)
        rows[label].append((each.layers[label], each.answer, each.said))
    return rows, left


def _suspects(layers: Layers, read: Mapping[str, Collection[str]]) -> list[str]:
    """The layers that no IR that is read has; else those with a trait that they have in no such IR."""
    unread = [label for label in layers if label not in read]
    return unread or [
        label
        for label, traits in layers.items()
        if any(needs_a_case(trait) and trait not in read[label] for trait in traits)
    ]


def _named(labels: Iterable[str], said: str) -> list[str]:
    """Those of the layers whose type the runtime's words name."""
    return [label for label in labels if re.search(rf"\b{re.escape(label.partition('.')[2])}\b", said)]


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(each) for each in sys.argv[2:]])
