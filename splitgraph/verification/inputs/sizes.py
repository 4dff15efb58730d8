"""Choose input sizes that satisfy the constraints of a model and show differences well."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from splitgraph.dim import Dim, DimLike, Obligation, evaluate, product, substitute_if_defined, symbols_of
from splitgraph.inference.analysis import Analysis
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN
from splitgraph.verification.inputs.later_attempts import RETRY_POLICY
from splitgraph.verification.inputs.model_inputs import (
    InputError,
    ModelInput,
    is_float,
    numpy_dtype,
    required_count,
    symbols_in_order,
)
from splitgraph.verification.inputs.preferred import read_preferred, with_preferred
from splitgraph.verification.inputs.solver import Condition, Solver, SymbolSizes

# The most bytes of the inputs in later attempts. Larger inputs get small leading dimensions (a few large images are
# enough), or only small dimensions. Preferred sizes do not exceed this limit either.
_LARGEST_RETRY = 8 * 2**20
# Inputs with more bytes get small leading dimensions at once: a few large images are enough.
_LARGE_INPUTS = 2**20
_FEW = (2, 1, 3)
# The scale of large sizes (see `solver`).
_LARGE = 3
# Of so many dimensions, each one is small by itself in some case.
_MOST_SMALL = 4
# All dimensions together are no longer than this.
_MOST_TOGETHER = 64
# A length that most models take.
_USUAL_LENGTH = 32
_SCATTERS = ("ScatterND", "ScatterNDUpdate")


class SizeChooser:
    """Chooses sizes for one model. inputs: those that are drawn. fixed: sizes of symbols that the caller gave."""

    def __init__(self, analysis: Analysis, inputs: Sequence[ModelInput], fixed: Mapping[str, int]) -> None:
        self._analysis = analysis
        self._inputs = inputs
        self._fixed = fixed
        self._symbols = symbols_in_order(inputs)
        counts = _required_counts(inputs)
        self._required = [*read_required(analysis, self._symbols), *counts, *_required_room(inputs, analysis)]
        self._required_by_splits = [*read_required_by_splits(analysis), *counts]
        self._solvers = self._make_solvers(fixed)
        self._preferring = self._make_preferring()
        self._usual: dict[tuple[tuple[str, ...], tuple[str, ...]], SymbolSizes | None] = {}

    def has_only_ones(self, attempts: Collection[int]) -> bool:
        """Return True if every open dimension is 1 in all of these attempts."""
        if not all(
            RETRY_POLICY[attempt].all_ones and RETRY_POLICY[attempt].signal_length is None for attempt in attempts
        ):
            return False
        is_open = bool(set(self._symbols) - self._fixed.keys())
        return is_open and bool(attempts) and self._sizes_of_one(None) is not None

    def choose(self, case: int, attempt: int, earlier: Sequence[SymbolSizes]) -> SymbolSizes:
        """Return sizes for an attempt at a case, different from the `earlier` ones. Raises InputError without any."""
        rule = RETRY_POLICY[attempt]
        if rule.all_ones:
            ones = self._sizes_of_one(rule.signal_length)
            if ones is not None:
                return ones
        solvers, scale = self._solvers[-1:] if rule.only_split_rules else self._solvers, attempt
        if rule.single is not None and (single := self._with_one(rule.single)):
            solvers, scale = single, _LARGE
        sizes = _first_solution(solvers, earlier, scale)
        if sizes is None:
            raise InputError("no sizes of the input dimensions satisfy the constraints of the model")
        if rule.is_first and self._bytes(sizes) > _LARGE_INPUTS:
            return self._few(case) or sizes
        if not rule.is_first and self._bytes(sizes) > _LARGEST_RETRY:
            for small in (self._leading(), set(self._symbols)):
                smaller = _first_solution(solvers, earlier, scale, small)
                if smaller is not None and self._bytes(smaller) <= _LARGEST_RETRY:
                    sizes = smaller
                    break
        if not rule.uses_preferences:
            return sizes
        return self._preferred(case, attempt, earlier, max(self._bytes(sizes), _LARGEST_RETRY)) or sizes

    def _few(self, case: int) -> SymbolSizes | None:
        """Return sizes with one, two or three of what the inputs hold many of, such as images; None without any."""
        free = self._leading() - self._fixed.keys()
        wanted = dict.fromkeys(free, _FEW[case % len(_FEW)])
        return _first_solution(self._make_solvers({**self._fixed, **wanted}), (), 0) if free else None

    def small(self, sizes_of: Sequence[int]) -> list[SymbolSizes]:
        """Return sizes in which free dimensions are of each of these sizes: all of them, and each by itself.

        The model may refuse them, but they satisfy what its splits require.
        """
        free = [name for name in self._symbols if name not in self._fixed]
        wanted: list[dict[str, int]] = []
        for size in sizes_of:
            wanted += [dict.fromkeys(free, size)] if free else []
            wanted += [{name: size} for name in free[:_MOST_SMALL]] if len(free) > 1 else []
        solutions = (_first_solution(self._make_solvers({**self._fixed, **given}), (), 0) for given in wanted)
        return [sizes for sizes in solutions if sizes is not None]

    def reaching(self, length: int) -> Iterator[SymbolSizes]:
        """Yield sizes in which free dimensions are of this size (see `_reached`)."""
        for names, others in self._reached(length):
            sizes = self._with({**dict.fromkeys(others, 1), **dict.fromkeys(names, length)})
            if sizes is not None and self._bytes(sizes) <= _LARGEST_RETRY:
                yield sizes

    def reaching_each(self, lengths: Mapping[str, int]) -> SymbolSizes | None:
        """Return sizes in which symbols are of these sizes; None without any."""
        sizes = self._with(lengths)
        return None if sizes is None or self._bytes(sizes) > _LARGEST_RETRY else sizes

    def reached_alone(self) -> list[str | None]:
        """Return the symbol that is given a length in each of the sizes that `beside` returns, beside usual ones; None
        for several symbols, and beside ones.
        """
        return [names[0] if len(names) == 1 and not others else None for names, others in self._reached(1)]

    def beside(self, length: int) -> list[SymbolSizes | None]:
        """Return sizes in which free dimensions are of this size, as `reaching` does, whether inputs of these sizes are
        too large or not; None for those that the model does not take.
        """
        made: list[SymbolSizes | None] = []
        for names, others in self._reached(length):
            if not all(self._is_within_bounds(name, length) for name in names):
                # No search is needed to say so, and most lengths that a ladder tries are too large.
                made.append(None)
                continue
            ones = dict.fromkeys(others, 1)
            if (names, others) not in self._usual:
                self._usual[names, others] = self._with({**ones, **dict.fromkeys(names, _USUAL_LENGTH)})
            usual = self._usual[names, others]
            sizes = None if usual is None else {**usual, **dict.fromkeys(names, length)}
            about = (each for each in self._required if not each.symbols.isdisjoint(names))
            is_taken = sizes is not None and all(each.holds(sizes) for each in about if each.symbols <= sizes.keys())
            made.append(sizes if is_taken else self._with({**ones, **dict.fromkeys(names, length)}))
        return made

    def _is_within_bounds(self, name: str, length: int) -> bool:
        low, high = self._analysis.symbols.get(name, (0, None))
        return low <= length and (high is None or length <= high)

    def _reached(self, length: int) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Return free symbols that are given one length, all but the leading ones, and each by itself; and with each
        those that are 1. The others are usual, and then all of them are 1: a product is the length, too. If the length
        is small, all symbols are last, because several limits may have to be met at once.
        """
        free = tuple(name for name in self._symbols if name not in self._fixed)
        inner = tuple(name for name in free if name not in self._leading())
        together = [*([inner] if len(inner) > 1 else []), *((name,) for name in free[:_MOST_SMALL])]
        beside = [(names, tuple(name for name in free if name not in names)) for names in together]
        found = [*((names, ()) for names in together), *((names, others) for names, others in beside if others)]
        return [*found, (free, ())] if free and free not in together and length <= _MOST_TOGETHER else found

    def _with(self, lengths: Mapping[str, int]) -> SymbolSizes | None:
        return _first_solution(self._make_solvers({**self._fixed, **lengths}), (), 0)

    def _with_one(self, number: int) -> list[Solver]:
        """Return solvers that set the free dimension with this number to 1; none without several free dimensions."""
        free = [name for name in self._symbols if name not in self._fixed]
        if len(free) < 2 or number >= len(free):
            return []
        return self._make_solvers({**self._fixed, free[number]: 1})

    def _preferred(self, case: int, attempt: int, earlier: Sequence[SymbolSizes], most: int) -> SymbolSizes | None:
        """Return preferred sizes of inputs with at most so many bytes; None without any.

        The first attempt at the first case is small: it ignores the preferred windows.
        """
        everything = set(self._symbols)
        for solver in self._preferring if case or attempt else self._preferring[1:]:
            for before, small in (
                (earlier, set()),
                (earlier, self._leading()),
                (earlier, everything),
                ((), everything),
            ):
                sizes = solver.solve(before, attempt, small)
                if sizes is not None and self._bytes(sizes) <= most:
                    return sizes
        return None

    def _leading(self) -> set[str]:
        """Return the symbols of the first dimensions of inputs of rank 3 or more, such as batches of images."""
        return {str(item.type.shape[0]) for item in self._inputs if item.type.shape and (item.type.rank or 0) > 2}

    def _sizes_of_one(self, length: int | None) -> SymbolSizes | None:
        """Return sizes of 1, except for the given length of signals."""
        ones = dict.fromkeys(self._symbols, 1)
        if length is not None:
            signals = [item.type.shape[-1] for item in self._inputs if item.type.shape and is_float(item.type)]
            ones.update((str(dim), length) for dim in signals if str(dim) in ones)
        ones |= self._fixed
        return _first_solution(self._make_solvers(ones)[-1:], (), 0)

    def _bytes(self, sizes: SymbolSizes) -> int:
        """Return roughly how many bytes the tensors among the inputs have."""
        total = 0
        for item in self._inputs:
            if item.type.kind == "tensor" and item.type.dtype in DTYPE_NUMBERS:
                shape = [evaluate(dim, sizes) for dim in item.type.shape or () if dim is not None]
                total += math.prod(shape) * numpy_dtype(item.type.dtype).itemsize
        return total

    def _make_solvers(self, fixed: Mapping[str, int]) -> list[Solver]:
        """Return solvers, each with fewer constraints than the one before; the last one has only those of the splits.

        Dimensions should not be empty. A branch that never runs may require what the rest of the model rules out, and
        a declared shape may be wrong.
        """
        solvers = []
        for required in (self._required, self._required_by_splits):
            usable = [
                condition for condition in required if condition.symbols and condition.symbols <= set(self._symbols)
            ]
            unconditional = [condition for condition in usable if "_branch" not in condition.location]
            steps = ((usable, 1), (usable, 0), (unconditional, 0))
            candidates = (self._solver(constraints, least, fixed) for constraints, least in steps)
            solvers += [solver for solver in candidates if solver.solve() is not None][:1]
        return solvers

    def _make_preferring(self) -> list[Solver]:
        """Return solvers for preferred sizes: with windows and broadcasts, and with broadcasts only."""
        free = set(self._symbols) - self._fixed.keys()
        if not self._solvers or not free:
            return []
        types = {item.name: item.type.innermost for item in self._inputs}
        preferred = read_preferred(self._analysis, types)
        wanted = [
            [
                condition
                for condition in constraints
                if condition.symbols & free and condition.symbols <= set(self._symbols)
            ]
            for constraints in (preferred.broadcasts, preferred.windows)
        ]
        broadcasting = with_preferred(self._solvers[0], wanted[0])
        return [with_preferred(broadcasting, wanted[1]), broadcasting]

    def _solver(self, required: Sequence[Condition], least: int, fixed: Mapping[str, int]) -> Solver:
        static = {dim for item in self._inputs for dim in item.type.shape or () if isinstance(dim, int)}
        bounds = {name: bound for name, bound in self._analysis.symbols.items() if name in self._symbols}
        # A dimension that is no single symbol has a minimum, too.
        shapes = [item.type.innermost.shape or () for item in self._inputs]
        dims = [dim for shape in shapes for dim in shape if isinstance(dim, Dim) and str(dim) not in self._symbols]
        expressions = [Condition(dim, ">=", least) for dim in dims]
        return Solver(self._symbols, [*required, *expressions], bounds, fixed, static)


