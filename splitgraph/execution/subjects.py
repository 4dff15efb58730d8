"""The two models of a verification, ONNX or OpenVINO IR, under names that both share.

Two ONNX models are compared by the names of their inputs and outputs alone. Where one is an IR, tensors are matched by
name (an IR may have several for one tensor), and those left by order; the first model's names stand for both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from splitgraph.execution.comparison import caller_inputs, default_names
from splitgraph.execution.model_edits import is_default_domain, scoped_nodes
from splitgraph.execution.verification import Difference
from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel
from splitgraph.graph.scopes import MAIN
from splitgraph.inference import infer_model
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.openvino_ir import mirror
from splitgraph.inference.openvino_ir.infer import analyse_mirror
from splitgraph.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType

Model = onnx.ModelProto | OpenVINOModel
# (layer, port) of an IR.
Place = tuple[int, int]

_RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
_RANDOM_LAYERS = frozenset({"RandomUniform", "Multinomial"})
# What OpenVINO's writer adds to the name of a tensor for the Result that reads it.
_SINK = re.compile(r"/sink_port_\d+$")


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the shared names are found in a model: of each input its own name by the shared one, and of each output, in
    the shared order, its own name (a Parameter's or Result's in an IR) or its position (in ONNX).
    """

    inputs: dict[str, str]
    outputs: list[str | int]

    def as_json(self) -> dict[str, Any]:
        """For the job of an engine's child process."""
        return {"inputs": self.inputs, "outputs": self.outputs}


@dataclass(frozen=True, slots=True)
class Subject:
    """One of the models.

    model: what engines run. interface: its inputs and outputs as declared, under the shared names; an ONNX model is its
    own. analysis: of the model, or of what mirrors an IR. ports: None where the shared names are the model's own.
    left_out: inputs with a default that the other model has not. folder: of its external data, None without any.
    """

    model: Model
    interface: onnx.ModelProto
    analysis: Analysis
    ports: Ports | None = None
    left_out: frozenset[str] = frozenset()
    folder: Path | None = None

    @property
    def is_ir(self) -> bool:
        """True for OpenVINO IR."""
        return isinstance(self.model, OpenVINOModel)

    @property
    def draws_random_numbers(self) -> bool:
        """True when an operator draws random numbers without a seed."""
        nodes = scoped_nodes(self.analysis.model)
        return any(_is_random_layer(node) if self.is_ir else _is_random(node) for node, _ in nodes)

    def with_onnx(self, model: onnx.ModelProto) -> Subject:
        """The subject with another ONNX model, of the same interface, in place of its own."""
        interface = model if self.interface is self.model else self.interface
        return replace(self, model=model, interface=interface, analysis=infer_model(model, fill=False))


@dataclass(frozen=True, slots=True)
class _Slot:
    """An input or output: all names it goes by, its own (see Ports), and what is declared."""

    names: frozenset[str]
    own: str | int
    declared: onnx.ValueInfoProto
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class _Read:
    model: Model
    analysis: Analysis
    inputs: list[_Slot]
    outputs: list[_Slot]


def read_subjects(before: Model, after: Model) -> tuple[Subject, Subject] | Difference:
    """Both models, analysed and matched; or why they cannot be matched. Neither is changed."""
    if isinstance(before, onnx.ModelProto) and isinstance(after, onnx.ModelProto):
        left, right = infer_model(before, fill=False), infer_model(after, fill=False)
        return Subject(before, before, left), Subject(after, after, right)
    one, other = _read(before), _read(after)
    left_out = _left_out(one.inputs, other.inputs), _left_out(other.inputs, one.inputs)
    kept = _without(one.inputs, left_out[0]), _without(other.inputs, left_out[1])
    inputs, outputs = _match("input", *kept), _match("output", one.outputs, other.outputs)
    for found in (inputs, outputs):
        if isinstance(found, Difference):
            return found
    assert not isinstance(inputs, Difference)
    assert not isinstance(outputs, Difference)
    first = _subject(one, list(zip(kept[0], kept[0], strict=True)), [(slot, slot) for slot in one.outputs], left_out[0])
    return first, _subject(other, inputs, outputs, left_out[1])


