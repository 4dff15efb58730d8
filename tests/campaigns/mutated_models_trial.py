"""The trial of one mutant: it is inferred and converted, and everything that happens is an answer or a fault."""

from __future__ import annotations

import contextlib
import io
import json
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from mutated_models_mutants import Mutant, Plan
from onnx import ModelProto

import splitgraph
from splitgraph import cli
from splitgraph.formats import onnx_file, skeleton

DATA_FILE = "w.bin"
# The exit codes of a run that neither crashed nor was stopped.
_EXIT_CODES = range(4)
_SMALLEST = 16


class Wrong(Exception):
    """What must not be, though nothing crashed; str() says what."""


@dataclass(slots=True)
class Report:
    """What happened to a mutant. outcomes: of each step. fault: what is wrong, "" for nothing. place: where a crash
    was, so that crashes at one place can be told from others.
    """

    outcomes: list[str] = field(default_factory=list)
    fault: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb gave: a result, or an error that is documented."""

    error: splitgraph.SplitgraphError | None
    result: Any = None

    def __str__(self) -> str:
        if self.error is None:
            return "analysed" if isinstance(self.result, splitgraph.Analysis) else "converted"
        return type(self.error).__name__


def try_mutant(mutant: Mutant, folder: Path, renew: Callable[[], None] = lambda: None) -> Report:
    """Infer and convert a mutant. folder: of its own, for files. renew: called before each step, for its limits."""
    report = Report()
    (folder / DATA_FILE).write_bytes(bytes(64))
    trial = _Trial(mutant.plan, folder, report.outcomes, renew)
    try:
        if isinstance(mutant.content, ModelProto):
            trial.try_model(mutant.content)
        else:
            trial.try_file(mutant.content)
    except Exception as error:
        report.fault = traceback.format_exc()
        report.place = _place(error)
    return report


def _place(error: Exception) -> str:
    if isinstance(error, Wrong):
        return str(error).split(":")[0]
    inside = [frame for frame in traceback.extract_tb(error.__traceback__) if "/splitgraph/" in frame.filename]
    where = f" in {Path(inside[-1].filename).stem}.{inside[-1].name}" if inside else ""
    return f"{type(error).__name__}{where}"


@contextlib.contextmanager
def weights_left() -> Iterator[None]:
    """Files of any size are read without their weights, and so are tensors of more than a few bytes."""
    before = onnx_file.WHOLE, skeleton.SMALL
    onnx_file.WHOLE, skeleton.SMALL = 0, _SMALLEST
    try:
        yield
    finally:
        onnx_file.WHOLE, skeleton.SMALL = before


@dataclass(frozen=True, slots=True)
class _Trial:
    """What is done with a mutant; see `try_mutant`. Each step raises Wrong, or what splitgraph should not raise."""

    plan: Plan
    folder: Path
    outcomes: list[str]
    renew: Callable[[], None]

    @property
    def _verbs(self) -> list[tuple[str, Callable[[Any], Any]]]:
        return [("infer", splitgraph.infer), (self.plan.verb, self.plan.run)]

    def try_model(self, model: ModelProto) -> None:
        """Try a model in memory, and some as a file, too."""
        written = model.SerializeToString()
        for name, verb in self._verbs:
            self.outcomes.append(f"{name}: {self._ask(verb, model)}")
            if model.SerializeToString() != written:
                raise Wrong(f"the caller's model was changed: by {name}")
        if self.plan.is_file or self.plan.is_typed:
            self.try_file(written)

    def try_file(self, data: bytes) -> None:
        """Try a file, whole and without its weights."""
        path = self.folder / "model.onnx"
        path.write_bytes(data)
        _check_reading(path, data)
        for name, verb in self._verbs:
            whole = self._ask(verb, path)
            with weights_left():
                left = self._ask(verb, path)
            self.outcomes.append(f"{name} a file: {whole}")
            _require_same(name, whole, left)
            if left.error is None:
                _check_saving(left.result, self.folder / "saved.onnx", name)
        if self.plan.is_typed:
            self.outcomes.append(f"command: {self._type_commands(path, self.folder / 'typed.onnx')}")

    def _ask(self, verb: Callable[[Any], Any], model: Any) -> Answer:
        self.renew()
        try:
            return Answer(None, verb(model))
        except splitgraph.SplitgraphError as error:
            if isinstance(error, splitgraph.ModelError) and "\n" in str(error):
                raise Wrong(f"a refusal of more than one line: {error}") from error
            if "memory" in str(error):
                raise Wrong(f"out of memory: {error}") from error
            return Answer(error)

    def _type_commands(self, path: Path, output: Path) -> str:
        """The exit codes of `infer` and of the plan's verb, each with --json."""
        infer = ["infer", str(path), "--json", "--all", "-o", str(output), "--force"]
        verb = [self.plan.verb, str(path), *self.plan.typed, "--json", "--no-verify", "-o", str(output), "--force"]
        codes = []
        for typed in (infer, verb):
            self.renew()
            codes.append(f"{typed[0]} {_exit_code(typed)}")
        return " ".join(codes)


