"""Finds where the dimensions of a value come from: node by node, back to the inputs of the model.

What a node reads is decided by inferring it again, alone: with one dimension or element of an input unknown, is the
dimension of the output still the same? So a weight whose size only has to fit is not followed, and neither is the data
input of a Reshape to given sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any, NamedTuple

from splitgraph.dim import Dim, DimLike, names_in, substitute_names, symbol, symbols_of
from splitgraph.findings.diagnostics import SplitgraphError, diagnostic, meant
from splitgraph.formats import HeldModel, open_model
from splitgraph.inference.alone import MOST_ELEMENTS, Given, inferred_alone
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.operators import AI_ONNX
from splitgraph.inference.task import Task
from splitgraph.inference.walk import Walk
from splitgraph.model.deferred import import_whole
from splitgraph.model.names import Definitions
from splitgraph.model.onnx_proto import ModelProto, TensorProto
from splitgraph.model.places import LocatedNode
from splitgraph.model.scopes import MAIN, GraphPath, Scope, operator_name, plain_domain, reads
from splitgraph.model.value_type import UNKNOWN, Contents, Item, ValueType
from splitgraph.model.values import tensor_contents


@dataclass(frozen=True, slots=True)
class Step:
    """A value on the way back to the inputs.

    value, type: its name and type. graph: the location of its graph. elements: the known elements of an integer
    tensor, where dimensions depend on them; None for an unknown one. source: what gives it: "node", "input",
    "constant", or "body" for an input of a body. location, operator: of the node. reads: the values that its dimensions
    depend on, each a step of its own. enters: the dimensions with a symbol that nothing before them has, and "?" for
    an unknown one; of an input, those that it does not name. reason: why they enter here, "" if nothing does.
    """

    value: str
    type: ValueType
    graph: str
    source: str
    location: str = ""
    operator: str = ""
    elements: tuple[int | Dim | None, ...] = ()
    reads: tuple[str, ...] = ()
    enters: tuple[str, ...] = ()
    reason: str = ""


class _Part(NamedTuple):
    """A dimension of a value, or an element of an integer tensor. kind: "dim", "element", or "rank"."""

    kind: str
    place: int = 0


class _ValueAt(NamedTuple):
    """A value: the path of the graph that defines it, and its name."""

    path: GraphPath
    name: str


class _Source(NamedTuple):
    """What gives a value. at: the node. inside: the path from its graph to that of the value, for an input of a body;
    () for an output of the node.
    """

    at: LocatedNode
    inside: GraphPath = ()


# A dimension or an element of a value.
_Entry = tuple[_ValueAt, _Part]


def dimensions_of(analysis: Analysis, wanted: str) -> list[Step]:
    """Return where the dimensions of a value come from: the value first, then the values that it depends on, each after
    those that read it.

    wanted: the name of a value of any graph, or the location of its graph and the name (`main/If_3/then_branch/x`).
    Raises SplitgraphError (SG601) for a name that no value has, or that several values have.
    """
    return _Why(analysis).steps(wanted)


class _Why:
    def __init__(self, analysis: Analysis) -> None:
        self._analysis, self._details = analysis, analysis.details
        self._scopes = {scope.path: scope for scope in self._details.scopes if not scope.in_function}
        self._definitions = Definitions([*self._scopes.values()])
        self._sources = dict(_sources(self._scopes))
        self._alone = _Alone(analysis, self._definitions)
        self._wanted: dict[_ValueAt, dict[_Part, None]] = {}

    def steps(self, wanted: str) -> list[Step]:
        """Return the steps of a value."""
        first = self._find(wanted)
        type, contents = self._alone.type_of(first), self._alone.contents_of(first)
        # Of a shape, people ask for its elements.
        elements = [] if contents is None else _parts(type, contents)
        self._wanted[first] = dict.fromkeys([*_dims(type), *elements])
        waiting, steps = [self._place(first)], dict[_ValueAt, Step]()
        while waiting:
            *_, value = heappop(waiting)
            if value in steps:
                continue
            steps[value], found = self._step(value)
            for read, part in found:
                if read not in self._wanted:
                    heappush(waiting, self._place(read))
                self._wanted.setdefault(read, {})[part] = None
        return list(steps.values())

    def _place(self, value: _ValueAt) -> tuple[tuple[int, ...], str, _ValueAt]:
        """Return what sorts values: those of later nodes first."""
        source = self._sources.get(value)
        places = (*value.path[::3], *(() if source is None or source.inside else (source.at.position,)))
        return (*(-place for place in places), 1), value.name, value

    def _find(self, wanted: str) -> _ValueAt:
        known = [_ValueAt(path, name) for path in self._scopes for name in self._details.types.get(path, ())]
        named = [value for value in known if value.name == wanted]
        main = [value for value in named if value.path == MAIN]
        places = (wanted, f"main/{wanted}")
        located = [value for value in known if f"{self._scopes[value.path].location}/{value.name}" in places]
        found = main or located or named
        if len(found) == 1:
            return found[0]
        if found:
            ways = ", ".join(f"{self._scopes[value.path].location}/{value.name}" for value in found[:3])
            raise _usage(f"several values are named {wanted!r}; name the graph, too: {ways}")
        near = meant(wanted, {value.name for value in known})
        function = next((scope for scope in self._details.scopes if scope.in_function and _has(scope, wanted)), None)
        if function is not None and not near:
            near = f"; {function.location} has one, and a function is followed from the outputs of its calls"
        raise _usage(f"the model has no value {wanted!r}{near or '; infer --all lists them'}")

    def _step(self, value: _ValueAt) -> tuple[Step, list[_Entry]]:
        """Return the step of a value, and what it depends on."""
        parts, graph = [*self._wanted[value]], self._scopes[value.path].location
        shown, contents = self._shown_type(value), self._alone.contents_of(value)
        step = Step(value.name, shown, graph, "constant")
        if contents is not None and any(part.kind == "element" for part in parts):
            step = replace(step, elements=tuple(map(self._shown, contents.dims)))
        source = self._sources.get(value)
        if source is None:
            if value.name not in _inputs(self._scopes[value.path]):
                return step, []
            unnamed = [str(dim) for dim in shown.shape or () if self._is_generated(dim)]
            reason = "the model does not name it" if unnamed else ""
            return replace(step, source="input", enters=tuple(map(_mark, unnamed)), reason=reason), []
        found, enters = dict[_Entry, None](), dict[str, None]()
        for part in parts:
            needed = self._alone.needed(value, part, source)
            new = self._entering(value, part, needed)
            if new is not None:
                enters[new] = None
            found.update(dict.fromkeys(needed))
        kind = "body" if source.inside else "constant" if source.at.node.op_type == "Constant" else "node"
        step = replace(step, source=kind, location=source.at.location, operator=operator_name(source.at.node))
        reason = self._reason(source) if enters else ""
        names = tuple(dict.fromkeys(read.name for read, _ in found))
        return replace(step, reads=names, enters=tuple(enters), reason=reason), [*found]

    def _reason(self, source: _Source) -> str:
        """Return why a node gives a dimension that nothing before it has."""
        domain = plain_domain(source.at.node.domain) or AI_ONNX
        if f"{domain}::{source.at.node.op_type}" in self._analysis.completeness.unknown_operators:
            return "the operator is not known"
        if any(each.location == source.at.location and each.severity == "error" for each in self._analysis.diagnostics):
            return "the node has an error"
        return "its inputs do not tell it"

    def _is_generated(self, dim: DimLike | None) -> bool:
        """Return True for an unknown dimension and for one with a generated symbol. dim: as it is shown."""
        return dim is None or (isinstance(dim, Dim) and not self._analysis.generated.isdisjoint(symbols_of(dim)))

    def _shown_type(self, value: _ValueAt) -> ValueType:
        shown: ValueType = self._details.types.get(value.path, {}).get(value.name, UNKNOWN)
        return shown

    def _entering(self, value: _ValueAt, part: _Part, needed: Collection[_Entry]) -> str | None:
        """Return a dimension as it is shown, "?" for an unknown one; None if something before it has its symbols."""
        if part.kind == "rank":
            return None if needed else "..."
        dim, shape = self._alone.at(value, part), self._shown_type(value).shape
        shown = self._shown(dim) if part.kind == "element" or shape is None else shape[part.place]
        before = frozenset[str]().union(*(_names(self._alone.at(*each)) for each in needed))
        if dim is None:
            return None if any(self._alone.at(*each) is None for each in needed) else "?"
        return None if isinstance(shown, int) or _names(dim) <= before else _mark(str(shown))

    def _shown(self, dim: Item) -> DimLike | None:
        """Return a dimension under the names that are shown; None if it has none."""
        if not isinstance(dim, Dim):
            return dim if isinstance(dim, int) else None
        names: Mapping[str, DimLike] = self._details.shown_names
        inside = names_in(dim) & self._details.generated
        return substitute_names(dim, {name: names[name] for name in inside}) if inside <= names.keys() else None


# One node, inferred alone ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Alone:
    """What is known of the values of a model, and which of it a node makes its outputs of."""

    analysis: Analysis
    definitions: Definitions
    _task: Task = field(init=False)
    _missing: Dim = field(init=False)
    # The last node that was asked, and its walks without some of what it reads. Parts of a value are asked together.
    _asked: tuple[GraphPath, int] | None = None
    _walks: dict[frozenset[_Entry], Walk] = field(default_factory=dict)

    def __post_init__(self) -> None:
        details, whole = self.analysis.details, _proto(self.analysis)
        types = {id(type): type for detail in details.graphs.values() for type in detail.types.values()}.values()
        names = {name for type in types for dim in type.shape or () for name in _names(dim)}
        # Everything but the nodes and the weights.
        shell = ModelProto(ir_version=whole.ir_version, opset_import=whole.opset_import, functions=whole.functions)
        shell.graph.input.extend(whole.graph.input)
        missing = next(name for number in range(len(names) + 1) if (name := f"missing{number}") not in names)
        self._missing = symbol(missing)
        self._task = Task(shell, reserved=frozenset({*names, missing}), is_reported=False, assumes_nonempty=True)

    def type_of(self, value: _ValueAt) -> ValueType:
        """Return the type of a value, with the walk's own symbols."""
        detail = self.analysis.details.graphs.get(value.path)
        return UNKNOWN if detail is None else detail.types.get(value.name, UNKNOWN)

    def contents_of(self, value: _ValueAt) -> Contents | None:
        """Return the known elements of a small value."""
        known = self._constant(value)
        if isinstance(known, TensorProto):
            known = tensor_contents(known) if len(known.dims) < 2 and sum(known.dims) <= MOST_ELEMENTS else None
        return known if known is not None and len(known.items) <= MOST_ELEMENTS else None

    def _constant(self, value: _ValueAt) -> Contents | TensorProto | None:
        detail = self.analysis.details.graphs.get(value.path)
        return None if detail is None else detail.constants.get(value.name)

    def at(self, value: _ValueAt, part: _Part) -> Item:
        """Return a dimension or element of a value; None if it is not known."""
        return _at(self.type_of(value), self.contents_of(value), part)

    def needed(self, value: _ValueAt, part: _Part, source: _Source) -> list[_Entry]:
        """Return the dimensions and elements of the inputs of a node that one of its output depends on: as few as tell
        it.
        """
        given = self._read_by(source)
        if part.kind == "rank":
            return [(read, part) for read in given if self.type_of(read).shape is None][:1]
        every = [(read, each) for read in given for each in _parts(self.type_of(read), self.contents_of(read))]

        def told(freed: Collection[_Entry]) -> Item:
            """Return what the node tells if some of its inputs are not known."""
            return self._told(value, part, source, frozenset(freed))

        known = told(())
        if known != self.at(value, part) and not isinstance(known, Dim):
            # The node alone tells less, as of a sequence. What has the same symbols may be what it depends on.
            mine = _names(self.at(value, part))
            return [entry for entry in every if not mine.isdisjoint(_names(self.at(*entry)))]
        kept = self._enough(every, known, told)
        if not kept:
            # Without its number of elements a known value is not known either.
            sizes = [(read, each) for read in given if self.contents_of(read) for each in _dims(self.type_of(read))]
            kept = [entry for entry in sizes if told({entry}) != known]
        # A dimension that a node only hands on is followed through the first input that has it.
        same = [entry for entry in kept if isinstance(known, Dim) and self.at(*entry) == known]
        return same[:1] or kept

    def _enough(self, every: Sequence[_Entry], known: Item, told: Callable[[Collection[_Entry]], Item]) -> list[_Entry]:
        """Return as few as tell what is known of an output, even if all others are not known."""
        if told(every) == known:
            return []
        for entry in every:
            # Most nodes hand a dimension on.
            if self.at(*entry) == known and told({*every} - {entry}) == known:
                return [entry]
        freed = set[_Entry]()
        for entry in reversed(every):
            if told(freed | {entry}) == known:
                freed.add(entry)
        return [entry for entry in every if entry not in freed]

    def _told(self, value: _ValueAt, part: _Part, source: _Source, freed: frozenset[_Entry]) -> Item:
        node, scope = source.at.node, source.at.scope
        if self._asked != (scope.path, source.at.position):
            self._asked = scope.path, source.at.position
            self._walks.clear()
        if freed not in self._walks:
            known = {read.name: self._without(read, freed) for read in self._read_by(source)}
            self._walks[freed] = inferred_alone(self._task, node, scope.imports, known)
        walk = self._walks[freed]
        detail = walk.state.record.details.get((0, *source.inside[1:])) if source.inside else walk.detail
        if detail is None:
            return None
        contents = detail.constants.get(value.name)
        known_contents = contents if isinstance(contents, Contents) else None
        return _at(detail.types.get(value.name, UNKNOWN), known_contents, part)

    def _read_by(self, source: _Source) -> list[_ValueAt]:
        path, names = source.at.scope.path, dict.fromkeys(filter(None, reads(source.at.node)))
        return [_ValueAt(self.definitions.home(path, name), name) for name in names]

    def _without(self, read: _ValueAt, freed: Collection[_Entry]) -> Given:
        """Return what is known of a value without some of it: symbols that mean nothing in place of dimensions."""
        axes, elements = (
            {part.place for place, part in freed if place == read and part.kind == kind} for kind in ("dim", "element")
        )
        type, few = self.type_of(read), self.contents_of(read)
        if type.shape is not None and axes:
            dims = [self._missing + axis if axis in axes else dim for axis, dim in enumerate(type.shape)]
            return Given(type.with_shape(dims))
        if elements and few is not None:
            items = [None if place in elements else item for place, item in enumerate(few.items)]
            return Given(type, Contents(few.shape, tuple(items)))
        return Given(type, self._constant(read))


