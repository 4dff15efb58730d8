"""Nodes that stand for another have its metadata, such as stack traces and namespaces, in every conversion."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import parser

import splitgraph

F = "float[2, 3, 4] x"
Wanted = dict[str, Any]

# Opset, the graph, and what is asked.
CASES: dict[str, tuple[int, str, Wanted]] = {
    "Softmax down, an adapter": (13, f"g ({F}) => (float[2,3,4] y) {{ y = Softmax<axis = 1>(x) }}", {"opset": 11}),
    "Softmax up": (11, f"g ({F}) => (float[2,3,4] y) {{ y = Softmax<axis = 1>(x) }}", {"opset": 13}),
    "LogSoftmax up": (11, f"g ({F}) => (float[2,3,4] y) {{ y = LogSoftmax<axis = 1>(x) }}", {"opset": 13}),
    "Gelu, its function body": (20, f"g ({F}) => (float[2,3,4] y) {{ y = Gelu(x) }}", {"opset": 17}),
    "Mish, its function body": (18, f"g ({F}) => (float[2,3,4] y) {{ y = Mish(x) }}", {"opset": 17}),
    "LayerNormalization": (
        17,
        f"g ({F}, float[4] s) => (float[2,3,4] y) {{ y = LayerNormalization(x, s) }}",
        {"opset": 16},
    ),
    "two of a kind, from the cache": (
        20,
        f"g ({F}) => (float[2,3,4] y) {{ a = Gelu(x) b = Gelu(a) y = Gelu(b) }}",
        {"opset": 17},
    ),
    "an input that becomes an attribute": (
        13,
        f"g ({F}) => (float[2,4] y) {{ y = ReduceSum<keepdims = 0>(x, a) }}".replace("y)", "y) <int64[1] a = {1}>", 1),
        {"opset": 12},
    ),
    "computed lengths": (18, "g (float[N] x) => (float[A] y, float[B] z) { y, z = Split<num_outputs = 2>(x) }",
                         {"opset": 13}),
    "to slices": (18, "g (float[N] x) => (float[A] y, float[B] z) { y, z = Split<num_outputs = 2>(x) }",
                  {"to": "slice"}),
    "to VariadicSplit": (18, "g (float[N] x) => (float[A] y, float[B] z) { y, z = Split<num_outputs = 2>(x) }",
                         {"to": "variadic-split"}),
    "explicit lengths": (18, "g (float[N] x) => (float[A] y, float[B] z) { y, z = Split<num_outputs = 2>(x) }",
                         {"to": "split", "explicit_lengths": True}),
    "for a target": (18, "g (float[7] x) => (float[A] y, float[B] z) { y, z = Split<num_outputs = 2>(x) }",
                     {"target": "onnx2torch"}),
    "a sequence": (
        18,
        "g (float[6] x) => (float[A] y) <int64 i = {0}> { q = SplitToSequence(x) y = SequenceAt(q, i) }",
        {"to": "split"},
    ),
    "in a branch": (
        20,
        f"g (bool c, {F}) => (float[2,3,4] y) {{ y = If(c)<then_branch = t () => (float[2,3,4] u) {{ u = Gelu(x) }}, "
        "else_branch = e () => (float[2,3,4] v) { v = Neg(x) }> }",
        {"opset": 17},
    ),
}  # fmt: skip


def nodes_in(nodes: Any) -> list[onnx.NodeProto]:
    found = []
    for node in nodes:
        found.append(node)
        for attribute in node.attribute:
            found += nodes_in(attribute.g.node)
    return found


def model_of(opset: int, text: str) -> onnx.ModelProto:
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}, "own": 1]> {text}')
    bodies = [model.graph, *model.functions]
    for node in (node for body in bodies for node in nodes_in(body.node)):
        node.metadata_props.add(key="pkg.torch.onnx.stack_trace", value=f"line of {node.output[0]}")
        node.metadata_props.add(key="namespace", value=node.op_type)
        node.doc_string = f"makes {node.output[0]}"
    return model


def metadata(node: onnx.NodeProto) -> dict[str, str]:
    found = {entry.key: entry.value for entry in node.metadata_props}
    assert len(found) == len(node.metadata_props)
    return found


@pytest.mark.parametrize(("opset", "text", "wanted"), CASES.values(), ids=CASES)
def test_metadata_is_kept(opset: int, text: str, wanted: Wanted) -> None:
    before = model_of(opset, text)
    rewrite = splitgraph.convert(before, **wanted)
    assert rewrite.changes
    user = {metadata(node)["pkg.torch.onnx.stack_trace"]: node for node in nodes_in(before.graph.node)}
    for node in nodes_in(rewrite.model.graph.node):
        found = metadata(node)
        assert found.keys() - {"splitgraph.form"} == {"pkg.torch.onnx.stack_trace", "namespace"}
        assert found["namespace"] == user[found["pkg.torch.onnx.stack_trace"]].op_type
    # The documentation is that of one node, as that of an edited node is.
    texts = [node.doc_string for node in nodes_in(rewrite.model.graph.node) if node.doc_string]
    assert set(texts) <= {node.doc_string for node in user.values()}
    assert texts


def test_inlined_nodes_keep_their_own() -> None:
    function = '<domain: "own", opset_import: ["": 18]> f (a) => (b) { c, d = Split<num_outputs = 2>(a) b = Neg(d) }'
    before = model_of(18, f"g (float[N] x) => (float[A] y) {{ y = own.f(x) }} {function}")
    rewrite = splitgraph.convert(before, "split", explicit_lengths=True)
    kinds = {metadata(node)["namespace"] for node in rewrite.model.graph.node}
    assert kinds == {"Split", "Neg"}


def test_the_form_of_a_split_does_not_outlive_it() -> None:
    text = "g (float[N] x) => (float[A] y, float[B] z) { y, z = Split<num_outputs = 2>(x) }"
    variadic = splitgraph.convert(model_of(18, text), "variadic-split").model
    assert {"splitgraph.form"} <= {key for node in variadic.graph.node for key in metadata(node)}
    for to in ("split", "slice"):
        back = splitgraph.convert(variadic, to).model
        assert "splitgraph.form" not in {key for node in back.graph.node for key in metadata(node)}


def test_nodes_without_metadata_get_none() -> None:
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {CASES["Gelu, its function body"][1]}')
    assert not any(node.metadata_props for node in splitgraph.downgrade(model, 17).model.graph.node)
