"""How far a model's own results move where rounding is all that changes.

Written as arithmetic, an operator rounds otherwise than its own kernel does, and what follows may magnify that: the
logarithm of a sum that cancels, a step of a quantization. To tell that from a mistake, the model is run again with
noise of about one rounding error on the floating-point inputs and outputs of those of its operators that were written
otherwise, and nowhere else (Monte Carlo arithmetic: Parker, Pierce and Eggert, 2000). What moves then, moves by
rounding.

Noise on the inputs stands for the rounding inside an operator, as of terms that are added up; weights and other
constants, some of which are sizes or scales of shapes, are left alone. Noise on the graph's inputs alone would not do:
it is absorbed by integers and by quantization before it comes to where the arithmetic is, and it would move what was
not rewritten.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import onnx

from splitgraph.execution.model_edits import is_default_domain
from splitgraph.execution.rounding import MOVES
from splitgraph.execution.subjects import Subject
from splitgraph.graph.names import used_names
from splitgraph.graph.scopes import FunctionKey, Scope, called_function, function_key, scopes
from splitgraph.inference.analysis import Analysis
from splitgraph.node_making import make_attribute, make_node
from splitgraph.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType

# How far noise moves a number at most, relative to it: by two to four steps to a neighbouring number.
_NOISE: Mapping[str, float] = {
    "float64": 2.0**-51,
    "float32": 2.0**-22,
    "float16": 2.0**-9,
    "bfloat16": 2.0**-6,
}
# Operators whose own kernels are known to round worse, and by how much: onnxruntime takes a transform whose length is
# no power of 2 by Bluestein's algorithm in float32, and is off by 150 steps then (700 at most, seen in 1.31), where the
# transform written as a matrix product is off by one.
_COARSE: Mapping[str, float] = {"DFT": 2.0**7, "STFT": 2.0**7}
# The types in which onnxruntime draws random numbers.
_DRAWN = ("float64", "float32")
# More than any model has places for noise.
_SEEDS = 2**18
# These, too, give elements as they are.
_EXACT = MOVES | {"CenterCropPad", "Compress", "DepthToSpace", "GatherElements", "GatherND", "Pad", "ReverseSequence"}
_EXACT |= {"ScatterElements", "ScatterND", "SpaceToDepth", "SplitToSequence", "Trilu", "Where"}


@dataclass(slots=True)
class _Definitions:
    """The nodes of a model by the outputs that only one of them has, over all its graphs, and the outputs' types."""

    nodes: dict[str, onnx.NodeProto] = field(default_factory=dict)
    dtypes: dict[str, str | None] = field(default_factory=dict)
    functions: dict[FunctionKey, onnx.FunctionProto] = field(default_factory=dict)


def written_otherwise(before: Subject, after: Subject) -> dict[str, list[int]]:
    """The nodes of the first model that the second does with other arithmetic on floating-point numbers: their indices
    by the location of their graph. A call counts where the function's body has such nodes.
    """
    if not isinstance(before.model, onnx.ModelProto) or not isinstance(after.model, onnx.ModelProto):
        return {}
    old, new = _definitions(before.model, before.analysis), _definitions(after.model, after.analysis)
    known = set(used_names(before.model))
    changed = _changed_functions(old, new)
    found = {}
    for scope in scopes(before.model):
        if not scope.in_function:
            indices = [i for i, node in enumerate(scope.nodes) if _is_rewritten(node, new, known, changed)]
            found[scope.location] = indices
    return {location: indices for location, indices in found.items() if indices}


def _definitions(model: onnx.ModelProto, analysis: Analysis) -> _Definitions:
    found = _Definitions(functions={function_key(function): function for function in model.functions})
    counts: Counter[str] = Counter()
    for scope in scopes(model):
        if scope.in_function:
            continue
        types = analysis.graphs.get(scope.location, {})
        for node in scope.nodes:
            counts.update(node.output)
            found.nodes.update(dict.fromkeys(node.output, node))
            found.dtypes.update((name, types.get(name, UNKNOWN).dtype) for name in node.output)
    for name, count in counts.items():
        if count > 1 or not name:
            del found.nodes[name]
    return found


def _changed_functions(old: _Definitions, new: _Definitions) -> set[FunctionKey]:
    """Functions whose bodies, or those of what they call, are not the same nodes in both models."""
    changed = {
        key
        for key, body in old.functions.items()
        if key in new.functions and _nodes(body) != _nodes(new.functions[key])
    }
    while True:
        callers = {key for key, body in old.functions.items() if any(called_function(n) in changed for n in body.node)}
        if callers <= changed:
            return changed
        changed |= callers


def _nodes(function: onnx.FunctionProto) -> list[bytes]:
    return [node.SerializeToString(deterministic=True) for node in function.node]


def _is_rewritten(node: onnx.NodeProto, new: _Definitions, known: set[str], changed: set[FunctionKey]) -> bool:
    if is_default_domain(node.domain) and node.op_type in _EXACT:
        return False
    if called_function(node) in changed:
        return True
    return any(name and _is_computed_otherwise(node, name, new, known) for name in node.output)


