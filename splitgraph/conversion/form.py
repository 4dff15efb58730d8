"""A node on its way between opsets: what it is by now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import onnx
from onnx import helper


@dataclass(slots=True)
class Form:
    """A node of ai.onnx as it stands between two opsets.

    original: the node of the model that this is a form of, None for one that conversion added. What the form does not
    hold (documentation, metadata, fields that nobody knows) stays with the original, which is edited in place.
    """

    op_type: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, onnx.AttributeProto] = field(default_factory=dict)
    original: onnx.NodeProto | None = None
    name: str = ""

    @classmethod
    def of(cls, node: onnx.NodeProto) -> Form:
        """The form in which a node of the model begins."""
        attributes = {attribute.name: attribute for attribute in node.attribute}
        return cls(node.op_type, list(node.input), list(node.output), attributes, node, node.name)

    @property
    def is_edited(self) -> bool:
        """True when the form is not, or no longer, as the model has it."""
        node = self.original
        if node is None or node.op_type != self.op_type or len(node.attribute) != len(self.attributes):
            return True
        if list(node.input) != self.inputs or list(node.output) != self.outputs:
            return True
        return any(self.attributes.get(attribute.name) != attribute for attribute in node.attribute)

    def node(self) -> onnx.NodeProto:
        """The form as a node; the original itself where it is one still."""
        if self.original is not None and not self.is_edited:
            return self.original
        node = helper.make_node(self.op_type, self.inputs, self.outputs, name=self.name)
        node.attribute.extend(self.attributes.values())
        return node


def added(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str, attributes: dict[str, object]
) -> Form:
    """The form of a node that conversion adds; attributes of value None are left out."""
    made = {key: helper.make_attribute(key, value) for key, value in attributes.items() if value is not None}
    return Form(op_type, list(inputs), list(outputs), made, None, name)
