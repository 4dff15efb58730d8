"""The page of the campaign on old runtimes, `docs/old-runtimes.md`, from its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from campaign_results import counted_lines

# What may become of a model, and the words for it.
STATUSES: Mapping[str, str] = {
    "equal": "loaded, run, and equal to the original",
    "close": "close: loaded, run, and equal with the tolerance of `verify` for two engines",
    "equal with --ir-version": "equal, after a conversion with `--ir-version`",
    "refused": "refused by the conversion, which says why",
    "random": "draws random numbers; not compared",
    "no original": "no installed engine runs the original",
    "original too": "fails in the old runtime, like the original",
    "no kernel": "the old runtime has no kernel for an operator of the original",
    "silent": "equal, but the outputs show nothing",
    "not loaded": "not loaded by the old runtime",
    "not run": "loaded, but fails on inputs on which the original runs",
    "different": "gives another result than the original",
}
# What must not be.
FAILURES = ("silent", "not loaded", "not run", "different")

Outcome = Mapping[str, Any]


def is_failure(outcome: Outcome) -> bool:
    """True for an outcome that must not be; one that is not among the statuses is a failure as well."""
    return outcome["status"] in FAILURES or outcome["status"] not in STATUSES


def told(outcome: Outcome) -> str:
    """One outcome in a line."""
    status = outcome["status"]
    if status == "equal with --ir-version":
        return f"equal with `--ir-version {outcome['ir_version']}`"
    if status == "equal":
        return "equal" if "engine" not in outcome else f"equal, the original run by {_ENGINES[outcome['engine']]}"
    if status == "no kernel":
        return f"no kernel for {outcome['operator']}"
    if status == "original too":
        return f"{outcome['of']}, as the original: {outcome['reason']}"
    if status == "close":
        reason = outcome["reason"]
        return f"equal with the tolerance of `verify` for two engines. With the tolerance for one engine: {reason}"
    return f"{status}: {outcome['reason']}" if "reason" in outcome else status


_ENGINES = {"reference": "onnx's reference evaluator", "onnxruntime": "onnxruntime"}


def page(results: Mapping[str, Any]) -> str:
    """The page of the results."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Mapping[str, Any]) -> Iterator[str]:
    runtimes = results["runtimes"]
    heads = [f"onnxruntime {each['version']}, opset {each['opset']}" for each in runtimes]
    yield "# Old runtimes"
    yield ""
    yield (
        f"The {len(results['models'])} models in `models/`, converted for old opsets and run in onnxruntimes of that "
        "time. `tests/campaigns/old_runtimes.py` makes the environments and writes this page. Each export runs in its "
        f"own process, with all optimizations. The original runs in onnxruntime {results['onnxruntime']} on the same "
        "inputs, or in onnx's reference evaluator if onnxruntime cannot run it. Inputs and tolerances are those of "
        "`verify`."
    )
    yield ""
    yield f"Measured at {results['at']}, with Python {results['python']}."
    yield ""
    yield f"| | {' | '.join(heads)} |"
    yield "|---" * (1 + len(runtimes)) + "|"
    counted = [Counter(found["in"][each["version"]]["status"] for found in results["models"]) for each in runtimes]
    for status, words in STATUSES.items():
        yield f"| {words} | {' | '.join(str(counts[status]) for counts in counted)} |"
    yield from _ir_version(results)
    yield ""
    yield "## Each model"
    yield ""
    yield f"| model | opset | IR version | {' | '.join(heads)} |"
    yield "|---" * (3 + len(runtimes)) + "|"
    for found in results["models"]:
        cells = [_cell(found["in"][each["version"]]) for each in runtimes]
        own = [str(found.get(key, "none")) for key in ("opset", "ir_version")]
        yield f"| `{found['file']}` | {' | '.join([*own, *cells])} |"
    yield from _reasons(results)


def _ir_version(results: Mapping[str, Any]) -> Iterator[str]:
    """Why some models need an option."""
    outcomes = [(found, outcome) for found in results["models"] for outcome in found["in"].values()]
    lowered = [(found, outcome) for found, outcome in outcomes if outcome["status"] == "equal with --ir-version"]
    if not lowered:
        return
    yield ""
    yield (
        "A model that has the opset already, or is upgraded, keeps its IR version. `--ir-version` lowers it if the old "
        "runtime cannot read it\n(`splitgraph convert model.onnx --ir-version 8` changes nothing else):"
    )
    yield ""
    for found, outcome in lowered:
        yield f"- `{found['file']}` needs `--ir-version {outcome['ir_version']}`. Without it: {outcome['without']}"


def _cell(outcome: Outcome) -> str:
    """An outcome in the table; reasons are listed below it."""
    with_words = ("equal", "equal with --ir-version", "no kernel")
    return told(outcome) if outcome["status"] in with_words else outcome["status"]


def _reasons(results: Mapping[str, Any]) -> Iterator[str]:
    """Why a model was not run, or is not simply equal, with in how many runtimes that is so."""
    reasons: Counter[str] = Counter()
    for found in results["models"]:
        for outcome in found["in"].values():
            if not outcome["status"].startswith("equal"):
                reasons[f"`{found['file']}`: {told(outcome)}"] += 1
    if reasons:
        yield ""
        yield "## What is not simply equal, and why"
        yield ""
        yield from counted_lines(reasons)
