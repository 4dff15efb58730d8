"""What is known of sizes: errors only where no sizes fit, the plainest dimension that holds, and texts for people."""

from __future__ import annotations

import json
import re

import onnx
import pytest
from chain_checks import texts_of
from node_models import infer_nodes, model_of

import splitgraph
from splitgraph.dim import evaluate
from splitgraph.inference import infer_model

FLAT = "int64[1] flat = {-1}, int64[2] zero_rest = {0, -1}, int64[3] halves = {0, 2, -1}, int64[1] one = {1}"
FLAT += ", int64[1] zero = {0}, int64[1] two = {2}, int64[1] eight = {8}"

# A remainder is known of one polynomial, and another one is divided ---------------------------------------------------

# The model, the value whose first dimension is asked for, and sizes at which the model runs with what it is there.
PRODUCTS = {
    "a factor of what is split": (
        "float[N, X] x, float[3, X] three, float[2] two_more",
        "a = Concat<axis=0>(x, three) p, q, r, s = Split<axis=0>(a) f = Reshape(x, flat)"
        " g = Concat<axis=0>(f, two_more) y, y2, y3, y4, y5, y6, y7, y8 = Split<axis=0>(g)",
        {"N": 1, "X": 6},
        1,
    ),
    "a factor of a computed length": (
        "float[N, X] x, float[3, X] three",
        "a = Concat<axis=0>(x, three) p, q, r, s = Split<axis=0>(a) shape = Shape(x) n = Gather(shape, zero)"
        " m = Gather(shape, one) nm = Mul(n, m) more = Add(nm, two) part = Div(more, eight) y = ConstantOfShape(part)",
        {"N": 1, "X": 6},
        1,
    ),
    "a multiple of what is split": (
        "float[X, b] x, float[b] e, float[3] three",
        "f = Reshape(x, flat) a, a2, a3, a4, a5, a6, a7, a8 = Split<axis=0>(f) g = Concat<axis=0>(e, three)"
        " y, y2, y3, y4 = Split<axis=0>(g)",
        {"X": 8, "b": 1},
        1,
    ),
    "a square": (
        "float[N, N] x, float[N] e, float[1] one_more",
        "g = Concat<axis=0>(e, one_more) p, q, r, s = Split<axis=0>(g) f = Reshape(x, flat)"
        " h = Concat<axis=0>(f, one_more) y, y2 = Split<axis=0>(h)",
        {"N": 3},
        5,
    ),
    "one of three factors": (
        "float[N, X, W] x, float[N] e, float[1] one_more",
        "g = Concat<axis=0>(e, one_more) p, q, r = Split<axis=0>(g) f = Reshape(x, flat)"
        " h = Concat<axis=0>(f, one_more) y, y2, y3, y4, y5, y6 = Split<axis=0>(h)",
        {"N": 5, "X": 1, "W": 1},
        1,
    ),
    "a product beside a sum": (
        "float[N, X] x, float[N] e, float[W] w, float[3] three",
        "g = Concat<axis=0>(e, three) p, q, r, s = Split<axis=0>(g) f = Reshape(x, flat)"
        " h = Concat<axis=0>(f, w) y, y2, y3, y4 = Split<axis=0>(h)",
        {"N": 5, "X": 1, "W": 3},
        2,
    ),
    "a multiple by a number": (
        "float[N] x, float[3] three, float[1] one_more",
        "g = Concat<axis=0>(x, three) p, q, r, s = Split<axis=0>(g) h = Concat<axis=0>(x, x, x, one_more)"
        " y, y2, y3, y4, y5, y6, y7, y8 = Split<axis=0>(h)",
        {"N": 5},
        2,
    ),
}


@pytest.mark.parametrize(("inputs", "body", "sizes", "expected"), PRODUCTS.values(), ids=PRODUCTS)
def test_a_remainder_says_nothing_of_other_polynomials(
    inputs: str, body: str, sizes: dict[str, int], expected: int
) -> None:
    analysis = infer_nodes(inputs, body, opset=13, constants=FLAT)
    assert [found.code for found in analysis.diagnostics] == []
    (dim,) = analysis.types["y"].shape or ()
    assert dim is not None
    assert evaluate(dim, sizes) == expected
    assert [str(each) for each in analysis.obligations if not eval(str(each), {}, dict(sizes))] == []


