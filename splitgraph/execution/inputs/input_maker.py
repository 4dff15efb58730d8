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

from splitgraph.dim import DimLike, evaluate, marks_unknown, symbols_of
from splitgraph.execution.inputs.elements import draw_elements
from splitgraph.execution.inputs.model_inputs import (
    InputError,
    ModelInput,
    describe_inputs,
    is_float,
    numpy_dtype,
    numpy_name,
    symbols_in_order,
)
from splitgraph.execution.inputs.operator_roles import Request
from splitgraph.execution.inputs.refill import refill, suggested_numbers
from splitgraph.execution.inputs.retry_policy import RETRY_POLICY, AttemptRule
from splitgraph.execution.inputs.roles import value_for
from splitgraph.execution.inputs.sizes import SizeChooser
from splitgraph.execution.inputs.solver import Sizes
from splitgraph.execution.models.interfaces import caller_inputs
from splitgraph.execution.models.model_edits import is_default_domain, scoped_nodes
from splitgraph.execution.values import Value, is_text
from splitgraph.inference.analysis import Analysis
from splitgraph.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType

Array = npt.NDArray[Any]

# A single input larger than this is not allocated.
_LARGEST_INPUT = 256 * 2**20
# Numbers to which a model clips are smaller than this; and so many steps a quantization to 8 bits has.
_NO_BOUND = 1e9
_STEPS = 256
# Parts of the names of operators that read at positions, which not every runtime checks; and operators that divide.
_INDEXED = ("Gather", "Scatter", "Feature", "OneHot", "Loss", "Embed", "Attention", "Sequence")
_DIVISIONS = ("Div", "Mod", "Divide", "FloorMod")


@dataclass(frozen=True, slots=True)
class UnknownRank:
    """A value of unknown rank, by which inputs that fit cannot be found: what is unknown, and what to do."""

    reason: str
    help: str


