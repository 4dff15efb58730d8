"""Walks in steps: nested calls of model functions do not nest Python calls, because Python's stack is short."""

from __future__ import annotations

from collections.abc import Iterator

# A walk, step by step: it gives the walk over the body of each call that it comes to, and goes on when that has ended.
Steps = Iterator["Steps"]


def finish(steps: Steps) -> None:
    """Take all steps of a walk. However deep calls are nested, Python's stack does not grow."""
    waiting = [steps]
    while waiting:
        inner = next(waiting[-1], None)
        if inner is None:
            waiting.pop()
        else:
            waiting.append(inner)
