"""The comparison of two models: graph by graph, the main graph first, each with the bodies in it, then functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from splitgraph.diagnostics import Diagnostic, SplitgraphError, diagnostic
from splitgraph.differences.constants import UnknownFolder
from splitgraph.differences.difference import Kind, ModelDifference, NodeDifference, PartDifference, ValueDifference
from splitgraph.differences.graphs import Graph
from splitgraph.differences.matching import match_nodes
from splitgraph.differences.names import ValueNames
from splitgraph.differences.nodes import NodeComparison, node_form
from splitgraph.differences.parts import graph_parts, model_parts, parts_of_one
from splitgraph.differences.sides import Side
from splitgraph.differences.values import TypeComparison, value_difference
from splitgraph.formats import LoadedModel
from splitgraph.graph.scopes import GraphPath
from splitgraph.onnx_proto import ModelProto

# Code, severity, location and message.
_Finding = tuple[str, str, str, str]
# A pair of graphs, None for one that exists in only one model, and the values of the graphs around them.
_Pair = tuple[GraphPath | None, GraphPath | None, ValueNames | None]


def compare_models(before: LoadedModel, after: LoadedModel, *, is_rewrite: bool = False) -> ModelDifference:
    """What differs between two models of the same format; errors of the models do not stop the comparison.

    before, after: opened, their weights left in files or not. is_rewrite: the second model was made from the first one,
    so that both have the same data files, wherever these are. Raises SplitgraphError for an ONNX model and an OpenVINO
    IR, ModelError if elements of a tensor cannot be read.
    """
    if isinstance(before.content, ModelProto) != isinstance(after.content, ModelProto):
        formats = ["ONNX" if isinstance(held.content, ModelProto) else "OpenVINO IR" for held in (before, after)]
        text = f"the first model is {formats[0]} and the second is {formats[1]}; only models of one format are compared"
        help = "Convert the ONNX model first: splitgraph convert model.onnx --to variadic-split -o model.xml"
        raise SplitgraphError(f"{text}. {help}", [diagnostic("SG601", text, help=help)])
    folder = UnknownFolder()
    other = folder if is_rewrite or after.content is before.content else UnknownFolder()
    return _Comparison(Side(before, folder), Side(after, other)).run()


class _Comparison:
    def __init__(self, before: Side, after: Side) -> None:
        self._sides = before, after
        self._types = TypeComparison((before.analysis.generated, after.analysis.generated))
        self._parts: list[PartDifference] = []
        self._nodes: list[NodeDifference] = []
        self._values: list[ValueDifference] = []
        self._moved: dict[str, str] = {}

    def run(self) -> ModelDifference:
        before, after = self._sides
        self._parts += model_parts(before, after)
        for root in self._roots():
            waiting = [root]
            while waiting:
                waiting += reversed(list(self._compare(*waiting.pop())))
        new, gone = _findings(before.analysis.diagnostics, after.analysis.diagnostics, self._moved)
        return ModelDifference(
            tuple(self._parts),
            tuple(self._nodes),
            tuple(self._values),
            new,
            gone,
            dict(before.analysis.opset),
            dict(after.analysis.opset),
            sum(len(scope.nodes) for scope in before.scopes.values()),
            sum(len(scope.nodes) for scope in after.scopes.values()),
            self._moved,
        )

    def _roots(self) -> Iterator[_Pair]:
        before, after = self._sides
        yield (), (), None
        for key in dict.fromkeys((*before.functions, *after.functions)):
            yield before.functions.get(key), after.functions.get(key), None

    def _compare(self, path: GraphPath | None, new: GraphPath | None, outer: ValueNames | None) -> Iterator[_Pair]:
        """Compare two graphs; gives the bodies of their nodes."""
        if path is None or new is None:
            yield from self._only_in_one(path, new)
            return
        graphs = self._sides[0].graph(path), self._sides[1].graph(new)
        by_position = new != ()
        pairs = match_nodes(*graphs, by_position=by_position)
        names = ValueNames(*graphs, pairs, by_position=by_position, outer=outer)
        different = self._different_types((path, new), graphs, names)
        self._parts += graph_parts(self._sides, (path, new), names, different)
        compared = NodeComparison(self._sides, graphs, pairs, names)
        self._nodes += compared.differences()
        self._moved |= compared.moved()
        self._compare_values((path, new), graphs, names, different)
        yield from self._bodies(path, new, pairs, names)

    def _bodies(
        self, path: GraphPath, new: GraphPath, pairs: Sequence[tuple[int, int]], names: ValueNames
    ) -> Iterator[_Pair]:
        before, after = self._sides
        match = dict(pairs)
        left = dict.fromkeys(after.bodies.get(new, ()))
        for inner in before.bodies.get(path, ()):
            index, attribute, position = inner[-3:]
            partner = (*new, match.get(index), attribute, position)
            if partner in left:
                del left[partner]
                yield inner, partner, names
            else:
                yield inner, None, names
        yield from ((None, inner, names) for inner in left)

    def _only_in_one(self, path: GraphPath | None, new: GraphPath | None) -> Iterator[_Pair]:
        """A graph that only one model has: of a node that was added or removed, or a function."""
        kind: Kind = "removed" if new is None else "added"
        side = self._sides[0 if new is None else 1]
        at = path if path is not None else new
        assert at is not None
        graph = side.graph(at)
        self._parts += parts_of_one(side, at, kind)
        for index in range(len(graph.nodes)):
            form = node_form(side, graph, index)
            forms = (form, None) if kind == "removed" else (None, form)
            self._nodes.append(NodeDifference(form.location, kind, *forms))
        types, location = side.types(at), graph.scope.location
        for name in _values(graph):
            held = types.get(name)
            if held is not None:
                texts = (held, None) if kind == "removed" else (None, held)
                self._values.append(value_difference(location, (name, name), *texts))
        for inner in side.bodies.get(at, ()):
            yield (inner, None, None) if kind == "removed" else (None, inner, None)

    def _different_types(
        self, paths: tuple[GraphPath, GraphPath], graphs: tuple[Graph, Graph], names: ValueNames
    ) -> set[str]:
        """The values that both graphs have with other types, by their names in the first."""
        known, new = self._sides[0].types(paths[0]), self._sides[1].types(paths[1])
        order: Iterable[str] = graphs[0].defined
        if graphs[0].sort_key > graphs[1].sort_key:
            # In the same order whichever model is the first: which symbol is which may depend on it.
            back = {other: name for name, other in names.after.items()}
            order = [back[other] for other in graphs[1].defined if other in back]
        both = ((name, names.after[name]) for name in order if name in names.after)
        return self._types.different(
            (name, known[name], new[other]) for name, other in both if name in known and other in new
        )

    def _compare_values(
        self,
        paths: tuple[GraphPath, GraphPath],
        graphs: tuple[Graph, Graph],
        names: ValueNames,
        different: Collection[str],
    ) -> None:
        known, new = self._sides[0].types(paths[0]), self._sides[1].types(paths[1])
        location, old_location = graphs[1].scope.location, graphs[0].scope.location
        for name in _values(graphs[0]):
            other, held = names.after.get(name), known.get(name)
            found = None if other is None else new.get(other)
            if held is None and found is None:
                continue
            if held is None or found is None or name in different:
                place = old_location if other is None else location
                self._values.append(value_difference(place, (name, other or ""), held, found))
        kept = set(names.after.values())
        for name in _values(graphs[1]):
            if name not in kept and name in new:
                self._values.append(value_difference(location, ("", name), None, new[name]))


def _values(graph: Graph) -> Iterable[str]:
    """The inputs of a graph and the outputs of its nodes; initializers are parts of the model."""
    constants = set(graph.constants)
    return (name for name in graph.defined if name not in constants)


def _findings(
    before: Sequence[Diagnostic], after: Sequence[Diagnostic], moved: Mapping[str, str]
) -> tuple[tuple[Diagnostic, ...], tuple[Diagnostic, ...]]:
    """The findings of only the second and of only the first model. moved: locations of nodes in the second model."""
    places = [moved.get(d.location, d.location) for d in before]
    one: list[_Finding] = [(d.code, d.severity, place, d.message) for d, place in zip(before, places, strict=True)]
    two: list[_Finding] = [(d.code, d.severity, d.location, d.message) for d in after]
    gone, new = _left(one, two), _left(two, one)
    # The same finding about the same node may have another text, which names the version of the operator. What is
    # found of a graph as a whole has no node in its location.
    one, two = [_of_node(one[index]) for index in gone], [_of_node(two[index]) for index in new]
    return tuple(after[new[index]] for index in _left(two, one)), tuple(
        before[gone[index]] for index in _left(one, two)
    )


def _of_node(finding: _Finding) -> _Finding:
    code, severity, location, message = finding
    return code, severity, location, "" if "/" in location else message


def _left(found: Sequence[_Finding], others: Sequence[_Finding]) -> list[int]:
    """The places of those that are found and have no counterpart among the others, each of which is one for one."""
    counts, left = Counter(others), list[int]()
    for index, key in enumerate(found):
        if counts[key] > 0:
            counts[key] -= 1
        else:
            left.append(index)
    return left
