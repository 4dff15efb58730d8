"""One exported model in an old onnxruntime, against the original in the engines that are installed.

Inputs, attempts, tolerances, and what counts as showing something are those of verification (`verification/`):
only where the second model runs is another place.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from splitgraph.conversion.rewrite import Rewrite
from splitgraph.verification import values
from splitgraph.verification.budget import Budget
from splitgraph.verification.engine_settings import DEFAULT
from splitgraph.verification.engines.engine import normalise
from splitgraph.verification.engines.engine_process import Attempt, EngineFailure, EngineRun, Workplace
from splitgraph.verification.engines.error_texts import reason_of
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.models.comparability import engines_for, find_incomparable, repair_first, with_sorted_nodes
from splitgraph.verification.models.model_pair import ComparedModel, compare_interfaces, read_model_pair
from splitgraph.verification.verdict.case_runs import CaseRuns, Question
from splitgraph.verification.verdict.engine_trial import EngineTrial
from splitgraph.verification.verdict.judge import EngineVerdict
from splitgraph.verification.verification import Difference

WORKER = Path(__file__).resolve().parent / "old_runtimes_worker.py"
SAMPLES = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of an export in an old runtime.

    status: "equal"; "close" (equal with the tolerances between two engines, and not with those of one); "different";
    "not loaded"; "not run" (it loads, and fails on inputs on which the original runs); "silent" (equal, but the outputs
    show nothing); "no original" (the original runs in no engine that is installed); or "random" (the original draws
    random numbers). reason: what was said. engine: which engine ran the original. cases: how many sets of inputs were
    compared.
    """

    status: str
    reason: str = ""
    engine: str = ""
    cases: int = 0


class OldPlace(Workplace):
    """A workplace that runs the first model in an installed engine and the second one in an old onnxruntime.

    fault: the first thing that went wrong in the old runtime.
    """

    def __init__(self, folder: Path, before: onnx.ModelProto, export: Path, python: Path) -> None:
        super().__init__(folder, [before], [None], [None])
        self._export = export
        self._python = python
        self.fault: EngineFailure | None = None

    def run(
        self,
        engine: str,
        attempts: Sequence[Attempt],
        seconds: float,
        *,
        deploy: bool = False,
        regions: Mapping[str, Any] | None = None,
    ) -> EngineRun:
        """Run the original on the attempts, and the export on those that the original accepts. deploy: not done, as the
        old runtime loads the export with all optimisations anyway. regions: none, see `_in_engines`.
        """
        assert regions is None
        end = time.monotonic() + seconds
        run = super().run(engine, attempts, seconds)
        folder = self.folder / f"run_{self._runs}"
        found = self._run_old(folder, sorted(run.outputs[0]), end - time.monotonic()) if run.outputs[0] else []
        run.failures.extend(found)
        for event in _events(folder):
            if event["event"] == "end" and event["stage"] == "run":
                outputs = values.read_values(folder / event["outputs"])
                run.outputs[1][event["case"], event["attempt"]] = normalise(list(outputs.values()))
        self.fault = self.fault or next(iter(found), None)
        return run

    def _run_old(self, folder: Path, accepted: Sequence[tuple[int, int]], seconds: float) -> list[EngineFailure]:
        """Run the export on these cases in a process of its own; what failed."""
        cases = [
            {"case": case, "attempt": attempt, "inputs": f"inputs_{case}_{attempt}.bin", "outputs": f"old_{case}.bin"}
            for case, attempt in accepted
        ]
        (folder / "old_job.json").write_text(json.dumps({"model": str(self._export), "cases": cases}), "utf-8")
        # Isolated: what is on this process's path is for another Python.
        command = [str(self._python), "-I", str(WORKER), str(values.__file__), str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=max(seconds, 1.0))
            abnormal = f"ended with exit status {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            abnormal = f"did not finish within {seconds:.3g} seconds"
        events = _events(folder)
        failed = [_failure(event, event["reason"]) for event in events if event["event"] == "failed"]
        if abnormal:
            failed.append(_failure(events[-1] if events else {"stage": "load"}, abnormal))
        return failed


