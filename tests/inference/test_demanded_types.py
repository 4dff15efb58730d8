"""What nodes demand of a value that nothing describes: the outputs of unknown operators, inputs without a shape."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import splitgraph

INPUTS = (
    "float[N, 8, 4, 4] x, float[8, 6, 2, 2] w, double[8, 6] k, float16[1, 16, 4] r, float16[1, 16, 4] s, "
    "int64[4] four, float[6] six, bool b"
)
# The nodes after `c = my.Op (x)`, and what is known of c.
DEMANDED = [
    ("y = ConvTranspose (c, w)", "float32[?, 8, ?, ?]"),
    ("y = Conv (c, w)", "float32[?, 6, ?, ?]"),
    ("y = MaxPool <kernel_shape = [2, 2]> (c)", "?[?, ?, ?, ?]"),
    ("y = AveragePool <kernel_shape = [2]> (c)", "?[?, ?, ?]"),
    ("y = Gemm (c, k)", "float64[?, 8]"),
    ("y = LSTM <hidden_size = 4> (c, r, s)", "float16[?, ?, 4]"),
    ("y = Transpose <perm = [0, 2, 1]> (c)", "?[?, ?, ?]"),
    ("y = Transpose <perm = [7, 0, 1, 2, 3, 4, 5, 6]> (c)", "?[?, ?, ?, ?, ?, ?, ?, ?]"),
    ("y = Concat <axis = 1> (c, x)", "float32[?, ?, 4, 4]"),
    ("y = Tile (c, four)", "?[?, ?, ?, ?]"),
    ('y = Einsum <equation = "bij,bjk->bik"> (c, z) z = Relu (c)', "?[?, ?, ?]"),
    ("y = DepthToSpace <blocksize = 2> (c)", "?[?, ?, ?, ?]"),
    ("y = Reshape (x, c)", "int64[?]"),
    ("y = Compress (x, c)", "bool[?]"),
    # Of an input of another node that nothing describes.
    ("z = my.Op (x) y = Pad (z, c)", "int64[?]"),
    ("z = my.Op (x) y = Resize (z, , c)", "float32[?]"),
    ("z = my.Op (x) y = ScatterElements (c, z, x)", "float32[?, ?, ?, ?]"),
    # Element types alone.
    ("y = Add (c, x)", "float32[...]"),
    ("y = MatMul (c, k)", "float64[...]"),
    ("y = Where (c, x, x)", "bool[...]"),
    # Through nodes that keep the rank.
    ("a = Relu (c) y = Conv (a, w)", "float32[?, 6, ?, ?]"),
    ("a = Relu (c) e = Softmax (a) f = Clip (e) y = Conv (f, w)", "float32[?, 6, ?, ?]"),
    # Only one rank broadcasts to what a later node demands.
    ("a = Add (c, six) y = Conv (a, w)", "float32[?, 6, ?, ?]"),
    ("a = Cast <to = 1> (c) y = Conv (a, w)", "?[?, 6, ?, ?]"),
]
# Nothing follows: several ranks are possible, or the node may not run, or is unknown itself.
OPEN = [
    ("y = MatMul (c, x)", "float32[...]"),
    ("y = Expand (c, four)", "unknown"),
    ("y = Shape (c)", "unknown"),
    ("y = my.Op (c, w)", "unknown"),
    ("y = Flatten (c)", "unknown"),
    ("y = ReduceMax <keepdims = 0> (c)", "unknown"),
    ("y = Conv <strides = [1, 1, 1]> (c, w)", "float32[...]"),
    ("y = Gather (c, four)", "unknown"),
    ("y = Gather (x, c)", "unknown"),
    # A rank of at least 8, and one of at least 9.
    ("y = Softmax <axis = 7> (c)", "unknown"),
    ("y = Hardmax <axis = -9> (c)", "unknown"),
    ("y = Concat <axis = 7> (c)", "unknown"),
]


def made_of(body: str, signature: str = INPUTS, opset: int = 18) -> onnx.ModelProto:
    text = f"g ({signature}) => (float[...] y) {{ {body} }}".replace("float[...] y", "float y")
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "my" : 1]> {text}')
    model.graph.output[0].type.Clear()
    return model


def shown(model: onnx.ModelProto, name: str = "c") -> str:
    analysis = splitgraph.infer(model)
    known = analysis.types[name]
    if known.shape is None:
        return str(known)
    dims = ["?" if str(dim) in analysis.generated or not isinstance(dim, int) else dim for dim in known.shape]
    return f"{known.dtype or '?'}[{', '.join(map(str, dims))}]"


@pytest.mark.parametrize(("body", "known"), OPEN)
def test_where_several_types_are_possible_nothing_is_said(body: str, known: str) -> None:
    assert shown(made_of(f"c = my.Op (x) {body}")) == known


@pytest.mark.parametrize(("body", "known"), DEMANDED)
def test_what_the_other_inputs_demand_is_known(body: str, known: str) -> None:
    assert shown(made_of(f"c = my.Op (x) {body}")) == known


def test_a_branch_demands_nothing_of_the_graph_around_it() -> None:
    body = "c = my.Op (x) y = If (b) <then_branch = t () => (float[P] p) { p = Conv (c, w) }, "
    body += "else_branch = e () => (float[Q] q) { q = Relu (x) }>"
    assert shown(made_of(body)) == "unknown"


def test_an_input_without_a_shape_is_of_the_rank_that_its_readers_demand() -> None:
    model = made_of("y = Conv (x, w)", "float[8, 6, 2, 2] w")
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, None))
    assert shown(model, "x") == "float32[?, 6, ?, ?]"


def test_an_earlier_reader_knows_what_a_later_one_demands() -> None:
    assert shown(made_of("c = my.Op (x) a = Shape (c) y = Conv (c, w)"), "a") == "int64[4]"


def test_a_declared_rank_that_contradicts_is_found_as_before() -> None:
    model = made_of("c = my.Op (x) y = Conv (c, w)")
    model.graph.value_info.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, [2, 6, 9]))
    assert [found.code for found in splitgraph.infer(model).diagnostics if found.severity == "error"] == ["SG302"]


@pytest.mark.parametrize(
    ("body", "above", "below"),
    [
        ('y = ConvTranspose <auto_pad = "SAME_UPPER", strides = [2, 2]> (c, w)', 11, 10),
        ('a = Relu (c) y = ConvTranspose <auto_pad = "SAME_LOWER", strides = [1, 1]> (a, w)', 11, 10),
        ("y = Resize <axes = [2, 3]> (c, , , h) a = Conv (c, w)", 18, 16),
        ("p = Concat <axis = 0> (h, h) y = Pad (c, p, , h) a = Conv (c, w)", 18, 17),
        ("y = Clip (c) a = Conv (c, w)", 11, 10),
        ('d = my.Op (x) y = GridSample <mode = "linear"> (c, d) a = Conv (c, w)', 20, 16),
    ],
)
def test_a_conversion_that_needs_the_rank_or_type_is_not_refused(body: str, above: int, below: int) -> None:
    model = made_of(f"c = my.Op (x) {body}", f"{INPUTS}, int64[2] h", above)
    model.ir_version = 6
    assert splitgraph.downgrade(model, below).to_opset[""] == below


def test_the_result_of_infer_has_no_new_finding() -> None:
    first = splitgraph.infer(made_of("c = my.Op (x) a = Relu (c) y = ConvTranspose (a, w)"))
    again = splitgraph.infer(first.model)
    assert (again.diagnostics, again.types["c"].rank) == (first.diagnostics, 4)
