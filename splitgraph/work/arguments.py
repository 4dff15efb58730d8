"""Read the texts of the command line: bindings and input shapes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import accumulate
from typing import TYPE_CHECKING

from splitgraph.diagnostics import SplitgraphError, diagnostic, meant

if TYPE_CHECKING:
    from splitgraph.dim import Dim

_MOST_SHOWN = 200
_FORM = "INPUT=DIMENSION,..., such as x=1,3,H,W"
_DIMENSION = "integers of at least 0, names, expressions such as N + 2 or (N + 1)//2, and ? for an unknown dimension"


def parse_bindings(texts: Iterable[str], option: str = "--bind") -> dict[str, int]:
    """The values of `--bind N=4` or `--try N=4`, by symbol. Raises SplitgraphError (SG601) for all but NAME=NUMBER."""
    from splitgraph.dim import is_size

    bindings: dict[str, int] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not name or not is_size(number):
            form = "NAME=NUMBER with a number of at least 0 and at most 19 digits, such as N=4"
            raise _usage(f"{option} {_shortened(text)} is not of the form {form}")
        if bindings.setdefault(name, int(number)) != int(number):
            raise _usage(f"{option} gives {name} two values, {bindings[name]} and {number}")
    return bindings


def parse_input_shapes(
    texts: Iterable[str], names: Collection[str], inputs: Collection[str] | None = None
) -> dict[str, tuple[int | Dim | None, ...]]:
    """The shapes of `--input-shape x=1,3,H,W`, by input; `x=` is a scalar, `?` an unknown dimension.

    A shape may stand in brackets, its dimensions may be separated by x (1x3x224x224), and a colon may stand for `=`.
    names: the dimension names of the model. inputs: the names of its inputs, None where any may be one.
    Raises SplitgraphError (SG601) for anything else.
    """
    shapes: dict[str, tuple[int | Dim | None, ...]] = {}
    for text in texts:
        name, shape = _input_and_shape(text, inputs)
        if name in shapes:
            raise _usage(f"--input-shape gives {name} two shapes")
        shapes[name] = tuple(_parse_dimension(dim, text, names) for dim in _dimensions(shape, names))
    return shapes


def _input_and_shape(text: str, inputs: Collection[str] | None) -> tuple[str, str]:
    """The name of an input and the text of its shape. A name may contain = and :, a dimension may contain :."""
    for sign in "=:":
        places = [place for place, char in enumerate(text) if char == sign]
        for place in reversed(places[-1:] if inputs is None else places):
            name = text[:place] if text[:place] in (inputs or ()) else text[:place].strip()
            if name and (inputs is None or name in inputs):
                return name, text[place + 1 :]
    name, sign, _ = text.rpartition("=")
    if inputs is None or not name or not sign:
        raise _usage(f"--input-shape {_shortened(text)} is not of the form {_FORM}")
    several = f". Give one --input-shape for each input, {_FORM}" if re.search(r"[,;\s]", name.strip()) else ""
    near = meant(name.strip(), inputs)
    unknown = f"the model has no input {_shortened(name.strip())!r}{near}; it has: {', '.join(inputs) or 'none'}"
    raise _usage(f"--input-shape {_shortened(text)}: {unknown}{several}")


def _parse_dimension(text: str, argument: str, names: Collection[str]) -> int | Dim | None:
    from splitgraph.dim import parse_given_dim

    try:
        return parse_given_dim(text, names)
    except ValueError as error:
        wrong = f"{_shortened(text.strip())!r} is not a dimension: {error}" if text.strip() else "a dimension is empty"
        several = "Give one --input-shape for each input. " if re.search("[=:].*[=:;]", argument) else ""
        allowed = f"{several}Write for example x=1,3,H,W; allowed are {_DIMENSION}"
        raise _usage(f"--input-shape {_shortened(argument)}: {wrong}. {allowed}") from error


def _dimensions(text: str, names: Collection[str]) -> list[str]:
    """The texts of the dimensions of a shape."""
    text = text.strip()
    listed = _is_enclosed(text, "[]") or _is_enclosed(text, "()")
    if listed and text not in names:
        text = text[1:-1].strip()
    if not text:
        return []
    dims = _split_at_commas(text)
    if len(dims) == 1:
        return _split_at_x(text, names)
    return dims[:-1] if listed and not dims[-1].strip() else dims


def _split_at_x(text: str, names: Collection[str]) -> list[str]:
    """The dimensions of 4x3x640x640, 1x3xHxW or Nx3x224: numbers and names of the model; after a number also new
    names. Any other text is one dimension.
    """
    if text in names:
        return [text]
    pieces = [piece.strip() for piece in text.split("x")]
    if all(_is_size(piece) or piece in names for piece in pieces):
        return pieces
    if _is_size(pieces[0]) and all(_is_size(piece) or piece.isidentifier() for piece in pieces):
        return pieces
    pieces = [piece.strip() for piece in re.split("[xX×]", text)]
    return pieces if all(map(_is_size, pieces)) else [text]


def _is_size(text: str) -> bool:
    return text == "?" or text.isdecimal()


def _is_enclosed(text: str, pair: str) -> bool:
    """True for a text whose first bracket is closed by its last character."""
    depths = list(accumulate((char in "([") - (char in ")]") for char in text))
    return text[:1] == pair[0] and text[-1:] == pair[1] and 0 not in depths[:-1]


def _split_at_commas(text: str) -> list[str]:
    """The pieces between the commas outside parentheses: min(N, 8) is one dimension."""
    pieces = [""]
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += char
    return pieces


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _usage(message: str) -> SplitgraphError:
    return SplitgraphError(message, [diagnostic("SG601", message)])