def _read(model: Model) -> _Read:
    if isinstance(model, OpenVINOModel):
        return _read_ir(model)
    defaults = default_names(model)
    inputs = [_Slot(frozenset({name}), name, value, name in defaults) for name, value in caller_inputs(model).items()]
    outputs = [_Slot(frozenset({value.name}), index, value) for index, value in enumerate(model.graph.output)]
    return _Read(model, infer_model(model, fill=False), inputs, outputs)


def _read_ir(model: OpenVINOModel) -> _Read:
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
    return _Read(model, analysis, inputs, outputs)


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
    """Element type and rank; the dims of an IR are what its writer inferred, no promise of its author's."""
    number = DTYPE_NUMBERS.get(value.dtype or "")
    if number is None:
        return onnx.ValueInfoProto(name=name)
    dims = None if value.shape is None else [None] * len(value.shape)
    return onnx.helper.make_tensor_value_info(name, number, dims)


def _left_out(own: Sequence[_Slot], others: Sequence[_Slot]) -> frozenset[str]:
    """Inputs with a default that the other model does not have: OpenVINO makes constants of them."""
    known = frozenset[str]().union(*(slot.names for slot in others))
    return frozenset(slot.declared.name for slot in own if slot.has_default and not slot.names & known)


def _without(slots: Sequence[_Slot], names: Collection[str]) -> list[_Slot]:
    return [slot for slot in slots if slot.declared.name not in names]


def _match(role: str, before: Sequence[_Slot], after: Sequence[_Slot]) -> list[tuple[_Slot, _Slot]] | Difference:
    """Pairs in the order of the first model: by name, and what is left by order."""
    left = list(after)
    found: dict[int, _Slot] = {}
    for index, slot in enumerate(before):
        twin = next((other for other in left if other.names & slot.names), None)
        if twin is not None:
            found[index] = twin
            left = [other for other in left if other is not twin]
    open_places = [index for index in range(len(before)) if index not in found]
    if len(open_places) != len(left):
        text = f"there are {len(before)} {role}s before and {len(after)} after"
        odd = before[open_places[0]] if open_places else left[0]
        return Difference(odd.declared.name, None, f"{text}; the {role} {odd.declared.name!r} is in one of them only")
    found.update(zip(open_places, left, strict=True))
    return [(slot, found[index]) for index, slot in enumerate(before)]


def _subject(
    read: _Read, inputs: Sequence[tuple[_Slot, _Slot]], outputs: Sequence[tuple[_Slot, _Slot]], left_out: frozenset[str]
) -> Subject:
    """The subject with the slots of the first of each pair for their names, and of the second for all else."""
    names = _distinct([slot.declared.name for slot, _ in outputs])
    interface = onnx.ModelProto(ir_version=onnx.IR_VERSION)
    for slot, own in inputs:
        _add(interface.graph.input, slot.declared.name, own)
        if own.has_default:
            interface.graph.initializer.add(name=slot.declared.name)
    for name, (_, own) in zip(names, outputs, strict=True):
        _add(interface.graph.output, name, own)
    ports = Ports({slot.declared.name: str(own.own) for slot, own in inputs}, [own.own for _, own in outputs])
    return Subject(read.model, interface, read.analysis, ports, left_out)


def _add(values: Any, name: str, slot: _Slot) -> None:
    made = values.add()
    made.CopyFrom(slot.declared)
    made.name = name


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number behind one that came before: an IR may give a value twice."""
    counts: Counter[str] = Counter()
    told = []
    for name in names:
        counts[name] += 1
        told.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return told


def _is_random(node: onnx.NodeProto) -> bool:
    if not is_default_domain(node.domain) or any(attribute.name == "seed" for attribute in node.attribute):
        return False
    return node.op_type in _RANDOM or (node.op_type == "Dropout" and len(node.input) > 2)


def _is_random_layer(node: onnx.NodeProto) -> bool:
    """OpenVINO draws other numbers each time where both seeds are 0."""
    seeds = {attribute.s for attribute in node.attribute if attribute.name in ("global_seed", "op_seed")}
    return node.op_type in _RANDOM_LAYERS and seeds <= {b"0"}
