"""The interface between inference rules and the walk: what a rule reads of a node, and how it states the outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from splitgraph.contents import Contents, SequenceInfo
from splitgraph.diagnostics import Diagnostic, Severity
from splitgraph.dim import Dim, DimLike, Facts
from splitgraph.inference.open_branches import OpenBranches
from splitgraph.onnx_proto import AttributeProto, NodeProto
from splitgraph.value_type import ValueType

Relation = Literal["==", ">="]


@dataclass(frozen=True, slots=True)
class Body:
    """The results of walking a body: types and contents of its outputs, and the types of its inputs."""

    types: list[ValueType]
    contents: list[Contents | None]
    given: list[ValueType]


class NodeContext(Protocol):
    """One node as its rule sees it: what is known of its inputs, its attributes, and methods to state its outputs.

    A rule may depend on this interface and on nothing else: the memo of visits compares nodes by it (`memo.py`).
    Names and the location are for messages.

    node: as written. opset: the version of the operator's domain that the graph imports. since_version: the operator
    version that this selects. inputs: the type of each, None for an omitted one ("").
    """

    node: NodeProto
    opset: int
    since_version: int
    inputs: list[ValueType | None]

    @property
    def ir_version(self) -> int:
        """The IR version of the model."""

    @property
    def location(self) -> str:
        """Where the node is, as people read it."""

    @property
    def facts(self) -> Facts:
        """What is known of the symbols in this scope."""

    @property
    def empty_chunks(self) -> str:
        """What num_outputs chunks that overrun the dimension are: "clamp" or "error"."""

    # Inputs ----------------------------------------------------------------------------------------------------------

    @property
    def input_count(self) -> int:
        """How many inputs the node lists, omitted ones included."""

    def input(self, index: int) -> ValueType:
        """The type of an input; UNKNOWN when omitted or beyond the last."""

    def has_input(self, index: int) -> bool:
        """True when the input is given: not beyond the last, and not omitted by an empty name."""

    def contents(self, index: int, *, needed: bool = False) -> Contents | None:
        """What is known of the elements of an input; None when nothing is, or when it is omitted. needed: a dimension
        depends on them, so that floating-point numbers are computed, too (`computed_values.py`).
        """

    def sequence(self, index: int) -> SequenceInfo | None:
        """What is known of an input that is a sequence."""

    # Attributes: those that refer to an attribute of an enclosing function are resolved, or come back as UNRESOLVED --

    def attributes(self) -> Mapping[str, AttributeProto]:
        """The node's attributes by name, as written."""

    def attribute_names(self) -> Iterable[str]:
        """Names of the attributes that the node has."""

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute as int, float, str, tuple, TensorProto or GraphProto; `default` when absent; UNRESOLVED for a
        reference to an attribute of a function whose caller is not known.
        """

    def has_attribute(self, name: str) -> bool:
        """True when the attribute is given, be it by the caller of a function."""

    def is_unresolved(self, name: str) -> bool:
        """True for an attribute that refers to an attribute of a function whose caller is not known."""

    def bound(self, written: AttributeProto) -> AttributeProto | None:
        """An attribute of the node, or what the caller of the function gives where it refers to one of the function;
        None where the caller is not known, or gives nothing.
        """

    # Dimensions ------------------------------------------------------------------------------------------------------

    def fresh(self) -> Dim:
        """A new generated symbol: a dimension of which nothing is known but that it is one and the same wherever it
        stands.
        """

    def is_generated(self, dim: DimLike | None) -> bool:
        """True for a generated symbol that stands alone."""

    def is_of_inputs(self, dim: DimLike) -> bool:
        """True where the dimension is told by symbols that the model's inputs name."""

    def complete(self, value: ValueType) -> ValueType:
        """The type with a fresh symbol for each unknown dimension; not so for a sequence, whose elements may differ."""

    def require(
        self,
        lhs: DimLike,
        relation: Relation,
        rhs: DimLike,
        *,
        code: str = "SG302",
        message: str | Callable[[], str] | None = None,
    ) -> bool:
        """Record that `lhs == rhs` or `lhs >= rhs` must hold for the model to be valid; a finding when it never can.
        True unless so. message: of that finding, or what gives it.
        """

    def require_if_possible(self, lhs: DimLike, relation: Relation, rhs: DimLike) -> bool:
        """As `require`, but no finding when nothing can satisfy it: the node then means something else."""

    def larger_of(self, a: Dim, b: Dim) -> DimLike | None:
        """What two dimensions broadcast to where neither is empty, and an assumption of that; None where it is not
        taken for granted.
        """

    def is_nonempty(self, dim: Dim) -> bool:
        """True for a dimension that is at least 1, or that is assumed to be."""

    def broadcast_symbol(self, a: Dim, b: Dim) -> Dim | None:
        """The generated symbol that stands for the broadcast of two dimensions; None where there is none yet."""

    def note_broadcast(self, a: Dim, b: Dim, made: Dim) -> None:
        """Let a generated symbol stand for the broadcast of two dimensions from here on."""

    def broadcast_operands(self, dim: DimLike) -> tuple[Dim, Dim] | None:
        """The two dimensions whose broadcast a generated symbol stands for; None for anything else."""

    # What the node gives ---------------------------------------------------------------------------------------------

    @property
    def outputs(self) -> Sequence[str]:
        """Names of the outputs, "" for an omitted one."""

    def refine_input(self, index: int, contents: Contents) -> None:
        """Say what an input must hold for the node to be valid; holds for the rest of this graph."""

    def find(self, code: str, message: str, *, severity: Severity = "error") -> Diagnostic:
        """Report a finding about this node."""

    def tolerate(self, code: str, message: str, run_by: str, reading: str = "alike") -> None:
        """Report as a warning what the specification forbids and what engines run, all in one way. run_by: names of
        these engines. reading: how they run it.
        """

    def set_contents(self, index: int, contents: Contents | None) -> None:
        """Say what an output holds."""

    def set_sequence(self, index: int, info: SequenceInfo) -> None:
        """Say what an output that is a sequence holds."""

    # Bodies ----------------------------------------------------------------------------------------------------------

    def walk_body(
        self,
        attribute: str,
        inputs: Sequence[ValueType | None],
        empty: Iterable[int] = (),
        held: Sequence[Contents | None] = (),
    ) -> Body | None:
        """Infer the graph in an attribute with inputs of these types; what it requires of symbols stays within it, as
        it may not run. None where the attribute is no graph, or one that is nested too deep. empty: positions of inputs
        that are sequences without elements. held: what inputs hold.
        """

    def is_call(self, node: NodeProto) -> bool:
        """True for a node that calls a function of the model."""

    @property
    def is_quiet(self) -> bool:
        """True where nothing that is found is reported."""

    def quietly(self) -> AbstractContextManager[None]:
        """Report nothing that is found meanwhile: a body is walked only to see where it settles."""

    def muted(self, never_runs: bool) -> AbstractContextManager[None]:
        """Take what is found meanwhile for what no run can meet, where that is so."""

    @property
    def branches(self) -> OpenBranches:
        """What is found in bodies that may not run."""

    def avoid(self, found: Sequence[Diagnostic]) -> None:
        """Note that the errors of a body stand beside a way that is right."""

    def release(self, found: Sequence[Diagnostic]) -> None:
        """Report findings that were held back (`OpenBranches.hold`)."""


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
    """The rule of an operator, None when there is none."""
    return RULES.get(op_type) if domain == "" else FOREIGN_RULES.get((domain, op_type))
