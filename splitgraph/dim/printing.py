"""Printing dimensions: each normal form has one spelling, with remainders, minima and maxima recognised."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from splitgraph.dim.atoms import (
    FLOOR,
    LARGE,
    MOD,
    NAMED,
    NESTED_MAX,
    SUM,
    SYMBOL,
    Atom,
    Monomial,
    Polynomial,
    Terms,
    Value,
    atoms_by_level,
    const_of,
    monomial_order,
    quotient_of,
    times,
    without,
)

FUNCTION_NAMES = frozenset({"min", "max"})

# Python refuses to turn longer numbers into decimal digits at once.
_DIGITS = 4000
_TOO_LONG = 10**_DIGITS


class _Factor(NamedTuple):
    """A factor's text, and whether it must stand in parentheses as part of a product."""

    text: str
    loose: bool


_Piece = tuple[int, Sequence[_Factor]]


class _Quotient(NamedTuple):
    """`E//k`, `E % k`; and `(E + B)//B`, which is one more than `E//B`, when that saves a negative constant."""

    quotient: str
    remainder: str
    one_more: str | None


class _PositivePart(NamedTuple):
    """`max(0, D)` for D = rising - falling + const, and the arguments of the minima and maxima that it is part of."""

    text: str
    rising: Terms
    falling: Terms
    const: int
    const_falling: tuple[str, ...]
    const_rising: tuple[str, ...]


class _Maximum(NamedTuple):
    """The arguments of a maximum of three or more, upright and negated, each as pieces and a constant."""

    args: Sequence[tuple[list[_Piece], int]]
    negated: Sequence[tuple[list[_Piece], int]]


class _NestedMaximum(NamedTuple):
    """`max(...)` of deep arguments, and `min(...)` of their opposites."""

    text: str
    negated: str


_Spelled = _Factor | _Quotient | _PositivePart | _Maximum | _NestedMaximum
_Texts = Mapping[Atom, _Spelled]


def is_identifier(name: str) -> bool:
    """Return True when the name can stand in an expression, and Python does not normalise it to another name, as it
    does with ligatures.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or name in FUNCTION_NAMES or name == "__debug__":
        return False
    if name.isascii():
        return True
    # Imported only here: it takes a megabyte, and few names need it.
    import unicodedata

    return unicodedata.is_normalized("NFKC", name)


def bare_symbol(value: Polynomial) -> str | None:
    """Return the name, when the value is nothing but a symbol."""
    if value.const == 0 and len(value.terms) == 1:
        monomial, coefficient = value.terms[0]
        if coefficient == 1 and len(monomial) == 1 and monomial[0].kind == SYMBOL:
            return monomial[0].name
    return None


def spell(value: Polynomial) -> str:
    """Return the one spelling of the value. A large atom in it is a name in brackets that no other atom has."""
    name = bare_symbol(value)
    if name is not None:
        return name
    return _spell_sum(value.terms, value.const, _texts(value))


def spell_inside(value: Value) -> str:
    """Return the spelling of a value inside an expression: a name that is not an identifier stands in brackets."""
    return decimal(value) if isinstance(value, int) else _spell_sum(value.terms, value.const, _texts(value))


def spell_relation(difference: Polynomial, relation: str) -> str:
    """`difference == 0` or `difference >= 0`, with the terms on the sides where they are positive."""
    texts = _texts(difference)
    apart, left_over = _pieces(difference.terms, 0, texts)
    pieces, const = _pieces(difference.terms, difference.const, texts)
    if len(apart) <= len(pieces):
        pieces, const = apart, left_over + difference.const
    left = [piece for piece in pieces if piece[0] > 0]
    right = [(-coefficient, factors) for coefficient, factors in pieces if coefficient < 0]
    beside = const if right and (const > 0 or not left) else 0
    return f"{_join(left, beside)} {relation} {_join(right, beside - const)}"


def spell_large(atom: Atom, parts: Iterable[Value]) -> str:
    """Return the text of a large atom's value, with the given parts in place of its own."""
    if atom.kind == SUM:
        return " + ".join(map(spell_inside, parts)).replace(" + -", " - ")
    return "*".join([_operand(part, {} if isinstance(part, int) else _texts(part)) for part in parts])


