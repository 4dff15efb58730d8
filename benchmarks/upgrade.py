"""Opset conversion beside its peers, as ratios to reading and writing the model: CPU time and peak memory.

python benchmarks/upgrade.py [RUNS [TOOL ...]]

A process for each run, all tools in turns; imports and the registries of operators are paid before the clock starts.
The peers are onnx's version_converter and onnxscript's, which falls back to onnx's where it knows no step of its own;
one that is not installed is left out. A result that onnx's checker refuses, or that is not at the target opset, is no
result.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import onnx
from exported_graph import OPSET
from processes import ONNX, Cost, Result, Tool, measure_costs, version_of

import models
import splitgraph

TOOLS = {
    "onnx.load + onnx.save": Tool("onnx", "onnx", "import onnx", "onnx.save(onnx.load(source), target)"),
    "splitgraph": Tool(
        "splitgraph",
        "splitgraph",
        "import splitgraph; splitgraph.upgrade; splitgraph.save; from splitgraph.conversion import opset; "
        "from splitgraph.conversion.operators.registry import load_families; "
        "from splitgraph.inference.rules import load_rules; "
        "load_families(); load_rules(); from splitgraph.model.schemas import newest_opset; newest_opset()",
        "splitgraph.save(splitgraph.{verb}(source, {opset}).model, target)",
    ),
    "onnx": Tool(
        "onnx",
        "onnx",
        ONNX + "from onnx.version_converter import convert_version",
        "onnx.save(convert_version(onnx.load(source), {opset}), target)",
    ),
    "onnxscript": Tool(
        "onnxscript",
        "onnxscript",
        ONNX + "import onnx_ir as ir; from onnxscript.version_converter import convert_version",
        "model = ir.load(source); convert_version(model, {opset}, fallback=True); ir.save(model, target)",
    ),
}
BASELINE = "onnx.load + onnx.save"
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "GPT-2-like, 12 layers": lambda: models.decoder(12),
    "GPT-2-like, 12 layers of width 768": lambda: models.decoder(12, 768, 12),
    "GPT-2-like, 48 layers": lambda: models.decoder(48),
    "GPT-2-like, 400 layers": lambda: models.decoder(400),
    "ShuffleNet-like": models.convolutional,
    "a third splits, 20,000 nodes": lambda: models.splits(20_000),
}
# From which opset to which; the models are made at 18, and taken down by splitgraph for those that go up.
WAYS = ((17, 18), (13, 18), (18, 13))


def checked(result: Result, opset: int) -> Cost | str:
    """The cost of a converter, or why its result is none."""
    if isinstance(result.cost, str):
        return result.cost
    model = onnx.load(result.written)
    if not any(entry.domain == "" and entry.version == opset for entry in model.opset_import):
        return "its result is not at the target opset"
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        return f"its result is invalid: {str(error).splitlines()[0]}"
    return result.cost


def at_work(tool: Tool, verb: str, opset: int) -> Tool:
    """A tool with what it has to do written in."""
    return tool._replace(work=tool.work.format(verb=verb, opset=opset))


def cell(found: Cost | str, base: Cost | str) -> str:
    """Ratios to reading and writing first, then the plain figures."""
    if isinstance(found, str):
        return f"fails: {found[:100]}"
    plain = f"{found.seconds:.3f} s, {found.memory:.0f} MB"
    if not isinstance(base, Cost) or found is base:
        return plain
    time = f"**{found.seconds / base.seconds:.2f}** time (**{found.whole / base.whole:.2f}** with imports)"
    return f"{time}, **{found.memory / base.memory:.2f}** memory; {plain}"


def main() -> None:
    """Print the table as Markdown, a row for each model and way."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    wanted = {BASELINE, *(sys.argv[2:] or TOOLS)}
    tools = {name: tool for name, tool in TOOLS.items() if name in wanted and find_spec(tool.module)}
    packages = {tool.package: version_of(tool) for tool in tools.values()}
    print(f"Python {sys.version.split()[0]}, {', '.join(packages.values())}\n")
    print(f"| model | opsets | nodes | {' | '.join(tools)} |\n|---|---|---|{'---|' * len(tools)}")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "model.onnx"
        for name, make in MODELS.items():
            newest = make()
            # The checker demands a shape of each output; every model here gives one value.
            rank = len(splitgraph.infer(newest).types[newest.graph.output[0].name].shape)
            newest.graph.output[0].type.tensor_type.shape.dim.extend(
                onnx.TensorShapeProto.Dimension() for _ in range(rank)
            )
            for before, after in WAYS:
                model = newest if before == OPSET else splitgraph.downgrade(newest, before).model
                onnx.save(model, source)
                verb = "upgrade" if before < after else "downgrade"
                at_hand = {label: at_work(tool, verb, after) for label, tool in tools.items()}
                found = measure_costs(at_hand, source, Path(folder), runs)
                row = {
                    label: result.cost if label == BASELINE else checked(result, after)
                    for label, result in found.items()
                }
                cells = " | ".join(cell(cost, row[BASELINE]) for cost in row.values())
                print(f"| {name} | {before} to {after} | {len(model.graph.node):,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
