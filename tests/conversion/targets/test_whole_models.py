"""Whole models for a target: what is read stays, the opset is chosen over all nodes, and what the target lacks is
written with other operators.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import splitgraph


def model(body: str, opset: int, inputs: str = "float[N, 4] x", more: str = "", domains: str = "") -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["": {opset}{domains}]> g ({inputs}) => (y) {more} {{ {body} }}'
    return splitgraph.infer(onnx.parser.parse_model(text)).model


def operators(given: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in given.graph.node]


GELU = model("h = Gelu(x) y = Relu(h)", 20)
RESHAPED = model("s = Shape(x) y = Reshape(x, s)", 19)
DET = model("y = Det(x)", 11, "float[2, 3, 3] x")
UNPOOLED = model(
    "y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, i)", 11, "float[1, 1, 2, 2] x, int64[1, 1, 2, 2] i"
)


@pytest.mark.parametrize(
    ("given", "target"),
    [
        (GELU, "onnxruntime"),
        (RESHAPED, "onnxruntime"),
        (DET, "onnxruntime@1.15"),
        (model("y = Relu(x)", 13), "openvino@2023.3"),
        # It is read before the run, where no dimension is open.
        (model("s = Shape(x) y = Reshape(x, s)", 18, "float[2, 4] x"), "onnxruntime@1.15"),
    ],
)
def test_what_is_read_stays(given: onnx.ModelProto, target: str) -> None:
    checked = splitgraph.check(given, target)
    assert (checked.runs, checked.after_conversion, set(checked)) == (True, True, set())
    assert {node.answer for node in checked.nodes} == {"reads"}
    assert splitgraph.convert(given, target=target).model == given


@pytest.mark.parametrize(
    ("given", "target", "opset", "gone"),
    [
        # The runtime has it in no version: it is written out, and the opset stays.
        (GELU, "openvino@2023.3", 20, "Gelu"),
        # It has no kernel of the version at this opset.
        (RESHAPED, "onnxruntime@1.15", 18, None),
        # The determinant of small matrices is written out, too.
        (DET, "openvino@2023.3", 11, "Det"),
        # onnxruntime has no kernel of Relu for int64.
        (model("y = Relu(x)", 14, "int64[N, 4] x"), "onnxruntime@1.15", None, "Relu"),
    ],
)
def test_a_model_is_made_to_run(given: onnx.ModelProto, target: str, opset: int | None, gone: str | None) -> None:
    checked = splitgraph.check(given, target)
    rewrite = splitgraph.convert(given, target=target, verify=True)
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal"
    assert splitgraph.check(rewrite.model, target).runs
    assert (checked.runs, checked.after_conversion) == (False, True)
    if opset is not None:
        assert rewrite.to_opset[""] == opset
    if gone is not None:
        assert gone not in operators(rewrite.model)
        assert all(change.location.startswith("main/") for change in rewrite.changes)


@pytest.mark.parametrize(
    ("given", "target", "words"),
    [
        (UNPOOLED, "openvino@2023.3", ["MaxUnpool-11", "does not support"]),
        (model("y = own.Twice(x)", 17, domains=', "own": 1'), "openvino@2023.3", []),
    ],
)
def test_what_remains_is_refused_with_a_way_out(given: onnx.ModelProto, target: str, words: Sequence[str]) -> None:
    checked = splitgraph.check(given, target)
    if not words:
        # An operator of somebody else: nobody knows, and nothing is claimed.
        assert (checked.runs, [node.answer for node in checked.nodes]) == (None, ["unmeasured"])
        return
    assert (checked.runs, checked.after_conversion) == (False, False)
    with pytest.raises(splitgraph.ConversionError) as raised:
        splitgraph.convert(given, target=target)
    (blocker,) = raised.value.diagnostics
    assert blocker.code == "SG706"
    assert all(word in blocker.message for word in words)
    assert "onnxruntime@" in blocker.help


def test_the_opset_of_the_caller_is_kept_or_refused() -> None:
    assert splitgraph.convert(GELU, target="openvino@2023.3", opset=17).to_opset[""] == 17
    with pytest.raises(splitgraph.ConversionError, match="Reshape-19"):
        splitgraph.convert(RESHAPED, target="onnxruntime@1.15", opset=19)


def test_an_import_that_nothing_uses_is_dropped_where_it_is_refused() -> None:
    given = model("y = Relu(x)", 13, domains=', "ai.onnx.ml": 5')
    refused = splitgraph.check(given, "onnxruntime@1.15")
    assert [(each.code, each.severity) for each in refused] == [("SG704", "error")]
    rewrite = splitgraph.convert(given, target="onnxruntime@1.15")
    assert [entry.domain for entry in rewrite.model.opset_import] == [""]
    assert [change.before for change in rewrite.changes] == ["import of ai.onnx.ml"]
    assert splitgraph.convert(given, target="onnxruntime").model == given


def test_what_some_cases_tell() -> None:
    """An attribute that tells the cases apart is an error; a case that nothing tells apart is a warning."""
    indices = numpy_helper.from_array(np.array([[0], [1]], np.int64), "i")
    nodes = [helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction="add")]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in "xuy"]
    graph = helper.make_graph(nodes, "g", values[:2], values[2:], [indices])
    given = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    (finding,) = splitgraph.check(given, "openvino@2023.3")
    assert (finding.code, finding.severity) == ("SG701", "error")
    assert finding.message == "OpenVINO 2023.3.0 refuses ScatterND-16 with reduction=add"
    nodes[0].attribute.remove(nodes[0].attribute[0])
    del graph.node[:]
    graph.node.extend(nodes)
    plain = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    assert splitgraph.check(plain, "openvino@2023.3").runs
