"""What files cost: reading, rewriting and verifying models that are mostly weights, beside copying and loading them.

python benchmarks/files.py [RUNS [PLOT.svg]]

Whole processes, as a user starts them: wall time (median) and peak memory (highest). The tools take turns. The models
have the same 75 nodes, and weights of 10 MB to 1.9 GB in the file or 3 GiB in a data file. "ORT, both files" is a
script in which onnxruntime loads the original and the result, one after the other, without optimisations as
splitgraph's engine does, and runs three inputs. With a name, a plot of cost against size is written there (needs
matplotlib: see requirements.txt).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

EMBEDDED = (10, 50, 100, 200, 400, 900, 1900)
EXTERNAL = 3 * 1024
# These are shown in the table; the others are points of the plot.
SHOWN = (400, 1900)

_MAKE = """
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
megabytes, path, external = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "external"
layers = 25
width = int((megabytes * 2**20 / layers / 8) ** 0.5)
rng = np.random.default_rng(0)
nodes, weights, before = [], [], "x"
for layer in range(layers):
    drawn = (rng.random((width, 2 * width), np.float32) - 0.5) * (6 / width) ** 0.5
    tensor = numpy_helper.from_array(drawn.astype(np.float32), f"w{layer}")
    weights.append(tensor)
    nodes.append(helper.make_node("MatMul", [before, tensor.name], [f"m{layer}"]))
    nodes.append(helper.make_node("Split", [f"m{layer}"], [f"a{layer}", f"b{layer}"], axis=1))
    before = f"x{layer}"
    nodes.append(helper.make_node("Add", [f"a{layer}", f"b{layer}"], [before]))
