"""Shapes that are written as shapes: what an operator reads, and what it gives.

An input is a text, "name: shape", or "" for an input of any shape. A shape is "scalar" or a list of dimensions: a
number; a letter, which is the same dimension everywhere; "?" for any dimension; once "..." for any number of
dimensions, which are the same everywhere, or "?..." for any number of any dimensions. "|" separates alternative shapes.
An output is its element type and its dimensions. The type is named, "?" if it is not known, or that of inputs, by their
positions: "0,1 M N" has the type that the first two share. A letter that no input has is a new dimension, one in all
outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    differ,
    dims_of,
    expect,
    known_dtype,
    operator,
    spelled_dims,
)
from splitgraph.model.value_type import ValueType, tensor

Form = tuple[str, ...]
# What letters stand for. "..." stands for so many dimensions, which are ".0", ".1" and so on.
Letters = dict[str, DimLike]

_MANY = ("...", "?...")

# One element, or one for each row or column of a matrix, which may be one of several.
ONE = "scalar | 1"
PER_ROW = f"{ONE} | M | ?... M 1"
PER_COLUMN = f"{ONE} | N | ?... 1 N"


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
    if "..." in words:
        if "..." not in letters:
            return tensor(dtype, None)
        words = _written_out(words, letters["..."])
    for word in words:
        if _is_letter(word) and word not in letters:
            letters[word] = ctx.fresh()
    return tensor(dtype, [_size(word, letters) for word in words])


def expect_shapes(ctx: NodeContext, *inputs: str, sizes: Mapping[str, DimLike | None] | None = None) -> Letters:
    """Record that the inputs have these shapes, if they are given and their ranks are known. Return what the letters
    stand for. Raise InvalidNode if an input cannot have its shape.

    sizes: the dimensions that letters stand for, None if one is unknown; for "..." the number of dimensions.
    """
    letters = {letter: size for letter, size in (sizes or {}).items() if size is not None}
    for index, text in enumerate(inputs):
        dims = dims_of(ctx, index) if text and ctx.has_input(index) else None
        if dims is None:
            continue
        name, forms = _parsed(text)
        fitting = [form for form in forms if _fits(form, dims, letters)]
        if not fitting:
            raise InvalidNode(_unfit(f"{name} (input {index})", dims, forms, letters))
        if len(fitting) == 1:
            _record(ctx, f"{name} (input {index})", fitting[0], dims, letters)
    return letters


@cache
def _parsed(text: str) -> tuple[str, tuple[Form, ...]]:
    """Return the name of an input, and its shapes as lists of words."""
    name, _, shapes = text.partition(":")
    return name, tuple(() if shape.split() == ["scalar"] else tuple(shape.split()) for shape in shapes.split("|"))


def _written_out(form: Sequence[str], count: DimLike) -> list[str]:
    """Return a shape with a word for each of the dimensions that "..." or "?..." stands for."""
    words: list[str] = []
    for word in form:
        words += [f".{axis}" if word == "..." else "?" for axis in range(int(count))] if word in _MANY else [word]
    return words


def _count(form: Form, dims: Dims) -> int:
    """Return how many dimensions "..." or "?..." has to stand for."""
    return len(dims) - len(form) + 1


def _is_letter(word: str) -> bool:
    return word != "?" and not word.isdigit()


def _size(word: str, known: Mapping[str, DimLike]) -> DimLike | None:
    return int(word) if word.isdigit() else known.get(word)


def _fits(form: Form, dims: Dims, known: Letters) -> bool:
    """Return False if the rank, or dimensions that are numbers, contradict the shape."""
    words = _written_out(form, _count(form, dims))
    if len(dims) != len(words) or ("..." in form and differ(known.get("..."), _count(form, dims))):
        return False
    bound = dict(known)
    for word, dim in zip(words, dims, strict=True):
        if differ(_size(word, bound), dim):
            return False
        if _is_letter(word):
            bound.setdefault(word, dim)
    return True


def _record(ctx: NodeContext, name: str, form: Form, dims: Dims, letters: Letters) -> None:
    """Require the only shape that an input can have, and bind its letters: to a number, if one of the inputs has it."""
    if "..." in form:
        letters["..."] = _count(form, dims)
    for axis, (word, dim) in enumerate(zip(_written_out(form, _count(form, dims)), dims, strict=True)):
        size = _size(word, letters)
        if size is not None:
            told = partial("{} has the dimension {} on axis {}; it must be {}".format, name, dim, axis, size)
            expect(ctx, dim, "==", size, told)
        if _is_letter(word) and (size is None or isinstance(dim, int)):
            letters[word] = dim


def _unfit(name: str, dims: Dims, forms: Sequence[Form], known: Letters) -> str:
    shape = f"the shape {spelled_dims(dims)}" if dims else "the shape of a scalar"
    return f"{name} has {shape}; it must be {' or '.join(_spelled(form, known) for form in forms)}"


def _spelled(form: Form, known: Letters) -> str:
    if not form:
        return "a scalar"
    words: Sequence[str] = _written_out(form, known["..."]) if "..." in form and "..." in known else form
    sizes = [_size(word, known) for word in words]
    # A dimension of "..." has no name.
    plain = [word if word in _MANY or word[0] != "." else "?" for word in words]
    return spelled_dims([word if size is None else size for word, size in zip(plain, sizes, strict=True)])
