"""The one way in which this package refuses a file: a line that names the file, what was found, and a code."""

from __future__ import annotations

import os

from splitgraph.diagnostics import ModelError, diagnostic


def shown(path: str | os.PathLike[str]) -> str:
    """A path as it is written in messages: as it is, or escaped where it would break the line or the terminal."""
    text = os.fspath(path)
    return text if text.isprintable() else repr(text)


def model_error(code: str, message: str, path: str | os.PathLike[str] = "", *, help: str | None = None) -> ModelError:
    """A ModelError about one file, with the diagnostic of the same words."""
    location = shown(path)
    line = f"{location}: {message}" if location else message
    return ModelError(line, (diagnostic(code, message, location, help=help),))


def system_reason(error: OSError) -> str:
    """What the operating system says went wrong, in its own words but without its numbers."""
    return error.strerror or str(error) or type(error).__name__
