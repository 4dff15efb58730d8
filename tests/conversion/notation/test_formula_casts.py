"""What adapters compute with as int64 is cast only where it is of another type."""

from __future__ import annotations

import numpy as np
import pytest
from conversion.operators.execute import Array, assert_same, build, converted, run
from onnx import helper

DATA = np.arange(12, dtype=np.float32).reshape(3, 4)
# Operator, opset, target, all inputs, the elements of the one that is given at run time, and the rank of the output.
CASES: list[tuple[str, int, int, list[str], Array, int]] = [
    ("OneHot", 11, 10, ["given", "depth", "values"], np.array([0, -1, 2]), 2),
    ("GatherElements", 13, 10, ["data", "given"], np.array([[0, -1, 1, 2]]), 2),
    ("Slice", 13, 9, ["data", "begins", "ends", "given"], np.array([1, 0]), 2),
]
CONSTANTS = {
    "data": DATA,
    "depth": np.array(3),
    "values": np.array([0.0, 1.0], np.float32),
    "ends": np.array([3, 2]),
    "begins": np.array([0, 1]),
}


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("op", "opset", "target", "inputs", "held", "rank"), CASES, ids=[case[0] for case in CASES])
def test_only_other_types_are_cast(
    op: str, opset: int, target: int, inputs: list[str], held: Array, rank: int, dtype: str
) -> None:
    feeds = {"given": held.astype(dtype)}
    constants = {name: CONSTANTS[name] for name in inputs if name != "given"}
    # Those that the schema, or onnxruntime's kernel, has of the same type.
    constants |= {name: constants[name].astype(dtype) for name in ("depth", "begins", "ends") if name in constants}
    node = helper.make_node(op, inputs, ["y"])
    model = build(node, opset, {"given": (dtype, held.shape)}, {"y": ("float32", [None] * rank)}, constants)
    after = converted(model, target)
    assert_same(run(model, feeds), run(after, feeds))
    casts = {node.input[0] for node in after.graph.node if node.op_type == "Cast"}
    assert ("given" in casts) == (dtype != "int64")
