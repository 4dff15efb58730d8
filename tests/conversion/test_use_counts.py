"""What nobody reads any more after a conversion is removed, from the graph that it is in, and nothing else is."""

from __future__ import annotations

import onnx
from onnx import parser

import splitgraph
from splitgraph.conversion.plan import UseCounts
from splitgraph.model.scopes import scopes


def downgraded(opset: int, target: int, text: str) -> onnx.ModelProto:
    return splitgraph.downgrade(
        parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "own": 1]> {text}'), target
    ).model


def operators(graph: onnx.GraphProto) -> list[str]:
    return [node.op_type for node in graph.node]


def test_in_every_graph() -> None:
    """Axes are attributes below 13."""
    then = "t () => (float[N] t1) { a = Constant<value_ints = [0]>() t1 = Squeeze(x, a) }"
    other = "e () => (float[N] e2) { e1 = Neg(x) b = Constant<value_ints = [0]>() e2 = Squeeze(e1, b) }"
    after = downgraded(
        13,
        12,
        f"""g (bool c, float[1,N] x) => (float[N] y, float[N] z) {{
            axes = Constant<value_ints = [0]>()
            y = Squeeze(x, axes)
            z = If(c)<then_branch = {then}, else_branch = {other}>
        }}""",
    )
    assert operators(after.graph) == ["Squeeze", "If"]
    assert [operators(held.g) for held in after.graph.node[1].attribute] == [["Squeeze"], ["Neg", "Squeeze"]]


def test_nodes_of_other_domains_stay() -> None:
    """What else they may do is not known. Below 11 Resize has no region."""
    after = downgraded(
        11,
        10,
        """g (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> {
            roi = own.Make()
            y = Resize<coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(x, roi, s)
        }""",
    )
    assert operators(after.graph) == ["Make", "Resize"]


def test_a_node_that_was_replaced_is_not_removed_later() -> None:
    """What it read was released once: the weights stay for the reader that they have left."""
    (scope,) = scopes(
        parser.parse_model(
            """<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[2] y, float[2] z)
            <float[2] k = {1.0, 2.0}> { a = Add(x, k) y = Neg(a) z = Mul(x, k) }"""
        )
    )
    counts = UseCounts([scope])
    found = [counts.exchange(scope, 0, ["x"]), counts.exchange(scope, 1, ["x"])]
    assert [(each.gone, each.gone_initializers) for each in found] == [([], []), ([], [])]
    assert [counts.is_read((), name) for name in ("a", "k")] == [False, True]
