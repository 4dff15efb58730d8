"""Symbolic dimensions: integer polynomials over symbols >= 0, with floor quotients and maxima as atoms, in one normal form.

The rules of the normal form, beyond multiplying out and collecting terms:

- `a % b` is `a - b*(a//b)`, and `min(a, b)` is `a + b - max(a, b)`: both are only ways to print.
- `//` by an integer takes multiples out, divides by the common factor, and joins nested quotients: `((N + 1)//2 + 1)//2` is `(N + 3)//4`.
- Quotients of one numerator add up in one way (`floor_sums`): `N - (N + 1)//2` is `N//2`.
- A maximum of two is `a + max(0, b - a)`, with the common factor taken out and the leading sign positive (`extrema`).
- `//` by a dimension B is exact for multiples of B: what a quotient by 0 would be is nobody's concern.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from math import gcd, lcm
from typing import Any, NoReturn, TypeAlias
from weakref import WeakValueDictionary

from splitgraph.dim.atoms import FLOOR, SYMBOL, Atom, Monomial, Terms, monomial_order, quotient_of, times, without
from splitgraph.dim.bounds import atom_interval, interval, symbolic_interval
from splitgraph.dim.floor_sums import decompose
from splitgraph.dim.spelling import spell

# Sums of quotients by larger numbers are left as they come: the table of residues would be larger than what it explains.
_LARGEST_TABLE = 256


class Dim:
    """A symbolic dimension; equal values in normal form are the same object, and a constant is never a Dim but an int.

    terms: (monomial, coefficient) in normal order, never empty. const: the constant term.
    """

    __slots__ = ("__weakref__", "_interval", "_text", "const", "terms")

    terms: Terms
    const: int
    _interval: tuple[int | None, int | None] | None
    _text: str | None

    def __init__(self) -> None:
        raise TypeError("make a Dim with symbol(), parse_dim() or arithmetic")

    def __add__(self, other: DimLike) -> DimLike:
        if isinstance(other, int):
            return _interned(self.terms, self.const + other)
        if isinstance(other, Dim):
            return _add(self, other, 1)
        return NotImplemented

    __radd__ = __add__

    def __sub__(self, other: DimLike) -> DimLike:
        if isinstance(other, int):
            return _interned(self.terms, self.const - other)
        if isinstance(other, Dim):
            return 0 if other is self else _add(self, other, -1)
        return NotImplemented

    def __rsub__(self, other: int) -> DimLike:
        if isinstance(other, int):
            return _interned(tuple((m, -c) for m, c in self.terms), other - self.const)
        return NotImplemented

    def __neg__(self) -> Dim:
        return _interned(tuple((m, -c) for m, c in self.terms), -self.const)

    def __pos__(self) -> Dim:
        return self

    def __mul__(self, other: DimLike) -> DimLike:
        if isinstance(other, int):
            return _interned(tuple((m, c * other) for m, c in self.terms), self.const * other) if other else 0
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
        if isinstance(other, int | Dim):
            return self - other * (self // other)
        return NotImplemented

    def __rmod__(self, other: int) -> DimLike:
        return other - self * (other // self) if isinstance(other, int) else NotImplemented

    def __bool__(self) -> NoReturn:
        raise TypeError(f"the dimension {self} is symbolic, neither true nor false; compare with ==, or ask Facts.prove_eq")

    def _no_order(self, other: object) -> NoReturn:
        raise TypeError(f"the dimension {self} is symbolic and has no order; ask Facts.prove_ge")

    __lt__ = __le__ = __gt__ = __ge__ = _no_order

    def __int__(self) -> NoReturn:
        raise TypeError(f"the dimension {self} is symbolic, not a number; use evaluate")

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

    @property
    def interval(self) -> tuple[int | None, int | None]:
        """(lowest, highest) value, as far as known of any symbols >= 0; None: unbounded."""
        if self._interval is None:
            self._interval = interval(self)
        return self._interval


DimLike: TypeAlias = int | Dim

_LOCK = threading.RLock()
_DIMS: WeakValueDictionary[tuple[Terms, int], Dim] = WeakValueDictionary()
_ATOMS: WeakValueDictionary[tuple[object, ...], Atom] = WeakValueDictionary()


def symbol(name: str) -> Dim:
    """The dimension of that name, which may be any text and is kept as it is."""
    atom = _ATOMS.get((SYMBOL, name))
    if atom is None:
        atom = _interned_atom((SYMBOL, name), name, ())
    return _interned((((atom,), 1),), 0)


def atom_value(kind: int, args: tuple[DimLike, ...]) -> Dim:
    """The dimension that is one atom over arguments in normal form; normalising those is the caller's part."""
    atom = _ATOMS.get((kind, args))
    if atom is None:
        atom = _interned_atom((kind, args), "", args)
    return _interned((((atom,), 1),), 0)


