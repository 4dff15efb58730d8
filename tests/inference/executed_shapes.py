"""Running a model with every value as an output, and comparing what was inferred with the shapes that came out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

from splitgraph.dim import Dim, evaluate, symbols_of
from splitgraph.inference.analysis import Analysis
from splitgraph.model.value_type import ValueType
from splitgraph.verification.reference.evaluator import load
from splitgraph.verification.values import UnsupportedError

Values = Mapping[str, Any]
# One execution of one graph: where the graph is, and its values by name.
Trace = tuple[str, Values]

_NUMPY = {"bool": np.bool_, "string": np.object_}


class RefusedError(Exception):
    """The engine does not load the model, or does not run it on these inputs."""


@dataclass
class Comparison:
    """dims: how many were compared. unknown: "value[axis]" of those that the sizes of the inputs do not give.

    wrong: what was claimed and does not hold; also two dimensions that share a generated symbol and differ.
    """

    dims: int = 0
    unknown: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Comparison) -> None:
        """Count the other comparison in."""
        self.dims += other.dims
        self.unknown += other.unknown
        self.wrong += other.wrong


def make_feeds(
    model: onnx.ModelProto,
    analysis: Analysis,
    sizes: Mapping[str, int],
    given: Mapping[str, Any],
    ranges: Mapping[str, Sequence[int]],
    seed: int,
) -> dict[str, Any]:
    """Inputs of a model at these sizes: the given ones, random ones in the place of the others."""
    rng = np.random.default_rng(seed)
    defaults = {tensor.name for tensor in model.graph.initializer}
    feeds: dict[str, Any] = {}
    for value in model.graph.input:
        if value.name in defaults:
            continue
        known = analysis.types[value.name]
        assert known.dtype is not None
        dtype = _NUMPY.get(known.dtype, known.dtype)
        if value.name in given:
            feeds[value.name] = np.array(given[value.name], dtype=dtype)
            continue
        shape = [evaluate(dim, sizes) for dim in known.shape or () if dim is not None]
        low, high = ranges.get(value.name, (0, 5))
        drawn = rng.integers(low, high, size=shape) if "int" in known.dtype else rng.standard_normal(shape)
        feeds[value.name] = (drawn > 0 if known.dtype == "bool" else drawn).astype(dtype)
    return feeds


def run_onnxruntime(model: onnx.ModelProto, names: Iterable[str], feeds: Values) -> list[Trace]:
    """The named values of the main graph, by onnxruntime without any optimisation."""
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    listed = {value.name for value in shown.graph.output}
    for name in names:
        if name not in listed:
            shown.graph.output.add(name=name)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(shown.SerializeToString(), options, providers=["CPUExecutionProvider"])
        outputs = session.run(None, dict(feeds))
    except Exception as error:  # onnxruntime's errors have no base of their own
        raise RefusedError(str(error)) from error
    return [("main", {out.name: value for out, value in zip(session.get_outputs(), outputs, strict=True)})]


def run_reference(model: onnx.ModelProto, feeds: Values) -> list[Trace]:
    """Every value of every graph that is executed, once for each execution, by the reference evaluator.

    A subgraph has the location "": which one it is follows from the names of its values. Bodies of functions are left
    out.
    """
    traces: list[Trace] = []

    def run(self: Any, names: Any, feeds: Any, *args: Any, intermediate: bool = False, **more: Any) -> Any:
        results = ReferenceEvaluator.run(self, names, feeds, *args, intermediate=True, **more)
        if not isinstance(self.proto_, onnx.FunctionProto):
            traces.append(("main" if self.proto_ is model.graph else "", results))
        return results if intermediate else [results[name] for name in names or self.output_names]

    try:
        recording = type("Recording", (type(load(model)),), {"run": run})
        recording(model.graph, opsets={e.domain: e.version for e in model.opset_import}).run(None, dict(feeds))
    except (UnsupportedError, NotImplementedError) as error:
        raise RefusedError(f"unsupported: {error}") from error
    except Exception as error:  # anything at all can come out of a kernel
        raise RefusedError(f"{type(error).__name__}: {error}") from error
    return traces


def compare(
    graphs: Mapping[str, Mapping[str, ValueType]], traces: Iterable[Trace], sizes: Mapping[str, int]
) -> Comparison:
    """Compare the inferred types of every graph by location with what was executed at these sizes."""
    owner: dict[str, str | None] = {}
    for location, types in graphs.items():
        for name in types:
            owner[name] = None if name in owner else location
    result = Comparison()
    settled = dict(sizes)
    for location, values in sorted(traces, key=lambda trace: trace[0] != "main"):
        # Within one execution of one graph a generated symbol stands for one number.
        known = settled if location == "main" else dict(settled)
        pairs = []
        for name, value in values.items():
            # A subgraph's execution shows the values around it, too; a name in two graphs could be either's.
            graph = location or owner.get(name)
            if value is not None and graph not in (None, "" if location else "main") and name in graphs[graph]:
                pairs += _pairs(result, name, graphs[graph][name], value)
        _bind_generated(pairs, known)
        for place, inferred, real in pairs:
            _judge(result, place, inferred, real, known, sizes)
    return result


def _pairs(result: Comparison, name: str, known: ValueType, value: Any) -> list[tuple[str, int | Dim | None, int]]:
    """Each dimension of a value as it is inferred and as it is."""
    if isinstance(value, list):
        if known.kind not in ("sequence", "optional", "unknown"):
            result.wrong.append(f"{name}: {known} is a sequence")
        return [pair for item in value for pair in _pairs(result, name, known, item)] if known.element is None else []
    if not isinstance(value, (np.ndarray, np.generic)):
        return []
    shape = np.shape(value)
    if known.kind == "unknown" or known.shape is None:
        result.dims += len(shape)
        result.unknown += [f"{name}[{axis}]" for axis in range(len(shape))]
        return []
    if known.dtype in ("float32", "int64", "int32", "float64", "bool") and value.dtype != known.dtype:
        result.wrong.append(f"{name}: {known} is of {value.dtype}")
    if len(known.shape) != len(shape):
        result.wrong.append(f"{name}: {known} has the shape {shape}")
        return []
    return [(f"{name}[{axis}]", dim, real) for axis, (dim, real) in enumerate(zip(known.shape, shape, strict=True))]


def _bind_generated(pairs: Sequence[tuple[str, int | Dim | None, int]], known: dict[str, int]) -> None:
    for _, inferred, real in pairs:
        if isinstance(inferred, Dim) and symbols_of(inferred) == {str(inferred)}:
            known.setdefault(str(inferred), real)


def _judge(
    result: Comparison,
    place: str,
    inferred: int | Dim | None,
    real: int,
    known: Mapping[str, int],
    sizes: Mapping[str, int],
) -> None:
    result.dims += 1
    names = symbols_of(inferred) if isinstance(inferred, Dim) else frozenset()
    if inferred is None or not names <= sizes.keys():
        result.unknown.append(place)
    if inferred is None or not names <= known.keys():
        return
    claimed = evaluate(inferred, known)
    if claimed != real:
        result.wrong.append(f"{place}: {inferred} is {claimed}, really {real}, at {dict(known)}")
