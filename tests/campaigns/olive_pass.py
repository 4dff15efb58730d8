"""The pass for Olive in real workflows: its tests, and every model of `models/` converted, and then optimized by Olive.

    python tests/campaigns/olive_pass.py --cache FOLDER
    python tests/campaigns/olive_pass.py --cache FOLDER --opset 21 --only gpt2

--cache holds an environment with olive-ai, which is made where it is missing: 6 GB with PyTorch and what PyTorch needs.
Each model goes through two workflows: SplitgraphConversion to the opset, with verification; and the same followed by
Olive's own OnnxPeepholeOptimizer, which shows that other passes go on with the result. `splitgraph.verify` compares
what comes out with the original. The script ends with 1 if a test fails, if an output of the first workflow differs, or
if Olive's log does not say why there is no output; what Olive's own pass does to a model is printed and counted only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import venv
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# olive-ai 0.13.0 imports requests without requiring it.
_PACKAGES = ("olive-ai==0.13.0", "requests", "onnxruntime", "pytest")
_TESTS = "tests/pipelines/test_olive_pass.py"
# Olive gave no model and did not log why.
_SILENT = "no output, no reason"
_REASON = re.compile(r"^(?:[\w.]+\.)?(\w+Error): (.*)$", re.MULTILINE)


def main() -> int:
    """Make the environment, run the tests and the workflows in it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="the folder of the environment")
    parser.add_argument("--opset", type=int, default=18, help="that the models are converted to")
    parser.add_argument("--only", default="", help="only models whose name has this text")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        return workflows(given.cache, given.opset, given.only)
    python = environment(given.cache)
    tests = subprocess.run([python, "-m", "pytest", "-o", "addopts=", "-q", _TESTS], cwd=ROOT, env=quiet(), check=False)
    again = [python, __file__, "--inside", "--cache", given.cache, "--opset", str(given.opset), "--only", given.only]
    return int(bool(tests.returncode) | bool(subprocess.run(again, env=quiet(), check=False).returncode))


def environment(cache: Path) -> Path:
    """The Python of the environment, which has olive-ai and this checkout."""
    folder = cache.resolve() / "olive"
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (folder / "complete").exists():
        venv.create(folder, with_pip=True, clear=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *_PACKAGES, "--editable", ROOT], check=True)
        (folder / "complete").touch()
    return python


def quiet() -> dict[str, str]:
    """The environment variables: Olive must not send anything, and PyTorch needs no second core here."""
    return {**os.environ, "OLIVE_DISABLE_TELEMETRY": "1", "OMP_NUM_THREADS": "1"}


def workflows(cache: Path, opset: int, only: str) -> int:
    """Run the workflows of each model; print one line for each, and how many ended in which way."""
    convert = {"convert": {"type": "SplitgraphConversion", "opset": opset}}
    flows = {"converted": convert, "optimized": {**convert, "fuse": {"type": "OnnxPeepholeOptimizer"}}}
    counts: dict[str, Counter[str]] = {flow: Counter() for flow in flows}
    for model in sorted((ROOT / "models").glob("*.onnx")):
        if only not in model.name:
            continue
        for flow, passes in flows.items():
            verdict, told = trial(model, cache.resolve() / "runs" / model.stem / flow, passes)
            counts[flow][verdict] += 1
            print(f"{model.name} {flow}: {verdict}{': ' if told else ''}{told}", flush=True)
    print(json.dumps(counts))
    return int(bool(counts["converted"]["different"] + counts["converted"][_SILENT]))


def trial(model: Path, folder: Path, passes: dict[str, Any]) -> tuple[str, str]:
    """How the workflow of a model ended, and the reason where there is one."""
    import logging

    import olive

    import splitgraph
    from splitgraph.pipelines.olive_pass import package_config

    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log.txt"
    handler = logging.FileHandler(log, mode="w", encoding="utf-8")
    config: dict[str, Any] = {
        "input_model": {"type": "ONNXModel", "model_path": str(model)},
        "passes": passes,
        "output_dir": str(folder / "out"),
        "cache_dir": str(folder / "cache"),
        "clean_cache": True,
        "log_severity_level": 3,
    }
    logging.getLogger("olive").addHandler(handler)
    try:
        found = olive.run(config, package_config=package_config()).get_output_models()
    finally:
        logging.getLogger("olive").removeHandler(handler)
        handler.close()
    if not found:
        reasons = _REASON.findall(log.read_text(encoding="utf-8"))
        return ("no output", ": ".join(reasons[-1])) if reasons else (_SILENT, str(log))
    verification = splitgraph.verify(model, found[0].model_path)
    first = verification.first_difference
    return verification.verdict, "" if first is None else f"{first.name}: {first.reason}"


if __name__ == "__main__":
    sys.exit(main())
