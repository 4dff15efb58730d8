"""What several documents have: findings, types, dimensions and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from splitgraph.findings.diagnostics import Diagnostic

if TYPE_CHECKING:
    from splitgraph.dim import Dim
    from splitgraph.model.value_type import ValueType

Document = dict[str, Any]


def diagnostics_json(diagnostics: Iterable[Diagnostic]) -> list[Document]:
    """Return diagnostics, in the order of the findings."""
    return [asdict(finding) for finding in diagnostics]


def types_json(types: Mapping[str, ValueType]) -> Document:
    """Return the types of values, by name."""
    return {name: type_json(value) for name, value in types.items()}


def type_json(value: ValueType) -> Document:
    """Return a value's kind, element type and shape; and `element` unless it is a tensor of that type and shape."""
    document: Document = {
        "kind": value.kind,
        "dtype": value.dtype,
        "shape": None if value.shape is None else [dim_json(dim) for dim in value.shape],
    }
    if value.element is not None:
        document["element"] = type_json(value.element)
    return document


def dim_json(dim: int | Dim | None) -> int | str | None:
    """Return a number, an expression, or None for an unknown dimension."""
    return dim if dim is None or isinstance(dim, int) else str(dim)


def number_json(number: float | None) -> float | str | None:
    """Return a difference; None if nothing was compared."""
    # JSON has no infinity and no NaN; a string says it.
    return number if number is None or math.isfinite(number) else str(number)
