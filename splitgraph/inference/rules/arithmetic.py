"""Exact arithmetic on the elements of small tensors: None wherever the result is not certain.

A symbolic integer in a tensor of 32 bits or more fits at usual sizes, or is unknown. These are sizes at which each
dimension, and each product of dimensions in the value, is at most 65,536. Larger ones would leave a float32 in the
shape arithmetic of many exports, whose authors do not mean such sizes. In narrower types an integer has to be proved
to fit.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping

from splitgraph.dim import Dim, DimLike, Facts, ceildiv, dim_max, dim_min
from splitgraph.dim.atoms import SYMBOL, Atom, Interval, atoms_by_level
from splitgraph.dim.bounds import atom_interval, monomial_interval
from splitgraph.model.value_type import Item, Ratio

_RANGES: dict[str, tuple[int, int]] = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (2, 4, 8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (2, 4, 8, 16, 32, 64)},
    "bool": (0, 1),
}
_WIDE = frozenset({"int32", "int64", "uint32", "uint64"})
# The largest dimension, and product of dimensions, of usual sizes.
_USUAL = 2**16
_ANY: Interval = (None, None)
# Every integer up to this is exact in the type.
_EXACT_FLOATS = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53}
_LARGEST_DENOMINATOR = 2**20

BinaryItem = Callable[[Facts, str, Item, Item], Item]
UnaryItem = Callable[[Facts, str, Item], Item]


def is_integer_type(dtype: str | None) -> bool:
    """Return True for the integer types and bool."""
    return dtype in _RANGES


def is_float_type(dtype: str | None) -> bool:
    """Return True for the float types whose elements are followed."""
    return dtype in _EXACT_FLOATS


def fit(facts: Facts, dtype: str, item: Item) -> Item:
    """Return the element as a tensor of this type holds it; None if it may not fit, or is of another kind."""
    if isinstance(item, str):
        return item if dtype == "string" else None
    if dtype in _RANGES:
        return _fit_integer(facts, dtype, item)
    if dtype not in _EXACT_FLOATS:
        return None
    if isinstance(item, float):
        return round_to(dtype, item)
    if isinstance(item, int):
        return float(item) if abs(item) <= _EXACT_FLOATS[dtype] else None
    if dtype not in ("float32", "float64") or item is None:
        return None
    most = _EXACT_FLOATS[dtype]
    return item if _fits_usually(facts, item.numerator if isinstance(item, Ratio) else item, -most, most) else None


def _fit_integer(facts: Facts, dtype: str, item: Item) -> Item:
    low, high = _RANGES[dtype]
    if isinstance(item, int):
        return int(item) if low <= item <= high else None
    if not isinstance(item, Dim):
        return None
    if dtype in _WIDE:
        is_signed = low < 0 or facts.prove_ge(item, 0)
        return item if is_signed and _fits_usually(facts, item, low, high) else None
    least, most = facts.range_of(item)
    return item if least is not None and least >= low and most is not None and most <= high else None


def _fits_usually(facts: Facts, item: DimLike, low: int, high: int) -> bool:
    """Return True if a value is between two numbers at usual sizes."""
    known: dict[Atom, tuple[int, int]] = {}
    for atom in atoms_by_level([item]):
        if atom.kind == SYMBOL:
            known[atom] = _limited(facts.bound(atom.name))
        else:
            ends = atom_interval(atom.kind, [_usual_range(part, known) for part in atom.args]) if atom.args else _ANY
            known[atom] = _limited(ends, always=False)
    least, most = _usual_range(item, known)
    return low <= least and most <= high


def _usual_range(item: DimLike, known: Mapping[Atom, tuple[int, int]]) -> tuple[int, int]:
    if isinstance(item, int):
        return item, item
    least = most = item.const
    for monomial, coefficient in item.terms:
        lowest, highest = known[monomial[0]]
        if len(monomial) > 1:
            lowest, highest = _limited(monomial_interval(monomial, known.__getitem__))
        least += coefficient * (lowest if coefficient > 0 else highest)
        most += coefficient * (highest if coefficient > 0 else lowest)
    return least, most


def _limited(ends: Interval, *, always: bool = True) -> tuple[int, int]:
    low, high = ends
    if low is not None and high is not None and not always:
        return low, high
    least = -_USUAL if low is None else max(low, -_USUAL)
    return least, max(least, _USUAL if high is None else min(high, _USUAL))


def round_to(dtype: str, value: float) -> float | None:
    """Round to the nearest number of a float type. Return None beyond its largest number, and for a type of 16 bits
    unless the number is exact.

    Runtimes without kernels for 16 bits compute in float32 and need not round between two nodes: onnxruntime leaves out
    the casts between them.
    """
    if not math.isfinite(value):
        return None
    if dtype == "float64":
        return value
    if dtype == "bfloat16":
        return value if value == 0 or math.frexp(value)[0] * 2**8 % 1 == 0 else None
    layout = "f" if dtype == "float32" else "e"
    try:
        (rounded,) = struct.unpack(layout, struct.pack(layout, value))
    except OverflowError:
        return None
    return rounded if math.isfinite(rounded) and (dtype == "float32" or rounded == value) else None


# Fractions: numerator over a positive static denominator ---------------------------------------------------------


def as_fraction(item: Item) -> tuple[DimLike, int] | None:
    """Return a number as numerator and positive denominator; None if it is unknown or too large to compute with."""
    if isinstance(item, (int, Dim)):
        return item, 1
    if isinstance(item, Ratio):
        return item.numerator, item.denominator
    if isinstance(item, float) and math.isfinite(item):
        numerator, denominator = item.as_integer_ratio()
        return (numerator, denominator) if denominator <= _LARGEST_DENOMINATOR else None
    return None


def from_fraction(numerator: DimLike, denominator: int) -> Item:
    """Return the element that is a numerator over a positive denominator."""
    if isinstance(numerator, int):
        return numerator / denominator
    if numerator % denominator == 0:
        whole = numerator // denominator
        return float(whole) if isinstance(whole, int) else whole
    return Ratio(numerator, denominator) if denominator <= _LARGEST_DENOMINATOR else None


def _exact(*denominators: int) -> bool:
    # A power of two only moves the exponent; other quotients are rounded, so that nothing but their floor is certain.
    return all(denominator & (denominator - 1) == 0 for denominator in denominators)


def as_fractions(a: Item, b: Item) -> tuple[DimLike, int, DimLike, int] | None:
    """Return two numbers as numerator, denominator, numerator, denominator; None if one is unknown."""
    left, right = as_fraction(a), as_fraction(b)
    return None if left is None or right is None else (*left, *right)


# Two operands ------------------------------------------------------------------------------------------------------


def add(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a + b."""
    if isinstance(a, (int, Dim)) and isinstance(b, (int, Dim)) and not is_float_type(dtype):
        return fit(facts, dtype, a + b)
    if isinstance(a, float) and isinstance(b, float):
        return fit(facts, dtype, a + b)
    parts = as_fractions(a, b)
    if parts is None or not is_float_type(dtype) or not _exact(parts[1], parts[3]):
        return None
    n, d, m, e = parts
    return fit(facts, dtype, from_fraction(n * e + m * d, d * e))


