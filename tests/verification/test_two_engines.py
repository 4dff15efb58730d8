"""ONNX in onnxruntime against OpenVINO's own IR of it in OpenVINO."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
from verifying import verify_models

from splitgraph.formats import open_model
from splitgraph.verification.verification import Verification

from .small_models import parsed

F = np.float32
WEIGHTS = np.random.default_rng(0).standard_normal((700, 800)).astype(F)


def compared(
    model: onnx.ModelProto, tmp_path: Path, *, halves: bool = False, other: onnx.ModelProto | None = None
) -> Verification:
    """Verify a model against the IR that OpenVINO writes of it, or of another model."""
    onnx.save(other or model, tmp_path / "m.onnx")
    openvino.save_model(openvino.convert_model(tmp_path / "m.onnx"), tmp_path / "m.xml", compress_to_fp16=halves)
    return verify_models(model, open_model(tmp_path / "m.xml").content)


UNLIKE = {
    "Relu beside IsNaN": ("float[N, 4] x => float[N, 4] y, bool[N, 4] z", "y = Relu(x) z = IsNaN(x)"),
    "Softmax beside IsInf": ("float[N, 4] x => float[N, 4] y, bool[N, 4] z", "y = Softmax(x) z = IsInf(x)"),
    "ReduceMax beside IsNaN": (
        "float[N, 4] x => float[4] y, bool[N, 4] z",
        "y = ReduceMax<keepdims = 0>(x, a) z = IsNaN(x)",
    ),
    "a dead Relu": ("float[N, 4] x => float[N, 4] y", "d = Relu(x) y = Softmax(x)"),
    "Clip beside IsNaN": ("float[N, 4] x => float[N, 4] y, bool[N, 4] z", "y = Clip(x, c) z = IsNaN(x)"),
    "Max beside IsNaN": ("float[N, 4] x => float[N, 4] y, bool[N, 4] z", "y = Max(x, c) z = IsNaN(x)"),
    "logarithms": ("float[N, 4] x => float[N, 4] y", "l = Log(x) y = Relu(l)"),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", UNLIKE)
def test_values_that_are_not_finite_decide_nothing(name: str, tmp_path: Path) -> None:
    model = parsed(*UNLIKE[name], opset=20, a=np.array([0]), c=F(0.25))
    found = compared(model, tmp_path)
    assert found.verdict == "equal", found


@pytest.mark.usefixtures("in_process")
def test_finite_values_decide(tmp_path: Path) -> None:
    one = parsed("float[N, 4] x => float[N, 4] y, bool[N, 4] z", "y = Relu(x) z = IsNaN(x)", opset=20)
    other = parsed("float[N, 4] x => float[N, 4] y, bool[N, 4] z", "y = Abs(x) z = IsNaN(x)", opset=20)
    assert compared(one, tmp_path, other=other).verdict == "different"


HALVES = {
    "a product": ("float[N, 700] x => float[N, 800] y", "y = MatMul(x, w)"),
    "a constant node": (
        "float[N, 3] x => float[N, 3] y",
        "c = Constant<value = float[3] {0.1, 0.2, 0.3}>() y = Mul(x, c)",
    ),
    "a split behind two products": (
        "float[N, 700] x => float[N, 4] y, float[N, 796] z",
        "m = MatMul(x, w) r = Relu(m) e = Mul(r, b) y, z = Split<axis = 1>(e, l)",
    ),
    "numbers beyond float16": ("float[N, 3] x => float[N, 3] y", "a = Mul(x, large) y = Mul(a, tiny)"),
    "a convolution": ("float[N, 3, 9, 9] x => float[N, 8, 7, 7] y", "y = Conv(x, k)"),
}
CONSTANTS = {
    "w": WEIGHTS,
    "b": WEIGHTS[0],
    "l": np.array([4, 796]),
    "large": F([1e6, 2e6, 3e6]),
    "tiny": F([1e-9, 2e-9, 3e-9]),
    "k": WEIGHTS[:8, :27].reshape(8, 3, 3, 3),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", HALVES)
def test_an_ir_with_float16_weights(name: str, tmp_path: Path) -> None:
    model = parsed(*HALVES[name], **{key: each for key, each in CONSTANTS.items() if key in HALVES[name][1]})
    found = compared(model, tmp_path, halves=True)
    assert found.verdict == "equal", found
    told = [each.message for each in found.diagnostics if each.code == "SG511"]
    is_compressed = "decompression" in (tmp_path / "m.xml").read_text("utf-8")
    assert told == (
        ["the second model stores its weights as float16, so those of the first one were rounded to float16"]
        if is_compressed
        else []
    )


@pytest.mark.usefixtures("in_process")
def test_other_float16_weights_are_different(tmp_path: Path) -> None:
    one, other = (parsed(*HALVES["a product"], w=weights) for weights in (WEIGHTS, WEIGHTS * F(1.01)))
    assert compared(one, tmp_path, halves=True, other=other).verdict == "different"
    plain = compared(one, tmp_path)
    assert (plain.verdict, plain.diagnostics) == ("equal", ())


@pytest.mark.usefixtures("in_process")
def test_two_irs_of_which_one_has_float16_weights(tmp_path: Path) -> None:
    onnx.save(parsed(*HALVES["a product"], w=WEIGHTS), tmp_path / "m.onnx")
    model = openvino.convert_model(tmp_path / "m.onnx")
    found = []
    for halves in (False, True):
        openvino.save_model(model, tmp_path / f"{halves}.xml", compress_to_fp16=halves)
        found.append(open_model(tmp_path / f"{halves}.xml").content)
    assert verify_models(*found).verdict == "equal"


SILENT = {
    "NaN": ("float[N, 4] x => float[N, 4] y", "a = Abs(x) n = Neg(a) k = Sub(n, c) y = Log(k)", "SG506"),
    "saturation": ("float[N, 4] x => float[N, 4] y", "a = Abs(x) k = Mul(a, d) l = Add(k, d) y = Tanh(l)", "SG506"),
    "one of two": ("float[N, 4] x => float[N, 4] y, float[N, 4] z", "z = Neg(x) k = Sub(x, x) y = Abs(k)", "SG507"),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", SILENT)
def test_an_ir_only_runs_as_a_whole_so_its_outputs_must_show_something(name: str, tmp_path: Path) -> None:
    signature, body, code = SILENT[name]
    found = compared(parsed(signature, body, c=F(1), d=F(100)), tmp_path)
    assert (found.verdict, found.regions) == ("not-run" if code == "SG506" else "equal", ())
    assert [each.code for each in found.warnings] == [code]
