"""From IR version 4 on, a caller may give another value for an initializer that is also a graph input: what it holds is
a default, and no conversion may write it into a node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from conformance.engine_runs import assert_close, outputs_of
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import splitgraph

Array = NDArray[Any]


@dataclass(frozen=True)
class Default:
    """One node whose last inputs are initializers that are graph inputs too.

    other: what a caller may give in their place, by the position of the input.
    """

    op_type: str
    opset: int
    target: int
    inputs: list[Array]
    other: Mapping[int, Array]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1


X = np.random.default_rng(0).standard_normal((1, 2, 4, 6)).astype(np.float32)
ONE, SIZES = np.float32(0.5), np.array([1, 1, 2, 2], np.float32)


def ints(*given: int) -> Array:
    return np.array(given, np.int64)


CASES = [
    Default("Squeeze", 13, 11, [X[:, :, :1], ints(0)], {1: ints(-2)}),
    Default("Unsqueeze", 13, 11, [X, ints(0)], {1: ints(4)}),
    Default("ReduceSum", 13, 12, [X, ints(1)], {1: ints(2)}),
    Default("ReduceMean", 18, 17, [X, ints(1)], {1: ints(3)}),
    Default("Slice", 10, 9, [X, ints(0), ints(1), ints(1)], {1: ints(1), 2: ints(2)}),
    Default("Slice", 11, 10, [X, ints(0), ints(1), ints(1), ints(1)], {2: ints(4), 3: ints(2), 4: ints(3)}),
    Default("Pad", 11, 9, [X, ints(0, 0, 0, 1, 0, 0, 0, 1)], {1: ints(0, 0, 1, 0, 0, 0, 1, 0)}),
    Default("Pad", 11, 10, [X, ints(0, 0, 0, 1, 0, 0, 0, 1), ONE], {2: np.float32(3)}),
    Default("Clip", 11, 10, [X, -ONE, ONE], {1: np.float32(-1), 2: np.float32(1)}),
    Default("Clip", 12, 9, [X, -ONE, ONE], {1: np.float32(-1), 2: np.float32(1)}),
    Default("TopK", 10, 9, [X, ints(2)], {1: ints(3)}, outputs=2),
    Default("Reshape", 5, 4, [X, ints(8, 6)], {1: ints(2, 24)}),
    Default("Tile", 6, 5, [X, ints(1, 1, 1, 2)], {1: ints(1, 2, 1, 1)}),
    Default("Expand", 13, 7, [X, ints(2, 2, 4, 6)], {1: ints(3, 2, 4, 6)}),
    Default("Resize", 11, 10, [X, np.empty(0, np.float32), SIZES], {2: SIZES[::-1].copy()}),
    Default("Resize", 10, 11, [X, SIZES], {1: np.array([1, 1, 3, 1], np.float32)}),
    Default("Resize", 10, 18, [X, SIZES], {1: np.array([1, 1, 3, 1], np.float32)}, {"mode": "linear"}),
    Default("Upsample", 9, 10, [X, SIZES], {1: np.array([1, 1, 3, 1], np.float32)}),
    Default("Upsample", 9, 18, [X, SIZES], {1: np.array([1, 1, 3, 1], np.float32)}),
    # onnxruntime counts the negative indices of OneHot-9, which its document makes no hot value, from the end.
    Default("OneHot", 9, 11, [ints(0, 1), ints(3), ints(2, 5)], {0: ints(5, 2), 1: ints(4)}),
    Default("OneHot", 11, 9, [ints(0, 1), ints(3), ints(2, 5)], {0: ints(-1, 2), 1: ints(4)}),
    Default("Gather", 11, 10, [X, ints(0, 1)], {1: ints(-1, 0)}, {"axis": 2}),
    Default("Scatter", 9, 18, [X[0, 0], ints(0, 1)[None], X[0, :1, 0, :2]], {1: ints(3, 2)[None]}),
    Default("BatchNormalization", 9, 15, [X, *[np.abs(X[0, :, 0, 0])] * 4], {1: np.float32([2, 3])}),
    Default("CumSum", 11, 10, [X, np.array(1, np.int64)], {1: np.array(3, np.int64)}),
    Default("OneHot", 9, 18, [ints(0, 1), ints(3), ints(2, 5)], {0: ints(2, 3)}),
]


def model_of(case: Default) -> onnx.ModelProto:
    names = [f"x{index}" for index in range(len(case.inputs))]
    outputs = [f"y{index}" for index in range(case.outputs)]
    held = {
        name: array for index, (name, array) in enumerate(zip(names, case.inputs, strict=True)) if index in case.other
    }
    fixed = {name: array for name, array in zip(names[1:], case.inputs[1:], strict=True) if name not in held}
    inputs = {names[0]: case.inputs[0], **held}
    graph = helper.make_graph(
        [helper.make_node(case.op_type, names, outputs, "node", **case.attributes)],
        "g",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in inputs.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in {**held, **fixed}.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=8)


def label(case: Default) -> str:
    return f"{case.op_type} {case.opset} to {case.target}, {sorted(case.other)}"


def takes(case: Default) -> splitgraph.ConversionError | onnx.ModelProto:
    """The converted model, or the refusal."""
    convert = splitgraph.upgrade if case.target > case.opset else splitgraph.downgrade
    try:
        return convert(model_of(case), case.target).model
    except splitgraph.ConversionError as refusal:
        return refusal


@pytest.mark.parametrize("case", CASES, ids=label)
def test_another_value_counts_after_the_conversion(case: Default) -> None:
    found = takes(case)
    if isinstance(found, splitgraph.ConversionError):
        assert all(each.code and each.message for each in found.diagnostics)
        return
    model = model_of(case)
    assert [value.name for value in found.graph.input] == [value.name for value in model.graph.input]
    assert {tensor.name for tensor in found.graph.initializer} >= {f"x{index}" for index in case.other}
    given = {"x0": case.inputs[0], **{f"x{index}": np.asarray(array) for index, array in case.other.items()}}
    default, other = ([np.asarray(a) for a in outputs_of(model, feeds)] for feeds in ({"x0": case.inputs[0]}, given))
    assert any(not np.array_equal(one, two) for one, two in zip(default, other, strict=True))
    assert_close(default, outputs_of(found, {"x0": case.inputs[0]}))
    assert_close(other, outputs_of(found, given))


def test_few_are_refused() -> None:
    """Most have a form at the target that takes the value at run time; else the cases would show little."""
    refused = [label(case) for case in CASES if isinstance(takes(case), splitgraph.ConversionError)]
    assert len(refused) <= len(CASES) // 3, refused
