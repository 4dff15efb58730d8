"""What local functions cost: models of equal blocks as functions, as ratios to the model with the blocks inlined.

python benchmarks/functions.py [RUNS [BLOCKS]]

BLOCKS: how many blocks of 8 nodes each model has; 1,000 if not given. Times are CPU time as `processes.py` measures it,
without saving the results; the median of the runs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import onnx
from called_functions import MODELS
from processes import Cost, Tool, measure_costs, version_of

_IMPORTS = (
    "import splitgraph; splitgraph.infer; splitgraph.upgrade; from splitgraph.conversion import opset; "
    "from splitgraph.conversion.operators.registry import load_families; "
    "from splitgraph.inference.rules import load_rules; "
    "load_families(); load_rules(); from splitgraph.model.schemas import newest_opset; newest_opset()"
)
WAYS = {
    "infer": "splitgraph.infer(source)",
    "upgrade to 18": "splitgraph.upgrade(source, 18)",
    "downgrade to 12": "splitgraph.downgrade(source, 12)",
}
TOOLS = {way: Tool("splitgraph", "splitgraph", _IMPORTS, work) for way, work in WAYS.items()}
_BLOCKS = 1_000


def main() -> None:
    """Print a table as Markdown."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    blocks = int(sys.argv[2]) if len(sys.argv) > 2 else _BLOCKS
    print(f"Python {sys.version.split()[0]}, {version_of(TOOLS['infer'])}, {blocks:,} blocks\n")
    print(f"| model | {' | '.join(WAYS)} |\n|" + "---|" * (1 + len(WAYS)))
    base: dict[str, Cost | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "model.onnx"
        for name, make in MODELS.items():
            onnx.save(make(blocks), source)
            costs = {way: held.cost for way, held in measure_costs(TOOLS, source, Path(folder), runs).items()}
            base = base or costs
            print(f"| {name} | {' | '.join(cell(costs[way], base[way]) for way in WAYS)} |", flush=True)


def cell(found: Cost | str, base: Cost | str) -> str:
    """The ratio to the inlined model, then the plain figures."""
    if isinstance(found, str):
        return f"fails: {found[:100]}"
    ratio = f"**{found.seconds / base.seconds:.2f}**; " if isinstance(base, Cost) and found is not base else ""
    return f"{ratio}{found.seconds:.3f} s, {found.memory:.0f} MB"


if __name__ == "__main__":
    main()