def decimal(number: int) -> str:
    """Return the number in decimal digits, however long."""
    if -_TOO_LONG < number < _TOO_LONG:
        return str(number)
    parts, left = [], abs(number)
    while left:
        left, part = divmod(left, _TOO_LONG)
        parts.append(str(part).rjust(_DIGITS, "0"))
    return ("-" if number < 0 else "") + "".join(reversed(parts)).lstrip("0")


def _texts(value: Polynomial) -> dict[Atom, _Spelled]:
    texts: dict[Atom, _Spelled] = {}
    for atom in atoms_by_level([value]):
        texts[atom] = _spell_atom(atom, texts)
    return texts


def _spell_atom(atom: Atom, texts: _Texts) -> _Spelled:
    if atom.kind in LARGE:
        return _Factor(atom.name, False)
    if atom.kind == SYMBOL:
        return _Factor(atom.name if is_identifier(atom.name) else f"[{atom.name.replace(']', ']]')}]", False)
    if atom.kind == FLOOR:
        numerator, denominator = (_operand(arg, texts) for arg in atom.args)
        one_more = _spell_one_more(atom.args[0], atom.args[1], texts)
        return _Quotient(f"{numerator}//{denominator}", f"{numerator} % {denominator}", one_more)
    if atom.kind == MOD:
        return _Factor(" % ".join(_operand(arg, texts) for arg in atom.args), True)
    if atom.kind != NESTED_MAX and len(atom.args) == 2 and not isinstance(atom.args[1], int):
        return _spell_positive_part(atom.args[1], texts)
    upright, negated = ([_argument(arg, sign, texts) for arg in atom.args] for sign in (1, -1))
    if atom.kind == NESTED_MAX:
        return _NestedMaximum(_call("max", upright, 0), _call("min", negated, 0))
    return _Maximum(upright, negated)


def _spell_one_more(numerator: Value, denominator: Value, texts: _Texts) -> str | None:
    if isinstance(numerator, int) or isinstance(denominator, int) or numerator.const >= 0 or denominator.const:
        return None
    if {m for m, _ in numerator.terms} & {m for m, _ in denominator.terms}:
        return None
    terms = tuple(sorted(numerator.terms + denominator.terms, key=monomial_order))
    return f"({_spell_sum(terms, numerator.const, texts)})//{_operand(denominator, texts)}"


def _spell_positive_part(value: Polynomial, texts: _Texts) -> _PositivePart:
    rising = tuple((m, c) for m, c in value.terms if c > 0)
    falling = tuple((m, -c) for m, c in value.terms if c < 0)
    const = value.const
    return _PositivePart(
        f"max(0, {_spell_sum(value.terms, const, texts)})",
        rising,
        falling,
        const,
        (_spell_sum(rising, 0, texts), _spell_sum(falling, -const, texts)),
        (_spell_sum(rising, const, texts), _spell_sum(falling, 0, texts)),
    )


def _argument(arg: Value, sign: int, texts: _Texts) -> tuple[list[_Piece], int]:
    if isinstance(arg, int):
        return [], sign * arg
    return _pieces(tuple((m, sign * c) for m, c in arg.terms), sign * arg.const, texts)


def _operand(arg: Value, texts: _Texts) -> str:
    if isinstance(arg, int):
        return decimal(arg) if arg >= 0 else f"({decimal(arg)})"
    pieces, const = _pieces(arg.terms, arg.const, texts)
    text = _join(pieces, const)
    alone = (
        const == 0 and len(pieces) == 1 and pieces[0][0] == 1 and len(pieces[0][1]) == 1 and not pieces[0][1][0].loose
    )
    return text if alone else f"({text})"


def _spell_sum(terms: Terms, const: int, texts: _Texts) -> str:
    return _join(*_pieces(terms, const, texts))


def _join(pieces: Iterable[_Piece], const: int) -> str:
    """Return the sum, a positive piece first when there is one."""
    ordered = list(pieces)
    if const:
        ordered.append((const, ()))
    if not ordered:
        return "0"
    first = next((place for place, piece in enumerate(ordered) if piece[0] > 0), 0)
    ordered.insert(0, ordered.pop(first))
    coefficient, factors = ordered[0]
    text = _product(coefficient, factors) if coefficient > 0 else "-" + _product(-coefficient, factors, tight=True)
    return text + "".join((" + " if c > 0 else " - ") + _product(abs(c), f) for c, f in ordered[1:])


