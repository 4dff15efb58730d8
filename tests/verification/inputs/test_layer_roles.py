"""Inputs of OpenVINO IR: what lies beyond the data OpenVINO reads all the same, so that nothing does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.models.model_pair import ComparedModel, read_model_pair

from ..layer_ir import of_layer

Fits = Callable[[Any, Any], bool]


def draws(folder: Path, *layer: Any) -> list[dict[str, Any]]:
    model = of_layer(folder, *layer)
    subjects = read_model_pair(model, model)
    assert isinstance(subjects[0], ComparedModel)
    maker = InputMaker(subjects[0].analysis)
    return [maker.draw(case, attempt)[0] for case in range(3) for attempt in range(8)]


def within(*bounds: int) -> Fits:
    """Tuples of positions in the last dimension, each below its bound."""
    return lambda _, p: bool(((p >= 0) & (p < np.array(bounds))).all())


def differ(axis: int) -> Fits:
    """Positions below every dimension, no two of them the same along an axis where there are enough."""

    def fits(x: Any, p: Any) -> bool:
        ordered = np.sort(p, axis)
        twice = (np.diff(ordered, axis=axis) == 0).any() and p.shape[axis] <= min(x.shape)
        return bool(((p >= 0) & (p < min(x.shape))).all() and not twice)

    return fits


def is_reshape(x: Any, p: Any) -> bool:
    return -1 in p or int(np.prod(p)) == x.size


X, F = ("f32", "4,5"), "f32"
LAYERS: dict[str, tuple[tuple[Any, ...], Fits]] = {
    "GatherND": (("GatherND", "opset8", [X, ("i64", "?,2")], 1, 'batch_dims="0"'), within(4, 5)),
    "GatherND of rows": (("GatherND", "opset8", [X, ("i64", "?,1")], 2, 'batch_dims="0"'), within(4)),
    "GatherND of batches": (("GatherND", "opset8", [X, ("i64", "4,?,1")], 2, 'batch_dims="1"'), within(5)),
    "GatherElements": (("GatherElements", "opset6", [X, ("i64", "4,?")], 2, 'axis="1"'), within(5)),
    "GatherElements from the end": (("GatherElements", "opset6", [X, ("i64", "?,5")], 2, 'axis="-2"'), within(4)),
    "Gather": (("Gather", "opset8", [X, ("i64", "?"), ("i64", "")], 2, 'batch_dims="0"'), within(4)),
    "ScatterElementsUpdate": (
        ("ScatterElementsUpdate", "opset3", [X, ("i64", "4,2"), (F, "4,2"), ("i64", "")], 2),
        differ(1),
    ),
    "ScatterUpdate": (("ScatterUpdate", "opset3", [X, ("i64", "3"), (F, "3,5"), ("i64", "")], 2), differ(0)),
    "ScatterNDUpdate": (
        ("ScatterNDUpdate", "opset4", [X, ("i64", "6,2"), (F, "6")], 2),
        lambda x, p: within(4, 5)(x, p) and len({tuple(row) for row in p.tolist()}) == 6,
    ),
    "EmbeddingBagPackedSum": (("EmbeddingBagPackedSum", "opset3", [X, ("i64", "?,?")], 2), within(4)),
    "Reshape": (("Reshape", "opset1", [X, ("i64", "2")], 2, 'special_zero="false"'), is_reshape),
    "Reshape to another rank": (("Reshape", "opset1", [X, ("i64", "3")], 3, 'special_zero="true"'), is_reshape),
    "Broadcast": (
        ("Broadcast", "opset3", [("f32", "1,5"), ("i64", "2")], 2, 'mode="numpy"'),
        lambda x, p: np.broadcast_shapes(x.shape, tuple(p)) == tuple(p),
    ),
    "Transpose": (("Transpose", "opset1", [X, ("i64", "2")], 2), lambda _, p: sorted(p) == [0, 1]),
    "ReduceSum": (("ReduceSum", "opset1", [X, ("i64", "1")], 1, 'keep_dims="false"'), within(2)),
    "TopK": (
        ("TopK", "opset11", [X, ("i64", "")], 2, 'axis="0" mode="max" sort="value" index_element_type="i64"'),
        lambda _, p: 1 <= p <= 4,
    ),
    "ReverseSequence": (
        ("ReverseSequence", "opset1", [X, ("i64", "4")], 2, 'batch_axis="0" seq_axis="1"'),
        lambda _, p: ((p >= 1) & (p <= 5)).all(),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_numbers_fit_what_the_layer_reads_them_for(name: str, tmp_path: Path) -> None:
    layer, fits = LAYERS[name]
    assert all(fits(case["p0"], case["p1"]) for case in draws(tmp_path, *layer))