def _first_solution(
    solvers: Sequence[Solver], earlier: Sequence[SymbolSizes], scale: int, small: Collection[str] = ()
) -> SymbolSizes | None:
    solutions = (solver.solve(earlier, scale, small) for solver in solvers)
    return next((sizes for sizes in solutions if sizes is not None), None)


def _required_counts(inputs: Iterable[ModelInput]) -> list[Condition]:
    """Require that an input of split lengths has as many elements as the split has outputs."""
    required = []
    for item in inputs:
        for use in item.uses:
            count = required_count(use)
            if count is not None and item.type.rank == 1 and item.type.shape and item.type.shape[0] is not None:
                required.append(Condition(item.type.shape[0], "==", count, "main"))
    return required


def _required_room(inputs: Iterable[ModelInput], analysis: Analysis) -> list[Condition]:
    """Require enough positions for a scatter: the order of two writes to one position is undefined."""
    required = []
    for item in inputs:
        scatters = [use.node for use in item.uses if use.node.op_type in _SCATTERS and use.position == 1]
        for node in scatters if item.type.shape else ():
            *places, depth = item.type.shape or ()
            room = (analysis.types.get(node.input[0], UNKNOWN).shape or ())[: depth if isinstance(depth, int) else 0]
            known = [dim for dim in room if dim is not None], [dim for dim in places if dim is not None]
            if room and (len(known[0]), len(known[1])) == (len(room), len(places)):
                required.append(Condition(product(known[0]), ">=", product(known[1]), "main"))
    return required