def _events(folder: Path) -> list[dict[str, Any]]:
    path = folder / "old_events.jsonl"
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]  # a process that dies may leave half a line


def _failure(event: Mapping[str, Any], text: str) -> EngineFailure:
    # Not loading ends the trial, as an engine that lacks something does; a failure at a case belongs to that case.
    reason = reason_of(RuntimeError(text))
    return EngineFailure(event["stage"], 1, event.get("case"), unsupported=event["stage"] == "load", reason=reason)


def try_export(original: onnx.ModelProto, rewrite: Rewrite, export: Path, python: Path, timeout: float) -> Finding:
    """Run an export in the old runtime of an interpreter, and the original here, on the same inputs.

    rewrite: what the file of the export holds. timeout: seconds for everything.
    """
    pair = read_model_pair(original, rewrite.model)
    assert not isinstance(pair, Difference), "two ONNX models are always matched by their names"
    first, second = (with_sorted_nodes(compared) for compared in pair)
    difference = compare_interfaces(first.interface, second.interface)
    if difference is not None:
        return Finding("different", difference.reason)
    if first.draws_random_numbers:
        return Finding("random")
    fault = find_incomparable(first, second)
    if fault is None:
        first, fault = repair_first(first, second)
    if fault is not None:
        return Finding("no original", fault.message)
    return _in_engines(first, second, rewrite, export, python, time.monotonic() + timeout)


def _in_engines(
    first: ComparedModel, second: ComparedModel, rewrite: Rewrite, export: Path, python: Path, deadline: float
) -> Finding:
    """What the first engine shows that runs the original. Both run as a whole: parts that run alone would run in the
    installed engine, and say nothing of the old one.
    """
    maker, tolerance = InputMaker(first.analysis), rewrite.tolerance
    samples = SAMPLES if maker.varies else 1
    question = Question(first, second, maker, None, samples, *tolerance, found=None, seed=0)
    said = []
    for engine in engines_for("auto", DEFAULT, first, second):
        found = _in_engine(question, export, python, engine, engine, deadline)
        if found.status == "different":
            # Two onnxruntimes round differently, as two engines do: "a+b" are held to what those agree on.
            between = _in_engine(question, export, python, engine, f"{engine}+onnxruntime", deadline)
            found = replace(found, status="close") if between.status == "equal" else between
        if found.status:
            return found
        said.append(f"{engine}: {found.reason}")
    return Finding("no original", "; ".join(said))


def _in_engine(question: Question, export: Path, python: Path, engine: str, name: str, deadline: float) -> Finding:
    """What one engine shows, with the tolerances of a name; status "" where it does not run the original."""
    with tempfile.TemporaryDirectory(prefix="splitgraph-") as folder:
        place = OldPlace(Path(folder), question.before.model, export, python)
        outcome = EngineTrial(CaseRuns(question, place, name, Budget(deadline), 1.0)).decide()
    return Finding(_status(outcome, place.fault), _reason(outcome, place.fault), engine, outcome.cases)


def _status(outcome: EngineVerdict, fault: EngineFailure | None) -> str:
    """What an outcome says of the export; "" where the engine did not run the original."""
    if outcome.verdict == "not-run":
        return "silent"
    if outcome.verdict is not None:
        return outcome.verdict
    if fault is not None:
        return "not loaded" if fault.stage == "load" else "not run"
    return ""


def _reason(outcome: EngineVerdict, fault: EngineFailure | None) -> str:
    if outcome.difference is not None:
        return ": ".join(filter(None, (outcome.difference.name, outcome.difference.reason)))
    if outcome.verdict is None and fault is not None:
        return fault.reason
    return "; ".join(filter(None, (outcome.reason, *(note.message for note in outcome.notes))))
