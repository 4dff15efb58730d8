"""Splits as exporters write them, through every form and back: valid and the same bits after each step, or refused."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from .idiom_results import results

# Apart from those of the campaign, which begins at 0.
FIRST = 1_000_000


def check(first: int, count: int, jobs: int = 1) -> None:
    """Judge the models of some seeds. Most run, most are converted, and many have slices that become one Split."""
    total: Counter[str] = Counter()
    wrong: list[str] = []
    share = count // jobs
    with ThreadPoolExecutor(jobs) as pool:
        for lines in pool.map(lambda job: list(results(first + job * share, first + (job + 1) * share)), range(jobs)):
            for line in lines:
                total.update(ran=line["ran"], equal=line["equal"], refused=len(line["refused"]), joined=line["joined"])
                wrong += [f"seed {line['seed']}: {text}" for text in line["wrong"]]
    assert not wrong
    assert total["ran"] >= 0.9 * count
    assert total["equal"] >= 1.5 * count
    assert total["refused"] <= 0.1 * count
    assert total["joined"] >= 0.2 * count


def test_a_sample_of_idioms() -> None:
    check(FIRST, 25)


@pytest.mark.slow
def test_more_idioms() -> None:
    check(2 * FIRST, 600, jobs=2)
