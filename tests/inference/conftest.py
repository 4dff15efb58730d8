"""Where some tests are left out: what an older release of onnxruntime judges wrongly or does not have, and what needs
OpenVINO.
"""

from __future__ import annotations

from importlib.util import find_spec

from installed_engines import onnxruntime_can_judge

collect_ignore = (
    [] if onnxruntime_can_judge() else ["test_graph_fuzz.py", "rules/onnxruntime/test_onnxruntime_rules.py"]
)
if not (find_spec("openvino") and onnxruntime_can_judge()):
    collect_ignore.append("test_lenient_types_in_engines.py")
