"""Inference beside its peers: CPU time with load and save, peak memory, and how many dimensions each finds.

python benchmarks/infer.py [RUNS [TOOL ...]]

A process for each run, all tools in turns; imports and, where a tool needs it, onnx's registry of operators are paid
before the clock starts. The peers are onnx's own inference (with data_prop), onnxruntime's symbolic tool (which needs
sympy) and onnx-shape-inference; one that is not installed is left out.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from math import log
from pathlib import Path
from typing import NamedTuple

import onnx
from processes import ONNX, Result, Tool, measure_costs, version_of

import models

TOOLS = {
    "splitgraph": Tool(
        "splitgraph",
        "splitgraph",
        "import splitgraph; from splitgraph.inference.rules import load_rules; splitgraph.infer; load_rules()",
        "splitgraph.save(splitgraph.infer(source).model, target)",
    ),
    "onnx": Tool(
        "onnx",
        "onnx",
        ONNX + "import onnx.shape_inference",
        "onnx.save(onnx.shape_inference.infer_shapes(onnx.load(source), data_prop=True), target)",
    ),
    "onnxruntime": Tool(
        "onnxruntime",
        "sympy",
        ONNX + "from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference as tool",
        "onnx.save(tool.infer_shapes(onnx.load(source), auto_merge=True), target)",
    ),
    "onnx-shape-inference": Tool(
        "onnx-shape-inference",
        "onnx_shape_inference",
        ONNX + "import onnx_ir as ir; from onnx_shape_inference import infer_symbolic_shapes as tool",
        "ir.save(tool(ir.load(source)), target)",
    ),
}
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "GPT-2-like, 12 layers": lambda: models.decoder(12),
    "GPT-2-like, 48 layers": lambda: models.decoder(48),
    "GPT-2-like, 400 layers": lambda: models.decoder(400),
    "ShuffleNet-like": models.convolutional,
    "a third splits, 20,000 nodes": lambda: models.splits(20_000),
    "a third splits, 200,000 nodes": lambda: models.splits(200_000),
    "200 nested halvings": lambda: models.halvings(200),
    "30 nested Ifs": lambda: models.nested(30),
}
# What grows, from which model to which.
GROWTH = (
    ("GPT-2-like, 48 layers", "GPT-2-like, 400 layers"),
    ("a third splits, 20,000 nodes", "a third splits, 200,000 nodes"),
)


class Figures(NamedTuple):
    """Of one tool on one model: CPU seconds (median) of the work and of the whole process, and peak memory in MB
    (highest) of the runs, of the process and beyond its imports; share of the dimensions of node outputs that the
    result declares.
    """

    seconds: float
    whole: float
    memory: float
    beyond: float
    known: float


def figures(result: Result) -> Figures | str:
    """The figures of a tool on a model; the last line of what it says when it fails."""
    return result.cost if isinstance(result.cost, str) else Figures(*result.cost, known(result.written))


def known(target: Path) -> float:
    """Share of the dimensions of node outputs of the main graph that a result declares; an output of unknown rank
    counts as one of which all are unknown.
    """
    model = onnx.load(target)
    produced = {name for node in model.graph.node for name in node.output if name}
    declared = {value.name: value.type.tensor_type for value in (*model.graph.value_info, *model.graph.output)}
    ranked = [declared[name] for name in produced if name in declared and declared[name].HasField("shape")]
    dims = [dim for held in ranked for dim in held.shape.dim]
    share = sum(1 for dim in dims if dim.WhichOneof("value")) / max(len(dims), 1)
    return share * len(ranked) / len(produced)


def cell(found: Figures | str, peer: Figures | str | None) -> str:
    """Ratios to onnx first, then the plain figures."""
    if isinstance(found, str):
        return f"fails: {found}"
    plain = f"{found.seconds:.3f} s, {found.memory:.0f} MB ({found.beyond:.1f} of them after imports)"
    plain += f", {found.known:.0%} known"
    if not isinstance(peer, Figures):
        return plain
    ratios = (found.seconds / peer.seconds, found.whole / peer.whole, found.memory / peer.memory)
    ratios += (found.beyond / peer.beyond,)
    return "**{:.2f}** time (**{:.2f}** with imports), **{:.2f}** memory, **{:.2f}** after imports; {}".format(
        *ratios, plain
    )


def main() -> None:
    """Print the table as Markdown, a row for each model, and how each tool's time grows."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    wanted = sys.argv[2:] or TOOLS
    tools = {name: tool for name, tool in TOOLS.items() if name in wanted and find_spec(tool.module)}
    print(f"Python {sys.version.split()[0]}, " + ", ".join(version_of(tool) for tool in tools.values()) + "\n")
    print(f"| model | nodes | {' | '.join(tools)} |\n|---|---|{'---|' * len(tools)}")
    table: dict[tuple[str, str], Figures | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "model.onnx"
        for name, make in MODELS.items():
            model = make()
            onnx.save(model, source)
            row = {tool: figures(result) for tool, result in measure_costs(tools, source, Path(folder), runs).items()}
            table |= {(name, tool): found for tool, found in row.items()}
            cells = [cell(found, None if tool == "onnx" else row.get("onnx")) for tool, found in row.items()]
            print(f"| {name} | {len(model.graph.node):,} | {' | '.join(cells)} |", flush=True)
            _sizes[name] = len(model.graph.node)
    print()
    for small, large in GROWTH:
        exponents = [f"{tool} {_exponent(table, tool, small, large)}" for tool in tools]
        print(f"Growth exponent from {_sizes[small]:,} to {_sizes[large]:,} nodes: {', '.join(exponents)}.")


_sizes: dict[str, int] = {}


def _exponent(table: dict[tuple[str, str], Figures | str], tool: str, small: str, large: str) -> str:
    few, many = table[small, tool], table[large, tool]
    if isinstance(few, str) or isinstance(many, str):
        return "unknown"
    return f"{log(many.seconds / few.seconds) / log(_sizes[large] / _sizes[small]):.2f}"


if __name__ == "__main__":
    main()
