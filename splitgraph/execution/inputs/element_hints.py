"""Find what the model tells about the elements of its inputs: valid numbers, constants, masks and bounds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import onnx

from splitgraph.dim import evaluate
from splitgraph.execution.inputs.constraint import Sizes
from splitgraph.execution.inputs.model_inputs import ModelInput, is_float
from splitgraph.execution.inputs.operator_roles import Request
from splitgraph.execution.inputs.roles import value_for
from splitgraph.execution.models.model_edits import is_default_domain, scoped_nodes
from splitgraph.execution.values import Array
from splitgraph.inference.analysis import Analysis
from splitgraph.value_type import UNKNOWN

# Larger bounds of a Clip are no bounds, but the largest number of a type.
_NO_BOUND = 1e9
# The number of steps of a quantization to 8 bits.
_STEPS = 256
# Parts of the names of operators that read at positions, which not every runtime checks.
_INDEXED = ("Gather", "Scatter", "Feature", "OneHot", "Loss", "Embed", "Attention", "Sequence")
_DIVISIONS = ("Div", "Mod", "Divide", "FloorMod")


class ElementHints:
    """Reads hints about input elements from one model.

    delimiters: of the StringSplits. divides_integers: whether a node may divide by an integer; a division by 0 may end
    the process of a runtime.
    """

    def __init__(self, analysis: Analysis, inputs: Sequence[ModelInput]) -> None:
        self._analysis = analysis
        self._inputs = inputs
        self.delimiters = _delimiters(analysis.model)
        self.divides_integers = _divides_integers(analysis)

    def valid_numbers(
        self, item: ModelInput, shape: tuple[int, ...], sizes: Sizes, rng: np.random.Generator
    ) -> Array | None:
        """Return numbers that are valid for the role of an input; None if any number is."""
        splits = (split for split in self._analysis.splits if split.axis is not None)
        axes = {tuple(name for name, _ in split.outputs): split.axis or 0 for split in splits}
        opset = self._analysis.opset.get("", 0)
        request = Request(shape, rng, lambda name: self._dims(name, sizes), axes, opset)
        found = (value_for(use, request) for use in item.uses)
        return next((numbers for numbers in found if numbers is not None), None)

    def compared_number(self, item: ModelInput) -> int | None:
        """Return a number that the model compares an input with, such as a sampling rate; None without one."""
        names = [name for use in item.uses if use.node.op_type == "Equal" for name in use.node.input]
        return next((int(array.item()) for array in self._constants(names) if array.size == 1), None)

    def is_index(self, item: ModelInput) -> bool:
        """Return True if an operator may read at the positions in an input."""
        return any(part in use.node.op_type for use in item.uses for part in _INDEXED)

    def is_mask(self, item: ModelInput) -> bool:
        """Return True for an input with "mask" in its name, or one that is subtracted from 1, as in attention."""
        names = [use.node.input[0] for use in item.uses if use.node.op_type == "Sub" and use.position == 1]
        is_one = (array.size == 1 and array.item() == 1 for array in self._constants(names))
        return "mask" in item.name.lower() or any(is_one)

    def reach(self, item: ModelInput) -> float:
        """Return the bound beyond which the model clips a floating-point input, or a quantization saturates; or 0."""
        if not is_float(item.type.innermost):
            return 0.0
        found = [0.0]
        for node in (use.node for use in item.uses if use.position == 0):
            if node.op_type == "Clip":
                bounds = [float(abs(array).max()) for array in self._constants(node.input[1:]) if array.size]
                bounds += [abs(each.f) for each in node.attribute if each.name in ("min", "max")]
                found += [bound for bound in bounds if bound < _NO_BOUND]
            elif node.op_type == "QuantizeLinear":
                scales = [float(abs(array).max()) for array in self._constants(node.input[1:2]) if array.size]
                found += [_STEPS * scale for scale in scales]
        return max(found)

    def _constants(self, names: Collection[str]) -> Iterator[Array]:
        """Yield the constants of the main graph with these names."""
        graph = self._analysis.model.graph
        yield from (onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer if tensor.name in names)
        for node in graph.node if names else ():
            if node.op_type == "Constant" and node.output[0] in names:
                yield from (onnx.numpy_helper.to_array(a.t) for a in node.attribute if a.name == "value")

    def _dims(self, name: str, sizes: Sizes) -> list[int] | None:
        """Return the shape of a value for given sizes of the inputs; None if it is unknown."""
        inner = (split.input for split in self._analysis.splits if split.input_name == name)
        known = next((item.type for item in self._inputs if item.name == name), None)
        value = known or self._analysis.types.get(name) or next(inner, UNKNOWN)
        if value.shape is None:
            return None
        try:
            return [evaluate(dim, sizes) for dim in value.shape if dim is not None] if None not in value.shape else None
        except KeyError:
            return None


def _divides_integers(analysis: Analysis) -> bool:
    """Return True if a node may divide by an integer."""
    divisors = [
        node.input[1] for node, _ in scoped_nodes(analysis.model) if node.op_type in _DIVISIONS and len(node.input) > 1
    ]
    dtypes = [analysis.types.get(name, UNKNOWN).dtype or "" for name in divisors]
    return not all(dtype.startswith(("float", "bfloat", "complex")) for dtype in dtypes)


def _delimiters(model: onnx.ModelProto) -> tuple[str, ...]:
    found = []
    for node, _ in scoped_nodes(model):
        if node.op_type == "StringSplit" and is_default_domain(node.domain):
            found += [a.s.decode("utf-8", "replace") for a in node.attribute if a.name == "delimiter" and a.s]
    return tuple(dict.fromkeys(found))
