"""Where some tests are left out: what needs OpenVINO where it is not installed, as it is in CI's main environment; and
what is judged by the evaluator of onnx or by onnxruntime, where an older release computes old operators wrongly.
"""

from __future__ import annotations

import importlib.util

import onnx
from command_line.conftest import run  # noqa: F401  # the command line in this process
from installed_engines import onnxruntime_can_judge

# Made or judged by OpenVINO.
OPENVINO = ["test_openvino_frontend.py", "test_every_source.py"]
collect_ignore = [] if importlib.util.find_spec("openvino") else OPENVINO
if onnx.defs.onnx_opset_version() < 28:
    collect_ignore += ["test_old_models.py", "test_opset_judge.py", "test_opset_node_tests.py"]
if not onnxruntime_can_judge():
    collect_ignore += ["test_old_operators.py"]
