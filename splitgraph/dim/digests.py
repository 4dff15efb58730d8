"""BLAKE2, which gives a long value a name of fixed length."""

from __future__ import annotations

try:
    # hashlib has the same function, but loads OpenSSL with it: 4 MB, a tenth of what splitgraph takes.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b"]