given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", width])]
gives = [helper.make_tensor_value_info(before, TensorProto.FLOAT, ["N", width])]
graph = helper.make_graph(nodes, "weights", given, gives, weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
onnx.save(model, path, save_as_external_data=external, location="weights.bin")
"""
_RUN_BOTH = """
import sys
import numpy as np
import onnxruntime
for path in sys.argv[1:]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    for count in (2, 3, 5):
        drawn = np.random.default_rng(count).normal(size=(count, given.shape[1])).astype(np.float32)
        session.run(None, {given.name: drawn})
    del session
"""
_PYTHON = (sys.executable, "-c")
_SPLITGRAPH = (sys.executable, "-m", "splitgraph")
_CONVERT = """
import onnx, sys
from onnx.version_converter import convert_version
onnx.save(convert_version(onnx.load(sys.argv[1]), 18), sys.argv[2])
"""


class Cost(NamedTuple):
    """Seconds of wall time (median) and peak memory in MB (highest) of whole processes; None for what failed."""

    seconds: float
    memory: float


def commands(source: Path, target: Path, result: Path) -> Mapping[str, Sequence[str]]:
    """What is measured on a model; target: where it writes. result: the model at opset 18."""
    new = str(target / "new.onnx")
    return {
        "cp": ["cp", "-r", str(source.parent), str(target / "copy")],
        "onnx.load": [*_PYTHON, "import onnx, sys; onnx.load(sys.argv[1])", str(source)],
        "onnx.load + save": [
            *_PYTHON,
            "import onnx, sys; onnx.save(onnx.load(sys.argv[1]), sys.argv[2])",
            str(source),
            new,
        ],
        "onnx's converter": [*_PYTHON, _CONVERT, str(source), new],
        "splitgraph infer": [*_SPLITGRAPH, "infer", str(source)],
        "upgrade --no-verify": [*_SPLITGRAPH, "upgrade", str(source), "--opset", "18", "--no-verify", "-o", new],
        "upgrade": [*_SPLITGRAPH, "upgrade", str(source), "--opset", "18", "-o", new],
        "ORT, both files": [*_PYTHON, _RUN_BOTH, str(source), str(result)],
    }


def measured(command: Sequence[str]) -> Cost | None:
    """One run; None where it fails."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(time.monotonic() - start, used.ru_maxrss / 1024) if process.returncode == 0 else None


def costs(megabytes: int, external: bool, runs: int, only: Sequence[str] = ()) -> dict[str, Cost | None]:
    """What each tool costs on a model of a size."""
    found: dict[str, list[Cost | None]] = {}
    with tempfile.TemporaryDirectory(prefix="splitgraph-benchmark-") as name:
        source, made = Path(name) / "model" / "model.onnx", Path(name) / "made" / "new.onnx"
        source.parent.mkdir()
        made.parent.mkdir()
        subprocess.run([*_PYTHON, _MAKE, str(megabytes), str(source), "external" if external else ""], check=True)
        upgrade = [*_SPLITGRAPH, "upgrade", str(source), "--opset", "18", "--no-verify", "-o", str(made)]
        subprocess.run(upgrade, check=True, stdout=subprocess.DEVNULL)
        for _ in range(runs):
            for tool in commands(source, made, made):
                target = Path(name) / "target"
                target.mkdir()
                if not only or tool in only:
                    found.setdefault(tool, []).append(measured(commands(source, target, made)[tool]))
                shutil.rmtree(target)
    return {tool: _typical(each) for tool, each in found.items()}


def _typical(runs: Sequence[Cost | None]) -> Cost | None:
    done = [run for run in runs if run is not None]
    return (
        Cost(median(run.seconds for run in done), max(run.memory for run in done)) if len(done) == len(runs) else None
    )


def table(rows: Mapping[str, Mapping[str, Cost | None]]) -> str:
    """Seconds, ratio to what the issue of files names, and MB."""
    tools = list(next(iter(rows.values())))
    lines = ["| model | " + " | ".join(tools) + " |", "|---" * (len(tools) + 1) + "|"]
    for name, found in rows.items():
        cells = ["fails" if cost is None else f"{cost.seconds:.2f} s, {cost.memory:,.0f} MB" for cost in found.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += [
        "",
        "| model | infer / onnx.load | upgrade --no-verify / cp | upgrade / ORT, both files | its memory |",
        "|---|---|---|---|---|",
    ]
    for name, found in rows.items():
        pairs = ("splitgraph infer", "onnx.load"), ("upgrade --no-verify", "cp"), ("upgrade", "ORT, both files")
        ratios = [_ratio(found[one], found[other], "seconds") for one, other in pairs]
        lines.append(
            f"| {name} | {' | '.join([*ratios, _ratio(found['upgrade'], found['ORT, both files'], 'memory')])} |"
        )
    return "\n".join(lines)


def _ratio(one: Cost | None, other: Cost | None, what: str) -> str:
    return "–" if one is None or other is None else f"{getattr(one, what) / getattr(other, what):.2f}"


def plot(sizes: Mapping[int, Mapping[str, Cost | None]], path: Path) -> None:
    """Draw seconds and memory against the size of the weights."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5))
    for tool in next(iter(sizes.values())):
        points = [(size, found[tool]) for size, found in sizes.items() if found[tool] is not None]
        style = "-o" if tool.startswith(("splitgraph", "upgrade")) else "--s"
        for axes, what in ((left, "seconds"), (right, "memory")):
            axes.plot(
                [size for size, _ in points],
                [getattr(cost, what) for _, cost in points],
                style,
                label=tool,
                markersize=4,
            )
    for axes, label in ((left, "seconds"), (right, "peak memory, MB")):
        axes.set(xlabel="weights in the file, MB", ylabel=label, xscale="log", yscale="log")
        axes.grid(True, which="both", alpha=0.3)
    left.legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Measure, print the table, and draw the plot where it is asked for."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    sizes = {size: costs(size, False, runs) for size in (EMBEDDED if target else SHOWN)}
    rows = {f"{size:,} MB embedded": sizes[size] for size in SHOWN}
    rows["3 GiB external"] = costs(EXTERNAL, True, runs)
    print(table(rows))
    if target is not None:
        plot(sizes, target)


if __name__ == "__main__":
    main()
