"""Random graphs of some 80 operators, inferred with symbols and run at several sizes: no contradiction, ever.

SPLITGRAPH_FUZZ=N checks N graphs; SPLITGRAPH_FUZZ_SEED=N starts at another seed, to reproduce one or to see others.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from fuzz_worker import holds
from random_graphs import is_lenient, random_model

HERE = Path(__file__).parent
FIRST = int(os.environ.get("SPLITGRAPH_FUZZ_SEED", "0"))
GRAPHS = int(os.environ.get("SPLITGRAPH_FUZZ", "40"))
# Counted and not timed, so that every run checks the same.
MORE_GRAPHS = 400
NODES = 14


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, with the modules of these tests."""
    paths = [str(HERE), str(HERE.parents[1]), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def results(first: int, end: int) -> Iterator[dict[str, Any]]:
    """What came out for each seed; those at which the engine ended the process, or never ended, are passed over."""
    while first < end:
        done = run_python(str(HERE / "fuzz_worker.py"), str(first), str(end), str(NODES))
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.returncode <= 0, done.stderr
        assert lines, done.stderr
        yield from (line for line in lines if line["state"] == "done")
        if done.returncode == 0:
            return
        first = lines[-1]["seed"] + 1


def check(first: int, end: int) -> Counter[str]:
    """Check these seeds; the sums of what was counted."""
    total: Counter[str] = Counter()
    wrong: dict[int, list[str]] = {}
    for result in results(first, end):
        total.update({name: count for name, count in result.items() if isinstance(count, int) and name != "seed"})
        total["graphs"] += 1
        if result["wrong"]:
            wrong[result["seed"]] = result["wrong"]
    assert not wrong
    return total


def test_random_graphs() -> None:
    total = check(FIRST, FIRST + GRAPHS)
    # Few are lost to an engine that gives up, most sizes run, and most dimensions are known.
    assert total["graphs"] >= 0.95 * GRAPHS
    assert total["runs"] >= 2 * total["graphs"]
    assert total["dims"] >= 15 * total["runs"]
    assert total["unknown"] <= 0.15 * total["dims"]


@pytest.mark.slow
def test_more_random_graphs() -> None:
    total = check(1_000_000, 1_000_000 + MORE_GRAPHS)
    assert total["graphs"] >= 0.95 * MORE_GRAPHS


def test_the_grammar_is_wide() -> None:
    """Most operators of the grammar are in a few graphs already, control flow and functions among them."""
    seen = {name for result in results(0, 50) for name in result["operators"]}
    assert len(seen) >= 60
    assert {"If", "Loop", "Scan", "Split", "SplitToSequence", "Reshape", "Concat", "MatMul", "F0"} <= seen


def test_a_graph_follows_from_its_seed() -> None:
    first, second = (random_model(7, NODES) for _ in range(2))
    assert first[0] == second[0]
    assert first[1] == second[1]


@pytest.mark.parametrize(
    ("bound", "status"),
    [("bounded_run", -signal.SIGPROF), ("bounded_inference", 1)],
)
def test_what_never_ends(bound: str, status: int) -> None:
    """An endless run ends the worker as a crash of the engine does, endless inference as a failure."""
    code = f"import fuzz_worker, itertools\nwith fuzz_worker.{bound}(0.1):\n    for _ in itertools.count(): pass"
    assert run_python("-c", code).returncode == status


@pytest.mark.parametrize(
    ("obligation", "expected"),
    [("N % 3 == 0", True), ("N >= 7", False), ("min(N, M) == 4", True), ("unk0 == N", True), ("N//M == 2", True)],
)
def test_obligations_at_sizes(obligation: str, expected: bool) -> None:
    assert holds(obligation, {"N": 6, "M": 4 if "min" in obligation else 3}) is expected


@pytest.mark.parametrize(
    ("op_type", "shapes", "lenient"),
    [
        ("ReduceMax", [(0, 2)], True),
        ("ReduceMax", [(1, 2)], False),
        ("Concat", [(3,), (0, 2)], True),
        ("Relu", [(0,)], False),
    ],
)
def test_what_the_engine_makes_up(op_type: str, shapes: list[tuple[int, ...]], lenient: bool) -> None:
    names = [f"i{index}" for index in range(len(shapes))]
    node = onnx.helper.make_node(op_type, names, ["y"])
    values = {name: np.zeros(shape, np.float32) for name, shape in zip(names, shapes, strict=True)}
    assert is_lenient(node, values) is lenient