def _interned_atom(key: tuple[Any, ...], name: str, args: tuple[DimLike, ...]) -> Atom:
    kind: int = key[0]
    bounds = (0, None) if kind == SYMBOL else atom_interval(kind, args, symbolic_interval)
    made = Atom(kind, name, args, bounds)
    with _LOCK:
        return _ATOMS.setdefault(key, made)


def _interned(terms: Terms, const: int) -> Dim:
    key = (terms, const)
    found = _DIMS.get(key)
    if found is not None:
        return found
    made = object.__new__(Dim)
    made.terms, made.const, made._interval, made._text = terms, const, None, None
    with _LOCK:
        return _DIMS.setdefault(key, made)


def from_terms(coefficients: dict[Monomial, int], const: int) -> DimLike:
    """The value of a sum of terms; the dict is used up."""
    for monomial in coefficients:
        if any(atom.kind == FLOOR for atom in monomial):
            _fold_quotients(coefficients)
            break
    terms = [(m, c) for m, c in coefficients.items() if c]
    if not terms:
        return const
    if len(terms) > 1:
        terms.sort(key=monomial_order)
    return _interned(tuple(terms), const)


def sum_dims(dims: Iterable[DimLike]) -> DimLike:
    """The sum; 0 of nothing."""
    coefficients: dict[Monomial, int] = {}
    const = 0
    for dim in dims:
        const += add_into(coefficients, dim)
    return from_terms(coefficients, const)


def product(dims: Iterable[DimLike]) -> DimLike:
    """The product; 1 of nothing."""
    result: DimLike = 1
    for dim in dims:
        result = result * dim
    return result


