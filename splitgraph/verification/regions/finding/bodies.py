"""Make models of the bodies of a node that both models have: a branch of an If, the body of a Loop, a Scan or a
SequenceMap, and a function that is called.

The inputs of such a model are those of the body, and the values around it that it reads; the constants around it are
in the model. Its outputs are those of the body that somebody reads: a state of a loop counts if another one that
counts depends on it. Both models have the same inputs and outputs, with the names of the first one where these are
free. Their inputs have no types: these are known when the values are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import onnx

from splitgraph.model.scopes import called_function, function_key, reads, subgraphs
from splitgraph.verification.models.model_files import specialise
from splitgraph.verification.regions.finding.cut import add_constant, called_functions, rename_values
from splitgraph.verification.regions.finding.find import ModelRegions
from splitgraph.verification.regions.finding.reached import reached
from splitgraph.verification.regions.finding.sides import ModelSide

# A Scan of older opsets has other inputs.
_FIRST_SCAN_OPSET = 9


class BodyPair(NamedTuple):
    """A body in both models. node: that holds it, in the first model. attribute: that it is in, "" for a function.

    models, locations: before and after. inputs: the formal inputs of the body, as the inputs of the models are called;
    "" for one that is omitted. outer: the other inputs of the models, each with the value of the first model around
    the body. outputs: of each formal output, its number among the outputs of the models; None for one that nobody
    reads.
    """

    node: onnx.NodeProto
    attribute: str
    models: tuple[onnx.ModelProto, onnx.ModelProto]
    locations: tuple[str, str]
    inputs: Sequence[str]
    outer: Mapping[str, str]
    outputs: Sequence[int | None]


class _Graph(NamedTuple):
    """A body in one model. graph: without its nodes; nodes: those of them that count."""

    side: ModelSide
    attribute: str
    location: str
    imports: Sequence[onnx.OperatorSetIdProto]
    inputs: list[str]
    outputs: list[str]
    nodes: list[onnx.NodeProto]
    tensors: Sequence[onnx.TensorProto] = ()
    sparse: Sequence[onnx.SparseTensorProto] = ()

    def defined(self) -> set[str]:
        """Return the names that the body defines at its top."""
        own = {*self.inputs, *(tensor.name for tensor in self.tensors), *(each.values.name for each in self.sparse)}
        return own | {name for node in self.nodes for name in node.output}

    def names(self) -> set[str]:
        """Return all names in the body and in those within it."""
        waiting, names = list(self.nodes), self.defined() | set(self.outputs)
        while waiting:
            node = waiting.pop()
            names.update(node.input, node.output)
            for _, _, inner in subgraphs(node):
                waiting += inner.node
                names.update(value.name for value in (*inner.input, *inner.output))
                names.update(tensor.name for tensor in inner.initializer)
        return names - {""}


def bodies(found: ModelRegions, index: int, other: int) -> Iterator[BodyPair]:
    """Yield the bodies of a node, and of its partner in the second model, of which models can be made."""
    nodes = found.before.nodes[index], found.after.nodes[other]
    graphs = list(_graphs(found.before, index)), list(_graphs(found.after, other))
    for one, two in zip(*graphs, strict=False):
        is_alike = one.attribute == two.attribute and len(one.inputs) == len(two.inputs)
        if is_alike and len(one.outputs) == len(two.outputs):
            body = _body(found, nodes, one, two)
            if body is not None:
                yield body


def _graphs(side: ModelSide, index: int) -> Iterator[_Graph]:
    node, model = side.nodes[index], side.model
    function = next((each for each in model.functions if function_key(each) == called_function(node)), None)
    if function is not None:
        inner = specialise(function, node)
        yield _Graph(
            side, "", side.location(index), inner.opset_import, inner.input[:], inner.output[:], list(inner.node)
        )
        return
    opset = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)
    if node.op_type == "Scan" and opset < _FIRST_SCAN_OPSET:
        return
    for name, place, graph in sorted(subgraphs(node), key=lambda part: part[:2]):
        yield _Graph(
            side,
            name,
            side.body_location(index, name, place),
            model.opset_import,
            [value.name for value in graph.input],
            [value.name for value in graph.output],
            list(graph.node),
            graph.initializer,
            graph.sparse_initializer,
        )


def _body(
    found: ModelRegions, nodes: tuple[onnx.NodeProto, onnx.NodeProto], one: _Graph, two: _Graph
) -> BodyPair | None:
    """Return a body with its models; None if a value around it is not one of both models."""
    kept = _live_outputs(found, nodes, one) & _live_outputs(found, nodes, two)
    one, two = (each._replace(nodes=_needed(each, kept)) for each in (one, two))
    names = one.names(), two.names()
    fresh = _Fresh(names[0] | names[1])
    inputs = [_input_name(*pair, names[1], fresh) for pair in zip(one.inputs, two.inputs, strict=True)]
    if not one.attribute:
        # A call may leave out inputs of its function.
        given = [*nodes[0].input, *([""] * len(inputs))]
        inputs = [name if own else "" for name, own in zip(inputs, given, strict=False)]
    outer: dict[str, str] = {}
    maps = dict(zip(one.inputs, inputs, strict=True)), dict(zip(two.inputs, inputs, strict=True))
    for number, graph in enumerate((one, two)):
        for name in _outer_reads(graph, kept):
            if name in graph.side.constants:
                maps[number][name] = fresh.like(name)
                continue
            value = name if number == 0 else found.name_before(name)
            if value is None:
                return None
            target = next((own for own, known in outer.items() if known == value), None) or fresh.like(value)
            outer[target] = value
            maps[number][name] = target
    order = sorted(kept)
    results = [_result_name(one, two, place, order, maps, fresh) for place in order]
    models = tuple(
        _model(graph, own, [*filter(None, inputs), *outer], [graph.outputs[place] for place in order], results)
        for graph, own in zip((one, two), maps, strict=True)
    )
    numbers = {place: number for number, place in enumerate(order)}
    outputs = [numbers.get(place) for place in range(len(one.outputs))]
    return BodyPair(
        nodes[0], one.attribute, (models[0], models[1]), (one.location, two.location), inputs, outer, outputs
    )


# Names ----------------------------------------------------------------------------------------------------------------


class _Fresh:
    """Names that no value of either body has."""

    def __init__(self, taken: Collection[str]) -> None:
        self._taken = set(taken)

    def like(self, name: str) -> str:
        """Return a new name that begins with this one."""
        made, number = name, 0
        while made in self._taken:
            number += 1
            made = f"{name}.{number}"
        self._taken.add(made)
        return made


def _input_name(name: str, other: str, others: Collection[str], fresh: _Fresh) -> str:
    return name if name == other or name not in others else fresh.like(name)


def _result_name(
    one: _Graph,
    two: _Graph,
    place: int,
    order: Sequence[int],
    maps: tuple[dict[str, str], dict[str, str]],
    fresh: _Fresh,
) -> str:
    """Return the name of an output of both models; the node that computes it gets this name, if it is one's alone."""
    name = one.outputs[place]
    has_own_name = name not in maps[0] and (name == two.outputs[place] or name not in two.names())
    result = name if has_own_name and name not in maps[0].values() else fresh.like(name)
    for graph, own in zip((one, two), maps, strict=True):
        output = graph.outputs[place]
        makers = {made for node in graph.nodes for made in node.output}
        if output in makers and output not in own:
            own[output] = result
    return result


