"""What runs a model: a runtime through its runner, or an engine of splitgraph, whose results are the expected ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import onnx

from splitgraph.formats.external_data import all_tensors
from splitgraph.model.tensor_data import is_external
from splitgraph.runtimes.runners.interpreters import Kind
from splitgraph.runtimes.runners.runner import JobAnswer, ModelJob, Runner
from splitgraph.verification.engines.engine_process import Attempt, workplace
from splitgraph.verification.help_texts import is_installed
from splitgraph.verification.models.model_files import read_model, save_model, write_model
from splitgraph.verification.values import Array, Value, is_text


class HostRun(NamedTuple):
    """What became of a model on one set of inputs. values: in the order of the outputs, None if it did not run.
    may_be_inputs: it loads, and may run on other inputs.
    """

    answer: JobAnswer
    said: str = ""
    values: Sequence[Value] | None = None
    may_be_inputs: bool = False


class Host(Protocol):
    """Runs models, each on several sets of inputs. label: as people call it."""

    label: str

    def run(self, model: onnx.ModelProto, cases: Sequence[Mapping[str, Value]], seconds: float) -> list[HostRun]:
        """Run a model on each set of inputs, each for at most so many seconds. The model is not changed."""
        ...


@dataclass
class EngineHost:
    """Runs models in onnxruntime without optimizations, or in the reference evaluator where that does not load one.

    folder: of the external data.
    """

    folder: Path | None = None
    label: str = "onnxruntime" if is_installed("onnxruntime") else "the reference evaluator"

    def run(self, model: onnx.ModelProto, cases: Sequence[Mapping[str, Value]], seconds: float) -> list[HostRun]:
        """Run a model on each set of inputs."""
        attempts = [Attempt(number, 0, inputs) for number, inputs in enumerate(cases)]
        found = [HostRun("not given", "no engine that runs it is installed")] * len(attempts)
        with workplace([model], [None], [self.folder]) as place:
            for engine in ("onnxruntime", "reference"):
                if not is_installed(engine):
                    continue
                run = place.run(engine, attempts, seconds * len(attempts), only_first=True)
                said = {failure.case: failure for failure in run.failures}
                for number in range(len(attempts)):
                    values = run.outputs[0].get((number, 0))
                    failure = said.get(number, said.get(None))
                    if values is not None:
                        found[number] = HostRun("ran", "", values)
                    elif failure is not None:
                        found[number] = HostRun("refuses", failure.reason, may_be_inputs=not failure.unsupported)
                # What an engine refuses on some inputs is no fault of the engine.
                if not any(failure.unsupported for failure in run.failures):
                    break
        return found


@dataclass
class RuntimeHost:
    """Runs models in a runtime. place: a folder for the files of its jobs. folder: of the external data."""

    kind: Kind
    runner: Runner
    place: Path
    folder: Path | None = None
    label: str = field(init=False)
    _number: int = 0

    def __post_init__(self) -> None:
        """Name the runtime with its version."""
        self.label = f"{self.kind.title} {self.runner.version}"

    def run(self, model: onnx.ModelProto, cases: Sequence[Mapping[str, Value]], seconds: float) -> list[HostRun]:
        """Run a model on each set of inputs. After a failure that is no matter of the inputs, the others do not run."""
        self._number += 1
        place = self.place / f"job_{self._number}"
        place.mkdir()
        path = whole_file(model, place / "model", self.folder)
        names = [value.name for value in model.graph.output]
        found: list[HostRun] = []
        for inputs in cases:
            if found and found[-1].answer in ("dies", "hangs", "not given"):
                found.append(found[-1])
                continue
            found.append(self._run_case(place, path, inputs, names, seconds))
        for file in place.iterdir():
            file.unlink()
        return found

    def _run_case(
        self, place: Path, path: Path, inputs: Mapping[str, Value], names: Sequence[str], seconds: float
    ) -> HostRun:
        lacking = next((name for name, value in inputs.items() if not is_plain(value)), None)
        if lacking is not None:
            return HostRun("not given", f"its runner takes no values such as those of {lacking!r}")
        given, saved = place / "inputs.npz", place / "outputs.npz"
        with given.open("wb") as file:
            arrays: dict[str, Any] = {f"i{place}": _as_text(value) for place, value in enumerate(inputs.values())}
            np.savez(file, **arrays)
        result = self.runner.run(ModelJob(path, given, list(inputs), names, saved, seconds))
        if result.answer != "ran":
            return HostRun(
                result.answer, result.said, may_be_inputs=(result.answer, result.stage) == ("refuses", "run")
            )
        with np.load(saved) as held:
            return HostRun("ran", "", [held[f"o{position}"] for position in range(len(held.files))])


def is_plain(value: Value) -> bool:
    """Return True for a tensor of a type that NumPy has itself."""
    return isinstance(value, np.ndarray) and (is_text(value) or value.dtype.kind in "biufc")


def _as_text(value: Array) -> Array:
    return value.astype(str) if is_text(value) else value


def whole_file(model: onnx.ModelProto, stem: Path, folder: Path | None) -> Path:
    """Write a model with its weights: runtimes look for data files beside the model only, and some for none. Weights
    that do not fit in a file of protobuf are beside it.
    """
    written = write_model(model, stem, folder)
    slim = onnx.load(str(written.path), load_external_data=False)
    if not any(map(is_external, all_tensors(slim))):
        return written.path
    return save_model(read_model(written.path, written.folder), stem.with_suffix(".whole.onnx"))
