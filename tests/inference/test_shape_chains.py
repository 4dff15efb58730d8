"""Random chains of shape arithmetic against a simulator: a sample of the campaign in tests/campaigns."""

from __future__ import annotations

import pytest
from chain_checks import check_chain
from chain_simulator import Chain, DoesNotRun, Step, evaluate_chain
from random_chains import random_chain

# A remainder known of a dimension was once used for its products: these were refused.
_ONCE_WRONG = (724, 904, 2170)


@pytest.mark.parametrize("seeds", [range(start, start + 20) for start in range(0, 120, 20)] + [_ONCE_WRONG], ids=str)
def test_chains_are_inferred_as_they_run(seeds: range) -> None:
    assert [(seed, wrong) for seed in seeds for wrong in check_chain(seed).wrong] == []


@pytest.mark.parametrize("seeds", [range(start, start + 20) for start in range(0, 80, 20)], ids=str)
def test_chains_of_broadcasts_are_inferred_as_they_run(seeds: range) -> None:
    found = [(seed, check_chain(seed, broadcasts=True)) for seed in seeds]
    assert [(seed, wrong) for seed, each in found for wrong in each.wrong] == []
    # What is assumed fails at few of the points at which chains run, and where it fails nothing is claimed.
    assert any(each.assumptions for _, each in found)
    assert 0 < sum(each.excluded for _, each in found) < sum(each.points for _, each in found) / 20


def test_chains_say_something() -> None:
    found = [check_chain(seed) for seed in range(40)]
    assert all(each.points for each in found)
    assert sum(each.symbolic for each in found) > 200
    assert sum(each.obligations for each in found) > 15
    # Far fewer dimensions are unknown than are known.
    assert sum(each.unknown for each in found) * 20 < sum(each.dims for each in found)


def test_a_chain_runs_at_the_sizes_of_its_design() -> None:
    for seed in range(100):
        chain, sizes = random_chain(seed)
        evaluate_chain(chain, sizes)


X = {"x0": ("N", 6)}
STEPS = [
    (Step("Split", ("x0",), ("a", "b"), {"axis": 0, "equal": 1}), {"N": 4}, [(2, 6), (2, 6)]),
    (Step("Split", ("x0",), ("a", "b"), {"axis": 0, "equal": 1}), {"N": 5}, None),
    (Step("Split", ("x0",), ("a", "b", "c"), {"axis": 0, "chunks": 1}), {"N": 5}, [(2, 6), (2, 6), (1, 6)]),
    (Step("Split", ("x0",), ("a", "b", "c", "d"), {"axis": 0, "chunks": 1}), {"N": 5}, None),
    (Step("Reshape", ("x0",), ("a",), {"target": (0, 2, -1)}), {"N": 4}, [(4, 2, 3)]),
    (Step("Reshape", ("x0",), ("a",), {"target": (0, 2, -1)}), {"N": 0}, None),
    (Step("Reshape", ("x0",), ("a",), {"target": (4, -1)}), {"N": 3}, None),
    (
        Step("Slice", ("x0",), ("a",), {"starts": (5,), "ends": (-4,), "axes": (1,), "steps": (-2,)}),
        {"N": 1},
        [(1, 2)],
    ),
    (Step("Expand", ("x0",), ("a",), {"target": (2, 1, 6)}), {"N": 3}, [(2, 3, 6)]),
    (Step("Expand", ("x0",), ("a",), {"target": (2, 6)}), {"N": 3}, None),
    (Step("Expand", ("x0",), ("a",), {"target": (1, 6)}), {"N": 0}, [(0, 6)]),
    (Step("Pad", ("x0",), ("a",), {"pads": (1, 0, -2, 3)}), {"N": 3}, [(2, 9)]),
    (Step("Pad", ("x0",), ("a",), {"pads": (0, 0, -2, 0)}), {"N": 1}, None),
]


@pytest.mark.parametrize(("step", "sizes", "expected"), STEPS)
def test_the_simulator(step: Step, sizes: dict[str, int], expected: list[tuple[int, ...]] | None) -> None:
    chain = Chain(17, X, (step,))
    if expected is None:
        with pytest.raises(DoesNotRun):
            evaluate_chain(chain, sizes)
    else:
        values = evaluate_chain(chain, sizes)
        assert [values[name].shape for name in step.outputs] == expected
