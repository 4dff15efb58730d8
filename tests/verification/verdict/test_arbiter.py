"""onnxruntime's own deviations: the reference evaluator is asked before rewritten nodes are called different."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from verifying import verify_models

from splitgraph import convert
from splitgraph.verification.engines import onnxruntime_engine

from ..small_models import parsed

F = np.float32


def attention(mode: int) -> onnx.ModelProto:
    signature = (
        "float[B, 2, 5, 4] q, float[B, 2, 6, 4] k, float[B, 2, 6, 4] v, bool[5, 6] m "
        "=> float[B, 2, 5, 4] y, float[B, 2, 5, 6] qk"
    )
    return parsed(signature, f"y, , , qk = Attention<qk_matmul_output_mode = {mode}>(q, k, v, m)", opset=23)


def normalised(scale: float = 1.0) -> onnx.ModelProto:
    """Inputs far beyond 1e38 in the LayerNormalization if the scale is large."""
    body = "b = Mul(x, c) y, mean = LayerNormalization(b, s)"
    return parsed("float[N, 8] x => float[N, 8] y, float[N, 1] mean", body, opset=17, s=np.ones(8, F), c=F(scale))


@pytest.mark.usefixtures("in_process")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_attention_with_a_mask_and_the_product(mode: int) -> None:
    found = convert(attention(mode), opset=22, verify=True).verification
    assert found is not None
    assert found.verdict == "equal"
    if found.engine == "reference":  # a later onnxruntime may compute it right
        told = found.diagnostics[0].message
        blamed = "the engine computes the nodes of the first model differently from the reference evaluator"
        assert f"main/Attention#0: {blamed}" in told
        assert "in which both are equal; qk: " in told


@pytest.mark.usefixtures("in_process")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
def test_values_that_overflow_are_no_difference() -> None:
    plain = convert(normalised(), opset=16, verify=True).verification
    assert plain is not None
    assert (plain.verdict, plain.engine) == ("equal", "onnxruntime")
    large = convert(normalised(1e38), opset=16, verify=True).verification
    assert large is not None
    assert large.verdict == "equal"
    given: dict[str, Any] = {"x": np.full((2, 8), 3e38, F)}
    # Both give NaN there, and nothing else is asked for.
    overflown = convert(normalised(), opset=16, verify=True, inputs=given).verification
    assert overflown is not None
    assert overflown.verdict == "equal"


@pytest.mark.usefixtures("in_process")
def test_a_wrong_rewrite_is_different_in_both_engines() -> None:
    before = normalised()
    after = convert(before, opset=16).model
    for tensor in after.graph.initializer:
        if tensor.name == "s":
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.full(8, 1.01, F), "s"))
    found = verify_models(before, after)
    assert (found.verdict, found.engine) == ("different", "onnxruntime")


def labelled(opset: int) -> onnx.ModelProto:
    return parsed("uint8[N] x => float[N] y", "y = DequantizeLinear(x, s)", opset=opset, s=F(0.5))


@pytest.mark.usefixtures("in_process")
def test_what_was_run_as_another_opset_is_said() -> None:
    newest = onnxruntime_engine._NEWEST_OPSET
    for opset in (newest, newest - 1, 13):
        assert verify_models(labelled(opset), labelled(opset)).diagnostics == ()
    found = verify_models(labelled(newest - 1), labelled(newest + 2))
    (told,) = found.diagnostics
    assert (told.code, told.severity) == ("SG511", "info")
    assert told.message.startswith("the second model as written was not run: onnxruntime ")
    assert told.message.endswith(f"; it ran as opset {newest}, at which its operators mean the same")
    assert (found.verdict, found.warnings) == ("equal", ())
    both = verify_models(labelled(newest + 2), labelled(newest + 2))
    assert [each.code for each in both.diagnostics] == ["SG511", "SG511"]
    alone = verify_models(labelled(newest + 2), labelled(newest + 2), engine="reference")
    assert "SG511" not in [each.code for each in alone.diagnostics]