def _product(coefficient: int, factors: Sequence[_Factor], tight: bool = False) -> str:
    if not factors:
        return decimal(coefficient)
    if coefficient == 1 and len(factors) == 1 and not tight:
        return factors[0].text
    texts = [f"({factor.text})" if factor.loose else factor.text for factor in factors]
    return "*".join(texts if coefficient == 1 else [decimal(coefficient), *texts])


class _Remaining:
    """The terms of a sum that are not printed yet."""

    def __init__(self, terms: Terms, const: int) -> None:
        self.terms = dict(terms)
        self.const = const

    def take(self, terms: Terms, const: int, factor: int, cofactor: Monomial) -> bool:
        """Take `factor*cofactor*(terms + const)` away when it is a part of what remains."""
        wanted = {times(m, cofactor): c * factor for m, c in terms}
        if cofactor and const:
            wanted[cofactor] = wanted.get(cofactor, 0) + const * factor
        left = self.const if cofactor else self.const - const * factor
        if abs(left) > abs(self.const) or left * self.const < 0:
            return False
        if not all(self.terms.get(m, 0) * c > 0 and abs(self.terms[m]) >= abs(c) for m, c in wanted.items()):
            return False
        for monomial, coefficient in wanted.items():
            self.terms[monomial] -= coefficient
        self.const = left
        return True


def _pieces(terms: Terms, const: int, texts: _Texts) -> tuple[list[_Piece], int]:
    """Return the summands in printing order and the constant that is left."""
    left = _Remaining(terms, const)
    patterns: dict[Monomial, _Piece] = {}
    for monomial, coefficient in terms:
        composite = [atom for atom in monomial if atom.kind not in NAMED]
        if len(composite) != 1 or left.terms[monomial] != coefficient:
            continue
        pattern = _pattern(composite[0], coefficient, without(monomial, composite[0]), left, texts)
        if pattern is not None:
            left.terms[monomial] = 0
            patterns[monomial] = pattern
    pieces: list[_Piece] = []
    for monomial, _ in terms:
        if left.terms[monomial]:
            pieces.append((left.terms[monomial], _factors(monomial, texts)))
        elif monomial in patterns:
            pieces.append(patterns[monomial])
    return pieces, left.const


def _factors(monomial: Monomial, texts: _Texts) -> list[_Factor]:
    factors = []
    for atom in monomial:
        spelled = texts[atom]
        if isinstance(spelled, _Quotient):
            factors.append(_Factor(spelled.quotient, True))
        elif isinstance(spelled, _PositivePart | _NestedMaximum):
            factors.append(_Factor(spelled.text, False))
        elif isinstance(spelled, _Maximum):
            factors.append(_Factor(_call("max", spelled.args, 0), False))
        else:
            factors.append(spelled)
    return factors


def _pattern(atom: Atom, coefficient: int, cofactor: Monomial, left: _Remaining, texts: _Texts) -> _Piece | None:
    """Return the remainder, minimum or maximum that this term forms with others of the remaining terms."""
    spelled = texts[atom]
    if isinstance(spelled, _Quotient):
        remainder = _remainder(atom, spelled, coefficient, cofactor, left, texts)
        if remainder is None and spelled.one_more is not None and left.take((), 1, coefficient, cofactor):
            return coefficient, [*_factors(cofactor, texts), _Factor(spelled.one_more, True)]
        return remainder
    if isinstance(spelled, _PositivePart):
        return _extremum(spelled, coefficient, cofactor, left, texts)
    if isinstance(spelled, _NestedMaximum):
        text = spelled.text if coefficient > 0 else spelled.negated
        return abs(coefficient), [*_factors(cofactor, texts), _Factor(text, False)]
    if isinstance(spelled, _Maximum):
        return _extremum_of_many(spelled, coefficient, cofactor, left, texts)
    return None


def _remainder(
    atom: Atom, spelled: _Quotient, coefficient: int, cofactor: Monomial, left: _Remaining, texts: _Texts
) -> _Piece | None:
    """`E - k*(E//k)` is `E % k`."""
    numerator, divisor = atom.args
    terms = () if isinstance(numerator, int) else numerator.terms
    if isinstance(divisor, int):
        if coefficient % divisor:
            return _nested_remainder(atom, coefficient, cofactor, left, texts)
        factor = -coefficient // divisor
    else:
        rest = quotient_of(cofactor, divisor.terms[0][0])
        if rest is None or len(divisor.terms) > 1 or divisor.const or coefficient % divisor.terms[0][1]:
            return None
        factor, cofactor = -coefficient // divisor.terms[0][1], rest
    if left.take(terms, const_of(numerator), factor, cofactor):
        return factor, [*_factors(cofactor, texts), _Factor(spelled.remainder, True)]
    return _nested_remainder(atom, coefficient, cofactor, left, texts) if isinstance(divisor, int) else None


