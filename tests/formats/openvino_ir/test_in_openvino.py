"""OpenVINO itself, in a process of its own, reads what was written, and computes the same with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from splitgraph.formats import load_ir, save_ir

from .small_ir import archived, write

PROGRAM = """
import json, sys
import numpy as np, openvino as ov

core, told = ov.Core(), []
for path in sys.argv[1:]:
    model = core.read_model(path)
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    random, feeds = np.random.default_rng(0), []
    for port in model.inputs:
        shape = [4 if dim.is_dynamic else dim.get_length() for dim in port.partial_shape]
        feeds.append(random.integers(0, 2, shape).astype(port.element_type.to_dtype()))
    results = compiled(feeds)
    told.append({
        "layers": [[op.get_friendly_name(), op.get_type_name()] for op in model.get_ordered_ops()],
        "names": [sorted(port.names) for port in [*model.inputs, *model.outputs]],
        "shapes": [str(port.partial_shape) for port in [*model.inputs, *model.outputs]],
        "results": [results[index].tolist() for index in range(len(model.outputs))],
    })
print(json.dumps(told))
"""


def told_by_openvino(paths: list[Path]) -> list[dict[str, object]]:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, paths)], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    told: list[dict[str, object]] = json.loads(run.stdout)
    return told


def test_openvino_reads_what_was_written(tmp_path: Path) -> None:
    """Bodies, with every constant moved behind the weights and a comment in every layer."""
    before, after = [], []
    for name, (xml, weights) in archived("bodies.zip").items():
        for folder in (tmp_path / name, tmp_path / name / "after"):
            folder.mkdir()
        before.append(write(tmp_path / name, xml.replace(b"\t</layer>", b"<!-- here -->\t</layer>"), weights))
        model = load_ir(before[-1])
        for element in model.root.iter("data"):
            if "offset" in element.attrib:
                start, size = int(element.attrib["offset"]), int(element.attrib["size"])
                element.set("offset", str(model.append_constant(weights[start : start + size])))
        model.refresh()
        after.append(tmp_path / name / "after" / "model.xml")
        save_ir(model, after[-1])
        assert after[-1].read_bytes() != before[-1].read_bytes()
    told = told_by_openvino([*before, *after])
    assert len(told) == 6
    assert told[:3] == told[3:]
