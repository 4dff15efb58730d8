"""Nodes by their locations: what a finding is about."""

from __future__ import annotations

import onnx
import pytest

from splitgraph.findings.diagnostics import diagnostic
from splitgraph.model.places import with_nodes
from splitgraph.model.scopes import scopes

MODEL = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 13, "local": 1, "com.example": 3]>
g (float[N] x, bool c) => (float[N] y) {
    ["/layer/0/Neg"] a = Neg(x)
    b = Abs(a)
    [twice] d = Relu(b)
    [twice] e = Sigmoid(d)
    [same] f = Neg(e)
    [same] h = Neg(f)
    [call] i = local.Outer(h)
    [mine] j = com.example.Thing(i)
    [if] y = If (c) <
        then_branch = t () => (float[N] p) { [inside] p = Abs(j) },
        else_branch = e () => (float[N] q) { q = Neg(j) }
    >
}
<domain: "local", opset_import: ["": 17, "local": 1]>
Outer (v) => (w) { [next] w = local.Inner(v) }
<domain: "local", opset_import: ["": 17]>
Inner (v) => (w) { ["deep/est"] w = Relu(v) }
""")


@pytest.mark.parametrize(
    ("location", "node", "operator"),
    [
        ("main//layer/0/Neg", "/layer/0/Neg", "Neg-13"),
        ("main/Abs#1", "Abs#1", "Abs-13"),
        # Two nodes of one name: the operator is known where it is the same.
        ("main/twice", "twice", None),
        ("main/same", "same", "Neg-13"),
        ("main/call", "call", "local.Outer"),
        ("main/mine", "mine", "com.example.Thing"),
        ("main/if/then_branch/inside", "inside", "Abs-13"),
        ("main/if/else_branch/Neg#0", "Neg#0", "Neg-13"),
        # In the body of a function, by its call and as written.
        ("main/call/next/deep/est", "deep/est", "Relu-14"),
        ("local::Inner/deep/est", "deep/est", "Relu-14"),
        # A graph, a value, a file, nothing.
        ("main/if/then_branch", None, None),
        ("main/x", None, None),
        ("main", None, None),
        ("/models/a.onnx", None, None),
        ("", None, None),
    ],
)
def test_the_node_of_a_location(location: str, node: str | None, operator: str | None) -> None:
    (found,) = with_nodes([diagnostic("SG302", "wrong", location)], scopes(MODEL))
    assert (found.node, found.operator) == (node, operator)


def test_what_is_known_stays() -> None:
    known = diagnostic("SG302", "wrong", "main/Abs#1", node="own", operator="Own-1")
    assert with_nodes([known], scopes(MODEL))[0].operator == "Own-1"
