"""Whether the cost of commands grows with a model as it should, in whole processes, and how growth is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import growth
from growing import GROWING

# A quarter of the table: what was once superlinear, and one of each kind.
MEASURED = [
    ("chain", "infer"),
    ("inputs and outputs", "reshape"),
    ("initializers", "upgrade"),
    ("branches", "downgrade"),
    ("functions, each called once", "downgrade"),
    ("functions, each called once", "reshape"),
    ("views", "reshape"),
    ("normalizations", "upgrade"),
    ("out of order", "infer"),
    ("unknown operators", "upgrade"),
    ("explicit lengths", "downgrade"),
    ("many outputs", "to slices"),
    ("calls", "to VariadicSplit"),
    ("layers with a Split", "for a target"),
    ("a decoder", "diff"),
    ("wide", "report"),
]


@pytest.mark.parametrize(
    ("costs", "ratio", "is_superlinear"),
    [
        (growth.Growth(0.2, 0.21, 0.25), None, False),
        (growth.Growth(0.2, 0.4, 1.0), 4.0, False),
        # What 50 ms of noise may explain is no finding.
        (growth.Growth(0.2, 0.25, 0.7), 10.0, False),
        (growth.Growth(0.2, 0.21, 1.2), 20.0, True),
        (growth.Growth(0.2, 0.3, 2.2), 20.0, True),
        (growth.Growth(0.3, 0.2, 1.0), 14.0, True),
    ],
)
def test_growth_is_told_without_the_start(costs: growth.Growth, ratio: float | None, is_superlinear: bool) -> None:
    assert costs.ratio == (None if ratio is None else pytest.approx(ratio))
    assert costs.is_superlinear is is_superlinear


@pytest.mark.parametrize("name", GROWING)
def test_families_grow(name: str) -> None:
    small, large = (GROWING[name].make(n).ByteSize() for n in (60, 240))
    assert 2 * small < large < 8 * small


def test_a_wrong_option_is_no_figure() -> None:
    with pytest.raises(growth.subprocess.CalledProcessError):
        growth.cpu_seconds(["infer", "--unheard-of"], 1)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "verb"), MEASURED)
def test_four_times_the_model_is_at_most_six_times_the_time(family: str, verb: str, tmp_path: Path) -> None:
    found = growth.growth(family, verb, tmp_path)
    assert not found.is_superlinear, found
