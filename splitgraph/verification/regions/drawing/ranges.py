"""Tell which numbers a value can be, from the operators that compute it: other numbers are not drawn for it.

The ends of a range are computed in the type of the value, as an engine computes them: sums, products and quotients are
the nearest numbers of the type, so that no other number of the range gives more. Whole numbers that leave their type
wrap around, and then can be any.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from splitgraph.model.schemas import kinds
from splitgraph.model.tensor_data import is_external
from splitgraph.model.value_type import DTYPE_NAMES, UNKNOWN
from splitgraph.verification.models.model_files import elements_of, is_default_domain
from splitgraph.verification.values import Array

if TYPE_CHECKING:
    from splitgraph.verification.regions.finding.sides import ModelSide

# The least and the largest number, beside NaN.
Range = tuple[float, float]
_ANY: Range = (-math.inf, math.inf)

# Of a constant with more elements, the ends are not looked for.
_LARGEST = 2**16
_FLOATS = frozenset({"float16", "float32", "float64"})
_WHOLE = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
_RANGES: Mapping[str, Range] = {
    **dict.fromkeys(("Cos", "Erf", "Sign", "Sin", "Softsign", "Tanh"), (-1.0, 1.0)),
    **dict.fromkeys(("HardSigmoid", "Hardmax", "Sigmoid", "Softmax"), (0.0, 1.0)),
    **dict.fromkeys(
        ("Acosh", "Exp", "GlobalLpPool", "LpPool", "ReduceL1", "ReduceL2", "ReduceSumSquare", "Softplus", "Sqrt"),
        (0.0, math.inf),
    ),
    "Cosh": (1.0, math.inf),
    "LogSoftmax": (-math.inf, 0.0),
}
# Results that lie between the least and the largest number of some inputs, as elements or as averages of them.
_BETWEEN: Mapping[str, slice] = {
    **dict.fromkeys(("Concat", "Mean"), slice(None)),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "MaxPool", "ReduceMax", "ReduceMean"), slice(1)),
    **dict.fromkeys(("ReduceMin", "Upsample"), slice(1)),
    **dict.fromkeys(kinds.WRITES_AT, slice(0, 3, 2)),
    "TensorScatter": slice(2),
    "Where": slice(1, 3),
}
# The same, and 0: of what lies outside of a picture, or is left out.
_BETWEEN_AND_ZERO: Mapping[str, slice] = {
    **dict.fromkeys(("AveragePool", "CenterCropPad", "GridSample", "MaxRoiPool", "MaxUnpool", "Trilu"), slice(1)),
    **dict.fromkeys(("Resize", "RoiAlign"), slice(1)),
    "Pad": slice(0, 3, 2),
}
# Attributes with which a result may be beyond: sums, waves of cubic functions, and numbers that stand outside.
_BEYOND = frozenset({"extrapolation_value", "value"})
_BEYOND_MODES = frozenset({b"add", b"mul", b"cubic", b"bicubic"})
# Sums of numbers that are no less than 0 are none.
_SUMS = frozenset({"CumSum", "ReduceSum", "Sum"})
# Functions that grow, or fall, with each of their operands, and of which an engine gives the nearest number.
_MONOTONE: Mapping[str, Callable[..., Any]] = {
    "Add": operator.add,
    "Ceil": np.ceil,
    "Floor": np.floor,
    "Mul": operator.mul,
    "Neg": operator.neg,
    "Round": np.rint,
    "Sub": operator.sub,
}


class ValueRanges:
    """The ranges of the values of one model. side: the model. known: the ranges of its inputs."""

    def __init__(self, side: ModelSide, known: Mapping[str, Range | None]) -> None:
        self._side = side
        self._found = {name: each for name, each in known.items() if each is not None}
        for index in sorted(side.computed):
            node = side.nodes[index]
            # Wherever the nodes are not sorted, nothing is known of an operand.
            for name, found in zip(node.output, self._results(node), strict=False):
                if found is not None:
                    self._found[name] = found

    def of(self, name: str) -> Range | None:
        """Return the least and the largest number that a value can be, beside NaN; None if it can be any."""
        found = self._found.get(name)
        return None if found == self._whole(name) else found

    def _results(self, node: onnx.NodeProto) -> Iterable[Range | None]:
        """Return the ranges of the first outputs of a node."""
        if (node.domain, node.op_type) == ("ai.onnx.ml", "LabelEncoder"):
            return (_labels(node),)
        if not is_default_domain(node.domain) or not node.input:
            return ()
        op_type = node.op_type
        if op_type in _RANGES:
            # A sum of whole numbers may wrap around.
            return (_RANGES[op_type] if self._whole(node.output[0]) == _ANY else None,)
        if op_type in kinds.ARG_REDUCES:
            return (self._positions(node, 0),)
        if op_type in kinds.PICKED | {"TopK"}:
            own = self._operand(node.input[0])
            return (own, self._positions(node, -1)) if op_type == "TopK" else [own] * len(node.output)
        return (_fitting(self._computed(node), self._whole(node.output[0])),)

    def _positions(self, node: onnx.NodeProto, default: int) -> Range:
        """Return the range of positions along the axis of a node."""
        axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), default)
        shape = self._side.types.get(node.input[0], UNKNOWN).shape
        length = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
        return 0, length - 1 if isinstance(length, int) and length else int(np.iinfo(np.int64).max)

    def _computed(self, node: onnx.NodeProto) -> Range | None:
        """Return the range of what a node computes, which may leave the type."""
        op_type = node.op_type
        given = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        own = [self._operand(name) if name else None for name in node.input]
        operands = [each or _ANY for each in own]
        first, dtype = operands[0], self._side.types.get(node.output[0], UNKNOWN).dtype
        if op_type in _BETWEEN or op_type in _BETWEEN_AND_ZERO:
            return _joined(op_type, operands, given)
        if op_type in _SUMS and all(low >= 0 for low, _ in operands[: None if op_type == "Sum" else 1]):
            return (0, math.inf) if dtype in _FLOATS else None
        if op_type in ("Max", "Min"):
            return _extreme(op_type, operands)
        if op_type == "Relu":
            return _extreme("Max", [first, (0, 0)])
        if op_type == "Clip":
            return _clipped(first, own[1:], given)
        if op_type == "Abs":
            return 0 if first[0] <= 0 <= first[1] else min(map(abs, first)), max(map(abs, first))
        if op_type == "Mod":
            return _remainder(first, operands[1], is_signed=bool(given.get("fmod", 0)))
        return self._in_type(node, own, dtype, given.get("direction")) if dtype in _FLOATS | _WHOLE else None

    def _in_type(
        self, node: onnx.NodeProto, own: Sequence[Range | None], dtype: str, direction: bytes | None
    ) -> Range | None:
        """Return the range of what a node computes with the precision of its type. own: the ranges of its operands;
        None for one that is left out. direction: of a BitShift.
        """
        op_type, operands = node.op_type, [each or _ANY for each in own]
        if op_type in ("BitShift", "BitwiseAnd"):
            return _of_bits(operands, dtype, direction)
        if op_type == "Cast":
            is_whole = self._side.types.get(node.input[0], UNKNOWN).dtype in _WHOLE | {"bool"}
            # Beyond the type, engines cast fractions to whole numbers in different ways.
            is_known = is_whole or dtype in _FLOATS
            return _of_ends(float if dtype in _FLOATS else int, operands[:1], dtype) if is_known else None
        if op_type == "DequantizeLinear":
            zero = own[2] if len(own) > 2 else None
            parts = operands[0], operands[1], zero or (0, 0)
            return _of_ends(lambda number, scale, shift: (number - shift) * scale, parts, dtype)
        if op_type == "Mul" and node.input[0] == node.input[1]:
            # A square is never less than 0.
            return 0, max(_of_ends(operator.mul, [operands[0], operands[0]], dtype) or _ANY)
        if op_type == "Div" and operands[1][0] > 0:
            return _of_ends(operator.truediv if dtype in _FLOATS else _quotient, operands, dtype)
        return _of_ends(_MONOTONE[op_type], operands, dtype) if op_type in _MONOTONE else None

    def _operand(self, name: str) -> Range | None:
        """Return the range of a value, or of the elements of a constant; that of its type if nothing else is known."""
        if name not in self._found and name in self._side.constants:
            tensor = self._side.constants.tensor(name)
            is_read = tensor is not None and not is_external(tensor) and math.prod(tensor.dims) <= _LARGEST
            if tensor is not None and is_read and _is_number(tensor):
                array = elements_of(tensor, self._side.folder)
                if array.size and np.isfinite(array).all():
                    self._found[name] = array.min().item(), array.max().item()
        return self._found.get(name, self._whole(name))

    def _whole(self, name: str) -> Range:
        """Return the range of the type of a value."""
        dtype = self._side.types.get(name, UNKNOWN).dtype
        if dtype == "bool":
            return 0, 1
        if dtype not in _WHOLE:
            return _ANY
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)


def union(one: Range | None, other: Range | None) -> Range | None:
    """Return the range of what is in one of two ranges."""
    return None if one is None or other is None else (min(one[0], other[0]), max(one[1], other[1]))


def within_range(value: Array, known: Range, *, spreads: bool) -> Array:
    """Return numbers of a range in place of those beyond it: the ends, or numbers that are spread over it."""
    least, most = known
    if value.dtype.kind != "f":
        if not isinstance(least, int) or not isinstance(most, int):
            return value
        if not spreads:
            return np.asarray(np.clip(value, least, most))
        start = np.uint64(least % 2**64)
        turned = (value.astype(np.uint64) - start) % np.uint64(most - least + 1) + start
        return np.asarray(turned).astype(value.dtype)
    if spreads:
        wide = value.astype(np.float64)
        if math.isfinite(least) and math.isfinite(most) and least < most:
            turned = least + (wide - least) % (most - least)
        else:
            turned = least + np.abs(wide - least) if math.isfinite(least) else most - np.abs(wide - most)
        value = np.where((wide < least) | (wide > most), turned, wide).astype(value.dtype)
    # Of a scalar, NumPy gives no array.
    return np.asarray(np.clip(value, value.dtype.type(least), value.dtype.type(most)))


def _is_number(tensor: onnx.TensorProto) -> bool:
    return DTYPE_NAMES.get(tensor.data_type) in _FLOATS | _WHOLE


def _fitting(found: Range | None, whole: Range) -> Range | None:
    """Return a range; None if some of its numbers are beyond its type."""
    return None if found is None or found[0] < whole[0] or found[1] > whole[1] else found


def _joined(op_type: str, operands: Sequence[Range], given: Mapping[str, Any]) -> Range | None:
    """Return the range of elements or averages of some operands. given: the attributes of the node."""
    if not _BEYOND.isdisjoint(given) or not _BEYOND_MODES.isdisjoint(
        given[name] for name in ("mode", "reduction") if name in given
    ):
        return None
    joined = operands[_BETWEEN[op_type]] if op_type in _BETWEEN else [*operands[_BETWEEN_AND_ZERO[op_type]], (0, 0)]
    return min(low for low, _ in joined), max(high for _, high in joined)


def _extreme(op_type: str, operands: Sequence[Range]) -> Range:
    choose = max if op_type == "Max" else min
    return choose(low for low, _ in operands), choose(high for _, high in operands)


def _clipped(number: Range, limits: Sequence[Range | None], given: Mapping[str, Any]) -> Range:
    """Return the range of a Clip. limits: the ranges of its inputs min and max, as far as they are given. given: its
    attributes, which the limits were once.
    """
    from_attributes = [((given[name],) * 2 if name in given else None) for name in ("min", "max")]
    least, most = (one or other for one, other in zip(from_attributes, [*limits, None, None], strict=False))
    raised = number if least is None else _extreme("Max", [number, least])
    return raised if most is None else _extreme("Min", [raised, most])


def _remainder(number: Range, divisor: Range, *, is_signed: bool) -> Range | None:
    """Return the range of a Mod. is_signed: it has the sign of the dividend, and not that of the divisor."""
    if divisor[0] <= 0:
        return None
    most = divisor[1] - 1 if isinstance(divisor[1], int) else divisor[1]
    return (-most if is_signed and number[0] < 0 else 0), most


def _of_bits(operands: Sequence[Range], dtype: str, direction: bytes | None) -> Range | None:
    """Return the range of a BitShift, or of a BitwiseAnd without a direction."""
    if dtype not in _WHOLE or any(low < 0 for low, _ in operands):
        return None
    if direction is None:
        return 0, min(high for _, high in operands)
    # Where all bits leave the type, engines give what the processor gives.
    is_within = operands[1][1] < np.iinfo(dtype).bits
    return _of_ends(operator.rshift, operands, dtype) if direction == b"RIGHT" and is_within else None


def _labels(node: onnx.NodeProto) -> Range | None:
    """Return the range of the numbers that a LabelEncoder gives, with the one for what it does not know."""
    given = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    for values, other, usual in (("values_int64s", "default_int64", -1), ("values_floats", "default_float", 0.0)):
        if given.get(values):
            numbers = [*given[values], given.get(other, usual)]
            return (min(numbers), max(numbers)) if all(map(math.isfinite, numbers)) else None
    return None


def _quotient(number: int, divisor: int) -> int:
    """Return the quotient of two whole numbers, rounded towards 0."""
    return int(number // divisor if number >= 0 else -(-number // divisor))


def _of_ends(function: Callable[..., Any], operands: Sequence[Range], dtype: str) -> Range | None:
    """Return the range of a function that grows or falls with each operand, in the type of its result."""
    ends = itertools.product(*operands)
    if dtype in _WHOLE:
        numbers = [function(*each) for each in ends if all(map(math.isfinite, each))]
        return (min(numbers), max(numbers)) if len(numbers) == 2 ** len(operands) else None
    of_type = np.dtype(dtype).type
    with np.errstate(all="ignore"):
        found = [float(of_type(function(*map(of_type, each)))) for each in ends]
    # Of 0 times infinity nothing is known but that it is no number.
    known = [number for number in found if not math.isnan(number)]
    return (min(known), max(known)) if known else None
