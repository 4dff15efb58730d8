"""What the conversion of each node of one graph has in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from splitgraph.conversion.nodes.crossing import NodeFacts
from splitgraph.conversion.nodes.known_values import KnownValues
from splitgraph.conversion.nodes.node import Node
from splitgraph.onnx_proto import NodeProto
from splitgraph.value_type import ValueType


@dataclass(slots=True)
class GraphContext:
    """One graph that goes from opset `source` to opset `target` of ai.onnx.

    values: what is known of its values. is_read: whether a node or an output of the model reads a value.
    assumptions: sentences about element types that are unknown and were assumed.
    """

    source: int
    target: int
    values: KnownValues
    in_function: bool
    is_read: Callable[[str], bool]
    assumptions: dict[str, None] = field(default_factory=dict)

    def facts(self, form: Node, node: NodeProto, at: int, location: str) -> NodeFacts:
        """The facts about a node in the form that it has at opset `at`."""
        type_of = self.values.type_of
        inputs = [type_of(name) for name in form.inputs]
        outputs = [type_of(name) for name in form.outputs]
        return NodeFacts(
            node=node,
            source=at,
            target=self.target,
            input_dtypes=[value.dtype for value in inputs],
            output_dtypes=[value.dtype for value in outputs],
            location=location,
            in_function=self.in_function,
            input_kinds=[_known_kind(value) for value in inputs],
            input_shapes=[value.shape for value in inputs],
            output_kinds=[_known_kind(value) for value in outputs],
            assumptions=self.assumptions,
        )


def _known_kind(value: ValueType) -> str | None:
    return None if value.kind == "unknown" else value.kind
