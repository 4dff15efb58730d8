"""Match the inputs and outputs of two models, ONNX or OpenVINO IR, so that both can run on the same values; and compare
the names, types and ranks of these.

Two ONNX models keep their own names. If one model is an IR, inputs and outputs are matched by name (one tensor of an IR
may have several names), and the rest by order. Both models then go by the names of the first one: the shared names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel
from splitgraph.inference import infer_model
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.openvino_ir import mirror
from splitgraph.inference.openvino_ir.infer import analyse_mirror
from splitgraph.model.schemas import kinds
from splitgraph.model.schemas.kinds import may_draw
from splitgraph.model.scopes import MAIN, implies_opset, scopes, write_implied_opset
from splitgraph.model.value_type import DTYPE_NAMES, DTYPE_NUMBERS, UNKNOWN, ValueType
from splitgraph.model.values import value_type
from splitgraph.verification.comparison import type_name
from splitgraph.verification.models.model_files import is_default_domain, nodes_within, scoped_nodes
from splitgraph.verification.values import Array, Value
from splitgraph.verification.verification import Difference

if TYPE_CHECKING:
    from splitgraph.formats import Model

# A tensor of an IR: (layer, port).
OutputPort = tuple[int, int]

# Operators that draw numbers, by what these are: Bernoulli compares uniform numbers with its input.
_DISTRIBUTIONS: Mapping[str, str] = {
    **dict.fromkeys(("Bernoulli", "RandomUniform", "RandomUniformLike"), "uniform"),
    **dict.fromkeys(("RandomNormal", "RandomNormalLike"), "normal"),
}
_RANDOM_LAYERS = frozenset({"RandomUniform", "Multinomial"})
# Operators that copy elements unchanged. Weights may be stored as float16 while nothing computes in float16.
_COPYING = kinds.MOVED | {"Cast", "CastLike", "Constant", "ConstantOfShape"}
# OpenVINO names a Result after the tensor that it reads, with this suffix.
_SINK = re.compile(r"/sink_port_\d+$")


@dataclass(frozen=True, slots=True)
class Ports:
    """Maps the shared names to a model's own inputs and outputs.

    inputs: the model's own input names, by shared name. outputs: in the shared order, the own name of each output (IR)
    or its position (ONNX).
    """

    inputs: dict[str, str]
    outputs: list[str | int]

    def as_json(self) -> dict[str, Any]:
        """Return the form in which an engine process reads it."""
        return {"inputs": self.inputs, "outputs": self.outputs}


@dataclass(frozen=True, slots=True)
class ComparedModel:
    """One of the two models, with what is known about it.

    model: what engines run. interface: the declared inputs and outputs under the shared names; an ONNX model without
    `ports` is its own interface. analysis: the inferred types of the model, or of the ONNX mirror of an IR. ports: None
    if the model's own names are the shared names. left_out: inputs with a default that the other model does not have.
    folder: where the external data of an ONNX model is, None for none.
    """

    model: Model
    interface: onnx.ModelProto
    analysis: Analysis
    ports: Ports | None = None
    left_out: frozenset[str] = frozenset()
    folder: Path | None = None

    @property
    def is_ir(self) -> bool:
        """Return True for OpenVINO IR."""
        return isinstance(self.model, OpenVINOModel)

    @property
    def has_half_weights(self) -> bool:
        """Return True for an IR that stores float32 weights as float16, as OpenVINO does by default."""
        if not isinstance(self.model, OpenVINOModel):
            return False
        return any(element.get("name") == "decompression" for element in self.model.root.iter("attribute"))

    def computed_types(self) -> set[str]:
        """Return the element types that the nodes compute in, other than by copying. The types in a function body vary
        from call to call, so that only those of its Casts count.
        """
        if not isinstance(self.model, onnx.ModelProto):
            return set()
        found: set[str | None] = set()
        for scope in scopes(self.model):
            types = self.analysis.graphs.get(scope.location, {})
            nodes = (node for node in scope.nodes if node.op_type not in _COPYING)
            found.update(types.get(name, UNKNOWN).dtype for node in nodes for name in node.output)
        casts = (node for function in self.model.functions for node in nodes_within(function.node))
        numbers = (a.i for cast in casts if cast.op_type == "Cast" for a in cast.attribute if a.name == "to")
        return {dtype for dtype in (*found, *map(DTYPE_NAMES.get, numbers)) if dtype is not None}

    @property
    def draws_random_numbers(self) -> bool:
        """Return True if an operator draws random numbers without a seed."""
        nodes = scoped_nodes(self.analysis.model)
        return any(_is_random_layer(node) if self.is_ir else _is_random(node) for node, _ in nodes)

    def draws_otherwise(self, other: ComparedModel) -> bool:
        """Return True if the other model draws as many numbers of each distribution, and with other operators: of one
        seed, two operators draw different numbers.
        """
        operators = [
            Counter(node.op_type for node, _ in scoped_nodes(model.analysis.model) if node.op_type in _DISTRIBUTIONS)
            for model in (self, other)
        ]
        drawn = [Counter(_DISTRIBUTIONS[op_type] for op_type in counts.elements()) for counts in operators]
        return operators[0] != operators[1] and drawn[0] == drawn[1]

    def with_onnx(self, model: onnx.ModelProto) -> ComparedModel:
        """Return a copy that holds another ONNX model with the same interface."""
        interface = model if self.interface is self.model else self.interface
        return replace(self, model=model, interface=interface, analysis=infer_model(model, fill=False))


@dataclass(frozen=True, slots=True)
class _Slot:
    """An input or output of a model. names: every name of the tensor. own: its name or position (see Ports)."""

    names: frozenset[str]
    own: str | int
    declared: onnx.ValueInfoProto
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class _ReadModel:
    """A model with its inputs and outputs, before they are matched with those of the other model."""

    model: Model
    analysis: Analysis
    inputs: list[_Slot]
    outputs: list[_Slot]


def read_model_pair(
    before: Model,
    after: Model,
    folders: Sequence[Path | None] = (None, None),
    analysis: Analysis | None = None,
) -> tuple[ComparedModel, ComparedModel] | Difference:
    """Analyse two models and match their inputs and outputs; return a Difference if these cannot be matched.

    folders: where the external data of each model is. analysis: of the second model, if that is ONNX and was inferred.
    """
    first, second = _with_imports(before), _with_imports(after)
    pair = _match_models(first, second, analysis if second is after else None)
    if isinstance(pair, Difference):
        return pair
    return replace(pair[0], folder=folders[0]), replace(pair[1], folder=folders[1])


def _with_imports(model: Model) -> Model:
    """Return the model with the import of opset 1 that a file of IR version 1 or 2 implies; engines need it."""
    if not isinstance(model, onnx.ModelProto) or not implies_opset(model):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    write_implied_opset(copy)
    return copy


def _match_models(
    before: Model, after: Model, analysis: Analysis | None
) -> tuple[ComparedModel, ComparedModel] | Difference:
    if isinstance(before, onnx.ModelProto) and isinstance(after, onnx.ModelProto):
        left, right = infer_model(before, fill=False), analysis or infer_model(after, fill=False)
        return ComparedModel(before, before, left), ComparedModel(after, after, right)
    read_before, read_after = _read(before), _read(after)
    left_out = _left_out(read_before.inputs, read_after.inputs), _left_out(read_after.inputs, read_before.inputs)
    kept = _without(read_before.inputs, left_out[0]), _without(read_after.inputs, left_out[1])
    inputs = _match("input", *kept)
    if isinstance(inputs, Difference):
        return inputs
    outputs = _match("output", read_before.outputs, read_after.outputs)
    if isinstance(outputs, Difference):
        return outputs
    own_inputs, own_outputs = [(slot, slot) for slot in kept[0]], [(slot, slot) for slot in read_before.outputs]
    first = _compared_model(read_before, own_inputs, own_outputs, left_out[0])
    return first, _compared_model(read_after, inputs, outputs, left_out[1])


def _read(model: Model) -> _ReadModel:
    if isinstance(model, OpenVINOModel):
        return _read_ir(model)
    defaults = default_names(model)
    inputs = [_Slot(frozenset({name}), name, value, name in defaults) for name, value in caller_inputs(model).items()]
    outputs = [_Slot(frozenset({value.name}), index, value) for index, value in enumerate(model.graph.output)]
    return _ReadModel(model, infer_model(model, fill=False), inputs, outputs)


def _read_ir(model: OpenVINOModel) -> _ReadModel:
    mirrored = mirror(model)
    analysis, names = analyse_mirror(mirrored), mirrored.names[MAIN]
    declared = {value.name: value for value in mirrored.model.graph.input}
    inputs, outputs = [], []
    for layer in model.graph.layers:
        if layer.type == "Parameter":
            port = layer.outputs[0]
            tensor_names = frozenset({*port.names, layer.name})
            inputs.append(_Slot(tensor_names, layer.name, declared[names[layer.id, port.id]]))
        elif layer.type == "Result":
            outputs.append(_result(model.graph, layer, names, analysis))
    return _ReadModel(model, analysis, inputs, outputs)


def _result(graph: Graph, layer: Layer, names: Mapping[OutputPort, str], analysis: Analysis) -> _Slot:
    tensor_names = {layer.name, _SINK.sub("", layer.name)}
    source = graph.sources.get((layer.id, layer.inputs[0].id)) if layer.inputs else None
    name = layer.name
    if source is not None:
        name = names[source]
        ports = {(source_layer.id, port.id): port for source_layer in graph.layers for port in source_layer.outputs}
        tensor_names |= {name, *ports[source].names}
    return _Slot(frozenset(tensor_names), layer.name, _declared(name, analysis.types.get(name, UNKNOWN)))


def _declared(name: str, value: ValueType) -> onnx.ValueInfoProto:
    """Declare the element type and the rank only: the writer of an IR inferred the dimensions, its author promised
    none.
    """
    number = DTYPE_NUMBERS.get(value.dtype or "")
    if number is None:
        return onnx.ValueInfoProto(name=name)
    dims = None if value.shape is None else [None] * len(value.shape)
    return onnx.helper.make_tensor_value_info(name, number, dims)


def _left_out(own: Sequence[_Slot], others: Sequence[_Slot]) -> frozenset[str]:
    """Return the inputs with a default that the other model does not have: OpenVINO turns them into constants."""
    known = frozenset[str]().union(*(slot.names for slot in others))
    return frozenset(slot.declared.name for slot in own if slot.has_default and not slot.names & known)


def _without(slots: Sequence[_Slot], names: Collection[str]) -> list[_Slot]:
    return [slot for slot in slots if slot.declared.name not in names]


def _match(kind: str, before: Sequence[_Slot], after: Sequence[_Slot]) -> list[tuple[_Slot, _Slot]] | Difference:
    """Pair the slots by name and the rest by order; the pairs are in the order of the first model."""
    left = list(after)
    matches: dict[int, _Slot] = {}
    for index, slot in enumerate(before):
        match = next((candidate for candidate in left if candidate.names & slot.names), None)
        if match is not None:
            matches[index] = match
            left = [candidate for candidate in left if candidate is not match]
    open_places = [index for index in range(len(before)) if index not in matches]
    if len(open_places) != len(left):
        text = f"the first model has {len(before)} {kind}s, the second {len(after)}"
        odd = before[open_places[0]] if open_places else left[0]
        return Difference(odd.declared.name, None, f"{text}; only one of them has the {kind} {odd.declared.name!r}")
    matches.update(zip(open_places, left, strict=True))
    return [(slot, matches[index]) for index, slot in enumerate(before)]


def _compared_model(
    read: _ReadModel,
    inputs: Sequence[tuple[_Slot, _Slot]],
    outputs: Sequence[tuple[_Slot, _Slot]],
    left_out: frozenset[str],
) -> ComparedModel:
    """Build a ComparedModel. Of each pair, the first slot gives the shared name and the second one everything else."""
    names = _distinct([slot.declared.name for slot, _ in outputs])
    interface = onnx.ModelProto(ir_version=onnx.IR_VERSION)
    for slot, own in inputs:
        _add(interface.graph.input, slot.declared.name, own)
        if own.has_default:
            interface.graph.initializer.add(name=slot.declared.name)
    for name, (_, own) in zip(names, outputs, strict=True):
        _add(interface.graph.output, name, own)
    ports = Ports({slot.declared.name: str(own.own) for slot, own in inputs}, [own.own for _, own in outputs])
    return ComparedModel(read.model, interface, read.analysis, ports, left_out)


def _add(values: Any, name: str, slot: _Slot) -> None:
    made = values.add()
    made.CopyFrom(slot.declared)
    made.name = name


def _distinct(names: Sequence[str]) -> list[str]:
    """Number the repeated names: an IR may return a value twice."""
    counts: Counter[str] = Counter()
    distinct = []
    for name in names:
        counts[name] += 1
        distinct.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return distinct


def _is_random(node: onnx.NodeProto) -> bool:
    if not is_default_domain(node.domain) or any(attribute.name == "seed" for attribute in node.attribute):
        return False
    return may_draw(node)


def _is_random_layer(node: onnx.NodeProto) -> bool:
    """Return True for a layer whose seeds are both 0: OpenVINO then draws other numbers each time."""
    seeds = {attribute.s for attribute in node.attribute if attribute.name in ("global_seed", "op_seed")}
    return node.op_type in _RANDOM_LAYERS and seeds <= {b"0"}


def sizes_of_the_first(before: onnx.ModelProto, after: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Return the sizes of inputs that are fixed in the first model alone, by the names that the second one has for
    them: at others, nothing says what it should give.
    """
    others = {name: value_type(value.type).shape or () for name, value in caller_inputs(after).items()}
    found: dict[str, tuple[int, ...]] = {}
    for name, value in caller_inputs(before).items():
        pairs = zip(value_type(value.type).shape or (), others.get(name, ()), strict=False)
        for axis, (own, other) in enumerate(pairs):
            if isinstance(own, int) and not isinstance(other, int):
                found[f"{name}[{axis}]" if other is None else str(other)] = (own,)
    return found