def _is_computed_otherwise(node: onnx.NodeProto, output: str, new: _Definitions, known: set[str]) -> bool:
    """Whether the second model gives an output of a node by another node, and computes floating-point numbers on the
    way to it from values that both models have.
    """
    made = new.nodes.get(output)
    if made is None or (made.op_type == node.op_type and made.input[:1] == node.input[:1]):
        return False
    seen, waiting = {output}, [output]
    while waiting:
        name = waiting.pop()
        maker = new.nodes.get(name)
        if maker is None:
            continue
        if new.dtypes.get(name) in _NOISE and maker.op_type not in _EXACT:
            return True
        fresh = [each for each in maker.input if each not in seen and each not in known]
        seen.update(fresh)
        waiting.extend(fresh)
    return False


def with_noise(subject: Subject, places: Mapping[str, list[int]], seed: int) -> onnx.ModelProto:
    """A copy of an ONNX model with noise on what some nodes read and give; places: their indices by the location of
    their graph.
    """
    assert isinstance(subject.model, onnx.ModelProto)
    noisy = onnx.ModelProto()
    noisy.CopyFrom(subject.model)
    taken = set(used_names(noisy))
    names = (name for number in itertools.count() if (name := f"noise_{number}") not in taken)
    maker = _NoiseMaker(subject.analysis.graphs, names, itertools.count(_SEEDS * seed + 1), _constants(noisy))
    # Inner graphs first, as the nodes of an outer one are exchanged for copies.
    for scope in reversed(list(scopes(noisy))):
        if scope.location in places and not scope.in_function:
            maker.disturb(scope, set(places[scope.location]))
    return noisy


def _constants(model: onnx.ModelProto) -> set[str]:
    found: set[str] = set()
    for scope in scopes(model):
        found.update(name for node in scope.nodes if node.op_type == "Constant" for name in node.output)
        if not scope.is_function:
            found.update(tensor.name for tensor in scope.proto.initializer)
    return found


class _NoiseMaker:
    """Puts noise into the graphs of one model, whose types it is given by graph."""

    def __init__(
        self,
        graphs: Mapping[str, Mapping[str, ValueType]],
        names: Iterator[str],
        seeds: Iterator[int],
        constants: set[str],
    ) -> None:
        self._types = {name: found for types in graphs.values() for name, found in types.items()}
        self._graphs = graphs
        self._names = names
        self._seeds = seeds
        self._constants = constants

    def disturb(self, scope: Scope, indices: set[int]) -> None:
        """Put noise around nodes of a graph."""
        types = {**self._types, **self._graphs.get(scope.location, {})}
        nodes: list[onnx.NodeProto] = []
        for index, given in enumerate(scope.nodes):
            node = onnx.NodeProto()
            node.CopyFrom(given)
            if index not in indices:
                nodes.append(node)
                continue
            dtypes = {name: types.get(name, UNKNOWN).dtype for name in (*node.input, *node.output) if name}
            nodes += self._on_inputs(node, dtypes)
            nodes += [node, *self._on_outputs(node, dtypes)]
        del scope.proto.node[:]
        scope.proto.node.extend(nodes)

    def _on_inputs(self, node: onnx.NodeProto, dtypes: Mapping[str, str | None]) -> list[onnx.NodeProto]:
        made: list[onnx.NodeProto] = []
        for name in dict.fromkeys(node.input):
            dtype = dtypes.get(name)
            if dtype is not None and dtype in _NOISE and name not in self._constants:
                noisy = next(self._names)
                made += self._noise(name, noisy, dtype, _COARSE.get(node.op_type, 1.0))
                node.input[:] = [noisy if each == name else each for each in node.input]
        return made

    def _on_outputs(self, node: onnx.NodeProto, dtypes: Mapping[str, str | None]) -> list[onnx.NodeProto]:
        made: list[onnx.NodeProto] = []
        for position, name in enumerate(node.output):
            dtype = dtypes.get(name)
            if dtype is not None and dtype in _NOISE:
                quiet = next(self._names)
                made += self._noise(quiet, name, dtype, 1.0)
                node.output[position] = quiet
        return made

    def _noise(self, source: str, target: str, dtype: str, times: float) -> list[onnx.NodeProto]:
        """Nodes that give `target`, which is `source` with each element times a random number close to 1."""
        drawn = dtype if dtype in _DRAWN else "float32"
        read, factor, noisy = source, next(self._names), target
        nodes = []
        if dtype != drawn:
            read, noisy = next(self._names), next(self._names)
            nodes.append(make_node("Cast", [source], [read], to=DTYPE_NUMBERS[drawn]))
        most = _NOISE[dtype] * times
        random = make_node("RandomUniformLike", [read], [factor], dtype=DTYPE_NUMBERS[drawn])
        bounds = {"low": 1 - most, "high": 1 + most, "seed": float(next(self._seeds))}
        random.attribute.extend(make_attribute(key, number) for key, number in bounds.items())
        nodes += [random, make_node("Mul", [read, factor], [noisy])]
        if dtype != drawn:
            nodes.append(make_node("Cast", [noisy], [target], to=DTYPE_NUMBERS[dtype]))
        return nodes
