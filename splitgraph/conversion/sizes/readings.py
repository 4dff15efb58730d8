"""What the bounds of a slice say in terms of the dimension that is cut. The target of a Reshape is in `digits.py`."""

from __future__ import annotations

# The end of a slice that takes everything that is left.
TO_THE_END = 2**63 - 1


class Ambiguous(Exception):
    """A constant can mean several things. The argument lists them, as people read it."""


def read_slice(start: int, end: int, step: int, old: int) -> tuple[int, int]:
    """Return the bounds of a slice along a dimension that changes, whose old size is `old`: an end there is the end of
    any size. Raises Ambiguous for a half, and for the last element by its number.
    """
    if step < 0:
        # It begins at the last element, which a number says as well as -1.
        return (-1 if old > 1 and start == old - 1 else start), end
    if start > 0 and end >= old and start == old - 1:
        raise Ambiguous(f"the last element, or all from {start} on, or element {start} whatever the size")
    if old > 2 and ((start == 0 and 2 * end == old) or (2 * start == old and end >= old)):
        raise Ambiguous(f"half of the dimension, or {old // 2} elements whatever its size")
    return start, TO_THE_END if end == old else end
