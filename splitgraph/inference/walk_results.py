"""The results of the walk over each graph, for reports and for conversion: types, split nodes, and equal nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from splitgraph.dim import DimLike, Facts, Obligation
from splitgraph.findings.diagnostics import Diagnostic, Severity
from splitgraph.inference.memo import Knowledge
from splitgraph.model.onnx_proto import AttributeProto, TensorProto
from splitgraph.model.scopes import GraphPath
from splitgraph.model.value_type import Contents, ValueType
from splitgraph.splits import Variant
from splitgraph.splits.canonical import CanonicalSplit
from splitgraph.splits.variant import WrittenSplit

# By the location of each node that is set aside, the codes of its accepted findings.
SetAside = Mapping[str, frozenset[str]]
# A node: the graph that it is in, and its index there.
NodePlace = tuple[GraphPath, int]


class Form(NamedTuple):
    """The form of a node that does not fit its own version. opset: that of the version whose form it is, which is also
    the version. label: the version. text: what shows the form, as a clause.
    """

    opset: int
    label: str
    text: str

    def sentence(self, opset: int) -> str:
        """Return the sentence for a finding about the node of a graph at an opset."""
        return f"{self.label} {self.text}; this model is at {opset}"

    def adds_to(self, message: str) -> bool:
        """Return True if a message needs the sentence: it names no other version, and no type."""
        return not message.endswith((f"{self.label} has it", "has the wrong type"))

    @property
    def help(self) -> str:
        """Advice that a conversion can follow."""
        return (
            f"Correct the node. If it was written for {self.label}, convert the model with --read-by-form (Python: "
            "read_by_form=True), which reads it so; upgrade, downgrade and reshape have the option, too."
        )


@dataclass(frozen=True, slots=True)
class SplitDetail:
    """What conversion needs to know about a split node.

    variant: the operator version. split: the canonical form, None when the node is invalid. data: the type of the split
    tensor. divisible: the dimension is proved to be a multiple of the number of parts. errors: codes of the errors
    found at the node. lengths_dtype: element type of the lengths input. rest_possible: one length may be -1
    (VariadicSplit). lengths_counted: the lengths input has a known size, so that the number of lengths does not only
    follow from the outputs. written: what the node says where there is no canonical form; only reports show it.
    """

    variant: Variant
    split: CanonicalSplit | None
    data: ValueType
    divisible: bool
    errors: tuple[str, ...] = ()
    lengths_dtype: str | None = None
    rest_possible: bool = False
    lengths_counted: bool = True
    written: WrittenSplit | None = None

    @property
    def lengths(self) -> tuple[DimLike, ...]:
        """The length of each part; empty if their number is unknown."""
        return () if self.split is None else self.split.lengths or ()

    @property
    def shown(self) -> WrittenSplit:
        """Axis and lengths for reports: of the canonical form, or as written."""
        if self.split is None:
            return self.written or WrittenSplit(None, ())
        return WrittenSplit(self.split.axis, self.lengths)


class FoundSplit(NamedTuple):
    """A split node with the internal names of symbols.

    outputs: the types of the outputs. obligations: those that this node required first. facts: what is known of the
    symbols in the node's graph. branch: the innermost body around the node, as in `Requirement`.
    """

    name: str
    location: str
    input_name: str
    output_names: tuple[str, ...]
    detail: SplitDetail
    outputs: Sequence[ValueType]
    obligations: tuple[Obligation, ...]
    facts: Facts
    branch: str


class Visit:
    """The result of inferring a node: what is known of each output, and the details of a split node.

    only: what is known of the only output, unless it is a sequence or a part of a split. content: the elements of that
    output, or its TensorProto while nobody has read the elements.
    """

    __slots__ = ("content", "only", "outputs", "split", "types")

    def __init__(
        self,
        outputs: Sequence[Knowledge],
        types: Sequence[ValueType],
        split: SplitDetail | None,
        content: Contents | TensorProto | None = None,
    ) -> None:
        self.outputs = outputs
        self.types = types
        self.split = split
        alone = len(outputs) == 1 and split is None and outputs[0].sequence is None
        self.only = outputs[0] if alone else None
        self.content = outputs[0].contents if alone and content is None else content


class Repair(NamedTuple):
    """The repair of a node: attributes to remove, one to add or to set, and the number of outputs to add at the end.
    what: the text of the finding. The finding is an error if the node lacks an attribute or has a wrong one, and a
    warning if it has one too many or lacks outputs; rewriting repairs each. help: what to do, if the code does not say
    so.
    """

    code: str
    what: str
    dropped: tuple[str, ...] = ()
    added: AttributeProto | None = None
    help: str | None = None
    more_outputs: int = 0

    @property
    def severity(self) -> Severity:
        return "warning" if self.added is None else "error"


@dataclass(slots=True)
class GraphDetail:
    """The results for one graph as written: types of values, elements of constants, split nodes by index, and the known
    positions that SequenceAt nodes read, by index.

    visits: the visit of each walked node; equal nodes (same operator, attributes, and knowledge of inputs and outputs)
    share one object. None for a node without an equal one. having_bodies: indices of the nodes whose attributes hold
    graphs. repairs: by index, the repairs of nodes that have only one reading. lenient: by index, the warnings about
    nodes with element types that only the schema forbids. tolerated: the warnings about all else that engines run and
    the specification forbids. unnamed: indices of nodes with an output without a name that is not optional. unread:
    indices of nodes of which nothing was read, as their inputs, outputs or attributes fit no version, or as a finding
    about them is accepted. forms: by index, whose form nodes have that were read by their form.
    """

    types: dict[str, ValueType] = field(default_factory=dict)
    constants: dict[str, Contents | TensorProto] = field(default_factory=dict)
    splits: dict[int, SplitDetail] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    visits: list[Visit | None] = field(default_factory=list)
    having_bodies: list[int] = field(default_factory=list)
    repairs: dict[int, list[Repair]] = field(default_factory=dict)
    lenient: dict[int, Diagnostic] = field(default_factory=dict)
    tolerated: list[Diagnostic] = field(default_factory=list)
    unnamed: list[int] = field(default_factory=list)
    unread: set[int] = field(default_factory=set)
    forms: dict[int, Form] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One call of a model-local function: the types of its inputs."""

    inputs: tuple[ValueType | None, ...]
