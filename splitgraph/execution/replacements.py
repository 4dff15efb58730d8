"""Which operators of a model its rewrite does with other arithmetic, and what that gives by itself.

By itself means on the values that the original has there, so that nothing is magnified before it is compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from splitgraph.execution.child import Attempt, workplace
from splitgraph.execution.model_edits import is_default_domain, nodes_within
from splitgraph.execution.movement import FLOATS
from splitgraph.execution.rounding import MOVES
from splitgraph.execution.subjects import Subject
from splitgraph.execution.values import Value
from splitgraph.graph.names import used_names
from splitgraph.graph.scopes import FunctionKey, called_function, function_key, scopes
from splitgraph.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType

# These, too, give elements as they are.
_EXACT = MOVES | {"CenterCropPad", "Compress", "DepthToSpace", "GatherElements", "GatherND", "Pad", "ReverseSequence"}
_EXACT |= {"ScatterElements", "ScatterND", "SpaceToDepth", "SplitToSequence", "Trilu", "Where"}


@dataclass(frozen=True, slots=True)
class Case:
    """What a model was given, and what it gave."""

    inputs: Mapping[str, Value]
    outputs: Sequence[Value]


@dataclass(frozen=True, slots=True)
class Replacements:
    """What a rewrite does with other arithmetic.

    places: indices of the nodes of the original's main graph. alone: the rewrite's own nodes in their stead, and in the
    stead of those that were edited, with the values that both have for inputs. read: the original's names of these
    inputs, in their order; given: of what the outputs stand for.
    """

    places: list[int]
    alone: onnx.ModelProto
    read: list[str]
    given: list[str]


def find_replacements(before: Subject, after: Subject) -> Replacements | None:
    """None where nothing is done with other arithmetic, or something in a subgraph is, which cannot be run alone."""
    if not isinstance(before.model, onnx.ModelProto) or not isinstance(after.model, onnx.ModelProto):
        return None
    search = _Search(before.model, after)
    places: list[int] = []
    for scope in scopes(before.model):
        if scope.in_function:
            continue
        found = [index for index, node in enumerate(scope.nodes) if search.is_rewritten(node)]
        if found and scope.path:
            return None
        places += found
    if not places:
        return None
    # A mistake of what was only edited would be drowned as well.
    nodes = before.model.graph.node
    edited = [node for index, node in enumerate(nodes) if index in places or search.is_edited(node)]
    given = [name for node in edited for name in node.output if name in search.nodes]
    return search.cut_out(places, given, before.analysis.types)


class _Search:
    """Follows what a rewrite computes back to the values that the original has as well."""

    def __init__(self, before: onnx.ModelProto, after: Subject) -> None:
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
        held = {tensor.name: tensor for tensor in before.graph.initializer}
        tensors = (tensor for tensor in after.model.graph.initializer if tensor.name in held)
        self.altered = {tensor.name for tensor in tensors if tensor != held[tensor.name]}

    def is_rewritten(self, node: onnx.NodeProto) -> bool:
        """Whether the rewrite has other nodes for one of the original's, which compute floating-point numbers."""
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
        """Whether the rewrite has a node for one of the original's that is not just the same."""
        if not self.altered.isdisjoint(node.input):
            return True
        return any(name in self.nodes and self.nodes[name] != node for name in node.output)

    def _behind(self, outputs: Iterable[str]) -> Iterator[tuple[str, onnx.NodeProto | None]]:
        """Outputs and what they are computed from, up to the values that both models have: names, and which node of the
        rewrite's makes them, None for those values.
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
        return [name for each in nodes_within([node]) for name in each.input if name]

    def cut_out(self, places: list[int], given: list[str], types: Mapping[str, ValueType]) -> Replacements:
        """The nodes behind the outputs `given`, as a model of its own; types: of the original's values."""
        behind = list(self._behind(given))
        made = {name for name, maker in behind if maker is not None}
        # An output may be read by what stands for the next node; it is then what the original gives there.
        inner = {name for each in made for name in self._read(self.nodes[each])}
        outside = [name for name, maker in behind if maker is None] + [name for name in given if name in inner]
        model = onnx.ModelProto(ir_version=self.model.ir_version)
        model.opset_import.extend(self.model.opset_import)
        model.functions.extend(self.model.functions)
        model.graph.name = "alone"
        constants = {tensor.name: tensor for tensor in self.model.graph.initializer}
        model.graph.initializer.extend(constants[name] for name in outside if name in constants)
        fixed = {name for name in outside if name in self.nodes and self.nodes[name].op_type == "Constant"}
        read = [
            name for name in dict.fromkeys(outside) if name not in constants and name in types and name not in fixed
        ]
        for name in read:
            number = DTYPE_NUMBERS.get(types[name].dtype or "", 0)
            model.graph.input.append(onnx.helper.make_tensor_value_info(name, number, None))
        wanted = made | fixed
        for node in self.model.graph.node:
            if wanted.intersection(node.output):
                own = model.graph.node.add()
                own.CopyFrom(node)
                own.output[:] = [_alone(name) if name in given else name for name in node.output]
        model.graph.output.extend(onnx.ValueInfoProto(name=_alone(name)) for name in given)
        return Replacements(places, model, read, given)