# What no sizes satisfy stays an error.
CONTRADICTIONS = {
    "the same dimension": "g = Concat<axis=0>(e, one_more) p, q = Split<axis=0>(g) y, y2 = Split<axis=0>(e)",
    "a multiple of it": "p, q = Split<axis=0>(e) g = Concat<axis=0>(e, e, e, one_more)"
    " y, y2, y3, y4 = Split<axis=0>(g)",
    "a product with it": "p, q = Split<axis=0>(e) f = Reshape(x, flat) g = Concat<axis=0>(f, one_more)"
    " y, y2 = Split<axis=0>(g)",
}


@pytest.mark.parametrize("body", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_what_no_sizes_satisfy_is_an_error(body: str) -> None:
    analysis = infer_nodes("float[N, X] x, float[N] e, float[1] one_more", body, opset=13, constants=FLAT)
    assert [found.code for found in analysis.diagnostics if found.severity == "error"] == ["SG206"]


# The plain dimension --------------------------------------------------------------------------------------------------

PLAIN = {
    "halves joined": ("float[N] x", "a, b = Split(x) y = Concat<axis=0>(a, b)", 13, "N"),
    "thirds joined": ("float[W] x", "a, b, c = Split(x) y = Concat<axis=0>(c, b, a)", 13, "W"),
    "two thirds": ("float[W] x", "a, b, c = Split(x) y = Concat<axis=0>(a, b)", 13, "2*(W//3)"),
    "twice all halves": ("float[N] x", "a, b = Split(x) y = Concat<axis=0>(a, b, b, a)", 13, "2*N"),
    "joined before it is known": ("float[N] x", "s = Shape(x) h = Div(s, two) d = Mul(h, two) y = ConstantOfShape(d)"
                                  " a, b = Split(x)", 13, "N"),
    "reshaped and back": ("float[N, W] x", "a = Reshape(x, halves) y = Reshape(a, zero_rest)", 18, "N, W"),
    "reshaped to rows and back": ("float[W] x", "a = Reshape(x, rows) y = Reshape(a, flat)", 18, "W"),
    "repeated": ("float[N] x", "a, b = Split(x) y = Tile(a, two)", 13, "N"),
    "parts of parts": ("float[N] x", "a, b = Split(x) c, d = Split(a) y = Concat<axis=0>(c, d, b)", 13, "N"),
    "joined parts of a sum": ("float[N] x, float[3] z", "g = Concat<axis=0>(x, z) a, b = Split(g)"
                              " y = Concat<axis=0>(a, b)", 13, "N + 3"),
    "a sequence of all": ("float[N] x", "a, b = Split(x) s = SequenceConstruct(a, b)"
                          " y = ConcatFromSequence<axis=0>(s)", 13, "N"),
    "padded": ("float[N] x, float[N] z", "a, b = Split(x) c = Concat<axis=0>(a, b) y = Sub(c, z)", 13, "N"),
    "of a size that is known": ("float[N] x", "a, b = Split(x, three_five) y = Concat<axis=0>(x, x)", 13, "16"),
    "a symbol by itself": ("float[N] x", "a, b = Split(x, three_five) y = Relu(x)", 13, "N"),
    "an expression of which nothing is known": ("float[N] x", "s = Shape(x) h = Div(s, two) d = Mul(h, two)"
                                                " y = ConstantOfShape(d)", 13, "2*(N//2)"),
    "of which something else is known": ("float[N] x", "a, b, c = Split(x) s = Shape(x) h = Div(s, two) d = Mul(h, two)"
                                         " y = ConstantOfShape(d)", 13, "2*(N//2)"),
    "a lone half": ("float[N] x", "a, y = Split(x)", 13, "N//2"),
}  # fmt: skip
ROWS = ", int64[2] rows = {3, -1}, int64[2] three_five = {3, 5}"


@pytest.mark.parametrize(("inputs", "body", "opset", "expected"), PLAIN.values(), ids=PLAIN)
def test_dimensions_are_plain(inputs: str, body: str, opset: int, expected: str) -> None:
    analysis = infer_nodes(inputs, body, opset=opset, constants=FLAT + ROWS)
    assert analysis.ok
    assert ", ".join(map(str, analysis.types["y"].shape or ())) == expected


@pytest.mark.parametrize(("inputs", "body", "opset", "expected"), PLAIN.values(), ids=PLAIN)
def test_they_are_plain_in_the_file_as_well(inputs: str, body: str, opset: int, expected: str) -> None:
    model = model_of(inputs, body, opset=opset, constants=FLAT + ROWS)
    model.graph.output.append(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None))
    (output,) = splitgraph.infer(model).model.graph.output
    assert ", ".join(dim.dim_param or str(dim.dim_value) for dim in output.type.tensor_type.shape.dim) == expected


