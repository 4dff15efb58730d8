"""Run a model in a runtime of this machine, and say whether it gives what it should."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from splitgraph.inference import infer_model
from splitgraph.options import Running
from splitgraph.processes.folders import temporary_folder
from splitgraph.runtimes.runners.interpreters import Kind, interpreter_for
from splitgraph.runtimes.runners.result import RuntimeRun, not_installed
from splitgraph.runtimes.runners.runner import MissingRuntimeError, runner_of
from splitgraph.verification.comparison import Comparison
from splitgraph.verification.in_runtime.agreement import Disagreement, first_disagreement, new_comparison
from splitgraph.verification.in_runtime.cases import Case, NoCaseError, cases_of, moved_results
from splitgraph.verification.in_runtime.hosts import EngineHost, Host, RuntimeHost
from splitgraph.verification.in_runtime.inside_calls import Searches
from splitgraph.verification.values import Value

# A model takes at most so many seconds in a runtime, and the search for its first wrong node so many.
RUN_SECONDS, _SEARCH_SECONDS = 60.0, 120.0


@dataclass(slots=True)
class Trials:
    """Runs models in a runtime on the inputs of an original model, whose results they must give.

    host: the runtime; reference: gives the expected results. cases: of the original. comparison: of the results of the
    latest model, which keeps the largest difference.
    """

    host: RuntimeHost
    reference: Host
    original: onnx.ModelProto
    cases: Sequence[Case]
    comparison: Comparison = field(init=False)
    _moved: dict[int, Sequence[Value] | None] = field(default_factory=dict)

    def run(self, model: onnx.ModelProto, *, finds_node: bool = True) -> RuntimeRun:
        """Run a model on all inputs. finds_node: look for the first node that goes wrong, if it does."""
        self.comparison = new_comparison(self.reference.label, self.host.label)
        runs = self.host.run(model, [case.inputs for case in self.cases], RUN_SECONDS)
        names = [value.name for value in model.graph.output]
        reshaped: Disagreement | None = None
        for number, (case, run) in enumerate(zip(self.cases, runs, strict=True)):
            if run.answer == "not given":
                return self._blank(said=run.said)
            if run.answer == "dies" and (said := self._death_of_any_model()):
                return self._blank(said=said)
            if run.values is None:
                said = "the process dies: " * (run.answer == "dies") + run.said
                return self._failed(self._blank(answer="refused", said=said), model, case, finds_node)
            found = self._disagreement(names, number, run.values)
            if found is not None and not found.only_rank:
                text = f"input {number + 1}: {found.reason}"
                text = f"{found.name}, {text}" if found.name else text
                first = found.name, number, found.reason
                found_run = self._blank(answer="different", said=text, first_difference=first)
                return self._failed(found_run, model, case, finds_node)
            reshaped = reshaped or found
        if reshaped is not None:
            text, first = f"{reshaped.name}: {reshaped.reason}", (reshaped.name, 0, reshaped.reason)
            known = {"cases": len(self.cases), "said": text, "only_rank": True, "first_difference": first}
            return self._blank(answer="different", **known)
        return self._blank(answer="equal", cases=len(self.cases))

    def _blank(self, **known: object) -> RuntimeRun:
        kind, runner, largest = self.host.kind, self.host.runner, self.comparison.max_abs_diff
        blank = RuntimeRun(kind.name, kind.title, runner.version, runner.python, "not-run", max_abs_diff=largest)
        return replace(blank, reference=self.reference.label, **known)  # type: ignore[arg-type]

    def _death_of_any_model(self) -> str:
        """Return what is told of a runtime whose process dies whatever it runs, as an old one does beside a NumPy that
        is newer; "" if it runs a model of one node.
        """
        (run,) = self.host.run(one_relu(), [{"x": np.ones(2, np.float32)}], RUN_SECONDS)
        if run.answer != "dies":
            return ""
        return (
            f"no model runs there: one of a single Relu ends its process, too ({run.said}); it may need an older NumPy"
        )

    def _disagreement(self, names: Sequence[str], number: int, values: Sequence[Value]) -> Disagreement | None:
        """Return the first output that disagrees by more than what roundings of the inputs do to the original."""
        case = self.cases[number]
        found = first_disagreement(names, case.expected, values, self.comparison)
        if found is None or found.only_rank:
            return found
        if number not in self._moved:
            self._moved[number] = moved_results(self.original, case, self.reference, RUN_SECONDS)
        return first_disagreement(names, case.expected, values, self.comparison, self._moved[number])

    def _failed(self, run: RuntimeRun, model: onnx.ModelProto, case: Case, finds_node: bool) -> RuntimeRun:
        if not finds_node:
            return run
        search = Searches(case, self.reference, self.host, RUN_SECONDS, time.monotonic() + _SEARCH_SECONDS)
        return replace(run, first_node=search.first_node(model))


def one_relu() -> onnx.ModelProto:
    """Return a model that every runtime runs."""
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "one_relu", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)


@contextmanager
def trials_of(
    original: onnx.ModelProto,
    kind: Kind,
    running: Running,
    *,
    folder: Path | None = None,
    version: str = "",
) -> Iterator[Trials | RuntimeRun]:
    """Start a runtime, and yield what runs models in it; or why nothing can be run there.

    original: what the models must be equal to. running: how many inputs, which, and the Python that has the runtime.
    folder: of the external data. version: that the runtime must have, or the beginning of it; "" for any. Raises
    SplitgraphError for a Python that does not exist, ValueError for inputs that do not fit.
    """
    with host_of(kind, running, folder=folder, version=version) as host:
        if isinstance(host, RuntimeRun):
            yield host
            return
        reference = EngineHost(folder)
        try:
            cases = cases_of(original, infer_model(original, fill=False), running, reference, RUN_SECONDS)
        except NoCaseError as error:
            runner = host.runner
            yield RuntimeRun(kind.name, kind.title, runner.version, runner.python, "not-run", said=str(error))
            return
        yield Trials(host, reference, original, cases)


@contextmanager
def host_of(
    kind: Kind, running: Running, *, folder: Path | None = None, version: str = ""
) -> Iterator[RuntimeHost | RuntimeRun]:
    """Start a runtime, and yield what runs models in it; or why nothing does. Arguments as `trials_of`."""
    python = interpreter_for(kind, running.runtime_python)
    try:
        runner = runner_of(kind, python)
    except (MissingRuntimeError, OSError) as error:
        yield not_installed(kind, python, str(error), version=version)
        return
    with runner, temporary_folder() as place:
        if not f"{runner.version}.".startswith(f"{version}." if version else ""):
            yield not_installed(kind, python, "", version=version, found=runner.version)
            return
        yield RuntimeHost(kind, runner, place, folder)


def run_in_runtime(
    model: onnx.ModelProto,
    kind: Kind,
    running: Running,
    *,
    folder: Path | None = None,
    version: str = "",
) -> RuntimeRun:
    """Run a model in a runtime, and compare it with onnxruntime; find the first node that goes wrong. Arguments and
    errors as `trials_of`.
    """
    with trials_of(model, kind, running, folder=folder, version=version) as trials:
        return trials if isinstance(trials, RuntimeRun) else trials.run(model)
