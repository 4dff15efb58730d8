"""Draw inputs for a model: sizes that satisfy its constraints, and elements that its operators accept.

The inputs depend only on the model, the seed, the case and the attempt, so that every engine gets the same.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from splitgraph.dim import evaluate
from splitgraph.inference.analysis import Analysis
from splitgraph.model.schemas import kinds
from splitgraph.model.value_type import DTYPE_NUMBERS, ValueType
from splitgraph.verification.inputs.elements import ElementHints, draw_elements
from splitgraph.verification.inputs.given_inputs import GivenCase, as_cases, fitted_arrays, fixed_symbols, names_of
from splitgraph.verification.inputs.later_attempts import RETRY_POLICY, AttemptRule
from splitgraph.verification.inputs.model_inputs import InputError, ModelInput, describe_inputs, numpy_dtype
from splitgraph.verification.inputs.sizes import SizeChooser
from splitgraph.verification.inputs.solver import SymbolSizes
from splitgraph.verification.models.model_pair import caller_inputs
from splitgraph.verification.values import Value

# No single input is larger than this.
_LARGEST_INPUT = 256 * 2**20
# A longer dimension is only tried if no value of the model has more elements than this.
_USUAL_LENGTH, _MOST_SMALL = 2**14, 2**22
# Operators and layers that take integers as numbers, and what passes these on.
_COMPUTING = kinds.BASIC | kinds.SIGNED | kinds.BROADCASTS & (kinds.COMPARED | kinds.ORDERED)
_COMPUTING |= kinds.names("Cast Clip Mod Where")
_COMPUTING |= {layer for layer, name in kinds.LAYER_OPERATORS.items() if name in _COMPUTING}
_COMPUTING |= kinds.names("Clamp Convert NotEqual")
# The attempt whose rules draw inputs of small sizes.
_SMALL_ATTEMPT = 1


@dataclass(frozen=True, slots=True)
class UnknownRank:
    """Says which value has an unknown rank, so that no fitting inputs can be found, and what to do about it."""

    reason: str
    help: str


@dataclass(slots=True)
class _Draw:
    """The state of one draw. conditions: how many boolean scalars were drawn so far."""

    sizes: SymbolSizes
    rng: np.random.Generator
    case: int
    rule: AttemptRule
    conditions: int = 0


class InputMaker:
    """Draws the inputs for the cases of one verification.

    analysis: of the model. bind: sizes of symbols. given: arrays for some of the inputs, a mapping that every case
    uses, or a list of mappings (or `GivenCase`s) that are used in turn. left_out: inputs with a default that are never
    given, each with the reason. names: the shared names of inputs, by the model's own. Raises ValueError for a size or
    an array that does not fit the model, InputError if nothing can be drawn.
    """

    def __init__(
        self,
        analysis: Analysis,
        *,
        seed: int = 0,
        bind: Mapping[str, int] | None = None,
        given: Mapping[str, Value] | Sequence[Mapping[str, Value] | GivenCase] | None = None,
        left_out: Mapping[str, str] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        if bind is not None and not isinstance(bind, Mapping):
            raise ValueError(f"bind is {bind!r}; it must be a mapping by name")
        self._analysis = analysis
        self._seed = seed
        self._names = dict(names or {})
        left_out = left_out or {}
        self._inputs = [item for item in describe_inputs(analysis) if item.name not in left_out]
        cases = as_cases(given)
        self._cases = [replace(case, inputs=fitted_arrays(self._inputs, case, left_out)) for case in cases]
        self.given = names_of(self._cases)
        self._hints = ElementHints(analysis, self._inputs)
        fixed = [fixed_symbols(self._inputs, analysis.symbols, bind or {}, case) for case in self._cases]
        self._sizes = [SizeChooser(analysis, self._inputs, sizes) for sizes in fixed]

    def case_of(self, case: int) -> GivenCase:
        """Return what the caller gave for a case."""
        return self._cases[case % len(self._cases)]

    def count(self, samples: int) -> int:
        """Return how many cases there are if the caller asks for so many: each given one, and more if inputs vary."""
        return max(samples if self.varies else 1, len(self._cases))

    @property
    def varies(self) -> bool:
        """Return True if the inputs can differ from case to case."""
        return bool(self.varying())

    def unknown_rank(self) -> UnknownRank | None:
        """Return the first value of unknown rank, inputs that are not given first; None without any."""
        inputs = caller_inputs(self._analysis.model)
        types = self._analysis.types.items()
        unknown = [name for name, value in types if value.kind == "tensor" and value.shape is None]
        for name in unknown:
            if name in inputs and name not in self.given:
                reason = f"the rank of the input {name!r} is unknown"
                given = f"with --inputs (Python: inputs={{{name!r}: ...}})"
                return UnknownRank(reason, f"Declare its shape in both models, or give an array {given}.")
        for name in unknown:
            if name not in inputs:
                reason = f"the rank of {name!r} is unknown, because it depends on the sizes of the inputs"
                return UnknownRank(reason, "Give sizes that fit the model with --bind, or arrays with --inputs.")
        return None

    def has_only_ones(self, attempts: Collection[int]) -> bool:
        """Return True if every open dimension is 1 in all of these attempts."""
        return all(sizes.has_only_ones(attempts) for sizes in self._sizes)

    def draw(
        self, case: int, attempt: int = 0, earlier: Sequence[SymbolSizes] = ()
    ) -> tuple[dict[str, Value], SymbolSizes]:
        """Draw the inputs of a case, by name, and their sizes, which differ from the `earlier` ones.

        Every attempt has other elements and sizes. An input with a default is drawn only in the first attempt at the
        second case.
        """
        sizes = self._sizes[case % len(self._sizes)].choose(case, attempt, earlier)
        return self._drawn(sizes, case, attempt), sizes

    def small(self, sizes_of: Sequence[int]) -> Iterator[dict[str, Value]]:
        """Yield inputs with dimensions of these sizes, such as 1 and 0."""
        for sizes in self._sizes[0].small(sizes_of):
            with contextlib.suppress(InputError, ArithmeticError):
                yield self._drawn(sizes, 0, _SMALL_ATTEMPT)

    def reaching(self, length: int) -> Iterator[dict[str, Value]]:
        """Yield inputs with a dimension of this size, and inputs whose whole numbers are positions up to it. At a large
        size, no value of the model may be large.
        """
        for sizes in self._sizes[0].reaching(length):
            if length > _USUAL_LENGTH and not self._is_small(sizes):
                continue
            with contextlib.suppress(InputError, ArithmeticError):
                yield self._drawn(sizes, 0, 0)
        with contextlib.suppress(InputError, ArithmeticError):
            usual = self._drawn(self._sizes[0].choose(0, 0, ()), 0, 0)
            whole = [item.name for item in self._inputs if item.name not in self.given and _is_whole(item.type)]
            names = [self._names.get(name, name) for name in whole]
            for number in (length - 1, length) if names else ():
                yield usual | {name: _all_of(usual[name], number) for name in names if name in usual}

    def reaching_each(self, lengths: Mapping[str, int]) -> Iterator[dict[str, Value]]:
        """Yield inputs in which symbols have these sizes; none where no value may be so large."""
        sizes = self._sizes[0].reaching_each(lengths)
        if sizes is not None and (max(lengths.values()) <= _USUAL_LENGTH or self._is_small(sizes)):
            with contextlib.suppress(InputError, ArithmeticError):
                yield self._drawn(sizes, 0, 0)

    def reached_alone(self) -> list[str | None]:
        """Return the symbol that each of `sizes_beside` is about (see `SizeChooser.reached_alone`)."""
        return self._sizes[0].reached_alone()

    def sizes_beside(self, length: int) -> list[SymbolSizes | None]:
        """Return sizes at which a dimension is of this size (see `SizeChooser.beside`)."""
        return self._sizes[0].beside(length)

    def _is_small(self, sizes: SymbolSizes) -> bool:
        """Return True if all values of the model are known to have few elements at these sizes."""
        for value in self._analysis.types.values():
            if value.kind != "tensor" or value.shape is None:
                return False
            try:
                dims = [_MOST_SMALL if dim is None else evaluate(dim, sizes) for dim in value.shape]
            except (KeyError, ArithmeticError):
                return False
            if math.prod(dims) > _MOST_SMALL:
                return False
        return True

    def _drawn(self, sizes: SymbolSizes, case: int, attempt: int) -> dict[str, Value]:
        given = self.case_of(case).inputs
        draw = _Draw(sizes, np.random.default_rng([self._seed, case, attempt]), case, RETRY_POLICY[attempt])
        values: dict[str, Value] = {}
        for item in self._inputs:
            if item.name in given:
                values[self._names.get(item.name, item.name)] = given[item.name]
            elif not item.has_default or (case == 1 and draw.rule.is_first):
                values[self._names.get(item.name, item.name)] = self._draw_value(item, item.type, draw)
        return values

    def varying(self) -> list[str]:
        """Return the names, in the model, of the inputs that are drawn, and so differ from case to case."""
        return [item.name for item in self._inputs if item.name not in self.given]

    def shared_name(self, name: str) -> str:
        """Return the name that both models have for an input of the model."""
        return self._names.get(name, name)

    def rows(self) -> dict[str, int]:
        """Return how many rows the tables have that are read at the positions in an input, for each that is drawn."""
        found: dict[str, int] = {}
        for item in self._inputs:
            gathers = [use.node for use in item.uses if use.node.op_type == "Gather" and use.position == 1]
            counts = [self._hints.rows_of(node) for node in gathers]
            known = [count for count in counts if count is not None and count > 0]
            if item.name not in self.given and known and len(known) == len(gathers):
                found[self._names.get(item.name, item.name)] = min(known)
        return found

    def plain_integers(self) -> set[str]:
        """Return the inputs of integers, among those that are drawn, that nodes compute with as with other numbers."""
        return {
            self._names.get(item.name, item.name)
            for item in self._inputs
            if item.name not in self.given and all(use.node.op_type in _COMPUTING for use in item.uses)
        }

    def _draw_value(self, item: ModelInput, wanted: ValueType, draw: _Draw) -> Value:
        element = wanted.element or ValueType("tensor", wanted.dtype, wanted.shape)
        if wanted.kind == "optional":
            absent = draw.case % 3 == 1 and draw.rule.is_first
            return None if absent else self._draw_value(item, element, draw)
        if wanted.kind == "sequence":
            # A sequence of sequences has one element, or their numbers would multiply.
            count = 1 if element.kind == "sequence" else 2 + draw.case % 2
            return [self._draw_value(item, element, draw) for _ in range(count)]
        if wanted.kind != "tensor" or wanted.dtype not in DTYPE_NUMBERS:
            raise InputError(f"verify cannot create values of type {wanted} for the input {item.name!r}")
        shape = _shape_of(item, wanted, draw.sizes)
        if wanted.dtype not in ("bool", "string"):
            valid = self._hints.valid_numbers(item, shape, draw.sizes, draw.rng)
            if valid is not None:
                return valid.astype(numpy_dtype(wanted.dtype))
        if wanted.dtype == "bool" and math.prod(shape) == 1:
            draw.conditions += 1
            return np.full(shape, _condition(item, draw.case, draw.conditions - 1))
        number = self._number_for(item, wanted, draw) if wanted.dtype.startswith(("int", "uint")) else None
        if number is not None:
            return np.full(shape, number).astype(numpy_dtype(wanted.dtype))
        return draw_elements(
            wanted.dtype,
            shape,
            draw.rng,
            case=draw.case,
            rule=draw.rule,
            delimiters=self._hints.delimiters,
            is_index=self._hints.is_index(item),
            is_mask=bool(shape) and self._hints.is_mask(item),
            may_be_zero=not self._hints.divides_integers,
            reach=self._hints.reach(item),
        )

    def _number_for(self, item: ModelInput, wanted: ValueType, draw: _Draw) -> int | None:
        """Return a number for an integer input; None if random integers will do.

        In the second case it is a number that the model compares the input with, so that both branches run; else it may
        be the length of the signal in another input.
        """
        length = draw.rule.signal_length
        if wanted.rank == 0 and draw.case % 3 == 1 and (draw.rule.is_first or length is not None):
            number = self._hints.compared_number(item)
            if number is not None:
                return number
        return length if wanted.dtype in ("int32", "int64") else None


def _shape_of(item: ModelInput, wanted: ValueType, sizes: SymbolSizes) -> tuple[int, ...]:
    shape = tuple(evaluate(dim, sizes) for dim in wanted.shape or () if dim is not None)
    if any(dim < 0 for dim in shape):
        raise InputError(f"the input {item.name!r} would have the shape {list(shape)}")
    if math.prod(shape) * numpy_dtype(wanted.dtype or "float32").itemsize > _LARGEST_INPUT:
        raise InputError(f"the input {item.name!r} of shape {list(shape)} takes more than {_LARGEST_INPUT >> 20} MiB")
    return shape


def _is_whole(wanted: ValueType) -> bool:
    return wanted.kind == "tensor" and wanted.dtype in ("int32", "int64")


def _all_of(value: Value, number: int) -> Value:
    return np.full_like(value, number) if isinstance(value, np.ndarray) else value


def _condition(item: ModelInput, case: int, position: int) -> bool:
    """Return a condition that is true and false in the first cases; that of a Loop is always true, so that it runs."""
    if any(use.node.op_type == "Loop" and use.position == 1 for use in item.uses):
        return True
    return (case >> position) % 2 == 0