def _nested_remainder(
    atom: Atom, coefficient: int, cofactor: Monomial, left: _Remaining, texts: _Texts
) -> _Piece | None:
    """`E//a - b*(E//(a*b))` is `(E//a) % b`."""
    numerator, divisor = atom.args
    if isinstance(numerator, int) or not isinstance(divisor, int):
        return None
    for monomial in left.terms:
        rest = quotient_of(monomial, cofactor)
        if rest is None or len(rest) != 1 or rest[0].kind != FLOOR:
            continue
        inner, inner_divisor = rest[0].args
        if isinstance(inner, int) or not isinstance(inner_divisor, int) or inner.terms != numerator.terms:
            continue
        modulus, uneven = divmod(divisor, inner_divisor)
        shift, unshifted = divmod(numerator.const - inner.const, inner_divisor)
        if uneven or unshifted or modulus == 1 or coefficient % modulus:
            continue
        if left.take(((rest, 1),), shift, -coefficient // modulus, cofactor):
            text = f"({_join([(1, _factors(rest, texts))], shift)}) % {decimal(modulus)}"
            return -coefficient // modulus, [*_factors(cofactor, texts), _Factor(text, True)]
    return None


def _extremum(
    part: _PositivePart, coefficient: int, cofactor: Monomial, left: _Remaining, texts: _Texts
) -> _Piece | None:
    """`R - max(0, R - F)` is `min(R, F)`, and `F + max(0, R - F)` is `max(R, F)`; either may be subtracted."""
    lower = ("min", -coefficient, part.rising, ((0, part.const_falling), (part.const, part.const_rising)))
    upper = ("max", coefficient, part.falling, ((-part.const, part.const_falling), (0, part.const_rising)))
    for name, factor, terms, choices in (lower, upper) if coefficient < 0 else (upper, lower):
        for const, args in sorted(choices, key=lambda choice: abs(left.const - choice[0] * factor)):
            if (terms or const) and left.take(terms, const, factor, cofactor):
                first, second = reversed(args) if args[1] == "0" else args
                return factor, [*_factors(cofactor, texts), _Factor(f"{name}({first}, {second})", False)]
    return _clamp(part, coefficient, cofactor, left, texts) if coefficient < 0 else None


def _clamp(part: _PositivePart, coefficient: int, cofactor: Monomial, left: _Remaining, texts: _Texts) -> _Piece | None:
    """`max(0, D) - max(0, D - c)` is `min(max(0, D), c)`."""
    for monomial in left.terms:
        rest = quotient_of(monomial, cofactor)
        other = texts[rest[0]] if rest is not None and len(rest) == 1 else None
        if not isinstance(other, _PositivePart) or (other.rising, other.falling) != (part.rising, part.falling):
            continue
        if rest is not None and other.const > part.const and left.take(((rest, 1),), 0, -coefficient, cofactor):
            text = f"min({other.text}, {decimal(other.const - part.const)})"
            return -coefficient, [*_factors(cofactor, texts), _Factor(text, False)]
    return None


def _extremum_of_many(
    spelled: _Maximum, coefficient: int, cofactor: Monomial, left: _Remaining, texts: _Texts
) -> _Piece:
    """`c*max(a, b, d)` with a constant moved inside, or `-c*min(-a, -b, -d)`."""
    factor = abs(coefficient)
    shift = 0 if cofactor or left.const % factor else left.const // factor
    left.const -= shift * factor
    text = _call("max", spelled.args, shift) if coefficient > 0 else _call("min", spelled.negated, shift)
    return factor, [*_factors(cofactor, texts), _Factor(text, False)]


def _call(name: str, args: Sequence[tuple[list[_Piece], int]], shift: int) -> str:
    """Return the call with its arguments, 0 first and any other number last."""
    numbers = [const + shift for pieces, const in args if not pieces]
    texts = [_join(pieces, const + shift) for pieces, const in args if pieces]
    for number in numbers:
        texts.insert(len(texts) if number else 0, decimal(number))
    return f"{name}({', '.join(texts)})"
