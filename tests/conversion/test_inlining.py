"""Calls of functions that are written out: what onnx's inliner leaves out by itself is kept."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.inliner
import onnx.parser
import pytest

import splitgraph
from splitgraph.verification.reference.evaluator import load, run

DATA = {"x": np.arange(-8, 8, dtype=np.float32).reshape(2, 8)}

HEAD = '<ir_version: 9, opset_import: ["" : 18, "my" : 1]> g (float[N,8] x) => (float[N,4] a, float[N,4] b)'
FUNCTION = '<domain: "my", opset_import: ["" : 18]>'
SPLIT = "a0, b = Split<axis = 1, num_outputs = 2>(x)"

MODELS = {
    "a default that is read": f"""{HEAD} {{ a, b = my.f(x) }}
        {FUNCTION} f<alpha: float = 0.5>(x) => (a, b) {{ {SPLIT} a = LeakyRelu<alpha: float = @alpha>(a0) }}""",
    "a default that is the value of a constant": f"""{HEAD} {{ a, b = my.f(x) }}
        {FUNCTION} f<s: float = 0.5>(x) => (a, b) {{
            {SPLIT} c = Constant<value_float: float = @s>() a = Mul(a0, c) }}""",
    "a default of the split itself": f"""{HEAD} {{ a, b = my.f(x) }}
        {FUNCTION} f<d: int = 1>(x) => (a, b) {{ a, b = Split<axis: int = @d, num_outputs = 2>(x) }}""",
    "a default beside a value": f"""{HEAD} {{ a, b0 = my.f<alpha = 2.0>(x) c, b = my.f(x) }}
        {FUNCTION} f<alpha: float = 0.5>(x) => (a, b) {{ {SPLIT} a = LeakyRelu<alpha: float = @alpha>(a0) }}""",
    "a default of a function in a function": f"""{HEAD} {{ a, b = my.outer(x) }}
        {FUNCTION} f<alpha: float = 0.5>(x) => (a, b) {{ {SPLIT} a = LeakyRelu<alpha: float = @alpha>(a0) }}
        <domain: "my", opset_import: ["" : 18, "my" : 1]> outer(x) => (a, b) {{ a, b = my.f(x) }}""",
    "a default that is passed on": f"""{HEAD} {{ a, b = my.outer(x) }}
        {FUNCTION} f<alpha: float = 0.5>(x) => (a, b) {{ {SPLIT} a = LeakyRelu<alpha: float = @alpha>(a0) }}
        <domain: "my", opset_import: ["" : 18, "my" : 1]> outer<beta: float = 3.0>(x) => (a, b) {{
            a, b = my.f<alpha: float = @beta>(x) }}""",
    "a default of a call in a branch": f"""{HEAD} {{
            c = Constant<value = bool {{1}}>()
            a, b = If(c) <then_branch = t () => (p, q) {{ p, q = my.f(x) }},
                          else_branch = e () => (q, p) {{ q, p = my.f<alpha = 2.0>(x) }}> }}
        {FUNCTION} f<alpha: float = 0.5>(x) => (a, b) {{ {SPLIT} a = LeakyRelu<alpha: float = @alpha>(a0) }}""",
    "an output that is an input": f"""{HEAD} {{ {SPLIT} a = my.f(a0) }}
        {FUNCTION} f(v) => (v) {{ unused = Neg(v) }}""",
    "an output that is handed out twice": f"""{HEAD} {{ {SPLIT} a, a2 = my.f(a0) }}
        {FUNCTION} f(v) => (w, w) {{ w = Neg(v) }}""",
}


@pytest.mark.parametrize("text", MODELS.values(), ids=MODELS.keys())
def test_what_is_written_out_means_the_same(text: str) -> None:
    model = onnx.parser.parse_model(text)
    before = model.SerializeToString()
    result = splitgraph.convert(model, "split", explicit_lengths=True).model
    assert model.SerializeToString() == before
    assert not result.functions
    onnx.checker.check_model(result, full_check=True)
    for want, have in zip(run(load(model), DATA), run(load(result), DATA), strict=True):
        np.testing.assert_array_equal(want, have)


def test_a_default_that_would_be_lost_keeps_the_functions() -> None:
    """Where outer is called without beta, f has its default; onnx's inliner would leave alpha out."""
    model = onnx.parser.parse_model(f"""{HEAD} {{ a, b = my.outer(x) }}
        {FUNCTION} f<alpha: float = 0.5>(x) => (a, b) {{ {SPLIT} a = LeakyRelu<alpha: float = @alpha>(a0) }}
        <domain: "my", opset_import: ["" : 18, "my" : 1]> outer<beta>(x) => (a, b) {{
            a, b = my.f<alpha: float = @beta>(x) }}""")
    result = splitgraph.convert(model, "split", explicit_lengths=True)
    assert {function.name for function in result.model.functions} == {"f", "outer"}
    (note,) = [found for found in result.diagnostics if found.code == "SG413"]
    assert "'alpha', which has a default where that is not given" in note.message


def test_keepdims_of_a_function_that_no_value_is_known_of() -> None:
    """A body that is converted as written serves calls with either."""
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18, "my" : 1]>
        g (float[2,8] x) => (float[2] y) { y = my.f<a = 0>(x) }
        <domain: "my", opset_import: ["" : 18]> f<a>(x) => (y) {
            s = SplitToSequence<axis = 1, keepdims: int = @a>(x)
            i = Constant<value_int = 0>()
            y = SequenceAt(s, i) }""")
    result = splitgraph.convert(model, "split").model
    onnx.checker.check_model(result, full_check=True)
    assert [node.op_type for node in result.functions[0].node] == ["SplitToSequence", "Constant", "SequenceAt"]
    assert splitgraph.verify(model, result).verdict == "equal"
