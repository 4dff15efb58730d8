"""Symbolic dimensions: integer polynomials over symbols >= 0, with quotients and maxima as atoms, in one normal form.

The rules of the normal form, beyond multiplying out and collecting terms:

- `a % b` is `a - b*(a//b)`, and `min(a, b)` is `a + b - max(a, b)`: both are only ways to print.
- `//` by an integer takes multiples out, divides by the common factor, and joins nested quotients (`quotients`):
  `((N + 1)//2 + 1)//2` is `(N + 3)//4`.
- Quotients of one numerator add up in one way (`quotients`): `N - (N + 1)//2` is `N//2`.
- A maximum of two is `a + max(0, b - a)`, with the common factor taken out and the leading sign positive (`dim_max`).
- `//` by a dimension B is exact for multiples of B; a quotient by 0 has no value.
- Values nested many levels deep are left more as they are (`is_deep`), so that nothing doubles in size with each level.
- A value that would exceed the size limits becomes one large atom (`atoms`). A sum becomes a multiple of a sum whose
  terms have no common factor and whose first term is positive; the constant stays outside. A product is not multiplied
  out.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple, NoReturn, TypeAlias
from weakref import WeakValueDictionary

from splitgraph.dim.atoms import (
    FLOOR,
    LARGE,
    MOD,
    MOST_FACTORS,
    MOST_WRITTEN,
    NAMED,
    PRODUCT,
    SUM,
    SYMBOL,
    Atom,
    Interval,
    Monomial,
    Terms,
    add_all,
    add_into,
    all_atoms,
    atoms_by_level,
    degree_of,
    is_deep,
    lone_atom,
    monomial_order,
    order_of,
    size_of,
)
from splitgraph.dim.bounds import atom_interval, interval
from splitgraph.dim.linear_systems import range_of
from splitgraph.dim.printing import spell
from splitgraph.dim.quotients import (
    cancel,
    exact_quotient,
    fold_quotients,
    is_better_negated,
    joinable,
    joined,
    take_multiples,
)

# Results of division that are kept: a model asks for the same few over and over.
_REMEMBERED = 4096


class Dim:
    """A symbolic dimension; equal values in normal form are the same object, and a constant is never a Dim but an int.

    `+`, `-`, `*`, `//` and `%` take dimensions and integers. `str()` gives the expression, in the grammar of
    dimensions. A dimension is neither true nor false, and has no order: its value is not known.

    terms: (monomial, coefficient) in normal order, never empty. const: the constant term.
    """

    __slots__ = ("__weakref__", "_interval", "_names", "_symbols", "_text", "const", "terms")

    terms: Terms
    const: int
    _interval: Interval | None  # None until someone asks
    _text: str | None
    _names: frozenset[str] | None
    _symbols: frozenset[str] | None

    def __init__(self) -> None:
        raise TypeError("make a Dim with symbol(), parse_dim() or arithmetic")

    def __add__(self, other: DimLike) -> DimLike:
        if isinstance(other, int):
            return interned(self.terms, self.const + other) if other else self
        if isinstance(other, Dim):
            return _add(self, other, 1)
        return NotImplemented

    __radd__ = __add__

    def __sub__(self, other: DimLike) -> DimLike:
        if isinstance(other, int):
            return interned(self.terms, self.const - other) if other else self
        if isinstance(other, Dim):
            return 0 if other is self else _add(self, other, -1)
        return NotImplemented

    def __rsub__(self, other: int) -> DimLike:
        if isinstance(other, int):
            return interned(tuple((m, -c) for m, c in self.terms), other - self.const)
        return NotImplemented

    def __neg__(self) -> Dim:
        return interned(tuple((m, -c) for m, c in self.terms), -self.const)

    def __pos__(self) -> Dim:
        return self

    def __mul__(self, other: DimLike) -> DimLike:
        if isinstance(other, int):
            if other == 1:
                return self
            return interned(tuple([(m, c * other) for m, c in self.terms]), self.const * other) if other else 0
        if isinstance(other, Dim):
            return _multiply(self, other)
        return NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: DimLike) -> DimLike:
        if isinstance(other, int):
            return _divide_by_int(self, other)
        if isinstance(other, Dim):
            return _divide_by_dim(self, other)
        return NotImplemented

    def __rfloordiv__(self, other: int) -> DimLike:
        return _divide_by_dim(other, self) if isinstance(other, int) else NotImplemented

    def __mod__(self, other: DimLike) -> DimLike:
        return _remainder(self, other) if isinstance(other, int | Dim) else NotImplemented

    def __rmod__(self, other: int) -> DimLike:
        return _remainder(other, self) if isinstance(other, int) else NotImplemented

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"the dimension {self} is symbolic, neither true nor false; give its symbols numbers with evaluate"
        )

    def _no_order(self, other: object) -> NoReturn:
        raise TypeError(f"the dimension {self} is symbolic and has no order; give its symbols numbers with evaluate")

    __lt__ = __le__ = __gt__ = __ge__ = _no_order

    def __int__(self) -> NoReturn:
        raise TypeError(f"the dimension {self} is symbolic, not a number; give its symbols numbers with evaluate")

    __index__ = __int__

    def __str__(self) -> str:
        if self._text is None:
            self._text = spell(self)
        return self._text

    def __repr__(self) -> str:
        return f"Dim({str(self)!r})"

    def __copy__(self) -> Dim:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Dim:
        return self

    def evaluate(self, values: Mapping[str, DimLike]) -> DimLike:
        """Return the dimension with values for its symbols, all at once: a number, or an expression in the symbols that
        are left.

        values: numbers or dimensions, by the name of a symbol. Raises ZeroDivisionError if a divisor is 0,
        OverflowError for a number far too large for a dimension.
        """
        from splitgraph.dim.operations import substitute

        return substitute(self, values)

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols that occur, in what large atoms stand for too."""
        if self._symbols is None:
            has_large = any(atom.kind in LARGE for atom in atoms_by_level([self]))
            inner = frozenset([atom.name for atom in all_atoms([self]) if atom.kind == SYMBOL]) if has_large else None
            self._symbols = self.names if inner is None else inner
        return self._symbols

    @property
    def names(self) -> frozenset[str]:
        """The names that it takes to write it: of symbols and of large atoms."""
        if self._names is None:
            self._names = frozenset([atom.name for atom in atoms_by_level([self]) if atom.kind in NAMED])
        return self._names

    @property
    def interval(self) -> Interval:
        """(lowest, highest) value, as far as its terms say for any symbols >= 0; None: unbounded."""
        if self._interval is None:
            self._interval = interval(self)
        return self._interval


