"""What another tool declared of a node that is replaced: right shapes stay, wrong ones go, and no result is refused."""

from __future__ import annotations

import pytest
from onnx import ModelProto, ValueInfoProto, parser, shape_inference

import splitgraph
from splitgraph.conversion.declared_shapes import corrected_result
from splitgraph.conversion.rewrite import Change, step
from splitgraph.model.values import value_type
from splitgraph.options import STRICT
from splitgraph.results import require_valid_rewrite

CAUSAL = "y, a, b, qk = Attention <is_causal = 1, qk_matmul_output_mode = {}> (q, k, v)"
MASKED = "y, a, b, qk = Attention <qk_matmul_output_mode = {}> (q, k, v, m)"
Q, K, V, M = "float[B, 4, S, 8] q", "float[B, 4, T, 8] k", "float[B, 4, T, 6] v", "float[S, T] m"


def model(opset: int, inputs: str, outputs: str, body: str, declared: str = "") -> ModelProto:
    inner = f"<{declared}>" if declared else ""
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {inner} {{ {body} }}'
    )


def shown(made: ModelProto, name: str) -> str | None:
    values: list[ValueInfoProto] = [*made.graph.output, *made.graph.value_info]
    return next((str(value_type(value.type)) for value in values if value.name == name), None)


# Near misses: what stays ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", ["B, 4, S, T", "B, 4, S, U", "A, C, D, E"])
def test_names_and_right_dimensions_stay(declared: str) -> None:
    before = model(
        24, f"{Q}, {K}, {V}", f"float[B, 4, S, 6] y, float[{declared}] qk", CAUSAL.format(2).replace("a, b", ", ")
    )
    rewrite = splitgraph.downgrade(before, 10)
    assert shown(rewrite.model, "qk") == f"float32[{declared}]"
    assert not [found for found in rewrite.diagnostics if found.code == "SG301"]


def test_a_wrong_shape_beside_a_node_that_stays_is_kept() -> None:
    before = model(13, "float[N, 4] x", "float[1, 4] y", "y = Relu (x)")
    assert shown(splitgraph.upgrade(before, 18).model, "y") == "float32[1, 4]"


# What goes ------------------------------------------------------------------------------------------------------------

TABLE = {
    "mode 2": (24, f"{Q}, {K}, {V}", "float[B, 4, S, 6] y, float[B, 4, S, 0] qk", CAUSAL.format(2), (22, 10)),
    "mode 3": (24, f"{Q}, {K}, {V}", "float[B, 4, S, 6] y, float[B, 4, S, 0] qk", CAUSAL.format(3), (22, 10)),
    "mask": (23, f"{Q}, {K}, {V}, {M}", "float[B, 4, S, 6] y, float[B, 4, S, 0] qk", MASKED.format(3), (12,)),
    "another number": (23, f"{Q}, {K}, {V}", "float[7, 4, 7, 6] y, float[B, 4, S, T] qk", CAUSAL.format(1), (13,)),
    "all outputs": (23, f"{Q}, {K}, {V}", "float[1, 1, 1, 1] y, float[2, 2, 2, 2] qk", CAUSAL.format(2), (9,)),
}


@pytest.mark.parametrize(("name", "to"), [(name, to) for name, row in TABLE.items() for to in row[-1]])
def test_an_output_of_a_replaced_node_is_declared_as_inferred(name: str, to: int) -> None:
    opset, inputs, outputs, body, _ = TABLE[name]
    before = model(opset, inputs, outputs, body.replace("a, b", ", "))
    rewrite = splitgraph.downgrade(before, to)
    assert shown(rewrite.model, "y") == "float32[B, 4, S, 6]"
    assert shown(rewrite.model, "qk") == "float32[B, 4, S, T]"
    told = [found for found in rewrite.diagnostics if found.code == "SG301"]
    assert {found.severity for found in told} == {"warning"}
    assert all("declared as" in found.message and "only what is inferred" in found.message for found in told)
    assert not [found for found in splitgraph.infer(rewrite.model).diagnostics if found.severity == "error"]


