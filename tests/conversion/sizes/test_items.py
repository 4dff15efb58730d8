"""What comes from the number of items says sizes and picks each item in turn, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import pytest
from onnx import parser

import splitgraph


def model(nodes: str, batch: int = 4, opset: int = 17) -> onnx.ModelProto:
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["": {opset}]>
        g (float[{batch}, 3] x) => (float[p, q] y) <int64 z = {{0}}, int64 o = {{1}}, int64 four = {{4}},
        int64[1] three = {{3}}, int64[1] first = {{0}}, int64[1] one = {{1}}> {{
        s = Shape (x) n = Gather (s, z) v = Gather (s, first) {nodes} }}""")


def refused(made: onnx.ModelProto) -> Sequence[tuple[str, str]]:
    """Return the places where a batch is refused; a name that nobody calls a batch becomes a length there."""
    try:
        splitgraph.reshape(made, batch="N")
    except splitgraph.ConversionError as error:
        return [(found.code, found.location.rpartition("/")[2].partition("#")[0]) for found in error.diagnostics]
    return []


ALONE = {
    "no number": "y = Relu (x)",
    "a size": "t = Concat <axis = 0> (v, three) y = Reshape (x, t)",
    "twice a size, and half of it": """two = Constant <value_ints = [2]> () d = Mul (v, two) h = Div (d, two)
        t = Concat <axis = 0> (h, three) y = Reshape (x, t)""",
    "zeros": "t = Concat <axis = 0> (v, three) c = ConstantOfShape (t) y = Add (x, c)",
    "all of a slice": "y = Slice (x, first, v, first)",
    "a shape with -1": """m = Constant <value_ints = [-1, 3]> () k = Constant <value_ints = [-1]> () e = Equal (m, k)
        u = Constant <value_ints = [1, 1]> () w = Where (e, u, m) y = Expand (x, w)""",
    "each item in turn": "r = Range (z, n, o) y = Gather (x, r)",
    "each item by pairs": """r = Range (z, n, o) c = Unsqueeze (r, one) k = Expand (c, one) i = Concat <axis = 1> (k, k)
        g = GatherND (x, c) y = Relu (g)""",
    "a loop over items": """go = Constant <value = bool {1}> ()
        y = Loop (n, go) <body = b (int64 i, bool c) => (bool d, float[q] e) { d = Identity (c) e = Gather (x, i) }>""",
}
MIXED = {
    "a branch": (
        "g = Greater (n, four) y = If (g) <then_branch = a () => (float[p, q] t) { t = Relu (x) }, "
        "else_branch = b () => (float[p, q] e) { e = Neg (x) }>",
        "Greater",
    ),
    "a choice": ("g = Greater (n, four) m = Neg (x) y = Where (g, x, m)", "Greater"),
    "half the number": (
        "f = Cast <to = 1> (n) h = Constant <value = float {0.5}> () k = Mul (f, h) y = Mul (x, k)",
        "Mul",
    ),
    "the number": ("f = Cast <to = 1> (n) y = Div (x, f)", "Div"),
    "its number as data": ("r = Range (z, n, o) c = Unsqueeze (r, one) f = Cast <to = 1> (c) y = Add (x, f)", "Add"),
    "its number as data, up to a number that follows": (
        "r = Range (z, four, o) c = Unsqueeze (r, one) f = Cast <to = 1> (c) y = Add (x, f)",
        "Add",
    ),
    "the next one": ("r = Range (z, n, o) a = Add (r, o) i = Mod (a, n) y = Gather (x, i)", "Add"),
    "backwards": ("m = Constant <value = int64 {-1}> () l = Sub (n, o) r = Range (l, m, m) y = Gather (x, r)", "Range"),
    "an output": ("y = Relu (x)", ""),
    "elements of an item": (
        "i = Constant <value = int64[2] {0, 1}> () r = Range (z, n, o) t = Transpose (x) "
        "k = Gather (t, r) y = Relu (k)",
        "Gather",
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_sizes_and_counts_are_let_through(name: str) -> None:
    assert refused(model(ALONE[name])) == []


@pytest.mark.parametrize("name", MIXED)
def test_what_else_a_number_does_is_refused(name: str) -> None:
    nodes, place = MIXED[name]
    made = model(nodes, 2 if name == "elements of an item" else 4)
    if not place:
        made.graph.output.add(name="n").type.tensor_type.elem_type = onnx.TensorProto.INT64
        place = "n"
    assert ("SG420", place) in refused(made)


@pytest.mark.parametrize(("batch", "end"), [(1, 4), (4, 3), (4, 5)])
def test_a_slice_to_a_number_is_no_whole_batch(batch: int, end: int) -> None:
    made = model(f"e = Constant <value_ints = [{end}]> () y = Slice (x, first, e, first)", batch)
    assert ("SG420", "Slice") in refused(made)
