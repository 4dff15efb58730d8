"""Reading dimensions as SymPy writes them: `floor(height/2 - 1/2) + 1`, `Max(1, x)`, `a**2`, `Mod(a, 2)`.

onnxruntime's symbolic_shape_infer leaves such texts in `dim_param`s, and PyTorch's exporter similar ones. Fractions are
computed exactly. The whole value must be an integer for all sizes, and so must each minimum, maximum and remainder.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from splitgraph.dim.arithmetic import DimLike, product, sum_dims, symbol
from splitgraph.dim.operations import ceildiv, dim_max, dim_min, large_atoms
from splitgraph.dim.printing import FUNCTION_NAMES, is_identifier

# Limits of a product that is multiplied out: its terms, the factors of one term, and the bits of its numbers.
_MOST_TERMS = 32
_HIGHEST_DEGREE = 8
_MOST_BITS = 256
_LARGEST_DENOMINATOR = 256
_LARGEST_EXPONENT = 8
# Texts with more operators or deeper nesting are not read: Python could read them only if few calls are open.
_MOST_OPERATORS = 1500
_DEEPEST = 32


class _Ratio(NamedTuple):
    """`top / bottom`; a bottom that is a number is at least 1."""

    top: DimLike
    bottom: DimLike = 1


def read_sympy(text: str, tokens: Collection[tuple[str, str, int]]) -> DimLike | None:
    """Return the value of a text in SymPy's spelling. Return None for other texts, for values that may not be an
    integer, and for texts that are too long.

    tokens: the tokens of the text.
    """
    if sum(kind == "operator" for kind, _, _ in tokens) > _MOST_OPERATORS or not _are_clean(tokens):
        return None
    try:
        expression = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if _is_deep(expression):
        return None
    try:
        value = _exact(_read(expression))
    except (ValueError, ZeroDivisionError):
        return None
    return None if large_atoms(value) else value


def _is_deep(expression: ast.expr) -> bool:
    """Return True for more calls and operators in each other than are read. A chain of operators of one rank counts as
    one.
    """
    waiting: list[tuple[ast.AST, int]] = [(expression, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _DEEPEST:
            return True
        for child in ast.iter_child_nodes(node):
            waiting.append((child, depth if _is_of_chain(node, child) else depth + 1))
    return False


def _is_of_chain(node: ast.AST, child: ast.AST) -> bool:
    """Return True for the operator to the left of another of its rank."""
    if not isinstance(node, ast.BinOp) or node.left is not child or not isinstance(child, ast.BinOp):
        return False
    return _is_sum(node.op) == _is_sum(child.op)


def _are_clean(tokens: Iterable[tuple[str, str, int]]) -> bool:
    """Return True where no two operands stand side by side, names are identifiers, only functions are called, and no
    number is rounded when Python reads it.
    """
    before, follows_operand = "", False
    for kind, text, _ in tokens:
        if kind == "name" and not is_identifier(text) and text not in FUNCTION_NAMES:
            return False
        if kind == "number" and "." in text and Fraction(text) != Fraction(float(text)):
            return False
        if follows_operand and (kind != "operator" or (text == "(" and before not in FUNCTIONS)):
            return False
        before, follows_operand = text, kind != "operator" or text == ")"
    return True


def _read(node: ast.expr) -> _Ratio:
    if isinstance(node, ast.Name):
        return _Ratio(symbol(node.id))
    if isinstance(node, ast.Constant):
        return _number(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _negated(_read(node.operand))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        return FUNCTIONS[node.func.id]([_read(arg) for arg in node.args])
    if isinstance(node, ast.BinOp):
        return _chain(node)
    raise ValueError("not a SymPy expression")


def _number(value: object) -> _Ratio:
    """Return a number; a fraction must be one that binary numbers have, as all others are rounded."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")
    fraction = Fraction(value)
    if fraction.denominator > _LARGEST_DENOMINATOR:
        raise ValueError("rounded")
    return _Ratio(fraction.numerator, fraction.denominator)


def _chain(node: ast.BinOp) -> _Ratio:
    """Operators of one rank, from left to right: a sum may be of hundreds, deeper than Python may call."""
    operators, operands = [node.op], [node.right]
    first: ast.expr = node.left
    is_sum = _is_sum(node.op)
    while isinstance(first, ast.BinOp) and _is_sum(first.op) == is_sum:
        operators.append(first.op)
        operands.append(first.right)
        first = first.left
    value, rest = (
        _read(first),
        [(operator, _read(operand)) for operator, operand in zip(operators, operands, strict=True)][::-1],
    )
    if is_sum:
        return _sum(
            [value, *(operand if isinstance(operator, ast.Add) else _negated(operand) for operator, operand in rest)]
        )
    for operator, operand in rest:
        value = _apply(operator, value, operand)
    return value


