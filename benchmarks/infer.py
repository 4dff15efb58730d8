"""Inference beside its peers: CPU time with load and save, peak memory, and how many dimensions each finds.

python benchmarks/infer.py [RUNS [TOOL ...]]

A process for each run, imports and onnx's registry of operators paid before the clock starts. The peers are onnx's own
inference (with data_prop), onnxruntime's symbolic tool (which needs sympy) and onnx-shape-inference; one that is not
installed is left out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from math import log
from pathlib import Path
from statistics import median
from typing import NamedTuple

import onnx

import models


class Tool(NamedTuple):
    """A way to infer a model: package, what is imported before the clock starts, what is measured."""

    package: str
    module: str
    imports: str
    work: str


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
        "import onnx.shape_inference",
        "onnx.save(onnx.shape_inference.infer_shapes(onnx.load(source), data_prop=True), target)",
    ),
    "onnxruntime": Tool(
        "onnxruntime",
        "sympy",
        "from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference as tool",
        "onnx.save(tool.infer_shapes(onnx.load(source), auto_merge=True), target)",
    ),
    "onnx-shape-inference": Tool(
        "onnx-shape-inference",
        "onnx_shape_inference",
        "import onnx_ir as ir; from onnx_shape_inference import infer_symbolic_shapes as tool",
        "ir.save(tool(ir.load(source)), target)",
    ),
}
PROGRAM = """
import sys, time
import onnx
{imports}
source, target = sys.argv[1:]
# onnx registers its operators, in 12 ms, when the first is asked for, which every tool here does.
onnx.defs.get_schema("Add")
start = time.process_time()
{work}
seconds = time.process_time() - start
# Not ru_maxrss, which begins with the memory of the process that started this one. Linux only.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, peak)
"""
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "GPT-2-like, 12 layers": lambda: models.decoder(12),
    "GPT-2-like, 48 layers": lambda: models.decoder(48),
    "GPT-2-like, 400 layers": lambda: models.decoder(400),
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
# Seconds after which a run counts as failed.
PATIENCE = 300


class Figures(NamedTuple):
    """Of one tool on one model: CPU seconds (median) and peak memory in MB (highest) of the runs, share of the
    dimensions of node outputs that the result declares.
    """

    seconds: float
    memory: float
    known: float


def measure(tool: Tool, source: Path, target: Path, runs: int) -> Figures | str:
    """The figures of a tool on a model; the last line of what it says when it fails."""
    program = PROGRAM.format(imports=tool.imports, work=tool.work)
    seconds, memory = [], 0.0
    for _ in range(runs):
        try:
            done = subprocess.run(
                [sys.executable, "-c", program, source, target],
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            return f"more than {PATIENCE} s"
        if done.returncode:
            said = done.stderr.strip().splitlines()
            return said[-1] if said else f"exit {done.returncode}"
        cpu, kilobytes = done.stdout.split()[-2:]
        seconds.append(float(cpu))
        memory = max(memory, float(kilobytes) / 1024)
        if seconds[0] > 10:
            break
    return Figures(median(seconds), memory, known(target))


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
    plain = f"{found.seconds:.3f} s, {found.memory:.0f} MB, {found.known:.0%} known"
    if not isinstance(peer, Figures):
        return plain
    return f"**{found.seconds / peer.seconds:.2f}** time, **{found.memory / peer.memory:.2f}** memory; {plain}"


def main() -> None:
    """Print the table as Markdown, a row for each model, and how each tool's time grows."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    wanted = sys.argv[2:] or TOOLS
    tools = {name: tool for name, tool in TOOLS.items() if name in wanted and find_spec(tool.module)}
    print(f"Python {sys.version.split()[0]}, " + ", ".join(_version(tool) for tool in tools.values()) + "\n")
    print(f"| model | nodes | {' | '.join(tools)} |\n|---|---|{'---|' * len(tools)}")
    table: dict[tuple[str, str], Figures | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "model.onnx", Path(folder) / "inferred.onnx"
        for name, make in MODELS.items():
            model = make()
            onnx.save(model, source)
            row = {tool: measure(TOOLS[tool], source, target, runs) for tool in tools}
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


def _version(tool: Tool) -> str:
    try:
        return f"{tool.package} {metadata.version(tool.package)}"
    except metadata.PackageNotFoundError:
        return tool.package


if __name__ == "__main__":
    main()
