"""Isolate the operators that a rewrite computes with other arithmetic, and compare them on their own.

The isolated nodes run on the values of the original model, so that nothing amplifies a difference before it is
compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from splitgraph.model.names import used_names
from splitgraph.model.scopes import FunctionKey, called_function, function_key, scopes
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType
from splitgraph.verification.engine_settings import DEFAULT, EngineSettings
from splitgraph.verification.engines.engine_process import Attempt, workplace
from splitgraph.verification.models.model_files import is_default_domain, nodes_within
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.rounding.allowance import COPYING, FLOATS
from splitgraph.verification.values import Value

# Operators that do not round: they copy elements, or move them to other positions.
_EXACT = COPYING | {"CenterCropPad", "Compress", "DepthToSpace", "GatherElements", "GatherND", "Pad", "ReverseSequence"}
_EXACT |= {"ScatterElements", "ScatterND", "SpaceToDepth", "SplitToSequence", "Trilu", "Where"}


@dataclass(frozen=True, slots=True)
class Case:
    """The inputs and the outputs of a model."""

    inputs: Mapping[str, Value]
    outputs: Sequence[Value]


@dataclass(frozen=True, slots=True)
class Isolated:
    """The nodes of a rewrite that replace nodes of the original model, as a model of their own.

    positions: of the nodes in the main graph of the original whose arithmetic was rewritten. model: the nodes that
    replace these and all edited nodes; it reads values that both models have. inputs: the names of these values, in
    order. outputs: the names of the values that the model computes.
    """

    positions: list[int]
    model: onnx.ModelProto
    inputs: list[str]
    outputs: list[str]


def isolate(before: ComparedModel, after: ComparedModel) -> Isolated | None:
    """Isolate the rewritten nodes; None without any, or if one is in a subgraph, which cannot run alone."""
    if not isinstance(before.model, onnx.ModelProto) or not isinstance(after.model, onnx.ModelProto):
        return None
    search = _CommonValueSearch(before.model, after)
    positions: list[int] = []
    for scope in scopes(before.model):
        if scope.in_function:
            continue
        rewritten = [index for index, node in enumerate(scope.nodes) if search.is_rewritten(node)]
        if rewritten and scope.path:
            return None
        positions += rewritten
    if not positions:
        return None
    # The noise would also hide a mistake in a node that was only edited.
    nodes = before.model.graph.node
    edited = [node for index, node in enumerate(nodes) if index in positions or search.is_edited(node)]
    outputs = [name for node in edited for name in node.output if name in search.nodes]
    return search.cut_out(positions, outputs, before.analysis.types)


class _CommonValueSearch:
    """Follows the values of a rewrite back to values that the original model has, too."""

    def __init__(self, before: onnx.ModelProto, after: ComparedModel) -> None:
        assert isinstance(after.model, onnx.ModelProto)
        self.model = after.model
        self.known = set(used_names(before))
        self.nodes: dict[str, onnx.NodeProto] = {}
        self.dtypes: dict[str, str | None] = {}
        for scope in scopes(after.model):
            if not scope.in_function:
                types = after.analysis.graphs.get(scope.location, {})
                for node in scope.nodes:
                    made = [name for name in node.output if name]
                    self.nodes.update(dict.fromkeys(made, node))
                    self.dtypes.update((name, types.get(name, UNKNOWN).dtype) for name in made)
        self.changed = _changed_functions(before.functions, after.model.functions)
        initializers = {tensor.name: tensor for tensor in before.graph.initializer}
        tensors = (tensor for tensor in after.model.graph.initializer if tensor.name in initializers)
        self.altered = {tensor.name for tensor in tensors if tensor != initializers[tensor.name]}

    def is_rewritten(self, node: onnx.NodeProto) -> bool:
        """Return True if the rewrite replaces a node of the original by other floating-point arithmetic."""
        if is_default_domain(node.domain) and node.op_type in _EXACT:
            return False
        if called_function(node) in self.changed:
            return True
        makers = [(name, self.nodes[name]) for name in node.output if name in self.nodes]
        others = [name for name, made in makers if made.op_type != node.op_type or made.input[:1] != node.input[:1]]
        return any(
            self.dtypes.get(name) in FLOATS and maker.op_type not in _EXACT
            for name, maker in self._behind(others)
            if maker is not None
        )

    def is_edited(self, node: onnx.NodeProto) -> bool:
        """Return True if the node that the rewrite has for a node of the original is not identical."""
        if not self.altered.isdisjoint(node.input):
            return True
        return any(name in self.nodes and self.nodes[name] != node for name in node.output)

    def _behind(self, outputs: Iterable[str]) -> Iterator[tuple[str, onnx.NodeProto | None]]:
        """Yield outputs and the values that they are computed from, back to values that both models have.

        Each value comes with the node of the rewrite that computes it, or None if both models have the value.
        """
        waiting = list(outputs)
        for name in waiting:
            yield name, self.nodes[name]
        seen = set(waiting)
        while waiting:
            for name in self._read(self.nodes[waiting.pop()]):
                if name in seen:
                    continue
                seen.add(name)
                is_fresh = name not in self.known and name in self.nodes
                yield name, self.nodes[name] if is_fresh else None
                waiting += [name] if is_fresh else []

    def _read(self, node: onnx.NodeProto) -> list[str]:
        return [name for inner in nodes_within([node]) for name in inner.input if name]

    def cut_out(self, positions: list[int], outputs: list[str], types: Mapping[str, ValueType]) -> Isolated:
        """Build a model from the nodes that compute the outputs. types: of the values of the original model."""
        behind = list(self._behind(outputs))
        made = {name for name, maker in behind if maker is not None}
        # An output that another isolated node reads becomes an input, too, with the value of the original.
        inner = {name for position in made for name in self._read(self.nodes[position])}
        outside = [name for name, maker in behind if maker is None] + [name for name in outputs if name in inner]
        model = onnx.ModelProto(ir_version=self.model.ir_version)
        model.opset_import.extend(self.model.opset_import)
        model.functions.extend(self.model.functions)
        model.graph.name = "isolated"
        constants = {tensor.name: tensor for tensor in self.model.graph.initializer}
        model.graph.initializer.extend(constants[name] for name in outside if name in constants)
        fixed = {name for name in outside if name in self.nodes and self.nodes[name].op_type == "Constant"}
        inputs = [
            name for name in dict.fromkeys(outside) if name not in constants and name in types and name not in fixed
        ]
        for name in inputs:
            number = DTYPE_NUMBERS.get(types[name].dtype or "", 0)
            model.graph.input.append(onnx.helper.make_tensor_value_info(name, number, None))
        wanted = made | fixed
        for node in self.model.graph.node:
            if wanted.intersection(node.output):
                own = model.graph.node.add()
                own.CopyFrom(node)
                own.output[:] = [_isolated_name(name) if name in outputs else name for name in node.output]
        model.graph.output.extend(onnx.ValueInfoProto(name=_isolated_name(name)) for name in outputs)
        return Isolated(positions, model, inputs, outputs)


def _isolated_name(name: str) -> str:
    return f"{name}/isolated"


def _changed_functions(old: Iterable[onnx.FunctionProto], new: Iterable[onnx.FunctionProto]) -> set[FunctionKey]:
    """Return the functions whose body, or the body of a called function, has other nodes in the second model."""
    bodies = [{function_key(function): function for function in functions} for functions in (old, new)]
    both = bodies[0].keys() & bodies[1].keys()
    changed = {key for key in both if _nodes(bodies[0][key]) != _nodes(bodies[1][key])}
    while True:
        callers = {key for key, body in bodies[0].items() if any(called_function(n) in changed for n in body.node)}
        if callers <= changed:
            return changed
        changed |= callers


def _nodes(function: onnx.FunctionProto) -> list[bytes]:
    return [node.SerializeToString(deterministic=True) for node in function.node]


def agree_in_isolation(
    before: ComparedModel,
    isolated: Isolated,
    cases: Mapping[int, Case],
    engine: str,
    deadline: float,
    tolerances: tuple[float, float],
    settings: EngineSettings = DEFAULT,
) -> bool:
    """Return True if the isolated nodes compute the same as the original nodes, on the values of the original model.

    Numbers may differ by the tolerances, relative to the largest number of their tensor; a whole tensor (root mean
    square) may differ by the same tolerances, because a sum is rounded relative to its largest term.
    """
    names = list(dict.fromkeys([*isolated.inputs, *isolated.outputs]))
    original = [Attempt(case, 0, known.inputs) for case, known in cases.items()]
    values = run_model(_with_outputs(before.model, names), before.folder, original, engine, deadline, settings)
    inputs = {case: dict(zip(names, arrays, strict=True)) for case, arrays in values.items()}
    attempts = [Attempt(case, 0, {name: known[name] for name in isolated.inputs}) for case, known in inputs.items()]
    results = run_model(isolated.model, before.folder, attempts, engine, deadline, settings)
    if len(results) < len(cases):
        return False
    return all(
        _is_close(inputs[case][name], value, *tolerances)
        for case, outputs in results.items()
        for name, value in zip(isolated.outputs, outputs, strict=True)
    )


def _with_outputs(model: object, names: Sequence[str]) -> onnx.ModelProto:
    """Copy a model and let it return these values of its main graph, and no others."""
    assert isinstance(model, onnx.ModelProto)
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    del copied.graph.output[:]
    for name in names:
        copied.graph.node.append(onnx.helper.make_node("Identity", [name], [_isolated_name(name)]))
        copied.graph.output.append(onnx.ValueInfoProto(name=_isolated_name(name)))
    return copied


def run_model(
    model: onnx.ModelProto,
    folder: Path | None,
    attempts: Sequence[Attempt],
    engine: str,
    deadline: float,
    settings: EngineSettings = DEFAULT,
) -> dict[int, list[Value]]:
    """Run one model; return its outputs for each case that the engine runs before the deadline.

    folder: of the external data of the model.
    """
    left = deadline - time.monotonic()
    if left <= 0 or not attempts:
        return {}
    with workplace([model], [None], [folder], settings) as place:
        run = place.run(engine, attempts, left)
    return {case: outputs for (case, _), outputs in run.outputs[0].items()}


def _is_close(before: Value, after: Value, rtol: float, atol: float) -> bool:
    if not isinstance(before, np.ndarray) or not isinstance(after, np.ndarray):
        return False
    if before.dtype != after.dtype or before.shape != after.shape:
        return False
    if before.dtype.name not in FLOATS:
        return bool(np.array_equal(before, after))
    left, right = before.astype(np.float64), after.astype(np.float64)
    finite = np.isfinite(left)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True):
        return False
    gap, size = np.abs(right - left)[finite], np.abs(left[finite])
    if not gap.size:
        return True
    largest, together = float(gap.max()), float(np.sqrt(np.mean(gap**2)))
    return largest <= atol + rtol * float(size.max()) and together <= atol + rtol * float(np.sqrt(np.mean(size**2)))
