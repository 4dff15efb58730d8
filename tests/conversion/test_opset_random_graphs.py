"""Random graphs of some 80 operators, converted up and down and run: equal or refused, ever.

SPLITGRAPH_FUZZ=N checks N graphs; SPLITGRAPH_FUZZ_SEED=N starts at another seed, to reproduce one or to see others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_opsets import known

HERE = Path(__file__).parent
FIRST = int(os.environ.get("SPLITGRAPH_FUZZ_SEED", "0"))
GRAPHS = int(os.environ.get("SPLITGRAPH_FUZZ", "10"))
MORE_GRAPHS = 80
NODES = 14
# Of the opsets that onnxruntime runs.
TARGETS = known([8, 9, 10, 11, 12, 13, 15, 17, 19, 21, 24, 26])


def results(first: int, end: int) -> Iterator[dict[str, Any]]:
    """What came out for each seed; those at which the engine ended the process are passed over."""
    paths = [str(HERE), str(HERE.parent / "inference"), str(HERE.parents[1]), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    while first < end:
        numbers = map(str, (first, end, NODES, *TARGETS))
        command = [sys.executable, str(HERE / "conversion_fuzz_worker.py"), *numbers]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.returncode <= 0, done.stderr
        assert lines, done.stderr
        yield from (line for line in lines if line["state"] == "done")
        if done.returncode == 0:
            return
        first = lines[-1]["seed"] + 1


def check(first: int, count: int) -> None:
    total: Counter[str] = Counter()
    wrong: dict[int, list[str]] = {}
    for result in results(first, first + count):
        total.update(ran=result["ran"], equal=result["equal"], refused=result["refused"])
        if result["wrong"]:
            wrong[result["seed"]] = result["wrong"]
    assert not wrong
    assert total["ran"] >= 0.8 * count
    # What is refused is mostly what has sequences, which do not exist below opset 11.
    assert total["equal"] >= 2 * total["refused"]


def test_random_graphs() -> None:
    check(FIRST, GRAPHS)


@pytest.mark.slow
def test_more_random_graphs() -> None:
    check(500_000, MORE_GRAPHS)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (np.float32([1, np.nan]), np.float32([1, np.nan]), True),
        (np.float32([1]), np.float32([1.001]), False),
        (np.float32([1]), np.float64([1]), False),
        (np.int64([1]), np.int64([2]), False),
        ([np.int64([1])], [np.int64([1]), np.int64([1])], False),
    ],
)
def test_a_difference_would_be_found(one: Any, other: Any, same: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE.parent / "inference"))
    from conversion_fuzz_worker import is_equal

    assert is_equal(one, other) is same
