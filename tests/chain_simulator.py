"""What a chain of shape arithmetic gives at concrete sizes: plain Python after the ONNX specification, no splitgraph.

A chain is a list of steps over tensors of which only shapes matter, and small integer vectors. Where the specification
leaves open what an empty tensor becomes, or runtimes disagree, the chain counts as one that does not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from math import prod
from typing import NamedTuple

Param = int | str | tuple[int, ...] | None


class Step(NamedTuple):
    """One node. params: by name; a text is the name of the value that holds the integers at run time."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    params: Mapping[str, Param]


class Chain(NamedTuple):
    """opset, the inputs' dimensions (a text is a symbol), and the nodes."""

    opset: int
    inputs: Mapping[str, tuple[int | str, ...]]
    steps: tuple[Step, ...]

    @property
    def symbols(self) -> list[str]:
        """The symbols of the inputs."""
        return sorted({dim for dims in self.inputs.values() for dim in dims if isinstance(dim, str)})


class Value(NamedTuple):
    """A tensor, and its elements where it is a vector of integers; members: of a sequence."""

    shape: tuple[int, ...]
    items: tuple[int, ...] | None = None
    members: tuple[tuple[int, ...], ...] | None = None


class DoesNotRun(Exception):
    """The chain is not valid at these sizes."""


Values = dict[str, Value]
Run = Callable[[Step, Values], "list[Value]"]
_RUN: dict[str, Run] = {}

# Larger tensors need more memory than a runtime has.
MOST_ELEMENTS = 10**7


def evaluate_chain(chain: Chain, sizes: Mapping[str, int]) -> Values:
    """Every value of the chain at the sizes. Raises DoesNotRun."""
    values: Values = {}
    for name, dims in chain.inputs.items():
        values[name] = Value(tuple(dim if isinstance(dim, int) else sizes[dim] for dim in dims))
    for step in chain.steps:
        run_step(step, values)
    return values


def run_step(step: Step, values: Values) -> None:
    """Add what the step gives. Raises DoesNotRun."""
    given = _RUN[step.op](step, values)
    if len(given) != len(step.outputs):
        raise DoesNotRun
    for name, value in zip(step.outputs, given, strict=True):
        if any(dim < 0 for dim in value.shape) or prod(value.shape) > MOST_ELEMENTS:
            raise DoesNotRun
        values[name] = value


def _op(*names: str) -> Callable[[Run], Run]:
    def register(function: Run) -> Run:
        _RUN.update(dict.fromkeys(names, function))
        return function

    return register


def _ints(step: Step, values: Values, name: str) -> tuple[int, ...]:
    param = step.params[name]
    if isinstance(param, str):
        items = values[param].items
        assert items is not None
        return items
    assert param is not None
    return (param,) if isinstance(param, int) else param


def _int(step: Step, values: Values, name: str) -> int:
    (only,) = _ints(step, values, name)
    return only


def _first(step: Step, values: Values) -> tuple[int, ...]:
    return values[step.inputs[0]].shape


def _replaced(shape: Sequence[int], axis: int, dim: int) -> tuple[int, ...]:
    return (*shape[:axis], dim, *shape[axis + 1 :])


def _needs(holds: bool) -> None:
    if not holds:
        raise DoesNotRun


# Tensors -------------------------------------------------------------------------------------------------------------


@_op("Concat")
def _concat(step: Step, values: Values) -> list[Value]:
    given, axis = [values[name] for name in step.inputs], _int(step, values, "axis")
    return [_joined(given, axis)]


def _joined(given: Sequence[Value], axis: int) -> Value:
    first = given[0].shape
    axis %= len(first)
    for value in given:
        _needs(_replaced(value.shape, axis, 0) == _replaced(first, axis, 0))
    shape = _replaced(first, axis, sum(value.shape[axis] for value in given))
    if any(value.items is None for value in given):
        return Value(shape)
    return Value(shape, tuple(item for value in given for item in value.items or ()))


