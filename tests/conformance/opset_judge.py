"""What became of a case at another opset, judged by the checker, by inference and by the engines.

An engine is a judge of what a converted model gives when it gives the expected outputs of the original, or of the
converted model itself: the expected outputs come from onnx, not from an engine. The worst that is found counts.
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx

import splitgraph
from splitgraph.conversion.opset import convert_opset
from splitgraph.findings.diagnostics import ConversionError
from splitgraph.model.schemas.table import minimum_ir_version
from splitgraph.verification.comparison import Comparison
from splitgraph.verification.engines.engine import load_engine, normalise
from splitgraph.verification.engines.error_texts import is_unsupported, reason_of
from splitgraph.verification.models.model_pair import compare_interfaces

from .model_cases import ModelCase, opset_of
from .opset_cases import has_interface, operators_of

# doubtful: the only engine that runs the converted model, and that does not prove to be a judge, gives something else.
# unjudged: valid, but no engine runs it.
Status = Literal["equal", "wrong", "invalid", "refused", "crashed", "doubtful", "unjudged"]
STATUSES: tuple[Status, ...] = ("equal", "wrong", "invalid", "refused", "crashed", "doubtful", "unjudged")
ENGINES = ("onnxruntime", "reference")

# What these give is drawn at random: only types and shapes are compared.
_RANDOM = frozenset({"Bernoulli", "Multinomial"})
# What engines say of what they lack: onnxruntime of an opset that it does not have yet and of a Scan whose body gives
# values of unknown rank (onnx infers less of old operators), the evaluator of a package that is not there.
_LACKING = (
    "guarantees support for models",
    "under development",
    "must have the shape set for all outputs",
    "No module named",
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a case.

    detail: of anything but "equal". engine: who judged. reasons: of a refusal, each once. possible: False when the
    opset lacks a type of the case's inputs and outputs, so that nothing could have converted it.
    """

    status: Status
    detail: str = ""
    engine: str = ""
    reasons: tuple[tuple[str, str], ...] = ()
    possible: bool = True


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What an engine did with a model. It "rejects" a wrong one, and "cannot" run one for which it lacks something."""

    kind: Literal["equal", "differs", "rejects", "cannot"]
    detail: str = ""


@dataclass(slots=True)
class Judge:
    """Judges one case at several opsets; what engines do with the original is kept.

    enter: called with what is under way, for those who have to know after a crash. engines: those to ask.
    """

    case: ModelCase
    enter: Callable[[str], None] = lambda stage: None
    engines: Collection[str] = ENGINES
    _originals: dict[str, _Outcome] = field(default_factory=dict)
    # Operators that were written out round otherwise, also where the exact result is 0.
    _atol: float = 0.0

    def judge(self, *opsets: int) -> Verdict:
        """The verdict about the case taken to each of the opsets, one after the other."""
        model, self._atol = self.case.model, self.case.atol
        for opset in opsets:
            original = model.SerializeToString(deterministic=True)
            self.enter(f"convert to {opset}")
            try:
                rewrite = convert_opset(model, opset)
            except ConversionError as error:
                reasons = dict.fromkeys((found.code, found.message) for found in error.diagnostics)
                possible = has_interface(self.case.model, opset)
                return Verdict("refused", str(error), reasons=tuple(reasons), possible=possible)
            except Exception as error:
                return Verdict("crashed", f"{type(error).__name__}: {error} ({_place(error)})")
            if model.SerializeToString(deterministic=True) != original:
                return Verdict("invalid", f"the conversion to {opset} changed the model that it was given")
            model = rewrite.model
            if rewrite.rounding:
                self._atol = max(self._atol, rewrite.tolerance.atol)
        return self.judge_rewritten(model, *opsets, atol=self._atol)

    def judge_rewritten(self, model: onnx.ModelProto, *opsets: int, atol: float) -> Verdict:
        """The verdict about the case as it was rewritten, by way of these opsets."""
        self._atol = max(self.case.atol, atol)
        self.enter("check")
        problem = self._problem(model, opsets)
        return Verdict("invalid", problem) if problem else self._judge_by_engines(model)

    def _problem(self, model: onnx.ModelProto, opsets: Sequence[int]) -> str:
        """What is wrong with a converted model by itself, "" for a valid one."""
        before = self.case.model
        if opset_of(model) != opsets[-1]:
            return f"its opset is {opset_of(model)}"
        least = most = before.ir_version
        for older, newer in pairwise((opset_of(before), *opsets)):
            needed = minimum_ir_version(newer)
            # A downgrade lowers the IR version, unless the model holds something that is newer.
            least, most = (max(least, needed), max(most, needed)) if newer >= older else (min(least, needed), most)
        if not least <= model.ir_version <= most:
            return f"its IR version is {model.ir_version}, which is not between {least} and {most}"
        difference = compare_interfaces(before, model)
        if difference is not None:
            return difference.reason
        complaint = _complaint_of_checker(model)
        if complaint and not _complaint_of_checker(before):
            return f"checker: {complaint}"
        errors = [found for found in splitgraph.infer(model).diagnostics if found.severity == "error"]
        if errors and splitgraph.infer(before).ok:
            return f"inference: {errors[0].code} {errors[0].message}"
        return ""

    def _judge_by_engines(self, model: onnx.ModelProto) -> Verdict:
        doubt, reasons = "", []
        for engine in self.engines:
            self.enter(f"run {engine} on the original")
            if engine not in self._originals:
                self._originals[engine] = self._run(engine, self.case.model)
            before = self._originals[engine]
            self.enter(f"run {engine} on the converted model")
            after = self._run(engine, model)
            if after.kind == "equal":
                return Verdict("equal", engine=engine)
            if after.kind == "cannot":
                reasons.append(f"{engine}: {after.detail}")
            elif before.kind == "equal":
                return Verdict("wrong" if after.kind == "differs" else "invalid", after.detail, engine)
            else:
                doubt = doubt or f"{engine}: {after.detail}; the original: {before.kind} {before.detail}"
        return Verdict("doubtful", doubt) if doubt else Verdict("unjudged", "; ".join(reasons))

    def _run(self, engine: str, model: onnx.ModelProto) -> _Outcome:
        with tempfile.TemporaryDirectory(prefix="splitgraph-") as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model.SerializeToString())
            try:
                run = load_engine(engine, path).run
            except Exception as error:
                return _Outcome("cannot" if _lacks_something(error) else "rejects", reason_of(error))
            return self._compare(run, model)

    def _compare(self, run: Callable[[Any, None], Sequence[Any]], model: onnx.ModelProto) -> _Outcome:
        held = {tensor.name for tensor in model.graph.initializer}
        names = [value.name for value in self.case.model.graph.input if value.name not in held]
        for index, (given, expected) in enumerate(self.case.data_sets):
            feeds = dict(zip(names, map(_value, given), strict=False))
            wanted = normalise([_value(value) for value in expected])
            try:
                found = normalise(run(feeds, None))
            except Exception as error:
                return _Outcome("cannot" if _lacks_something(error) else "rejects", f"fails: {reason_of(error)}")
            if is_random(self.case.model):
                wanted, found = _frame(wanted), _frame(found)
            comparison = Comparison(self.case.rtol, self._atol)
            outputs = [value.name for value in model.graph.output]
            difference = comparison.compare_outputs(outputs, wanted, found, index)
            if difference is not None:
                return _Outcome("differs", f"{difference.name}: {difference.reason}")
        return _Outcome("equal")


def is_random(model: onnx.ModelProto) -> bool:
    """True when a model's outputs are drawn at random: not the same in every engine and run."""
    operators = operators_of(model)
    if operators & _RANDOM or any(name.startswith("Random") for name in operators):
        return True
    return "Dropout" in operators and any(_trains(node, opset_of(model) or 1) for node in model.graph.node)


def _trains(node: onnx.NodeProto, opset: int) -> bool:
    if node.op_type != "Dropout":
        return False
    if opset >= 12:
        return len(node.input) > 2 and node.input[2] != ""
    return opset < 7 and not any(attribute.name == "is_test" and attribute.i for attribute in node.attribute)


def _frame(values: Sequence[Any]) -> list[Any]:
    """Zeros of the type and shape of each value."""
    return [_frame(value) if isinstance(value, list) else np.zeros_like(value) for value in values]


def _value(given: Any) -> Any:
    """A value as the engines take it."""
    if isinstance(given, onnx.TensorProto):
        return onnx.numpy_helper.to_array(given)
    if isinstance(given, (list, tuple)):
        return [_value(item) for item in given]
    return given if given is None or isinstance(given, dict) else np.asarray(given)


def _place(error: Exception) -> str:
    """The file and line where an exception was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"


def _lacks_something(error: Exception) -> bool:
    return is_unsupported(error) or any(words in reason_of(error) for words in _LACKING)


def _complaint_of_checker(model: onnx.ModelProto) -> str:
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return ""
