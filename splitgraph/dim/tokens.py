"""The tokens of expressions: numbers, names, symbols in brackets and operators."""

from __future__ import annotations

import re
from typing import NamedTuple

# A name is any text between operators: a regular expression cannot tell which letters Python allows in a name.
_TOKEN = re.compile(
    r"\s*(?:([0-9]+(?:\.[0-9]+)?)|([^\s0-9\[\](),+*/%-][^\s\[\](),+*/%-]*)|\[((?:[^\]]|\]\])*)\]|(//|\*\*|[-+*/%(),]))"
)
# Python reads only so many digits at once.
_DIGITS = 4000


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
    """The tokens with the grammar's spaces between them."""
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
    """The number, however long; Python reads only so many digits at once."""
    value = 0
    for start in range(0, len(digits), _DIGITS):
        part = digits[start : start + _DIGITS]
        value = value * 10 ** len(part) + int(part)
    return value
