"""The table [tool.splitgraph] of a pyproject.toml, which the command line reads and the Python API does not.

```toml
[tool.splitgraph]
accept = ["SG302", "SG212@main/postprocess/*"]
```
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from splitgraph.findings.acceptance import parse_acceptances
from splitgraph.findings.diagnostics import SplitgraphError, diagnostic, meant

_FILE = "pyproject.toml"
_TABLE = "tool.splitgraph"
_KEYS = ("accept",)


def accepted_texts(given: Sequence[str], folder: Path | None = None) -> tuple[str, ...]:
    """Return the acceptances of a command: those of the configuration, then the given ones.

    folder: the search for a pyproject.toml begins here and goes upwards; None for the current folder. The first file
    with the table counts. Anything but a regular file is skipped. Raises SplitgraphError (SG601) for a file that cannot
    be read, an unknown key, and an acceptance that is not allowed.
    """
    start = _current_folder() if folder is None else folder
    configured = () if start is None else _configured(start)
    parse_acceptances(given)
    return (*configured, *given)


def _current_folder() -> Path | None:
    """Return the current folder; None if it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _configured(folder: Path) -> tuple[str, ...]:
    for parent in (folder, *folder.parents):
        path = parent / _FILE
        table = _table_of(path)
        if table is not None:
            return _accept_of(table, path)
    return ()


def _table_of(path: Path) -> dict[str, Any] | None:
    """Return the table of a file; None if the file or the table does not exist."""
    if not _is_regular(path):
        return None
    try:
        written = path.read_bytes()
    except OSError as error:
        raise _wrong(path, f"the file cannot be read: {error.strerror or error}") from error
    # Most files of this name have no such table, and the parser takes longer to import than a small model to infer.
    if b"splitgraph" not in written:
        return None
    read = _parsed(written, path)
    tool = read.get("tool", {})
    table = tool.get("splitgraph") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise _wrong(path, f"{_TABLE} is {shortened(table)}; it must be a table, [{_TABLE}]")
    return table


def _is_regular(path: Path) -> bool:
    """Return True for a regular file; False also if a folder on the way may not be searched. The user has no
    configuration there, and every command would fail otherwise. A named pipe would block every command.
    """
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _parsed(written: bytes, path: Path) -> dict[str, Any]:
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        # Editors of Windows write a byte order mark.
        read: dict[str, Any] = tomllib.loads(written.decode("utf-8-sig"))
    except RecursionError as error:
        raise _wrong(path, "the file cannot be read: a value is nested too deeply") from error
    except ValueError as error:
        # Of the text, of the form, or of an integer with more digits than Python reads.
        raise _wrong(path, f"the file is not TOML: {error}") from error
    return read


def _accept_of(table: dict[str, Any], path: Path) -> tuple[str, ...]:
    for key in table:
        if key not in _KEYS:
            near = meant(key, _KEYS) or f"; known keys: {', '.join(map(repr, _KEYS))}"
            raise _wrong(path, f"the table [{_TABLE}] has the unknown key {key!r}{near}")
    entries = table.get("accept", [])
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise _wrong(path, f'{_TABLE}.accept is {shortened(entries)}; it must be a list of texts, such as ["SG302"]')
    try:
        parse_acceptances(entries)
    except SplitgraphError as error:
        raise _wrong(path, f"{_TABLE}: {error}") from error
    return tuple(entries)


def _wrong(path: Path, message: str) -> SplitgraphError:
    text = f"{path}: {message}"
    return SplitgraphError(text, [diagnostic("SG601", text, str(path))])
