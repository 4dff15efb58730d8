"""The models in `models/` with the inputs that `models/index.json` gives them, or with random ones."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from .model_cases import ModelCase

FOLDER = Path(__file__).resolve().parents[2] / "models"


def project_models() -> Iterator[ModelCase]:
    """Each model that is valid, with one data set for each case of the index."""
    for row in json.loads((FOLDER / "index.json").read_text("utf-8")):
        if row["valid"]:
            model = onnx.load(FOLDER / row["file"])
            held = {tensor.name for tensor in model.graph.initializer}
            values = [value for value in model.graph.input if value.name not in held]
            inputs = [[_array(value, case, row["ranges"]) for value in values] for case in row["cases"]]
            yield ModelCase(row["file"], model, [(arrays, []) for arrays in inputs], rtol=1e-4, atol=1e-5)


def _array(value: onnx.ValueInfoProto, case: dict[str, Any], ranges: dict[str, list[int]]) -> np.ndarray:
    tensor = value.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if value.name in case["values"]:
        return np.asarray(case["values"][value.name], dtype)
    shape = [_size(dim, case["dims"]) for dim in tensor.shape.dim]
    draw = np.random.default_rng(zlib.crc32(value.name.encode()))
    if dtype.kind == "f":
        return draw.standard_normal(shape).astype(dtype)
    return draw.integers(*ranges[value.name], shape).astype(dtype)


def _size(dim: onnx.TensorShapeProto.Dimension, dims: dict[str, int]) -> int:
    """The size of a dimension: a number, or a sum of symbols."""
    return dim.dim_value or sum(dims[part] for part in dim.dim_param.split(" + ") if part)
