"""Runs the models of `lenient_models` in one engine, as the tests' child: `python lenient_worker.py ENGINE`.

Prints, as JSON, for each case the results of both models: element type, shape and elements, or the error as a text.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping

import numpy as np
import onnx
from lenient_models import cases, doubled


def onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(["y"], dict(feeds))[0]


def openvino(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    import openvino as ov

    core = ov.Core()
    read = core.read_model(io.BytesIO(model.SerializeToString()))
    compiled = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return compiled({each: feeds[each.get_any_name()] for each in compiled.inputs})[compiled.output("y")]


def reference(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    from onnx.reference import ReferenceEvaluator

    return np.asarray(ReferenceEvaluator(model).run(["y"], dict(feeds))[0])


ENGINES: dict[str, Callable[[onnx.ModelProto, Mapping[str, np.ndarray]], np.ndarray]] = {
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "reference": reference,
}


def result(engine: str, model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> object:
    given = {value.name: feeds[value.name] for value in model.graph.input}
    try:
        found = ENGINES[engine](model, given)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return [str(found.dtype), list(found.shape), found.astype(np.float64).reshape(-1).tolist()]


if __name__ == "__main__":
    told = {case.name: [result(sys.argv[1], each, case.feeds) for each in case[1:3]] for case in (*cases(), doubled())}
    print(json.dumps(told))
