"""Faults in values inside of regions: which values get one, and that it changes one place of the last dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from splitgraph.verification.reference.evaluator import load, run
from splitgraph.verification.regions.checking.planted import PlantedFault, faults_in, with_faults
from splitgraph.verification.regions.finding.cut import cut_out

from ..finding.test_find import regions_of
from ..model_pairs import Pair

F = np.float32
ROWS = "float[N, 4] x => float[N, 4] y"
FLAGS = "n = Greater(m, x) c = Cast<to = 1>(n) y = Add(m, c)"


def found_with(body: str, signature: str = ROWS, opset: int = 18) -> Any:
    """Return the regions of two models in which m is not the same."""
    before, after = (f"m = {function}(x) {body}" for function in ("Sin", "Cos"))
    return regions_of(Pair(signature, before, after, opset=opset)).with_values_apart(["m", "n"])


WITHOUT = {
    "text": ("n = Cast<to = 8>(m) y = Cast<to = 1>(n)", ROWS, 18),
    "a sequence": ("n = SequenceConstruct(m, m) y = ConcatFromSequence<axis = 0>(n)", ROWS, 18),
    "a dimension of any length in an old opset": ("n = Neg(m) y = Exp(n)", "float[4, N] x => float[4, N] y", 10),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_values_without_a_fault(name: str) -> None:
    found = found_with(*WITHOUT[name])
    (region,) = found.regions
    assert all(with_faults({region: fault}, found) is None for fault in faults_in("n"))
    assert with_faults({region: PlantedFault("of neither model", 0)}, found) is None


WITH: dict[str, tuple[str, str, Any, dict[int, Any]]] = {
    "a known length": ("y = Mul(m, m)", ROWS, np.zeros((2, 4), F), {0: [1, 0, 0, 0], 60: [0, 0, 1, 0]}),
    "any length": (
        "y = Mul(m, m)",
        "float[4, N] x => float[4, N] y",
        np.zeros((4, 5), F),
        {0: [1, 0, 0, 0, 0], 60: [0, 0, 0, 1, 0]},
    ),
    "one number": ("y = Mul(m, m)", "float x => float y", F(0), {0: 1, 60: 1}),
    "whole numbers": (
        "n = Cast<to = 7>(m) c = Cast<to = 1>(n) y = Add(m, c)",
        ROWS,
        np.zeros((2, 4), F),
        {60: [0, 0, 1, 0]},
    ),
    "conditions": (FLAGS, ROWS, np.zeros((2, 4), F), {60: [0, 0, 1, 0]}),
}


@pytest.mark.parametrize("name", WITH)
def test_one_place_is_another(name: str) -> None:
    body, signature, x, changed = WITH[name]
    found = found_with(body, signature)
    (region,) = found.regions
    (right,) = run(load(cut_out(region, found.after, 1)), {"in.0": x})
    for place, expected in changed.items():
        cut = with_faults({region: PlantedFault("n" if "n = " in body else "m", place)}, found)
        assert cut is not None and cut(region, found.before, 0) == cut_out(region, found.before, 0)
        (faulty,) = run(load(cut(region, found.after, 1)), {"in.0": x})
        assert np.array_equal(faulty != right, np.broadcast_to(np.array(expected, bool), x.shape))
