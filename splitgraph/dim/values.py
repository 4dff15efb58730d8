"""Dimensions and values: which symbols occur, what a dimension is at given values, and substitution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from splitgraph.dim.arithmetic import DimLike, from_terms, product, symbol
from splitgraph.dim.atoms import FLOOR, MAX, MOD, NESTED_MAX, SYMBOL, Atom, Monomial, add_into, atoms_by_level
from splitgraph.dim.extrema import dim_max

# The value of an atom that is not a symbol, from those of its arguments.
OPERATIONS: Mapping[int, Callable[[Sequence[int]], int]] = {
    FLOOR: lambda args: args[0] // args[1],
    MOD: lambda args: args[0] % args[1],
    MAX: max,
    NESTED_MAX: max,
}


def symbols_of(d: DimLike) -> frozenset[str]:
    """The names of all symbols that occur."""
    return frozenset() if isinstance(d, int) else d.symbols


def evaluate(d: DimLike, values: Mapping[str, int]) -> int:
    """The number that the dimension is at those values of its symbols.

    Raises KeyError for a symbol without a value, ZeroDivisionError where a divisor is 0.
    """
    known: dict[Atom, int] = {}
    for atom in atoms_by_level([d]):
        args = [_number(arg, known) for arg in atom.args]
        if atom.kind == SYMBOL:
            known[atom] = values[atom.name]
        else:
            known[atom] = OPERATIONS[atom.kind](args)
    return _number(d, known)


def substitute(d: DimLike, values: Mapping[str, DimLike]) -> DimLike:
    """The dimension with symbols replaced, all at once; symbols without a value stay."""
    if not values:
        return d
    known: dict[Atom, DimLike] = {}
    for atom in atoms_by_level([d]):
        args = [rebuilt(arg, known) for arg in atom.args]
        if atom.kind == SYMBOL:
            known[atom] = values[atom.name] if atom.name in values else symbol(atom.name)
        else:
            known[atom] = rebuilt_atom(atom.kind, args)
    return rebuilt(d, known)


def rebuilt_atom(kind: int, args: Sequence[DimLike]) -> DimLike:
    """The value of an atom that is not a symbol, over other arguments."""
    if kind == FLOOR:
        return args[0] // args[1]
    return args[0] % args[1] if kind == MOD else dim_max(*args)


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
    """The value with other values in place of its atoms."""
    if isinstance(value, int):
        return value
    coefficients: dict[Monomial, int] = {}
    const = value.const
    for monomial, coefficient in value.terms:
        factor = known[monomial[0]] if len(monomial) == 1 else product([known[atom] for atom in monomial])
        const += add_into(coefficients, factor, coefficient)
    return from_terms(coefficients, const)
