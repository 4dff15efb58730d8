"""The catalogue of the models here: `index.json`, which tests read, and the table in `README.md`, which people read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import onnx

FOLDER = Path(__file__).resolve().parent
INDEX = FOLDER / "index.json"
README = FOLDER / "README.md"
SPLIT_OPERATORS = {"Split", "SplitToSequence", "StringSplit"}
TABLE_START, TABLE_END = "<!-- table: start -->\n", "<!-- table: end -->\n"


@dataclass(frozen=True)
class Case:
    """Sizes of the symbolic dimensions, and the inputs that must not be random, for one run of a model."""

    dims: dict[str, int]
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """What a script knows about a model that the file itself does not say.

    `ranges` bounds random integer inputs (low, high; high excluded). `engines` names those that can run the model.
    `valid` is False for a model that is wrong on purpose.
    """

    file: str
    about: str
    script: str
    exporter: str
    cases: tuple[Case, ...]
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    engines: tuple[str, ...] = ("onnxruntime", "reference")
    valid: bool = True


def nodes_of(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Every node of the model: main graph, subgraphs and functions."""
    yield from _nodes_in(model.graph.node)
    for function in model.functions:
        yield from _nodes_in(function.node)


def _nodes_in(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _nodes_in(graph.node)


def splits_of(model: onnx.ModelProto) -> dict[str, int]:
    """How often each split operator occurs, by name and the version that the model's opset gives it."""
    opset = {entry.domain: entry.version for entry in model.opset_import}
    counts: Counter[str] = Counter()
    for node in nodes_of(model):
        if node.domain == "" and node.op_type in SPLIT_OPERATORS:
            schema = onnx.defs.get_schema(node.op_type, opset[""])
            counts[f"{node.op_type}-{schema.since_version}"] += 1
        elif node.domain == "org.splitgraph":
            counts[node.op_type] += 1
    return dict(sorted(counts.items()))


def write(entries: Sequence[Entry], script: str) -> None:
    """Replace what `script` wrote into the index before by `entries`, and write the table anew."""
    kept = [row for row in read() if row["script"] != script]
    rows = sorted(kept + [_row(entry) for entry in entries], key=lambda row: row["file"])
    INDEX.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    before, _, rest = README.read_text(encoding="utf-8").partition(TABLE_START)
    _, _, after = rest.partition(TABLE_END)
    README.write_text(before + TABLE_START + _table(rows) + TABLE_END + after, encoding="utf-8")


def read() -> list[dict[str, Any]]:
    """The rows of the index, or none before the first script has run."""
    return json.loads(INDEX.read_text(encoding="utf-8")) if INDEX.exists() else []


def _row(entry: Entry) -> dict[str, Any]:
    path = FOLDER / entry.file
    model = onnx.load(path)
    facts = {
        "opset": {each.domain: each.version for each in model.opset_import},
        "splits": splits_of(model),
        "bytes": path.stat().st_size,
    }
    return {"file": entry.file} | facts | asdict(entry)


def _table(rows: Sequence[dict[str, Any]]) -> str:
    lines = ["| file | opset | what it is | its splits | made by | bytes |", "|---|---|---|---|---|---|"]
    for row in rows:
        splits = ", ".join(f"{count} × {name}" for name, count in row["splits"].items()) or "none (Slice)"
        made_by = f"`{row['script']}`, {row['exporter']}"
        cells = (f"`{row['file']}`", row["opset"][""], row["about"], splits, made_by, f"{row['bytes']:,}")
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"
