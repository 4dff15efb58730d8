"""Memory that ran out in an engine: how engines say it, and how it is told."""

from __future__ import annotations

# What numpy, onnxruntime, and the C++ library beneath the engines say when an allocation fails.
_SIGNS = ("unable to allocate", "failed to allocate memory", "bad_alloc", "bad allocation", "memoryerror")


def says_out_of_memory(text: str) -> bool:
    """True for the text of an exception or a crash that tells of an allocation that failed."""
    lowered = text.lower()
    return any(sign in lowered for sign in _SIGNS)


def out_of_memory(limit: int, reason: str) -> str:
    """The message for an engine that took more than `limit` bytes; reason: what it said itself."""
    return f"needs more than the {limit / 2**30:.3g} GiB of memory that running a model may take: {reason}"