def test_a_branch_knows_what_it_requires_and_what_is_required_around_it() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[N] x, float[M] z, bool c) => (float[?] y) {'
        " y = If (c) <then_branch = t () => (float[?] r) { a, b = Split(x) r = Concat<axis=0>(a, b) },"
        " else_branch = e () => (float[?] s) { s = Concat<axis=0>(p, q) }>"
        " p, q = Split(z) }"
    )
    # Nodes in order: the split of z first.
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    analysis = splitgraph.infer(model)
    assert str(analysis.graphs["main/If#1/then_branch"]["r"]) == "float32[N]"
    assert str(analysis.graphs["main/If#1/else_branch"]["s"]) == "float32[M]"


def test_both_branches_give_the_plain_dimension() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[N] x, bool c) => (float[?] y) {'
        " y = If (c) <then_branch = t () => (float[?] r) { a, b = Split(x) r = Concat<axis=0>(a, b) },"
        " else_branch = e () => (float[?] s) { s = Identity(x) }> }"
    )
    assert str(splitgraph.infer(model).types["y"]) == "float32[N]"


def test_branches_give_what_is_known_to_be_equal_around_them() -> None:
    inputs = "float[N] x, float[K] k, float[1] one, float[N, 2] rows, bool c"
    body = "longer = Concat<axis=0>(k, one) p = MatMul(longer, rows)"
    branches = "then_branch = t () => (r) { r = Relu(longer) }, else_branch = e () => (s) { s = Identity(x) }"
    analysis = infer_nodes(inputs, f"{body} y = If (c) <{branches}>")
    assert [str(dim) for dim in analysis.types["y"].shape] == ["K + 1"]


OBLIGATIONS = {
    "the later one says more": ("a, b = Split<axis=0>(x) c, d, e, f = Split<axis=0>(x)", ["N % 4 == 0"]),
    "the earlier one says more": ("c, d, e, f = Split<axis=0>(x) a, b = Split<axis=0>(x)", ["N % 4 == 0"]),
    "neither does": ("a, b = Split<axis=0>(x) c, d, e = Split<axis=0>(x)", ["N % 2 == 0", "N % 3 == 0"]),
    "an equation says all": ("a, b = Split<axis=0>(x) c = Split<axis=0>(x, eight)", ["N == 8"]),
    "a longer dimension": ("b, c = Split<axis=0>(x, lengths) y = Slice(x, zero, two) d = Add(x, ten)", ["N == 10"]),
    "of two dimensions": ("a, b = Split<axis=0>(x) c, d = Split<axis=1>(x)", ["N % 2 == 0", "X % 2 == 0"]),
    "under a product": ("y = Reshape(x, halves) a, b = Split<axis=1>(x)", ["N >= 1", "X % 2 == 0"]),
    "the rest that is left": ("y = Reshape(x, halves)", ["N >= 1", "X % 2 == 0"]),
}


@pytest.mark.parametrize(("body", "expected"), OBLIGATIONS.values(), ids=OBLIGATIONS)
def test_what_follows_from_others_is_not_listed(body: str, expected: list[str]) -> None:
    constants = FLAT + ", int64[2] lengths = {4, 6}, float[10, 1] ten = {1,1,1,1,1,1,1,1,1,1}"
    analysis = infer_nodes("float[N, X] x", body, opset=13, constants=constants)
    assert [str(each) for each in analysis.obligations] == expected
    assert {text for split in analysis.splits for text in split.obligations} <= set(expected)


# Texts ----------------------------------------------------------------------------------------------------------------