DimLike: TypeAlias = int | Dim

_LOCK = threading.RLock()
_DIMS: WeakValueDictionary[tuple[Terms, int], Dim] = WeakValueDictionary()
_ATOMS: WeakValueDictionary[tuple[object, ...], Atom] = WeakValueDictionary()


def symbol(name: str) -> Dim:
    """Return the dimension of that name, which may be any text and is kept as it is."""
    atom = _ATOMS.get((SYMBOL, name))
    if atom is None:
        atom = _interned_atom((SYMBOL, name), name, ())
    return interned((((atom,), 1),), 0)


def atom_value(kind: int, args: tuple[DimLike, ...]) -> Dim:
    """Return the dimension that is one atom. The caller brings the arguments into normal form."""
    return interned((((_atom_of(kind, args),), 1),), 0)


def _atom_of(kind: int, args: tuple[DimLike, ...]) -> Atom:
    atom = _ATOMS.get((kind, args))
    if atom is not None:
        return atom
    if kind not in LARGE:
        args = _short_enough(args)
    return _interned_atom((kind, args), "", args)


def _short_enough(args: tuple[DimLike, ...]) -> tuple[DimLike, ...]:
    """Return the arguments of one atom, with a large atom in place of the longest while there are too many names in
    them.
    """
    shorter, sizes = list(args), [size_of(arg) for arg in args]
    while sum(sizes) > MOST_WRITTEN:
        place = sizes.index(max(sizes))
        longest = shorter[place]
        if isinstance(longest, int) or sizes[place] == 1:
            break
        shorter[place] = atom_value(SUM, (longest - longest.const,)) + longest.const
        sizes[place] = 1
    return tuple(shorter)


