"""Infers and runs random graphs: `python fuzz_worker.py FIRST END NODES`, a JSON line for each seed.

A process of its own, since onnxruntime ends the process on some invalid sizes, and on others never ends: a run has
`LONGEST_RUN` seconds of CPU time, after which it ends the process, too. Inference has as many and then fails: it must
never hang. A line says what was compared (dims), how many assignments of sizes ran (runs), were refused by the engine
(refused) or by the obligations alone (excluded), and what was found wrong.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import random_operators
from executed_shapes import RefusedError, compare, make_feeds, run_onnxruntime
from random_graphs import LONGEST_RUN, bounded_run, is_lenient, random_model

import splitgraph
from splitgraph.dim import Obligation
from splitgraph.inference.analysis import Analysis

assert random_operators.FUNCTION_MAKERS


def main(first: int, end: int, nodes: int) -> None:
    """Check these seeds."""
    for seed in range(first, end):
        print(json.dumps({"seed": seed, "state": "started"}), flush=True)
        print(json.dumps({"seed": seed, "state": "done", **check(seed, nodes)}), flush=True)


def check(seed: int, nodes: int) -> dict[str, Any]:
    """One random model at the sizes of its design and at others.

    Sizes that the obligations exclude must not run; sizes of 0 are only excluded, as runtimes accept what does not fit
    where there are no elements.
    """
    model, design, given = random_model(seed, nodes)
    with bounded_inference():
        analysis = splitgraph.infer(model)
    result = {"dims": 0, "unknown": 0, "nodes": len(model.graph.node), "runs": 0, "refused": 0, "excluded": 0}
    wrong = [
        f"false error {found.code}: {found.location}: {found.message}"
        for found in analysis.diagnostics
        # A warning says what an obligation says, which the runs below are held against.
        if found.severity == "error"
    ]
    rng = random.Random(seed)
    names = [output for node in model.graph.node for output in node.output]
    for attempt in range(4):
        sizes = {name: rng.choice([0, 1, 2, 3, 4, 5, 7, 9]) for name in design} if attempt else design
        if attempt > 1:
            given = {"k": rng.randint(0, 4), "flag": rng.random() < 0.5}
        violated = [each for each in analysis.obligations if not holds(str(each), sizes)]
        if violated and (0 in sizes.values() or any(may_run(analysis, each) for each in violated)):
            result["excluded"] += 1
            continue
        feeds = make_feeds(model, analysis, sizes, given, {}, seed + attempt)
        try:
            with bounded_run():
                traces = run_onnxruntime(model, names, feeds)
        except RefusedError:
            result["refused"] += 1
            continue
        values = {name: value for _, trace in traces for name, value in {**feeds, **trace}.items()}
        if any(is_lenient(node, values) for node in model.graph.node):
            result["refused"] += 1
            continue
        if violated:
            wrong.append(f"runs at {sizes}, although it requires {', '.join(map(str, violated))}")
            continue
        found = compare(analysis.graphs, traces, sizes)
        result["runs"] += 1
        result["dims"] += found.dims
        result["unknown"] += len(found.unknown)
        wrong += found.wrong
    return {**result, "operators": sorted({node.op_type for node in model.graph.node}), "wrong": wrong}


@contextmanager
def bounded_inference(seconds: float = LONGEST_RUN) -> Iterator[None]:
    """Raise where inference takes that much CPU time; the worker then ends with status 1, which no engine gives."""

    def give_up(*_: object) -> None:
        raise AssertionError(f"inference takes more than {seconds} s of CPU time")

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def may_run(analysis: Analysis, obligation: Obligation) -> bool:
    """Whether sizes that violate it may run nevertheless: bodies are not always executed, and onnxruntime's pooling
    rounds toward zero where the window is larger than the tensor.
    """
    locations = analysis.required_by[obligation]
    return all(location.count("/") > 1 or "Pool#" in location for location in locations)


def holds(obligation: str, sizes: dict[str, int]) -> bool:
    """Whether an obligation holds at these sizes; one that speaks of generated symbols is not held against them."""
    try:
        return bool(eval(obligation, {"__builtins__": {}, "min": min, "max": max}, dict(sizes)))
    except (NameError, ZeroDivisionError):
        return True


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
