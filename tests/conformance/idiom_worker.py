"""Converts models of exporter idioms, and runs each result: the process of `test_exporter_idioms.py` and its campaign.

    python tests/conformance/idiom_worker.py FIRST END

Prints a line of JSON before and after each seed, so the parent knows at which seed onnxruntime ended the process.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from exporter_idioms import IdiomModel, idiom_model

import splitgraph

Step = Callable[[onnx.ModelProto], splitgraph.Rewrite]


def form(to: str, **options: Any) -> Step:
    return lambda model: splitgraph.convert(model, to, **options)  # type: ignore[call-overload]


def opset(version: int) -> Step:
    return lambda model: splitgraph.convert(model, opset=version)


# Each route is there and back: the model after every step is run.
ROUTES: Mapping[str, Sequence[Step]] = {
    "split, slice, split": (form("split"), form("slice"), form("split")),
    "slice, split": (form("slice"), form("split")),
    "variadic-split, split": (form("variadic-split"), form("split")),
    "split, variadic-split, split": (form("split"), form("variadic-split"), form("split")),
    "explicit lengths": (form("split", explicit_lengths=True), form("variadic-split")),
    "up to 21, split, down to 13": (opset(21), form("split"), opset(13)),
    "split, down to 11, up to 18": (form("split"), opset(11), opset(18)),
    "down to 11, split": (opset(11), form("split")),
}


def run_at(model: onnx.ModelProto, idioms: IdiomModel, size: int) -> list[Any] | str:
    """The outputs at a size of the dynamic axis, or the engine's error."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return list(session.run(None, idioms.feeds(size)))
    except Exception as error:
        return str(error)


def same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Are the outputs equal, bit for bit?"""
    return len(one) == len(other) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(one, other, strict=True)
    )


def faults(before: onnx.ModelProto, after: onnx.ModelProto, wanted: Mapping[int, Any], idioms: IdiomModel) -> list[str]:
    """What is wrong with the result of a step: the checker, a new error of inference, or other outputs."""
    found = []
    try:
        onnx.checker.check_model(after)
    except onnx.checker.ValidationError as error:
        found.append(f"checker: {error}")
    errors = [[d.code for d in splitgraph.infer(m).diagnostics if d.severity == "error"] for m in (before, after)]
    if not errors[0] and errors[1]:
        found.append(f"inference: {errors[1]}")
    for size, outputs in wanted.items():
        got = run_at(after, idioms, size)
        if isinstance(got, str):
            found.append(f"at {size}: {got}")
        elif not same(outputs, got):
            found.append(f"at {size}: other outputs")
    return found


def check(seed: int, routes: int = 1) -> dict[str, Any]:
    """Take the model of a seed through some routes; say what ran, what was refused and what is wrong."""
    idioms = idiom_model(seed)
    answers = {size: run_at(idioms.proto, idioms, size) for size in idioms.sizes}
    wanted = {size: answer for size, answer in answers.items() if not isinstance(answer, str)}
    result: dict[str, Any] = {"ran": bool(wanted), "equal": 0, "refused": [], "wrong": [], "joined": 0}
    if not wanted:
        return result
    for name in random.Random(seed).sample(sorted(ROUTES), routes):
        model = idioms.proto
        for number, step in enumerate(ROUTES[name]):
            try:
                rewrite = step(model)
            except splitgraph.ConversionError as error:
                result["refused"].append(" ".join(sorted({each.code for each in error.diagnostics})))
                break
            found = faults(model, rewrite.model, wanted, idioms)
            result["wrong"] += [f"{idioms.place} {idioms.idioms}: {name}, step {number}: {text}" for text in found]
            if found:
                break
            result["joined"] += any(change.before.startswith("Slice") for change in rewrite.changes)
            result["equal"] += 1
            model = rewrite.model
    return result


def main() -> None:
    first, end = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, end):
        print(json.dumps({"seed": seed, "state": "begun"}), flush=True)
        print(json.dumps({"seed": seed, "state": "done", **check(seed)}), flush=True)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
