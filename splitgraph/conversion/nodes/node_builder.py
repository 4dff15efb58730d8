"""The builder: it writes the nodes that one node needs, with names that are new in every scope of the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from splitgraph.onnx_proto import AttributeProto

# The attribute of a Constant that can refer to an attribute of the enclosing function, by the type of that attribute.
_CONSTANT_ATTRIBUTES: Mapping[int, str] = {
    AttributeProto.INT: "value_int",
    AttributeProto.INTS: "value_ints",
    AttributeProto.FLOAT: "value_float",
}


class NodeBuilder(ABC):
    """Writes nodes for one node of the model; a subclass says how it keeps them and which names they get.

    Splits, repairs and loops write messages at once (`Emission`). Adapters write forms, which go on climbing
    (`AdapterContext`).
    """

    __slots__ = ()

    @abstractmethod
    def new_name(self, hint: str) -> str:
        """A name that is new in every scope of the model and begins with the name of the node."""

    @abstractmethod
    def add(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], hint: str, attributes: Mapping[str, Any]
    ) -> None:
        """Keep a node. Attributes of None are left out."""

    def emit(self, op_type: str, inputs: Sequence[str], hint: str, **attributes: Any) -> str:
        """Write a node with one output; returns the name of the output."""
        output = self.new_name(hint)
        self.add(op_type, inputs, [output], hint, attributes)
        return output

    def emit_many(self, op_type: str, inputs: Sequence[str], hints: Sequence[str], **attributes: Any) -> list[str]:
        """Write a node with several outputs; returns their names."""
        outputs = [self.new_name(hint) for hint in hints]
        self.add(op_type, inputs, outputs, hints[0], attributes)
        return outputs

    def refer(self, attribute: str, kind: int, hint: str) -> str:
        """The name of a constant with the value of an attribute of the enclosing function, of the type `kind`."""
        return self.emit("Constant", [], hint, **{_CONSTANT_ATTRIBUTES[kind]: reference(attribute, kind)})


def obstacle_to_reference(kind: int, opset: int, *, is_given: bool) -> str:
    """Why a Constant at an opset cannot refer to an attribute of the enclosing function; "" where it can. kind: its
    type. is_given: whether the attribute has a value in every call.
    """
    if kind not in _CONSTANT_ATTRIBUTES:
        return "Constant cannot refer to one of its type"
    if opset >= 12 and is_given:
        return ""
    return f"Constant cannot refer to one {'below opset 12' if opset < 12 else 'that a call leaves out'}"


def reference(attribute: str, kind: int) -> AttributeProto:
    """The value of an attribute that refers to an attribute of the enclosing function."""
    return AttributeProto(type=AttributeProto.AttributeType.Name(kind), ref_attr_name=attribute)
