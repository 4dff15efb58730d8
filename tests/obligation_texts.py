"""Obligations as tests write them: as texts."""

from __future__ import annotations

from splitgraph.dim import Obligation, parse_expression


def obligation_of(text: str) -> Obligation:
    """The obligation that a text says ("N % 3 == 0", "[batch-size] >= 2")."""
    relation = "==" if " == " in text else ">="
    left, right = text.split(f" {relation} ")
    return Obligation(parse_expression(left), relation, parse_expression(right))
