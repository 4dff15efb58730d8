"""Dropping ZipMap: a model gives the numbers of each row, and no maps from labels to numbers.

Exporters of sklearn and LightGBM put a ZipMap behind the probabilities of a classifier, and hardly any runtime reads
maps. A ZipMap of a vector gives one map, so that its tensor has one row.
"""

from __future__ import annotations

from collections.abc import Iterator

from splitgraph.conversion.imports import drop_imports, importing, newest_opset_of, used_domains
from splitgraph.conversion.rewrite import Change, Rewrite, step
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference import walk_model
from splitgraph.model.attributes import attribute_value
from splitgraph.model.onnx_proto import AttributeProto, ModelProto, NodeProto, ValueInfoProto
from splitgraph.model.places import versioned_operator
from splitgraph.model.scopes import MACHINE_LEARNING, MAIN, model_imports, node_label, plain_domain, scopes
from splitgraph.model.value_type import Shape, ValueType
from splitgraph.model.values import type_proto
from splitgraph.options import STRICT, Leeway

# Labels that one note names.
_MOST_NAMED = 10
# From this opset on, Flatten counts its axis from the end: it makes a table of a vector, and leaves a table as it is.
_AXIS_FROM_END = 11


def without_zip_maps(model: ModelProto, leeway: Leeway = STRICT) -> Rewrite[ModelProto]:
    """Return a copy of a model whose outputs have the tensors that ZipMap reads in place of its maps, under the same
    names; the model itself where it has none. A ZipMap stays, with a note, if another node reads it, or a function or
    a body holds it.
    """
    places = [index for index, node in enumerate(model.graph.node) if _is_zip_map(node)]
    told = [*_inner(model)]
    if not places:
        return step(model, (), told)
    types = walk_model(model, leeway).graphs[MAIN].types
    read = {name for scope in scopes(model) for node in scope.nodes for name in node.input}
    outputs = {value.name for value in model.graph.output} - read
    opset = model_imports(model).get("", newest_opset_of(model))
    copy = ModelProto()
    copy.CopyFrom(model)
    changes, notes, replaced = [], [], []
    for index in places:
        node = model.graph.node[index]
        location = f"main/{node_label(node, index)}"
        # The copy may have another name for the tensor already.
        known = types.get(node.input[0], ValueType())
        if node.output[0] not in outputs:
            told.append(_stays(node, location, "are no output of the model alone"))
        elif known.rank is None and opset < _AXIS_FROM_END:
            told.append(_stays(node, location, f"are of a tensor of unknown rank, which needs opset {_AXIS_FROM_END}"))
        else:
            text = f"{node.output[0]!r} is a tensor and no sequence of maps any more; its columns are those of "
            text += _in_words(_labels(node))
            before = versioned_operator(node, model_imports(model))
            changes.append(Change(location, before, "", "the tensor of its numbers is the output"))
            notes.append(diagnostic("SG426", text, location, severity="info"))
            if _give_tensor(copy, index, known):
                replaced.append(index)
    if not changes:
        return step(model, (), told)
    for index in reversed(replaced):
        del copy.graph.node[index]
    used = used_domains(copy)
    if MACHINE_LEARNING not in used:
        drop_imports(copy, [MACHINE_LEARNING])
    if "" in used:
        copy = importing(copy, opset)
    return step(copy, changes, [*notes, *told])


def _is_zip_map(node: NodeProto) -> bool:
    return node.op_type == "ZipMap" and plain_domain(node.domain) == MACHINE_LEARNING


def _inner(model: ModelProto) -> Iterator[Diagnostic]:
    """Yield a note for each ZipMap of a function or a body, whose maps an output of the model may be."""
    for scope in scopes(model):
        if scope.path == MAIN:
            continue
        for index, node in enumerate(scope.nodes):
            if _is_zip_map(node):
                yield _stays(node, f"{scope.location}/{node_label(node, index)}", "are made in a function or a body")


def _stays(node: NodeProto, location: str, why: str) -> Diagnostic:
    return diagnostic("SG426", f"the maps of {node.output[0]!r} {why}, so that they stay", location, severity="warning")


def _labels(node: NodeProto) -> list[str]:
    """Return the labels of a ZipMap as people read them."""
    labels = [label for attribute in node.attribute for label in attribute_value(attribute)]
    return [repr(label.decode(errors="replace") if isinstance(label, bytes) else label) for label in labels]


def _in_words(labels: list[str]) -> str:
    more = f" and {len(labels) - _MOST_NAMED} more" if len(labels) > _MOST_NAMED else ""
    return f"the labels {', '.join(labels[:_MOST_NAMED])}{more}"


def _give_tensor(model: ModelProto, index: int, known: ValueType) -> bool:
    """Give the tensor that a ZipMap reads the name of its output, and tell that nothing reads the ZipMap any more; or,
    where the tensor is no table or its name must stay, write another node in place of the ZipMap. known: the type of
    the tensor.
    """
    graph, node = model.graph, model.graph.node[index]
    source, name, columns = node.input[0], node.output[0], len(_labels(node))
    output = next(value for value in graph.output if value.name == name)
    is_made = any(source in made.output[:] for made in graph.node)
    is_table = known.rank not in (None, 1)
    is_renamed = is_table and is_made and source not in {value.name for value in graph.output}
    if is_renamed:
        _rename(model, source, name)
    else:
        node.op_type = "Identity" if is_table else "Flatten"
        node.ClearField("domain")
        node.ClearField("attribute")
        if not is_table:
            node.attribute.add(name="axis", type=AttributeProto.INT, i=-1 if known.rank is None else 0)
    _declare(output, known, columns)
    for place in range(len(graph.value_info) - 1, -1, -1):
        if graph.value_info[place].name in (source, name):
            del graph.value_info[place]
    return is_renamed


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


def _declare(output: ValueInfoProto, known: ValueType, columns: int) -> None:
    """Declare an output as the table of a tensor."""
    shape: Shape = (None, columns)
    if known.shape is not None:
        shape = (1, *known.shape) if len(known.shape) == 1 else known.shape
    # The kernels give float32.
    declared = type_proto(ValueType("tensor", known.dtype or "float32", shape))
    assert declared is not None
    output.type.CopyFrom(declared)
