"""How long inference takes beside its peers, as CPU seconds in one run each, load and save included, and how much it
finds.

python benchmarks/infer.py [RUNS]     peers: onnx's own inference; onnxruntime's symbolic tool where it is installed (it
needs sympy)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import onnx

import models

PEERS = {
    "splitgraph": "import splitgraph; splitgraph.save(splitgraph.infer(source).model, target)",
    "onnx": "onnx.save(onnx.shape_inference.infer_shapes(onnx.load(source), data_prop=True), target)",
    "onnxruntime": "from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference as tool; "
    "onnx.save(tool.infer_shapes(onnx.load(source), auto_merge=True), target)",
    "load and save": "onnx.save(onnx.load(source), target)",
}
PROGRAM = """
import sys, time
import onnx, onnx.shape_inference
source, target = sys.argv[1:]
{warm}
start = time.process_time()
{work}
print(time.process_time() - start)
"""
# Imports are paid before the clock starts: they are a figure of their own.
WARM = {"splitgraph": "import splitgraph, splitgraph.inference.rules as rules; splitgraph.infer; rules.load_rules()",
        "onnxruntime": "from onnxruntime.tools import symbolic_shape_infer"}  # fmt: skip

MODELS = {
    "decoder, 12 layers": lambda: models.decoder(12),
    "decoder, 48 layers": lambda: models.decoder(48),
    "20,000 nodes, a third splits": lambda: models.splits(20_000),
    "80 nested halvings": lambda: models.halvings(80),
}


def measure(peer: str, source: Path, target: Path, runs: int) -> float | None:
    """Median CPU seconds of a peer on a model; None when it fails."""
    program = PROGRAM.format(warm=WARM.get(peer, ""), work=PEERS[peer])
    seconds = []
    for _ in range(runs):
        done = subprocess.run(
            [sys.executable, "-c", program, source, target], capture_output=True, text=True, check=False
        )
        if done.returncode:
            return None
        seconds.append(float(done.stdout.split()[-1]))
    return median(seconds)


def known(target: Path) -> str:
    """Share of the dimensions of node outputs that a result declares."""
    model = onnx.load(target)
    produced = {name for node in model.graph.node for name in node.output if name}
    declared = {value.name: value for value in (*model.graph.value_info, *model.graph.output)}
    dims = [dim for name in produced if name in declared for dim in declared[name].type.tensor_type.shape.dim]
    ranked = sum(1 for name in produced if name in declared and declared[name].type.tensor_type.HasField("shape"))
    share = sum(1 for dim in dims if dim.WhichOneof("value")) / max(len(dims), 1)
    return f"{share * ranked / len(produced):.0%}"


def main() -> None:
    """Print a table: a row for each model, ratios to `load and save` first, then what is known."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(
        "| model | "
        + " | ".join(f"{peer}: × load and save, s, dims known" for peer in PEERS if peer != "load and save")
        + " |"
    )
    print("|---|" + "---|" * (len(PEERS) - 1))
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "model.onnx", Path(folder) / "inferred.onnx"
        for name, make in MODELS.items():
            onnx.save(make(), source)
            base = measure("load and save", source, target, runs) or 1.0
            cells = []
            for peer in PEERS:
                if peer != "load and save":
                    seconds = measure(peer, source, target, runs)
                    cells.append(
                        "fails" if seconds is None else f"{seconds / base:.1f}, {seconds:.3f}, {known(target)}"
                    )
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
