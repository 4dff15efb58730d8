"""Values that a node reads before anything gives them: out of order, in a cycle, or missing."""

from __future__ import annotations

import onnx
import pytest

from splitgraph.inference import infer_model

IF = "y = If (c) <then_branch = t () => (float[N] a) {{ {} }}, else_branch = e () => (float[N] b) {{ b = Neg (x) }}>"
AROUND = "which depends on the node around it: a cycle"
HERE = "which depends on this node: a cycle"
ORDER = "the nodes are out of order"
NOTHING = "which no input, initializer or earlier node defines"
IN_BRANCH = "main/If#0/then_branch"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("z = Abs (x) " + IF.format("a = Relu (z)"), []),
        ("y = Relu (z) z = Abs (x)", [("SG112", "main", ORDER)]),
        ("y = Relu (y)", [("SG102", "main/Relu#0", HERE)]),
        ("y = Relu (z)", [("SG105", "main/Relu#0", NOTHING)]),
        (IF.format("a = Relu (z)"), [("SG105", f"{IN_BRANCH}/Relu#0", NOTHING)]),
        (IF.format("a = Relu (z) z = Abs (x)"), [("SG112", IN_BRANCH, ORDER)]),
        ("y = Relu (z) z = Abs (w) w = Neg (z)", [("SG102", "main/Abs#1", HERE), ("SG112", "main", ORDER)]),
        # As quantizers leave it: what feeds the branch was put at the end.
        (IF.format("a = Relu (z)") + " z = Abs (x)", [("SG112", "main", ORDER)]),
        (IF.format("a = Relu (y)"), [("SG102", f"{IN_BRANCH}/Relu#0", AROUND)]),
        (
            IF.format(IF.format("a = Relu (z)").replace("y = ", "a = ")) + " z = Abs (x)",
            [("SG112", "main", ORDER)],
        ),
    ],
)
def test_a_value_that_is_read_too_early(body: str, found: list[tuple[str, str, str]]) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 13]> g (float[N] x, bool c) => (float[N] y) {{ {body} }}'
    reported = infer_model(onnx.parser.parse_model(text)).diagnostics
    assert [(each.code, each.location) for each in reported] == [(code, location) for code, location, _ in found]
    assert all(text in each.message for each, (_, _, text) in zip(reported, found, strict=True))


@pytest.mark.parametrize("is_called", [True, False])
def test_an_output_of_a_function_that_its_body_does_not_define(is_called: bool) -> None:
    call = "y, z = my.f (x)" if is_called else "y = Relu (x) z = Relu (x)"
    text = (
        f'<ir_version: 8, opset_import: ["" : 13, "my" : 1]> g (float[N] x) => (float[N] y, float[N] z) {{ {call} }}'
        '<domain: "my", opset_import: ["" : 13]> f (a) => (b, c) { b = Abs (a) }'
    )
    (found,) = infer_model(onnx.parser.parse_model(text)).diagnostics
    assert (found.code, found.location) == ("SG105", "main/f#0" if is_called else "my::f")
    assert "nothing in the body of the function 'f' defines its output 'c'" in found.message
