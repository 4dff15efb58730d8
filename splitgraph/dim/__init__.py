"""Symbolic dimensions: integer arithmetic over symbols >= 0 in one normal form, its grammar, and proofs."""

from __future__ import annotations

from splitgraph.dim.arithmetic import Dim, DimLike, product, sum_dims, symbol
from splitgraph.dim.atoms import level_of
from splitgraph.dim.facts import Answer, Facts
from splitgraph.dim.obligation import Obligation
from splitgraph.dim.operations import (
    ceildiv,
    dim_max,
    dim_min,
    evaluate,
    has_huge_number,
    large_atoms,
    names_in,
    substitute,
    substitute_names,
    symbols_of,
)
from splitgraph.dim.parsing import (
    is_size,
    is_spellable,
    marks_unknown,
    parse_dim,
    parse_expression,
    parse_given_dim,
    read_dim_param,
)

__all__ = [
    "Answer",
    "Dim",
    "DimLike",
    "Facts",
    "Obligation",
    "ceildiv",
    "dim_max",
    "dim_min",
    "evaluate",
    "has_huge_number",
    "is_size",
    "is_spellable",
    "large_atoms",
    "level_of",
    "marks_unknown",
    "names_in",
    "parse_dim",
    "parse_expression",
    "parse_given_dim",
    "product",
    "read_dim_param",
    "substitute",
    "substitute_names",
    "sum_dims",
    "symbol",
    "symbols_of",
]
