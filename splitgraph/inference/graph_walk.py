"""What a walk knows of the values of one graph, and the interface of the walk for the modules that infer nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import islice
from math import prod

from splitgraph.dim import Answer, Dim, Facts, Obligation, symbols_of
from splitgraph.dim.conditions import without_factors
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference.broadcast_assumptions import is_nonempty
from splitgraph.inference.computed_values import ComputedValue
from splitgraph.inference.memo import OMITTED, Knowledge, Memo
from splitgraph.inference.record import Requirement
from splitgraph.inference.walk_results import GraphDetail
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.onnx_proto import AttributeProto, FunctionProto, NodeProto, TensorProto
from splitgraph.model.scopes import MOST_NESTED, GraphPath, Steps, finish
from splitgraph.model.tensor_data import is_external
from splitgraph.model.value_type import MAX_UNKNOWN, UNKNOWN, Contents, SequenceInfo, ValueType

Bindings = Mapping[str, AttributeProto]
# Constants of these types and so few elements are read at once: shapes are made of them.
_SHAPE_DTYPES = frozenset({TensorProto.INT64, TensorProto.INT32})
_FEW = 64


class GraphWalk(ABC):
    """The walk over one graph, or over the body of a function for one call, as the modules see it that infer nodes.
    `walk.py` implements it.

    parent: the walk over the enclosing graph, whose values a subgraph may read; None for the main graph and for
    functions. bindings: the attributes of the call; None for a function body that is walked as written, apart from any
    call. memo: the memo of these facts; None for new facts. depth: how many bodies of nodes enclose this graph, also
    around calls of functions. is_repeated: the graph is in the body of a loop, so that its values differ between
    iterations.
    """

    def __init__(
        self,
        state: WalkState,
        path: GraphPath,
        location: str,
        imports: Mapping[str, int],
        facts: Facts,
        *,
        parent: GraphWalk | None = None,
        bindings: Bindings | None = None,
        memo: Memo | None = None,
        depth: int = 0,
    ) -> None:
        self.state = state
        self.path = path
        self.location = location
        self.imports = imports
        self.facts = facts
        self.parent = parent
        self.bindings = bindings
        self.depth = depth
        self.memo: Memo = memo or Memo(facts, None if parent is None else parent.memo)
        # The location of the innermost body of a node that this graph is or is called in: it may not run.
        self.branch = "" if parent is None else location
        # Of Loop, Scan and SequenceMap; the branches of If have other names.
        self.is_repeated: bool = "body" in path or (parent is not None and parent.is_repeated)
        self.types: dict[str, ValueType] = {}
        self.constants: dict[str, Contents | TensorProto] = {}
        self.sequences: dict[str, SequenceInfo] = {}
        # Values that are computed when somebody asks for their elements.
        self.computed: dict[str, ComputedValue] = {}
        self.declared: dict[str, ValueType] = {}
        self.nodes: Sequence[NodeProto] = ()
        # What the nodes give, once anybody asks.
        self._produced: set[str] | None = None
        self.detail = GraphDetail(self.types, self.constants)
        # The symbols in the first types, and the number of these types.
        self._symbols_seen: set[str] = set()
        self._searched = 0
        # What is known of each value that a node of this graph reads or defines.
        self.known: dict[str, Knowledge] = {"": OMITTED}
        # Inputs of a function that its call leaves out.
        self.omitted: set[str] = set()
        # Constants whose elements somebody has read.
        self.elements_read: set[str] = set()

    def enclosing(self) -> Iterator[GraphWalk]:
        """Yield the graphs around this one, from the inside out."""
        graph = self.parent
        while graph is not None:
            yield graph
            graph = graph.parent

    def type_of(self, name: str) -> ValueType:
        """Return the type of a visible value; UNKNOWN if nothing defines it."""
        scope: GraphWalk | None = self
        while scope is not None:
            known = scope.types.get(name)
            if known is not None:
                return known
            scope = scope.parent
        return UNKNOWN

    def constant_of(self, name: str) -> Contents | TensorProto | None:
        """Return the contents of a value, or its tensor while nobody has read the elements."""
        scope: GraphWalk | None = self
        while scope is not None:
            if name in scope.types:
                return scope.constants.get(name)
            scope = scope.parent
        return None

    def contents_of(self, name: str) -> Contents | None:
        """Return the known elements of a value, and read them if nobody has."""
        scope: GraphWalk | None = self
        while scope is not None:
            constant = scope.constants.get(name)
            if constant is not None:
                if isinstance(constant, Contents):
                    return constant
                scope.elements_read.add(name)
                read = self.state.knowledge.elements_of(constant)
                if read is None:
                    del scope.constants[name]
                else:
                    scope.constants[name] = read
                return read
            if name in scope.types:
                computed = scope.computed.get(name)
                contents = None if computed is None else computed.contents()
                if contents is not None:
                    scope.constants[name] = contents
                return contents
            scope = scope.parent
        return None

    def computed_of(self, name: str) -> ComputedValue | None:
        """Return the computation of a value that the rules do not follow."""
        scope: GraphWalk | None = self
        while scope is not None and name not in scope.types:
            scope = scope.parent
        return None if scope is None else scope.computed.get(name)

    def sequence_of(self, name: str) -> SequenceInfo | None:
        """Return what is known of a sequence."""
        scope: GraphWalk | None = self
        while scope is not None:
            if name in scope.types:
                return scope.sequences.get(name)
            scope = scope.parent
        return None

    def read(self, name: str) -> Knowledge:
        """Read the elements of a value, and return what is known of it."""
        self.state.record.effects += 1
        known = self.state.knowledge.of(self.type_of(name), self.contents_of(name), self.sequence_of(name))
        self.known[name] = known
        return known

    def refine(self, name: str, contents: Contents) -> Knowledge:
        """State the elements of a value for the rest of this graph."""
        self.constants[name] = contents
        return self.read(name)

    def look_up(self, name: str) -> Knowledge:
        """Return what is known of a value that this graph reads for the first time. Elements of a constant are read
        only if they are few integers, as in shapes.
        """
        scope: GraphWalk | None = self
        while scope is not None and name not in scope.types:
            if name in scope.omitted:
                self.known[name] = OMITTED
                return OMITTED
            scope = scope.parent
        constant = None if scope is None else scope.constants.get(name)
        if scope is None or not isinstance(constant, TensorProto):
            known = self.state.knowledge.of(self.type_of(name), self.contents_of(name), self.sequence_of(name))
        elif constant.data_type in _SHAPE_DTYPES and prod(constant.dims) <= _FEW:
            known = self._read_few(scope, name, constant)
        else:
            known = self.state.knowledge.of(scope.types[name], None, None, unread=True)
        self.known[name] = known
        return known

    def _read_few(self, scope: GraphWalk, name: str, constant: TensorProto) -> Knowledge:
        """Return what is known of a constant of few integers. Many constants of a model are equal."""
        type, raw = scope.types[name], constant.raw_data
        # Types of constants are shared objects, which are told apart by identity in a quarter of the time.
        earlier = self.state.knowledge.constants.get((id(type), raw))
        if earlier is not None and earlier[0] is type and not is_external(constant):
            scope.constants[name] = earlier[2]
            return earlier[1]
        contents = self.contents_of(name)
        known = self.state.knowledge.of(type, contents)
        if raw and contents is not None:
            self.state.knowledge.constants[id(type), raw] = type, known, contents
        return known

    def fresh(self) -> Dim:
        """Return a new generated symbol."""
        return self.state.fresh()

    def report(self, finding: Diagnostic, *, when_run: bool = False) -> None:
        """Keep a finding. when_run: no runtime notices it before it runs the node."""
        self.state.record.report(finding, when_run=when_run)

    def require(
        self,
        obligation: Obligation,
        location: str,
        code: str,
        message: str | Callable[[], str] | None,
        noted: list[Obligation] | None = None,
        advise: Callable[[str], str | None] | None = None,
        *,
        when_run: bool = False,
    ) -> bool:
        """Record an obligation. If it can never hold, report a finding and return False. message: the text of the
        finding, or a function that makes it. advise: returns help for that text, or None for the help of the code.
        when_run: no runtime notices the finding before it runs the node.
        """
        if self.assume(obligation, location, noted) == "contradiction":
            earlier = isinstance(obligation.lhs, Dim) or isinstance(obligation.rhs, Dim)
            text = (message() if callable(message) else message) or f"{obligation} can never hold"
            of_symbols = earlier and bool(self.facts.obligations)
            if of_symbols:
                text += f" ({obligation} contradicts other conditions on the symbols)"
            help = None if advise is None else advise(text)
            finding = diagnostic(code, text, location, help=help)
            self.state.record.report(finding, when_run=of_symbols or when_run)
            return False
        return True

    def assume(self, obligation: Obligation, location: str, noted: list[Obligation] | None = None) -> Answer:
        """Record an obligation, unless it can never hold. It is divided by factors that are known to be at least 1, and
        an equality by those that may be assumed to be: `batch*seq == 7*batch` says `seq == 7`.
        """
        obligation = without_factors(obligation, lambda factor: self.facts.prove_ge(factor, 1))
        if obligation.relation == "==":
            obligation = self._without_assumed_factors(obligation, location)
        answer = self.facts.require(obligation)
        if answer == "assumed":
            self.state.record.note_requirement(Requirement(obligation, location, self.facts, self.branch))
            if noted is not None:
                noted.append(obligation)
        return answer

    def _without_assumed_factors(self, obligation: Obligation, location: str) -> Obligation:
        """Return an equality divided by factors that are at least 1 where nothing is empty, if it can hold there.
        Record that assumption.
        """
        if not self.state.task.assumes_nonempty or self.facts.prove_eq(obligation.lhs, obligation.rhs):
            return obligation
        divided = without_factors(obligation, lambda factor: True)
        if divided is obligation or self.facts.child().require(divided) == "contradiction":
            return obligation
        return without_factors(obligation, lambda factor: is_nonempty(self.state, self.facts, factor, location))

    def holds_any(self, symbols: Set[str]) -> bool:
        """Return True if a visible value has one of these symbols in its shape."""
        for graph in (self, *self.enclosing()):
            for value in islice(graph.types.values(), graph._searched, None):
                graph._symbols_seen |= symbols_of_type(value)
            graph._searched = len(graph.types)
            if not symbols.isdisjoint(graph._symbols_seen):
                return True
        return False

    def holder_of(self, symbols: Set[str]) -> tuple[str, int]:
        """Find the first visible value with one of these symbols in its shape. Return its name and the axis."""
        for graph in (self, *self.enclosing()):
            for name, value in graph.types.items():
                for axis, dim in enumerate(value.shape or ()):
                    if isinstance(dim, Dim) and not symbols.isdisjoint(symbols_of(dim)):
                        return name, axis
        raise LookupError(f"no value has one of the dimensions {sorted(symbols)}")

    # Defining values -----------------------------------------------------------------------------------------------

    def is_defined(self, name: str) -> bool:
        """Return True if the name is visible here."""
        scope: GraphWalk | None = self
        while scope is not None:
            if name in scope.types or name in scope.omitted:
                return True
            scope = scope.parent
        return False

    def visible_names(self) -> set[str]:
        """Return the names that are visible here."""
        around = set() if self.parent is None else self.parent.visible_names()
        return around.union(self.types)

    def produces(self, name: str) -> bool:
        """Return True if the value is an output of a node of this graph, even of one that the walk has not reached."""
        if self._produced is None:
            self._produced = {output for node in self.nodes for output in node.output}
        return name in self._produced

    def define(self, name: str, value: ValueType, location: str) -> None:
        """Define a value with its type. Unknown dimensions become fresh symbols. A second definition of a name is
        reported.
        """
        if name in self.types:
            self.report(diagnostic("SG104", f"the name {name!r} is defined twice in this graph", location))
            # The elements of the one may not fit the type of the other.
            self.constants.pop(name, None)
        self.types[name] = self.complete(value)
        self.known.pop(name, None)

    def complete(self, value: ValueType) -> ValueType:
        """Return the type with a fresh symbol for each unknown dimension. A sequence stays as it is, because its
        elements may differ. A type that is nested too deep becomes unknown, and so does a shape with very many unknown
        dimensions.
        """
        if value.element is not None and _nesting(value) > MOST_NESTED:
            return UNKNOWN
        if value.shape is None or None not in value.shape or value.kind == "sequence":
            return value
        if value.shape.count(None) > MAX_UNKNOWN:
            return value.with_shape(None)
        return value.with_shape([self.fresh() if dim is None else dim for dim in value.shape])

    # Walking ---------------------------------------------------------------------------------------------------------

    @abstractmethod
    def inner(self, index: int, attribute: str, position: int, location: str) -> GraphWalk:
        """Return the walk over a graph in an attribute of a node. What it requires of symbols stays within it."""

    @abstractmethod
    def called(self, function: FunctionProto, location: str, bindings: Bindings | None) -> GraphWalk:
        """Return the walk over the body of a function for a call. What it requires of symbols holds here too."""

    @abstractmethod
    def steps(self, nodes: Sequence[NodeProto]) -> Steps:
        """Do the same as `run`, in steps: the caller walks the bodies of functions."""

    def run(self, nodes: Sequence[NodeProto]) -> None:
        """Infer every node in the order of the file, or in topological order if the nodes are known to
        be out of order.
        """
        finish(self.steps(nodes))

    def may_look_into(self, location: str) -> bool:
        """Return True unless the bodies of a node are nested too deep, which is reported."""
        if self.depth >= MOST_NESTED:
            self.state.record.note_too_deep(location)
        return self.depth < MOST_NESTED

    def check_function_outputs(self, function: FunctionProto) -> None:
        """Report an output that the function's body does not define. Call it after the body has been walked."""
        for name in function.output:
            if not self.is_defined(name):
                text = f"nothing in the body of the function {function.name!r} defines its output {name!r}"
                self.report(diagnostic("SG105", text, self.location))


def _nesting(value: ValueType) -> int:
    depth, inner = 0, value.element
    while inner is not None:
        depth, inner = depth + 1, inner.element
    return depth


def symbols_of_type(value: ValueType) -> frozenset[str]:
    return frozenset().union(*(symbols_of(dim) for dim in value.shape or () if isinstance(dim, Dim)))
