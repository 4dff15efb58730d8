"""The class of a node during the walk, which is all that a rule sees; and the registry of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from splitgraph.dim import Dim, DimLike, Facts, Obligation, symbols_of
from splitgraph.findings.diagnostics import Diagnostic, Severity, diagnostic
from splitgraph.inference.broadcast_assumptions import is_nonempty, larger_of
from splitgraph.inference.declared_types import define_graph_values
from splitgraph.inference.graph_walk import GraphWalk
from splitgraph.inference.memo import OMITTED, Knowledge, with_dims
from splitgraph.inference.record import OpenBranches, advise
from splitgraph.inference.walk_results import Form, SplitDetail
from splitgraph.model.attributes import UNRESOLVED, attribute_value
from splitgraph.model.onnx_proto import AttributeProto, GraphProto, NodeProto
from splitgraph.model.scopes import called_function, node_label
from splitgraph.model.value_type import MAX_RANK, UNKNOWN, Contents, SequenceInfo, ValueType

Relation = Literal["==", ">="]
# Of a node in the form of no version; the advice of the code itself names an option that reads forms.
_HOW_TO_FIT = "Compare the node with the operator's schema, and correct it."


@dataclass(frozen=True, slots=True)
class Body:
    """The results of walking a body: types and contents of its outputs, types of its inputs, facts where it runs."""

    types: list[ValueType]
    contents: list[Contents | None]
    given: list[ValueType]
    facts: Facts


class Unresolved(Exception):
    """A rule read an attribute that only a call of the function determines."""


class NodeContext:
    """One node of a walk: what is known of its inputs, its attributes, and methods to state its outputs.

    A rule may depend on this interface and on nothing else: the memo of visits compares nodes by it (`memo.py`). Names
    and the location are for messages. A lift of a split sees less of it (`canonical.SplitSite`).

    node: as written. opset: the version of the operator's domain that the graph imports. since_version: the operator
    version that this selects. inputs: the type of each, None for an omitted one (""). outputs: their names, "" for an
    omitted one.

    For the walk only: walk: the walk over the node's graph. given: what is known of each input. errors: codes of the
    errors found at the node. obligations: those that this node was the first to require. contents_out, sequences_out:
    what is known of the outputs, by position. split: the details of a split node. stops: reading an attribute that only
    a call of the function determines ends the rule. form: whose form the node has, if it does not fit its own version.
    """

    __slots__ = (
        "_attributes",
        "_values",
        "contents_out",
        "errors",
        "form",
        "given",
        "index",
        "inputs",
        "node",
        "obligations",
        "opset",
        "outputs",
        "sequences_out",
        "since_version",
        "split",
        "stops",
        "walk",
    )

    def __init__(
        self,
        walk: GraphWalk,
        node: NodeProto,
        index: int,
        given: list[Knowledge],
        outputs: Sequence[str],
        opset: int,
        since_version: int,
        attributes: Mapping[str, AttributeProto],
        values: dict[str, Any],
    ) -> None:
        self.walk = walk
        self.index = index
        self.errors: list[str] = []
        self.obligations: list[Obligation] = []
        self.node = node
        self.opset = opset
        self.since_version = since_version
        self.given = given
        self.inputs: list[ValueType | None] = [known.type for known in given]
        self.split: SplitDetail | None = None
        self.contents_out: dict[int, Contents] = {}
        self.sequences_out: dict[int, SequenceInfo] = {}
        self.outputs = outputs
        self._attributes = attributes
        self._values = values
        self.stops = False
        self.form: Form | None = None

    @property
    def location(self) -> str:
        """The location of the node, as people read it."""
        return f"{self.walk.location}/{node_label(self.node, self.index)}"

    @property
    def ir_version(self) -> int:
        """The IR version of the model."""
        return self.walk.state.task.model.ir_version

    @property
    def facts(self) -> Facts:
        """The facts about symbols in this scope."""
        return self.walk.facts

    @property
    def input_count(self) -> int:
        """The number of inputs that the node lists, omitted ones included."""
        return len(self.given)

    @property
    def reads_by_form(self) -> bool:
        """True if a node in the form of another version is of that version."""
        return self.walk.state.task.reads_by_form

    @property
    def empty_chunks(self) -> str:
        """The meaning of num_outputs chunks that overrun the dimension: "clamp" or "error"."""
        return self.walk.state.task.empty_chunks

    # Inputs ----------------------------------------------------------------------------------------------------------

    def input(self, index: int) -> ValueType:
        """Return the type of an input; UNKNOWN if it is omitted or beyond the last."""
        try:
            return self.inputs[index] or UNKNOWN
        except IndexError:
            return UNKNOWN

    def has_input(self, index: int) -> bool:
        """Return True if the input is given: not beyond the last, and its name not empty."""
        return index < len(self.given) and self.given[index] is not OMITTED

    def contents(self, index: int, *, needed: bool = False) -> Contents | None:
        """Return the known elements of an input; None if none are known, or if it is omitted. needed: a dimension
        depends on them, so that floating-point numbers are computed too (`computed_values.py`).
        """
        try:
            known = self.given[index]
        except IndexError:
            return None
        if known.unread:
            computed = None if needed else self.walk.computed_of(self.node.input[index])
            if computed is not None and computed.is_float:
                self.walk.state.record.effects += 1
                return None
            known = self.given[index] = self.walk.read(self.node.input[index])
        return known.contents

    def sequence(self, index: int) -> SequenceInfo | None:
        """Return what is known of a sequence input."""
        return self.given[index].sequence if index < len(self.given) else None

    def refine_input(self, index: int, contents: Contents) -> None:
        """State the elements that an input must have for the node to be valid. This holds for the rest of the graph."""
        self.given[index] = self.walk.refine(self.node.input[index], contents)

    # Attributes ------------------------------------------------------------------------------------------------------

    def attributes(self) -> Mapping[str, AttributeProto]:
        """Return the node's attributes by name, as written."""
        return self._attributes

    def attribute_names(self) -> Iterable[str]:
        """Return the names of the node's attributes."""
        return self._attributes.keys()

    def repair(self, dropped: Iterable[str], added: AttributeProto | None, more_outputs: int) -> None:
        """Change how the node is read: drop some attributes, add one, add outputs."""
        self.outputs = [*self.outputs, *[""] * more_outputs]
        kept = {name: attribute for name, attribute in self._attributes.items() if name not in dropped}
        self._attributes = kept if added is None else {**kept, added.name: added}
        self._values = {}

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute as int, float, str, tuple, TensorProto or GraphProto; `default` if it is absent. Return
        UNRESOLVED if it refers to an attribute of a function whose caller is unknown.
        """
        values = self._values
        if name in values:
            return values[name]
        written = self._attributes.get(name)
        if written is None:
            return default
        if not written.ref_attr_name:
            value = values[name] = attribute_value(written)
            return value
        if self.walk.bindings is None:
            return self._unresolved()
        bound = self.walk.bindings.get(written.ref_attr_name)
        return default if bound is None else attribute_value(bound)

    def bound(self, written: AttributeProto) -> AttributeProto | None:
        """Return the attribute itself, or the caller's attribute if it refers to one of the function. Return None if
        the caller is unknown, or gives none.
        """
        if not written.ref_attr_name:
            return written
        return (self.walk.bindings or {}).get(written.ref_attr_name)

    def is_unresolved(self, name: str) -> bool:
        """Return True if the attribute refers to an attribute of a function whose caller is unknown."""
        written = self._attributes.get(name) if self.walk.bindings is None else None
        return written is not None and bool(written.ref_attr_name)

    def has_attribute(self, name: str) -> bool:
        """Return True if the attribute is given, by the node or by the caller of the function."""
        written, bound = self._attributes.get(name), self.walk.bindings
        if written is None or not written.ref_attr_name:
            return written is not None
        if bound is None:
            self._unresolved()
            return True
        return written.ref_attr_name in bound

    def _unresolved(self) -> object:
        if self.stops:
            raise Unresolved
        return UNRESOLVED

    # Dimensions ------------------------------------------------------------------------------------------------------

    def fresh(self) -> Dim:
        """Return a new generated symbol: an unknown dimension that is the same one wherever the symbol stands."""
        return self.walk.fresh()

    def is_generated(self, dim: DimLike | None) -> bool:
        """Return True if the dimension is a single generated symbol."""
        return isinstance(dim, Dim) and str(dim) in self.walk.state.symbols.generated

    def is_of_inputs(self, dim: DimLike) -> bool:
        """Return True if the dimension has only symbols that the model's inputs name."""
        return symbols_of(dim) <= self.walk.state.task.input_dimensions

    def complete(self, value: ValueType) -> ValueType:
        """Return the type with a fresh symbol for each unknown dimension. A sequence stays as it is, because its
        elements may differ.
        """
        return self.walk.complete(value)

    def require(
        self,
        lhs: DimLike,
        relation: Relation,
        rhs: DimLike,
        *,
        code: str = "SG302",
        message: str | Callable[[], str] | None = None,
        when_run: bool = False,
    ) -> bool:
        """Require `lhs == rhs` or `lhs >= rhs` for the model to be valid. If it can never hold, report a finding and
        return False. message: the text of that finding, or a function that makes it. when_run: as for `find`.
        """
        obligation, advise = Obligation(lhs, relation, rhs), partial(self._help, code)
        noted = self.obligations
        holds = self.walk.require(obligation, self.location, code, message, noted, advise, when_run=when_run)
        if not holds:
            self.errors.append(code)
        return holds

    def require_if_possible(self, lhs: DimLike, relation: Relation, rhs: DimLike) -> bool:
        """Do the same as `require`, but report nothing if the requirement can never hold: the node means something else
        then. Return True if it can hold.
        """
        return self.walk.assume(Obligation(lhs, relation, rhs), self.location, self.obligations) != "contradiction"

    def larger_of(self, a: Dim, b: Dim) -> DimLike | None:
        """Return the larger of two broadcast dimensions, and record the assumption that neither is empty. Return None
        if the walk must not assume so.
        """
        return larger_of(self.walk.state, self.facts, a, b, self.location)

    def is_nonempty(self, dim: Dim) -> bool:
        """Return True if a dimension is at least 1, or if the walk assumes so."""
        return is_nonempty(self.walk.state, self.facts, dim, self.location)

    def broadcast_symbol(self, a: Dim, b: Dim) -> Dim | None:
        """Return the generated symbol for the broadcast of two dimensions; None if there is none yet."""
        return self.walk.state.symbols.broadcast_cache.get(frozenset((a, b)))

    def note_broadcast(self, a: Dim, b: Dim, made: Dim) -> None:
        """Use a generated symbol for the broadcast of two dimensions from here on."""
        self.walk.state.note_broadcast(a, b, made, self.location)

    def broadcast_operands(self, dim: DimLike) -> tuple[Dim, Dim] | None:
        """Return the two dimensions whose broadcast a generated symbol stands for; None for any other dimension."""
        broadcast = self.walk.state.symbols.broadcasts.get(str(dim))
        return self.walk.state.symbols.larger_ones.get(dim) if broadcast is None else broadcast[:2]

    # What the node gives ---------------------------------------------------------------------------------------------

    def find(self, code: str, message: str, *, severity: Severity = "error", when_run: bool = False) -> Diagnostic:
        """Report a finding about this node. when_run: no runtime notices it before it runs the node."""
        if severity == "error":
            self.errors.append(code)
        help = self._help(code, message)
        if code == "SG212" and self.form is not None:
            told, help = self.form.sentence(self.opset), self.form.help
            if self.form.adds_to(message):
                message = f"{message}. {told}"
            else:
                help = f"{told}. {help}"
        finding = diagnostic(code, message, self.location, severity=severity, help=help)
        self.walk.report(finding, when_run=when_run)
        return finding

    def _help(self, code: str, message: str) -> str | None:
        """Return advice about this node; None if the advice of the code is enough."""
        if code == "SG212":
            return _HOW_TO_FIT
        if self.form is not None:
            return f"{self.form.sentence(self.opset)}. {self.form.help}"
        return advise(self.node, message) if code == "SG302" else None

    def tolerate(self, code: str, message: str, run_by: str, reading: str = "alike") -> None:
        """Warn about something that the specification forbids, but that some engines run, all in one way. run_by: the
        names of these engines. reading: how they run it.
        """
        text = f"{message}. The node runs {reading} in {run_by}; other runtimes may refuse it"
        self.walk.detail.tolerated.append(self.find(code, text, severity="warning"))

    def set_contents(self, index: int, contents: Contents | None) -> None:
        """State the elements of an output."""
        if contents is not None and len(contents.shape) <= MAX_RANK:
            self.contents_out[index] = contents

    def set_sequence(self, index: int, info: SequenceInfo) -> None:
        """State what is known of a sequence output."""
        self.sequences_out[index] = info

    # Bodies ----------------------------------------------------------------------------------------------------------

    def walk_body(
        self,
        attribute: str,
        inputs: Sequence[ValueType | None],
        empty: Iterable[int] = (),
        elements: Sequence[Contents | None] = (),
    ) -> Body | None:
        """Return what is inferred of the graph in an attribute; None if the attribute is no graph, or is nested too
        deep. What the graph requires of symbols stays within it, because it may not run.

        inputs: the types of its inputs. empty: the positions of inputs that are empty sequences. elements: the known
        elements of the inputs.
        """
        graph = self.attribute(attribute)
        if not isinstance(graph, GraphProto) or not self.walk.may_look_into(self.location):
            return None
        body = self.walk.inner(self.index, attribute, 0, f"{self.location}/{attribute}")
        define_graph_values(body, graph, inputs)
        for position in empty:
            body.sequences[graph.input[position].name] = SequenceInfo(0, ())
        for value, contents in zip(graph.input, elements, strict=False):
            if contents is not None:
                body.constants[value.name] = contents
        body.run(graph.node)
        for value in graph.output:
            if not body.is_defined(value.name):
                self.find("SG105", f"nothing in the {attribute} defines its output {value.name!r}")
        names = [value.name for value in graph.output]
        # Only the facts of the body simplify its dimensions, and the graph around the body does not have these facts.
        types = [with_dims(body.type_of(name), body.facts.simplify) for name in names]
        given = [body.type_of(value.name) for value in graph.input]
        return Body(types, [body.contents_of(name) for name in names], given, body.facts)

    def is_call(self, node: NodeProto) -> bool:
        """Return True if a node calls a function of the model."""
        return called_function(node) in self.walk.state.task.functions

    @property
    def is_quiet(self) -> bool:
        """True if findings are not reported here."""
        return self.walk.state.record.quiet > 0

    def quietly(self) -> AbstractContextManager[None]:
        """Report no findings within the context: a body is walked only until its types settle."""
        return self.walk.state.record.quietly()

    def muted(self, never_runs: bool) -> AbstractContextManager[None]:
        """Mark findings within the context as never running, if `never_runs`."""
        return self.walk.state.record.muting(never_runs)

    @property
    def branches(self) -> OpenBranches:
        """The findings in bodies that may not run."""
        return self.walk.state.record.branches

    def avoid(self, findings: Sequence[Diagnostic]) -> None:
        """Record the errors of a body as avoidable: another branch has none."""
        self.walk.state.record.avoid(findings)

    def release(self, findings: Sequence[Diagnostic]) -> None:
        """Report findings that were held back (`OpenBranches.hold`)."""
        self.walk.state.record.release(findings)


# A rule gives the types of the node's outputs in order (fewer than the node has: the rest is unknown), or None to leave
# the node to onnx's own per-node inference.
Rule = Callable[[NodeContext], "Sequence[ValueType] | None"]

__all__ = ["FOREIGN_RULES", "RULES", "Body", "NodeContext", "Rule", "SequenceInfo", "rule", "rule_of"]

# The rules of ai.onnx by operator type; those of other domains by domain and operator type.
RULES: dict[str, Rule] = {}
FOREIGN_RULES: dict[tuple[str, str], Rule] = {}


def rule(*op_types: str, domain: str = "") -> Callable[[Rule], Rule]:
    """Register a function as the rule of these operators of ai.onnx, or of another domain."""

    def register(function: Rule) -> Rule:
        for op_type in op_types:
            if rule_of(domain, op_type) is not None:
                raise ValueError(f"two rules for {domain}::{op_type}")
            if domain == "":
                RULES[op_type] = function
            else:
                FOREIGN_RULES[domain, op_type] = function
        return function

    return register


def rule_of(domain: str, op_type: str) -> Rule | None:
    """Return the rule of an operator; None if there is none."""
    return RULES.get(op_type) if domain == "" else FOREIGN_RULES.get((domain, op_type))