def read_required_by_splits(analysis: Analysis) -> list[Condition]:
    """Return the constraints that the splits of a model require."""
    obligations = {str(obligation): obligation for obligation in analysis.obligations}
    return [_constraint(obligations[text], split.location) for split in analysis.splits for text in split.obligations]


def read_required(analysis: Analysis, free: Collection[str]) -> list[Condition]:
    """Return all constraints that a model requires, expressed in the symbols of its inputs (`free`).

    A constraint with an inner symbol is kept if an equation defines that symbol. The location of a constraint is in a
    branch only if no node outside of the branches requires the same.
    """
    required = []
    for obligation, locations in analysis.required_by.items():
        unconditional = (location for location in locations if "_branch" not in location)
        required.append(_constraint(obligation, next(unconditional, "".join(locations[:1]))))
    return _in_free_symbols(required, set(free))


def _constraint(obligation: Obligation, location: str) -> Condition:
    return Condition(obligation.lhs, obligation.relation, obligation.rhs, location)


def _in_free_symbols(required: Sequence[Condition], free: set[str]) -> list[Condition]:
    """Replace inner symbols by their definitions, and drop the constraints on symbols without a definition."""
    conditions: list[Condition] = []
    definitions: dict[str, DimLike] = {}
    left = list(required)
    while left:
        later = []
        for constraint in left:
            inner = constraint.symbols - free - definitions.keys()
            if not inner:
                conditions.append(_substituted(constraint, definitions))
            elif not _add_definition(constraint, definitions, free):
                later.append(constraint)
        if len(later) == len(left):
            break
        left = later
    return conditions


def _add_definition(constraint: Condition, definitions: dict[str, DimLike], free: set[str]) -> bool:
    """Add the definition of an inner symbol if the constraint is such an equation; return True if it is."""
    if constraint.relation != "==" or "_branch" in constraint.location:
        return False
    for side, definition in ((constraint.lhs, constraint.rhs), (constraint.rhs, constraint.lhs)):
        names = symbols_of(side)
        if names == {str(side)} and not names & free and symbols_of(definition) <= free | definitions.keys():
            definitions[str(side)] = _substitute(definition, definitions)
            return True
    return False


def _substituted(constraint: Condition, definitions: Mapping[str, DimLike]) -> Condition:
    if not constraint.symbols & definitions.keys():
        return constraint
    left, right = _substitute(constraint.lhs, definitions), _substitute(constraint.rhs, definitions)
    return Condition(left, constraint.relation, right, constraint.location)


def _substitute(dim: DimLike, definitions: Mapping[str, DimLike]) -> DimLike:
    return substitute_if_defined(dim, definitions) if isinstance(dim, Dim) else dim