@dataclass(slots=True)
class _Draw:
    """One draw: the sizes, the random generator, and how many conditions it has met so far."""

    sizes: Sizes
    rng: np.random.Generator
    case: int
    rule: AttemptRule
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
        self._inputs = [item for item in describe_inputs(analysis) if item.name not in left_out]
        self._delimiters = _delimiters(analysis.model)
        self._divides_integers = _divides_integers(analysis)
        self._check_given()
        fixed = self._fixed_symbols(bind or {})
        self._sizes = SizeChooser(analysis, self._inputs, fixed)

    @property
    def varies(self) -> bool:
        """True when another case can have other inputs."""
        return bool(self.varying())

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
        return self._sizes.has_only_ones(attempts)

    def draw(self, case: int, attempt: int = 0, earlier: Sequence[Sizes] = ()) -> tuple[dict[str, Value], Sizes]:
        """Inputs by name for a case, and the sizes in them, unlike the `earlier` ones; other attempts draw other
        elements and sizes.

        An input with a default is given in the first attempt at the second case only, and left to its default
        elsewhere.
        """
        sizes = self._sizes.choose(case, attempt, earlier)
        draw = _Draw(sizes, np.random.default_rng([self._seed, case, attempt]), case, RETRY_POLICY[attempt])
        values: dict[str, Value] = {}
        for item in self._inputs:
            if item.name in self._given:
                values[self._names.get(item.name, item.name)] = self._given[item.name]
            elif not item.has_default or (case == 1 and draw.rule.is_first):
                values[self._names.get(item.name, item.name)] = self._draw_value(item, item.type, draw)
        return values, sizes

    def refill(self, accepted: Sequence[Mapping[str, Value]], numbers: Iterable[int]) -> Iterator[dict[str, Value]]:
        """Inputs of the shapes of those that the model accepted, with other elements (see `ordinary_inputs`); what the
        caller gave stays.

        numbers: of the cases to be added.
        """
        held = {self._names.get(name, name) for name in self._given}
        suggested = suggested_numbers(self._analysis.model)
        for number in numbers:
            rng = np.random.default_rng([self._seed, number])
            values = accepted[number % len(accepted)].items()
            yield {
                name: value if name in held else refill(value, number, place, rng, suggested)
                for place, (name, value) in enumerate(values)
            }

    def varying(self) -> list[str]:
        """The model's own names of the inputs that are not the same in each case."""
        return [item.name for item in self._inputs if item.name not in self._given]

    def _draw_value(self, item: ModelInput, wanted: ValueType, draw: _Draw) -> Value:
        element = wanted.element or ValueType("tensor", wanted.dtype, wanted.shape)
        if wanted.kind == "optional":
            absent = draw.case % 3 == 1 and draw.rule.is_first
            return None if absent else self._draw_value(item, element, draw)
        if wanted.kind == "sequence":
            # Of sequences in sequences, which multiply, one each.
            count = 1 if element.kind == "sequence" else 2 + draw.case % 2
            return [self._draw_value(item, element, draw) for _ in range(count)]
        if wanted.kind != "tensor" or wanted.dtype not in DTYPE_NUMBERS:
            raise InputError(f"verify cannot create values of type {wanted} for the input {item.name!r}")
        shape = _shape_of(item, wanted, draw.sizes)
        fitting = self._fitting_numbers(item, wanted, shape, draw)
        if fitting is not None:
            return fitting.astype(numpy_dtype(wanted.dtype))
        if wanted.dtype == "bool" and math.prod(shape) == 1:
            draw.conditions += 1
            return np.full(shape, _condition(item, draw.case, draw.conditions - 1))
        number = self._number_for(item, wanted, draw) if (wanted.dtype or "").startswith(("int", "uint")) else None
        if number is not None:
            return np.full(shape, number).astype(numpy_dtype(wanted.dtype))
        return draw_elements(
            wanted.dtype,
            shape,
            draw.rng,
            case=draw.case,
            rule=draw.rule,
            delimiters=self._delimiters,
            is_index=any(part in use.node.op_type for use in item.uses for part in _INDEXED),
            is_mask=bool(shape) and self._is_mask(item),
            may_be_zero=not self._divides_integers,
            reach=self._reach(item) if is_float(wanted) else 0.0,
        )

    def _number_for(self, item: ModelInput, wanted: ValueType, draw: _Draw) -> int | None:
        """What an integer input is compared with, in the second case, so that what follows from that is run as well (a
        sampling rate, of which a model has one branch each); or the length of the signals beside it.
        """
        length = draw.rule.signal_length
        if wanted.rank == 0 and draw.case % 3 == 1 and (draw.rule.is_first or length is not None):
            compared = [name for use in item.uses if use.node.op_type == "Equal" for name in use.node.input]
            found = [array for array in self._constants(compared) if array.size == 1]
            if found:
                return int(found[0].item())
        return length if wanted.dtype in ("int32", "int64") else None

    def _is_mask(self, item: ModelInput) -> bool:
        """True for an input of that name, and for one that is taken from 1, as attention does with its mask."""
        taken = [use.node.input[0] for use in item.uses if use.node.op_type == "Sub" and use.position == 1]
        return "mask" in item.name.lower() or any(
            array.size == 1 and array.item() == 1 for array in self._constants(taken)
        )

    def _reach(self, item: ModelInput) -> float:
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

    def _fitting_numbers(
        self, item: ModelInput, wanted: ValueType, shape: tuple[int, ...], draw: _Draw
    ) -> Array | None:
        if wanted.dtype in ("bool", "string"):
            return None
        splits = (split for split in self._analysis.splits if split.axis is not None)
        axes = {tuple(name for name, _ in split.outputs): split.axis or 0 for split in splits}
        opset = self._analysis.opset.get("", 0)
        request = Request(shape, draw.rng, lambda name: self._dims(name, draw.sizes), axes, opset)
        for use in item.uses:
            numbers = value_for(use, request)
            if numbers is not None:
                return numbers
        return None

    def _dims(self, name: str, sizes: Sizes) -> list[int] | None:
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
            if declared.dtype is not None and found != numpy_name(declared.dtype):
                raise ValueError(f"the input {name!r} is of type {found}; the model takes {declared.dtype}")
            if declared.shape is not None and len(declared.shape) != value.ndim:
                raise ValueError(f"the input {name!r} has the shape {list(value.shape)}; the model takes {declared}")

    def _fixed_symbols(self, bind: Mapping[str, int]) -> dict[str, int]:
        names = {*symbols_in_order(self._inputs), *self._analysis.symbols}
        for name, value in bind.items():
            if name not in names:
                mark = f"{name!r} marks unknown dimensions and names none" if marks_unknown(name) else ""
                reason = mark or f"the model has no symbol {name!r}"
                raise ValueError(f"{reason}; it has: {', '.join(sorted(names)) or 'none'}")
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


def _shape_of(item: ModelInput, wanted: ValueType, sizes: Sizes) -> tuple[int, ...]:
    shape = tuple(evaluate(dim, sizes) for dim in wanted.shape or () if dim is not None)
    if any(dim < 0 for dim in shape):
        raise InputError(f"the input {item.name!r} would have the shape {list(shape)}")
    if math.prod(shape) * numpy_dtype(wanted.dtype or "float32").itemsize > _LARGEST_INPUT:
        raise InputError(f"the input {item.name!r} of shape {list(shape)} takes more than {_LARGEST_INPUT >> 20} MiB")
    return shape


def _condition(item: ModelInput, case: int, position: int) -> bool:
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
