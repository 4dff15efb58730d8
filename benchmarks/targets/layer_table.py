"""Writes the table of layers of OpenVINO IR from measured answers.

    python benchmarks/targets/layer_table.py CASES KEPT...

CASES is the folder that `ir_cases.py` wrote, each KEPT a file of answers that `measure.py --kept` wrote. The files of
`splitgraph/runtimes/table/layers/` are like those of operators (`blame.py`): a line for each layer.

An IR that is read says of all its layers that they are read. Of one that is not read, a layer is to blame: the only one
that no IR that is read has; or the only one with a trait, or with two traits together, that it has in no IR that is
read; or the only one that there is; or, of several such layers, the one that the runtime's words name. Where nothing
tells, the IR says nothing, and is counted.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from blame import Row, entry_of, write_lines  # noqa: E402, the folders above are on the path only now

from splitgraph.formats.openvino_ir import load_ir  # noqa: E402
from splitgraph.runtimes.examine_ir import examine_ir  # noqa: E402
from splitgraph.runtimes.operator_traits import needs_a_case  # noqa: E402

TABLE = Path(__file__).parents[2] / "splitgraph" / "runtimes" / "table" / "layers"
Traits = frozenset[str]
# The layers of an IR, each with the traits of its nodes.
Layers = Mapping[str, frozenset[Traits]]


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
        for label, nodes in layers.items():
            known[label].update(*nodes)
    TABLE.mkdir(exist_ok=True)
    write_lines(TABLE / "cases.json", {label: sorted(traits) for label, traits in sorted(known.items())})
    for path in kept:
        answers = {name: (answer, said) for name, answer, said in map(json.loads, path.read_text().splitlines())}
        measured = [Measured(cases[name], *answer) for name, answer in sorted(answers.items()) if name in cases]
        rows, left = rows_of(measured)
        entries = {label: layer_entry(each, frozenset(known[label])) for label, each in sorted(rows.items())}
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
    layers: dict[str, set[Traits]] = defaultdict(set)
    for node in examine_ir(load_ir(path)).nodes:
        layers[node.label].add(node.own)
    return {label: frozenset(nodes) for label, nodes in layers.items()}


def layer_entry(rows: Sequence[Row], known: Traits) -> dict[str, Any]:
    """The entry of a layer. Cases that are not read and that no rule explains say nothing of a node that lacks a trait
    of all of them.
    """
    entry = entry_of(rows, known)
    if entry.get("unexplained"):
        rules = [frozenset(traits) for traits, _, _ in entry.get("rules", ())]
        others = (traits for traits, answer, _ in rows if answer != "reads" and not any(r <= traits for r in rules))
        like = sorted(filter(needs_a_case, frozenset.intersection(*others)))
        entry |= {"like": like} if like else {}
    return entry


def rows_of(measured: Iterable[Measured]) -> tuple[dict[str, list[Row]], list[Measured]]:
    """What was measured of each layer, and the IR of which nothing tells what is to blame."""
    rows: dict[str, list[Row]] = defaultdict(list)
    seen, failing = _Seen(), []
    for each in measured:
        if each.answer != "reads":
            failing.append(each)
            continue
        for label, nodes in each.layers.items():
            rows[label] += [(traits, each.answer, "") for traits in nodes]
            seen.add(label, nodes)
    left = []
    blamed = set[str]()
    # Those with one suspect first: what is refused for certain explains others.
    for each in sorted(failing, key=lambda one: len(seen.suspects(one.layers))):
        suspects = seen.suspects(each.layers)
        certain = {label: nodes for label, nodes in suspects.items() if label in blamed}
        suspects = certain or suspects or each.layers
        named = list(suspects) if len(suspects) == 1 else _named(suspects, each.said)
        if len(named) != 1:
            left.append(each)
            continue
        (label,) = named
        if label not in seen.labels:
            blamed.add(label)
        rows[label] += [(traits, each.answer, each.said) for traits in suspects[label]]
    return rows, left


class _Seen:
    """What IR that are read have: layers, their traits, and their traits two by two."""

    def __init__(self) -> None:
        self.labels = set[str]()
        self._parts = set[tuple[str, Traits]]()

    def add(self, label: str, nodes: Iterable[Traits]) -> None:
        """Add nodes that are read."""
        self.labels.add(label)
        for traits in nodes:
            self._parts.update((label, part) for size in (1, 2) for part in _parts(traits, size))

    def suspects(self, layers: Layers) -> Layers:
        """The layers that no IR that is read has; else the nodes with a trait that they have in no such IR; else those
        with two traits that they have together in none.
        """
        unread = {label: nodes for label, nodes in layers.items() if label not in self.labels}
        return unread or self._with_unseen(layers, 1) or self._with_unseen(layers, 2)

    def _with_unseen(self, layers: Layers, size: int) -> Layers:
        found = {
            label: frozenset(
                traits for traits in nodes if any((label, part) not in self._parts for part in _parts(traits, size))
            )
            for label, nodes in layers.items()
        }
        return {label: nodes for label, nodes in found.items() if nodes}


def _parts(traits: Traits, size: int) -> Iterator[Traits]:
    """The traits that need a case, one by one or two by two."""
    return map(frozenset, combinations(sorted(filter(needs_a_case, traits)), size))


def _named(labels: Iterable[str], said: str) -> list[str]:
    """Those of the layers whose type the runtime's words name."""
    return [label for label in labels if re.search(rf"\b{re.escape(label.partition('.')[2])}\b", said)]


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(each) for each in sys.argv[2:]])
