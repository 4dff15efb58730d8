"""Operations on whole dimensions: minimum and maximum, the symbols in a dimension, evaluation and substitution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import gcd, prod

from splitgraph.dim.arithmetic import Dim, DimLike, atom_value, from_terms, product, sum_dims
from splitgraph.dim.atoms import (
    FLOOR,
    LARGE,
    MAX,
    MOD,
    NAMED,
    NESTED_MAX,
    PRODUCT,
    SUM,
    SYMBOL,
    Atom,
    Monomial,
    add_into,
    all_atoms,
    atoms_by_level,
    coefficients_of,
    const_of,
    is_deep,
    level_of,
    order_of,
)
from splitgraph.dim.linear_systems import is_nonnegative

# Nested maxima are flattened up to this many arguments: comparing them pairwise costs the square.
_MOST_ARGUMENTS = 12

# More arguments than this are compared in groups, for the same reason.
_MOST_COMPARED = 32

_REMEMBERED = 4096
_HUGE = 2**64

# Products of more bits are not computed: to square a number thirty times takes all memory.
_MOST_BITS = 2**16


# Minimum and maximum -------------------------------------------------------------------------------------------------


# Only maxima are atoms, and their arguments are free of maxima: `max(a, b + max(c, d))` is the largest of a, b + c and
# b + d. A maximum that is subtracted from one argument is added to all of them and subtracted from the result.
#
# The larger of two values is `a + max(0, b - a)`, with the common factor taken out and the leading sign positive:
# `max(0, -d)` is `max(0, d) - d`. So `N - min(N, 3)` is `max(0, N - 3)`, and minimum and maximum add up to the sum.
# More than two values are taken relative to what they share, so that adding to each of them is adding to their maximum.
# Deep arguments are only compared and sorted.


def dim_max(*dims: DimLike) -> DimLike:
    """Return the largest of the dimensions (at least one); an int when all are."""
    if not dims:
        raise ValueError("dim_max needs at least one dimension")
    return _maximum(dims)


def dim_min(*dims: DimLike) -> DimLike:
    """Return the smallest of the dimensions (at least one); an int when all are."""
    if not dims:
        raise ValueError("dim_min needs at least one dimension")
    return -_maximum(tuple(-dim for dim in dims))


def ceildiv(a: DimLike, b: DimLike) -> DimLike:
    """`a / b` rounded up."""
    return -(-a // b) if isinstance(a, int) and isinstance(b, int) else (a + b - 1) // b


def undominated(dims: Iterable[DimLike], is_at_least: Callable[[DimLike, DimLike], bool]) -> list[DimLike]:
    """Return the dims without those that are proved to be at most another one, in the order of `dims`, which should be
    fixed.

    A dim that was left out still rules out others: perhaps all that can be proved is that a third dim is at most this
    one.
    """
    every = list(dict.fromkeys(dims))
    larger: dict[DimLike, DimLike] = {}

    def largest_known(dim: DimLike) -> DimLike:
        while dim in larger:
            dim = larger[dim]
        return dim

    for dim in every:
        for other in every:
            # If a dim that was left out for this one is at least as large, the two are equal.
            if other is not dim and is_at_least(other, dim) and largest_known(other) is not dim:
                larger[dim] = other
                break
    return [dim for dim in every if dim not in larger]


@lru_cache(_REMEMBERED)
def _maximum(dims: tuple[DimLike, ...]) -> DimLike:
    shared: DimLike = 0
    args = _grouped(dims)
    seen: list[tuple[DimLike, list[DimLike]]] = []
    while True:
        # Flatten before comparing: a bound of a whole maximum does not say which of its arguments has it.
        falling, flat = (0, args) if any(map(is_deep, args)) else _flattened(args)
        shared, args = shared - falling, undominated(sorted(flat, key=order_of), _is_at_least)
        if len(args) == 1:
            return shared + args[0]
        if any(map(is_deep, args)):
            return shared + atom_value(NESTED_MAX, tuple(args))
        places = [place for place, (_, earlier) in enumerate(seen) if earlier == args]
        if places:
            # Quotients fold differently beside other terms, so that this can go round in a circle: take its least
            # member.
            shared, args = min(seen[places[0] :], key=lambda state: [order_of(arg) for arg in state[1]])
            return shared + _atom(args)
        seen.append((shared, args))
        base = _base(args)
        if base == 0:
            return shared + _atom(args)
        shared, args = shared + base, [arg - base for arg in args]


def _grouped(dims: Iterable[DimLike]) -> list[DimLike]:
    """Return the dims; if they are too many to compare pairwise, the maxima of groups of them."""
    largest = list(dict.fromkeys(dims))
    while len(largest) > _MOST_COMPARED:
        largest.sort(key=order_of)
        groups = [tuple(largest[start : start + _MOST_COMPARED]) for start in range(0, len(largest), _MOST_COMPARED)]
        largest = list(dict.fromkeys(map(_maximum, groups)))
    return largest


def _atom(args: list[DimLike]) -> DimLike:
    """Return the maximum of sorted args, with their common factor taken out."""
    factor = gcd(*(coefficient for arg in args for coefficient in coefficients_of(arg).values()))
    return factor * atom_value(MAX, tuple(_divided_by(arg, factor) for arg in args))


def _base(args: list[DimLike]) -> DimLike:
    """Return the value that is subtracted from all args: of two args, the one that leaves 0 and a positive leading
    coefficient.

    Of more, the lower median of each coefficient, or the constant of the shortest arg.
    """
    if len(args) == 2:
        difference = args[1] - args[0]
        return args[1] if isinstance(difference, Dim) and difference.terms[0][1] < 0 else args[0]
    tables = [dict(arg.terms) if isinstance(arg, Dim) else {} for arg in args]
    middle = (len(args) - 1) // 2
    medians: dict[Monomial, int] = {}
    for monomial in {m: None for table in tables for m in table}:
        medians[monomial] = sorted(table.get(monomial, 0) for table in tables)[middle]
    common = from_terms(medians, 0)
    return common if common != 0 else const_of(args[0])


def _flattened(args: list[DimLike]) -> tuple[DimLike, list[DimLike]]:
    """Return (falling, flat) with max(args) == max(flat) - falling; (0, args) when there is nothing to flatten."""
    falling = _falling_maxima(args)
    raised = [arg + falling for arg in args]
    count = sum(prod(len(atom.args) for atom, _ in _maxima(arg)) for arg in raised)
    if len(args) < count <= _MOST_ARGUMENTS:
        return falling, [flat for arg in raised for flat in _alternatives(arg)]
    return 0, args


def _maxima(dim: DimLike) -> list[tuple[Atom, int]]:
    """Return the maxima that are terms of their own, with their coefficients."""
    if isinstance(dim, int):
        return []
    return [(m[0], c) for m, c in dim.terms if len(m) == 1 and m[0].kind == MAX]


def _falling_maxima(dims: Iterable[DimLike]) -> DimLike:
    """Return the sum to add to each dim so that no dim subtracts a maximum."""
    most: dict[Atom, int] = {}
    for dim in dims:
        for atom, coefficient in _maxima(dim):
            most[atom] = max(most.get(atom, 0), -coefficient)
    return sum_dims(coefficient * atom_value(MAX, atom.args) for atom, coefficient in most.items())


def _alternatives(dim: DimLike) -> list[DimLike]:
    """Return values free of maxima whose maximum is the dim: `R + c*max(a, b)` is the larger of `R + c*a` and `R +
    c*b`.
    """
    values = [dim]
    for atom, coefficient in _maxima(dim):
        maximum = atom_value(MAX, atom.args)
        values = [value + coefficient * (arg - maximum) for value in values for arg in atom.args]
    return values


def _is_at_least(one: DimLike, other: DimLike) -> bool:
    difference = one - other
    return difference >= 0 if isinstance(difference, int) else is_nonnegative(difference)


def _divided_by(dim: DimLike, factor: int) -> DimLike:
    if isinstance(dim, int) or factor == 1:
        return dim // factor
    coefficients: dict[Monomial, int] = {}
    const = add_into(coefficients, dim)
    return from_terms({m: c // factor for m, c in coefficients.items()}, const // factor)


# Evaluation and substitution -----------------------------------------------------------------------------------------


def _multiplied(numbers: Iterable[int]) -> int:
    """Return the product. Raises OverflowError for one that is far too large for a dimension."""
    total = 1
    for number in numbers:
        if total.bit_length() + number.bit_length() > _MOST_BITS:
            raise OverflowError("a product of dimensions takes too many digits")
        total *= number
    return total


# The value of an atom that is not a symbol, from those of its arguments.
OPERATIONS: Mapping[int, Callable[[Sequence[int]], int]] = {
    FLOOR: lambda args: args[0] // args[1],
    MOD: lambda args: args[0] % args[1],
    MAX: max,
    NESTED_MAX: max,
    SUM: sum,
    PRODUCT: _multiplied,
}


def symbols_of(d: DimLike) -> frozenset[str]:
    """Return the names of all symbols, including those inside large atoms."""
    return frozenset() if isinstance(d, int) else d.symbols


def names_in(d: DimLike) -> frozenset[str]:
    """Return the names in the written dimension: of symbols and of large atoms."""
    return frozenset() if isinstance(d, int) else d.names


def large_atoms(d: DimLike) -> list[Atom]:
    """Return the large atoms in the written dimension."""
    if level_of(d) == 0:
        return [] if isinstance(d, int) else [atom for m, _ in d.terms for atom in m if atom.kind in LARGE]
    return [atom for atom in atoms_by_level([d]) if atom.kind in LARGE]


def has_huge_number(d: DimLike) -> bool:
    """Return True if the dimension contains a number of more than 64 bits. No dimension is so large, and numbers that
    grow with each operator take quadratic space.
    """
    if isinstance(d, int):
        return not -_HUGE < d < _HUGE
    return (
        not -_HUGE < d.const < _HUGE
        or any(not -_HUGE < coefficient < _HUGE for _, coefficient in d.terms)
        or any(isinstance(arg, int) and arg >= _HUGE for m, _ in d.terms for atom in m for arg in atom.args)
    )


def evaluate(d: DimLike, values: Mapping[str, int]) -> int:
    """Return the number that the dimension is for the given values of symbols, or of large atoms by name.

    Raises KeyError for a symbol without a value, ZeroDivisionError if a divisor is 0, OverflowError for a number far
    too large for a dimension.
    """
    return evaluator(d)(values)


def evaluator(d: DimLike) -> Callable[[Mapping[str, int]], int]:
    """Return what evaluates the dimension, as `evaluate` does, for many values of symbols: its atoms are found once."""
    atoms = all_atoms([d])

    def evaluated(values: Mapping[str, int]) -> int:
        known: dict[Atom, int] = {}
        for atom in atoms:
            if atom.kind == SYMBOL or (atom.kind in LARGE and atom.name in values):
                known[atom] = values[atom.name]
            else:
                known[atom] = OPERATIONS[atom.kind]([_number(part, known) for part in atom.parts])
        return _number(d, known)

    return evaluated


def substitute(d: DimLike, values: Mapping[str, DimLike]) -> DimLike:
    """Return the dimension with symbols replaced, all at once, also inside large atoms. Symbols without a value stay.

    Raises ZeroDivisionError if a divisor is 0, OverflowError for a number far too large for a dimension.
    """
    return _substituted(d, values, all_atoms([d]), inside=True) if values else d


def substitute_if_defined(d: DimLike, values: Mapping[str, DimLike]) -> DimLike:
    """Return the dimension with symbols replaced, all at once; the same dimension if it has no value then: a division
    by 0 stays as it is written.
    """
    try:
        return substitute(d, values)
    except ArithmeticError:
        return d


def substitute_names(d: DimLike, values: Mapping[str, DimLike]) -> DimLike:
    """Return the dimension with symbols and large atoms replaced by name, all at once. The insides of large atoms
    stay.
    """
    if values.keys().isdisjoint(names_in(d)):
        return d
    return _substituted(d, values, atoms_by_level([d]), inside=False)


def _substituted(d: DimLike, values: Mapping[str, DimLike], atoms: Iterable[Atom], *, inside: bool) -> DimLike:
    changed: dict[Atom, DimLike] = {}
    for atom in atoms:
        if atom.kind in NAMED and atom.name in values:
            changed[atom] = values[atom.name]
            continue
        before = atom.parts if inside else atom.args
        parts = [rebuilt(part, changed) for part in before]
        if not all(one is other for one, other in zip(parts, before, strict=True)):
            changed[atom] = rebuilt_atom(atom.kind, parts)
    return rebuilt(d, changed)


def rebuilt_atom(kind: int, args: Sequence[DimLike]) -> DimLike:
    """Return the value of an atom that is not a symbol, over other parts."""
    if kind == FLOOR:
        return args[0] // args[1]
    if kind == MOD:
        return args[0] % args[1]
    if kind == SUM:
        return sum_dims(args)
    if kind == PRODUCT:
        numbers = [arg for arg in args if isinstance(arg, int)]
        return product([_multiplied(numbers), *(arg for arg in args if not isinstance(arg, int))])
    return dim_max(*args)


def _number(value: DimLike, known: Mapping[Atom, int]) -> int:
    if isinstance(value, int):
        return value
    total = value.const
    for monomial, coefficient in value.terms:
        for atom in monomial:
            coefficient *= known[atom]
        total += coefficient
    return total


def rebuilt(value: DimLike, known: Mapping[Atom, DimLike]) -> DimLike:
    """Return the value with other values in place of its atoms; an atom without one stays."""
    if isinstance(value, int) or not any(atom in known for monomial, _ in value.terms for atom in monomial):
        return value
    coefficients: dict[Monomial, int] = {}
    const = value.const
    for monomial, coefficient in value.terms:
        stays = tuple([atom for atom in monomial if atom not in known])
        if len(stays) == len(monomial):
            coefficients[monomial] = coefficients.get(monomial, 0) + coefficient
            continue
        factors = [known[atom] for atom in monomial if atom in known]
        rest = [from_terms({stays: 1}, 0)] if stays else []
        const += add_into(coefficients, product([*factors, *rest]), coefficient)
    return from_terms(coefficients, const)
