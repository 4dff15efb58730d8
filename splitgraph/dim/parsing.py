"""Read dimensions: names and expressions of `dim_param`, marks of unknown dimensions, expressions that people type."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from splitgraph.dim.arithmetic import Dim, DimLike, sum_dims, symbol
from splitgraph.dim.operations import dim_max, dim_min, names_in, symbols_of
from splitgraph.dim.printing import FUNCTION_NAMES, bare_symbol, is_identifier

# Spellings of SymPy that splitgraph does not use: fractions, powers, products of sums, functions; and PyTorch's
# quotients.
_SYMPY = re.compile(r"[^/]/[^/]|\*\*|\*\(|\)\*|[A-Za-z]\(|//[^()/]*\)")

# A name of a dimension may contain "-" (batch-size), but a person who types one of these means arithmetic.
_ARITHMETIC = re.compile(r"[+*/%(]| - ")
_NUMERIC = re.compile(r"-?[0-9.]*")
# Names that an expression would read as several names, and the text that an expression reads as one name.
_LIKE_ARITHMETIC = re.compile(r"[^\W\d].*[-+*/%(]|[-+*/%(].*[^\W\d]")
_BRACKETED = re.compile(r"\[[^\]]*\]")
_QUOTES = {"'": "'", '"': '"'}
_NO_NAME = "neither a name of the model nor an identifier"
# No dimension has more digits, and Python reads no number of thousands of them.
_NUMBER = re.compile(r"[0-9]{1,19}")

# A name is any text between operators: a regular expression cannot tell which letters Python allows in a name.
_TOKEN = re.compile(
    r"\s*(?:([0-9]+(?:\.[0-9]+)?)|([^\s0-9\[\](),+*/%-][^\s\[\](),+*/%-]*)|\[((?:[^\]]|\]\])*)\]|(//|\*\*|[-+*/%(),]))"
)
# Python reads only so many digits at once.
_DIGITS = 4000

# Binary operators bind by rank; a unary minus binds more tightly than any of them.
_RANKS = {"+": 1, "-": 1, "*": 2, "//": 2, "%": 2, "negate": 3}


@lru_cache(maxsize=4096)
def read_dim_param(text: str) -> DimLike | None:
    """Return the dimension that a `dim_param` declares; None for a mark of an unknown dimension."""
    return None if marks_unknown(text) else parse_dim(text)


@lru_cache(maxsize=4096)
def parse_dim(text: str) -> DimLike:
    """Return the dimension that a text declares: an expression if it is spelled as splitgraph or SymPy spells them,
    else a symbol.

    The terms may come in any order. A text that does not parse, has other spaces, or is only a number is the symbol of
    that name, byte for byte.
    """
    if is_identifier(text):
        return symbol(text)
    value = _read_expression(text)
    return symbol(text) if value is None or isinstance(value, int) else value


def _read_expression(text: str) -> DimLike | None:
    try:
        tokens = tokens_of(text)
    except ValueError:
        return None
    if spaced(tokens) != text or any(token.kind == "symbol" for token in tokens):
        return None
    try:
        value = _ExpressionParser(tokens, text, expanded=True).read()
    except (ValueError, ZeroDivisionError):
        value = 0
    if (
        not isinstance(value, int)
        and bare_symbol(value) is None
        and texts_in_order(tokens_of(str(value))) == texts_in_order(tokens)
    ):
        return value
    return _read_sympy(text, tokens)


def _read_sympy(text: str, tokens: Sequence[Token]) -> DimLike | None:
    if _SYMPY.search(text) is None:
        return None
    # Few models have such a text.
    from splitgraph.dim.sympy_parsing import read_sympy

    return read_sympy(text, tokens)


def is_size(text: str) -> bool:
    """Return True if the text is a size: digits, and at most 19 of them."""
    return _NUMBER.fullmatch(text) is not None


# What a person means by -1, in words that every verb takes.
_FREE = "write a name, such as N, for a size that a run decides"


def parse_given_dim(text: str, names: Collection[str]) -> DimLike | None:
    """Return the dimension that a person types: a number, a name, an expression with any spaces, `?` for unknown.

    names: the names of the model, as its dim_params write them; such a text means what it means in the model, whatever
    it looks like. Any other name must be an identifier, so that an expression can contain it. Raises ValueError, which
    says why the text is not a dimension.
    """
    for name in (text, text.strip()):
        if name in names:
            return parse_dim(name)
    text = text.strip().strip(_QUOTES.get(text.strip()[:1], " "))
    if text == "?":
        return None
    if _NUMERIC.fullmatch(text):
        if not is_size(text):
            unknown = f"; {_FREE}" if text.startswith("-") else ""
            raise ValueError(f"a size is an integer of at least 0 with at most 19 digits{unknown}")
        return int(text)
    if marks_unknown(text):
        raise ValueError(f"this text marks unknown dimensions in models; {_FREE}")
    if is_identifier(text):
        return symbol(text)
    dim = _given_expression(text, names)
    if isinstance(dim, int) and dim < 0:
        raise ValueError(f"its value is {dim}; the smallest dimension is 0")
    return dim


def _given_expression(text: str, names: Collection[str]) -> DimLike:
    """Return the expression that a person gives. A text that may also be a name, such as `batch-size`, is an expression
    only over names of the model.
    """
    unbracketed = _BRACKETED.sub("", text)
    for name in names:
        if _LIKE_ARITHMETIC.search(name) and name in unbracketed and parse_dim(name) is symbol(name):
            spelled = text.replace(name, f"[{name}]")
            raise ValueError(f"{name!r} is a name of the model; write it in brackets in an expression: {spelled}")
    try:
        dim = parse_expression(text)
    except ValueError as error:
        sympy = _read_sympy(text, tokens_of(text))
        if sympy is not None:
            return sympy
        if _ARITHMETIC.search(text):
            raise
        raise ValueError(_NO_NAME) from error
    known = {symbol_name for name in names for symbol_name in symbols_of(parse_dim(name))}
    if _ARITHMETIC.search(text) or symbols_of(dim) <= known:
        return dim
    raise ValueError(_NO_NAME)


def parse_expression(text: str) -> DimLike:
    """Return the value of an expression or number with any spaces.

    `[any name]` is the symbol of that name, with `]]` for a `]` in it. Raises ValueError, which says what was found and
    where.
    """
    try:
        return _ExpressionParser(tokens_of(text), text, expanded=False).read()
    except ZeroDivisionError:
        raise ValueError(f"{text!r} divides by zero") from None


def is_spellable(dim: DimLike) -> bool:
    """Return True when the dim can be written as a `dim_param`: a number, a bare symbol, or an expression over
    identifiers.
    """
    if isinstance(dim, int) or bare_symbol(dim) is not None:
        return True
    return all(is_identifier(name) for name in names_in(dim))


class _ExpressionParser:
    """An operator-precedence parser with its own stacks, so that no nesting is too deep.

    expanded: refuse products of sums, which no spelling of ours has and which could grow without bound.
    """

    def __init__(self, tokens: list[Token], text: str, expanded: bool) -> None:
        self.tokens = tokens
        self.text = text
        self.expanded = expanded
        self.values: list[DimLike | list[DimLike]] = []  # a list is a sum that may go on
        self.waiting: list[str] = []
        self.calls: list[int] = []

    def read(self) -> DimLike:
        operand_next = True
        for place, token in enumerate(self.tokens):
            follows = self.tokens[place + 1].text if place + 1 < len(self.tokens) else ""
            operand_next = self._take_operand(token, follows) if operand_next else self._take_operator(token)
        if operand_next:
            raise ValueError(f"{self.text!r} is not an expression: it ends where a value was expected")
        self._reduce(0)
        if self.waiting:
            raise ValueError(f"{self.text!r} is not an expression: a parenthesis is not closed")
        return self._pop()

    def _take_operand(self, token: Token, follows: str) -> bool:
        """Take a token where a value is due; True when one still is."""
        kind, text, _ = token
        if kind == "number":
            if "." in text:
                self._refuse(token)
            self.values.append(integer_of(text))
            return False
        if kind == "name" and text in FUNCTION_NAMES and follows == "(":
            self.waiting.append(text)
            return True
        if kind in ("name", "symbol"):
            if kind == "name" and not is_identifier(text):
                self._refuse(token)
            self.values.append(symbol(text))
            return False
        if text == "-":
            self.waiting.append("negate")
        elif text == "(":
            is_call = bool(self.waiting) and self.waiting[-1] in FUNCTION_NAMES
            self.waiting.append("call" if is_call else "(")
            if is_call:
                self.calls.append(1)
        else:
            self._refuse(token)
        return True

    def _take_operator(self, token: Token) -> bool:
        """Take a token where an operator is due; True when a value is due after it."""
        kind, text, _ = token
        if kind == "operator" and text in _RANKS:
            self._reduce(_RANKS[text])
            self.waiting.append(text)
            return True
        if kind == "operator" and text in (",", ")"):
            self._reduce(0)
            opened = self.waiting[-1] if self.waiting else ""
            if text == "," and opened == "call":
                self.calls[-1] += 1
                return True
            if text == ")" and opened:
                self._close(token)
                return False
        return self._refuse(token)

    def _close(self, token: Token) -> None:
        if self.waiting.pop() == "(":
            return
        count = self.calls.pop()
        if count < 2:
            self._refuse(token)
        args = [self._pop() for _ in range(count)]
        self.values.append(dim_min(*args) if self.waiting.pop() == "min" else dim_max(*args))

    def _reduce(self, rank: int) -> None:
        while self.waiting and _RANKS.get(self.waiting[-1], -1) >= rank:
            operator = self.waiting.pop()
            right = self._pop()
            if operator == "negate":
                self.values.append(-right)
            elif operator in "+-":
                left = self.values.pop()
                summands = left if isinstance(left, list) else [left]
                summands.append(right if operator == "+" else -right)
                self.values.append(summands)
            else:
                self.values.append(self._product(operator, self._pop(), right))

    def _product(self, operator: str, left: DimLike, right: DimLike) -> DimLike:
        if operator == "//":
            return left // right
        if operator == "%":
            return left % right
        if self.expanded and _is_sum(left) and _is_sum(right):
            raise ValueError(f"{self.text!r} is not multiplied out")
        return left * right

    def _pop(self) -> DimLike:
        value = self.values.pop()
        return sum_dims(value) if isinstance(value, list) else value

    def _refuse(self, token: Token) -> bool:
        raise ValueError(f"{self.text!r} is not an expression: unexpected {token.text!r} at position {token.place}")


def _is_sum(value: DimLike) -> bool:
    return isinstance(value, Dim) and len(value.terms) + (value.const != 0) > 1


# Tokens --------------------------------------------------------------------------------------------------------------


class Token(NamedTuple):
    """A piece of an expression, and where it begins."""

    kind: str  # "number" | "name" | "symbol" (in brackets) | "operator"
    text: str
    place: int


def tokens_of(text: str) -> list[Token]:
    tokens, place, end = [], 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(
                f"{text!r} is not an expression: unexpected {text[place:].strip()[0]!r} at position {place}"
            )
        number, name, opaque, operator = match.groups()
        if number is not None:
            tokens.append(Token("number", number, match.start(1)))
        elif name is not None:
            tokens.append(Token("name", name, match.start(2)))
        elif opaque is not None:
            tokens.append(Token("symbol", opaque.replace("]]", "]"), match.start(3)))
        else:
            tokens.append(Token("operator", operator, match.start(4)))
        place = match.end()
    return tokens


def spaced(tokens: list[Token]) -> str:
    """Return the tokens with the grammar's spaces between them."""
    parts: list[str] = []
    operand_before = False
    for kind, text, _ in tokens:
        if kind != "operator" or text == "(":
            parts.append(text)
            operand_before = text != "("
        elif text == ",":
            parts.append(", ")
            operand_before = False
        elif text in "+-%" and operand_before:
            parts.append(f" {text} ")
            operand_before = False
        else:
            parts.append(text)
            operand_before = text == ")"
    return "".join(parts)


