"""What an inference rule sees of a node, and how it says what the node gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from splitgraph.contents import Contents, SequenceInfo
from splitgraph.diagnostics import Severity, diagnostic
from splitgraph.dim import Dim, DimLike, Facts, Obligation
from splitgraph.graph.attributes import UNRESOLVED, attribute_value
from splitgraph.graph.scopes import node_label
from splitgraph.inference.known import OMITTED, Known
from splitgraph.onnx_proto import AttributeProto, NodeProto
from splitgraph.value_type import UNKNOWN, ValueType

if TYPE_CHECKING:
    from splitgraph.inference.state import SplitDetail
    from splitgraph.inference.walk import Walk


Relation = Literal["==", ">="]


class NodeContext:
    """One node during inference: its inputs as known so far, its attributes, and the place for what it gives.

    `inputs` holds a ValueType for each input, None for an omitted one (""); `given` all that is known of each. `split`
    is what a split node turned out to be. `since_version` is the operator version
    that the opset import selects. Attributes that refer to an attribute of an enclosing function are resolved, or come
    back as UNRESOLVED.
    """

    __slots__ = (
        "_attributes",
        "contents_out",
        "errors",
        "given",
        "index",
        "inputs",
        "node",
        "obligations",
        "opset",
        "sequences_out",
        "since_version",
        "split",
        "walk",
    )

    def __init__(
        self, walk: Walk, node: NodeProto, opset: int, since_version: int, index: int, given: list[Known]
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
        self._attributes: Mapping[str, AttributeProto] | None = None

    @property
    def location(self) -> str:
        """Where the node is, as people read it."""
        return f"{self.walk.location}/{node_label(self.node, self.index)}"

    @property
    def facts(self) -> Facts:
        """What is known of the symbols in this scope."""
        return self.walk.facts

    @property
    def outputs(self) -> Sequence[str]:
        """Names of the outputs, "" for an omitted one."""
        return self.node.output

    @property
    def input_count(self) -> int:
        """How many inputs the node lists, omitted ones included."""
        return len(self.given)

    @property
    def empty_chunks(self) -> str:
        """What num_outputs chunks that overrun the dimension are: "clamp" or "error"."""
        return self.walk.state.empty_chunks

    def attribute_names(self) -> Iterable[str]:
        """Names of the attributes that the node has."""
        return self.attributes().keys()

    def refine_input(self, index: int, contents: Contents) -> None:
        """Say what an input must hold for the node to be valid; holds for the rest of this graph."""
        self.given[index] = self.walk.refine(self.node.input[index], contents)

    def input(self, index: int) -> ValueType:
        """The type of an input; UNKNOWN when omitted or beyond the last."""
        return (self.inputs[index] or UNKNOWN) if index < len(self.inputs) else UNKNOWN

    def has_input(self, index: int) -> bool:
        """True when the input is given: not beyond the last, and not omitted by an empty name."""
        return index < len(self.given) and self.given[index] is not OMITTED

    def contents(self, index: int) -> Contents | None:
        """What is known of the elements of an input; None when nothing is, or when it is omitted."""
        if index >= len(self.given):
            return None
        known = self.given[index]
        if known.unread:
            known = self.given[index] = self.walk.read(self.node.input[index])
        return known.contents

    def sequence(self, index: int) -> SequenceInfo | None:
        """What is known of an input that is a sequence."""
        return self.given[index].sequence if index < len(self.given) else None

    def attributes(self) -> Mapping[str, AttributeProto]:
        """The node's attributes by name, as written."""
        if self._attributes is None:
            self._attributes = {attribute.name: attribute for attribute in self.node.attribute}
        return self._attributes

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute as int, float, str, tuple, TensorProto or GraphProto; `default` when absent; UNRESOLVED for a
        reference to an attribute of a function whose caller is not known.
        """
        if self.is_unbound(name):
            return UNRESOLVED
        written = self.attributes().get(name)
        given = None if written is None else self.bound(written)
        return default if given is None else attribute_value(given)

    def bound(self, written: AttributeProto) -> AttributeProto | None:
        """An attribute of the node, or what the caller of the function gives where it refers to one of the function;
        None where the caller is not known, or gives nothing.
        """
        if not written.ref_attr_name:
            return written
        return (self.walk.bindings or {}).get(written.ref_attr_name)

    def is_unbound(self, name: str) -> bool:
        """True for an attribute that refers to an attribute of a function whose caller is not known."""
        written = self.attributes().get(name) if self.walk.bindings is None else None
        return written is not None and bool(written.ref_attr_name)

    def has_attribute(self, name: str) -> bool:
        """True when the attribute is given, be it by the caller of a function."""
        written, bound = self.attributes().get(name), self.walk.bindings
        if written is None or not written.ref_attr_name:
            return written is not None
        return bound is None or written.ref_attr_name in bound

    def fresh(self) -> Dim:
        """A new generated symbol: a dimension of which nothing is known but that it is one and the same wherever it
        stands.
        """
        return self.walk.fresh()

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
        held = self.walk.require(Obligation(lhs, relation, rhs), self.location, code, message, self.obligations)
        if not held:
            self.errors.append(code)
        return held

    def require_if_possible(self, lhs: DimLike, relation: Relation, rhs: DimLike) -> bool:
        """As `require`, but no finding when nothing can satisfy it: the node then means something else."""
        return self.walk.assume(Obligation(lhs, relation, rhs), self.location, self.obligations) != "contradiction"

    def find(self, code: str, message: str, *, severity: Severity = "error") -> None:
        """Report a finding about this node."""
        if severity == "error":
            self.errors.append(code)
        self.walk.report(diagnostic(code, message, self.location, severity=severity))

    def set_contents(self, index: int, contents: Contents | None) -> None:
        """Say what an output holds."""
        if contents is not None:
            self.contents_out[index] = contents

    def set_sequence(self, index: int, info: SequenceInfo) -> None:
        """Say what an output that is a sequence holds."""
        self.sequences_out[index] = info


# A rule gives the types of the node's outputs in order (fewer than the node has: the rest is unknown), or None to leave
# the node to onnx's own per-node inference.
Rule = Callable[[NodeContext], "Sequence[ValueType] | None"]

__all__ = ["FOREIGN_RULES", "RULES", "NodeContext", "Rule", "SequenceInfo", "rule", "rule_of"]

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
