"""The state of one inference, which the walks over all graphs share: functions, findings and generated symbols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import ReferenceType

from splitgraph.diagnostics import Diagnostic, SplitgraphError, diagnostic
from splitgraph.dim import Dim, DimLike, Facts, Obligation, marks_unknown, parse_dim, symbol, symbols_of
from splitgraph.graph.names import declared_dimensions
from splitgraph.graph.scopes import (
    MOST_NESTED,
    FunctionKey,
    GraphPath,
    Scope,
    function_key,
    model_imports,
    nested_depth,
    outermost,
    plain_functions,
    scopes,
)
from splitgraph.graph.values import tensor_contents
from splitgraph.inference.given_sizes import bound_type
from splitgraph.inference.journal import Avoidable, Finding, Journal, Requirement
from splitgraph.inference.knowledge import InternedKnowledge, Knowledge
from splitgraph.inference.malformed_tensors import TensorCheck
from splitgraph.inference.open_branches import OpenBranches
from splitgraph.inference.walk_results import FoundSplit, FunctionCall, GraphDetail, SetAside
from splitgraph.onnx_proto import FunctionProto, ModelProto, TensorProto
from splitgraph.value_type import Contents, ValueType
from splitgraph.variants.variadic_split_1 import is_variadic_function

# Of splits and findings of repeated calls so many are listed in a small file.
MOST_REPEATED = 1_000
# Functions that call functions twice, each time with other types, turn a file of a few lines into a model of millions
# of nodes.
_MANY_CALLS = 2_000


def most_calls(model: ModelProto) -> int:
    """The limit of walked calls that repeat no earlier call: a fixed number, or the number of nodes in the file if that
    is larger.
    """
    return max(_MANY_CALLS, _nodes_in_file(model))


def most_repeated(model: ModelProto) -> int:
    """The limit of splits and findings that repeated calls list again, as for calls."""
    return max(MOST_REPEATED, _nodes_in_file(model))


def _nodes_in_file(model: ModelProto) -> int:
    return len(model.graph.node) + sum(len(function.node) for function in model.functions)


@dataclass(slots=True)
class WalkState:
    """The state that every walk of one inference shares."""

    model: ModelProto
    empty_chunks: str = "clamp"
    bound: Mapping[str, DimLike] = field(default_factory=dict)
    functions: dict[FunctionKey, FunctionProto] = field(default_factory=dict)
    variadic: set[FunctionKey] = field(default_factory=set)
    imports: dict[str, int] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    # Conversion needs no split reports, no warnings and no meanings of declared names.
    is_reported: bool = True
    reports: list[FoundSplit] = field(default_factory=list)
    details: dict[GraphPath, GraphDetail] = field(default_factory=dict)
    # What is known of the symbols in each graph.
    facts: dict[GraphPath, Facts] = field(default_factory=dict)
    calls: dict[FunctionKey, list[FunctionCall]] = field(default_factory=dict)
    calling: list[FunctionKey] = field(default_factory=list)
    generated: set[str] = field(default_factory=set)
    # How many generated symbols there were before each.
    ordinals: dict[str, int] = field(default_factory=dict)
    journal: Journal = field(default_factory=Journal)
    # Symbols for unknown dimensions in function bodies as written.
    stand_ins: list[Dim] = field(default_factory=list)
    unknown_operators: dict[str, int] = field(default_factory=dict)
    # The first node of each unknown operator, by its label.
    first_unknown: dict[str, str] = field(default_factory=dict)
    # The requirements on symbols. Declared names of computed
    # dimensions, each with its meaning and a location; None where two values of one name differ.
    requirements: list[Requirement] = field(default_factory=list)
    definitions: dict[str, tuple[DimLike, str] | None] = field(default_factory=dict)
    # Declared names that unknown dimensions adopted, each with the graphs by path. The reference is to the values of
    # the graph, because each call of a function has its own; it is weak, because the values hold this state.
    adopted: dict[str, dict[GraphPath, ReferenceType[object]]] = field(default_factory=dict)
    # Obligations of generated symbols that come from declared numbers of later values: no reason to show the numbers
    # for earlier values.
    declared_numbers: set[Obligation] = field(default_factory=set)
    # Generated symbols for open dimensions of the model's inputs; and what warnings about declarations said of them.
    open_dimensions: frozenset[str] = frozenset()
    declared_sizes: Facts = field(default_factory=Facts)
    # Each of these warnings with the condition under which the declaration holds, and the facts that may prove it when
    # everything has been walked.
    size_conditions: dict[Diagnostic, tuple[Facts, Obligation]] = field(default_factory=dict)
    # Generated symbols for the broadcast of two dimensions: the two, and the location of the first node.
    broadcasts: dict[str, tuple[Dim, Dim, str]] = field(default_factory=dict)
    # Whether the broadcast of dimensions that may be empty is assumed to be the larger one; the assumptions, each with
    # the first node that needs it, and by the symbols in them. Assumptions are only about dimensions that the caller of
    # the model chooses: those that its inputs name.
    assumes_nonempty: bool = False
    assumptions: dict[Obligation, str] = field(default_factory=dict)
    assumptions_on: dict[str, list[Obligation]] = field(default_factory=dict)
    # The pairs of dimensions whose broadcast was assumed to be the larger one, with the first node; and the first pair
    # for each larger one.
    assumed_pairs: dict[tuple[Dim, Dim], str] = field(default_factory=dict)
    larger_ones: dict[DimLike, tuple[Dim, Dim]] = field(default_factory=dict)
    # The dimensions that were assumed to be at least 1, with the first node.
    assumed_sizes: dict[Dim, str] = field(default_factory=dict)
    named_dimensions: frozenset[str] = frozenset()
    # For a model of another format than ONNX, by graph and name: the types of inputs and constants, and the declared
    # types of outputs.
    given_types: Mapping[GraphPath, Mapping[str, ValueType]] = field(default_factory=dict)
    declared_types: Mapping[GraphPath, Mapping[str, ValueType]] = field(default_factory=dict)
    # By graph and name, what nodes demand of values of which an earlier walk knew less.
    demands: Mapping[GraphPath, Mapping[str, ValueType]] = field(default_factory=dict)
    # Every graph of the model, and the dimensions that it names.
    scopes: tuple[Scope, ...] = ()
    reserved: set[str] = field(default_factory=set)
    broadcast_cache: dict[frozenset[DimLike], Dim] = field(default_factory=dict)
    # (domain, name) of every function: a node with that operator type may be a call, depending on its overload.
    function_names: set[tuple[str, str]] = field(default_factory=set)
    plain_functions: frozenset[str] = frozenset()
    knowledge: InternedKnowledge = field(default_factory=InternedKnowledge)
    # Constants of few integers, by the id of the type and by raw data. The type is held, so that no other object has
    # its id.
    read_constants: dict[tuple[int, bytes], tuple[ValueType, Knowledge, Contents]] = field(default_factory=dict)
    # The elements of other constants, by the identity of the tensor, which is held with them.
    _elements: dict[int, tuple[TensorProto, Contents | None]] = field(default_factory=dict)
    # A counter of effects besides inferred outputs: a visit with effects must not be left out when it repeats.
    effects: int = 0
    tensors: TensorCheck = field(init=False)
    branches: OpenBranches = field(default_factory=OpenBranches)
    # Whether declared shapes of node outputs are believed where inference does not know them. Below, findings about
    # declarations with only a wrong shape, on which no node's meaning depends.
    believes_shapes: bool = True
    # Whether the defaults of the model's inputs are taken as constants.
    assumes_defaults: bool = False
    # Nodes with an accepted finding, by location, of which nothing is concluded.
    set_aside: SetAside = field(default_factory=dict)
    misdeclared: set[Diagnostic] = field(default_factory=set)
    # Errors of nodes that never run, in order.
    never_run: dict[Diagnostic, None] = field(default_factory=dict)
    # is_disordered: a node reads the output of a later node. sorts: so all graphs are walked in topological order.
    is_disordered: bool = False
    sorts: bool = False
    # Bodies were left out, as they are nested too deep.
    is_too_deep: bool = False
    # quiet: a body is walked only until it settles. muted: findings are about nodes that never run.
    quiet: int = 0
    muted: int = 0
    input_dimensions: set[str] = field(default_factory=set)
    _reported: set[Diagnostic] = field(default_factory=set)
    _counter: int = 0
    _followed: int = 0
    _most_calls: int = field(init=False)
    most_repeated: int = field(init=False)

    def __post_init__(self) -> None:
        if self.empty_chunks not in ("clamp", "error"):
            raise SplitgraphError(f"empty_chunks is {self.empty_chunks!r}; it must be 'clamp' or 'error'")
        self.tensors = TensorCheck(self.model)
        for function in self.model.functions:
            key = function_key(function)
            self.functions[key] = function
            self.function_names.add(key[:2])
            if is_variadic_function(function):
                self.variadic.add(key)
        self._most_calls, self.most_repeated = most_calls(self.model), most_repeated(self.model)
        self.plain_functions = plain_functions(self.model)
        self.imports = model_imports(self.model)
        self.input_dimensions = {
            name
            for value in self.model.graph.input
            for dim in value.type.tensor_type.shape.dim
            if not marks_unknown(dim.dim_param)
            for name in symbols_of(parse_dim(dim.dim_param))
        }
        self.reserved |= declared_dimensions(outermost(self.model))

    def find_scopes(self) -> set[str]:
        """List every graph of the model, after the walk. Gives declared dimensions that have names of generated
        symbols.
        """
        self.scopes = tuple(scopes(self.model, self._having_bodies))
        self.reserved |= declared_dimensions(self.scopes)
        return self.reserved & self.generated

    def _having_bodies(self, scope: Scope) -> Iterable[int]:
        """The indices of nodes with bodies, as the walk recorded them; all nodes of a graph that was not walked to the
        end, unless graphs are nested too deep.
        """
        detail, count = self.details.get(scope.path), len(scope.nodes)
        if detail is None or len(detail.visits) != count:
            return () if self.is_too_deep else range(count)
        return detail.having_bodies

    def fresh(self) -> Dim:
        """A new generated symbol, of a name that the model does not use."""
        self.effects += 1
        while True:
            name = f"unk{self._counter}"
            self._counter += 1
            if name not in self.reserved:
                self.ordinals[name] = len(self.generated)
                self.generated.add(name)
                return symbol(name)

    @property
    def follows_every_call(self) -> bool:
        """False when there were too many function calls, or too deeply nested ones, so that `calls` is incomplete."""
        return self._followed <= self._most_calls and not self.is_too_deep

    def may_follow_call(self, location: str) -> bool:
        """Count a function call that repeats no other. False, with a warning, when there are too many to walk each
        body.
        """
        self._followed += 1
        if self._followed == self._most_calls + 1:
            text = f"functions call each other in more than {self._most_calls:,} ways; further calls are not followed"
            self.diagnostics.append(diagnostic("SG303", text, location, severity="warning"))
        self.journal.unrepeatable += not self.follows_every_call
        return self.follows_every_call

    def note_too_deep(self, location: str) -> None:
        """Report, once, that bodies are not walked, even from a quiet walk or a branch that may not run: the model is
        not fully known then.
        """
        self.journal.unrepeatable += 1
        if self.is_too_deep:
            return
        self.is_too_deep = True
        text = (
            f"subgraphs and called functions are nested {nested_depth(self.model):,} levels deep; "
            f"at most {MOST_NESTED} levels are supported"
        )
        self.diagnostics.append(diagnostic("SG114", text, location))

    def elements_of(self, held: TensorProto) -> Contents | None:
        """The elements of a constant, always as the same object, so that calls with the same constant are equal."""
        if id(held) not in self._elements:
            self._elements[id(held)] = held, tensor_contents(held)
        return self._elements[id(held)][1]

    def report(self, found: Diagnostic, *, of_symbols: bool = False, is_misdeclared: bool = False) -> None:
        """Keep a finding, once. of_symbols: it contradicts what is known of symbols. is_misdeclared: it is about a
        declaration with only a wrong shape.
        """
        self.effects += 1
        if of_symbols:
            self.branches.of_symbols.add(found)
        if is_misdeclared:
            self.misdeclared.add(found)
        if self.calling and not self.quiet:
            self.journal.entries.append(Finding(found, of_symbols, is_misdeclared, self.muted > 0))
        if self.muted and not self.quiet and found.severity == "error":
            self.never_run[found] = None
        if not (self.quiet or self.muted) and found not in self._reported:
            self._reported.add(found)
            self.branches.place(self.diagnostics).append(found)

    def note_requirement(self, found: Requirement) -> None:
        """Keep a requirement of a node that may run."""
        if self.quiet or self.muted:
            return
        self.requirements.append(found)
        if self.calling:
            self.journal.entries.append(found)

    def note_broadcast(self, a: Dim, b: Dim, made: Dim, location: str) -> None:
        """Let a generated symbol stand for the broadcast of two dimensions, from here on and in the whole model."""
        self.broadcasts[str(made)] = a, b, location
        # Broadcast with either of the two once more it is itself.
        for pair in ((a, b), (a, made), (b, made)):
            self.broadcast_cache[frozenset(pair)] = made
        self.journal.unrepeatable += 1

    def note_unknown_operator(self, label: str, location: str) -> None:
        """Count a node with an unknown operator, and keep where the first one is."""
        if not self.quiet:
            self.effects += 1
            self.first_unknown.setdefault(label, location)
            self.unknown_operators[label] = self.unknown_operators.get(label, 0) + 1

    def keep_report(self, found: FoundSplit) -> None:
        """Keep a split that is to be reported."""
        self.reports.append(found)
        if self.calling:
            self.journal.entries.append(found)

    def release(self, found: Sequence[Diagnostic]) -> None:
        """Report findings that were held back."""
        self.branches.place(self.diagnostics).extend(found)

    def avoid(self, found: Sequence[Diagnostic]) -> None:
        """Record the errors of a body as avoidable: another branch has none."""
        self.branches.avoid(found)
        if self.calling:
            self.journal.entries.extend(map(Avoidable, found))

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Walk a body only until it settles, without findings."""
        self.quiet += 1
        try:
            yield
        finally:
            self.quiet -= 1

    @contextmanager
    def muting(self, never_runs: bool) -> Iterator[None]:
        """Mark findings as never running, if `never_runs`."""
        self.muted += never_runs
        try:
            yield
        finally:
            self.muted -= never_runs

    @property
    def keeps_reports(self) -> bool:
        """Whether a split that is found now is reported."""
        return self.is_reported and not self.quiet

    def bind(self, value: ValueType) -> ValueType:
        """The type with the caller's values for symbols put in."""
        return bound_type(value, self.bound)
