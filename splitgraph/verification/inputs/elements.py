"""Draw the elements of a tensor of any type, with what the model tells about them: valid numbers, constants, masks and
bounds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.dim import evaluate
from splitgraph.inference.analysis import Analysis
from splitgraph.model.tensor_data import is_in_other_file
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN
from splitgraph.model.values import array_of
from splitgraph.verification.inputs.later_attempts import AttemptRule
from splitgraph.verification.inputs.model_inputs import ModelInput, is_float, value_for
from splitgraph.verification.inputs.operator_roles import Request
from splitgraph.verification.inputs.solver import SymbolSizes
from splitgraph.verification.models.model_files import is_default_domain, scoped_nodes
from splitgraph.verification.values import Array, dtype_by_name

# Each case is of one of three kinds: `case % 3`.
_FIRST, _SECOND, _THIRD = range(3)
_WORDS = ("alpha", "b", "gamma delta", "naïve", "42", "x-y", "two  spaces", "tab\there", "Ω", "end.")
_NARROW_INTEGERS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
# In every second case of three, one of _EACH elements is at least _LARGER times as large, of alternating sign, for
# operators that clip or saturate. Tensors of fewer than _FEW elements hold no 0.
_EACH = 4
_LARGER = 8
_FEW = 8
# The limit of that factor for each type, if the model is known to clip only larger numbers.
_LARGEST = {"float16": 2.0**13, "bfloat16": 2.0**20, "float32": 2.0**20, "float64": 2.0**20}
# The share of ones in a mask.
_COUNTING = 0.75
# A few integers are drawn from at least so many, or they would be the same in each case.
_ROOM = 8
# Larger bounds of a Clip are no bounds, but the largest number of a type.
_NO_BOUND = 1e9
# The number of steps of a quantization to 8 bits.
_STEPS = 256
# Parts of the names of operators that read at positions, which not every runtime checks.
_INDEXED = ("Gather", "Scatter", "Feature", "OneHot", "Loss", "Embed", "Attention", "Sequence")
_DIVISIONS = ("Div", "Mod", "Divide", "FloorMod")


def draw_elements(
    dtype: str,
    shape: Sequence[int],
    rng: np.random.Generator,
    *,
    case: int,
    rule: AttemptRule,
    delimiters: Sequence[str] = (),
    is_index: bool = False,
    is_mask: bool = False,
    may_be_zero: bool = True,
    reach: float = 0.0,
) -> Array:
    """Draw random elements of an ONNX type, all different if the type has enough values.

    Floating-point numbers are normally distributed. In every third case they are positive, because logarithms and roots
    of negative numbers are NaN, which shows no difference. A single number changes its sign from case to case. In the
    first attempt at every second case of three, some numbers are several times as large, and one of many is 0. Integers
    are small and positive; in the first attempt, those of the second case have both signs, and those of the third case
    begin with 0. Strings hold words, white space and the delimiters.

    is_mask: zeros and ones select elements. With other numbers a model may use only one element, so that they are drawn
    in some cases only. is_index: integers should be smaller than the number of elements. may_be_zero: integers may be
    0. reach: the model clips numbers beyond this.
    """
    size = int(np.prod(tuple(shape), dtype=np.int64))
    kind = case % 3
    flat: Array
    if dtype == "string":
        flat = _strings(size, rng, delimiters)
    elif dtype == "bool":
        flat = rng.permutation(np.arange(size) % 2 == 0)
    elif is_mask and kind != _SECOND:
        flat = _mask(shape, rng).astype(_dtype(dtype))
    elif dtype in _NARROW_INTEGERS:
        low, high = _NARROW_INTEGERS[dtype]
        flat = rng.integers(low, high + 1, size=size).astype(_dtype(dtype))
    elif dtype.startswith(("int", "uint")) and rule.zero_or_one:
        flat = rng.integers(0, 2, size=size).astype(dtype)
    elif dtype.startswith(("int", "uint")):
        # Later attempts draw positive integers in every case: the model refused the inputs of the first attempt.
        kind = kind if rule.is_first else _FIRST
        flat = _integers_of_case(size, np.dtype(dtype), rng, kind, is_index=is_index, may_be_zero=may_be_zero)
    elif dtype.startswith("complex"):
        flat = (rng.standard_normal(size) + 1j * rng.standard_normal(size)).astype(dtype)
    elif dtype == "float8e8m0":
        # This type has powers of two only.
        flat = (2.0 ** rng.integers(-4, 5, size=size)).astype(_dtype(dtype))
    else:
        flat = _floats_of_case(size, dtype, rng, case, is_first=rule.is_first, reach=reach)
    return flat.reshape(tuple(shape))


def _integers_of_case(
    size: int, dtype: np.dtype[Any], rng: np.random.Generator, kind: int, *, is_index: bool, may_be_zero: bool
) -> Array:
    """Draw small integers: positive in the first case of three, of both signs in the second, from 0 on in the third."""
    if kind == _SECOND and is_index:
        return _integers(size, dtype, rng, least=1, room=1, signed=True)
    if kind == _SECOND:
        return _integers(size, dtype, rng, least=2, room=_ROOM, signed=True)
    least = 0 if kind == _THIRD and may_be_zero else 1
    return _integers(size, dtype, rng, least=least, room=1, signed=False)


def _floats_of_case(
    size: int, dtype: str, rng: np.random.Generator, case: int, *, is_first: bool, reach: float
) -> Array:
    """Draw normally distributed numbers: some are large in the second case of three, all are positive in the third."""
    kind = case % 3
    numbers = rng.standard_normal(size)
    if is_first and size == 1:
        numbers = np.abs(numbers) * (-1) ** case
    elif is_first and kind == _SECOND and not dtype.startswith("float4"):
        factor = max(_LARGER, min(reach, _LARGEST.get(dtype, 0)))
        numbers = _with_extremes(numbers, rng, factor)
    if kind == _THIRD:
        numbers = np.abs(numbers)
    # Types narrower than float32 are rounded from float32.
    return numbers.astype(np.float64 if dtype == "float64" else np.float32).astype(_dtype(dtype))


def _mask(shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Draw a mask that is mostly 1, and 1 at the beginning of each row."""
    mask = rng.uniform(size=tuple(shape)) < _COUNTING
    mask[..., :1] = True
    return mask.ravel()