def _at(type: ValueType, contents: Contents | None, part: _Part) -> Item:
    if part.kind == "element":
        return contents.items[part.place] if contents is not None and part.place < len(contents.items) else None
    shape = type.shape
    return shape[part.place] if part.kind == "dim" and shape is not None and part.place < len(shape) else None


def _parts(type: ValueType, contents: Contents | None) -> list[_Part]:
    """Return what a node may read of an input: the elements if they are known, else the dimensions."""
    if contents is not None:
        return [_Part("element", index) for index, item in enumerate(contents.items) if item is not None]
    return [] if type.shape is None else _dims(type)


def _dims(type: ValueType) -> list[_Part]:
    return [_Part("rank")] if type.shape is None else [_Part("dim", axis) for axis in range(len(type.shape))]


def _names(item: Item) -> frozenset[str]:
    return frozenset(names_in(item)) if isinstance(item, Dim) else frozenset()


def _mark(text: str) -> str:
    return "?" if text == "None" else text


def _sources(scopes: Mapping[GraphPath, Scope]) -> Iterator[tuple[_ValueAt, _Source]]:
    for path, scope in scopes.items():
        for index, node in enumerate(scope.nodes):
            yield from ((_ValueAt(path, name), _Source(LocatedNode(scope, index))) for name in node.output if name)
        if path:
            outer = scopes[path[:-3]]
            yield from (
                (_ValueAt(path, each.name), _Source(LocatedNode(outer, path[-3]), path[-3:]))
                for each in scope.proto.input
            )


def _inputs(scope: Scope) -> set[str]:
    return {each.name for each in scope.proto.input} - {each.name for each in scope.proto.initializer}


def _has(scope: Scope, name: str) -> bool:
    return any(name in node.output for node in scope.nodes) or (scope.is_function and name in scope.proto.input)


def _proto(analysis: Analysis) -> ModelProto:
    """Return the model without its weights; of an OpenVINO IR the nodes that mirror its layers."""
    source: Any = analysis.held
    content = source.content if isinstance(source, HeldModel) else open_model(source, weights="leave").content
    if isinstance(content, ModelProto):
        return content
    import_whole("splitgraph.inference.openvino_ir")
    from splitgraph.inference.openvino_ir import mirror

    return mirror(content).model


def _usage(text: str) -> SplitgraphError:
    return SplitgraphError(text, [diagnostic("SG601", text)])
