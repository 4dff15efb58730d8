"""Whether the installed onnxruntime is one that tests may take as a judge.

For Python 3.10 there is none after 1.23, which ends at opset 23 and computes some operators otherwise than documented.
"""

from __future__ import annotations

from importlib.metadata import version

# The oldest that all tests were run with.
OLDEST_JUDGE = (1, 31)


def onnxruntime_can_judge() -> bool:
    """True for an onnxruntime that knows what the tests ask it about."""
    major, minor, *_ = version("onnxruntime").split(".")
    return (int(major), int(minor)) >= OLDEST_JUDGE