def compare_interfaces(before: onnx.ModelProto, after: onnx.ModelProto) -> Difference | None:
    """Return the first difference between the declared inputs and outputs of two models; None without one.

    Both models must have the same output names in the same order, and the same input names. Kinds, element types and
    ranks must agree where both models declare them. The second model may have more inputs, if these have a default.
    """
    names = [value.name for value in before.graph.output], [value.name for value in after.graph.output]
    if names[0] != names[1]:
        return _difference_of_names(*names)
    defaults = default_names(after)
    inputs, inputs_after = caller_inputs(before), {value.name: value for value in after.graph.input}
    for name in inputs:
        if name not in inputs_after:
            return Difference(name, None, f"the second model has no input {name!r}")
    for name in inputs_after:
        if name not in inputs and name not in defaults:
            return Difference(name, None, f"the second model has a new input {name!r}")
    optional = default_names(before)
    for name in inputs:
        if name in optional and name not in defaults:
            return Difference(name, None, f"the input {name!r} has no default in the second model")
    pairs = [("input", value, inputs_after[name]) for name, value in inputs.items()]
    pairs += [("output", *pair) for pair in zip(before.graph.output, after.graph.output, strict=True)]
    for kind, left, right in pairs:
        reason = _difference_of_types(left.type, right.type)
        if reason:
            return Difference(left.name, None, f"the {kind} {left.name!r} is declared {reason}")
    return None