def ceildiv(a: DimLike, b: DimLike) -> DimLike:
    """`a / b` rounded up."""
    return -(-a // b) if isinstance(a, int) and isinstance(b, int) else (a + b - 1) // b


def add_into(coefficients: dict[Monomial, int], dim: DimLike, factor: int = 1, cofactor: Monomial = ()) -> int:
    """Add `dim * factor * cofactor` to the terms; gives back the constant that is left when there is no cofactor."""
    if isinstance(dim, int):
        if not cofactor:
            return dim * factor
        coefficients[cofactor] = coefficients.get(cofactor, 0) + dim * factor
        return 0
    for monomial, coefficient in dim.terms:
        key = times(monomial, cofactor)
        coefficients[key] = coefficients.get(key, 0) + coefficient * factor
    return add_into(coefficients, dim.const, factor, cofactor)


def _add(one: Dim, other: Dim, sign: int) -> DimLike:
    coefficients = dict(one.terms)
    for monomial, coefficient in other.terms:
        coefficients[monomial] = coefficients.get(monomial, 0) + sign * coefficient
    return from_terms(coefficients, one.const + sign * other.const)


def _multiply(one: Dim, other: Dim) -> DimLike:
    coefficients: dict[Monomial, int] = {}
    for monomial, coefficient in other.terms:
        add_into(coefficients, one, coefficient, monomial)
    const = add_into(coefficients, one, other.const)
    return from_terms(coefficients, const)


# Floor quotients ---------------------------------------------------------------------------------------------------


def _divide_by_int(numerator: Dim, divisor: int) -> DimLike:
    """`numerator // divisor`: whole parts out, common factor out, nested quotients joined."""
    if divisor == 0:
        raise ZeroDivisionError(f"({numerator})//0")
    if divisor < 0:
        return _divide_by_int(-numerator, -divisor)
    if divisor == 1:
        return numerator
    known = _known_quotient(numerator, divisor)
    if known is not None:
        return known
    whole: dict[Monomial, int] = {}
    terms, const = numerator.terms, numerator.const
    while True:
        rest: dict[Monomial, int] = {}
        for monomial, coefficient in terms:
            quotient, remainder = divmod(coefficient, divisor)
            if quotient:
                whole[monomial] = whole.get(monomial, 0) + quotient
            if remainder:
                rest[monomial] = remainder
        if not rest:
            return from_terms(whole, const // divisor)
        factor = gcd(divisor, *rest.values())
        if factor > 1:
            rest = {m: c // factor for m, c in rest.items()}
            divisor, const = divisor // factor, const // factor
        nested = _joinable(rest, divisor)
        if nested is None:
            return _quotient(whole, rest, const, divisor)
        inner, inner_divisor = nested.args
        sign = 1 if rest.pop((nested,)) == 1 else -1
        if sign < 0:
            whole[(nested,)] = whole.get((nested,), 0) + 1
        rest = {m: c * inner_divisor for m, c in rest.items()}
        const = const * inner_divisor + add_into(rest, inner, sign) + (0 if sign > 0 else inner_divisor - 1)
        terms, divisor = tuple(rest.items()), divisor * inner_divisor


def _known_quotient(numerator: Dim, divisor: int) -> int | None:
    """The quotient as a number, where the numerator stays within one multiple of the divisor."""
    if all(atom.kind == SYMBOL for monomial, _ in numerator.terms for atom in monomial):
        return None
    low, high = numerator.interval
    if low is None or high is None or low // divisor != high // divisor:
        return None
    return low // divisor


def _joinable(rest: dict[Monomial, int], divisor: int) -> Atom | None:
    """The nested quotient E//a of `(E//a + R)//b` or `(R - E//a)//b`, which is one quotient by a*b; None if there is none."""
    found: Atom | None = None
    for monomial in rest:
        if not any(atom.kind == FLOOR for atom in monomial):
            continue
        if found is not None or len(monomial) > 1:
            return None
        found = monomial[0]
    if found is None or not isinstance(found.args[1], int):
        return None
    return found if rest[(found,)] in (1, divisor - 1) else None


def _quotient(whole: dict[Monomial, int], rest: dict[Monomial, int], const: int, divisor: int) -> DimLike:
    """`whole + (rest + const)//divisor` for coefficients of rest in [1, divisor)."""
    whole_const, const = divmod(const, divisor)
    terms = sorted(rest.items(), key=monomial_order)
    uneven = next((c for _, c in terms if 2 * c != divisor), 0)
    sign = 1
    if 2 * uneven > divisor:
        # (R + c)//k == -((-R - c + k - 1)//k): of the two spellings, the one with the smaller leading coefficient.
        sign = -1
        for monomial, _ in terms:
            whole[monomial] = whole.get(monomial, 0) + 1
        terms = [(m, divisor - c) for m, c in terms]
        const = divisor - 1 - const
    atom = atom_value(FLOOR, (_interned(tuple(terms), const), divisor))
    return from_terms(whole, whole_const + add_into(whole, atom, sign))


def _fold_quotients(coefficients: dict[Monomial, int]) -> None:
    """Rewrite sums of quotients of one numerator in the one way that `decompose` gives."""
    groups: dict[tuple[Monomial, Terms, int], list[tuple[Atom, int]]] = {}
    for monomial, coefficient in coefficients.items():
        quotients = [atom for atom in monomial if atom.kind == FLOOR]
        if len(quotients) != 1 or not coefficient:
            continue
        numerator, divisor = quotients[0].args
        if isinstance(numerator, int) or not isinstance(divisor, int) or divisor > _LARGEST_TABLE:
            continue
        if numerator.terms[0][1] == 1:
            odd = divisor // (divisor & -divisor)
            key = (without(monomial, quotients[0]), numerator.terms, odd)
            groups.setdefault(key, []).append((quotients[0], divisor))
    for key in sorted(groups, key=_fold_order):
        if len(groups[key]) > 1 or groups[key][0][1] == 2:
            _fold_group(coefficients, key[0], key[1], groups[key])


def _fold_order(key: tuple[Monomial, Terms, int]) -> tuple[object, ...]:
    cofactor, terms, odd = key
    return (-max(atom.level for m, _ in terms for atom in m), [(monomial_order(t), t[1]) for t in terms], -odd, cofactor)


def _fold_group(
    coefficients: dict[Monomial, int], cofactor: Monomial, terms: Terms, members: list[tuple[Atom, int]]
) -> None:
    divisors = sorted({divisor for _, divisor in members})
    size = lcm(*divisors)
    leading = times(cofactor, terms[0][0])
    linear = coefficients.get(leading, 0)
    table = [linear] * size
    for atom, divisor in members:
        coefficient = coefficients.pop(times(cofactor, (atom,)))
        for place in range(atom.args[0].const, size, divisor):
            table[place] += coefficient
    levels = [1, *divisors]
    if all(c == 1 for _, c in terms):
        levels = [1] + [d for d in range(2, size + 1) if size % d == 0 and (size // d) & (size // d - 1) == 0]
    for divisor, residue, factor in decompose(table, levels):
        if divisor == 1:
            linear -= factor
        else:
            add_into(coefficients, atom_value(FLOOR, (_interned(terms, residue), divisor)), factor, cofactor)
    if linear:
        add_into(coefficients, _interned(terms, 0), -linear, cofactor)


def _divide_by_dim(numerator: DimLike, divisor: Dim) -> DimLike:
    """`numerator // divisor`: exact where the divisor divides, else an atom; the divisor is never 0 where this has a value."""
    if isinstance(numerator, int) and numerator == 0:
        return 0
    if divisor.terms[0][1] < 0:
        return _divide_by_dim(-numerator, -divisor)
    exact = _exact_quotient(numerator, divisor)
    if exact is not None:
        return exact
    whole: DimLike = 0
    if len(divisor.terms) == 1 and divisor.const == 0:
        whole, numerator, reduced = _cancel(numerator, divisor)
        if isinstance(reduced, int):
            return whole + numerator // reduced
        divisor = reduced
    low, high = (numerator, numerator) if isinstance(numerator, int) else numerator.interval
    least = divisor.interval[0]
    if low is not None and high is not None and least is not None and 0 <= low and high < least:
        return whole
    return whole + _joined_quotient(numerator, divisor)


def _joined_quotient(numerator: DimLike, divisor: Dim) -> DimLike:
    """The atom; `(E//a)//B` is `E//(a*B)` for positive divisors."""
    if isinstance(numerator, Dim) and len(numerator.terms) == 1 and numerator.const == 0:
        (monomial, coefficient) = numerator.terms[0]
        if coefficient == 1 and len(monomial) == 1 and monomial[0].kind == FLOOR:
            inner, inner_divisor = monomial[0].args
            low = divisor.interval[0]
            if low is not None and low >= 0:
                return inner // (inner_divisor * divisor)
    return atom_value(FLOOR, (numerator, divisor))


def _exact_quotient(numerator: DimLike, divisor: Dim) -> DimLike | None:
    """The quotient when the polynomial divides without a remainder, else None."""
    if isinstance(numerator, int):
        return None
    lead, lead_coefficient = divisor.terms[0]
    left: DimLike = numerator
    found: DimLike = 0
    while isinstance(left, Dim):
        monomial = quotient_of(left.terms[0][0], lead)
        if monomial is None or left.terms[0][1] % lead_coefficient:
            return None
        step = from_terms({monomial: 1}, 0) if monomial else 1
        step = step * (left.terms[0][1] // lead_coefficient)
        left = left - step * divisor
        found = found + step
    return found if left == 0 else None


def _cancel(numerator: DimLike, divisor: Dim) -> tuple[DimLike, DimLike, DimLike]:
    """(whole, rest, reduced divisor) with numerator//divisor == whole + rest//reduced, for a divisor of one term."""
    monomial, factor = divisor.terms[0]
    if isinstance(numerator, int):
        common = gcd(numerator, factor)
        return 0, numerator // common, from_terms({monomial: factor // common}, 0)
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for term, coefficient in numerator.terms:
        shared = quotient_of(term, monomial)
        if shared is None or coefficient % factor:
            rest[term] = coefficient
        else:
            whole[shared] = coefficient // factor
    whole_const = whole.pop((), 0)
    common = gcd(factor, numerator.const, *rest.values())
    for atom in monomial:
        if rest and numerator.const == 0 and all(atom in term for term in rest):
            rest = {without(term, atom): c for term, c in rest.items()}
            monomial = without(monomial, atom)
    const = rest.pop((), 0) + numerator.const
    reduced = from_terms({monomial: factor // common}, 0) if monomial else factor // common
    return from_terms(whole, whole_const), from_terms({m: c // common for m, c in rest.items()}, const // common), reduced
