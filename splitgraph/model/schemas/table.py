"""Read `schemas.txt`, the table of all operators, and find the version of an operator or of the IR at an opset.

Asking the installed onnx would load its C++ library and build its registry of all operators: most of the time and
memory that a small model takes. `python -m splitgraph.model.schemas.installed` writes the table anew from the installed
onnx, and a test compares the two. onnx is asked about opsets newer than the table, and about operators that the table
does not have because a program registered them with onnx.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from splitgraph.model.onnx_proto import IR_VERSION, AttributeProto
from splitgraph.model.schemas.operator_version import MARKS, TABLE, Formal, FormalAttribute, OperatorVersion

_TYPES = "types\t"


@cache
def versions_of(domain: str, op: str) -> tuple[OperatorVersion, ...]:
    """Return all versions of an operator, the oldest first; none for an unknown operator."""
    rows = _rows(domain, op)
    if rows or "onnx" not in sys.modules:
        return tuple(map(_parsed, rows))
    # What a program registers with onnx is not in the table; nor can it be there before onnx is imported.
    from splitgraph.model.schemas.installed import installed_versions

    return installed_versions(domain, op)


@cache
def version_at(domain: str, op: str, opset: int) -> OperatorVersion | None:
    """Return the version of an operator that an opset of its domain means; None when it does not exist there."""
    rows = _rows(domain, op)
    if rows and opset <= newest_in_table(domain):
        # Not all of them taken apart: a model is of one opset.
        fitting = next((row for row in reversed(rows) if _since(row) <= opset), None)
        return None if fitting is None else _parsed(fitting)
    versions = versions_of(domain, op)
    if domain in _opsets() and opset > newest_in_table(domain):
        from splitgraph.model.schemas.installed import installed_versions

        versions = installed_versions(domain, op)
    known = [version for version in versions if version.since_version <= opset]
    return known[-1] if known else None


def newest_opset(wanted: int = 0) -> int:
    """Return the newest opset of ai.onnx in the table; if a newer one is wanted, the newest opset of the installed
    onnx.
    """
    if wanted <= newest_in_table():
        return newest_in_table()
    from splitgraph.model.schemas.installed import newest_installed

    return max(newest_in_table(), newest_installed())


def newest_in_table(domain: str = "") -> int:
    """Return the newest opset of a domain that the table covers; 0 for a domain that it does not have."""
    return _opsets().get(domain, 0)


@cache
def _opsets() -> Mapping[str, int]:
    entries = _lines()[0].split("\t")[1:]
    return {domain: int(opset) for domain, _, opset in (entry.partition("=") for entry in entries)}


@cache
def _lines() -> list[str]:
    # Read as bytes: text mode would look for line ends twice.
    return TABLE.read_bytes().decode().splitlines()


@cache
def _first_row() -> int:
    """Return where the rows of operators begin, behind the newest opsets and the sets of types."""
    return next(index for index, line in enumerate(_lines()) if index and not line.startswith(_TYPES))


@cache
def _rows(domain: str, op: str) -> Sequence[str]:
    """Return the rows of an operator, the oldest version first. They stand together in the table.

    A model uses few operators, and parsing all rows would take longer than inferring a small model.
    """
    lines, key = _lines(), f"{domain}\t{op}\t"
    start = end = bisect_left(lines, key, lo=_first_row())
    while end < len(lines) and lines[end].startswith(key):
        end += 1
    return lines[start:end]


@cache
def operator_names(domain: str = "") -> tuple[str, ...]:
    """Return the names of all operators of a domain."""
    rows = (line.split("\t", 2) for line in _lines()[_first_row() :])
    return tuple(dict.fromkeys(row[1] for row in rows if row[0] == domain))


@cache
def _types(number: int) -> frozenset[str]:
    """Return the set of types that the rows refer to by a number."""
    return frozenset(_lines()[1 + number].removeprefix(_TYPES).split("|"))


def _since(row: str) -> int:
    return int(row.split("\t", 3)[2].split()[0])


@cache
def _parsed(row: str) -> OperatorVersion:
    domain, op, version, counts, inputs, outputs, attributes = row.split("\t")
    since, *flags = version.split()
    return OperatorVersion(
        domain,
        op,
        int(since),
        "deprecated" in flags,
        "function" in flags,
        dict(_attribute(text) for text in attributes.split()),
        tuple(_formal(text) for text in inputs.split(";") if text),
        tuple(_formal(text) for text in outputs.split(";") if text),
        *map(int, counts.split()),
    )


def _formal(text: str) -> Formal:
    name, mark, variable, number = text.split(":")
    option, homogeneous, least = MARKS[mark]
    return Formal(name, variable, _types(int(number)), option, homogeneous, least)


def _attribute(text: str) -> tuple[str, FormalAttribute]:
    signature, is_given, default = text.partition("=")
    name, mark, kind = signature.split(":")
    return name, FormalAttribute(name, int(kind), mark == "!", _value(int(kind), default) if is_given else None)


def _value(kind: int, text: str) -> Any:
    if kind == AttributeProto.INT:
        return int(text)
    if kind == AttributeProto.FLOAT:
        return float(text)
    if kind == AttributeProto.INTS:
        return tuple(int(item) for item in text.split(","))
    return tuple(text.split(",")) if kind == AttributeProto.STRINGS else text


# IR versions ---------------------------------------------------------------------------------------------------------


# The newest opset whose first release wrote each IR version.
_RELEASES = (
    (8, 3),
    (9, 4),
    (10, 5),
    (11, 6),
    (14, 7),
    (18, 8),
    (20, 9),
    (22, 10),
    (23, 11),
    (24, 12),
    (27, 13),
    (28, 14),
)


def minimum_ir_version(opset: int) -> int:
    """Return the IR version of the onnx release that introduced an opset of ai.onnx: the lowest for models of that
    opset.

    No release ended at opset 2, 3 or 4; these have the version of the next release. Raises ValueError for an unknown
    opset. Source: onnx's table of released versions.
    """
    newest = newest_opset(opset)
    if not 1 <= opset <= newest:
        raise ValueError(f"opset {opset} is not between 1 and {newest}")
    # Only the installed onnx knows opsets beyond the table; it writes this IR version.
    return next((version for newest, version in _RELEASES if opset <= newest), IR_VERSION)
