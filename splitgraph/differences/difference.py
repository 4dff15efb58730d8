"""The result of a comparison of two models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.model.value_type import ValueType

Kind = Literal["added", "removed", "changed"]
Part = Literal[
    "opset",
    "IR version",
    "input",
    "output",
    "order of inputs",
    "order of outputs",
    "initializer",
    "function",
    "metadata",
    "quantization",
    "training",
]
Aspect = Literal["operator", "domain", "version", "attributes", "inputs", "outputs", "name", "metadata"]


@dataclass(frozen=True, slots=True)
class PartDifference:
    """A part of a model, apart from nodes and inner values, that differs.

    part: the kind of part. location: its graph or function, "" for the model itself. name: the domain of an opset (of
    an IR, the layer), the key of metadata, or the name of a value or function; "" where there is only one such part.
    kind: "added" | "removed" | "changed". before, after: the part as text, None where it does not exist. The texts are
    equal if only elements of a large tensor differ.
    """

    part: Part
    location: str
    name: str
    kind: Kind
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class NodeForm:
    """A node in one of the models.

    location: graph, subgraphs and node ("main/encoder/Split_4"). name: "" where it has none. operator: with its
    version ("Split-13"). is_split: of the split family. inputs, outputs: the names of its values. attributes: each
    value as text, by name; long ones abridged, graphs as "graph".
    """

    location: str
    name: str
    operator: str
    is_split: bool
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodeDifference:
    """A node that was added, removed or changed.

    location: in the second model; of a removed node in the first. kind: "added" | "removed" | "changed". before, after:
    the node in each model, None where it does not exist. aspects: of a changed node, what differs. attributes: of a
    changed node, the names of those that differ. inputs: of a changed node, the positions of those that differ; the
    same value under another name is no difference. others: locations in the other model of further nodes that produce
    values of these names: a split that became several slices has them here.
    """

    location: str
    kind: Kind
    before: NodeForm | None
    after: NodeForm | None
    aspects: tuple[Aspect, ...] = ()
    attributes: tuple[str, ...] = ()
    inputs: tuple[int, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def is_split(self) -> bool:
        """True if the node is of the split family in one of the models."""
        return any(form is not None and form.is_split for form in (self.before, self.after))

    @property
    def only_version(self) -> bool:
        """True if only the version of the operator differs, because the model has another opset."""
        return self.aspects == ("version",)

    @property
    def only_names(self) -> bool:
        """True if the node does the same, perhaps by another version of its operator: only names and notes differ."""
        return bool(self.aspects) and {"version", "name", "outputs", "metadata"}.issuperset(self.aspects)


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """A value that exists in only one of the models, or that has another type.

    location: of its graph, in the second model where it exists there. name: of the value, likewise. kind: "added" |
    "removed" | "changed". before, after: its type in each model, None where it does not exist. old_name: its name in
    the first model, if that differs.
    """

    location: str
    name: str
    kind: Kind
    before: ValueType | None
    after: ValueType | None
    old_name: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class ModelDifference:
    """What differs between two models; false where nothing does.

    parts: of the model: opsets, inputs and outputs, initializers, functions, metadata. nodes: in graph order, subgraphs
    and functions included. values: of the main graph and of subgraphs; initializers are parts. new_findings,
    gone_findings: findings of only the second or only the first model. before_opset, after_opset: imported version of
    each domain. before_nodes, after_nodes: the number of nodes, in all graphs. moved: the location in the second model
    of each node whose location is another one there, by its location in the first; that alone is no difference.

    Not compared: the order of nodes, names of graphs, declared types of inner values (the inferred ones are), texts of
    documentation, and how weights are stored. A value with a new name is a difference of the node that produces it, not
    of its readers.
    """

    parts: tuple[PartDifference, ...] = ()
    nodes: tuple[NodeDifference, ...] = ()
    values: tuple[ValueDifference, ...] = ()
    new_findings: tuple[Diagnostic, ...] = ()
    gone_findings: tuple[Diagnostic, ...] = ()
    before_opset: Mapping[str, int] = field(default_factory=dict)
    after_opset: Mapping[str, int] = field(default_factory=dict)
    before_nodes: int = 0
    after_nodes: int = 0
    moved: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return what a notebook shows: how much differs."""
        numbers = {"parts": self.parts, "nodes": self.nodes, "values": self.values, "new findings": self.new_findings}
        told = [f"{len(found):,} {name}" for name, found in {**numbers, "gone findings": self.gone_findings}.items()]
        return f"<ModelDifference: {', '.join(told)}>"

    @property
    def is_empty(self) -> bool:
        """True if nothing differs."""
        return not (self.parts or self.nodes or self.values or self.new_findings or self.gone_findings)

    def __bool__(self) -> bool:
        return not self.is_empty
