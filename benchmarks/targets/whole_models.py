"""Whole models as cases: those of `models/` with inputs of the sizes and values of its index, and any other files.

    python benchmarks/targets/whole_models.py FOLDER MODEL...      (writes the cases of these files into the folder)

The installed onnxruntime says what the outputs must be, or onnx's reference evaluator where that does not run a model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from cases import write_case
from onnx import helper

import splitgraph
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.inputs.model_inputs import InputError

MODELS = Path(__file__).parents[2] / "models"
# Of the names of these cases, beside the forms.
PREFIX, REAL_PREFIX, OPERATOR_PREFIX = "model_", "real_", "node_"
_MOST_ATTEMPTS = 6


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


def write_files(folder: Path, paths: Iterable[Path]) -> int:
    """Write model files as cases, with drawn inputs; returns how many. A model that nothing here runs, whose weights
    are elsewhere, or whose results are not numbers, is left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for path in paths:
        drawn = _drawn(path)
        if drawn is None:
            print(f"{path.name} is left out: nothing here runs it")
            continue
        write_case(folder, f"{REAL_PREFIX}{path.stem}", path.read_bytes(), *drawn)
        count += 1
    return count


def _drawn(path: Path) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Inputs with which onnxruntime runs a model, and its outputs."""
    try:
        model = onnx.load(path)
        maker = InputMaker(splitgraph.infer(path))
    except (OSError, ValueError, onnx.checker.ValidationError, splitgraph.SplitgraphError):
        return None
    for attempt in range(_MOST_ATTEMPTS):
        try:
            inputs, _ = maker.draw(0, attempt)
        except (InputError, ValueError, ArithmeticError, IndexError):
            continue
        if any(not isinstance(each, np.ndarray) for each in inputs.values()):
            return None
        outputs = _expected(model, inputs)
        if outputs and all(_is_finite(each) for each in outputs.values()):
            return inputs, outputs
    return None


def _is_finite(array: Any) -> bool:
    return bool(array.dtype.kind not in "fc" or np.all(np.isfinite(array)))


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
            print(f"{model.graph.name} is left out: nothing here runs it ({str(error)[:100]})")
            return None
    if any(not isinstance(each, np.ndarray) for each in found):
        return None
    return dict(zip(names, found, strict=True))


if __name__ == "__main__":
    print(f"{write_files(Path(sys.argv[1]), map(Path, sys.argv[2:]))} cases in {sys.argv[1]}")