def _large_sum(terms: Terms, const: int) -> DimLike:
    """Return a sum of more terms than a value may have: a multiple of a large atom, and the constant."""
    factor = gcd(*(coefficient for _, coefficient in terms))
    factor = factor if terms[0][1] > 0 else -factor
    parts, part, size = list[Dim](), list[tuple[Monomial, int]](), 0
    for monomial, coefficient in terms:
        more = sum([atom.size for atom in monomial])
        if part and size + more > MOST_WRITTEN:
            parts.append(interned(tuple(part), 0))
            part, size = [], 0
        part.append((monomial, coefficient // factor))
        size += more
    return factor * atom_value(SUM, (*parts, interned(tuple(part), 0))) + const


def _interned_atom(key: tuple[Any, ...], name: str, args: tuple[DimLike, ...]) -> Atom:
    kind: int = key[0]
    bounds: Interval = (0, None)
    if kind != SYMBOL:
        bounds = atom_interval(kind, [(arg, arg) if isinstance(arg, int) else arg.interval for arg in args])
    made = Atom(kind, name, args, bounds)
    with _LOCK:
        return _ATOMS.setdefault(key, made)


def interned(terms: Terms, const: int) -> Dim:
    """Return the one dimension with these terms, which are in normal form and in order."""
    key = (terms, const)
    dim = _DIMS.get(key)
    if dim is not None:
        return dim
    dim = object.__new__(Dim)
    dim.terms, dim.const, dim._text, dim._names, dim._symbols, dim._interval = terms, const, None, None, None, None
    with _LOCK:
        return _DIMS.setdefault(key, dim)


def from_terms(coefficients: dict[Monomial, int], const: int) -> DimLike:
    """Return the value of a sum of terms; the dict is used up."""
    # To fold quotients takes the square of their number; a sum of more terms is not taken apart anyhow.
    if len(coefficients) <= MOST_WRITTEN:
        for monomial in coefficients:
            if any(atom.kind == FLOOR for atom in monomial):
                fold_quotients(coefficients, lambda terms, c, k: _atom_of(FLOOR, (interned(terms, c), k)))
                break
    terms = [(monomial, coefficient) for monomial, coefficient in coefficients.items() if coefficient]
    if not terms:
        return const
    size = sum([atom.size for monomial, _ in terms for atom in monomial])
    if len(terms) > 1:
        terms.sort(key=monomial_order)
        if size > MOST_WRITTEN:
            return _large_sum(tuple(terms), const)
    return interned(tuple(terms), const)


def sum_dims(dims: Iterable[DimLike]) -> DimLike:
    """Return the sum; 0 of nothing."""
    coefficients: dict[Monomial, int] = {}
    const = 0
    for dim in dims:
        const += add_into(coefficients, dim)
    return from_terms(coefficients, const)


def product(dims: Iterable[DimLike]) -> DimLike:
    """Return the product, the same in whichever order the dimensions come; 1 of nothing."""
    result: DimLike = 1
    for dim in sorted(dims, key=order_of):
        result = result * dim
    return result


def _add(one: Dim, other: Dim, sign: int) -> DimLike:
    coefficients = dict(one.terms)
    for monomial, coefficient in other.terms:
        coefficients[monomial] = coefficients.get(monomial, 0) + sign * coefficient
    return from_terms(coefficients, one.const + sign * other.const)


def _multiply(one: Dim, other: Dim) -> DimLike:
    one_count, other_count = (len(dim.terms) + (dim.const != 0) for dim in (one, other))
    size = size_of(one) * other_count + size_of(other) * one_count
    if degree_of(one) + degree_of(other) > MOST_FACTORS or size > MOST_WRITTEN:
        return _large_product(one, other)
    coefficients: dict[Monomial, int] = {}
    for monomial, coefficient in other.terms:
        add_all(coefficients, one, coefficient, monomial)
    const = add_into(coefficients, one, other.const)
    return from_terms(coefficients, const)


def _large_product(one: Dim, other: Dim) -> DimLike:
    """Return a product that is not multiplied out: a multiple of a large atom."""
    factor, parts = 1, list[Dim]()
    for dim in (one, other):
        common = gcd(dim.const, *(coefficient for _, coefficient in dim.terms))
        common = common if dim.terms[0][1] > 0 else -common
        factor *= common
        reduced = tuple([(monomial, coefficient // common) for monomial, coefficient in dim.terms])
        parts.append(interned(reduced, dim.const // common))
    return factor * atom_value(PRODUCT, tuple(sorted(parts, key=order_of)))


class _Step(NamedTuple):
    """A dimension on its way to the normal form: `whole + sign * (numerator//divisor)`."""

    whole: DimLike
    sign: int
    numerator: Dim
    divisor: int


# Floor quotients ---------------------------------------------------------------------------------------------------


@lru_cache(_REMEMBERED)
def _divide_by_int(numerator: Dim, divisor: int) -> DimLike:
    """`numerator // divisor` as whole parts and a quotient of which nothing more can be taken out."""
    if divisor == 0:
        raise ZeroDivisionError(f"({numerator})//0")
    if divisor < 0:
        return _divide_by_int(-numerator, -divisor)
    if divisor == 1:
        return numerator
    if is_deep(numerator):
        return _divide_deep(numerator, divisor)
    whole, const, sign, seen = dict[Monomial, int](), 0, 1, list[_Step]()
    while True:
        known = _known_quotient(numerator, divisor)
        if known is not None:
            return from_terms(whole, const + sign * known)
        terms, remainder, divisor = joined(whole, sign, numerator.terms, numerator.const, divisor)
        const += sign * (remainder // divisor)
        remainder %= divisor
        if is_better_negated(terms, divisor):
            # (R + r)//k == -((-R - r + k - 1)//k)
            sign, remainder = -sign, divisor - 1 - remainder
            terms = take_multiples(whole, sign, {m: -c for m, c in terms.items()}, divisor)
        folded = from_terms(dict(terms), remainder)
        if isinstance(folded, int):
            return from_terms(whole, const)
        if folded is numerator:
            return from_terms(whole, const + add_into(whole, _quotient(folded, divisor), sign))
        # Anything that changed may make way for more. Should it go round in a circle (folding against reducing), every
        # member of the circle must give the same: the least.
        places = [place for place, step in enumerate(seen) if step.numerator is folded and step.divisor == divisor]
        if places:
            least = min(seen[places[0] :], key=lambda step: (step.divisor, order_of(step.numerator)))
            return least.whole + least.sign * _quotient(least.numerator, least.divisor)
        numerator = folded
        seen.append(_Step(from_terms(dict(whole), const), sign, numerator, divisor))


def _known_quotient(numerator: Dim, divisor: int) -> int | None:
    """Return the quotient as a number, where the numerator stays within one multiple of the divisor."""
    if all(atom.kind == SYMBOL for monomial, _ in numerator.terms for atom in monomial):
        return None
    low, high = range_of(numerator)
    if low is None or high is None or low // divisor != high // divisor:
        return None
    return low // divisor


def _divide_deep(numerator: Dim, divisor: int) -> DimLike:
    """Return the quotient with only multiples of symbols taken out, and what can be divided or joined as a whole."""
    whole: dict[Monomial, int] = {}
    rest = {m: c for m, c in numerator.terms if any(atom.kind != SYMBOL for atom in m)}
    rest.update(take_multiples(whole, 1, {m: c for m, c in numerator.terms if m not in rest}, divisor))
    factor = gcd(divisor, *rest.values())
    const, divisor = numerator.const // factor, divisor // factor
    rest = {m: c // factor for m, c in rest.items()}
    nested = joinable(rest, divisor)
    if divisor == 1:
        return from_terms(whole, 0) + from_terms(rest, const)
    if nested is not None and rest[(nested[0],)] == 1:
        inner, inner_divisor = nested
        del rest[(inner,)]
        raised: DimLike = inner.args[0] + inner_divisor * from_terms(rest, const)
        return from_terms(whole, 0) + raised // (divisor * inner_divisor)
    whole_const, const = divmod(const, divisor)
    reduced = from_terms(rest, const)
    assert isinstance(reduced, Dim)
    known = _known_quotient(reduced, divisor)
    quotient = _quotient(reduced, divisor) if known is None else known
    return from_terms(whole, whole_const) + quotient


@lru_cache(_REMEMBERED)
def _remainder(numerator: DimLike, divisor: DimLike) -> DimLike:
    """`numerator - divisor*(numerator//divisor)`, unless that would write a deep numerator twice."""
    quotient = numerator // divisor
    if isinstance(quotient, int) or (isinstance(divisor, int) and divisor < 0) or not is_deep(numerator):
        return numerator - divisor * quotient
    return atom_value(MOD, (numerator, divisor))


def _quotient(numerator: Dim, divisor: int) -> DimLike:
    """Return the atom; `(E//B + j)//k` is `(E + j*B)//(B*k)`."""
    inner = lone_atom(numerator - numerator.const)
    if inner is not None and inner.kind == FLOOR and isinstance(inner.args[1], Dim):
        quotient: DimLike = (inner.args[0] + numerator.const * inner.args[1]) // (inner.args[1] * divisor)
        return quotient
    return atom_value(FLOOR, (numerator, divisor))


@lru_cache(_REMEMBERED)
def _divide_by_dim(numerator: DimLike, divisor: Dim) -> DimLike:
    """`numerator // divisor`: exact where the divisor divides, else an atom; a quotient by 0 has no value."""
    if isinstance(numerator, int) and numerator == 0:
        return 0
    if divisor.terms[0][1] < 0:
        return _divide_by_dim(-numerator, -divisor)
    exact = exact_quotient(numerator, divisor, from_terms)
    if exact is not None:
        return exact
    whole: DimLike = 0
    if len(divisor.terms) == 1 and divisor.const == 0:
        whole, numerator, reduced = cancel(numerator, divisor, from_terms)
        if isinstance(reduced, int):
            return whole + numerator // reduced
        divisor = reduced
    low, high = (numerator, numerator) if isinstance(numerator, int) else numerator.interval
    least = divisor.interval[0]
    if low is not None and high is not None and least is not None and low >= 0 and high < least:
        return whole
    inner = lone_atom(numerator)
    if inner is not None and inner.kind == FLOOR and least is not None and least >= 0:
        # (E//a)//B is E//(a*B) for positive divisors.
        quotient: DimLike = inner.args[0] // (inner.args[1] * divisor)
        return whole + quotient
    return whole + atom_value(FLOOR, (numerator, divisor))
