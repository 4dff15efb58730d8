"""What the bodies of Scan, SequenceMap and Loop are given, against what they declare: onnx and onnxruntime load no Scan
or SequenceMap whose body declares other inputs, and take the shapes in the body of a Loop for a hint.
"""

from __future__ import annotations

import onnx
import pytest

from splitgraph import infer

SCAN = """y, z = Scan (GIVEN) <num_scan_inputs: int = 1, body: graph = b (BODY) => (float s, float p) {
    s = Constant <value = float {1.0}> ()
    p = Constant <value = float {1.0}> ()
}>"""
ONE, TWO, THREE = (SCAN.replace("GIVEN", given) for given in ("x", "v, x", "v, v, x"))
MAP = """q = SequenceConstruct (x, x)
y = SequenceMap (q, z) <body: graph = b (BODY) => (float[?] r) { r = Identity (a) }>"""
LOOP = """y = Loop (n, , x) <body: graph = b (int64 i, bool c, BODY) => (bool d, float[?] r) {
    d = Identity (c)
    r = Identity (a)
}>"""

# name, inputs of the model, nodes, inputs of the body, what is wrong ("" for nothing)
CASES = [
    ("scan fits", "float v, float[5] x", TWO, "float a, float b", ""),
    (
        "scan, open shapes",
        "float[3] v, float[5,2] x",
        TWO,
        "float[k] a, float[m] b",
        "",
    ),
    (
        "scan, a name for a number",
        "float[3] v, float[5,2] x",
        TWO,
        "float[k] a, float[k] b",
        "",
    ),
    (
        "scan, state missing",
        "float v, float[5] x",
        ONE,
        "float a, float b",
        "node passes 1",
    ),
    (
        "scan, one too many",
        "float v, float[5] x",
        THREE,
        "float a, float b",
        "node passes 3",
    ),
    (
        "scan, rank of a slice",
        "float v, float[5,7] x",
        TWO,
        "float a, float b",
        "receives float32[7]",
    ),
    (
        "scan, dim of a slice",
        "float v, float[5,7] x",
        TWO,
        "float a, float[6] b",
        "receives float32[7]",
    ),
    (
        "scan, rank of the state",
        "float[1] v, float[5] x",
        TWO,
        "float a, float b",
        "receives float32[1]",
    ),
    ("map fits", "float[2] x, float[3] z", MAP, "float[m] a, float[3] b", ""),
    ("map, rank of a tensor", "float[2] x, float[3,7] z", MAP, "float[m] a, float[3] b", "receives float32[3, 7]"),
    ("map, dim of a tensor", "float[2] x, float[3] z", MAP, "float[m] a, float[4] b", "receives float32[3]"),
    ("map, rank of an element", "float[2] x, float[3] z", MAP, "float[m,k] a, float[3] b", "receives float32[2]"),
    ("map, input missing", "float[2] x, float[3] z", MAP, "float[m] a", "node passes 2"),
    ("loop fits", "int64 n, float[2] x", LOOP, "float[m] a", ""),
    ("loop, a hint of another rank", "int64 n, float[2,3] x", LOOP, "float[m] a", ""),
]


@pytest.mark.parametrize(
    ("inputs", "nodes", "body", "wrong"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_bodies_are_given_what_they_declare(inputs: str, nodes: str, body: str, wrong: str) -> None:
    text = f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => () {{ {nodes.replace("BODY", body)} }}'
    errors = [found for found in infer(onnx.parser.parse_model(text)).diagnostics if found.severity == "error"]
    assert [found.code for found in errors] == (["SG302"] if wrong else [])
    assert all(wrong in found.message for found in errors)
