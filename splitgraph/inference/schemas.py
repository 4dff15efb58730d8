"""The signatures of onnx's operators, read from `schemas.txt`.

Asking the installed onnx for them would load its C++ library and build its registry of all operators: most of the time
and memory that a small model takes. `python -m splitgraph.inference.installed_schemas` writes the table anew from the
installed onnx, and a test compares the two. An opset that is newer than the table, and operators that a program
registered with onnx itself, are asked of onnx.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("schemas.txt")


@dataclass(frozen=True, slots=True)
class FormalInput:
    """One input of a signature.

    is_required: it must not be left out. allowed: the types that it may have, None for any. variable: the type variable
    that it shares with other inputs, "" for none.
    """

    name: str
    is_required: bool
    allowed: frozenset[str] | None
    variable: str


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The signature of one version of an operator: what inference checks a node against.

    attributes: number of the type of each, as AttributeProto counts. required: the attributes that must be there.
    """

    domain: str
    name: str
    since_version: int
    is_deprecated: bool
    fewest_inputs: int
    most_inputs: int
    attributes: Mapping[str, int]
    required: tuple[str, ...]
    inputs: tuple[FormalInput, ...]


@cache
def versions_of(domain: str, op_type: str) -> tuple[Schema, ...]:
    """All versions of an operator, the oldest first; none for one that nobody knows."""
    known = tuple(_parsed(row) for row in _rows().get((domain, op_type), ()))
    if known or "onnx" not in sys.modules:
        return known
    # What a program registers with onnx is not in the table; nor can it be there before onnx is imported.
    from splitgraph.inference.installed_schemas import installed_versions

    return installed_versions(domain, op_type)


def schema_of(domain: str, op_type: str, opset: int) -> Schema | None:
    """The version of an operator at an opset of its domain; None where it does not exist, or not any more."""
    versions = versions_of(domain, op_type)
    if domain == "" and opset > newest_in_table():
        from splitgraph.inference.installed_schemas import installed_versions

        versions = installed_versions(domain, op_type)
    found = max((s for s in versions if s.since_version <= opset), key=lambda s: s.since_version, default=None)
    if found is None or not found.is_deprecated:
        return found
    # GroupNormalization-18 was deprecated for its own later version and not removed.
    is_corrected = any(s.since_version > found.since_version and not s.is_deprecated for s in versions)
    return found if is_corrected else None


def newest_opset(wanted: int) -> int:
    """The newest opset of ai.onnx: that of the table, or for an opset beyond it that of the installed onnx."""
    if wanted <= newest_in_table():
        return newest_in_table()
    from splitgraph.inference.installed_schemas import newest_installed

    return max(newest_in_table(), newest_installed())


@cache
def newest_in_table() -> int:
    """The newest opset of ai.onnx that the table covers."""
    return int(_text().split("\n", 1)[0].split()[-1])


@cache
def _text() -> str:
    return TABLE.read_text(encoding="utf-8")


@cache
def _rows() -> Mapping[tuple[str, str], list[str]]:
    """The rows of each operator, not taken apart: a model uses few of them."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in _text().splitlines()[1:]:
        domain, name = row.split("\t", 2)[:2]
        found.setdefault((domain, name), []).append(row)
    return found


@cache
def _types() -> tuple[frozenset[str] | None, ...]:
    texts = (row.split("\t")[1] for row in _text().splitlines() if row.startswith("types\t"))
    return tuple(None if text == "*" else frozenset(text.split(",")) for text in texts)


def _parsed(row: str) -> Schema:
    domain, name, version, count, formals, attributes = row.split("\t")
    since, _, deprecated = version.partition(" ")
    fewest, most = map(int, count.split())
    kinds, required = {}, []
    for text in attributes.split():
        key, kind = text.split(":")
        kinds[key.rstrip("?")] = int(kind)
        if not key.endswith("?"):
            required.append(key)
    inputs = []
    for text in formals.split():
        key, number, variable = text.split(":")
        inputs.append(FormalInput(key.rstrip("?"), not key.endswith("?"), _types()[int(number)], variable))
    return Schema(domain, name, int(since), bool(deprecated), fewest, most, kinds, tuple(required), tuple(inputs))
