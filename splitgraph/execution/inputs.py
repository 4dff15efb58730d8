"""Inputs for a model: sizes that meet its obligations, and elements that its operators accept.

What is drawn depends on the model, the seed, the case and the attempt only, so that every engine sees the same.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.dim import Dim, DimLike, evaluate, product, symbol, symbols_of
from splitgraph.execution.assignments import Assignment, Chooser, Constraint
from splitgraph.execution.attempts import MANNERS, Manner
from splitgraph.execution.comparison import caller_inputs, default_names
from splitgraph.execution.demands import read_demands, read_split_demands
from splitgraph.execution.elements import draw_elements
from splitgraph.execution.model_edits import is_default_domain, scoped_nodes
from splitgraph.execution.operator_roles import Request
from splitgraph.execution.preferences import read_preferences, with_wishes
from splitgraph.execution.roles import Use, find_uses, required_count, value_for
from splitgraph.execution.values import Value, dtype_by_name, is_text
from splitgraph.inference.analysis import Analysis
from splitgraph.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType

Array = npt.NDArray[Any]

# A single input larger than this is not allocated.
_LARGEST_INPUT = 256 * 2**20
# Inputs of a retry that would take more have small leading dimensions, as of large images a few will do, or only such;
# and sizes are made no larger than this only to show more.
_LARGEST_RETRY = 8 * 2**20
# Numbers to which a model clips are smaller than this; and so many steps a quantization to 8 bits has.
_NO_BOUND = 1e9
_STEPS = 256
# Parts of the names of operators that read at positions, which not every runtime checks; and operators that divide.
_INDEXED = ("Gather", "Scatter", "Feature", "OneHot", "Loss", "Embed", "Attention", "Sequence")
_SCATTERS = ("ScatterND", "ScatterNDUpdate")
_DIVISIONS = ("Div", "Mod", "Divide", "FloorMod")
# For the dimensions of an input of undeclared rank.
_GUESSED_RANK = 2


class InputError(Exception):
    """No inputs can be made for the model; the message says which one fails and why."""


@dataclass(frozen=True, slots=True)
class _Input:
    """A graph input: its type with a symbol for each unknown dimension, where it is used, whether it has a default."""

    name: str
    type: ValueType
    uses: tuple[Use, ...]
    has_default: bool


@dataclass(frozen=True, slots=True)
class UnknownRank:
    """A value of unknown rank, by which inputs that fit cannot be found: what is unknown, and what to do."""

    reason: str
    help: str


@dataclass(slots=True)
class _Draw:
    """One draw: the sizes, the random generator, and how many conditions it has met so far."""

    sizes: Assignment
    rng: np.random.Generator
    case: int
    manner: Manner
    conditions: int = 0


class InputMaker:
    """Draws inputs for the cases of one verification.

    analysis: of the model, by which shapes and obligations are known. bind: values of symbols. given: arrays for some
    of the inputs, used in every case. left_out: inputs with a default that are never given. names: under which inputs
    are given and drawn, by the model's own. Raises ValueError for a binding or an array that does not fit the model,
    InputError when nothing can be drawn.
    """

    def __init__(
        self,
        analysis: Analysis,
        *,
        seed: int = 0,
        bind: Mapping[str, int] | None = None,
        given: Mapping[str, Value] | None = None,
        left_out: Collection[str] = (),
        names: Mapping[str, str] | None = None,
    ) -> None:
        for argument, mapping in (("bind", bind), ("inputs", given)):
            if mapping is not None and not isinstance(mapping, Mapping):
                raise ValueError(f"{argument} is {mapping!r}; it must be a mapping by name")
        self._analysis = analysis
        self._seed = seed
        self._names = dict(names or {})
        own = {shared: name for name, shared in self._names.items()}
        self._given = {own.get(name, name): value for name, value in (given or {}).items()}
        self._inputs = [item for item in _describe_inputs(analysis) if item.name not in left_out]
        self._delimiters = _delimiters(analysis.model)
        self._divides_integers = _divides_integers(analysis)
        self._check_given()
        fixed = self._fixed_symbols(bind or {})
        self._symbols = _symbols_in_order(self._inputs)
        self._fixed = fixed
        counts = _count_demands(self._inputs)
        self._demands = [*read_demands(analysis, self._symbols), *counts, *_room_demands(self._inputs, analysis)]
        self._of_splits = [*read_split_demands(analysis, self._symbols), *counts]
        self._choosers = self._make_choosers(fixed)
        self._preferring = self._make_preferring()

    @property
    def varies(self) -> bool:
        """True when another case can have other inputs."""
        return any(item.name not in self._given for item in self._inputs)

    def unknown_rank(self) -> UnknownRank | None:
        """The first value whose rank is unknown, an input that is not given before others; None when there is none."""
        inputs = caller_inputs(self._analysis.model)
        types = self._analysis.types.items()
        unknown = [name for name, value in types if value.kind == "tensor" and value.shape is None]
        for name in unknown:
            if name in inputs and name not in self._given:
                reason = f"the rank of the input {name!r} is unknown"
                given = f"splitgraph.verify(..., inputs={{{name!r}: ...}})"
                return UnknownRank(reason, f"Declare its shape in both models, or give an array: {given}.")
        for name in unknown:
            if name not in inputs:
                reason = f"the rank of {name!r} is unknown, as it depends on the sizes of the inputs"
                return UnknownRank(reason, "Give the sizes that the model is made for (--bind), or arrays as inputs.")
        return None

    def has_only_ones(self, attempts: Collection[int]) -> bool:
        """True when in all of these attempts every dimension is 1 that the model and the caller leave open."""
        if not all(MANNERS[attempt].is_plain and MANNERS[attempt].signal_length is None for attempt in attempts):
            return False
        is_open = bool(set(self._symbols) - self._fixed.keys())
        return is_open and bool(attempts) and self._plain_sizes(None) is not None

    def draw(
        self, case: int, attempt: int = 0, earlier: Sequence[Assignment] = ()
    ) -> tuple[dict[str, Value], Assignment]:
        """Inputs by name for a case, and the sizes in them, unlike the `earlier` ones; other attempts draw other
        elements and sizes.

        An input with a default is given in the first attempt at the second case only, and left to its default
        elsewhere.
        """
        sizes = self._choose_sizes(case, attempt, earlier)
        draw = _Draw(sizes, np.random.default_rng([self._seed, case, attempt]), case, MANNERS[attempt])
        values: dict[str, Value] = {}
        for item in self._inputs:
            if item.name in self._given:
                values[self._names.get(item.name, item.name)] = self._given[item.name]
            elif not item.has_default or (case == 1 and draw.manner.is_first):
                values[self._names.get(item.name, item.name)] = self._draw_value(item, item.type, draw)
        return values, sizes

    def _choose_sizes(self, case: int, attempt: int, earlier: Sequence[Assignment]) -> Assignment:
        manner = MANNERS[attempt]
        if manner.is_plain:
            plain = self._plain_sizes(manner.signal_length)
            if plain is not None:
                return plain
        choosers = self._choosers[-1:] if manner.is_lenient else self._choosers
        sizes = _first_choice(choosers, earlier, attempt)
        if sizes is None:
            raise InputError("no sizes of the inputs' dimensions meet the model's obligations")
        if not manner.is_first and self._bytes(sizes) > _LARGEST_RETRY:
            for small in (self._leading(), set(self._symbols)):
                smaller = _first_choice(choosers, earlier, attempt, small)
                if smaller is not None and self._bytes(smaller) <= _LARGEST_RETRY:
                    sizes = smaller
                    break
        if not manner.is_preferring:
            return sizes
        return self._preferred(case, attempt, earlier, max(self._bytes(sizes), _LARGEST_RETRY)) or sizes

    def _preferred(self, case: int, attempt: int, earlier: Sequence[Assignment], most: int) -> Assignment | None:
        """Sizes that show more than those that are only demanded, in inputs of at most so many bytes; None where there
        are none. The first case is small: it has no regard to windows until it is refused.
        """
        everything = set(self._symbols)
        for chooser in self._preferring if case or attempt else self._preferring[1:]:
            for before, small in (
                (earlier, set()),
                (earlier, self._leading()),
                (earlier, everything),
                ((), everything),
            ):
                sizes = chooser.choose(before, attempt, small)
                if sizes is not None and self._bytes(sizes) <= most:
                    return sizes
        return None

    def _leading(self) -> set[str]:
        """The first dimensions of images and the like."""
        return {str(item.type.shape[0]) for item in self._inputs if item.type.shape and (item.type.rank or 0) > 2}

    def _plain_sizes(self, length: int | None) -> Assignment | None:
        """Sizes of 1, but for the length of signals where there should be some."""
        ones = dict.fromkeys(self._symbols, 1)
        if length is not None:
            signals = [item.type.shape[-1] for item in self._inputs if item.type.shape and _is_float(item.type)]
            ones.update((str(dim), length) for dim in signals if str(dim) in ones)
        ones |= self._fixed
        return _first_choice(self._make_choosers(ones)[-1:], (), 0)

    def _bytes(self, sizes: Assignment) -> int:
        """What the tensors among the inputs take, roughly."""
        total = 0
        for item in self._inputs:
            if item.type.kind == "tensor" and item.type.dtype in DTYPE_NUMBERS:
                shape = [evaluate(dim, sizes) for dim in item.type.shape or () if dim is not None]
                total += math.prod(shape) * _numpy_dtype(item.type.dtype).itemsize
        return total

    def _draw_value(self, item: _Input, wanted: ValueType, draw: _Draw) -> Value:
        element = wanted.element or ValueType("tensor", wanted.dtype, wanted.shape)
        if wanted.kind == "optional":
            absent = draw.case % 3 == 1 and draw.manner.is_first
            return None if absent else self._draw_value(item, element, draw)
        if wanted.kind == "sequence":
            return [self._draw_value(item, element, draw) for _ in range(2 + draw.case % 2)]
        if wanted.kind != "tensor" or wanted.dtype not in DTYPE_NUMBERS:
            raise InputError(f"the input {item.name!r} is of type {wanted}, which verify cannot make up")
        shape = _shape_of(item, wanted, draw.sizes)
        fitting = self._fitting_numbers(item, wanted, shape, draw)
        if fitting is not None:
            return fitting.astype(_numpy_dtype(wanted.dtype))
        if wanted.dtype == "bool" and math.prod(shape) == 1:
            draw.conditions += 1
            return np.full(shape, _condition(item, draw.case, draw.conditions - 1))
        number = self._number_for(item, wanted, draw) if (wanted.dtype or "").startswith(("int", "uint")) else None
        if number is not None:
            return np.full(shape, number).astype(_numpy_dtype(wanted.dtype))
        return draw_elements(
            wanted.dtype,
            shape,
            draw.rng,
            case=draw.case,
            manner=draw.manner,
            delimiters=self._delimiters,
            is_index=any(part in use.node.op_type for use in item.uses for part in _INDEXED),
            may_be_zero=not self._divides_integers,
            reach=self._reach(item) if _is_float(wanted) else 0.0,
        )

    def _number_for(self, item: _Input, wanted: ValueType, draw: _Draw) -> int | None:
        """What an integer input is compared with, in the second case, so that what follows from that is run as well (a
        sampling rate, of which a model has one branch each); or the length of the signals beside it.
        """
        length = draw.manner.signal_length
        if wanted.rank == 0 and draw.case % 3 == 1 and (draw.manner.is_first or length is not None):
            compared = [name for use in item.uses if use.node.op_type == "Equal" for name in use.node.input]
            found = [array for array in self._constants(compared) if array.size == 1]
            if found:
                return int(found[0].item())
        return length if wanted.dtype in ("int32", "int64") else None

    def _reach(self, item: _Input) -> float:
        """Beyond which numbers an input is clipped right away, or saturated by a quantization; 0 where it is not."""
        found = [0.0]
        for node in (use.node for use in item.uses if use.position == 0):
            if node.op_type == "Clip":
                bounds = [float(abs(array).max()) for array in self._constants(node.input[1:]) if array.size]
                bounds += [abs(each.f) for each in node.attribute if each.name in ("min", "max")]
                # What is beyond is no bound but the largest number of a type.
                found += [bound for bound in bounds if bound < _NO_BOUND]
            elif node.op_type == "QuantizeLinear":
                scales = [float(abs(array).max()) for array in self._constants(node.input[1:2]) if array.size]
                found += [_STEPS * scale for scale in scales]
        return max(found)

    def _constants(self, names: Collection[str]) -> Iterator[Array]:
        """Those of the main graph that have these names."""
        graph = self._analysis.model.graph
        yield from (onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer if tensor.name in names)
        for node in graph.node if names else ():
            if node.op_type == "Constant" and node.output[0] in names:
                yield from (onnx.numpy_helper.to_array(a.t) for a in node.attribute if a.name == "value")

    def _fitting_numbers(self, item: _Input, wanted: ValueType, shape: tuple[int, ...], draw: _Draw) -> Array | None:
        if wanted.dtype in ("bool", "string"):
            return None
        splits = (split for split in self._analysis.splits if split.axis is not None)
        axes = {tuple(name for name, _ in split.outputs): split.axis or 0 for split in splits}
        request = Request(shape, draw.rng, lambda name: self._dims(name, draw.sizes), axes)
        for use in item.uses:
            numbers = value_for(use, request)
            if numbers is not None:
                return numbers
        return None

    def _dims(self, name: str, sizes: Assignment) -> list[int] | None:
        """The shape of a value for given sizes of the inputs; None when it is not known."""
        inner = (split.input for split in self._analysis.splits if split.input_name == name)
        known = next((item.type for item in self._inputs if item.name == name), None)
        value = known or self._analysis.types.get(name) or next(inner, UNKNOWN)
        if value.shape is None:
            return None
        try:
            return [evaluate(dim, sizes) for dim in value.shape if dim is not None] if None not in value.shape else None
        except KeyError:
            return None

    def _make_choosers(self, fixed: Mapping[str, int]) -> list[Chooser]:
        """Those that find sizes, of which each demands less than the one before; the last has what splits demand alone.

        A dimension had better not be empty. A branch that is never taken may demand what the rest of the model rules
        out, and what is declared of a value may be wrong.
        """
        choosers = []
        for demands in (self._demands, self._of_splits):
            usable = [demand for demand in demands if demand.symbols and demand.symbols <= set(self._symbols)]
            firmly = [demand for demand in usable if "_branch" not in demand.location]
            steps = ((usable, 1), (usable, 0), (firmly, 0))
            found = (self._chooser(constraints, least, fixed) for constraints, least in steps)
            choosers += [chooser for chooser in found if chooser.choose() is not None][:1]
        return choosers

    def _make_preferring(self) -> list[Chooser]:
        """Those that also find what shows more: with regard to windows, and to what meets in broadcasting alone."""
        free = set(self._symbols) - self._fixed.keys()
        if not self._choosers or not free:
            return []
        types = {item.name: item.type.element or item.type for item in self._inputs}
        preferences = read_preferences(self._analysis, types)
        wanted = [
            [each for each in constraints if each.symbols & free and each.symbols <= set(self._symbols)]
            for constraints in (preferences.meetings, preferences.windows)
        ]
        meeting = with_wishes(self._choosers[0], wanted[0])
        return [with_wishes(meeting, wanted[1]), meeting]

    def _chooser(self, demands: Sequence[Constraint], least: int, fixed: Mapping[str, int]) -> Chooser:
        static = {dim for item in self._inputs for dim in item.type.shape or () if isinstance(dim, int)}
        bounds = {name: bound for name, bound in self._analysis.symbols.items() if name in self._symbols}
        expressions = [Constraint(dim, ">=", least) for dim in self._expressions()]
        return Chooser(self._symbols, [*demands, *expressions], bounds, fixed, static)

    def _expressions(self) -> list[Dim]:
        """The dimensions of the inputs that are more than a symbol."""
        shapes = [(item.type.element or item.type).shape or () for item in self._inputs]
        return [dim for shape in shapes for dim in shape if isinstance(dim, Dim) and str(dim) not in self._symbols]

    def _check_given(self) -> None:
        known = {item.name: item for item in self._inputs}
        for name, value in self._given.items():
            if name not in known:
                raise ValueError(f"the model has no input {name!r}; it has: {', '.join(known) or 'none'}")
            declared = known[name].type
            if declared.kind != "tensor":
                continue
            if not isinstance(value, np.ndarray):
                raise ValueError(f"the input {name!r} is a {type(value).__name__}; the model takes an array")
            found = "string" if is_text(value) else value.dtype.name
            if declared.dtype is not None and found != _numpy_name(declared.dtype):
                raise ValueError(f"the input {name!r} is of type {found}; the model takes {declared.dtype}")
            if declared.shape is not None and len(declared.shape) != value.ndim:
                raise ValueError(f"the input {name!r} has the shape {list(value.shape)}; the model takes {declared}")

    def _fixed_symbols(self, bind: Mapping[str, int]) -> dict[str, int]:
        names = {*_symbols_in_order(self._inputs), *self._analysis.symbols}
        for name, value in bind.items():
            if name not in names:
                raise ValueError(f"the model has no symbol {name!r}; it has: {', '.join(sorted(names)) or 'none'}")
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
                raise ValueError(f"the symbol {name!r} cannot be {value!r}; it is an integer of at least 0")
        fixed = {name: int(value) for name, value in bind.items()}
        for item in self._inputs:
            array = self._given.get(item.name)
            if isinstance(array, np.ndarray):
                for position, (dim, size) in enumerate(zip(item.type.shape or (), array.shape, strict=False)):
                    _fix(fixed, dim, size, f"dimension {position} of the input {item.name!r}")
        return fixed


def _fix(fixed: dict[str, int], dim: DimLike | None, size: int, where: str) -> None:
    if isinstance(dim, int):
        if dim != size:
            raise ValueError(f"{where} is {size}; the model takes {dim}")
    elif dim is not None and symbols_of(dim) == {str(dim)} and fixed.setdefault(str(dim), size) != size:
        raise ValueError(f"{where} is {size}, but {dim} is {fixed[str(dim)]} elsewhere")


def _describe_inputs(analysis: Analysis) -> list[_Input]:
    model = analysis.model
    uses = find_uses(model)
    defaults = default_names(model)
    described = []
    for name in caller_inputs(model):
        found = tuple(uses.get(name, ()))
        named = _name_dimensions(analysis.types.get(name, UNKNOWN), name, found)
        described.append(_Input(name, named, found, name in defaults))
    return described


def _name_dimensions(value: ValueType, name: str, uses: Sequence[Use]) -> ValueType:
    """The type with a symbol of its own for each dimension that is not known, and with a rank."""
    if value.element is not None:
        element = _name_dimensions(value.element, name, uses)
        return ValueType(value.kind, value.dtype, value.shape, element)
    if value.shape is None:
        count = next((n for n in map(required_count, uses) if n is not None), None)
        is_chunk = any(use.node.op_type == "SplitToSequence" and use.position == 1 for use in uses)
        rank = 1 if count is not None else 0 if is_chunk else _GUESSED_RANK
        return value.with_shape([symbol(f"{name}:{axis}") for axis in range(rank)])
    return value.with_shape([symbol(f"{name}:{axis}") if dim is None else dim for axis, dim in enumerate(value.shape)])


def _symbols_in_order(inputs: Iterable[_Input]) -> list[str]:
    names: dict[str, None] = {}
    for item in inputs:
        shape = (item.type.element or item.type).shape
        for dim in shape or ():
            names.update(dict.fromkeys(sorted(symbols_of(dim)) if dim is not None else ()))
    return list(names)


def _first_choice(
    choosers: Sequence[Chooser], earlier: Sequence[Assignment], scale: int, small: Collection[str] = ()
) -> Assignment | None:
    choices = (chooser.choose(earlier, scale, small) for chooser in choosers)
    return next((sizes for sizes in choices if sizes is not None), None)


def _count_demands(inputs: Iterable[_Input]) -> list[Constraint]:
    """An input of lengths has as many elements as the split has outputs."""
    demands = []
    for item in inputs:
        for use in item.uses:
            count = required_count(use)
            if count is not None and item.type.rank == 1 and item.type.shape and item.type.shape[0] is not None:
                demands.append(Constraint(item.type.shape[0], "==", count, "main"))
    return demands


def _room_demands(inputs: Iterable[_Input], analysis: Analysis) -> list[Constraint]:
    """There are as many places as are written to, so that none need be written to twice, which has no order."""
    demands = []
    for item in inputs:
        scatters = [use.node for use in item.uses if use.node.op_type in _SCATTERS and use.position == 1]
        for node in scatters if item.type.shape else ():
            *places, depth = item.type.shape or ()
            room = (analysis.types.get(node.input[0], UNKNOWN).shape or ())[: depth if isinstance(depth, int) else 0]
            known = [dim for dim in room if dim is not None], [dim for dim in places if dim is not None]
            if room and (len(known[0]), len(known[1])) == (len(room), len(places)):
                demands.append(Constraint(product(known[0]), ">=", product(known[1]), "main"))
    return demands


def _is_float(value: ValueType) -> bool:
    return (value.dtype or "").startswith(("float", "bfloat"))


def _shape_of(item: _Input, wanted: ValueType, sizes: Assignment) -> tuple[int, ...]:
    shape = tuple(evaluate(dim, sizes) for dim in wanted.shape or () if dim is not None)
    if any(dim < 0 for dim in shape):
        raise InputError(f"the input {item.name!r} would have the shape {list(shape)}")
    if math.prod(shape) * _numpy_dtype(wanted.dtype or "float32").itemsize > _LARGEST_INPUT:
        raise InputError(f"the input {item.name!r} of shape {list(shape)} takes more than {_LARGEST_INPUT >> 20} MiB")
    return shape


def _condition(item: _Input, case: int, position: int) -> bool:
    """Both ways of every condition within the first cases; the condition of a Loop is true, or nothing would run."""
    if any(use.node.op_type == "Loop" and use.position == 1 for use in item.uses):
        return True
    return (case >> position) % 2 == 0


def _divides_integers(analysis: Analysis) -> bool:
    """True when a node may divide by an integer: by 0, a runtime may end the process."""
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


def _numpy_name(dtype: str) -> str:
    return dtype if dtype == "string" else _numpy_dtype(dtype).name


def _numpy_dtype(name: str) -> np.dtype[Any]:
    """numpy's or ml_dtypes' element type for an ONNX name."""
    if name == "string":
        return dtype_by_name("object")
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[name]))