UNKNOWN_SIDES = {
    "a sum of three": ("float[a] x, float[b] y, float[c] z", "r = Add(x, y) s = Add(r, z) t = Relu(s)"),
    "all at once": ("float[a] x, float[b] y, float[c] z", "r = Sum(x, y, z) t = Relu(r)"),
    "a choice": ("bool[a] x, float[b] y, float[c] z", "r = Where(x, y, z) t = Relu(r)"),
    "unnamed": ("float[?] x, float[b] y, float[?] z", "r = Add(x, y) s = Add(r, z) t = Relu(s)"),
    "a maximum of four": ("float[a] x, float[b] y, float[c] z, float[d] w", "r = Max(x, y, z, w) t = Relu(r)"),
    "batches": ("float[a,2,3] x, float[b,3,4] y, float[c,4,5] z", "r = MatMul(x, y) s = MatMul(r, z) t = Relu(s)"),
    "expanded": ("float[a] x, float[b] y, float[c] z", "r = Add(x, y) sh = Shape(z) s = Expand(r, sh) t = Relu(s)"),
    "a rank that nobody knows": ("float[a] x, int64[k] sh", "r = Reshape(x, sh) s, t = Split<axis=1>(r)"),
    "unknown elements": (
        "float[a] x, int64[2] sh",
        "r = Reshape(x, sh) s, t = Split<axis=1>(r) u = Concat<axis=0>(s, t)",
    ),
    "unknown lengths": ("float[a, 6] x, int64[2] l", "s, t = Split<axis=1>(x, l) u = Concat<axis=0>(s, t)"),
    "what a mask leaves": ("float[a] x, bool[b] m, float[c] z", "r = Compress<axis=0>(x, m) s = Add(r, z) t = Relu(s)"),
}
_PYTHON = re.compile(r"\b(None|True|False|inf|nan|Dim)\b")


@pytest.mark.parametrize(("inputs", "body"), UNKNOWN_SIDES.values(), ids=UNKNOWN_SIDES)
def test_no_text_has_a_word_of_python(inputs: str, body: str) -> None:
    analysis = infer_nodes(inputs, body, opset=13)
    assert [text for text in texts_of(analysis) if _PYTHON.search(text)] == []
    assert "None" not in json.dumps([str(value) for value in analysis.types.values()])


@pytest.mark.parametrize("case", ["a sum of three", "all at once", "a choice"])
def test_a_broadcast_of_named_dimensions_is_the_largest(case: str) -> None:
    analysis = infer_nodes(*UNKNOWN_SIDES[case], opset=13)
    assert (str(analysis.types["t"].shape[0]), analysis.obligations) == ("max(a, b, c)", ())
    assert sorted(map(str, analysis.assumptions)) == ["a >= 1", "b >= 1", "c >= 1"]


def test_a_broadcast_where_nothing_is_assumed_is_told_by_the_dimensions_that_are_shown() -> None:
    inputs, body = UNKNOWN_SIDES["a sum of three"]
    analysis = infer_model(model_of(inputs, body, opset=13))
    assert [str(each) for each in analysis.obligations] == ["unk0 == min(1, a)*min(1, b)*min(1, c)*max(a, b, c)"]


NOTHING = "p = Split <axis = 0> (x, none)"
FOUND = "i = NonZero (v) x = Transpose (i)"
SIZES_OF_NOTHING = {
    "before": (f"{NOTHING} DIVISION", "float[C, 4] x"),
    "after": (f"DIVISION {NOTHING}", "float[C, 4] x"),
    "a generated symbol, before": (f"{FOUND} {NOTHING} DIVISION", "float[M] v"),
    "a generated symbol, after": (f"{FOUND} DIVISION {NOTHING}", "float[M] v"),
}
DIVISIONS = {
    "reshape": "s = Shape <start = 0, end = 1> (x) t = Concat <axis = 0> (minus, s) z = Reshape (y, t)",
    "arithmetic": "s = Shape <start = 0, end = 1> (x) u = Shape <start = 0, end = 1> (y) d = Div (u, s)"
    " q = Expand (one, d) h = Shape (q) k = Sub (h, one) z = Expand (minus, k) e = Slice (y, none, d)",
}


@pytest.mark.parametrize("division", DIVISIONS.values(), ids=DIVISIONS)
@pytest.mark.parametrize(("order", "given"), SIZES_OF_NOTHING.values(), ids=SIZES_OF_NOTHING)
def test_division_by_a_dimension_that_is_found_to_be_0(order: str, given: str, division: str) -> None:
    """It ended in a ZeroDivisionError."""
    constants = "int64[1] none = {0}, int64[1] minus = {-1}, int64[1] one = {1}"
    text = f"g ({given}, float[A, 4] y) => () <{constants}> {{ {order.replace('DIVISION', division)} }}"
    analysis = infer_model(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}'))
    assert analysis.types["z"].dtype in ("float32", "int64")