def subtract(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a - b."""
    if isinstance(b, Ratio):
        return add(facts, dtype, a, Ratio(-b.numerator, b.denominator))
    if isinstance(a, (int, Dim)) and isinstance(b, (int, Dim)) and not is_float_type(dtype):
        return fit(facts, dtype, a - b)
    return add(facts, dtype, a, -b) if isinstance(b, (int, float, Dim)) and is_float_type(dtype) else None


def multiply(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a * b, which is 0 also if one is 0 and the other an unknown integer."""
    if is_integer_type(dtype):
        if (isinstance(a, int) and a == 0) or (isinstance(b, int) and b == 0):
            return 0
        return fit(facts, dtype, a * b) if isinstance(a, (int, Dim)) and isinstance(b, (int, Dim)) else None
    if isinstance(a, float) and isinstance(b, float):
        return fit(facts, dtype, a * b)
    parts = as_fractions(a, b)
    if parts is None or not is_float_type(dtype) or not _exact(parts[1], parts[3]):
        return None
    n, d, m, e = parts
    return fit(facts, dtype, from_fraction(n * m, d * e))


def divide(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a / b, truncated toward zero for integers."""
    if not is_integer_type(dtype):
        return _divide_floats(facts, dtype, a, b)
    if not isinstance(a, (int, Dim)) or not isinstance(b, (int, Dim)) or b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return fit(facts, dtype, quotient if (a < 0) == (b < 0) else -quotient)
    truncated = truncated_quotient(facts, a, b)
    return None if truncated is None else fit(facts, dtype, truncated)


def truncated_quotient(facts: Facts, a: DimLike, b: DimLike) -> DimLike | None:
    """Compute a / b truncated toward zero, for a divisor that is not 0. Return None if the sign of b is unknown."""
    exact = a // b
    if exact * b == a:
        return exact
    if facts.prove_ge(-1, b):
        a, b = -a, -b
    elif not facts.prove_ge(b, 0):
        return None
    if facts.prove_ge(a, 0):
        return a // b
    if facts.prove_ge(0, a):
        return -(-a // b)
    positive, negative = dim_max(0, a) // b, dim_max(0, -a) // b
    # The quotient of less than the divisor is 0.
    if facts.prove_ge(b - 1, -a):
        return positive
    return -negative if facts.prove_ge(b - 1, a) else positive - negative


def _divide_floats(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    if isinstance(a, float) and isinstance(b, float):
        return fit(facts, dtype, a / b) if b != 0 else None
    parts = as_fractions(a, b)
    if parts is None or not is_float_type(dtype):
        return None
    n, d, m, e = parts
    if isinstance(m, int):
        if m == 0 or not _exact(d, e):
            return None
        sign = 1 if m > 0 else -1
        return fit(facts, dtype, from_fraction(n * e * sign, d * abs(m)))
    if d != 1 or e != 1 or (n // m) * m != n:
        return None
    return fit(facts, dtype, n // m)


def modulo(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a mod b with the sign of b (fmod=0)."""
    if is_integer_type(dtype) and isinstance(a, (int, Dim)) and isinstance(b, (int, Dim)) and b != 0:
        return fit(facts, dtype, a % b)
    return None


def fmod(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a mod b with the sign of a (fmod=1)."""
    if isinstance(a, float) and isinstance(b, float):
        return fit(facts, dtype, math.fmod(a, b)) if b != 0 and math.isfinite(a) else None
    if not is_integer_type(dtype) or not isinstance(a, (int, Dim)) or not isinstance(b, (int, Dim)) or b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return fit(facts, dtype, abs(a) % abs(b) * (1 if a >= 0 else -1))
    quotient = truncated_quotient(facts, a, b)
    return None if quotient is None else fit(facts, dtype, a - quotient * b)


def power(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a ** b for small whole exponents."""
    exponent = as_fraction(b)
    if exponent is None or exponent[1] != 1 or not isinstance(exponent[0], int) or not 0 <= exponent[0] <= 64:
        return None
    if isinstance(a, (int, Dim)):
        if isinstance(a, Dim) and exponent[0] > 4:
            return None
        result: DimLike = 1
        for _ in range(exponent[0]):
            result = result * a
        return fit(facts, dtype, result)
    if isinstance(a, float) and a.is_integer() and is_float_type(dtype):
        whole = int(a) ** exponent[0]
        return float(whole) if abs(whole) <= _EXACT_FLOATS[dtype] else None
    return None


def smallest(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Return the smaller element."""
    return _extreme(facts, dtype, a, b, dim_min, min)


def largest(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Return the larger element."""
    return _extreme(facts, dtype, a, b, dim_max, max)


def _extreme(
    facts: Facts,
    dtype: str,
    a: Item,
    b: Item,
    of_dims: Callable[..., DimLike],
    of_floats: Callable[[float, float], float],
) -> Item:
    if isinstance(a, float) and isinstance(b, float):
        return of_floats(a, b) if a == a and b == b else None
    parts = as_fractions(a, b)
    if parts is None or parts[1] != 1 or parts[3] != 1:
        return None
    a_dim, b_dim = parts[0], parts[2]
    at_least = of_dims is dim_max
    if facts.prove_ge(a_dim, b_dim):
        return a if at_least else b
    if facts.prove_ge(b_dim, a_dim):
        return b if at_least else a
    return fit(facts, dtype, of_dims(a_dim, b_dim))


# One operand -------------------------------------------------------------------------------------------------------


def negate(facts: Facts, dtype: str, a: Item) -> Item:
    """Compute -a."""
    if isinstance(a, Ratio):
        return Ratio(-a.numerator, a.denominator)
    return fit(facts, dtype, -a) if isinstance(a, (int, float, Dim)) else None


def absolute(facts: Facts, dtype: str, a: Item) -> Item:
    """Compute the absolute value."""
    if isinstance(a, (int, float)):
        return fit(facts, dtype, abs(a))
    if not isinstance(a, Dim):
        return None
    if facts.prove_ge(a, 0):
        return a
    return fit(facts, dtype, -a if facts.prove_ge(0, a) else dim_max(a, -a))


def signum(facts: Facts, dtype: str, a: Item) -> Item:
    """Return 1, 0 or -1."""
    if isinstance(a, float):
        return None if a != a else float((a > 0) - (a < 0))
    if not isinstance(a, (int, Dim)):
        return None
    if facts.prove_ge(a, 1):
        return fit(facts, dtype, 1)
    if facts.prove_ge(-1, a):
        return fit(facts, dtype, -1)
    return fit(facts, dtype, 0) if facts.prove_eq(a, 0) else None


def floor(facts: Facts, dtype: str, a: Item) -> Item:
    """Round down to an integer."""
    if isinstance(a, float):
        return float(math.floor(a)) if math.isfinite(a) else None
    fraction = as_fraction(a)
    return None if fraction is None else fit(facts, dtype, fraction[0] // fraction[1])


def ceiling(facts: Facts, dtype: str, a: Item) -> Item:
    """Round up to an integer."""
    if isinstance(a, float):
        return float(math.ceil(a)) if math.isfinite(a) else None
    fraction = as_fraction(a)
    return None if fraction is None else fit(facts, dtype, ceildiv(fraction[0], fraction[1]))


def rounded(facts: Facts, dtype: str, a: Item) -> Item:
    """Round to the nearest integer, halves to even."""
    if isinstance(a, float):
        return float(round(a)) if math.isfinite(a) else None
    return a if isinstance(a, (int, Dim)) else None


def square_root(facts: Facts, dtype: str, a: Item) -> Item:
    """Compute the square root of a constant."""
    return fit(facts, dtype, math.sqrt(a)) if isinstance(a, float) and a >= 0 and math.isfinite(a) else None


def logical_not(facts: Facts, dtype: str, a: Item) -> Item:
    """Compute 1 - a."""
    return 1 - a if isinstance(a, int) else None


def _cross(a: Item, b: Item) -> tuple[DimLike, DimLike] | None:
    parts = as_fractions(a, b)
    return None if parts is None else (parts[0] * parts[3], parts[2] * parts[1])


def equal(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a == b."""
    if isinstance(a, (str, float)) and isinstance(b, type(a)):
        return int(a == b)
    sides = _cross(a, b)
    if sides is None:
        return None
    if facts.prove_eq(*sides):
        return 1
    return 0 if facts.prove_ne(*sides) else None


def not_equal(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a != b."""
    verdict = equal(facts, dtype, a, b)
    return 1 - verdict if isinstance(verdict, int) else None


def greater_or_equal(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a >= b."""
    if isinstance(a, float) and isinstance(b, float):
        return int(a >= b)
    sides = _cross(a, b)
    if sides is None:
        return None
    if facts.prove_ge(*sides):
        return 1
    return 0 if facts.prove_ge(sides[1], sides[0] + 1) else None


def less_or_equal(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a <= b."""
    return greater_or_equal(facts, dtype, b, a)


def less(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a < b."""
    if isinstance(a, float) and isinstance(b, float):
        return int(a < b)
    verdict = greater_or_equal(facts, dtype, a, b)
    return 1 - verdict if isinstance(verdict, int) else None


def greater(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a > b."""
    return less(facts, dtype, b, a)


def logical_and(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a and b, which is 0 also if one is 0 and the other unknown."""
    if a == 0 or b == 0:
        return 0
    return 1 if a == 1 and b == 1 else None


def logical_or(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a or b, which is 1 also if one is 1 and the other unknown."""
    if a == 1 or b == 1:
        return 1
    return 0 if a == 0 and b == 0 else None


def logical_xor(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Return 1 if exactly one of a and b is."""
    return int(a != b) if isinstance(a, int) and isinstance(b, int) else None


# Between element types -----------------------------------------------------------------------------------------------


def cast_item(facts: Facts, source: str | None, target: str, a: Item) -> Item:
    """Cast the element from one element type to another."""
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