# Models ---------------------------------------------------------------------------------------------------------------


def _model(
    graph: _Graph, names: Mapping[str, str], inputs: Sequence[str], outputs: Sequence[str], results: Sequence[str]
) -> onnx.ModelProto:
    model = onnx.ModelProto(ir_version=max(graph.side.model.ir_version, 4))
    model.opset_import.extend(graph.imports)
    known = {entry.domain for entry in graph.imports}
    model.opset_import.extend(entry for entry in graph.side.model.opset_import if entry.domain not in known)
    model.functions.extend(called_functions(graph.side.model, graph.nodes))
    own = model.graph
    own.name = "body"
    own.input.extend(onnx.ValueInfoProto(name=name) for name in inputs)
    own.output.extend(onnx.ValueInfoProto(name=name) for name in results)
    own.initializer.extend(graph.tensors)
    own.sparse_initializer.extend(graph.sparse)
    defined = graph.defined()
    for name, own_name in names.items():
        if name not in defined and name in graph.side.constants:
            add_constant(own, graph.side, name, own_name)
    for node in graph.nodes:
        copy = own.node.add()
        copy.CopyFrom(node)
        rename_values(copy, names)
    for name, result in zip(outputs, results, strict=True):
        if names.get(name, name) != result:
            own.node.append(onnx.helper.make_node("Identity", [names.get(name, name)], [result]))
    return model


# What is read ---------------------------------------------------------------------------------------------------------


def _outer_reads(graph: _Graph, kept: Collection[int]) -> Iterable[str]:
    """Return the values around a body that its nodes and these outputs read, in their order."""
    own = graph.defined()
    read = [name for node in graph.nodes for name in reads(node)] + [graph.outputs[place] for place in sorted(kept)]
    return dict.fromkeys(name for name in read if name and name not in own)


def _needed(graph: _Graph, places: Iterable[int]) -> list[onnx.NodeProto]:
    """Return the nodes that some outputs of a body depend on."""
    makers = {name: index for index, node in enumerate(graph.nodes) for name in node.output if name}
    read = [tuple(filter(None, reads(node))) for node in graph.nodes]
    start = [makers[graph.outputs[place]] for place in places if graph.outputs[place] in makers]
    return [graph.nodes[index] for index in sorted(reached(start, read, makers))]


def _live_outputs(found: ModelRegions, nodes: tuple[onnx.NodeProto, onnx.NodeProto], graph: _Graph) -> set[int]:
    """Return the outputs of a body that somebody reads: a reader of the node, or a later iteration that counts."""
    node = nodes[0] if graph.side is found.before else nodes[1]
    count = state_count(node, len(graph.inputs))
    # The condition of a Loop comes first.
    shift = int(node.op_type == "Loop" and bool(graph.attribute))
    used = {
        place
        for place, pair in enumerate(zip(nodes[0].output, nodes[1].output, strict=True))
        if found.before.is_used(pair[0]) and found.after.is_used(pair[1])
    }
    live = ({0} if shift else set()) | {place + shift for place in used}
    first = 2 if shift else 0
    while True:
        needed = _needed(graph, live)
        read = {name for inner in needed for name in reads(inner)} | {graph.outputs[place] for place in live}
        more = {place + shift for place in range(count) if graph.inputs[first + place] in read}
        if more <= live:
            return live
        live |= more


def state_count(node: onnx.NodeProto, inputs: int) -> int:
    """Return how many states a Loop or a Scan has, whose body has so many inputs; 0 for other nodes."""
    if node.op_type == "Loop":
        return inputs - 2
    scanned = next((attribute.i for attribute in node.attribute if attribute.name == "num_scan_inputs"), 0)
    return inputs - scanned if node.op_type == "Scan" else 0