def default_names(model: onnx.ModelProto) -> set[str]:
    """Return the names of all initializers. An input of such a name has a default and may be omitted."""
    names = {tensor.name for tensor in model.graph.initializer}
    return names.union(tensor.values.name for tensor in model.graph.sparse_initializer)


def caller_inputs(model: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    """Return the inputs that a caller may give, by name. Models before IR 4 list every initializer as an input, but
    a caller cannot set these.
    """
    constants = {tensor.name for tensor in model.graph.initializer} if model.ir_version < 4 else set()
    return {value.name: value for value in model.graph.input if value.name not in constants}


def wrong_shapes(values: Iterable[onnx.ValueInfoProto], given: Mapping[str, Value]) -> dict[str, str]:
    """Return each tensor whose rank or fixed dimensions contradict the declaration, with the reason."""
    pairs = _declared_tensors(values, given)
    return {name: reason for name, declared, array in pairs if (reason := _wrong_shape(declared, array))}


def wrong_types(values: Iterable[onnx.ValueInfoProto], given: Mapping[str, Value]) -> dict[str, str]:
    """Return each tensor whose element type contradicts the declaration, with the reason."""
    pairs = _declared_tensors(values, given)
    return {
        name: f"declared with type {_dtype_name(declared.elem_type)} but has type {type_name(array)}"
        for name, declared, array in pairs
        if declared.elem_type and _dtype_name(declared.elem_type) != type_name(array)
    }


def _declared_tensors(
    values: Iterable[onnx.ValueInfoProto], given: Mapping[str, Value]
) -> Iterator[tuple[str, onnx.TypeProto.Tensor, Array]]:
    for value in values:
        array = given.get(value.name)
        if isinstance(array, np.ndarray) and value.type.HasField("tensor_type"):
            yield value.name, value.type.tensor_type, array


def _wrong_shape(declared: onnx.TypeProto.Tensor, array: Array) -> str:
    if not declared.HasField("shape"):
        return ""
    dims = declared.shape.dim
    fits = len(dims) == array.ndim and all(
        not dim.HasField("dim_value") or dim.dim_value == size for dim, size in zip(dims, array.shape, strict=True)
    )
    if fits:
        return ""
    shown = (str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?" for dim in dims)
    return f"declared with shape [{', '.join(shown)}] but has shape {list(array.shape)}"


def _difference_of_names(before: Sequence[str], after: Sequence[str]) -> Difference:
    if sorted(before) == sorted(after):
        name = next(left for left, right in zip(before, after, strict=True) if left != right)
        orders = f"{', '.join(before)} in the first model and {', '.join(after)} in the second"
        return Difference(name, None, f"the outputs have another order: {orders}")
    missing = [name for name in before if name not in after]
    if missing:
        return Difference(missing[0], None, f"the second model has no output {missing[0]!r}")
    new = [name for name in after if name not in before]
    if new:
        return Difference(new[0], None, f"the second model has a new output {new[0]!r}")
    return Difference(after[0] if after else "", None, "one model lists an output more often than the other")


def _difference_of_types(before: onnx.TypeProto, after: onnx.TypeProto) -> str:
    """Return how the two declarations differ, as the end of a sentence; "" where they agree."""
    kind = before.WhichOneof("value"), after.WhichOneof("value")
    if None in kind:
        return ""
    if kind[0] != kind[1]:
        return _in_each(f"as a {_kind_name(kind[0])}", f"as a {_kind_name(kind[1])}")
    left, right = getattr(before, str(kind[0])), getattr(after, str(kind[0]))
    if kind[0] in ("sequence_type", "optional_type"):
        return _difference_of_types(left.elem_type, right.elem_type)
    if kind[0] == "map_type":
        if left.key_type != right.key_type:
            return _in_each(f"with {_dtype_name(left.key_type)} keys", f"with {_dtype_name(right.key_type)} keys")
        return _difference_of_types(left.value_type, right.value_type)
    if left.elem_type and right.elem_type and left.elem_type != right.elem_type:
        return _in_each(_dtype_name(left.elem_type), _dtype_name(right.elem_type))
    if left.HasField("shape") and right.HasField("shape") and len(left.shape.dim) != len(right.shape.dim):
        return _in_each(f"with rank {len(left.shape.dim)}", f"with rank {len(right.shape.dim)}")
    return ""


def _in_each(before: str, after: str) -> str:
    return f"{before} in the first model and {after} in the second"


def _kind_name(kind: str | None) -> str:
    return str(kind).removesuffix("_type").replace("_", " ")


def _dtype_name(elem_type: int) -> str:
    return DTYPE_NAMES.get(elem_type, f"type {elem_type}")