# Files -----------------------------------------------------------------------------------------------------------


def _check_reading(path: Path, data: bytes) -> None:
    """A file that is read without its weights is what protobuf reads, or is refused."""
    with weights_left():
        try:
            read = onnx_file.read_onnx(path, external_data="keep", weights="leave")
        except splitgraph.ModelError:
            return
    try:
        expected = ModelProto.FromString(data)
    except DecodeError:
        raise Wrong("a file is read that protobuf refuses") from None
    if not is_same_model(onnx_file.whole_model(read.model, path), onnx_file.whole_model(expected, path)):
        raise Wrong("a file is read as something else than protobuf reads")


def _require_same(name: str, whole: Answer, left: Answer) -> None:
    if whole.error is not None or left.error is not None:
        if (type(whole.error), str(whole.error)) != (type(left.error), str(left.error)):
            raise Wrong(f"{name} with and without weights: {whole.error!r} and {left.error!r}")
        return
    for each in fields(whole.result):
        values = getattr(whole.result, each.name), getattr(left.result, each.name)
        if each.compare and each.name != "held" and values[0] != values[1]:
            raise Wrong(f"{name} with and without weights, {each.name}: {values[0]} and {values[1]}")
    if not is_same_model(whole.result.model, left.result.model):
        raise Wrong(f"{name} with and without weights, model: differs")


def _check_saving(result: Any, path: Path, name: str) -> None:
    """What is saved is read again as the same model."""
    try:
        result.save(path)
    except splitgraph.ModelError as error:
        if not error.diagnostics:
            raise Wrong(f"saving what {name} gives: {error}") from error
        return
    try:
        saved = onnx.load(path, load_external_data=False)
    except DecodeError:
        raise Wrong(f"what {name} gives is saved so that protobuf does not read it") from None
    if not is_same_model(onnx_file.whole_model(saved, path), result.model):
        raise Wrong(f"what {name} gives is saved as something else")


def is_same_model(one: ModelProto, other: ModelProto) -> bool:
    """True for models of the same bytes: a model with a NaN in an attribute is not equal to itself."""
    return one == other or one.SerializeToString() == other.SerializeToString()


# The command line ------------------------------------------------------------------------------------------------


def _exit_code(typed: list[str]) -> int:
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        code = cli.main(typed)
    printed.flush()
    text = printed.buffer.getvalue().decode()  # type: ignore[attr-defined]  # a BytesIO
    if code not in _EXIT_CODES:
        raise Wrong(f"exit code {code}: of {typed}")
    try:
        json.loads(text)
    except ValueError:
        raise Wrong(f"not one JSON document: {text[:300]!r} of {typed}") from None
    return code