def _alone(name: str) -> str:
    return f"{name}/alone"


def _changed_functions(old: Iterable[onnx.FunctionProto], new: Iterable[onnx.FunctionProto]) -> set[FunctionKey]:
    """Functions whose bodies, or those of what they call, are not the same nodes in both models."""
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


def agree_alone(
    before: Subject,
    found: Replacements,
    cases: Mapping[int, Case],
    engine: str,
    deadline: float,
    tolerances: tuple[float, float],
) -> bool:
    """Whether all replacements give what the original's nodes do, on the values that it has there.

    Numbers may differ by the tolerances, relative to the largest of their tensor, and so may all of it together,
    relative to the root of its mean square: what is added up is rounded relative to its largest term.
    """
    names = list(dict.fromkeys([*found.read, *found.given]))
    asked = [Attempt(case, 0, told.inputs) for case, told in cases.items()]
    values = run_alone(_giving(before.model, names), before.folder, asked, engine, deadline)
    inputs = {case: dict(zip(names, held, strict=True)) for case, held in values.items()}
    attempts = [Attempt(case, 0, {name: held[name] for name in found.read}) for case, held in inputs.items()]
    results = run_alone(found.alone, before.folder, attempts, engine, deadline)
    if len(results) < len(cases):
        return False
    return all(
        _is_close(inputs[case][name], value, *tolerances)
        for case, given in results.items()
        for name, value in zip(found.given, given, strict=True)
    )


def _giving(model: object, names: Sequence[str]) -> onnx.ModelProto:
    """A copy of a model that gives these values of its main graph, and nothing else."""
    assert isinstance(model, onnx.ModelProto)
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    del copied.graph.output[:]
    for name in names:
        copied.graph.node.append(onnx.helper.make_node("Identity", [name], [_alone(name)]))
        copied.graph.output.append(onnx.ValueInfoProto(name=_alone(name)))
    return copied


def run_alone(
    model: onnx.ModelProto, folder: Path | None, attempts: Sequence[Attempt], engine: str, deadline: float
) -> dict[int, list[Value]]:
    """What a model gives by case, for those that the engine runs in the time that is left. folder: of its external
    data.
    """
    left = deadline - time.monotonic()
    if left <= 0 or not attempts:
        return {}
    with workplace([model], [None], [folder]) as place:
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
    each, together = float(gap.max()), float(np.sqrt(np.mean(gap**2)))
    return each <= atol + rtol * float(size.max()) and together <= atol + rtol * float(np.sqrt(np.mean(size**2)))
