"""The comparison of two models: graph by graph, the main graph first, each with the bodies in it, then functions.

Types of values are compared, too. The symbols that inference made up count as the same where one stands for the other
throughout (`TypeComparison`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from splitgraph.differences.difference import Kind, ModelDifference, NodeDifference, PartDifference, ValueDifference
from splitgraph.differences.matching import ComparedGraph, ValueNames, match_nodes
from splitgraph.differences.nodes import NodeComparison, node_form
from splitgraph.differences.parts import Side, graph_parts, model_parts, parts_of_one
from splitgraph.dim import Dim, substitute_names, symbol
from splitgraph.findings.diagnostics import Diagnostic, SplitgraphError, diagnostic
from splitgraph.formats import LoadedModel
from splitgraph.formats.constants import UnknownFolder
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import GraphPath
from splitgraph.model.value_type import ValueType

# How often types that tell nothing at first are looked at again. The last time, symbols are paired in their order.
_MOST_ATTEMPTS = 4
# Code, severity, location and message.
_Finding = tuple[str, str, str, str]
# A pair of graphs, None for one that exists in only one model, and the values of the graphs around them.
_Pair = tuple[GraphPath | None, GraphPath | None, ValueNames | None]


def compare_models(before: LoadedModel, after: LoadedModel, *, is_rewrite: bool = False) -> ModelDifference:
    """Return what differs between two models of the same format; errors of the models do not stop the comparison.

    before, after: opened, their weights left in files or not. is_rewrite: the second model was made from the first one,
    so that both have the same data files, wherever these are. Raises SplitgraphError for an ONNX model and an OpenVINO
    IR, ModelError if elements of a tensor cannot be read.
    """
    if isinstance(before.content, ModelProto) != isinstance(after.content, ModelProto):
        formats = ["ONNX" if isinstance(model.content, ModelProto) else "OpenVINO IR" for model in (before, after)]
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
        functions = dict.fromkeys((*before.functions, *after.functions))
        roots: list[_Pair] = [((), (), None)]
        roots += [(before.functions.get(key), after.functions.get(key), None) for key in functions]
        for root in roots:
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
        """Yield a graph that only one model has: of a node that was added or removed, or a function."""
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
            value = types.get(name)
            if value is not None:
                both = (value, None) if kind == "removed" else (None, value)
                self._values.append(value_difference(location, (name, name), *both))
        for inner in side.bodies.get(at, ()):
            yield (inner, None, None) if kind == "removed" else (None, inner, None)

    def _different_types(
        self, paths: tuple[GraphPath, GraphPath], graphs: tuple[ComparedGraph, ComparedGraph], names: ValueNames
    ) -> set[str]:
        """Return the values that both graphs have with other types, by their names in the first."""
        known, new = self._sides[0].types(paths[0]), self._sides[1].types(paths[1])
        order: Iterable[str] = graphs[0].defined
        if graphs[0].sort_key > graphs[1].sort_key:
            # The order is the same whichever model is the first: the pairing of symbols may depend on it.
            back = {other: name for name, other in names.after.items()}
            order = [back[other] for other in graphs[1].defined if other in back]
        both = ((name, names.after[name]) for name in order if name in names.after)
        return self._types.different(
            (name, known[name], new[other]) for name, other in both if name in known and other in new
        )

    def _compare_values(
        self,
        paths: tuple[GraphPath, GraphPath],
        graphs: tuple[ComparedGraph, ComparedGraph],
        names: ValueNames,
        different: Collection[str],
    ) -> None:
        known, new = self._sides[0].types(paths[0]), self._sides[1].types(paths[1])
        location, old_location = graphs[1].scope.location, graphs[0].scope.location
        for name in _values(graphs[0]):
            other, before = names.after.get(name), known.get(name)
            after = None if other is None else new.get(other)
            if before is None and after is None:
                continue
            if before is None or after is None or name in different:
                place = old_location if other is None else location
                self._values.append(value_difference(place, (name, other or ""), before, after))
        kept = set(names.after.values())
        for name in _values(graphs[1]):
            if name not in kept and name in new:
                self._values.append(value_difference(location, ("", name), None, new[name]))


def _values(graph: ComparedGraph) -> Iterable[str]:
    """Return the inputs of a graph and the outputs of its nodes; initializers are parts of the model."""
    constants = set(graph.constants)
    return (name for name in graph.defined if name not in constants)


def _findings(
    before: Sequence[Diagnostic], after: Sequence[Diagnostic], moved: Mapping[str, str]
) -> tuple[tuple[Diagnostic, ...], tuple[Diagnostic, ...]]:
    """Return the findings of only the second and of only the first model. moved: locations of nodes in the second
    model.
    """
    places = [moved.get(d.location, d.location) for d in before]
    one: list[_Finding] = [(d.code, d.severity, place, d.message) for d, place in zip(before, places, strict=True)]
    two: list[_Finding] = [(d.code, d.severity, d.location, d.message) for d in after]
    gone, new = _left(one, two), _left(two, one)
    # The same finding about the same node may have another text, because the text names the version of the operator. A
    # finding about a whole graph has no node in its location.
    one, two = [_of_node(one[index]) for index in gone], [_of_node(two[index]) for index in new]
    return tuple(after[new[index]] for index in _left(two, one)), tuple(
        before[gone[index]] for index in _left(one, two)
    )


def _of_node(finding: _Finding) -> _Finding:
    code, severity, location, message = finding
    return code, severity, location, "" if "/" in location else message


def _left(findings: Sequence[_Finding], others: Sequence[_Finding]) -> list[int]:
    """Return the places of the findings without a counterpart. Each of the others is the counterpart of one finding."""
    counts, left = Counter(others), list[int]()
    for index, key in enumerate(findings):
        if counts[key] > 0:
            counts[key] -= 1
        else:
            left.append(index)
    return left


# Types of values -----------------------------------------------------------------------------------------------------


class TypeComparison:
    """Compares types. generated: the symbols that are not the authors', of the two models."""

    def __init__(self, generated: tuple[Collection[str], Collection[str]]) -> None:
        self._generated = generated
        self._has_generated = any(generated)
        self._after: dict[str, str] = {}
        self._before: dict[str, str] = {}

    def different(self, pairs: Iterable[tuple[str, ValueType, ValueType]]) -> set[str]:
        """Return the values with types that do not say the same. pairs: each value with its type in the two models."""
        different, waiting = set[str](), list(pairs)
        for attempt in range(_MOST_ATTEMPTS):
            later = []
            for value in waiting:
                name, before, after = value
                same = self._are_same(before, after, guesses=attempt == _MOST_ATTEMPTS - 1)
                if same is None:
                    later.append(value)
                elif not same:
                    different.add(name)
            waiting = later
        return different

    def _are_same(self, before: ValueType, after: ValueType, *, guesses: bool) -> bool | None:
        """Return whether two types say the same; None where other types have to tell first which symbol is which."""
        if before == after and not _has_symbols(before):
            return True
        if (before.kind, before.dtype) != (after.kind, after.dtype):
            return False
        if before.element is not None and after.element is not None:
            return self._are_same(before.element, after.element, guesses=guesses)
        if before.element is not after.element or before.rank != after.rank:
            return False
        pairs = zip(before.shape or (), after.shape or (), strict=True)
        # Compare all of them: each may tell which symbol is which.
        answers = [self._is_same_dim(one, other, guesses) for one, other in pairs]
        return False if False in answers else None if None in answers else True

    def _is_same_dim(self, one: int | Dim | None, other: int | Dim | None, guesses: bool) -> bool | None:
        if not self._has_generated or isinstance(one, int) or isinstance(other, int):
            return one == other
        if one is None or other is None:
            return one is other or self._is_unknown(one, 0) or self._is_unknown(other, 1)
        made = sorted(one.symbols.intersection(self._generated[0]), key=_in_order)
        made_after = sorted(other.symbols.intersection(self._generated[1]), key=_in_order)
        new = [name for name in made if name not in self._after]
        new_after = [name for name in made_after if name not in self._before]
        if len(made) != len(made_after) or len(new) != len(new_after):
            return False
        if len(new) > 1 and not guesses:
            return None
        known = {**self._after, **dict(zip(new, new_after, strict=True))}
        if substitute_names(one, {name: symbol(known[name]) for name in made if known[name]}) != other:
            return False
        self._after.update(zip(new, new_after, strict=True))
        self._before.update(zip(new_after, new, strict=True))
        return True

    def _is_unknown(self, dim: Dim | None, side: int) -> bool:
        """Return True for a generated symbol at its first occurrence: it is as unknown as None.

        A symbol that only one value has is None: the first value tells nothing, and others would tell that they have
        the same size.
        """
        name = str(dim)
        known = (self._after, self._before)[side]
        if dim is None or name not in self._generated[side] or name in known:
            return False
        known[name] = ""
        return True


def _in_order(name: str) -> tuple[int, str]:
    """By number: unk2 before unk10."""
    return len(name), name


def _has_symbols(value: ValueType) -> bool:
    return any(isinstance(dim, Dim) for dim in value.innermost.shape or value.shape or ())


def value_difference(
    location: str, names: tuple[str, str], before: ValueType | None, after: ValueType | None
) -> ValueDifference:
    """Return the difference of a value. names: in the first and in the second model, "" where it does not exist."""
    if before is None:
        return ValueDifference(location, names[1], "added", None, after)
    if after is None:
        return ValueDifference(location, names[0], "removed", before, None)
    return ValueDifference(location, names[1], "changed", before, after, names[0] if names[0] != names[1] else "")
