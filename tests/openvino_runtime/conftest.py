"""What needs OpenVINO is tested where it is installed, as in CI's main environment."""

from __future__ import annotations

import importlib.util

_NEEDING_OPENVINO = [
    f"test_{name}.py"
    for name in (
        "hidden_differences_in_ir",
        "in_pipelines",
        "ir_as_onnx",
        "onnx_to_ir",
        "saved_element_types",
        "verify_formats",
    )
]

collect_ignore = [] if importlib.util.find_spec("openvino") else _NEEDING_OPENVINO