def texts_in_order(tokens: list[Token]) -> list[str]:
    return sorted(token.text for token in tokens)


def integer_of(digits: str) -> int:
    """Return the number, however long; Python reads only so many digits at once."""
    value = 0
    for start in range(0, len(digits), _DIGITS):
        part = digits[start : start + _DIGITS]
        value = value * 10 ** len(part) + int(part)
    return value


# Marks of unknown dimensions -----------------------------------------------------------------------------------------


_MARKS = frozenset(
    {
        # The empty text and "*" meant "unknown" in the first versions of the ONNX specification.
        "",
        "*",
        # Paddle2ONNX, the text form of ONNX, and TensorFlow 1 where it prints a shape.
        "?",
        # ML.NET, CNTK, and the converters for scikit-learn and Keras: Python's None as a text.
        "none",
        # The same of other languages and of tables.
        "null",
        "nan",
        "undefined",
        # The word itself, as scripts that edit shapes write it. tf2onnx's `unk__12` is a name: each has its own number.
        "unk",
        "unknown",
        "dyn",
        "dynamic",
        # OpenVINO's editor of ONNX models.
        "__dynamic_dimension__",
    }
)
# -1 is the unknown dimension of most frameworks, and others have other negative numbers.
_NEGATIVE = re.compile(r"-[0-9]+")


def marks_unknown(text: str) -> bool:
    """Return True if a `dim_param` says that the dimension is unknown, in letters of either case and with any spaces.

    Such a text is no name: two dimensions with the same mark need not be equal. `docs/dimensions.md` says which tools
    write which mark.
    """
    word = text.strip().lower()
    return word in _MARKS or _NEGATIVE.fullmatch(word) is not None
