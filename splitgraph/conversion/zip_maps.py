"""Dropping ZipMap: a model gives the numbers of each row, and no maps from labels to numbers.

Exporters of sklearn and LightGBM put a ZipMap behind the probabilities of a classifier, and hardly any runtime reads
maps.
"""

from __future__ import annotations

from splitgraph.conversion.imports import drop_imports, importing, newest_opset_of, used_domains
from splitgraph.conversion.rewrite import Change, Rewrite, step
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference import walk_model
from splitgraph.model.attributes import attribute_value
from splitgraph.model.onnx_proto import ModelProto, NodeProto, TypeProto, ValueInfoProto
from splitgraph.model.scopes import MACHINE_LEARNING, MAIN, node_label, plain_domain, scopes
from splitgraph.model.value_type import ValueType
from splitgraph.model.values import type_proto
from splitgraph.options import STRICT, Leeway

# Labels that one note names.
_MOST_NAMED = 10


def without_zip_maps(model: ModelProto, leeway: Leeway = STRICT) -> Rewrite[ModelProto]:
    """Return a copy of a model whose outputs have the tensors that ZipMap reads in place of its maps, under the same
    names; the model itself where it has none. A ZipMap that another node reads stays.
    """
    places = [index for index, node in enumerate(model.graph.node) if _is_zip_map(node)]
    read = {name for scope in scopes(model) for node in scope.nodes for name in node.input}
    outputs = {value.name for value in model.graph.output}
    dropped = [index for index in places if model.graph.node[index].output[0] in outputs - read]
    told = [_stays(model.graph.node[index], index) for index in places if index not in dropped]
    if not dropped:
        return step(model, (), told)
    types = walk_model(model, leeway).graphs[MAIN].types
    copy = ModelProto()
    copy.CopyFrom(model)
    changes, notes = [], []
    for index in dropped:
        node = copy.graph.node[index]
        columns = _labels(node)
        location = f"main/{node_label(model.graph.node[index], index)}"
        text = f"{node.output[0]!r} is a tensor and no sequence of maps any more; its columns are those of {columns}"
        changes.append(Change(location, "ZipMap", "", "the tensor of its numbers is the output"))
        notes.append(diagnostic("SG426", text, location, severity="info"))
        _give_tensor(copy, index, types.get(node.input[0]))
    for index in reversed(dropped):
        if _is_zip_map(copy.graph.node[index]):
            del copy.graph.node[index]
    if MACHINE_LEARNING not in used_domains(copy):
        drop_imports(copy, [MACHINE_LEARNING])
    if any(node.op_type == "Identity" for node in copy.graph.node):
        copy = importing(copy, newest_opset_of(copy))
    return step(copy, changes, [*notes, *told])


def _is_zip_map(node: NodeProto) -> bool:
    return node.op_type == "ZipMap" and plain_domain(node.domain) == MACHINE_LEARNING


def _stays(node: NodeProto, index: int) -> Diagnostic:
    text = f"the maps of {node.output[0]!r} are no output of the model alone, so that they stay"
    return diagnostic("SG426", text, f"main/{node_label(node, index)}", severity="warning")


def _labels(node: NodeProto) -> str:
    """Return the labels of a ZipMap in words."""
    labels = [label for attribute in node.attribute for label in attribute_value(attribute)]
    texts = [repr(label.decode(errors="replace") if isinstance(label, bytes) else label) for label in labels]
    more = f" and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
    return f"the labels {', '.join(texts[:_MOST_NAMED])}{more}"


def _give_tensor(model: ModelProto, index: int, known: ValueType | None) -> None:
    """Give the tensor that a ZipMap reads the name of its output; or, where the tensor has a name that must stay, make
    the ZipMap an Identity.
    """
    graph, node = model.graph, model.graph.node[index]
    source, name = node.input[0], node.output[0]
    output = next(value for value in graph.output if value.name == name)
    makers = [made for made in graph.node if source in made.output[:]]
    if makers and source not in {value.name for value in graph.output}:
        _rename(model, source, name)
    else:
        node.op_type = "Identity"
        node.ClearField("domain")
        node.ClearField("attribute")
    _declare(output, known)
    for place in range(len(graph.value_info) - 1, -1, -1):
        if graph.value_info[place].name in (source, name):
            del graph.value_info[place]


def _rename(model: ModelProto, source: str, name: str) -> None:
    """Give a value of the main graph another name wherever it is read."""
    for scope in scopes(model):
        if scope.in_function:
            continue
        for node in scope.nodes:
            for names in (node.input, node.output):
                for place, given in enumerate(names):
                    if given == source:
                        names[place] = name


def _declare(output: ValueInfoProto, known: ValueType | None) -> None:
    declared = None if known is None else type_proto(known)
    if declared is None:
        # The kernels give float32.
        declared = TypeProto(tensor_type=TypeProto.Tensor(elem_type=1))
    output.type.CopyFrom(declared)
