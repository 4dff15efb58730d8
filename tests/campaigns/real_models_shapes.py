"""Compares the inferred dimensions of one model with the shapes of a run in onnxruntime, at two sizes of its symbols.

    python tests/campaigns/real_models_shapes.py MODEL

Prints one JSON document: how many dimensions were compared, and those that are wrong.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import onnx
import onnxruntime

import splitgraph
from splitgraph.dim import Dim
from splitgraph.inference.analysis import Analysis
from splitgraph.verification.inputs.input_maker import InputMaker


def compare(path: str) -> dict[str, Any]:
    """The number of dimensions compared, and the wrong ones."""
    analysis = splitgraph.infer(path)
    compared, wrong = 0, list[str]()
    session, names = _session(path, analysis)
    maker = InputMaker(analysis, seed=1)
    sizes: list[Any] = []
    runs = 0
    for case in range(2):
        for attempt in range(6):
            feeds, chosen = maker.draw(case, attempt, sizes)
            try:
                outputs = session.run(names, dict(feeds))
            except Exception:  # onnxruntime's errors of a run have no common class
                continue
            sizes.append(chosen)
            runs += 1
            known = _symbols(analysis, feeds)
            for name, value in zip(names, outputs, strict=True):
                count, found = _compare(name, analysis, getattr(value, "shape", None), known)
                compared += count
                wrong += found
            break
    return {"status": "ok" if runs else "not run", "compared": compared, "wrong": sorted(set(wrong))[:10]}


def _session(path: str, analysis: Analysis) -> tuple[onnxruntime.InferenceSession, list[str]]:
    """The model with every tensor of the main graph as an output."""
    model = onnx.load(path)
    given = {value.name for value in (*model.graph.input, *model.graph.output)}
    made = {name for node in model.graph.node for name in node.output if name}
    for name, value in analysis.types.items():
        if name in made - given and value.kind == "tensor" and value.dtype is not None:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session, [value.name for value in session.get_outputs()]


def _symbols(analysis: Analysis, feeds: Any) -> dict[str, int]:
    """The sizes of symbols, as the inputs have them."""
    known: dict[str, int] = {}
    for name, array in feeds.items():
        value = analysis.types.get(name)
        for dim, size in zip((value.shape or ()) if value is not None else (), array.shape, strict=False):
            if isinstance(dim, Dim) and str(dim).isidentifier():
                known[str(dim)] = size
    return known


def _compare(name: str, analysis: Analysis, shape: Any, known: dict[str, int]) -> tuple[int, list[str]]:
    value = analysis.types.get(name)
    if value is None or value.kind != "tensor" or value.shape is None or shape is None:
        return 0, []
    if len(shape) != len(value.shape):
        return 1, [f"{name}: {value}, and {list(shape)} when run"]
    count, wrong = 0, list[str]()
    for dim, size in zip(value.shape, shape, strict=True):
        expected = _value(dim, known)
        if expected is None:
            continue
        count += 1
        if expected != size:
            wrong.append(f"{name}: {value}, and {list(shape)} when run with {known}")
    return count, wrong


def _value(dim: object, known: dict[str, int]) -> int | None:
    if isinstance(dim, int):
        return dim
    try:
        # The grammar of dimensions is Python's arithmetic.
        return int(eval(str(dim), {"__builtins__": {}, "min": min, "max": max}, known))
    except (NameError, SyntaxError, ZeroDivisionError):
        return None


if __name__ == "__main__":
    try:
        print(json.dumps(compare(sys.argv[1])))
    except Exception as error:  # whatever onnxruntime says of a model that it does not load
        print(json.dumps({"status": "not run", "detail": f"{type(error).__name__}: {error}"[:200]}))
