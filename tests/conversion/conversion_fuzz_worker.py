"""Converts and runs random graphs: `python conversion_fuzz_worker.py FIRST END NODES TARGET...`, a JSON line each.

A process of its own, with the generator of the inference tests, as onnxruntime ends the process on some models. A line
says how many conversions were equal and refused, and what was found wrong.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import numpy as np
import onnx
import random_operators
from executed_shapes import make_feeds
from random_graphs import bounded_run, random_model, session

import splitgraph
from splitgraph.conversion.opset import convert_opset

assert random_operators.FUNCTION_MAKERS


def main(first: int, end: int, nodes: int, targets: list[int]) -> None:
    """Check these seeds at these opsets."""
    for seed in range(first, end):
        print(json.dumps({"seed": seed, "state": "started"}), flush=True)
        print(json.dumps({"seed": seed, "state": "done", **check(seed, nodes, targets)}), flush=True)


def check(seed: int, nodes: int, targets: list[int]) -> dict[str, Any]:
    """One random model at each opset: converted and equal when run, or refused."""
    model, sizes, given = random_model(seed, nodes)
    analysis = splitgraph.infer(model)
    feeds = make_feeds(analysis.model, analysis, sizes, given, {}, seed)
    try:
        before = run(analysis.model, feeds)
    except Exception:
        # Other elements than those of the design may ask for sizes that do not fit; then there is nothing to compare.
        return {"ran": 0, "equal": 0, "refused": 0, "wrong": []}
    counts: Counter[str] = Counter()
    wrong = []
    for target in targets:
        try:
            converted = convert_opset(analysis.model, target).model
        except splitgraph.ConversionError:
            counts["refused"] += 1
            continue
        try:
            after = run(converted, feeds)
        except Exception as error:
            # onnxruntime has no error of its own: whatever it says, it ran the model before.
            wrong.append(f"to {target}: does not run: {str(error)[:300]}")
            continue
        counts["equal"] += 1
        if len(before) != len(after) or not all(map(is_equal, before, after)):
            wrong.append(f"to {target}: gives something else")
    return {"ran": 1, "equal": counts["equal"], "refused": counts["refused"], "wrong": wrong}


def run(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """What onnxruntime gives for every output."""
    with bounded_run():
        made = session(model)
        names = {value.name for value in made.get_inputs()}
        outputs: list[Any] = made.run(None, {name: value for name, value in feeds.items() if name in names})
    return outputs


def is_equal(one: Any, other: Any) -> bool:
    """Whether two results are the same up to rounding, relative to the largest number of each."""
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(is_equal, one, other))
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    finite = np.abs(one[np.isfinite(one)])
    largest = float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(one, other, rtol=1e-4, atol=1e-5 * max(1.0, largest), equal_nan=True))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), [int(target) for target in sys.argv[4:]])
