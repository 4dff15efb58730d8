"""Exports of the project's models for old opsets, run in old onnxruntimes and compared with the originals.

    python tests/campaigns/old_runtimes.py --cache FOLDER [--python PYTHON] [--only NAME ...] [--runtime VERSION ...]

Makes an environment for each old onnxruntime in the cache, with a Python from 3.8 to 3.11. Every model in `models/` is
converted to the opset of each runtime. A process of the old runtime runs the result, and the engines that are installed
run the original on the same inputs. Results go to `old_runtimes_results.json`, from which `docs/old-runtimes.md` is
written. A run over all takes about five minutes on two cores. Ends with 1 where a result is not what the original
gives, or does not load or run, and neither the original nor a missing kernel explains that.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import onnx
import onnxruntime
from campaign_results import keep, measured_at
from old_runtimes_environments import PYTHONS, RUNTIMES, Runtime, environment, find_python, version_of
from old_runtimes_page import is_failure, page, told
from old_runtimes_trial import Finding, try_export

import splitgraph
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.model.schemas.table import minimum_ir_version
from splitgraph.verification.models.model_files import scoped_nodes

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent.parent / "models"
RESULTS = HERE / "old_runtimes_results.json"
PAGE = HERE.parent.parent / "docs" / "old-runtimes.md"
# How onnxruntime says that it has an operator, and no code for it.
_NO_KERNEL = re.compile(r"Could not find an implementation for (?:the node .*?:)?(\w+)\(\d+\)")

Outcome = dict[str, Any]


def models() -> list[Path]:
    """Every model of the project, ONNX and OpenVINO IR."""
    return sorted([*MODELS.glob("*.onnx"), *MODELS.glob("*.xml")])


def judge(path: Path, runtime: Runtime, python: Path, timeout: float) -> Outcome:
    """What became of a model in one old runtime: a status of `old_runtimes_page.STATUSES`, and what goes with it."""
    try:
        rewrite = splitgraph.convert(str(path), opset=runtime.opset)
    except splitgraph.SplitgraphError as error:
        first = next((f"{found.code} {found.message}" for found in error.diagnostics), str(error))
        return {"status": "refused", "reason": first}
    original = onnx.load(path)
    finding = _try(original, rewrite, python, timeout)
    needed = minimum_ir_version(runtime.opset)
    if finding.status == "not loaded" and rewrite.model.ir_version > needed:
        lowered = _lowered(path, runtime.opset, needed)
        again = finding if lowered is None else _try(original, lowered, python, timeout)
        if again.status == "equal":
            own = {"ir_version": needed, "without": finding.reason}
            return {**_outcome(again), **own, "status": "equal with --ir-version"}
    outcome = _outcome(finding)
    return explained(outcome, original, path, python, timeout) if is_failure(outcome) else outcome


def _lowered(path: Path, opset: int, ir_version: int) -> Rewrite | None:
    """The export with that IR version; None where something in the model needs a newer one."""
    try:
        return splitgraph.convert(str(path), opset=opset, ir_version=ir_version)
    except splitgraph.ConversionError:
        return None


def _try(original: onnx.ModelProto, rewrite: Rewrite, python: Path, timeout: float) -> Finding:
    with tempfile.TemporaryDirectory(prefix="splitgraph-") as folder:
        export = Path(folder) / "model.onnx"
        splitgraph.save(rewrite.model, export)
        return try_export(original, rewrite, export, python, timeout)


def explained(outcome: Outcome, original: onnx.ModelProto, path: Path, python: Path, timeout: float) -> Outcome:
    """A failure, with another status where it is none of the conversion: the old runtime says the same of the original,
    or it lacks a kernel for an operator that the original has as well.
    """
    lacking = _NO_KERNEL.search(outcome.get("reason", ""))
    if lacking is not None and any(node.op_type == lacking[1] for node, _ in scoped_nodes(original)):
        return {**outcome, "status": "no kernel", "operator": lacking[1]}
    with tempfile.TemporaryDirectory(prefix="splitgraph-") as folder:
        copy = Path(folder) / "model.onnx"
        shutil.copyfile(path, copy)
        own = try_export(original, Rewrite(original, ()), copy, python, timeout)
    same = (own.status, own.reason) == (outcome["status"], outcome.get("reason", ""))
    return {**outcome, "status": "original too", "of": outcome["status"]} if same else outcome


def _outcome(finding: Finding) -> Outcome:
    kept = {"reason": finding.reason, "cases": finding.cases}
    if finding.engine not in ("", "onnxruntime"):
        kept["engine"] = finding.engine
    return {"status": finding.status, **{key: value for key, value in kept.items() if value}}


def describe(path: Path) -> dict[str, Any]:
    """What the page says of a model beside its outcomes; an IR has neither an opset of ONNX nor an IR version."""
    if path.suffix != ".onnx":
        return {"file": path.name}
    model = onnx.load(path)
    opset = next(item.version for item in model.opset_import if item.domain in ("", "ai.onnx"))
    return {"file": path.name, "opset": opset, "ir_version": model.ir_version}


def measure(
    paths: Sequence[Path], interpreters: Mapping[Runtime, Path], python: Path, timeout: float
) -> dict[str, Any]:
    """The results of these models in the runtimes of these interpreters."""
    found = []
    for path in paths:
        outcomes = {}
        for runtime, interpreter in interpreters.items():
            outcomes[runtime.version] = judge(path, runtime, interpreter, timeout)
            click.echo(f"{path.name} in {runtime.version}: {told(outcomes[runtime.version])}")
        found.append({**describe(path), "in": outcomes})
    listed = [{"version": runtime.version, "opset": runtime.opset} for runtime in interpreters]
    installed = {"python": version_of(python), "onnxruntime": onnxruntime.__version__}
    return {"at": measured_at(), **installed, "runtimes": listed, "models": found}


@click.command()
@click.option("--cache", type=click.Path(path_type=Path), required=True, help="Folder for the environments.")
@click.option("--python", "given", type=click.Path(path_type=Path), help="The Python to make them of.")
@click.option("--only", multiple=True, help="Part of a model's name; repeatable. Writes no results.")
@click.option("--runtime", "versions", multiple=True, help="Version of an old onnxruntime. Writes no results.")
@click.option("--timeout", type=float, default=180, show_default=True, help="Seconds for one model in one runtime.")
@click.option("--skip-without-python", is_flag=True, help="End with 0 where there is no Python that is old enough.")
def main(
    cache: Path,
    given: Path | None,
    only: Sequence[str],
    versions: Sequence[str],
    timeout: float,
    skip_without_python: bool,
) -> None:
    """Make the environments, run every model in each, and write the page."""
    python = find_python(given)
    if python is None:
        text = f"No Python from {PYTHONS[-1]} to {PYTHONS[0]} was found"
        if not skip_without_python:
            raise click.ClickException(f"{text}. Name one with --python.")
        click.echo(f"SKIPPED: {text}, and the old onnxruntimes have wheels for no other. Nothing was run.")
        return
    wanted = [runtime for runtime in RUNTIMES if not versions or runtime.version in versions]
    paths = [path for path in models() if not only or any(part in path.name for part in only)]
    if not wanted or not paths:
        raise click.ClickException("there is no such runtime, or no such model")
    cache.mkdir(parents=True, exist_ok=True)
    interpreters = {runtime: environment(runtime, python, cache.resolve()) for runtime in wanted}
    results = measure(paths, interpreters, python, timeout)
    failed = [found["file"] for found in results["models"] if any(map(is_failure, found["in"].values()))]
    if not only and not versions:
        keep(results, RESULTS, page, PAGE)
    click.echo(f"{len(paths)} models, {len(failed)} with a failure: {', '.join(failed)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
