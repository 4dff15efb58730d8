"""Symbolic dimensions: integer arithmetic over symbols >= 0 in one normal form, its grammar, and proofs.

In: a text becomes a `Dim` (`parsing`), and arithmetic makes new ones; a constant is an int. Equal values are the same
object. Out: `str()` writes the one spelling of a value (`printing`), and `Facts` answers questions about it.

- A value: `atoms` are its parts; `quotients` and `arithmetic` keep the normal form; `operations` are minimum, maximum,
  evaluation and substitution; `pickling` takes a value to another process.
- Texts: `parsing`, `sympy_parsing`, `printing`.
- Proofs: `facts` asks one question, does `e >= 0` follow? `bounds` often decides it. Otherwise `linear_systems` makes
  rows of it, and `integer_systems` and `integer_rows` eliminate variables. `simplification` uses the same equalities.
- Relations: an `Obligation` must hold in a valid model (`obligation`); `conditions` makes it plainer.
"""

from __future__ import annotations

import copyreg

from splitgraph.dim.arithmetic import Dim, DimLike, product, sum_dims, symbol
from splitgraph.dim.atoms import level_of
from splitgraph.dim.facts import Answer, Facts
from splitgraph.dim.obligation import Obligation
from splitgraph.dim.operations import (
    ceildiv,
    dim_max,
    dim_min,
    evaluate,
    evaluator,
    has_huge_number,
    large_atoms,
    names_in,
    substitute,
    substitute_if_defined,
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
from splitgraph.dim.pickling import reduced

# Here, and no method of Dim: what makes a dimension again is built on dimensions.
copyreg.pickle(Dim, reduced)

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
    "evaluator",
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
    "substitute_if_defined",
    "substitute_names",
    "sum_dims",
    "symbol",
    "symbols_of",
]
