"""Random arithmetic on elements of int64, without nodes around it: what is known of each value against plain integers.

It is the arithmetic of shapes without the models, so that a million chains take minutes. Each chain also assumes
relations of its values, and everything is simplified and renamed as for a report.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from splitgraph.dim import Dim, DimLike, Facts, Obligation, evaluate, substitute_if_defined, symbol
from splitgraph.inference.rules import arithmetic as exact
from splitgraph.inference.shown_symbols import Requirements, ShownNames, TypeSimplifier, solve

_GENERATED: Final = "generated"
_SYMBOLS: Final = ("N", "M", _GENERATED)
_POINTS: Final = 5
_SIZES: Final = (0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 12)
Numbers = Sequence["int | None"]


class Known(NamedTuple):
    """A value: what is said of it, and the number that it is at each point; None where it has none."""

    said: DimLike
    numbers: Numbers


def check_elements(seed: int) -> list[str]:
    """Return what is wrong about the chain of a seed."""
    return _Chain(random.Random(seed)).check()


class _Chain:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.points = [{name: rng.choice(_SIZES) for name in _SYMBOLS} for _ in range(_POINTS)]
        self.holds = [True] * _POINTS
        self.facts = Facts()
        self.noted: list[Obligation] = []
        self.wrong: list[str] = []
        self.values = [Known(symbol(name), [point[name] for point in self.points]) for name in _SYMBOLS]

    def check(self) -> list[str]:
        for _ in range(self.rng.randint(3, 7)):
            if self.rng.random() < 0.2:
                self._assume()
            else:
                self._compute()
        self._report()
        return self.wrong

    def _pick(self) -> Known:
        return self.rng.choice(self.values[-6:] if self.rng.random() < 0.7 else self.values)

    def _operand(self) -> Known:
        if self.rng.random() < 0.5:
            return self._pick()
        number = self.rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 8, -1, -2))
        return Known(number, [number] * _POINTS)

    def _compute(self) -> None:
        name = self.rng.choice((*_OPERATIONS, "divide", "divide", "modulo", "largest", "smallest"))
        on_items, on_numbers = _OPERATIONS[name]
        one, other = self._pick(), self._operand()
        if self.rng.random() < 0.3:
            one, other = other, one
        said = on_items(self.facts, "int64", one.said, other.said)
        if isinstance(said, (int, Dim)):
            self.values.append(Known(said, list(map(on_numbers, one.numbers, other.numbers))))

    def _assume(self) -> None:
        """Assume a relation of a value: points where it does not hold no longer count."""
        known, number = self._pick(), self.rng.choice((0, 1, 2, 3, 6))
        is_equal = self.rng.random() < 0.3
        if is_equal and self.rng.random() < 0.5:
            known = Known(known.said % (number + 1), [_modulo(each, number + 1) for each in known.numbers])
            number = 0
        obligation = Obligation(known.said, "==" if is_equal else ">=", number)
        answer = self.facts.require(obligation)
        there = [
            each is not None and holds and (each == number if is_equal else each >= number)
            for each, holds in zip(known.numbers, self.holds, strict=True)
        ]
        if answer == "contradiction":
            if any(there):
                self.wrong.append(f"{obligation} is said to contradict what holds")
            return
        self.holds = there
        self.noted.append(obligation)

    def _report(self) -> None:
        """Compare all values with the numbers, as they are, simplified, and as they are shown."""
        solved = solve(self.noted, {_GENERATED})
        simplifier, naming = TypeSimplifier(solved), ShownNames({_GENERATED}, _SYMBOLS, solved, [_GENERATED])
        plain = [simplifier.dims([known.said], self.facts)[0] for known in self.values]
        naming.count([(plain, 1)])
        for known, simple in zip(self.values, plain, strict=True):
            assert simple is not None
            self._compare(known, simple)
            substitute_if_defined(simple, {"N": 0, "M": 1})
            str(naming.dim(simple))
        requirements = Requirements(naming, [(obligation, self.facts) for obligation in self.noted])
        for obligation in self.noted:
            str(requirements.plain(obligation, self.facts))

    def _compare(self, known: Known, said: DimLike) -> None:
        for point, number, holds in zip(self.points, known.numbers, self.holds, strict=True):
            if number is not None and holds and not self._is(said, point, number):
                self.wrong.append(f"{known.said} is said to be {said}, which is not {number} at {dict(point)}")
                return

    @staticmethod
    def _is(said: DimLike, point: Mapping[str, int], number: int) -> bool:
        try:
            return evaluate(said, point) == number
        except ZeroDivisionError:
            return False


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _modulo(a: int | None, b: int | None) -> int | None:
    return None if a is None or not b else a % b


def _of(
    function: Callable[[int, int], int], *, divides: bool = False
) -> Callable[[int | None, int | None], int | None]:
    def on_numbers(a: int | None, b: int | None) -> int | None:
        return None if a is None or b is None or (divides and b == 0) else function(a, b)

    return on_numbers


_OPERATIONS: Final = {
    "add": (exact.add, _of(lambda a, b: a + b)),
    "subtract": (exact.subtract, _of(lambda a, b: a - b)),
    "multiply": (exact.multiply, _of(lambda a, b: a * b)),
    "divide": (exact.divide, _of(_truncated, divides=True)),
    "modulo": (exact.modulo, _modulo),
    "fmod": (exact.fmod, _of(lambda a, b: a - b * _truncated(a, b), divides=True)),
    "largest": (exact.largest, _of(max)),
    "smallest": (exact.smallest, _of(min)),
    "absolute": (lambda facts, dtype, a, b: exact.absolute(facts, dtype, a), _of(lambda a, b: abs(a))),
}
