"""The values that a body had: those of the first iterations of a Loop or a Scan, and of the first element of a
SequenceMap. What a node was given, and what its body computes, tell them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from splitgraph.model.scopes import subgraphs
from splitgraph.verification.regions.finding.bodies import BodyPair, state_count
from splitgraph.verification.values import Value

# So many iterations are looked at.
MOST_STEPS = 3


class BodyValues:
    """The values of the formal inputs of a body, step by step. given: the inputs of its node."""

    def __init__(self, body: BodyPair, given: Sequence[Value]) -> None:
        self._body, self._given = body, given
        self._op_type = body.node.op_type if body.attribute else ""
        self._states = state_count(body.node, len(body.inputs)) if body.attribute else 0
        self.step = 0
        self.inputs = self._first()

    @property
    def has_run(self) -> bool:
        """Return True if the body runs in this step with these values."""
        if self._op_type == "If":
            return bool(np.all(self._given[0])) == (self._body.attribute == "then_branch")
        if self._op_type == "Loop":
            count, condition = self._given[0], self.inputs[1] if self.inputs else None
            return (count is None or self.step < int(np.ravel(count)[0])) and bool(np.all(condition))
        return self.inputs is not None

    def next(self, outputs: Sequence[Value]) -> bool:
        """Take the next step, with what the body computed; return False if there is none."""
        self.step += 1
        if self.step >= MOST_STEPS or self._op_type not in ("Loop", "Scan") or self.inputs is None:
            return False
        numbers = self._body.outputs
        kept = list(self.inputs)
        if self._op_type == "Loop":
            kept[0] = np.full_like(kept[0], self.step)
            kept[1] = np.reshape(outputs[numbers[0] or 0], np.shape(kept[1]))
        shift = 1 if self._op_type == "Loop" else 0
        for place in range(self._states):
            number = numbers[place + shift]
            if number is not None:
                kept[place + 2 * shift] = outputs[number]
        if self._op_type == "Scan":
            scanned = self._slices(self.step)
            if scanned is None:
                return False
            kept[self._states :] = scanned
        self.inputs = kept
        return self.has_run

    def _first(self) -> list[Value] | None:
        given = list(self._given)
        if self._op_type == "If":
            return []
        if self._op_type == "Loop":
            shapes = self._counter_shapes()
            condition = True if given[1] is None else bool(np.all(given[1]))
            return [np.zeros(shapes[0], np.int64), np.full(shapes[1], condition), *given[2:]]
        if self._op_type == "Scan":
            scanned = self._slices(0)
            return None if scanned is None else [*given[: self._states], *scanned]
        if self._op_type == "SequenceMap":
            if any(isinstance(value, list) and not value for value in given):
                return None
            return [value[0] if isinstance(value, list) else value for value in given]
        if self._op_type:
            # What another operator gives to its body, such as FlexAttention, is not followed.
            return None
        return given + [None] * (len(self._body.inputs) - len(given))

    def _counter_shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of the number of the iteration and of the condition: engines take both as they are
        declared.
        """
        graph = next(graph for name, _, graph in subgraphs(self._body.node) if name == self._body.attribute)
        return [(1,) * len(value.type.tensor_type.shape.dim) for value in graph.input[:2]]

    def _slices(self, step: int) -> list[Value] | None:
        """Return what a Scan scans in a step; None behind the end."""
        node, scanned = self._body.node, self._given[self._states :]
        axes = _numbers(node, "scan_input_axes", len(scanned))
        backward = _numbers(node, "scan_input_directions", len(scanned))
        slices: list[Value] = []
        for value, axis, is_backward in zip(scanned, axes, backward, strict=True):
            if not isinstance(value, np.ndarray) or step >= value.shape[axis]:
                return None
            place = value.shape[axis] - 1 - step if is_backward else step
            slices.append(np.asarray(np.take(value, place, axis)))
        return slices


def _numbers(node: onnx.NodeProto, name: str, count: int) -> list[int]:
    given = next((list(attribute.ints) for attribute in node.attribute if attribute.name == name), [])
    return given or [0] * count
