"""What needs OpenVINO is tested where it is installed, as in CI's main environment."""

from __future__ import annotations

import importlib.util

collect_ignore = [] if importlib.util.find_spec("openvino") else ["test_in_openvino.py"]
