"""The same downgrades by three tools: python benchmarks/downgrades.py [OPSET] [--slices]

Prints how many results of each tool are right, and why the others are not. OPSET is 13 by default. The models are the
networks of models/ that PyTorch's present exporter wrote at opset 18 with a Split. With --slices, every Split is first
written as slices: this shows what depends on Split, and what on the other operators.

Each tool converts each model in a process of its own. A result is right if it is at the wanted opset, if onnx's checker
accepts it, and if onnxruntime gives the results of the original at both sizes that models/index.json names. Needs
onnxruntime and onnxscript.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime

import splitgraph

MODELS = Path(__file__).parents[1] / "models"
sys.path.append(str(MODELS))

import catalogue  # noqa: E402, the folder above is on the path only now
from check_models import inputs_for  # noqa: E402

RIGHT = "right"
# Seconds after which a conversion counts as failed.
PATIENCE = 120


class Converter(NamedTuple):
    """A tool: its package, and the program that converts the file `source` to `opset` and writes `target`."""

    package: str
    program: str


_ONNXSCRIPT = "import onnx_ir; from onnxscript.version_converter import convert_version; model = onnx_ir.load(source); "
CONVERTERS = {
    "splitgraph": Converter(
        "onnx-splitgraph", "import splitgraph; splitgraph.downgrade(source, opset, verify=True).save(target)"
    ),
    "onnx's version converter": Converter(
        "onnx",
        "import onnx; from onnx.version_converter import convert_version; "
        "onnx.save(convert_version(onnx.load(source), opset), target)",
    ),
    "onnxscript's converter": Converter(
        "onnxscript", _ONNXSCRIPT + "convert_version(model, opset); onnx_ir.save(model, target)"
    ),
    "the same with fallback=True": Converter(
        "onnxscript", _ONNXSCRIPT + "convert_version(model, opset, fallback=True); onnx_ir.save(model, target)"
    ),
}
_ARGUMENTS = "import sys; source, target, opset = sys.argv[1], sys.argv[2], int(sys.argv[3])\n"


def networks() -> list[dict[str, Any]]:
    """Return the rows of models/index.json for the models that are converted."""
    return [
        row
        for row in catalogue.read()
        if row["file"].endswith(".opset18.dynamo.onnx") and "Split-18" in row["splits"] and row["valid"]
    ]


def converted(converter: Converter, source: Path, target: Path, opset: int) -> str:
    """Convert a file in a process; return the last line that it printed if it failed, and "" if it did not."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _ARGUMENTS + converter.program, source, target, str(opset)],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return f"takes more than {PATIENCE} s"
    if not done.returncode:
        return ""
    said = done.stderr.strip().splitlines()
    # onnx's assertions begin with the place in its source.
    return said[-1].rpartition(" failed: ")[2] if said else f"its process ends with {done.returncode}"


def judged(before: onnx.ModelProto, after: onnx.ModelProto, row: dict[str, Any], opset: int) -> str:
    """Compare a result with its original: RIGHT, or what is wrong with it."""
    stated = next((entry.version for entry in after.opset_import if entry.domain == ""), None)
    if stated != opset:
        return f"gives a model of opset {stated}"
    try:
        onnx.checker.check_model(after, full_check=True)
        for case in row["cases"]:
            inputs = inputs_for(before, row, case)
            for wanted, result in zip(_run(before, inputs), _run(after, inputs), strict=True):
                np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5, strict=True)
    except AssertionError:
        return "gives other results"
    except Exception as error:  # whatever the checker and onnxruntime raise is what is wrong with it
        return f"gives an invalid model: {str(error).strip().splitlines()[0]}"
    return RIGHT


def _run(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def answers(converter: Converter, opset: int, slices: bool, folder: Path) -> list[str]:
    """Return what became of each network: RIGHT, or what is wrong."""
    found = []
    for row in networks():
        source, target = folder / row["file"], folder / "converted.onnx"
        before = onnx.load(MODELS / row["file"])
        onnx.save(splitgraph.convert(before, "slice").model if slices else before, source)
        target.unlink(missing_ok=True)
        found.append(converted(converter, source, target, opset) or judged(before, onnx.load(target), row, opset))
    return found


def main() -> None:
    """Print the table as Markdown, a row for each tool."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("opset", nargs="?", type=int, default=13)
    parser.add_argument("--slices", action="store_true", help="write every Split as slices first")
    options = parser.parse_args()
    if find_spec("onnxscript") is None:
        parser.exit(2, "the other tool is not here: pip install onnxscript\n")
    onnxruntime.set_default_logger_severity(4)
    print(f"Python {sys.version.split()[0]}, onnxruntime {onnxruntime.__version__}\n")
    print(f"| opset 18 to {options.opset} | version | right, of {len(networks())} | otherwise |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, converter in CONVERTERS.items():
            counts = Counter(answers(converter, options.opset, options.slices, Path(folder)))
            right = counts.pop(RIGHT, 0)
            others = "; ".join(f"{count}: {said}" for said, count in counts.most_common())
            print(f"| {name} | {version(converter.package)} | {right} | {others} |", flush=True)


if __name__ == "__main__":
    main()
