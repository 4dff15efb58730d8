"""Weights of an IR that count along several axes: OpenVINO's twins of the models with grids, against numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import pytest
from conversion.sizes.test_grids import FOLLOWING, OF_LEVELS

import splitgraph

MODELS = {**FOLLOWING, **{f"levels: {name}": each for name, each in OF_LEVELS.items()}}
# OpenVINO merges what is multiplied in a row into one list, which counts in steps, or in another order.
MERGED = {"a list that is multiplied", "levels: behind nodes that hand them on"}
SIZES = [(6, 8), (4, 10), (12, 2)]


def twin(made: onnx.ModelProto, folder: Path) -> Path:
    onnx.save(made, folder / "m.onnx")
    ov.save_model(ov.convert_model(folder / "m.onnx"), folder / "m.xml", compress_to_fp16=False)
    return folder / "m.xml"


def asked(name: str) -> tuple[list[int | str], int]:
    """Return the sizes of x with names for the height and the width, and where the height stands."""
    shape: list[int | str] = [dim.dim_value for dim in MODELS[name][0].graph.input[0].type.tensor_type.shape.dim]
    at = 1 if name in FOLLOWING else 2
    shape[at : at + 2] = "H", "W"
    return shape, at


@pytest.mark.parametrize("name", [name for name in MODELS if name not in MERGED])
def test_a_grid_follows(name: str, tmp_path: Path) -> None:
    made, function = MODELS[name]
    shape, at = asked(name)
    splitgraph.reshape(twin(made, tmp_path), {"x": shape}).save(tmp_path / "after.xml")
    compiled = ov.Core().compile_model(tmp_path / "after.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    dtype = onnx.helper.tensor_dtype_to_np_dtype(made.graph.input[0].type.tensor_type.elem_type)
    for height, width in SIZES:
        sizes = [*shape[:at], height, width, *shape[at + 2 :]]
        x: Any = np.random.default_rng(0).integers(-9, 9, sizes).astype(dtype)
        np.testing.assert_array_equal(compiled({"x": x})[0], function(x))


@pytest.mark.parametrize("name", sorted(MERGED))
def test_what_openvino_has_merged_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(splitgraph.ConversionError, match="are not the same all along it"):
        splitgraph.reshape(twin(MODELS[name][0], tmp_path), {"x": asked(name)[0]})
