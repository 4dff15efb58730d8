"""The shapes that the inputs of an operator must have, written in a short form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.broadcasting import differ
from splitgraph.inference.rules.operands import Dims, InvalidNode, dims_of, expect

Form = tuple[str, ...]
Sizes = dict[str, DimLike]

# One element, or one for each row or column of a matrix, which may be one of several.
ONE = "scalar | 1"
PER_ROW = f"{ONE} | M | ... M 1"
PER_COLUMN = f"{ONE} | N | ... 1 N"


def expect_shapes(ctx: NodeContext, *inputs: str, sizes: Mapping[str, DimLike | None] | None = None) -> None:
    """Record that the inputs have these shapes, where they are given and of known rank. Raises InvalidNode where one
    cannot have its shape.

    inputs: one text for each input, "name: shape", or "" for an input of which nothing is said. A shape is "scalar" or
    a list of dimensions: a number; a letter, which is the same dimension wherever it stands; "?" for any dimension; and
    at the start "..." for any number of dimensions. "|" stands between shapes of which one is enough. sizes: what
    letters stand for, None for what is unknown.
    """
    known: Sizes = {letter: size for letter, size in (sizes or {}).items() if size is not None}
    for index, text in enumerate(inputs):
        dims = dims_of(ctx, index) if text and ctx.has_input(index) else None
        if dims is None:
            continue
        name, forms = _parsed(text)
        fitting = [form for form in forms if _fits(form, dims, known)]
        if not fitting:
            raise InvalidNode(_unfit(f"{name} (input {index})", dims, forms, known))
        if len(fitting) == 1:
            _record(ctx, f"{name} (input {index})", fitting[0], dims, known)


@cache
def _parsed(text: str) -> tuple[str, tuple[Form, ...]]:
    """The name of an input, and its shapes as lists of words."""
    name, _, shapes = text.partition(":")
    return name, tuple(() if shape.split() == ["scalar"] else tuple(shape.split()) for shape in shapes.split("|"))


def _pairs(form: Form, dims: Dims) -> list[tuple[int, str, DimLike]]:
    """Axis, word and dimension, for each word but "..."."""
    words = form[1:] if form[:1] == ("...",) else form
    first = len(dims) - len(words)
    return [(axis, word, dims[axis]) for axis, word in enumerate(words, first)]


def _has_rank(form: Form, rank: int) -> bool:
    return rank >= len(form) - 1 if form[:1] == ("...",) else rank == len(form)


def _fits(form: Form, dims: Dims, known: Sizes) -> bool:
    """False where dimensions that are numbers contradict the shape."""
    if not _has_rank(form, len(dims)):
        return False
    found = dict(known)
    for _, word, dim in _pairs(form, dims):
        if differ(_size(word, found), dim):
            return False
        if word.isalpha():
            found.setdefault(word, dim)
    return True


def _size(word: str, known: Sizes) -> DimLike | None:
    return int(word) if word.isdigit() else known.get(word)


def _record(ctx: NodeContext, name: str, form: Form, dims: Dims, known: Sizes) -> None:
    """Require the only shape that an input can have, and learn what its letters stand for."""
    for axis, word, dim in _pairs(form, dims):
        size = _size(word, known)
        if size is not None:
            told = partial("{} has the dimension {} on axis {}; it must be {}".format, name, dim, axis, size)
            expect(ctx, dim, "==", size, told)
        elif word.isalpha():
            known[word] = dim


def _unfit(name: str, dims: Dims, forms: Sequence[Form], known: Sizes) -> str:
    found = f"the shape [{', '.join(map(str, dims))}]" if dims else "the shape of a scalar"
    return f"{name} has {found}; it must be {' or '.join(_spelled(form, known) for form in forms)}"


def _spelled(form: Form, known: Sizes) -> str:
    if not form:
        return "a scalar"
    return f"[{', '.join(word if (size := _size(word, known)) is None else str(size) for word in form)}]"