@_op("Split")
def _split(step: Step, values: Values) -> list[Value]:
    data, axis = values[step.inputs[0]], _int(step, values, "axis")
    axis %= len(data.shape)
    dim, count = data.shape[axis], len(step.outputs)
    if "lengths" in step.params:
        lengths = list(_ints(step, values, "lengths"))
    elif "equal" in step.params:
        _needs(dim % count == 0)
        lengths = [dim // count] * count
    else:
        size = -(-dim // count)
        lengths = [size] * (count - 1) + [dim - size * (count - 1)]
    _needs(len(lengths) == count and min(lengths) >= 0 and sum(lengths) == dim)
    return [Value(_replaced(data.shape, axis, length)) for length in lengths]


@_op("Reshape")
def _reshape(step: Step, values: Values) -> list[Value]:
    shape, target = _first(step, values), list(_ints(step, values, "target"))
    for place, dim in enumerate(target):
        if dim != 0:
            continue
        _needs(place < len(shape))
        # A computed 0 that copies another dimension is not what anybody means.
        _needs(not isinstance(step.params["target"], str) or shape[place] == 0)
        target[place] = shape[place]
    _needs(min(target, default=0) >= -1 and target.count(-1) <= 1)
    if -1 in target:
        others = prod(dim for dim in target if dim != -1)
        _needs(others != 0 and prod(shape) % others == 0)
        target[target.index(-1)] = prod(shape) // others
    _needs(prod(target) == prod(shape))
    return [Value(tuple(target), values[step.inputs[0]].items)]


@_op("Flatten")
def _flatten(step: Step, values: Values) -> list[Value]:
    shape, axis = _first(step, values), _int(step, values, "axis")
    axis = axis + len(shape) if axis < 0 else axis
    return [Value((prod(shape[:axis]), prod(shape[axis:])))]


@_op("Slice")
def _slice(step: Step, values: Values) -> list[Value]:
    shape = list(_first(step, values))
    starts, ends, axes = (_ints(step, values, name) for name in ("starts", "ends", "axes"))
    steps = _ints(step, values, "steps") if "steps" in step.params else (1,) * len(axes)
    items = values[step.inputs[0]].items
    for start, end, axis, by in zip(starts, ends, axes, steps, strict=True):
        _needs(by != 0)
        chosen = range(shape[axis])[start:end:by]
        shape[axis] = len(chosen)
        items = None if items is None else tuple(items[place] for place in chosen)
    return [Value(tuple(shape), items)]


@_op("Transpose")
def _transpose(step: Step, values: Values) -> list[Value]:
    shape = _first(step, values)
    return [Value(tuple(shape[axis] for axis in _ints(step, values, "perm")))]


def _broadcast(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    pairs = list(zip_longest(reversed(one), reversed(other), fillvalue=1))
    _needs(all(a == b or 1 in (a, b) for a, b in pairs))
    return tuple(b if a == 1 else a for a, b in reversed(pairs))


@_op("AddTensors")
def _add_tensors(step: Step, values: Values) -> list[Value]:
    return [Value(_broadcast(values[step.inputs[0]].shape, values[step.inputs[1]].shape))]


@_op("Expand")
def _expand(step: Step, values: Values) -> list[Value]:
    target = _ints(step, values, "target")
    _needs(min(target) >= 0)
    return [Value(_broadcast(_first(step, values), target))]


@_op("Tile")
def _tile(step: Step, values: Values) -> list[Value]:
    repeats = _ints(step, values, "repeats")
    _needs(min(repeats) >= 0)
    return [Value(tuple(dim * times for dim, times in zip(_first(step, values), repeats, strict=True)))]


@_op("Pad")
def _pad(step: Step, values: Values) -> list[Value]:
    shape, pads = _first(step, values), _ints(step, values, "pads")
    ends = zip(shape, pads[: len(shape)], pads[len(shape) :], strict=True)
    return [Value(tuple(dim + before + after for dim, before, after in ends))]


@_op("Unsqueeze")
def _unsqueeze(step: Step, values: Values) -> list[Value]:
    shape, axis = _first(step, values), _int(step, values, "axes")
    return [Value((*shape[:axis], 1, *shape[axis:]))]


@_op("Squeeze")
def _squeeze(step: Step, values: Values) -> list[Value]:
    shape, axis = _first(step, values), _int(step, values, "axes")
    _needs(shape[axis] == 1)
    return [Value((*shape[:axis], *shape[axis + 1 :]))]


@_op("ConstantOfShape")
def _constant_of_shape(step: Step, values: Values) -> list[Value]:
    return [Value(_ints(step, values, "shape"))]


@_op("Range")
def _range(step: Step, values: Values) -> list[Value]:
    start, limit, delta = (_int(step, values, name) for name in ("start", "limit", "delta"))
    _needs(delta != 0)
    return [Value((len(range(start, limit, delta)),))]


# Sequences -----------------------------------------------------------------------------------------------------------


@_op("SplitToSequence")
def _split_to_sequence(step: Step, values: Values) -> list[Value]:
    shape, axis = _first(step, values), _int(step, values, "axis")
    axis %= len(shape)
    dim = shape[axis]
    if "size" in step.params:
        size = _int(step, values, "size")
        _needs(size > 0)
        lengths = [min(size, dim - start) for start in range(0, dim, size)]
    elif "lengths" in step.params:
        lengths = list(_ints(step, values, "lengths"))
        _needs(min(lengths) >= 0 and sum(lengths) == dim)
    else:
        lengths = [1] * dim
    _needs(bool(lengths))
    members = [_replaced(shape, axis, length) for length in lengths]
    if step.params.get("keepdims") == 0:
        members = [(*shape[:axis], *shape[axis + 1 :]) for _ in lengths]
    return [Value((), members=tuple(members))]


@_op("SequenceAt")
def _sequence_at(step: Step, values: Values) -> list[Value]:
    members, place = values[step.inputs[0]].members or (), _int(step, values, "position")
    _needs(-len(members) <= place < len(members))
    return [Value(members[place])]


@_op("SequenceLength")
def _sequence_length(step: Step, values: Values) -> list[Value]:
    # As a vector of one element, which a Reshape makes of it.
    return [Value((1,), (len(values[step.inputs[0]].members or ()),))]


@_op("ConcatFromSequence")
def _concat_from_sequence(step: Step, values: Values) -> list[Value]:
    return [_joined([Value(shape) for shape in values[step.inputs[0]].members or ()], _int(step, values, "axis"))]


# Lengths -------------------------------------------------------------------------------------------------------------


@_op("Shape")
def _shape(step: Step, values: Values) -> list[Value]:
    shape = _first(step, values)
    return [Value((len(shape),), shape)]


@_op("Constant")
def _constant(step: Step, values: Values) -> list[Value]:
    items = _ints(step, values, "value")
    return [Value((len(items),), items)]


@_op("Gather")
def _gather(step: Step, values: Values) -> list[Value]:
    items, index = values[step.inputs[0]].items or (), _int(step, values, "index")
    return [Value((1,), (items[index],))]


@_op("ReduceProd")
def _reduce_prod(step: Step, values: Values) -> list[Value]:
    return [Value((1,), (prod(values[step.inputs[0]].items or ()),))]


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": _truncated,
    "Mod": lambda a, b: a % b,
    "Max": max,
    "Min": min,
}


@_op(*_ARITHMETIC)
def _arithmetic(step: Step, values: Values) -> list[Value]:
    one, other = (values[name].items or () for name in step.inputs)
    try:
        found = tuple(_ARITHMETIC[step.op](a, b) for a, b in zip(one, other, strict=True))
    except ZeroDivisionError:
        raise DoesNotRun from None
    # No runtime counts in more bits.
    _needs(all(abs(item) < 2**62 for item in found))
    return [Value((len(found),), found)]
