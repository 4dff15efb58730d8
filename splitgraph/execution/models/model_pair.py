"""Match the inputs and outputs of two models, ONNX or OpenVINO IR, so that both can run on the same values.

Two ONNX models keep their own names. If one model is an IR, inputs and outputs are matched by name (one tensor of an IR
may have several names), and the rest by order. Both models then go by the names of the first one: the shared names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from splitgraph.execution.models.interfaces import caller_inputs, default_names
from splitgraph.execution.models.model_edits import is_default_domain, scoped_nodes
from splitgraph.execution.verification import Difference
from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel
from splitgraph.graph.scopes import MAIN, implies_opset, write_implied_opset
from splitgraph.inference import infer_model
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.openvino_ir import mirror
from splitgraph.inference.openvino_ir.infer import analyse_mirror
from splitgraph.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType

Model = onnx.ModelProto | OpenVINOModel
# A tensor of an IR: (layer, port).
Place = tuple[int, int]

_RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
_RANDOM_LAYERS = frozenset({"RandomUniform", "Multinomial"})
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
        return any(each.get("name") == "decompression" for each in self.model.root.iter("attribute"))

    @property
    def draws_random_numbers(self) -> bool:
        """Return True if an operator draws random numbers without a seed."""
        nodes = scoped_nodes(self.analysis.model)
        return any(_is_random_layer(node) if self.is_ir else _is_random(node) for node, _ in nodes)

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
    one, other = _with_imports(before), _with_imports(after)
    pair = _match_models(one, other, analysis if other is after else None)
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
    one, other = _read(before), _read(after)
    left_out = _left_out(one.inputs, other.inputs), _left_out(other.inputs, one.inputs)
    kept = _without(one.inputs, left_out[0]), _without(other.inputs, left_out[1])
    inputs = _match("input", *kept)
    if isinstance(inputs, Difference):
        return inputs
    outputs = _match("output", one.outputs, other.outputs)
    if isinstance(outputs, Difference):
        return outputs
    own_inputs, own_outputs = [(slot, slot) for slot in kept[0]], [(slot, slot) for slot in one.outputs]
    first = _compared_model(one, own_inputs, own_outputs, left_out[0])
    return first, _compared_model(other, inputs, outputs, left_out[1])


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
            held = frozenset({*port.names, layer.name})
            inputs.append(_Slot(held, layer.name, declared[names[layer.id, port.id]]))
        elif layer.type == "Result":
            outputs.append(_result(model.graph, layer, names, analysis))
    return _ReadModel(model, analysis, inputs, outputs)


def _result(graph: Graph, layer: Layer, names: Mapping[Place, str], analysis: Analysis) -> _Slot:
    held = {layer.name, _SINK.sub("", layer.name)}
    source = graph.sources.get((layer.id, layer.inputs[0].id)) if layer.inputs else None
    name = layer.name
    if source is not None:
        name = names[source]
        ports = {(other.id, port.id): port for other in graph.layers for port in other.outputs}
        held |= {name, *ports[source].names}
    return _Slot(frozenset(held), layer.name, _declared(name, analysis.types.get(name, UNKNOWN)))


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
    found: dict[int, _Slot] = {}
    for index, slot in enumerate(before):
        match = next((other for other in left if other.names & slot.names), None)
        if match is not None:
            found[index] = match
            left = [other for other in left if other is not match]
    open_places = [index for index in range(len(before)) if index not in found]
    if len(open_places) != len(left):
        text = f"the first model has {len(before)} {kind}s, the second {len(after)}"
        odd = before[open_places[0]] if open_places else left[0]
        return Difference(odd.declared.name, None, f"{text}; only one of them has the {kind} {odd.declared.name!r}")
    found.update(zip(open_places, left, strict=True))
    return [(slot, found[index]) for index, slot in enumerate(before)]


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
    return node.op_type in _RANDOM or (node.op_type == "Dropout" and len(node.input) > 2)


def _is_random_layer(node: onnx.NodeProto) -> bool:
    """Return True for a layer whose seeds are both 0: OpenVINO then draws other numbers each time."""
    seeds = {attribute.s for attribute in node.attribute if attribute.name in ("global_seed", "op_seed")}
    return node.op_type in _RANDOM_LAYERS and seeds <= {b"0"}
