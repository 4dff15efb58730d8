"""What the command line's arguments mean: bindings, input shapes, and where a result is written."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from splitgraph.diagnostics import SplitgraphError, diagnostic

if TYPE_CHECKING:
    from splitgraph.dim import Dim

_MOST_SHOWN = 200
_DIMENSION = "an integer of at least 0, a symbol, an expression such as N + 2 or (N + 1)//2, or ?"


def parse_bindings(texts: Iterable[str]) -> dict[str, int]:
    """The values of `--bind N=4`, by symbol. Raises SplitgraphError (SG601) for anything but NAME=NUMBER."""
    from splitgraph.dim import is_size

    bindings: dict[str, int] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not name or not is_size(number):
            form = "NAME=NUMBER with a number of at least 0 and at most 19 digits, such as N=4"
            raise _usage(f"--bind {_shortened(text)} is not of the form {form}")
        if bindings.setdefault(name, int(number)) != int(number):
            raise _usage(f"--bind gives {name} two values, {bindings[name]} and {number}")
    return bindings


def parse_input_shapes(texts: Iterable[str], names: Collection[str]) -> dict[str, tuple[int | Dim | None, ...]]:
    """The shapes of `--input-shape x=1,3,H,W`, by input; `x=` is a scalar, `?` an unknown dimension.

    names: the dimension names of the model.
    Raises SplitgraphError (SG601) for anything else.
    """
    shapes: dict[str, tuple[int | Dim | None, ...]] = {}
    for text in texts:
        name, equals, shape = text.rpartition("=")
        if not name or not equals:
            raise _usage(f"--input-shape {text} is not of the form INPUT=DIMENSION,..., such as x=1,3,H,W")
        if name in shapes:
            raise _usage(f"--input-shape gives {name} two shapes")
        dims = _split_at_commas(shape) if shape.strip() else []
        shapes[name] = tuple(_parse_dimension(dim, text, names) for dim in dims)
    return shapes


def rewritten_path(model: Path, output: Path | None, *, in_place: bool, force: bool, tag: str) -> Path:
    """Where a rewritten model goes: the output, the model itself, or its name with the tag ("model.opset18.onnx").

    Raises SplitgraphError (SG601, SG108) before any work is done when that is not allowed.
    """
    if in_place:
        if output is not None:
            raise _usage("--in-place writes to the model itself, so -o has no meaning beside it; give one of the two")
        return model
    path = output or model.with_name(f"{model.stem}.{tag}{model.suffix or '.onnx'}")
    refuse_existing(path, model, force=force, advice="pass --in-place to overwrite it, or another name with -o")
    return path


def refuse_existing(path: Path, model: Path, *, force: bool, advice: str) -> None:
    """Raises SplitgraphError when the path is the model itself (SG601), or when something is there already and force is
    not given (SG108). advice: what to do about the former.
    """
    # Not with Path.exists, which a name that is too long makes raise.
    if os.path.exists(path) and os.path.exists(model) and os.path.samefile(path, model):
        raise _usage(f"{path} is the model itself; {advice}")
    if not force and os.path.lexists(path):
        message = f"{path} exists; choose another name with -o, or pass --force to overwrite it"
        raise SplitgraphError(message, [diagnostic("SG108", message, str(path))])


def _parse_dimension(text: str, argument: str, names: Collection[str]) -> int | Dim | None:
    from splitgraph.dim import parse_given_dim

    try:
        return parse_given_dim(text, names)
    except ValueError as error:
        shown, argument = _shortened(text.strip()), _shortened(argument)
        raise _usage(f"--input-shape {argument}: {shown or 'nothing'}: {error}; allowed: {_DIMENSION}") from error


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
