"""Tell a difference that rounding makes where a result jumps: a number that cancels falls on the other side of a limit.

`a * (b + c)` and `a * b + a * c` are rounded otherwise, and near 0 a sign, a comparison or a floor shows it. Three
things must hold before rounding is to blame. Both sides decide by the same operators, so that `>` is never taken for
`>=`. In float64, both give the same, on the same inputs and on inputs that are moved by a few last places: between two
numbers of float32, a limit that is another one shows. And on some of these inputs, the first side alone gives in
float64 what each side gave: they are at a jump of the first model.

Where sums and products are put together in another way, infinities of two signs meet in one model alone, and what is
decided then is decided of NaN. That is no difference if both sides do the same with large numbers for infinities, and
each one computes infinities there: `x - x` beside 0 is a difference.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.model.schemas import kinds
from splitgraph.verification.comparison import Comparison
from splitgraph.verification.models.model_files import is_default_domain, scoped_nodes
from splitgraph.verification.regions.drawing.inner_limits import BY_ELEMENT
from splitgraph.verification.regions.finding.reached import reached
from splitgraph.verification.values import Array, Value, tensors_of

Flags = npt.NDArray[np.bool_]

# Inputs are moved by so many last places: all of each input at once, for so many inputs, and so often each element.
_LAST_PLACES, _MOST_AT_ONCE, _MOST_APART = 4, 3, 40
# Inputs of more elements are not moved.
_LARGEST = 2**18
_MIRRORED = {"Less": "Greater", "LessOrEqual": "GreaterOrEqual"}
_DECIDING = kinds.WHOLE | kinds.ARG_REDUCES | kinds.BROADCASTS & kinds.COMPARED
_DECIDING |= kinds.names("DynamicQuantizeLinear Hardmax Mod NonMaxSuppression QuantizeLinear Sign TopK")
_SUMS_AND_PRODUCTS = kinds.BASIC | {"Identity", "Neg", "Sum"}
_ASKING = kinds.EACH & kinds.COMPARED
# Products of a few of these are still numbers in float64.
_LARGE = 2.0**100
_CONVERTING = frozenset({"Cast", "CastLike", "DequantizeLinear", *_ASKING})
_FLOATS = frozenset({"bfloat16", "float16", "float32"})
_WHOLE = frozenset({"BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"})


def decide_alike(before: onnx.ModelProto, after: onnx.ModelProto) -> bool:
    """Return True if both models of a region have operators whose results jump, and each equally often; and so they
    have conversions to other types.
    """
    decisions = _decisions(before)
    return any(_is_deciding(*key) for key in decisions) and decisions == _decisions(after)


def decides(model: onnx.ModelProto) -> bool:
    """Return True if results of a model jump, or may: nothing is known of operators of other domains."""
    return any(_is_deciding(*key) for key in _decisions(model)) or any(
        not is_default_domain(node.domain) for node, _ in scoped_nodes(model)
    )


def _decisions(model: onnx.ModelProto) -> Counter[tuple[str, int]]:
    found = Counter[tuple[str, int]]()
    for node, _ in scoped_nodes(model):
        op_type = _MIRRORED.get(node.op_type, node.op_type)
        to = next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)
        if op_type in _CONVERTING or op_type in _DECIDING or not is_default_domain(node.domain):
            found[op_type, to] += 1
    return found


def _is_deciding(op_type: str, to: int) -> bool:
    return op_type in _DECIDING or (op_type == "Cast" and onnx.TensorProto.DataType.Name(to) in _WHOLE)


def moved(inputs: Mapping[str, Value], wide: Mapping[str, Value]) -> Iterator[dict[str, Value]]:
    """Yield inputs in float64, moved by a few last places of their own types; nothing if they cannot be. wide: the
    inputs in float64.
    """
    arrays = {name: value for name, value in inputs.items() if isinstance(value, np.ndarray)}
    steps = {name: _LAST_PLACES * _last_place(each) for name, each in arrays.items() if each.dtype.name in _FLOATS}
    if not steps or sum(array.size for value in inputs.values() for array in tensors_of(value)) > _LARGEST:
        return
    rng = np.random.default_rng(len(steps))
    for signs in itertools.product((-1, 1), repeat=min(len(steps), _MOST_AT_ONCE)):
        pairs = zip(itertools.cycle(signs), steps.items(), strict=False)
        yield {**wide, **{name: wide[name] + sign * step for sign, (name, step) in pairs}}
    for _ in range(_MOST_APART):
        yield {**wide, **{name: wide[name] + rng.uniform(-1, 1, step.shape) * step for name, step in steps.items()}}


def _last_place(value: Array) -> Array:
    """Return by how much the next number differs; 0 for infinities and NaN."""
    with np.errstate(invalid="ignore"):
        # NumPy does not know the next number of bfloat16, which has 8 of the 24 digits of float32.
        is_short = value.dtype.name == "bfloat16"
        place = np.spacing(value.astype(np.float32)) * np.float32(2**16) if is_short else np.spacing(value)
    return np.where(np.isfinite(place), np.abs(place.astype(np.float64)), 0.0)


def are_equal(before: Sequence[Value], after: Sequence[Value], comparison: Comparison) -> bool:
    """Return True if both sides give the same in float64, as exactly as float32 tells it."""
    for one, other in _pairs(before, after):
        if not have_same_type(one, other):
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = [array.astype(np.float32) if array.dtype.kind == "f" else array for array in (one, other)]
        if comparison.wrong(*narrow).any():
            return False
    return True


def are_near_jumps(outputs: Sequence[Sequence[Value]], near: Sequence[Sequence[Value]], comparison: Comparison) -> bool:
    """Return True if the first side gives what either side gave, wherever they differ. outputs: of both sides. near:
    what the first side gives on moved inputs, in float64.
    """
    sides = list(_pairs(*outputs))
    moves = [[array for value in each for array in tensors_of(value)] for each in near]
    for place, (before, after) in enumerate(sides):
        if not have_same_type(before, after):
            return False
        differs = comparison.wrong(before, after)
        found = [each[place] for each in moves if len(each) == len(sides) and each[place].shape == before.shape]
        for given in (before, after) if differs.any() else ():
            left = differs.copy()
            for exact in found:
                with np.errstate(over="ignore", invalid="ignore"):
                    left &= comparison.wrong(given, exact.astype(given.dtype))
            if left.any():
                return False
    return True


def _pairs(before: Sequence[Value], after: Sequence[Value]) -> Iterator[tuple[Array, Array]]:
    for one, other in zip(before, after, strict=True):
        yield from zip(tensors_of(one), tensors_of(other), strict=True)


# At infinities --------------------------------------------------------------------------------------------------------


def differ_in_sums_alone(before: onnx.ModelProto, after: onnx.ModelProto) -> bool:
    """Return True if both models of a region have the same operators but for sums and products, all by element, and
    none that asks for infinities or NaN.
    """
    counts = [
        Counter((n.domain, _MIRRORED.get(n.op_type, n.op_type)) for n, _ in scoped_nodes(model))
        for model in (before, after)
    ]
    others = [{key: count for key, count in each.items() if key[1] not in _SUMS_AND_PRODUCTS} for each in counts]
    return others[0] == others[1] and {op_type for _, op_type in others[0]} <= BY_ELEMENT - _ASKING


def with_inner_values(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """Return a model whose outputs are one of its values, and then all that this one is computed from."""
    nodes = list(model.graph.node)
    makers = {each: index for index, node in enumerate(nodes) for each in node.output if each}
    needed = sorted(reached({makers[name]}, [tuple(filter(None, node.input)) for node in nodes], makers))
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.output[:]
    names = dict.fromkeys([name, *(each for index in needed for each in nodes[index].output if each)])
    whole.graph.output.extend(onnx.ValueInfoProto(name=each) for each in names)
    return whole


def large_for_infinities(inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Return inputs with large numbers in place of infinities."""
    return {
        name: np.where(np.isinf(value), np.sign(value) * _LARGE, value)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f"
        else value
        for name, value in inputs.items()
    }


def have_same_type(before: Value, after: Value) -> bool:
    """Return True for two tensors of one element type and shape."""
    if not isinstance(before, np.ndarray) or not isinstance(after, np.ndarray):
        return False
    return bool(before.dtype == after.dtype and before.shape == after.shape)


def infinities_meet(differs: Flags, narrow: Sequence[Sequence[Value]], exact: Sequence[Sequence[Value]]) -> bool:
    """Return True if wherever a result differs, both sides compute an infinity or NaN, and one of them NaN. narrow: the
    inner values of both sides; exact: the same in float64, with large numbers for infinities.
    """
    is_unknown = np.zeros(differs.shape, bool)
    for values, others in zip(narrow, exact, strict=True):
        is_lost = np.zeros(differs.shape, bool)
        for one, other in _pairs(values, others):
            if one.dtype.kind == "f" and one.shape == other.shape:
                is_lost |= ~np.isfinite(one) & np.isfinite(other)
                is_unknown |= np.isnan(one) & np.isfinite(other)
        if (differs & ~is_lost).any():
            return False
    return bool(is_unknown[differs].all())
