"""Number values that are computed with sizes: those of one number are the same at all sizes.

The layers of a network compute the same from the same dimensions, and so do both models. One number each keeps what is
run at many sizes small, and nothing has to be run for a value that has the same number in both models.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import onnx

from splitgraph.model.schemas import version_at
from splitgraph.verification.models.model_files import oldest_same_version

# Operators of which each version does the same with whole numbers, where it does anything, whatever its text says.
_STEADY = frozenset(
    {"Abs", "Cast", "Concat", "Flatten", "Gather", "GatherElements", "Mod", "Range", "Shape", "Size", "Transpose"}
)
# Operators that take as inputs what they took as attributes of the same names, and mean the same.
_MOVED: Mapping[str, Sequence[str]] = {
    "Slice": ("data", "starts", "ends", "axes", "steps"),
    "Squeeze": ("data", "axes"),
    "Unsqueeze": ("data", "axes"),
}


class SizeNumbers:
    """The numbers of the values of both models."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, *key: Hashable) -> int:
        """Return the number of what this says."""
        return self._numbers.setdefault(key, len(self._numbers))

    def of_list(self, numbers: Sequence[int]) -> int:
        """Return the number of a constant list of integers."""
        return self.of("constant", onnx.TensorProto.INT64, (len(numbers),), b"".join(map(_as_bytes, numbers)))

    def of_node(self, node: onnx.NodeProto, inputs: Sequence[int | None], opset: int) -> Sequence[int]:
        """Return the numbers of the outputs of a node. inputs: their numbers, None for one that is left out."""
        if node.op_type == "Identity" and inputs[0] is not None:
            return [inputs[0]]
        given: dict[Hashable, int | None] = dict(enumerate(inputs))
        attributes = list(node.attribute)
        moved = _MOVED.get(node.op_type, ())
        if moved:
            given = {name: number for name, number in zip(moved, inputs, strict=False) if number is not None}
            given |= {each.name: self.of_list(each.ints) for each in attributes if each.name in moved}
            attributes = [each for each in attributes if each.name not in moved]
        version = version_at("", node.op_type, opset)
        since = opset if version is None else version.since_version
        oldest = 0 if moved or node.op_type in _STEADY else oldest_same_version(node.op_type, since)
        written = tuple(sorted(each.SerializeToString(deterministic=True) for each in attributes))
        told = tuple(sorted(given.items(), key=lambda item: str(item[0])))
        return [self.of(node.op_type, oldest, written, told, place) for place in range(len(node.output))]


def _as_bytes(number: int) -> bytes:
    return number.to_bytes(8, "little", signed=True)