def _is_sum(operator: ast.operator) -> bool:
    return isinstance(operator, ast.Add | ast.Sub)


def _apply(operator: ast.operator, left: _Ratio, right: _Ratio) -> _Ratio:
    if isinstance(operator, ast.Mult):
        return _Ratio(_times(left.top, right.top), _times(left.bottom, right.bottom))
    if isinstance(operator, ast.Div):
        return _divided(left, right)
    if isinstance(operator, ast.FloorDiv):
        return _floor([_divided(left, right)])
    if isinstance(operator, ast.Mod):
        return _remainder([left, right])
    if isinstance(operator, ast.Pow):
        exponent = _exact(right)
        if isinstance(exponent, int) and 0 <= exponent <= _LARGEST_EXPONENT:
            return _Ratio(_power(left.top, exponent), _power(left.bottom, exponent))
    raise ValueError("unknown operator")


def _negated(value: _Ratio) -> _Ratio:
    return _Ratio(-value.top, value.bottom)


def _divided(left: _Ratio, right: _Ratio) -> _Ratio:
    top, bottom = _times(left.top, right.bottom), _times(left.bottom, right.top)
    if isinstance(bottom, int) and bottom <= 0:
        if bottom == 0:
            raise ZeroDivisionError
        return _Ratio(-top, -bottom)
    return _Ratio(top, bottom)


def _sum(values: Sequence[_Ratio]) -> _Ratio:
    scaled, bottom = _scaled(values)
    return _Ratio(sum_dims(scaled), bottom)


def _scaled(values: Sequence[_Ratio]) -> tuple[list[DimLike], DimLike]:
    """Return the values times their common denominator, and that; of symbols it is no more than one."""
    number = lcm(*(value.bottom for value in values if isinstance(value.bottom, int)))
    symbolic = dict.fromkeys(value.bottom for value in values if not isinstance(value.bottom, int))
    if len(symbolic) > 1:
        raise ValueError("several symbolic denominators")
    common = product([number, *symbolic])
    factors = [product([number // v.bottom, *symbolic]) if isinstance(v.bottom, int) else number for v in values]
    return [_times(value.top, factor) for value, factor in zip(values, factors, strict=True)], common


def _times(left: DimLike, right: DimLike) -> DimLike:
    terms, degree, bits = (one + other for one, other in zip(_size(left), _size(right), strict=True))
    if terms > _MOST_TERMS or degree > _HIGHEST_DEGREE or bits > _MOST_BITS:
        raise ValueError("too large")
    return left * right


def _size(value: DimLike) -> tuple[int, int, int]:
    """Return how many terms, factors in one of them, and bits in a number a value has."""
    if isinstance(value, int):
        return 1, 0, value.bit_length()
    degree = max(len(monomial) for monomial, _ in value.terms)
    return len(value.terms) + 1, degree, max(coefficient.bit_length() for _, coefficient in value.terms)


def _power(base: DimLike, exponent: int) -> DimLike:
    power: DimLike = 1
    for _ in range(exponent):
        power = _times(power, base)
    return power


def _exact(value: _Ratio) -> DimLike:
    """Return the integer that a ratio is. Raises ValueError if it may not be an integer."""
    if value.bottom == 1:
        return value.top
    quotient = value.top // value.bottom
    if quotient * value.bottom != value.top:
        raise ValueError("not always an integer")
    return quotient


def _floor(values: Sequence[_Ratio]) -> _Ratio:
    (value,) = values
    return _Ratio(value.top // value.bottom)


def _ceiling(values: Sequence[_Ratio]) -> _Ratio:
    (value,) = values
    if isinstance(value.bottom, int):
        return _Ratio(ceildiv(value.top, value.bottom))
    return _Ratio(-(-value.top // value.bottom))


def _remainder(values: Sequence[_Ratio]) -> _Ratio:
    left, right = values
    return _Ratio(_exact(left) % _exact(right))


def _extremum(choose: Callable[..., DimLike], values: Sequence[_Ratio]) -> _Ratio:
    scaled, bottom = _scaled(values)
    if len(values) < 2 or not isinstance(bottom, int):
        raise ValueError("a symbolic denominator may be negative")
    return _Ratio(choose(*scaled), bottom)


# SymPy's functions, and those that PyTorch adds.
FUNCTIONS: Mapping[str, Callable[[Sequence[_Ratio]], _Ratio]] = {
    "floor": _floor,
    "ceiling": _ceiling,
    "Max": lambda values: _extremum(dim_max, values),
    "Min": lambda values: _extremum(dim_min, values),
    "Mod": _remainder,
    "PythonMod": _remainder,
    "FloorDiv": lambda values: _floor([_divided(*values)]),
    "CleanDiv": lambda values: _floor([_divided(*values)]),
    "CeilDiv": lambda values: _ceiling([_divided(*values)]),
}
