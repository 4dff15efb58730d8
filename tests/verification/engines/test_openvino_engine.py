"""OpenVINO's CPU plugin as an engine, where it is installed."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
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


@pytest.mark.sample(21)
@pytest.mark.parametrize("shape", ["3", "2,3", "2,0"])
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("bf16", np.array([1, -2, 0.5, 0, 7, -1], ml_dtypes.bfloat16)),
        ("f8e4m3", np.array([1, -2, 0.5, 0, 7, -1], ml_dtypes.float8_e4m3fn)),
        ("f8e5m2", np.array([1, -2, 0.5, 0, 7, -1], ml_dtypes.float8_e5m2)),
        ("f8e8m0", np.array([1, 2, 0.5, 4, 8, 1], ml_dtypes.float8_e8m0fnu)),
        ("f4e2m1", np.array([1, -2, 0.5, 0, 6, -1], ml_dtypes.float4_e2m1fn)),
        ("i4", np.array([1, -2, 7, -8, 0, -1], ml_dtypes.int4)),
        ("u4", np.array([1, 2, 15, 8, 0, 3], ml_dtypes.uint4)),
    ],
)
def test_element_types_that_numpy_lacks_come_back_as_they_were(
    name: str, values: np.ndarray, shape: str, tmp_path: Path
) -> None:
    sizes = [int(size) for size in shape.split(",")]
    port = f'<port id="0" precision="{name.upper()}">{"".join(f"<dim>{size}</dim>" for size in sizes)}</port>'
    named = '<port names="x"'
    (tmp_path / "model.xml").write_text(
        '<net name="m" version="11"><layers>'
        f'<layer id="0" name="x" type="Parameter" version="opset1"><data shape="{shape}" element_type="{name}"/>'
        f"<output>{port.replace('<port', named)}</output></layer>"
        f'<layer id="1" name="end" type="Result" version="opset1"><input>{port}</input></layer>'
        '</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>'
    )
    (tmp_path / "model.bin").write_bytes(b"")
    run, _ = load_ir(tmp_path / "model.xml")
    given = values[: np.prod(sizes)].reshape(sizes)
    (found,) = run({"x": given})
    assert (found.dtype, found.shape, found.tolist()) == (given.dtype, given.shape, given.tolist())
