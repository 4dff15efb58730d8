"""OpenVINO's CPU plugin as an engine, where it is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from verifying import verify_models

from splitgraph.verification.engines.openvino_engine import load_ir, load_onnx

from ..inputs.test_layer_roles import LAYERS
from ..layer_ir import of_layer
from ..small_models import graph_of, model_of, node, value

EQUAL_TO_THEMSELVES = ["GatherND", "GatherElements", "ScatterNDUpdate", "Reshape", "Broadcast", "TopK"]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", EQUAL_TO_THEMSELVES)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_model_is_equal_to_itself(name: str, seed: int, tmp_path: Path) -> None:
    model = of_layer(tmp_path, *LAYERS[name][0])
    found = verify_models(model, model, seed=seed)
    assert (found.verdict, found.cases, found.engine) == ("equal", 3, "openvino")


def test_what_was_refused_is_refused_again(tmp_path: Path) -> None:
    """OpenVINO itself gives the second time what it gave before."""
    of_layer(tmp_path, *LAYERS["Reshape"][0])
    run, _ = load_ir(tmp_path / "model.xml")
    x, right, wrong = np.zeros((4, 5), np.float32), np.array([2, 10]), np.array([3, 7])
    assert run({"p0": x, "p1": right})[0].shape == (2, 10)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="conflicts with the reshape pattern"):
            run({"p0": x, "p1": wrong})
    assert run({"p0": x, "p1": right})[0].shape == (2, 10)


def test_a_loop_that_does_not_run_gives_nothing_of_what_was_run_before(tmp_path: Path) -> None:
    nodes = [node("Identity", ["alive"], ["alive_out"]), node("Neg", ["s"], ["s_out"]), node("Abs", ["s"], ["each"])]
    body = graph_of(
        nodes,
        [value("i", (), onnx.TensorProto.INT64), value("alive", (), onnx.TensorProto.BOOL), value("s", (2,))],
        [value("alive_out", (), onnx.TensorProto.BOOL), value("s_out", (2,)), value("each", (2,))],
    )
    loop = node("Loop", ["n", "", "x"], ["y", "all"], body=body)
    inputs = [value("n", (), onnx.TensorProto.INT64), value("x", (2,))]
    onnx.save(model_of([loop], inputs, [value("y", (2,)), value("all", (None, 2))]), tmp_path / "loop.onnx")
    run, _ = load_onnx(tmp_path / "loop.onnx")
    x = np.ones(2, np.float32)
    assert [run({"n": np.array(times), "x": x})[1].shape[0] for times in (2, 0, 1, 0)] == [2, 0, 1, 0]
