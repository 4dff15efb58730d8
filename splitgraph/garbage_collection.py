"""Python's garbage collection, paused for as long as a verb works."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Look for no reference cycles for a while.

    A model is a million small objects of which hardly any are part of a cycle; looking for some again and again takes a
    third of the time of its inference. What the caller had set is set again afterwards.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
