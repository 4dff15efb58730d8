"""Symbols in a dimension, evaluation at given values, and substitution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from splitgraph.dim.arithmetic import DimLike, from_terms, product, sum_dims
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
    level_of,
)
from splitgraph.dim.maxima import dim_max

_HUGE = 2**64

# Products of numbers are not followed further: to square a number thirty times takes all memory.
_MOST_BITS = 2**16


def _multiplied(numbers: Iterable[int]) -> int:
    """The product. Raises OverflowError for one that is far too large for a dimension."""
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
    """The names of all symbols, including those inside large atoms."""
    return frozenset() if isinstance(d, int) else d.symbols


def names_in(d: DimLike) -> frozenset[str]:
    """The names in the written dimension: of symbols and of large atoms."""
    return frozenset() if isinstance(d, int) else d.names


def large_atoms(d: DimLike) -> list[Atom]:
    """The large atoms in the written dimension."""
    if level_of(d) == 0:
        return [] if isinstance(d, int) else [atom for m, _ in d.terms for atom in m if atom.kind in LARGE]
    return [atom for atom in atoms_by_level([d]) if atom.kind in LARGE]


def has_huge_number(d: DimLike) -> bool:
    """True for a dimension with a number of more than 64 bits in it. No dimension is so large, and numbers that grow
    with each operator take quadratic space.
    """
    if isinstance(d, int):
        return not -_HUGE < d < _HUGE
    return (
        not -_HUGE < d.const < _HUGE
        or any(not -_HUGE < coefficient < _HUGE for _, coefficient in d.terms)
        or any(isinstance(arg, int) and arg >= _HUGE for m, _ in d.terms for atom in m for arg in atom.args)
    )


def evaluate(d: DimLike, values: Mapping[str, int]) -> int:
    """The number that the dimension is at those values of its symbols, or of large atoms by name.

    Raises KeyError for a symbol without a value, ZeroDivisionError where a divisor is 0, OverflowError for a number far
    too large for a dimension.
    """
    known: dict[Atom, int] = {}
    for atom in all_atoms([d]):
        if atom.kind == SYMBOL or (atom.kind in LARGE and atom.name in values):
            known[atom] = values[atom.name]
        else:
            known[atom] = OPERATIONS[atom.kind]([_number(part, known) for part in atom.parts])
    return _number(d, known)


def substitute(d: DimLike, values: Mapping[str, DimLike]) -> DimLike:
    """The dimension with symbols replaced, all at once, in what large atoms stand for too; symbols without a value
    stay.

    Raises ZeroDivisionError where a divisor is 0, OverflowError for a number far too large for a dimension.
    """
    return _substituted(d, values, all_atoms([d]), inside=True) if values else d


def substitute_names(d: DimLike, values: Mapping[str, DimLike]) -> DimLike:
    """The dimension with symbols and large atoms replaced by name, all at once. What large atoms stand for stays."""
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
    """The value of an atom that is not a symbol, over other parts."""
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
    """The value with other values in place of its atoms; an atom without one stays."""
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
