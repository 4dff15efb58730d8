"""The bounds that facts give to symbols."""

from __future__ import annotations

from splitgraph.dim import Facts, Obligation, dim_max, symbol


def test_the_remainder_of_a_maximum_is_not_that_of_its_symbol() -> None:
    """`max(K, 2) % 4 == 0` once moved the bounds of K, again and again, until K == 4 was a contradiction."""
    largest = dim_max(symbol("K"), 2)
    facts = Facts()
    assert facts.require(Obligation(largest % 4, "==", 0)) == "assumed"
    assert facts.require(Obligation(largest // 4, "==", 1)) == "assumed"
    assert not facts.prove_ne(symbol("K"), 4)
