"""Decides where in a folder the result of a source goes, whatever a path, a pattern or another machine calls it."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from splitgraph.batch.sources import Source
from splitgraph.diagnostics import SplitgraphError, diagnostic

# A name with three rounds of %25 is no name that anybody gave to a model.
_ROUNDS = 4
_DRIVE = re.compile("[A-Za-z]:")
_HELP = "Name the model itself, or give the folder that it is in."
_LINK_HELP = "Remove the link, or give the folder that it leads to with -o."


def require_below(source: Source) -> None:
    """Raises SplitgraphError (SG601) for a source that is not below what it was found in. Names of other machines may
    be written in any way that a server or a system reads as another folder.
    """
    if source.relative is None:
        parts: tuple[str, ...] = ()
    elif source.is_url:
        parts = tuple(_decoded(str(source.relative)).split("/"))
    else:
        parts = source.relative.parts
    is_wrong = (lambda part: _is_no_name(part)) if source.is_url else (lambda part: part in ("..", os.sep))
    if source.relative == PurePosixPath() or any(map(is_wrong, parts)):
        text = f"{source.name} is not below the folder that it was found in"
        raise SplitgraphError(text, [diagnostic("SG601", text, source.name, help=_HELP)])


def place_below(folder: str, name: str, source: Source) -> Path:
    """The place of a result in a folder. Raises SplitgraphError (SG601) for one that would be outside."""
    require_below(source)
    place = Path(folder) / name
    outside = not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))
    if outside or "\0" in name or not Path(name).name:
        text = f"the result of {source.name} would be outside of {folder}"
        raise SplitgraphError(text, [diagnostic("SG601", text, source.name, help=_LINK_HELP if outside else _HELP)])
    return place


def _decoded(text: str) -> str:
    """A path without %2e and the like, which a server decodes once, or more often."""
    for _ in range(_ROUNDS):
        text, before = unquote(text), text
        if text == before:
            break
    return text


def _is_no_name(part: str) -> bool:
    """True for a part of a path that some system takes for another folder: .., "", a drive, a part with a backslash, or
    with characters that end a name.
    """
    has_separator = "\\" in part or any(ord(char) < 32 for char in part)
    return not part.strip(". ") or has_separator or _DRIVE.match(part) is not None
