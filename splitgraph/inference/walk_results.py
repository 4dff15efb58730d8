"""What the walk finds in each graph, for reports and for conversion: types, split nodes, and nodes that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from splitgraph.canonical import CanonicalSplit
from splitgraph.contents import Contents
from splitgraph.dim import DimLike, Facts, Obligation
from splitgraph.inference.knowledge import Knowledge
from splitgraph.inference.repairs import Repair
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import ValueType
from splitgraph.variants import Variant


@dataclass(frozen=True, slots=True)
class SplitDetail:
    """What conversion needs of a split node.

    variant: its operator version. split: its canonical form, None when invalid. data: type of what is split. divisible:
    the dimension is proved to be a multiple of the number of parts. errors: codes of the errors found at it.
    lengths_dtype: element type of its lengths input. rest_possible: one of its lengths may be -1 (VariadicSplit).
    lengths_counted: the number of lengths is told by the input that holds them, and not only by the number of outputs.
    """

    variant: Variant
    split: CanonicalSplit | None
    data: ValueType
    divisible: bool
    errors: tuple[str, ...] = ()
    lengths_dtype: str | None = None
    rest_possible: bool = False
    lengths_counted: bool = True

    @property
    def lengths(self) -> tuple[DimLike, ...]:
        """Length of each part; empty when their number is unknown."""
        return () if self.split is None else self.split.lengths or ()


class FoundSplit(NamedTuple):
    """A split node of a model in internal names.

    outputs: types of those that the operator gives. obligations: what the node was the first to require. facts: what is
    known of the symbols in its graph.
    """

    name: str
    location: str
    input_name: str
    output_names: tuple[str, ...]
    detail: SplitDetail
    outputs: Sequence[ValueType]
    obligations: tuple[Obligation, ...]
    facts: Facts


class Visit:
    """What visiting a node gave: what is known of each output, and for a split node what is kept of it.

    index: of the node in its graph. only: what is known of the only output, where that is a tensor and no part of a
    split. content: the elements of that, a tensor where nobody has asked for them yet.
    """

    __slots__ = ("content", "index", "only", "outputs", "split", "types")

    def __init__(
        self,
        index: int,
        outputs: Sequence[Knowledge],
        types: Sequence[ValueType],
        split: SplitDetail | None,
        content: Contents | TensorProto | None = None,
    ) -> None:
        self.index = index
        self.outputs = outputs
        self.types = types
        self.split = split
        alone = len(outputs) == 1 and split is None and outputs[0].sequence is None
        self.only = outputs[0] if alone else None
        self.content = outputs[0].contents if alone and content is None else content


@dataclass(slots=True)
class GraphDetail:
    """What was inferred of one graph as written: the types of its values, the elements of its constants, its split
    nodes by index, and by index the positions at which SequenceAt nodes read, where known.

    visits: for each node that walk has come to, what nodes of the same operator, attributes, and inputs and outputs of
    which the same is known have in common: one object. None for a node that is like no other. having_bodies: the nodes
    among them whose attributes hold graphs, by index. repairs: of nodes that have one reading only, by index.
    """

    types: dict[str, ValueType] = field(default_factory=dict)
    constants: dict[str, Contents | TensorProto] = field(default_factory=dict)
    splits: dict[int, SplitDetail] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    visits: list[Visit | None] = field(default_factory=list)
    having_bodies: list[int] = field(default_factory=list)
    repairs: dict[int, list[Repair]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One call of a model-local function: the types of its inputs."""

    inputs: tuple[ValueType | None, ...]
