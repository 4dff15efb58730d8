"""Every change of an operator names the operator with its version, whichever verb made it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import splitgraph
from splitgraph import Rewrite

MODELS = Path(__file__).resolve().parents[2] / "models"
# Such changes are of no operator.
OF_NO_OPERATOR = re.compile(r"(constant|input|import of) .*|declared shape")
# Operators of onnxruntime's own domain have one version, and no schema that says so.
VERSIONED = re.compile(r"[\w.]+-\d+|com\.microsoft\.\w+")

KNOWN_BRANCH = """<ir_version: 8, opset_import: ["": 17]> main (float[N, 4] x) => (float[N, 2, 2] y) {
    yes = Constant <value: tensor = bool {1}> ()
    n = Shape <start = 0, end = 1> (x)
    rest = Constant <value: tensor = int64[2] {2, 2}> ()
    target = Concat <axis = 0> (n, rest)
    chosen = If (yes) <
        then_branch = one () => (float[N, 4] a) { a = Relu(x) },
        else_branch = other () => (float[N, 4] b) { b = Neg(x) }
    >
    same = Identity(chosen)
    y = Reshape(same, target)
}"""
FUSED = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> main (float[N, 4] x) => (float[N, 4] y) {
    y = com.microsoft.QuickGelu(x)
}"""
BAKED = """<ir_version: 8, opset_import: ["": 17]> main (float[2, 6] x) => (float[2, 3, 2] y) {
    target = Constant <value: tensor = int64[3] {2, 3, 2}> ()
    y = Reshape(x, target)
}"""


def _ir() -> Any:
    """The model BAKED as OpenVINO has it."""
    ov = pytest.importorskip("openvino")
    ops = ov.opset13
    x = ops.parameter([2, 6], np.float32, name="x")
    y = ops.reshape(x, ops.constant(np.array([2, 3, 2], np.int64)), special_zero=False)
    return ov.Model([ops.relu(y)], [x], "main")


def _with_unnamed_part() -> onnx.ModelProto:
    """A split of which one output is left out."""
    graph = helper.make_graph(
        [helper.make_node("Split", ["x"], ["y", ""], axis=1)],
        "main",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def _classifier() -> onnx.ModelProto:
    """A classifier whose probabilities are maps."""
    of_maps = helper.make_sequence_type_proto(
        helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    )
    graph = helper.make_graph(
        [helper.make_node("ZipMap", ["x"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[0, 1])],
        "main",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])],
        [helper.make_value_info("maps", of_maps)],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def _of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


REWRITES: dict[str, Callable[[], Rewrite]] = {
    "upgrade": lambda: splitgraph.upgrade(MODELS / "gpt2.opset11.onnx", 18),
    "downgrade": lambda: splitgraph.downgrade(MODELS / "gpt2.opset18.onnx", 11),
    "upgrade of a model with a repair": lambda: splitgraph.upgrade(MODELS / "split18_neither.onnx", 19),
    "to VariadicSplit": lambda: splitgraph.convert(MODELS / "glu.opset17.onnx", "variadic-split"),
    "to slices": lambda: splitgraph.convert(MODELS / "glu.opset17.onnx", "slice"),
    "to splits": lambda: splitgraph.convert(MODELS / "variadic_split_rest.onnx", "split"),
    "of an IR": lambda: splitgraph.convert(MODELS / "interval_split.xml", "variadic-split"),
    "explicit lengths": lambda: splitgraph.convert(
        MODELS / "prefix_split.opset18.onnx", "split", explicit_lengths=True
    ),
    "for a target": lambda: splitgraph.convert(MODELS / "split_to_sequence24.onnx", target="opencv"),
    "fold": lambda: splitgraph.convert(MODELS / "gpt2.opset18.onnx", fold=True),
    "fold a branch and a target": lambda: splitgraph.convert(_of(KNOWN_BRANCH), fold=True),
    "standard": lambda: splitgraph.convert(_of(FUSED), standard=True),
    "drop ZipMap": lambda: splitgraph.convert(_classifier(), drop_zipmap=True),
    "a name for a part": lambda: splitgraph.convert(_with_unnamed_part(), "split"),
    "reshape": lambda: splitgraph.reshape(_of(BAKED), batch="N"),
    "reshape of an IR": lambda: splitgraph.reshape(_ir(), batch="N"),
}


@pytest.mark.parametrize("name", REWRITES)
def test_a_change_names_the_version(name: str) -> None:
    changes = [change.before for change in REWRITES[name]().changes]
    operators = [before for before in changes if not OF_NO_OPERATOR.fullmatch(before)]
    assert operators
    assert [before for before in operators if not VERSIONED.fullmatch(before)] == []
