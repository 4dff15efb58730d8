"""What needs OpenVINO is tested where it is installed, as in CI's main environment."""

from __future__ import annotations

import importlib.util

_NEEDING_OPENVINO = ["test_in_pipelines.py", "test_verify_formats.py", "test_onnx_to_ir.py"]

collect_ignore = [] if importlib.util.find_spec("openvino") else _NEEDING_OPENVINO