BODIES = {
    "If": """y = If (c) <
      then_branch = t () => (float[B, 4, S, 0] u) { w, , , u = Attention <qk_matmul_output_mode = 2> (q, k, v) },
      else_branch = e () => (float[B, 4, S, 0] o) { z, , , o = Attention <qk_matmul_output_mode = 3> (q, k, v) }>""",
    "value_info": """p, , , r = Attention <qk_matmul_output_mode = 2, is_causal = 1> (q, k, v)  y = Softmax (r)""",
    "function": """y = local.f (q, k, v)""",
}
FUNCTION = """<domain: "local", opset_import: ["": 23]> f (q, k, v) => (r) {
  p, , , r = Attention <qk_matmul_output_mode = 2, is_causal = 1> (q, k, v) }"""


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("to", [22, 10])
def test_bodies_functions_and_values_between(name: str, to: int) -> None:
    text = f"""<ir_version: 10, opset_import: ["": 23, "local": 1]> g (bool c, {Q}, {K}, {V}) => (float[B, 4, S, W] y)
      {"<float[B, 4, 0, 0] r>" if name == "value_info" else ""} {{ {BODIES[name]} }}"""
    before = parser.parse_model(text + (FUNCTION if name == "function" else ""))
    result = splitgraph.downgrade(before, to).model
    assert not [found for found in splitgraph.infer(result).diagnostics if found.severity == "error"]


@pytest.mark.parametrize("to", [22, 9])
def test_what_onnx_itself_declares(to: int) -> None:
    before = model(23, f"{Q}, {K}, {V}", "float[A, C, D, E] qk", CAUSAL.format(2).replace("a, b", ", "))
    filled = shape_inference.infer_shapes(before)
    assert not [
        f for f in splitgraph.infer(splitgraph.downgrade(filled, to).model).diagnostics if f.severity == "error"
    ]


# What only the nodes of the result show -------------------------------------------------------------------------------


def test_a_result_that_only_a_declaration_contradicts_declares_less() -> None:
    text = """<ir_version: 8, opset_import: ["": 13]> g (float[N] x) => (int64[6, 1] y)
      <int64[5, 1] r, int64[1, 5] i> {
      i = NonZero (x)  r = Transpose (i)  s = Constant <value = int64[2] {6, 1}> ()  y = Reshape (r, s) }"""
    found = corrected_result(parser.parse_model(text), None, STRICT)
    assert found is not None
    result, told = found
    assert (shown(result, "r"), shown(result, "i")) == ("int64[?, 1]", "int64[1, ?]")
    assert shown(result, "y") == "int64[6, 1]"
    assert (told.code, told.severity) == ("SG301", "warning")
    assert "'r'" in told.message


def test_a_wrong_node_is_not_excused_by_a_declaration() -> None:
    text = """<ir_version: 8, opset_import: ["": 13]> g (float[N] x, float[3, 2] w) => (float[A, B] y) <int64[0, 1] r>
      { i = NonZero (x)  r = Transpose (i)  f = Cast <to = 1> (r)  y = MatMul (f, w) }"""
    # NonZero of a vector has one row: the product is wrong whatever is declared.
    assert corrected_result(parser.parse_model(text), None, STRICT) is None


def test_a_shape_that_the_source_computes_is_no_excuse() -> None:
    source = model(13, "float[6, 2] x", "float[3, 2] a, float[3, 2] b", "a, b = Split <axis = 0> (x)")
    wrong = ModelProto()
    wrong.CopyFrom(source)
    wrong.graph.node[0].attribute[0].i = 1
    with pytest.raises(splitgraph.InternalError):
        require_valid_rewrite(source, step(wrong, [Change("main/Split#0", "Split", "Split", "wrong")]), STRICT)
