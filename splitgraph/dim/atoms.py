"""The parts of a dimension: atoms (symbols, floor quotients, maxima) and monomials, which are products of atoms.

A dimension has a bounded size. A sum or product that takes more than MOST_WRITTEN names to write becomes one large atom
(SUM or PRODUCT), which keeps its parts. Arithmetic treats a large atom as a symbol with bounds, so that work on its
parts is not repeated; only functions that need the whole value look inside.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

try:
    # hashlib has the same function, but loads OpenSSL with it: 4 MB, a tenth of what splitgraph takes.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

# MOD and NESTED_MAX stand for values that are too deep to take apart (see is_deep), SUM and PRODUCT for values that are
# too large.
SYMBOL, FLOOR, MOD, MAX, NESTED_MAX, SUM, PRODUCT = range(7)
LARGE = frozenset({SUM, PRODUCT})
# The kinds of atoms that have names, with which a value is written.
NAMED = LARGE | {SYMBOL}

DEEP = 4

# The most names in one value, each counted as often as it is written, and the most factors in one of its terms. Large
# enough for the sum of a few hundred parts, small enough that one more operation takes a moment.
MOST_WRITTEN = 320
MOST_FACTORS = 16

Interval = tuple["int | None", "int | None"]


class Atom:
    """One indivisible factor: a symbol, `num//den`, `max(...)`; interned by its maker, so that identity is equality.

    parts: () for a symbol, (numerator, denominator) for FLOOR and MOD, the arguments for maxima, what is added up for
    SUM and multiplied for PRODUCT; each an int or a Dim. args: the same, but () for SUM and PRODUCT.
    level: 0 without args, else one more than the highest level among these. size: how many names it takes to write.
    interval: for symbols >= 0. name: for SUM and PRODUCT one that no other has.
    always_exists: whether the atom has a value for all values of the symbols: nothing in it is divided by a symbol.
    key: a total order that does not depend on the order of creation, so that printing is reproducible. The hash is the
    address: a set of atoms, or of values, has another order in each process, so that nothing may be read out of one.
    """

    __slots__ = (
        "__weakref__",
        "always_exists",
        "args",
        "digest",
        "interval",
        "key",
        "kind",
        "level",
        "name",
        "parts",
        "size",
    )

    # Dims and integers; `Dim` is defined on top of atoms.
    parts: tuple[Any, ...]
    args: tuple[Any, ...]

    def __init__(self, kind: int, name: str, parts: tuple[Any, ...], interval: Interval) -> None:
        self.kind = kind
        self.parts = parts
        self.args = args = () if kind in LARGE else parts
        self.interval = interval
        self.level = 1 + max(map(level_of, args)) if args else 0
        self.size = max(sum(map(size_of, args)), 1)
        divides = kind in (FLOOR, MOD) and not isinstance(args[1], int)
        self.always_exists = not divides and all(map(always_exists, parts))
        self.digest = _digest(kind, name, parts)
        self.name = name or next((arg.terms[0][0][0].name for arg in args if not isinstance(arg, int)), "")
        if kind in LARGE:
            self.name = f"[large, {self.digest.hex()}]"
        size = args[1] if kind == FLOOR and isinstance(args[1], int) else 0
        const = const_of(args[0]) if kind == FLOOR else 0
        # Large atoms stand among the symbols.
        self.key = (SYMBOL if kind in LARGE else kind, self.name, self.level, size, const, self.digest)

    def __lt__(self, other: Atom) -> bool:
        return self.key < other.key


Monomial = tuple[Atom, ...]
Terms = tuple[tuple[Monomial, int], ...]


class Polynomial(Protocol):
    """A sum of terms and a constant: the part of a `Dim` that modules below `arithmetic` use."""

    terms: Terms
    const: int

    @property
    def interval(self) -> Interval: ...

    def __add__(self, other: Any) -> Any: ...

    def __sub__(self, other: Any) -> Any: ...

    def __rsub__(self, other: Any) -> Any: ...

    def __neg__(self) -> Any: ...


Value: TypeAlias = int | Polynomial


def monomial_order(term: tuple[Monomial, int]) -> tuple[int, Monomial]:
    """Return the sort key of a term: higher degrees first, then by atoms."""
    monomial = term[0]
    return (-len(monomial), monomial)


def times(left: Monomial, right: Monomial) -> Monomial:
    """Return the product of two monomials."""
    if not left:
        return right
    if not right:
        return left
    return tuple(sorted(left + right))


def without(monomial: Monomial, atom: Atom) -> Monomial:
    """Return the monomial divided by one of its atoms."""
    place = monomial.index(atom)
    return monomial[:place] + monomial[place + 1 :]


def quotient_of(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """Return the monomial divided by another, None when it is not divisible."""
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def level_of(value: Value) -> int:
    """Return the highest level among the atoms of a value."""
    if isinstance(value, int):
        return 0
    return max(atom.level for monomial, _ in value.terms for atom in monomial)


def size_of(value: Value) -> int:
    """Return how many names it takes to write a value."""
    return 0 if isinstance(value, int) else sum(atom.size for monomial, _ in value.terms for atom in monomial)


def degree_of(value: Value) -> int:
    """Return the number of factors in the longest term of a value."""
    return 0 if isinstance(value, int) else len(value.terms[0][0])


def is_linear(value: Value) -> bool:
    """Return True if the value is a sum of multiples of symbols."""
    return isinstance(value, int) or all(len(m) == 1 and m[0].kind in NAMED for m, _ in value.terms)


def always_exists(value: Value) -> bool:
    """Return True if the value exists for all values of its symbols: no symbol is part of a divisor."""
    return isinstance(value, int) or all(atom.always_exists for monomial, _ in value.terms for atom in monomial)


def add_into(coefficients: dict[Monomial, int], dim: Value, factor: int = 1) -> int:
    """Add the terms of `dim * factor`, and return its constant."""
    for monomial, coefficient in () if isinstance(dim, int) else dim.terms:
        coefficients[monomial] = coefficients.get(monomial, 0) + coefficient * factor
    return const_of(dim) * factor


def coefficients_of(value: Value, factor: int = 1) -> dict[Monomial, int]:
    """Return the terms of `factor * value`, the constant among them."""
    if isinstance(value, int):
        return {(): factor * value}
    coefficients = {m: factor * c for m, c in value.terms}
    coefficients[()] = factor * value.const
    return coefficients


def add_all(coefficients: dict[Monomial, int], dim: Value, factor: int, cofactor: Monomial) -> None:
    """Add `dim * factor * cofactor` to the terms, the constant among them."""
    for monomial, coefficient in coefficients_of(dim, factor).items():
        key = times(monomial, cofactor)
        coefficients[key] = coefficients.get(key, 0) + coefficient


def const_of(value: Value) -> int:
    """Return the constant term."""
    return value if isinstance(value, int) else value.const


def lone_atom(value: Value) -> Atom | None:
    """Return the atom that the value is; None if the value is not one atom."""
    if isinstance(value, int) or value.const or len(value.terms) != 1:
        return None
    monomial, coefficient = value.terms[0]
    return monomial[0] if coefficient == 1 and len(monomial) == 1 else None


def order_of(value: Value) -> tuple[object, ...]:
    """Return a sort key of values: short ones first, then by their terms."""
    if isinstance(value, int):
        return (0, [], value)
    return (len(value.terms), [(*monomial_order(term), term[1]) for term in value.terms], value.const)


def is_deep(value: Value) -> bool:
    """Return True if the value has so many levels that no rule may write a part of it twice: it would double with
    each.
    """
    return level_of(value) > DEEP


def atoms_by_level(values: Iterable[Value]) -> list[Atom]:
    """Return every atom that the values are written with; the arguments of an atom come before the atom. There is no
    recursion.
    """
    # A dict, not a set: the order in which these atoms are simplified can decide the result.
    seen: dict[Atom, None] = {}
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, int):
            continue
        for monomial, _ in value.terms:
            for atom in monomial:
                if atom not in seen:
                    seen[atom] = None
                    waiting.extend(atom.args)
    return sorted(seen, key=lambda atom: atom.level)


def all_atoms(values: Iterable[Value]) -> list[Atom]:
    """Return every atom in the values, also those inside large atoms; the parts of an atom come before the atom. There
    is no recursion.
    """
    ordered: dict[Atom, None] = {}
    waiting: list[tuple[Atom, bool]] = [(atom, False) for atom in _atoms_in(values)]
    while waiting:
        atom, parts_are_listed = waiting.pop()
        if parts_are_listed:
            ordered[atom] = None
        elif atom not in ordered:
            waiting.append((atom, True))
            waiting += [(part, False) for part in _atoms_in(atom.parts) if part not in ordered]
    return list(ordered)


def _atoms_in(values: Iterable[Value]) -> list[Atom]:
    every = (atom for value in values if not isinstance(value, int) for m, _ in value.terms for atom in m)
    return list(dict.fromkeys(every))


def _digest(kind: int, name: str, args: tuple[Value, ...]) -> bytes:
    whole = blake2b(digest_size=16)
    whole.update(b"%d" % kind)
    whole.update(name.encode("utf-8", "surrogatepass"))
    for arg in args:
        whole.update(b";" + hex(const_of(arg)).encode())
        for monomial, coefficient in () if isinstance(arg, int) else arg.terms:
            whole.update(b"," + hex(coefficient).encode())
            for atom in monomial:
                whole.update(atom.digest)
    return whole.digest()
