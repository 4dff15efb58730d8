"""What `check` says of models, and what happens in the runtimes, before and after `convert --target`.

    python tests/campaigns/in_runtimes.py runs.jsonl MODEL... --runtime opencv@5.0.0=PYTHON --runtime tract=PYTHON
    python tests/campaigns/in_runtimes.py runs.jsonl MODEL... --runtime mnn=PYTHON --slim PYTHON
    python tests/campaigns/in_runtimes.py runs.jsonl --summary

PYTHON is one that has the runtime; that of --slim has onnxslim, the peer. The models should be none of the table's
cases: exports of other networks, models of packages. Each model is checked by the table alone, run as it is, converted
for the runtime, and run again, in processes of their own; what it has to give comes from onnxruntime.

Results are lines of JSON, and a run goes on where the last one ended. The summary counts for each runtime what was
said of models that run and of models that do not, and names each exception: said and not so, and run before and not
after. Ends with 1 if a model that ran is refused or wrong after the conversion.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

import splitgraph  # noqa: E402  (the folder above is on the path only now)

_SAID = {True: "runs", False: "does not", None: "not known"}
_LONGEST = 300
# Answers of a run that say something about the runtime.
_RAN = ("equal", "different", "refused")


def trial(path: Path, target: str, python: str, slim: Path | str | None) -> dict[str, Any]:
    """What became of one model in one runtime. slim: the model that onnxslim writes, or why it writes none."""
    runtime = {"runtime_python": python}
    told: dict[str, Any] = {"model": str(path), "target": target}
    try:
        told["said"] = _SAID[splitgraph.check(path, target).runs]
        found = splitgraph.check(path, target, run=True, **runtime)
        told |= {"before": found.ran, "first": str(found.first_node or "")[:_LONGEST]}
    except splitgraph.SplitgraphError as error:
        return told | {"before": "not-run", "reason": str(error)[:_LONGEST]}
    try:
        rewrite = splitgraph.convert(path, target=target, verify=True, **runtime)
    except splitgraph.SplitgraphError as error:
        told |= {"after": "refused by splitgraph", "reason": str(error)[:_LONGEST]}
    else:
        ran = rewrite.ran
        told |= {"after": None if ran is None else ran.answer, "changes": len(rewrite.changes)}
        told |= {"reason": "" if ran is None else ran.said[:_LONGEST]}
        told["said_after"] = _SAID[splitgraph.check(rewrite.model, target).runs]
    if slim is not None:
        told["slim"] = _ran(slim, target, runtime) if isinstance(slim, Path) else slim
    return told


def _ran(path: Path, target: str, runtime: Mapping[str, str]) -> str:
    try:
        return str(splitgraph.check(path, target, run=True, **runtime).ran)
    except splitgraph.SplitgraphError as error:
        return f"no result: {error}"[:_LONGEST]


def _slimmed(path: Path, python: str, folder: Path) -> Path | str:
    """Return the model that onnxslim writes, or why it writes none that is equal to this one."""
    output = folder / "slim.onnx"
    output.unlink(missing_ok=True)
    command = [python, "-m", "onnxslim", str(path), str(output)]
    try:
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120, check=True)
        compared = splitgraph.verify(path, output)
    except (subprocess.SubprocessError, splitgraph.SplitgraphError, OSError) as error:
        return f"no result: {error}"[:_LONGEST]
    return "another model" if compared.verdict == "different" else output


def main() -> int:
    """Run what the command line says; 1 if the conversion broke a model that ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--runtime", action="append", default=[], metavar="TARGET=PYTHON", help="repeatable")
    parser.add_argument("--slim", metavar="PYTHON", help="a Python that has onnxslim")
    parser.add_argument("--summary", action="store_true", help="only print what the file says")
    options = parser.parse_args()
    done: dict[tuple[str, str], dict[str, Any]] = {}
    if options.results.exists():
        for told in map(json.loads, options.results.read_text().splitlines()):
            done[told["model"], told["target"]] = told
    if not options.summary:
        with tempfile.TemporaryDirectory() as folder, options.results.open("a") as held:
            for path in options.models:
                slim: Path | str | None = None
                for target, _, python in (each.partition("=") for each in options.runtime):
                    if (str(path), target) not in done:
                        if options.slim and slim is None:
                            slim = _slimmed(path, options.slim, Path(folder))
                        told = trial(path, target, python, slim)
                        done[str(path), target] = told
                        held.write(json.dumps(told) + "\n")
                        held.flush()
    return sum([_summary(target, list(done.values())) for target in sorted({target for _, target in done})]) and 1


def _summary(target: str, all_told: Sequence[Mapping[str, Any]]) -> int:
    """Print the figures of one runtime; return how many models it lost by the conversion."""
    told = [each for each in all_told if each["target"] == target and each["before"] in _RAN]
    runs = {key: sum(each.get(key) == "equal" for each in told) for key in ("before", "after", "slim")}
    print(f"{target}: {len(told)} models; run as they are {runs['before']}, converted {runs['after']}", end="")
    print(f", slimmed {runs['slim']}" if any("slim" in each for each in told) else "")
    for said, ran in (("said", "before"), ("said_after", "after")):
        counts = Counter((each[said], each[ran] == "equal") for each in told if said in each)
        shares = [
            f"{words}: {counts[words, right]} of {counts[words, True] + counts[words, False]}"
            for words, right in (("runs", True), ("does not", False))
        ]
        unknown = counts["not known", True] + counts["not known", False]
        print(f"    {ran}: {', '.join(shares)} right; not known: {unknown} of {sum(counts.values())}")
    lost = [each for each in told if each["before"] == "equal" and each.get("after") != "equal"]
    untrue = [each for each in told if each["said"] == "runs" and each["before"] != "equal"]
    alarms = [each for each in told if each["said"] == "does not" and each["before"] == "equal"]
    later = [each for each in told if each.get("said_after") == "runs" and each.get("after") != "equal"]
    for what, found in (("LOST", lost), ("UNTRUE", untrue), ("FALSE ALARM", alarms), ("UNTRUE AFTER", later)):
        for each in found:
            name, reason = Path(each["model"]).name, each.get("reason") or each.get("first")
            print(f"    {what} {name}: {each['before']} -> {each.get('after')}: {reason}")
    return len(lost)


if __name__ == "__main__":
    raise SystemExit(main())
