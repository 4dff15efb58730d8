"""The models of `models/` as cases: with inputs of the sizes and values of its index, and what the outputs must be.

The installed onnxruntime says what the outputs must be, or onnx's reference evaluator where that does not run a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from cases import write_case
from onnx import helper

MODELS = Path(__file__).parents[2] / "models"
# Of the names of these cases, beside the forms.
PREFIX = "model_"


def write_models(folder: Path) -> int:
    """Write the valid ONNX models whose outputs are tensors and known; returns how many."""
    count = 0
    for entry in json.loads((MODELS / "index.json").read_text(encoding="utf-8")):
        if not entry["valid"] or not entry["file"].endswith(".onnx"):
            continue
        model = onnx.load(MODELS / entry["file"])
        inputs = dict(_inputs(model, entry["cases"][0] if entry["cases"] else {"dims": {}, "values": {}}))
        expected = _expected(model, inputs)
        if expected is not None:
            name = PREFIX + entry["file"].removesuffix(".onnx")
            write_case(folder, name, model.SerializeToString(), inputs, expected)
            count += 1
    return count


def _inputs(model: onnx.ModelProto, case: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Inputs of the sizes and values that the index tells; random ones where it tells none."""
    random = np.random.default_rng(7)
    initializers = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in initializers:
            continue
        kind = value.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if value.name in case.get("values", {}):
            yield value.name, np.array(case["values"][value.name], dtype)
            continue
        shape = [dim.dim_value or case["dims"].get(dim.dim_param, 2) for dim in kind.shape.dim]
        if dtype.kind in "iub":
            yield value.name, random.integers(0, 2, shape).astype(dtype)
        else:
            yield value.name, random.standard_normal(shape).astype(dtype)


def _expected(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the outputs must be; None where nothing here runs the model, or an output is no tensor."""
    import onnxruntime
    from onnx.reference import ReferenceEvaluator

    names = [value.name for value in model.graph.output]
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        found = onnxruntime.InferenceSession(model.SerializeToString(), options).run(names, dict(inputs))
    except Exception:  # whatever a runtime raises, the other one is asked
        try:
            found = ReferenceEvaluator(model).run(names, dict(inputs))
        except Exception as error:  # such a model is left out, and told of
            print(f"{model.graph.name} is left out: nothing here runs it ({error})")
            return None
    if any(not isinstance(each, np.ndarray) for each in found):
        return None
    return dict(zip(names, found, strict=True))
