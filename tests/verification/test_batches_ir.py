"""An IR is run once for each group of the items of a batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from splitgraph.formats import load_ir, save_ir
from splitgraph.verification.models.repeated_ir import repeated_ir

RNG = np.random.default_rng(3)


def test_each_run_of_an_ir_has_a_constant_that_has_items(tmp_path: Path) -> None:
    x, k = ops.parameter([2, 3], np.float32, name="x"), np.arange(6, dtype=np.float32).reshape(2, 3)
    x.output(0).set_names({"x"})
    ov.save_model(ov.Model([ops.relu(x), ops.constant(k)], [x]), tmp_path / "m.xml", compress_to_fp16=False)
    loaded = load_ir(tmp_path / "m.xml")
    results = [layer.id for layer in loaded.graph.layers if layer.type == "Result"]
    save_ir(repeated_ir(loaded, {"x": 0}, dict.fromkeys(results, 0), 2, 3), tmp_path / "repeated.xml")
    given = RNG.standard_normal((6, 3)).astype(np.float32)
    y, c = ov.Core().compile_model(tmp_path / "repeated.xml", "CPU")({"x": given}).values()
    np.testing.assert_array_equal(c, np.concatenate([k] * 3))
    np.testing.assert_array_equal(y, np.maximum(given, 0))
