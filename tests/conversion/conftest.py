"""Where some tests are left out: what needs OpenVINO where it is not installed, as it is in CI's main environment; and
what older releases of onnx and onnxruntime judge wrongly or do not have.
"""

from __future__ import annotations

import importlib.util

import onnx
import pytest
from installed_engines import onnxruntime_can_judge

of_openvino = [
    "openvino_ir/test_convert_in_openvino.py",
    "sizes/test_constant_outputs_ir.py",
    "sizes/test_reshape_ir.py",
    "sizes/test_values_ir.py",
    "sizes/test_grids_ir.py",
    "sizes/test_windows_ir.py",
]
collect_ignore = [] if importlib.util.find_spec("openvino") else of_openvino
if onnx.defs.onnx_opset_version() < 28:
    # The evaluator of onnx 1.20 computes batch-first recurrent layers and quantization by 16-bit scales wrongly.
    collect_ignore += ["operators/test_recurrence.py", "operators/test_quantization.py"]
    # These are about operators of opsets 26 to 28.
    collect_ignore += [
        "operators/test_accumulation.py",
        "operators/test_integers.py",
        "operators/test_attention.py",
    ]
if not onnxruntime_can_judge():
    collect_ignore += ["test_opset_random_graphs.py"]
    collect_ignore += [
        f"{module}.py"
        for module in (
            "operators/test_accumulation",
            "operators/test_axes",
            "operators/test_bit_casts",
            "operators/test_blocks",
            "operators/test_constants",
            "operators/test_fourier",
            "operators/test_indexing",
            "operators/test_normalization_of_layers",
            "operators/test_sliding_windows",
            "operators/test_quantization",
            "notation/test_resampling",
            "operators/test_resizing",
        )
    ]


@pytest.fixture
def functions_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies of functions are converted as written, or not at all: what refuses them is what a test is about."""

    def refuse(_: onnx.ModelProto) -> onnx.ModelProto:
        raise ValueError("functions stay")

    monkeypatch.setattr("splitgraph.conversion.opset.inline_functions", refuse)
