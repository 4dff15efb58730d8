"""Comparison, logic and conversion of the elements of small tensors: None wherever the result is not certain."""

from __future__ import annotations

import math

from splitgraph.dim import DimLike, Facts
from splitgraph.inference.rules.arithmetic import as_fractions, fit, is_integer_type, truncated_quotient
from splitgraph.value_type import Item, Ratio


def _cross(a: Item, b: Item) -> tuple[DimLike, DimLike] | None:
    parts = as_fractions(a, b)
    return None if parts is None else (parts[0] * parts[3], parts[2] * parts[1])


def equal(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """a == b."""
    if isinstance(a, (str, float)) and isinstance(b, type(a)):
        return int(a == b)
    sides = _cross(a, b)
    if sides is None:
        return None
    if facts.prove_eq(*sides):
        return 1
    return 0 if facts.prove_ne(*sides) else None


def greater_or_equal(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """a >= b."""
    if isinstance(a, float) and isinstance(b, float):
        return int(a >= b)
    sides = _cross(a, b)
    if sides is None:
        return None
    if facts.prove_ge(*sides):
        return 1
    return 0 if facts.prove_ge(sides[1], sides[0] + 1) else None


def less_or_equal(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """a <= b."""
    return greater_or_equal(facts, dtype, b, a)


def less(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """a < b."""
    if isinstance(a, float) and isinstance(b, float):
        return int(a < b)
    verdict = greater_or_equal(facts, dtype, a, b)
    return 1 - verdict if isinstance(verdict, int) else None


def greater(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """a > b."""
    return less(facts, dtype, b, a)


def logical_and(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """a and b; 0 when one is 0, also beside an unknown one."""
    if a == 0 or b == 0:
        return 0
    return 1 if a == 1 and b == 1 else None


def logical_or(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """a or b; 1 when one is 1, also beside an unknown one."""
    if a == 1 or b == 1:
        return 1
    return 0 if a == 0 and b == 0 else None


def logical_xor(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Exactly one of a and b."""
    return int(a != b) if isinstance(a, int) and isinstance(b, int) else None


# Between element types -----------------------------------------------------------------------------------------------


def cast_item(facts: Facts, source: str | None, target: str, a: Item) -> Item:
    """The element after a cast from one element type to another."""
    if source == target:
        return a
    if isinstance(a, str) or target == "string" or a is None:
        return None
    if target == "bool":
        verdict = equal(facts, target, a, 0.0 if isinstance(a, float) else 0)
        return 1 - verdict if isinstance(verdict, int) else None
    if not is_integer_type(target):
        return fit(facts, target, a)
    if isinstance(a, float):
        return fit(facts, target, math.trunc(a)) if math.isfinite(a) else None
    if isinstance(a, Ratio):
        quotient = truncated_quotient(facts, a.numerator, a.denominator)
        return None if quotient is None else fit(facts, target, quotient)
    return fit(facts, target, a)
