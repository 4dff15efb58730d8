"""What was meant by a name that nothing has: the known names that it is similar to.

A wrong command or option needs this module and nothing else of the package.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice

# The files of a folder that a name is compared with.
_MOST_FILES = 10_000


def nearest(name: object, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the known names that an unknown one is similar to, the most similar first. cutoff: 0 for the nearest names
    whatever they are, 1 for equal ones only.
    """
    from difflib import get_close_matches

    if not isinstance(name, str):
        return []
    names = sorted(known)
    alike = [candidate for candidate in names if candidate.lower() == name.lower()]
    # "shape" for "input-shape", if no other name has the word.
    parts = [] if alike else [candidate for candidate in names if name.lower() in candidate.lower().split("-")]
    alike = parts if len(parts) == 1 else alike
    return alike[:1] or get_close_matches(name, names, n=most, cutoff=cutoff)


def meant(name: object, known: Iterable[str], most: int = 1) -> str:
    """Return advice for an unknown name: "; did you mean 'B'?" for b if there is a B, "" without a similar name.

    most: how many names the advice may have.
    """
    close = nearest(name, known, most)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def meant_file(path: str | os.PathLike[str]) -> str:
    """Return the same advice for a file that does not exist: a similar name in its folder, also without its ending, or
    the same name in a folder of a similar name.
    """
    folder, name = os.path.split(os.fspath(path).rstrip("/" + os.sep))
    near = _near_entry(folder, name)
    if near is None and folder:
        beside = _near_entry(*os.path.split(folder.rstrip("/" + os.sep)))
        near = None if beside is None else os.path.join(beside, name)
    return f"; did you mean {near}?" if near is not None and os.path.lexists(near) else ""


def _near_entry(folder: str, name: str) -> str | None:
    """Return the entry of a folder with a similar name; None without one, also if the folder cannot be read."""
    try:
        with os.scandir(folder or os.curdir) as entries:
            names = [entry.name for entry in islice(entries, _MOST_FILES)]
    except (OSError, ValueError):
        return None
    unended = [candidate for candidate in sorted(names) if os.path.splitext(candidate)[0] == name]
    close = unended or nearest(name, names, cutoff=0.75)
    return os.path.join(folder, close[0]) if close else None
