"""Sizes for the dimensions of a model's inputs: such as meet what the model demands, and show much."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from splitgraph.dim import Dim, evaluate, product
from splitgraph.execution.inputs.model_inputs import InputError, ModelInput, is_float, numpy_dtype, symbols_in_order
from splitgraph.execution.inputs.preferred import read_preferred, with_preferred
from splitgraph.execution.inputs.required import read_required, read_required_by_splits
from splitgraph.execution.inputs.retry_policy import RETRY_POLICY
from splitgraph.execution.inputs.roles import required_count
from splitgraph.execution.inputs.solver import Constraint, Sizes, Solver
from splitgraph.inference.analysis import Analysis
from splitgraph.value_type import DTYPE_NUMBERS, UNKNOWN

# Inputs of a retry that would take more have small leading dimensions, as of large images a few will do, or only such;
# and sizes are made no larger than this only to show more.
_LARGEST_RETRY = 8 * 2**20
# The scale of sizes that are to be large (see `assignments`).
_LARGE = 3
_SCATTERS = ("ScatterND", "ScatterNDUpdate")


class SizeChooser:
    """Chooses sizes for one model.

    inputs: those that are to be filled. fixed: sizes of symbols that the caller has given.
    """

    def __init__(self, analysis: Analysis, inputs: Sequence[ModelInput], fixed: Mapping[str, int]) -> None:
        self._analysis = analysis
        self._inputs = inputs
        self._fixed = fixed
        self._symbols = symbols_in_order(inputs)
        counts = _count_demands(inputs)
        self._demands = [*read_required(analysis, self._symbols), *counts, *_room_demands(inputs, analysis)]
        self._of_splits = [*read_required_by_splits(analysis), *counts]
        self._choosers = self._make_choosers(fixed)
        self._preferring = self._make_preferring()

    def has_only_ones(self, attempts: Collection[int]) -> bool:
        """True when in all of these attempts every dimension is 1 that the model and the caller leave open."""
        if not all(
            RETRY_POLICY[attempt].all_ones and RETRY_POLICY[attempt].signal_length is None for attempt in attempts
        ):
            return False
        is_open = bool(set(self._symbols) - self._fixed.keys())
        return is_open and bool(attempts) and self._plain_sizes(None) is not None

    def choose(self, case: int, attempt: int, earlier: Sequence[Sizes]) -> Sizes:
        """Sizes for an attempt at a case, unlike the `earlier` ones. Raises InputError where there are none."""
        rule = RETRY_POLICY[attempt]
        if rule.all_ones:
            plain = self._plain_sizes(rule.signal_length)
            if plain is not None:
                return plain
        choosers, scale = self._choosers[-1:] if rule.only_split_rules else self._choosers, attempt
        if rule.single is not None and (single := self._with_one(rule.single)):
            choosers, scale = single, _LARGE
        sizes = _first_choice(choosers, earlier, scale)
        if sizes is None:
            raise InputError("no sizes of the inputs' dimensions meet the model's obligations")
        if not rule.is_first and self._bytes(sizes) > _LARGEST_RETRY:
            for small in (self._leading(), set(self._symbols)):
                smaller = _first_choice(choosers, earlier, scale, small)
                if smaller is not None and self._bytes(smaller) <= _LARGEST_RETRY:
                    sizes = smaller
                    break
        if not rule.uses_preferences:
            return sizes
        return self._preferred(case, attempt, earlier, max(self._bytes(sizes), _LARGEST_RETRY)) or sizes

    def _with_one(self, number: int) -> list[Solver]:
        """Those that find sizes with 1 for the free dimension of a number, of several; none where there is none."""
        free = [name for name in self._symbols if name not in self._fixed]
        if len(free) < 2 or number >= len(free):
            return []
        return self._make_choosers({**self._fixed, free[number]: 1})

    def _preferred(self, case: int, attempt: int, earlier: Sequence[Sizes], most: int) -> Sizes | None:
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

    def _plain_sizes(self, length: int | None) -> Sizes | None:
        """Sizes of 1, but for the length of signals where there should be some."""
        ones = dict.fromkeys(self._symbols, 1)
        if length is not None:
            signals = [item.type.shape[-1] for item in self._inputs if item.type.shape and is_float(item.type)]
            ones.update((str(dim), length) for dim in signals if str(dim) in ones)
        ones |= self._fixed
        return _first_choice(self._make_choosers(ones)[-1:], (), 0)

    def _bytes(self, sizes: Sizes) -> int:
        """What the tensors among the inputs take, roughly."""
        total = 0
        for item in self._inputs:
            if item.type.kind == "tensor" and item.type.dtype in DTYPE_NUMBERS:
                shape = [evaluate(dim, sizes) for dim in item.type.shape or () if dim is not None]
                total += math.prod(shape) * numpy_dtype(item.type.dtype).itemsize
        return total

    def _make_choosers(self, fixed: Mapping[str, int]) -> list[Solver]:
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

    def _make_preferring(self) -> list[Solver]:
        """Those that also find what shows more: with regard to windows, and to what meets in broadcasting alone."""
        free = set(self._symbols) - self._fixed.keys()
        if not self._choosers or not free:
            return []
        types = {item.name: item.type.innermost for item in self._inputs}
        preferences = read_preferred(self._analysis, types)
        wanted = [
            [each for each in constraints if each.symbols & free and each.symbols <= set(self._symbols)]
            for constraints in (preferences.meetings, preferences.windows)
        ]
        meeting = with_preferred(self._choosers[0], wanted[0])
        return [with_preferred(meeting, wanted[1]), meeting]

    def _chooser(self, demands: Sequence[Constraint], least: int, fixed: Mapping[str, int]) -> Solver:
        static = {dim for item in self._inputs for dim in item.type.shape or () if isinstance(dim, int)}
        bounds = {name: bound for name, bound in self._analysis.symbols.items() if name in self._symbols}
        expressions = [Constraint(dim, ">=", least) for dim in self._expressions()]
        return Solver(self._symbols, [*demands, *expressions], bounds, fixed, static)

    def _expressions(self) -> list[Dim]:
        """The dimensions of the inputs that are more than a symbol."""
        shapes = [item.type.innermost.shape or () for item in self._inputs]
        return [dim for shape in shapes for dim in shape if isinstance(dim, Dim) and str(dim) not in self._symbols]


def _first_choice(
    choosers: Sequence[Solver], earlier: Sequence[Sizes], scale: int, small: Collection[str] = ()
) -> Sizes | None:
    choices = (chooser.choose(earlier, scale, small) for chooser in choosers)
    return next((sizes for sizes in choices if sizes is not None), None)


def _count_demands(inputs: Iterable[ModelInput]) -> list[Constraint]:
    """An input of lengths has as many elements as the split has outputs."""
    demands = []
    for item in inputs:
        for use in item.uses:
            count = required_count(use)
            if count is not None and item.type.rank == 1 and item.type.shape and item.type.shape[0] is not None:
                demands.append(Constraint(item.type.shape[0], "==", count, "main"))
    return demands


def _room_demands(inputs: Iterable[ModelInput], analysis: Analysis) -> list[Constraint]:
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
