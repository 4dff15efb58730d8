"""Recognise and report engines that ran out of memory."""

from __future__ import annotations

# What NumPy, onnxruntime and the C++ library say when an allocation fails.
_SIGNS = ("unable to allocate", "failed to allocate memory", "bad_alloc", "bad allocation", "memoryerror")


def says_out_of_memory(text: str) -> bool:
    """Return True if the text of an exception or a crash reports a failed allocation."""
    lowered = text.lower()
    return any(sign in lowered for sign in _SIGNS)


def out_of_memory(limit: int, reason: str) -> str:
    """Return the message for an engine that used more than `limit` bytes. reason: the engine's own message."""
    return f"needs more memory than the limit of {limit / 2**30:.3g} GiB: {reason}"
