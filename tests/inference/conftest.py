"""Where some tests are left out: what an older release of onnxruntime judges wrongly or does not have."""

from __future__ import annotations

from installed_engines import onnxruntime_can_judge

collect_ignore = (
    [] if onnxruntime_can_judge() else ["test_graph_fuzz.py", "rules/onnxruntime/test_onnxruntime_rules.py"]
)
