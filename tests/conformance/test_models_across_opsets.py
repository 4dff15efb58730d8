"""Every model of `models/` taken to every other opset: it gives what the original gives, or it is refused with a reason
for each blocker.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from known_opsets import known

import splitgraph

from .engine_runs import assert_close, outputs_of

FOLDER = Path(__file__).resolve().parents[2] / "models"
ROWS = {row["file"]: row for row in json.loads((FOLDER / "index.json").read_text("utf-8")) if row["valid"]}
OPSETS = known([9, 11, 13, 17, 18, 21, 26])
# Going up, no model may be refused but this one, whose lengths Split-1 takes from an input at run time.
REFUSED_UPWARD = {"split1_input.onnx"}


def pairs() -> list[tuple[str, int]]:
    """Each model with each opset that it is not at."""
    return [(file, opset) for file, row in ROWS.items() for opset in OPSETS if row["opset"][""] != opset]


def feeds_of(model: onnx.ModelProto, row: dict[str, Any]) -> Iterator[dict[str, np.ndarray]]:
    """Inputs for each case of the index: what it gives, and random ones for the rest."""
    held = {tensor.name for tensor in model.graph.initializer}
    values = [value for value in model.graph.input if value.name not in held]
    for case in row["cases"]:
        yield {value.name: _array(value, case, row["ranges"]) for value in values}


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
    """A dimension's size: a number, or a sum of symbols."""
    return dim.dim_value or sum(dims[part] for part in dim.dim_param.split(" + ") if part)


@cache
def original(file: str) -> tuple[onnx.ModelProto, list[dict[str, np.ndarray]], list[list[Any]]]:
    """A model with its inputs and what it gives on them."""
    model = onnx.load(FOLDER / file)
    feeds = list(feeds_of(model, ROWS[file]))
    return model, feeds, [outputs_of(model, given) for given in feeds]


def check(file: str, target: int) -> bool:
    """Whether the model goes to the target; fails where it does so wrongly, or stays without a reason."""
    model, feeds, expected = original(file)
    upward = target > ROWS[file]["opset"][""]
    try:
        converted = (splitgraph.upgrade if upward else splitgraph.downgrade)(model, target).model
    except splitgraph.ConversionError as refusal:
        assert refusal.diagnostics
        assert all(found.code and found.message and found.location for found in refusal.diagnostics)
        assert not upward or file in REFUSED_UPWARD, refusal
        return False
    onnx.checker.check_model(converted, full_check=True)
    assert list(converted.graph.input) == list(model.graph.input)
    assert list(converted.graph.output) == list(model.graph.output)
    for given, want in zip(feeds, expected, strict=True):
        assert_close(want, outputs_of(converted, given), rtol=1e-4, atol=1e-5)
    return True


@pytest.mark.parametrize(("file", "target"), random.Random(4).sample(pairs(), 60))
def test_selection(file: str, target: int) -> None:
    check(file, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", OPSETS)
def test_all(target: int) -> None:
    files = [file for file, opset in pairs() if opset == target]
    reached = {file for file in files if check(file, target)}
    print(f"opset {target}: {len(reached)} of {len(files)} models reached; not: {sorted(set(files) - reached)}")
