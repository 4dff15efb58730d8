"""Shapes as OpenVINO IR writes them in attributes: `1,3,224`, `?,2..5,3..,..6`, `...`.

Source: openvino::PartialShape and openvino::Dimension, by what their constructors accept.
"""

from __future__ import annotations

import re

# The lowest and the highest size of a dimension, the latter None where there is no limit.
Interval = tuple[int, "int | None"]

_SIZE = re.compile(r"[0-9]{1,19}")
_LARGEST = 2**63 - 1


def parse_shape(text: str) -> tuple[Interval, ...] | None:
    """The bounds of each dimension of a shape, None for one of unknown rank ("...").

    Raises ValueError for what is not a shape: its message says which part is wrong.
    """
    inner = text.strip()
    if inner == "...":
        return None
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1].strip()
    return tuple(_interval(part.strip()) for part in inner.split(",")) if inner else ()


def parse_static_shape(text: str) -> tuple[int, ...]:
    """The sizes of the shape of a constant, which has no dynamic dimension and no brackets. Raises ValueError."""
    shape = parse_shape(text)
    if "[" in text:
        raise ValueError("the shape of a constant stands without brackets")
    if shape is None or any(lowest != highest for lowest, highest in shape):
        raise ValueError(f"{text[:80]!r} is dynamic")
    return tuple(lowest for lowest, _ in shape)


def _interval(part: str) -> Interval:
    if part in ("?", "-1"):
        return 0, None
    if ".." not in part:
        size = _size(part, part)
        return size, size
    low, _, high = part.partition("..")
    lowest = _size(low, part) if low else 0
    highest = _size(high, part) if high else None
    if highest is not None and highest < lowest:
        raise ValueError(f"{part[:80]!r} is not an interval: its end is less than its start")
    return lowest, None if highest == _LARGEST else highest


def _size(text: str, part: str) -> int:
    if not _SIZE.fullmatch(text) or int(text) > _LARGEST:
        raise ValueError(f"{part[:80]!r} is not a dimension")
    return int(text)
