"""Runs models in one engine, as the campaign's child: `python tolerated_slips_worker.py ENGINE CASES RESULTS`.

CASES: pickled tuples of a name, a model as bytes, and inputs. Each result is a line of RESULTS: the name, and the
outputs or the error as a text. Names that RESULTS holds already are left out. A name is written before the engine gets
the model, so that a model that ends the process is known.
"""

from __future__ import annotations

import io
import json
import pickle
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

_MOST_SECONDS = 20

Run = Callable[[bytes, Mapping[str, Any]], list[Any]]


def onnxruntime(model: bytes, feeds: Mapping[str, Any]) -> list[Any]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(feeds))


def openvino(model: bytes, feeds: Mapping[str, Any]) -> list[Any]:
    import openvino as ov

    core = ov.Core()
    read = core.read_model(io.BytesIO(model))
    compiled = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    found = compiled({each: feeds[each.get_any_name()] for each in compiled.inputs})
    return [found[each] for each in compiled.outputs]


def reference(model: bytes, feeds: Mapping[str, Any]) -> list[Any]:
    import onnx
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(onnx.load_from_string(model)).run(None, dict(feeds))


def arbiter(model: bytes, feeds: Mapping[str, Any]) -> list[Any]:
    """The reference evaluator as `verify` asks it: with the kernels of splitgraph, without its table."""
    import onnx

    from splitgraph.verification.reference import evaluator, ignored

    ignored.IGNORED = {}
    return evaluator.run(evaluator.load(onnx.load_from_string(model)), feeds)


ENGINES: dict[str, Run] = {"onnxruntime": onnxruntime, "openvino": openvino, "reference": reference}
_ALL = {**ENGINES, "arbiter": arbiter}


def outcome(run: Run, model: bytes, feeds: Mapping[str, Any]) -> object:
    """The element type, shape and elements of each output, or the error as a text."""
    try:
        return [_told(each) for each in run(model, feeds)]
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]


def _told(held: Any) -> Any:
    if isinstance(held, list):
        return [_told(each) for each in held]
    array = np.asarray(held)
    items = array.reshape(-1)[:500]
    spelled = [str(item) for item in items] if array.dtype.kind in "OUSc" else items.astype(np.float64).tolist()
    return [str(array.dtype), list(array.shape), spelled]


def main() -> None:
    """Run every model that has no result yet."""
    engine, cases, results = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    done = {json.loads(line)[0] for line in results.read_text().splitlines()} if results.exists() else set()
    with results.open("a") as out:
        for name, model, feeds in pickle.loads(cases.read_bytes()):
            if name in done:
                continue
            print(json.dumps([name, "ended the process"]), file=out, flush=True)
            # A loop without an end is ended by the operating system.
            signal.alarm(_MOST_SECONDS)
            print(json.dumps([name, outcome(_ALL[engine], model, feeds)]), file=out, flush=True)


if __name__ == "__main__":
    main()
