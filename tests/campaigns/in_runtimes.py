"""What `check` says of models, and what happens in the runtimes, before and after `convert --target`.

    python tests/campaigns/in_runtimes.py runs.jsonl MODEL... --runtime opencv@5.0.0=PYTHON --runtime tract=PYTHON
    python tests/campaigns/in_runtimes.py runs.jsonl MODEL... --runtime mnn=PYTHON --slim PYTHON
    python tests/campaigns/in_runtimes.py runs.jsonl --summary

PYTHON is one that has the runtime; that of --slim has onnxslim, the peer. The models should be none of the table's
cases: exports of other networks, models of packages. Each model is checked by the table alone, run as it is, converted
for the runtime by the table alone and with runs in the runtime, and what was written is run, too. All have to give what
onnxruntime gives for the model as it is.

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
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

# The folder above is on the path only now.
from splitgraph.conversion.targets.convert import convert_for_target  # noqa: E402
from splitgraph.findings.diagnostics import ConversionError, SplitgraphError  # noqa: E402
from splitgraph.inference import infer_model  # noqa: E402
from splitgraph.options import STRICT, Converting, Running  # noqa: E402
from splitgraph.runtimes.check import Examined, check_target, examine  # noqa: E402
from splitgraph.runtimes.runners.interpreters import KINDS  # noqa: E402
from splitgraph.runtimes.runners.result import RuntimeRun  # noqa: E402
from splitgraph.runtimes.target import Target, find_target  # noqa: E402
from splitgraph.verification.in_runtime.cases import Case, NoCaseError, cases_of  # noqa: E402
from splitgraph.verification.in_runtime.hosts import EngineHost, RuntimeHost  # noqa: E402
from splitgraph.verification.in_runtime.run import RUN_SECONDS, Trials, host_of  # noqa: E402
from splitgraph.verification.in_runtime.ways import convert_in_runtime  # noqa: E402

_SAID = {True: "runs", False: "does not", None: "not known"}
_LONGEST = 300
# Answers of a run that say something about the runtime.
_RAN = ("equal", "different", "refused")


@dataclass
class Subject:
    """A model, what onnxruntime gives for it, and what a peer writes. slims: the Python that has the peer."""

    path: Path
    slims: str | None
    folder: Path
    reference: EngineHost = field(default_factory=EngineHost)

    @cached_property
    def model(self) -> onnx.ModelProto:
        return onnx.load(str(self.path))

    @cached_property
    def examined(self) -> Examined:
        return examine(self.model)

    @cached_property
    def cases(self) -> Sequence[Case]:
        analysis = infer_model(self.model, fill=False)
        return cases_of(self.model, analysis, Running(), self.reference, RUN_SECONDS)

    @cached_property
    def slimmed(self) -> onnx.ModelProto | None:
        """The model that onnxslim writes; None if it fails."""
        output = self.folder / "slim.onnx"
        output.unlink(missing_ok=True)
        command = [str(self.slims), "-m", "onnxslim", str(self.path), str(output)]
        try:
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120, check=True)
            return onnx.load(str(output))
        except (subprocess.SubprocessError, OSError):
            return None


@dataclass
class KeptTrials(Trials):
    """Runs each model once."""

    kept: dict[bytes, RuntimeRun] = field(default_factory=dict)

    def run(self, model: onnx.ModelProto, *, finds_node: bool = True) -> RuntimeRun:
        """Run a model on all inputs, or return what became of it."""
        key = model.SerializeToString(deterministic=True)
        ran = self.kept.get(key)
        if ran is None or (finds_node and ran.failed and ran.first_node is None):
            ran = self.kept[key] = super().run(model, finds_node=finds_node)
        return ran


def trial(subject: Subject, host: RuntimeHost, target: Target) -> dict[str, Any]:
    """What became of one model in one runtime."""
    began = time.monotonic()
    told: dict[str, Any] = {"model": str(subject.path), "target": target.key}
    told["said"] = _SAID[check_target(subject.examined, target).runs]
    try:
        trials = KeptTrials(host, subject.reference, subject.model, subject.cases)
    except NoCaseError as error:
        return told | {"before": "not-run", "reason": str(error)[:_LONGEST]}
    own = trials.run(subject.model)
    told |= {"before": _answer(own), "before_said": own.told[:_LONGEST]}
    told |= _by_table(subject, trials, target)
    try:
        ran = convert_in_runtime(subject.model, target, Converting(), STRICT, trials, lambda _: None).ran
        told |= {"after": None if ran is None else _answer(ran), "reason": ran.told[:_LONGEST] if ran else ""}
    except ConversionError as error:
        told |= {"after": "refused by splitgraph", "reason": _reason(error)}
    if subject.slims is not None:
        slim = subject.slimmed
        told["slim"] = "no result" if slim is None else _answer(trials.run(slim, finds_node=False))
    return told | {"seconds": round(time.monotonic() - began, 1)}


def _by_table(subject: Subject, trials: Trials, target: Target) -> dict[str, Any]:
    """What becomes of the model that the table alone proposes, and what was said of that."""
    try:
        model = convert_for_target(subject.model, target).model
    except ConversionError as error:
        return {"by_table": "refused by splitgraph", "by_table_said": _reason(error)}
    ran = trials.run(model, finds_node=False)
    said = _SAID[check_target(examine(model), target).runs]
    return {"by_table": _answer(ran), "by_table_said": ran.told[:_LONGEST], "said_after": said}


def _answer(ran: RuntimeRun) -> str:
    """The answer of a run; the right values in another shape are a kind of their own."""
    return "rank" if ran.only_rank else ran.answer


def _reason(error: ConversionError) -> str:
    return "; ".join(f"{each.location}: {each.message}" for each in error.diagnostics)[:_LONGEST] or str(error)


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
        _run(options, done)
    return sum([_summary(target, list(done.values())) for target in sorted({target for _, target in done})]) and 1


def _run(options: argparse.Namespace, done: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Run each model in each runtime, if that is not done."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack, options.results.open("a") as held:
        hosts: list[tuple[RuntimeHost, Target]] = []
        for name, _, python in (each.partition("=") for each in options.runtime):
            asked = find_target(name)
            host = stack.enter_context(host_of(KINDS[asked.name], Running(runtime_python=(python,))))
            if isinstance(host, RuntimeRun):
                raise SystemExit(host.told)
            hosts.append((host, asked.as_installed(host.runner.version)))
        for path in options.models:
            subject = Subject(path, options.slim, Path(folder))
            for host, target in hosts:
                if (str(path), target.key) not in done:
                    try:
                        told = trial(subject, host, target)
                    except SplitgraphError as error:
                        told = {"model": str(path), "target": target.key, "before": "not-run", "reason": str(error)}
                    done[str(path), target.key] = told
                    held.write(json.dumps(told) + "\n")
                    held.flush()


def _summary(target: str, all_told: Sequence[Mapping[str, Any]]) -> int:
    """Print the figures of one runtime; return how many models it lost by the conversion."""
    told = [each for each in all_told if each["target"] == target and each["before"] in (*_RAN, "rank")]
    runs = {key: sum(each.get(key) == "equal" for each in told) for key in ("before", "by_table", "after", "slim")}
    print(f"{target}: {len(told)} models; run as they are {runs['before']}", end="")
    print(f", converted by the table {runs['by_table']}, with runs {runs['after']}", end="")
    print(f", slimmed {runs['slim']}" if any("slim" in each for each in told) else "")
    for said, ran in (("said", "before"), ("said_after", "by_table")):
        counts = Counter((each[said], each[ran] == "equal") for each in told if said in each)
        shares = [
            f"{words}: {counts[words, right]} of {counts[words, True] + counts[words, False]}"
            for words, right in (("runs", True), ("does not", False))
        ]
        unknown = counts["not known", True] + counts["not known", False]
        print(f"    {ran}: {', '.join(shares)} right; not known: {unknown} of {sum(counts.values())}")
    lost = [each for each in told if each["before"] == "equal" and each.get("after") != "equal"]
    kinds = {
        "LOST": lost,
        "LOST BY THE TABLE": [e for e in told if e["before"] == "equal" and e["by_table"] != "equal"],
        "UNTRUE": [e for e in told if e["said"] == "runs" and e["before"] != "equal"],
        "FALSE ALARM": [e for e in told if e["said"] == "does not" and e["before"] == "equal"],
        "UNTRUE AFTER": [e for e in told if e.get("said_after") == "runs" and e["by_table"] != "equal"],
        "PEER IS AHEAD": [e for e in told if e.get("slim") == "equal" != e["after"]],
    }
    for what, found in kinds.items():
        for each in found:
            print(f"    {what} {Path(each['model']).name}: {each['before']} -> {each['by_table']}, {each['after']}")
            print(f"        {each['before_said']} | {each['by_table_said']} | {each['reason']}")
    return len(lost)


if __name__ == "__main__":
    raise SystemExit(main())
