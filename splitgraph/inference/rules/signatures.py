"""Shapes that are written as shapes: what an operator reads, and what it gives.

An input is a text, "name: shape", or "" for an input of any shape. A shape is "scalar" or a list of dimensions: a
number; a letter, which is the same dimension everywhere; "?" for any dimension; and at the start "..." for any number
of dimensions. "|" separates alternative shapes. An output is its element type and its dimensions. The type is named,
"?" if it is not known, or that of inputs, by their positions: "0,1 M N" has the type that the first two share. A letter
that no input has is a new dimension, one in all outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import Dims, InvalidNode, differ, dims_of, expect, known_dtype, operator
from splitgraph.model.value_type import ValueType, tensor

Form = tuple[str, ...]


@dataclass
class Letters:
    """What the letters stand for. leading: the dimensions of "...", None if they are not known."""

    sizes: dict[str, DimLike]
    leading: Dims | None = None


# One element, or one for each row or column of a matrix, which may be one of several.
ONE = "scalar | 1"
PER_ROW = f"{ONE} | M | ... M 1"
PER_COLUMN = f"{ONE} | N | ... 1 N"


def shaped(op_types: str, *inputs: str, gives: str | Sequence[str], domain: str = "") -> None:
    """Register the rule of operators that do nothing to shapes but what these texts say."""
    outputs = (gives,) if isinstance(gives, str) else gives
    invalid = [_type_of_invalid(text.split()[0]) for text in outputs]
    operator(*op_types.split(), gives=invalid, domain=domain)(lambda ctx: shapes(ctx, *inputs, gives=outputs))


def _type_of_invalid(written: str) -> int | str | None:
    return int(written.split(",")[0]) if written[0].isdigit() else None if written == "?" else written


def shapes(
    ctx: NodeContext, *inputs: str, gives: str | Sequence[str], sizes: Mapping[str, DimLike | None] | None = None
) -> list[ValueType]:
    """Return the types of the outputs, after `expect_shapes`."""
    letters = expect_shapes(ctx, *inputs, sizes=sizes)
    return [_given(ctx, text, letters) for text in ((gives,) if isinstance(gives, str) else gives)]


def _given(ctx: NodeContext, text: str, letters: Letters) -> ValueType:
    written, *words = text.split()
    dtype = None if written == "?" else written
    if written[0].isdigit():
        dtype = known_dtype(ctx, [int(position) for position in written.split(",")])
    dims: list[DimLike | None] = []
    for word in words:
        if word == "...":
            if letters.leading is None:
                return tensor(dtype, None)
            dims += letters.leading
        elif word == "?":
            dims.append(None)
        elif word.isdigit():
            dims.append(int(word))
        else:
            if word not in letters.sizes:
                letters.sizes[word] = ctx.fresh()
            dims.append(letters.sizes[word])
    return tensor(dtype, dims)


def expect_shapes(ctx: NodeContext, *inputs: str, sizes: Mapping[str, DimLike | None] | None = None) -> Letters:
    """Record that the inputs have these shapes, if they are given and their ranks are known. Return what the letters
    stand for. Raise InvalidNode if an input cannot have its shape.

    sizes: the dimensions that letters stand for, None if one is unknown.
    """
    letters = Letters({letter: size for letter, size in (sizes or {}).items() if size is not None})
    for index, text in enumerate(inputs):
        dims = dims_of(ctx, index) if text and ctx.has_input(index) else None
        if dims is None:
            continue
        name, forms = _parsed(text)
        fitting = [form for form in forms if _fits(form, dims, letters.sizes)]
        if not fitting:
            raise InvalidNode(_unfit(f"{name} (input {index})", dims, forms, letters.sizes))
        if len(fitting) == 1:
            _record(ctx, f"{name} (input {index})", fitting[0], dims, letters)
    return letters


@cache
def _parsed(text: str) -> tuple[str, tuple[Form, ...]]:
    """Return the name of an input, and its shapes as lists of words."""
    name, _, shapes = text.partition(":")
    return name, tuple(() if shape.split() == ["scalar"] else tuple(shape.split()) for shape in shapes.split("|"))


def _pairs(form: Form, dims: Dims) -> list[tuple[int, str, DimLike]]:
    """Return axis, word and dimension, for each word but "..."."""
    words = form[1:] if form[:1] == ("...",) else form
    first = len(dims) - len(words)
    return [(axis, word, dims[axis]) for axis, word in enumerate(words, first)]


def _fits(form: Form, dims: Dims, known: Mapping[str, DimLike]) -> bool:
    """Return False if dimensions that are numbers contradict the shape."""
    if len(dims) < len(form) - 1 if form[:1] == ("...",) else len(dims) != len(form):
        return False
    bound = dict(known)
    for _, word, dim in _pairs(form, dims):
        if differ(_size(word, bound), dim):
            return False
        if word.isalpha():
            bound.setdefault(word, dim)
    return True


def _size(word: str, known: Mapping[str, DimLike]) -> DimLike | None:
    return int(word) if word.isdigit() else known.get(word)


def _record(ctx: NodeContext, name: str, form: Form, dims: Dims, letters: Letters) -> None:
    """Require the only shape that an input can have, and bind its letters: to a number, if one of the inputs has it."""
    if form[:1] == ("...",) and letters.leading is None:
        letters.leading = dims[: len(dims) - len(form) + 1]
    for axis, word, dim in _pairs(form, dims):
        size = _size(word, letters.sizes)
        if size is not None:
            told = partial("{} has the dimension {} on axis {}; it must be {}".format, name, dim, axis, size)
            expect(ctx, dim, "==", size, told)
        if word.isalpha() and (size is None or isinstance(dim, int)):
            letters.sizes[word] = dim


def _unfit(name: str, dims: Dims, forms: Sequence[Form], known: Mapping[str, DimLike]) -> str:
    shape = f"the shape [{', '.join(map(str, dims))}]" if dims else "the shape of a scalar"
    return f"{name} has {shape}; it must be {' or '.join(_spelled(form, known) for form in forms)}"


def _spelled(form: Form, known: Mapping[str, DimLike]) -> str:
    if not form:
        return "a scalar"
    return f"[{', '.join(word if (size := _size(word, known)) is None else str(size) for word in form)}]"
