"""Where the table of schemas is, and its marks, for whoever reads or writes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from splitgraph.schemas.operator_version import Option

TABLE = Path(__file__).with_name("schemas.txt")

# How many values an input or output stands for, as the table marks it: option, whether they are of one type, least
# number.
MARKS: Mapping[str, tuple[Option, bool, int]] = {
    "": ("single", True, 1),
    "?": ("optional", True, 1),
    "*": ("variadic", True, 1),
    "**": ("variadic", False, 1),
    "*0": ("variadic", True, 0),
    "**0": ("variadic", False, 0),
}
