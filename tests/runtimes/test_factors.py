"""The factors of nodes (splitgraph/runtimes/factors.py): one reader for models and for measured cases."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import pytest

from splitgraph.runtimes.check import examine


def factors(body: str, *, opset: int = 17, inputs: str = "float[2, 3, 8] x", output: str = "y") -> Mapping[str, str]:
    """The factors of the node named "n" (the last one without a name) in a small model."""
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => (float[] {output}) {{ {body} }}'
    nodes = examine(onnx.parser.parse_model(text)).nodes
    named = [node for node in nodes if node.node.name == "n"]
    return dict((named or nodes)[-1].factors)


OPEN = "float[N, 3, 8] x"
HALF = "c = Constant <value = float[1, 1] {0.5}> ()"
MOD = "float[2] x, int32[2] i, int64[2] z"
CONVOLVED = "float[2, 4, 8] x, float[3, 4, 2] w"
_REVERSED = (
    "c = Constant <value = float[2] {{1, 2}}> () l = Constant <value = int64[1] {{-1}}> () "
    "e = Constant <value = int64[1] {{-9}}> () z = Constant <value = int64[1] {{0}}> () "
    "[n] r = Slice ({}, l, e, z, l) y = Add (r, x)"
)
LSTM = "float[5, 2, 3] x, float[1, 16, 3] w, float[1, 16, 4] r"


@pytest.mark.parametrize(
    ("body", "opset", "inputs", "present", "absent"),
    [
        # Axes: where they are, and how they are written.
        ("y = Softmax <axis = 1> (x)", 17, "", {"axis": "second", "axis.sign": "positive"}, set()),
        ("y = Softmax <axis = -1> (x)", 17, "", {"axis": "last", "axis.sign": "negative"}, set()),
        ("y = Softmax (x)", 11, "", {"axis": "second", "axis.sign": "unwritten"}, set()),
        ("y = Softmax (x)", 13, "", {"axis": "last", "axis.sign": "unwritten"}, set()),
        ("y = Softmax <axis = 0> (x)", 17, "float[8] x", {"axis": "only", "rank": "1"}, set()),
        # Of data of unknown rank, nobody knows where the axis is.
        ("y = Softmax <axis = 1> (x)", 17, "float[] x", {"rank": "unknown"}, {"axis", "along", "dims"}),
        # Open dimensions, relative to the axis.
        ("y = Softmax <axis = 1> (x)", 17, OPEN, {"before": "open", "along": "fixed", "behind": "fixed"}, {"dims"}),
        ("y = Softmax <axis = 0> (x)", 17, OPEN, {"along": "open", "behind": "fixed", "before": "fixed"}, {"dims"}),
        ("y = Relu (x)", 17, OPEN, {"dims": "open", "dims.first": "open"}, {"along"}),
        # What makes data flat multiplies its dimensions, whichever come together.
        ("y = Flatten (x)", 17, "float[N, 3, M] x", {"dims.open": "several"}, set()),
        ("y = Flatten <axis = 2> (x)", 17, "float[N, M] x", {"dims.open": "several"}, set()),
        ("y = Flatten (x)", 17, OPEN, {}, {"dims.open"}),
        ("y = Flatten (x)", 17, "float[] x", {}, {"dims.open"}),
        ("y = Relu (x)", 17, "float[N, 3, M] x", {}, {"dims.open"}),
        # Constants may be reversed when a model is read.
        (_REVERSED.format("c"), 17, "float[2] x", {"steps.negative": "of constants"}, set()),
        (_REVERSED.format("x"), 17, "float[2] x", {"steps.negative": "yes"}, set()),
        # A product of what is turned reads along the first dimension.
        ("y = Gemm (x, w)", 17, "float[N, 8] x, float[8, 4] w", {"before": "open", "along": "fixed"}, set()),
        ("y = Gemm <transA = 0> (x, w)", 17, "float[N, 8] x, float[8, 4] w", {"along": "fixed"}, set()),
        (
            "y = Gemm <transA = 1> (x, w)",
            17,
            "float[8, N] x, float[8, 4] w",
            {"behind": "open", "along": "fixed"},
            set(),
        ),
        ("y = Gemm <transA = 1> (x, w)", 17, "float[N, 4] x, float[N, 4] w", {"along": "open"}, set()),
        # A rest of what a Cast made int64, also through others; not of sizes, of int32, nor of what was int64 before.
        ("c = Cast <to = 7> (x) y = Mod (c, z)", 17, MOD, {"data.cast": "yes"}, set()),
        ("c = Cast <to = 7> (i) d = Add (z, c) y = Mod (d, z)", 17, MOD, {"data.cast": "yes"}, set()),
        ("c = Cast <to = 6> (x) y = Mod (c, i)", 17, MOD, {}, {"data.cast"}),
        ("c = Cast <to = 7> (z) y = Mod (c, z)", 17, MOD, {}, {"data.cast"}),
        ("c = Cast <to = 7> (x) y = Mod (z, c)", 17, MOD, {}, {"data.cast"}),
        ("y = Mod (z, z)", 17, MOD, {}, {"data.cast"}),
        ("s = Shape (x) c = Cast <to = 1> (s) d = Cast <to = 7> (c) y = Mod (d, z)", 17, MOD, {}, {"data.cast"}),
        # An input of the graph and constants that lie one behind the other in the result.
        (f"{HALF} y = Concat <axis = 1> (x, c)", 17, "float[1, 3] x", {"inputs.input": "beside constants"}, set()),
        (f"{HALF} y = Concat <axis = -1> (c, x)", 17, "float[1, 3] x", {"inputs.input": "beside constants"}, set()),
        (f"{HALF} y = Concat <axis = 1> (x, c)", 17, "float[N, 3] x", {}, {"inputs.input"}),
        (f"{HALF} z = Neg (x) y = Concat <axis = 1> (z, c)", 17, "float[1, 3] x", {}, {"inputs.input"}),
        ("y = Concat <axis = 1> (x, z)", 17, "float[1, 3] x, float[1, 3] z", {}, {"inputs.input"}),
        # A result of rank 3 that the model returns, and one that it does not.
        ("y = Conv (x, w)", 17, CONVOLVED, {"rank": "3", "returned": "rank 3"}, set()),
        ("[n] z = Conv (x, w) y = Neg (z)", 17, CONVOLVED, {"rank": "3"}, set()),
        ("y = Relu (x)", 17, "float[2, N, 8] x", {"dims": "open", "dims.first": "fixed"}, {"along"}),
        ("y = GlobalMaxPool (x)", 17, "float[N, 3, 8, 8] x", {"before": "open", "along": "fixed"}, set()),
        # How constants are given.
        ("c = Constant <value = float {1}> () y = Add (x, c)", 17, "", {"B": "node", "broadcast": "number"}, set()),
        (
            "y = Add (x, z)",
            17,
            "float[2, 3, 8] x, float[8] z",
            {"B": "data", "broadcast": "others of lower rank"},
            set(),
        ),
        ("y = Add (z, x)", 17, "float[2, 3, 8] x, float[8] z", {"broadcast": "first of lower rank"}, set()),
        ("y = Add (x, x)", 17, "", {"broadcast": "no"}, set()),
        ("y = Reshape (x, s)", 17, "float[2, 3, 8] x, int64[2] s", {"shape": "input", "to": "2"}, {"zero", "rest"}),
        ("s = Shape (x) y = Reshape (x, s)", 17, "", {"shape": "sized", "to": "3", "rest": "no"}, set()),
        ("s = Shape (x) y = Reshape (x, s)", 17, OPEN, {"shape": "shape", "to": "3"}, {"rest"}),
        ("c = Constant <value_ints = [0, -1]> () y = Reshape (x, c)", 17, "", {"zero": "yes", "rest": "yes"}, set()),
        # Outputs: absent, unused and used are three things.
        ("y, h = LSTM <hidden_size = 4> (x, w, r)", 14, LSTM, {"Y": "used", "Y_h": "unused", "Y_c": "absent"}, set()),
        ("y = LSTM <hidden_size = 4> (x, w, r)", 14, LSTM, {"Y": "used", "Y_h": "absent", "B": "absent"}, set()),
        (", y = LSTM <hidden_size = 4> (x, w, r)", 14, LSTM, {"Y": "absent", "Y_h": "used"}, set()),
        ("y = LSTM <hidden_size = 4> (x, w, r)", 14, LSTM, {"layout": "0"}, set()),
        ("y = LSTM <hidden_size = 4> (x, w, r)", 7, LSTM, {"Y": "used"}, {"layout"}),
        # Attributes that are left out, and lists.
        ("y = MaxPool <kernel_shape = [2, 2]> (x)", 12, "float[1, 3, 8, 8] x", {"strides": "absent"}, set()),
        (
            "y = MaxPool <kernel_shape = [2, 2], strides = [1, 1], pads = [0, 0, 1, 1]> (x)",
            12,
            "float[1, 3, 8, 8] x",
            {"strides": "neutral", "pads": "asymmetric", "kernel_shape": "equal"},
            set(),
        ),
        ("y = Transpose <perm = [0, 2, 1]> (x)", 17, "", {"perm": "last two"}, set()),
        ("y = Transpose (x)", 17, "", {"perm": "absent"}, set()),
        # Axes as an attribute and as an input have the same keys.
        ("y = ReduceMean <axes = [1, -1]> (x)", 17, "", {"axes": "attribute", "axes.sign": "negative"}, set()),
        (
            "c = Constant <value_ints = [1]> () y = ReduceMean (x, c)",
            18,
            "",
            {"axes": "node", "axes.count": "one", "axes.second": "yes", "axes.sign": "positive"},
            set(),
        ),
        ("y = Squeeze (x)", 17, "float[1, 8] x", {"axes": "absent"}, {"axes.count"}),
    ],
)
def test_factors_of_a_node(body: str, opset: int, inputs: str, present: Mapping[str, str], absent: set[str]) -> None:
    found = factors(body, opset=opset, inputs=inputs or "float[2, 3, 8] x")
    assert {key: found.get(key) for key in present} == present
    assert absent & found.keys() == set()


@pytest.mark.parametrize(
    ("shape", "index", "expected"),
    [
        # What is taken of the sizes counts, and not the others.
        ("float[N, 3, 8] x", 1, {"data": "sizes", "known": "yes"}),
        ("float[N, 3, 8] x", 0, {"data": "sizes", "known": "no"}),
        ("float[2, 3, 8] x", 0, {"data": "sizes", "known": "yes"}),
    ],
)
def test_sizes_as_data(shape: str, index: int, expected: Mapping[str, str]) -> None:
    body = f"s = Shape (x) i = Constant <value_int = {index}> () [n] d = Gather <axis = 0> (s, i) y = Cast <to = 1> (d)"
    found = factors(body, inputs=shape)
    assert {key: found[key] for key in expected} == expected
    assert (found["use.Cast"], found["indices"], found["rank"]) == ("yes", "node", "1")


@pytest.mark.parametrize(
    ("equation", "expected"),
    [
        # Letters that always stand side by side are one, however many an exporter writes.
        ("bij,bjk->bik", "abc,acd->abd"),
        ("bhij,bhjk->bhik", "abc,acd->abd"),
        ("abc,dce->abde", "ab,cbd->acd"),
        ("i j, j k -> i k", "ab,bc->ac"),
        # Not side by side everywhere, in another order, or twice: each letter stays.
        ("bqhd,bkhd->bhqk", "abcd,aecd->acbe"),
        ("ab,ba->ab", "ab,ba->ab"),
        ("iij,j->ij", "aab,b->ab"),
        ("...ij,jk->...ik", "...ab,bc->...ac"),
    ],
)
def test_an_equation_in_lowest_terms(equation: str, expected: str) -> None:
    found = factors(f'y = Einsum <equation = "{equation}"> (x, z)', inputs="float[] x, float[] z")
    assert found["equation"] == expected


@pytest.mark.parametrize(
    ("shape", "index", "expected"),
    [
        # A number of floating point follows from the size that is taken, and not from the others.
        ("float[N, 3, 8] x", 0, "shape"),
        ("float[N, 3, 8] x", 2, "sized"),
        ("float[2, 3, 8] x", 0, "sized"),
    ],
)
def test_a_scale_that_follows_from_a_size(shape: str, index: int, expected: str) -> None:
    body = f"s = Shape (x) i = Constant <value_int = {index}> () d = Gather (s, i) f = Cast <to = 1> (d)"
    assert factors(f"{body} r = Sqrt (f) [n] y = Div (x, r)", inputs=shape)["B"] == expected


_FIRST = "a = Constant <value_ints = [{}]> () b = Constant <value_ints = [9]> ()"


@pytest.mark.parametrize(
    ("first", "body", "expected"),
    [
        # A part of data, and the sizes behind the first ones: either may be joined with others.
        (2, "p = Slice (x, a, b) y = Relu (p)", {"parts.empty": "yes"}),
        (2, "p = Slice (x, a, b) y = Concat <axis = 0> (x, p)", {"parts.empty": "joined"}),
        (2, "s = Shape (x) p = Slice (s, a, b) y = Cast <to = 1> (p)", {"sizes.empty": "yes"}),
        (
            2,
            "s = Shape (x) p = Slice (s, a, b) q = Concat <axis = 0> (s, p) y = Expand (x, q)",
            {"sizes.empty": "joined"},
        ),
        (2, "s = Shape (x) p = Slice (s, a, b) q = Concat <axis = 0> (s, p) y = Expand (q, p)", {"sizes.empty": "yes"}),
        # Something is left, or there was nothing before.
        (1, "p = Slice (x, a, b) y = Relu (p)", {}),
        (1, "s = Shape (x) p = Slice (s, a, b) y = Cast <to = 1> (p)", {}),
        (2, "n = Slice (x, a, b) p = Slice (n, a, b) y = Relu (p)", {}),
    ],
)
def test_a_slice_without_elements(first: int, body: str, expected: Mapping[str, str]) -> None:
    named = body.replace("p = Slice", "[n] p = Slice")
    found = factors(f"{_FIRST.format(first)} {named}", inputs="float[2, 3] x")
    assert {key: found[key] for key in ("parts.empty", "sizes.empty") if key in found} == expected


@pytest.mark.parametrize(
    ("body", "inputs", "is_vector"),
    [
        ("p = Identity (w) y = Mul (x, p)", "float[2, 3, 8] x", True),
        ("p = Identity (w) y = PRelu (x, p)", "float[2, 3, 8] x", True),
        ("p = Identity (w) y = Mul (p, x) z = LayerNormalization (x, p)", "float[2, 3, 8] x", True),
        # Nothing is broadcast, or nothing of several elements; or it is no weight.
        ("p = Identity (w) y = LayerNormalization (x, p)", "float[2, 3, 8] x", False),
        ("p = Identity (v) y = Mul (x, p)", "float[2, 3, 8] x", False),
        ("p = Identity (n) y = Mul (x, p)", "float[2, 3, 8] x", False),
        ("p = Identity (m) y = Mul (x, p)", "float[2, 3, 8] x", False),
        ("p = Identity (u) y = Mul (x, p)", "float[2, 3, 8] x, float[8] u", False),
    ],
)
def test_a_weight_that_several_nodes_share(body: str, inputs: str, is_vector: bool) -> None:
    constants = (
        "w = Constant <value_floats = [1., 2., 3., 4., 5., 6., 7., 8.]> () v = Constant <value_floats = [1.]> () "
        "n = Constant <value_float = 2.> () m = Constant <value = float[1, 2] {1, 2}> () "
    )
    found = factors(constants + body.replace("p = Identity", "[n] p = Identity"), inputs=inputs)
    assert found.get("use.elementwise") == ("yes" if is_vector else None)


def test_who_reads_a_shape() -> None:
    body = (
        "[n] s = Shape (x) i = Constant <value_int = 0> () d = Gather (s, i) e = Expand (x, s) "
        "f = Cast <to = 1> (d) y = Add (e, f)"
    )
    assert {key for key in factors(body) if key.startswith("use")} == {"use.Gather", "use.whole"}


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("float[2]", {"ranks": "equal", "shapes": "equal"}),
        ("float[3]", {"shapes": "differ"}),
        ("float[1, 2]", {"ranks": "differ"}),
    ],
)
def test_branches(other: str, expected: Mapping[str, str]) -> None:
    """Branches are read as they are written."""
    value = {"float[2]": "float[2] {1, 2}", "float[3]": "float[3] {1, 2, 3}", "float[1, 2]": "float[1, 2] {1, 2}"}[
        other
    ]
    body = (
        "[n] y = If (c) <then_branch = a () => (float[2] p) { p = Constant <value = float[2] {1, 2}> () }, "
        f"else_branch = b () => ({other} q) {{ q = Constant <value = {value}> () }}>"
    )
    found = factors(body, inputs="bool c")
    assert {key: found.get(key) for key in expected} == expected
    assert (found["cond"], found["captures"], found["body"]) == ("input", "no", "nodes")


def test_a_value_of_a_body_is_no_constant() -> None:
    body = (
        "y = Loop (m, t, x) <body = b (int64 i, bool c, float[2, 3, 8] a) => (bool d, float[2, 3, 8] e) "
        "{ d = Identity (c) [n] e = Add (a, a) }>"
    )
    assert factors(body, inputs="int64 m, bool t, float[2, 3, 8] x")["B"] == "data"


def test_equal_nodes_that_differ_in_who_reads_them_have_other_factors() -> None:
    """The walk visits them once."""
    text = (
        '<ir_version: 8, opset_import: ["": 17]> g (float[4, 8] x) => (float[2, 8] a, float[2, 8] b) '
        "{ a, b = Split <axis = 0> (x) p, q = Split <axis = 0> (x) }"
    )
    nodes = examine(onnx.parser.parse_model(text)).nodes
    assert ["outputs.unused" in dict(node.factors) for node in nodes] == [False, True]


@pytest.mark.parametrize(
    ("chain", "expected"),
    [("s = Shape (x) t = Abs (s)", "shape"), ("c = Cast <to = 7> (x) t = Abs (c)", "computed")],
)
def test_the_order_of_nodes_says_nothing_of_where_a_list_comes_from(chain: str, expected: str) -> None:
    inputs = "float[N] x" if "Cast" in chain else OPEN
    text = f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => (float[] y) {{ {chain} y = Reshape (x, t) }}'
    model = onnx.parser.parse_model(text)
    turned = onnx.ModelProto()
    turned.CopyFrom(model)
    turned.graph.node.sort(key=lambda node: node.op_type)
    assert turned.graph.node[0].op_type == "Abs"
    for given in (model, turned):
        (reshape,) = (node for node in examine(given).nodes if node.node.op_type == "Reshape")
        assert dict(reshape.factors)["shape"] == expected
