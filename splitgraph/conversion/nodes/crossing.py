"""A node on its way across one place where its operator changed: what is known of it, and what must be edited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from splitgraph.attribute_values import UNRESOLVED, attribute_value
from splitgraph.node_making import make_attribute
from splitgraph.onnx_proto import AttributeProto, NodeProto
from splitgraph.schemas import OperatorVersion

if TYPE_CHECKING:
    from splitgraph.value_type import Shape


Predicate = Callable[["Crossing"], bool]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What the conversion knows of a node of ai.onnx.

    source, target: opset versions of ai.onnx, either may be the greater. Lists go by position; what they do not reach
    is unknown. input_dtypes, output_dtypes: numpy-style names (of a sequence or optional: of its tensors), None when
    unknown or omitted. input_kinds, output_kinds: "tensor", "sequence", "optional" or None. input_shapes: None when of
    unknown rank; unknown dimensions are None.
    """

    node: NodeProto
    source: int
    target: int
    input_dtypes: Sequence[str | None]
    output_dtypes: Sequence[str | None]
    location: str
    in_function: bool
    input_kinds: Sequence[str | None]
    input_shapes: Sequence[Shape | None]
    output_kinds: Sequence[str | None]
    # What was taken for granted of element types that are unknown, in words; shared by the nodes of a graph.
    assumptions: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class Crossing:
    """A node with the attributes that it has by now, on its way from one version of its operator to the next.

    upward: from `lower` to `upper`, or back. The attributes change from crossing to crossing; the node is never
    edited. reasons: why each attribute that was edited was. same_defaults: attributes whose defaults differ in
    spelling only.
    """

    facts: NodeFacts
    upward: bool
    lower: OperatorVersion
    upper: OperatorVersion
    attributes: dict[str, AttributeProto]
    reasons: dict[str, str]
    same_defaults: set[str] = field(default_factory=set)

    @property
    def old(self) -> OperatorVersion:
        """The version that the node comes from."""
        return self.lower if self.upward else self.upper

    @property
    def new(self) -> OperatorVersion:
        """The version that the node goes to."""
        return self.upper if self.upward else self.lower

    @property
    def side(self) -> str:
        """Where the new version holds, in words."""
        return f"from opset {self.upper.since_version} on" if self.upward else f"below opset {self.upper.since_version}"

    # Attributes ------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """True when the node has the attribute."""
        return name in self.attributes

    def value(self, name: str, absent: Any = None) -> Any:
        """The attribute's value, `absent` without it, UNRESOLVED when it refers to an attribute of the function."""
        attribute = self.attributes.get(name)
        if attribute is None:
            return absent
        return UNRESOLVED if attribute.ref_attr_name else attribute_value(attribute)

    def value_or_default(self, name: str) -> Any:
        """The attribute's value; where the node omits it, the default of the version that the node comes from.

        UNRESOLVED when the attribute refers to an attribute of the function.
        """
        return self.value(name, self.old.attributes[name].default_value)

    def is_set(self, name: str) -> bool:
        """True when an integer attribute is known and not 0."""
        value = self.value(name, 0)
        return value is not UNRESOLVED and value != 0

    def set(self, name: str, value: Any, why: str) -> None:
        """Gives the attribute a value: int, float, str, bytes, TensorProto or a non-empty sequence of them."""
        self.attributes[name] = make_attribute(name, value)
        self.reasons[name] = why

    def set_default(self, name: str, default: AttributeProto, why: str) -> None:
        """Writes a default out."""
        self.set(name, attribute_value(default), why)

    def drop(self, *names: str, why: str) -> None:
        """Removes attributes that the node has."""
        for name in names:
            if self.attributes.pop(name, None) is not None:
                self.reasons[name] = why

    def accept_default(self, *names: str) -> None:
        """Says that leaving these attributes out means the same on both sides, though the schemas' defaults differ."""
        self.same_defaults.update(names)

    # Inputs and outputs ----------------------------------------------------------------------------------------

    def uses_input(self, index: int) -> bool:
        """True when the node has an input at this position."""
        inputs = self.facts.node.input
        return index < len(inputs) and inputs[index] != ""

    def uses_output(self, index: int) -> bool:
        """True when the node has an output at this position."""
        outputs = self.facts.node.output
        return index < len(outputs) and outputs[index] != ""

    def dtype(self, index: int) -> str | None:
        """Element type of an input, None when unknown."""
        dtypes = self.facts.input_dtypes
        return dtypes[index] if index < len(dtypes) else None

    def shape(self, index: int) -> Shape | None:
        """Shape of an input, None when unknown."""
        shapes = self.facts.input_shapes
        return shapes[index] if index < len(shapes) else None

    def rank(self, index: int) -> int | None:
        """Rank of an input, None when unknown."""
        shape = self.shape(index)
        return None if shape is None else len(shape)

    def shapes_are_equal(self) -> bool:
        """True when all inputs are known to have the same shape."""
        shapes = [self.shape(index) for index in range(len(self.facts.node.input))]
        first = shapes[0] if shapes else None
        return first is not None and None not in first and all(shape == first for shape in shapes)
