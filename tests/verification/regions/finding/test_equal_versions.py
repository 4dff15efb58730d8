"""Whether versions that are listed as equal compute the same bits in onnxruntime and in the reference evaluator.

Each entry is run on onnx's node tests that fit both versions, and on the nodes below: onnx has no tests of attributes
that became inputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from node_tests import node_tests
from onnx import helper, numpy_helper

from splitgraph.model.schemas import OperatorVersion, version_at
from splitgraph.verification.reference import evaluator
from splitgraph.verification.regions.finding.equal_versions import (
    EQUAL_OF_ONE_OUTPUT,
    EQUAL_VERSIONS,
    has_only,
    means_same,
)
from splitgraph.verification.values import tensors_of

LISTED = [
    (op_type, version)
    for table in (EQUAL_VERSIONS, EQUAL_OF_ONE_OUTPUT)
    for op_type, versions in table.items()
    for version in versions
]
# Below it, onnxruntime gives no guarantee, and refuses some operators.
OLDEST_OPSET = 7
X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


class Case(NamedTuple):
    """A model of one node, and its inputs in order."""

    model: onnx.ModelProto
    inputs: Sequence[Any]


def made(op_type: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Case:
    names = [f"x{place}" for place in range(len(inputs))]
    results = [f"y{place}" for place in range(outputs)]
    node = helper.make_node(op_type, names, results, **attributes)
    types = [helper.np_dtype_to_tensor_dtype(each.dtype) for each in inputs]
    given = [
        helper.make_tensor_value_info(name, dtype, each.shape)
        for name, dtype, each in zip(names, types, inputs, strict=True)
    ]
    graph = helper.make_graph([node], "case", given, [onnx.ValueInfoProto(name=name) for name in results])
    return Case(helper.make_model(graph), inputs)


def own_cases(op_type: str) -> Iterator[Case]:
    if op_type.startswith("Reduce"):
        yield made(op_type, np.abs(X) + 1, axes=[0, 2])
        yield made(op_type, np.abs(X) + 1, axes=[1], keepdims=0)
        yield made(op_type, np.abs(X) + 1)
    if op_type in ("Softmax", "LogSoftmax", "Hardmax"):
        yield from (made(op_type, X, axis=axis) for axis in (0, 1, 2))
        yield made(op_type, X)
    if op_type == "Squeeze":
        yield made(op_type, X.reshape(2, 1, 3, 4, 1), axes=[1, 4])
        yield made(op_type, X.reshape(2, 1, 3, 4, 1))
    if op_type == "Unsqueeze":
        yield made(op_type, X, axes=[1, 3])
    if op_type == "DepthToSpace":
        yield made(op_type, np.arange(48, dtype=np.float32).reshape(1, 8, 2, 3), blocksize=2)
    if op_type == "Resize":
        yield from _resizes()
    if op_type == "Scan":
        yield _scan()


def _resizes() -> Iterator[Case]:
    image, roi = np.random.default_rng(1).normal(size=(1, 1, 4, 5)).astype(np.float32), np.empty(0, np.float32)
    for mode in ("nearest", "linear", "cubic"):
        for coordinates in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
            for scale in (2.0, 0.6):
                scales = np.array([1, 1, scale, scale], np.float32)
                attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
                yield made("Resize", image, roi, scales, **attributes)
                yield made("Resize", image, roi, scales, **attributes, exclude_outside=int(mode == "cubic"))


def _scan() -> Case:
    inner = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in ("s", "x", "t", "y")]
    nodes = [helper.make_node("Mul", ["s", "x"], ["t"]), helper.make_node("Neg", ["t"], ["y"])]
    body = helper.make_graph(nodes, "body", inner[:2], inner[2:])
    return made("Scan", X[0, :, 0], X[1].T.copy(), outputs=2, body=body, num_scan_inputs=1, scan_input_directions=[1])


@cache
def cases(op_type: str) -> list[Case]:
    found = list(own_cases(op_type))
    for test in node_tests():
        nodes = test.model.graph.node
        if len(nodes) == 1 and nodes[0].op_type == op_type and nodes[0].domain == "":
            found += [Case(test.model, inputs) for inputs, _ in test.data_sets]
    return found


def at_opset(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = 8
    copy.opset_import[0].version = opset
    return copy


def run_onnxruntime(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def run_reference(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    return list(evaluator.run(evaluator.load(model, Path()), feeds, None))


def bits(outputs: Sequence[Any]) -> list[tuple[str, tuple[int, ...], bytes]]:
    arrays = [np.asarray(array) for value in outputs for array in tensors_of(value)]
    return [(array.dtype.name, array.shape, array.tobytes()) for array in arrays]


def compared(op_type: str, version: int, run: Callable[..., list[Any]]) -> Iterator[tuple[Case, bool]]:
    """Yield the cases that run in a version and in the one before it, with whether both give the same bits."""
    before, after = versions(op_type, version)
    for case in cases(op_type):
        node = case.model.graph.node[0]
        is_limited = version in EQUAL_OF_ONE_OUTPUT.get(op_type, ()) and len(node.output) > 1
        if is_limited or not (has_only(node, before) and has_only(node, after)):
            continue
        names = [value.name for value in case.model.graph.input]
        feeds = {name: _array(value) for name, value in zip(names, case.inputs, strict=False)}
        try:
            outputs = [run(at_opset(case.model, opset), feeds) for opset in (version - 1, version)]
        except Exception:  # engines raise errors of their own types: a type that one of the versions does not take
            continue
        yield case, bits(outputs[0]) == bits(outputs[1])


def versions(op_type: str, version: int) -> tuple[OperatorVersion, OperatorVersion]:
    before, after = version_at("", op_type, version - 1), version_at("", op_type, version)
    assert before is not None and after is not None
    assert after.since_version == version
    return before, after


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


@pytest.mark.parametrize("run", [run_onnxruntime, run_reference])
@pytest.mark.parametrize(("op_type", "version"), LISTED)
def test_a_version_computes_the_same_as_the_one_before(
    op_type: str, version: int, run: Callable[..., list[Any]]
) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = list(compared(op_type, version, run))
    assert found
    assert [onnx.printer.to_text(case.model.graph) for case, is_same in found if not is_same] == []


@pytest.mark.parametrize(("op_type", "version"), LISTED)
def test_what_both_versions_have_is_declared_alike(op_type: str, version: int) -> None:
    """An attribute of both has one default, and a node needs no input that the older version lacks."""
    before, after = versions(op_type, version)
    assert version - 1 >= OLDEST_OPSET
    shared = before.attributes.keys() & after.attributes.keys()
    assert all(before.attributes[name].default == after.attributes[name].default for name in shared)
    for place, formal in enumerate(after.inputs):
        # One that is new may be left out, and none becomes a list.
        option = before.inputs[place].option if place < len(before.inputs) else "optional"
        assert formal.option in (option, "optional")


# Nodes at two opsets that compute something else, or of which one is not known to both.
OTHER = {
    "another default": (made("Softmax", X), 12, 13),
    "an axis of another meaning": (made("Softmax", X, axis=1), 12, 13),
    "rounded otherwise": (made("AveragePool", X, kernel_shape=[2], ceil_mode=1), 18, 19),
    "indices that one counts from the end": (made("OneHot", X, X, X), 9, 11),
    "another default of coordinates": (made("RoiAlign", X), 15, 16),
    "a new attribute": (made("Reshape", X, X, allowzero=1), 13, 14),
    "a new input": (made("Pad", X, X, X, X), 13, 18),
    "training": (made("BatchNormalization", X, X, X, X, X, outputs=3), 9, 14),
    "a split": (made("Split", X, X, axis=0), 13, 18),
    "of another domain": (made("Add", X, X, domain="mine"), 13, None),
}


@pytest.mark.parametrize("name", OTHER)
def test_nodes_that_are_not_the_same(name: str) -> None:
    case, *opsets = OTHER[name]
    node = case.model.graph.node[0]
    assert not means_same(node, opsets)
    assert not means_same(node, opsets[::-1])


@pytest.mark.parametrize(("op_type", "opsets"), [("Add", (7, 18)), ("MaxPool", (8, 22)), ("Gather", (7, 13))])
def test_several_versions_in_a_row(op_type: str, opsets: tuple[int, int]) -> None:
    node = helper.make_node(op_type, ["x", "y"][: 1 + (op_type != "MaxPool")], ["z"])
    assert means_same(node, opsets)
    assert means_same(node, opsets[::-1])
    assert not means_same(node, (5, opsets[1])) or op_type == "Gather"
