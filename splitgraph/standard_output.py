"""What is wrong with standard output, told so that it does not read as if a model could not be written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class OutputError(OSError):
    """Standard output cannot be written, as on a full disk: nothing can be told there."""


@contextmanager
def writing() -> Iterator[None]:
    """What is written within goes to standard output. Raises OutputError where that fails, BrokenPipeError where nobody
    reads it any more.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, f"standard output cannot be written: {error.strerror}") from error