def _with_extremes(
    numbers: npt.NDArray[np.float64], rng: np.random.Generator, larger: float
) -> npt.NDArray[np.float64]:
    """Make some numbers larger than all others, and one of many numbers 0."""
    large = larger * (1 + np.abs(numbers[::_EACH]))
    numbers[::_EACH] = large * (-1) ** (np.arange(large.size) + rng.integers(2))
    if numbers.size >= _FEW:
        numbers[_EACH * int(rng.integers(numbers.size // _EACH)) + 1] = 0
    return numbers


def _integers(
    size: int, dtype: np.dtype[Any], rng: np.random.Generator, *, least: int, room: int, signed: bool
) -> Array:
    """Draw different integers from `least` on, out of at least `room` candidates."""
    most = min(max(size, 8), int(np.iinfo(dtype).max) - least)
    numbers = rng.permutation(np.arange(max(size, room), dtype=np.int64) % most)[:size] + least
    if signed and dtype.kind == "i":
        numbers = numbers * rng.choice([-1, 1], size=size)
    return numbers.astype(dtype)


def _strings(size: int, rng: np.random.Generator, delimiters: Sequence[str]) -> Array:
    texts = np.empty(size, dtype=object)
    for index in range(size):
        words = rng.choice(_WORDS, size=1 + index % 4).tolist()
        joint = " " if not delimiters or index % 3 == 2 else delimiters[index % len(delimiters)]
        texts[index] = joint.join(words)
        if index % 5 == 1:
            texts[index] = f"{joint}{texts[index]}{joint}{joint}"
    return texts


def _dtype(name: str) -> np.dtype[Any]:
    return dtype_by_name(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[name])).name)


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
        self, item: ModelInput, shape: tuple[int, ...], sizes: SymbolSizes, rng: np.random.Generator
    ) -> Array | None:
        """Return numbers that are valid for the role of an input; None if any number is."""
        splits = (split for split in self._analysis.splits if split.axis is not None)
        axes = {tuple(name for name, _ in split.outputs): split.axis or 0 for split in splits}
        opset = self._analysis.opset.get("", 0)
        request = Request(shape, rng, lambda name: self._dims(name, sizes), axes, opset)
        choices = (value_for(use, request) for use in item.uses)
        return next((numbers for numbers in choices if numbers is not None), None)

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

    def rows_of(self, node: onnx.NodeProto) -> int | None:
        """Return how many positions a Gather can read at; None if that is unknown."""
        shape = self._analysis.types.get(node.input[0], UNKNOWN).shape
        axes = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
        if len(node.input) > 2:
            axes = [int(array.item()) for array in self._constants([node.input[2]]) if array.size == 1]
        axis = axes[0] if axes else 0
        if shape is None or not -len(shape) <= axis < len(shape) or (len(node.input) > 2 and not axes):
            return None
        length = shape[axis]
        return length if isinstance(length, int) else None

    def reach(self, item: ModelInput) -> float:
        """Return the bound beyond which the model clips a floating-point input, or a quantization saturates; or 0."""
        if not is_float(item.type.innermost):
            return 0.0
        distances = [0.0]
        for node in (use.node for use in item.uses if use.position == 0):
            if node.op_type == "Clip":
                bounds = [float(abs(array).max()) for array in self._constants(node.input[1:]) if array.size]
                bounds += [abs(attribute.f) for attribute in node.attribute if attribute.name in ("min", "max")]
                distances += [bound for bound in bounds if bound < _NO_BOUND]
            elif node.op_type == "QuantizeLinear":
                scales = [float(abs(array).max()) for array in self._constants(node.input[1:2]) if array.size]
                distances += [_STEPS * scale for scale in scales]
        return max(distances)

    def _constants(self, names: Collection[str]) -> Iterator[Array]:
        """Yield the constants of the main graph with these names."""
        graph = self._analysis.model.graph
        found = [tensor for tensor in graph.initializer if tensor.name in names]
        for node in graph.node if names else ():
            if node.op_type == "Constant" and node.output[0] in names:
                found += [attribute.t for attribute in node.attribute if attribute.name == "value"]
        yield from (array_of(tensor) for tensor in found if not is_in_other_file(tensor))

    def _dims(self, name: str, sizes: SymbolSizes) -> list[int] | None:
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
    delimiters = []
    for node, _ in scoped_nodes(model):
        if node.op_type == "StringSplit" and is_default_domain(node.domain):
            delimiters += [a.s.decode("utf-8", "replace") for a in node.attribute if a.name == "delimiter" and a.s]
    return tuple(dict.fromkeys(delimiters))
