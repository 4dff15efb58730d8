"""The limits of the engines: how much memory a run may use, and the oldest opset that onnxruntime runs."""

from __future__ import annotations

import os

# An engine process may use this many bytes of address space, and in addition hold the models this many times: as read,
# as arrays, and as the engine keeps them. It never gets more than this share of the memory of the machine.
MEMORY_LIMIT = 8 * 2**30
_COPIES_OF_MODELS = 4
_SHARE_OF_MEMORY = 0.75
OLDEST_OPSET = 7


def memory_limit(models: int) -> int:
    """Return how many bytes of address space an engine process may use for models of so many bytes."""
    limit = MEMORY_LIMIT + _COPIES_OF_MODELS * models
    if not hasattr(os, "sysconf"):
        return limit
    return min(limit, int(_SHARE_OF_MEMORY * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
