"""Other names, another order of facts, other questions before, an inner scope: `Facts` gives the same answers.

20 cases by default and 180 others with `-m slow`; `tests/campaigns/dim_oracles.py --variants` asks this of any number.
"""

from __future__ import annotations

from collections import Counter

import pytest
from dim_cases import Question
from dim_today import DIFFERING_IN_100, NEVER_ENDING
from dim_variants import VARIANTS, differences
from random_cases import random_case

from splitgraph.dim import DimLike, Facts, symbols_of

COUNT = 200
EVERY_DAY = 20


def _differing_in_100(seeds: range) -> dict[str, float]:
    asked = (seed for seed in seeds if seed not in NEVER_ENDING)
    found = Counter(variant for seed in asked for variant, _ in differences(random_case(seed), seed))
    return {variant: found[variant] * 100 / len(seeds) for variant in VARIANTS}


def _are_few(found: dict[str, float]) -> bool:
    return all(found[variant] <= DIFFERING_IN_100[variant] for variant in VARIANTS)


def test_answers_are_the_same() -> None:
    found = _differing_in_100(range(EVERY_DAY))
    assert _are_few(found), found


@pytest.mark.slow
def test_answers_of_many_are_the_same() -> None:
    """More than 100 at once: of fewer, one case is more than one in 100."""
    found = _differing_in_100(range(EVERY_DAY, COUNT))
    assert _are_few(found), found


# What a variant changes is seen: answers that hang on names, on order, on what was asked before, and on scopes.


def _by_name(self: Facts, a: DimLike, b: DimLike) -> bool:
    return min(symbols_of(a - b), default="") < "X"


def _by_order(self: Facts, a: DimLike, b: DimLike) -> bool:
    return bool(self.obligations) and len(str(self.obligations[0])) % 2 == 0


def _by_what_was_asked(self: Facts, a: DimLike, b: DimLike) -> bool:
    asked = vars(self).setdefault("asked", [])
    asked.append(a)
    return len(asked) > 1


def _by_scope(self: Facts, a: DimLike, b: DimLike) -> bool:
    return any(self.enclosing())


@pytest.mark.parametrize(
    ("answer", "variant"), [*zip((_by_name, _by_order, _by_what_was_asked, _by_scope), VARIANTS, strict=True)]
)
def test_an_answer_that_hangs_on_how_it_is_told_is_found(
    answer: object, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [(seed, random_case(seed)) for seed in range(16)]
    asked = [(seed, case._replace(question=Question("prove_ge", case.names[0], 1))) for seed, case in cases]
    monkeypatch.setattr(Facts, "prove_ge", answer)
    assert variant in {found for seed, case in asked for found, _ in differences(case, seed)}
