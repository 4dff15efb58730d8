"""How well dims are known, what that costs, and how the cost grows: for exports with Shape arithmetic in each layer,
and for families of small files that make large expressions.

python benchmarks/dims.py [RUNS [NAME ...]]

NAME: part of the name of a model or of a family; without, all are measured. Times are CPU time as `processes.py`
measures it, the median of the runs. onnx's inference (with data_prop) is measured twice: on a file that it loads, as
splitgraph does, and on the bytes of the file, which spares it to serialize the model again.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import NamedTuple

import onnx
from classic_gpt2 import classic_gpt2
from counting import Counts, read_counts
from detection import detection
from families import FAMILIES, Family
from processes import ONNX, Cost, Result, Tool, measure_costs, version_of
from unrolled import unrolled

_IMPORTS = (
    "import splitgraph; from splitgraph.inference.rules import load_rules; splitgraph.infer; splitgraph.downgrade; "
    "load_rules()"
)
SPLITGRAPH = Tool("splitgraph", "splitgraph", _IMPORTS, "{verb}")
COUNTING = Tool(
    "splitgraph",
    "splitgraph",
    f"import sys; sys.path.append({str(Path(__file__).parent)!r}); {_IMPORTS}; from counting import write_counts",
    "write_counts({verb}, target)",
)
_ONNX = ONNX + "import onnx.shape_inference; infer = onnx.shape_inference.infer_shapes"
PEERS = {
    "onnx": Tool("onnx", "onnx", _ONNX, "infer(onnx.load(source), data_prop=True)"),
    "onnx, of bytes": Tool("onnx", "onnx", _ONNX, "infer(open(source, 'rb').read(), data_prop=True)"),
}
# Seconds for one run of a family.
_PATIENCE = 60


class Kind(NamedTuple):
    """Models of one kind, by what they are counted in: layers, classes or nodes."""

    make: Callable[[int], onnx.ModelProto]
    sizes: tuple[int, ...]


LAYERS = (12, 24, 48, 96)
MODELS = {
    "classic GPT-2, opset 11, layers": Kind(classic_gpt2, LAYERS),
    "classic GPT-2, opset 13, layers": Kind(lambda layers: classic_gpt2(layers, 13), LAYERS),
    "classic GPT-2, each layer's own symbols, layers": Kind(
        lambda layers: classic_gpt2(layers, 13, own_symbols=True), LAYERS
    ),
    "detection, classes": Kind(detection, (20, 40, 80, 160)),
    "unrolled, nodes": Kind(unrolled, (2_500, 5_000, 10_000, 20_000)),
}


def measured(
    make: Callable[[int], onnx.ModelProto], size: int, peers: dict[str, Tool], verb: str, runs: int, patience: int
) -> tuple[int, dict[str, Result], Counts | None]:
    """Nodes of a model, what splitgraph and its peers cost on it, and what splitgraph said: None when it failed."""
    tools = {"splitgraph": SPLITGRAPH._replace(work=verb), **peers}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "model.onnx"
        model = make(size)
        onnx.save(model, source)
        costs = measure_costs(tools, source, Path(folder), runs, patience)
        if isinstance(costs["splitgraph"].cost, str):
            return len(model.graph.node), costs, None
        counting = COUNTING._replace(work=COUNTING.work.format(verb=verb))
        (said,) = measure_costs({"counts": counting}, source, Path(folder), 1).values()
        return len(model.graph.node), costs, None if isinstance(said.cost, str) else read_counts(said.written)


MODEL_COLUMNS = (
    *("model", "nodes", "time: ratio to onnx", "to onnx of bytes", "growth", "onnx's growth"),
    *("generated symbols", "dims with one", "unknown dims", "splitgraph", "onnx"),
)
FAMILY_COLUMNS = ("family", "n", "at n", "at 4n", "growth of time", "of memory", "of text", "of n log n")


def print_models(name: str, kind: Kind, runs: int) -> None:
    """A row for each size of a kind of models."""
    before: dict[str, Result] = {}
    for size in kind.sizes:
        nodes, costs, said = measured(kind.make, size, PEERS, "splitgraph.infer(source)", runs, _PATIENCE * 5)
        own = costs["splitgraph"].cost
        cells = [ratio(own, costs[peer].cost) for peer in PEERS]
        cells += [ratio(costs[tool].cost, before[tool].cost) if before else "" for tool in ("splitgraph", "onnx")]
        cells += [str(said.generated), str(said.with_generated), f"{said.unknown}"] if said else [""] * 3
        cells += [plain(own), plain(costs["onnx"].cost)]
        print(f"| {name}: {size:,} | {nodes:,} | {' | '.join(cells)} |", flush=True)
        before = costs


def print_family(name: str, family: Family, runs: int) -> None:
    """A row for a family: at n, at 4n, and how what grows compares with n log n."""
    few, many = family.size, 4 * family.size
    rows = [measured(family.make, size, {}, family.verb, runs, _PATIENCE) for size in (few, many)]
    (one, said_one), (other, said_other) = ((costs["splitgraph"].cost, said) for _, costs, said in rows)
    cells = [plain(one, said_one), plain(other, said_other), ratio(other, one)]
    if isinstance(one, Cost) and isinstance(other, Cost):
        cells.append(f"{other.beyond / one.beyond:.2f}")
    else:
        cells.append("")
    cells.append(f"{said_other.printed / said_one.printed:.1f}" if said_one and said_other else "")
    print(f"| {name} | {few:,} | {' | '.join(cells)} | {4 * log(many) / log(few):.1f} |", flush=True)


def ratio(one: Cost | str, other: Cost | str) -> str:
    """One time as a multiple of another."""
    return "" if isinstance(one, str) or isinstance(other, str) else f"{one.seconds / other.seconds:.2f}"


def plain(cost: Cost | str, said: Counts | None = None) -> str:
    """Time and memory, and how much text there is to print."""
    if isinstance(cost, str):
        return f"fails: {cost[:60]}"
    text = f"{cost.seconds:.3f} s, {cost.beyond:.0f} MB"
    return text if said is None else f"{text}, {said.printed / 1000:,.1f} kB"


def _heading(*columns: str) -> str:
    return f"| {' | '.join(columns)} |\n|" + "---|" * len(columns)


def main() -> None:
    """Print two tables as Markdown."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    wanted = sys.argv[2:] or [""]
    print(f"Python {sys.version.split()[0]}, {version_of(SPLITGRAPH)}, {version_of(PEERS['onnx'])}\n")
    print(_heading(*MODEL_COLUMNS))
    for name, kind in MODELS.items():
        if any(part in name for part in wanted):
            print_models(name, kind, runs)
    print("\n" + _heading(*FAMILY_COLUMNS))
    for name, family in FAMILIES.items():
        if any(part in name for part in wanted):
            print_family(name, family, runs)


if __name__ == "__main__":
    main()
