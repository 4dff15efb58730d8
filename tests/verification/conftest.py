"""Where the tests of OpenVINO as an engine are left out: where it is not installed."""

from __future__ import annotations

import importlib.util

collect_ignore = (
    []
    if importlib.util.find_spec("openvino")
    else ["engines/test_openvino_engine.py", "test_batches_ir.py", "test_two_engines.py"]
)
