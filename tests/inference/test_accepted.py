"""Errors that are accepted by name: what stands, what is refused, and that nothing is concluded from their nodes."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

import splitgraph
from splitgraph.inference import walk_model
from splitgraph.model.value_type import UNKNOWN, tensor
from splitgraph.options import leeway_of

INVALID = "[bad] y = Sqrt(z)"
SPLIT = "[s] a, b = Split<axis = 1>(x)"


def model(body: str, opset: int = 13, outputs: str = "", functions: str = "") -> onnx.ModelProto:
    """A graph with the inputs x: float[N, 4], z: int64[3] and c: bool."""
    text = f'<ir_version: 8, opset_import: ["": {opset}, "l": 1]> g (float[N, 4] x, int64[3] z, bool c) => ({outputs})'
    return onnx.parser.parse_model(f"{text} {{ {body} }} {functions}")


FUNCTION = '<domain: "l", opset_import: ["": 13]> f (q) => (r) { [in] r = Sqrt(q) }'

# Errors that stay although their code is accepted, with the reason.
STAYS = {
    "of a split": (model(f"{INVALID} [s] a, b, d = Split<axis = 1, num_outputs = 2>(x)", 18), "SG212", "SG209", None),
    "with the code of a split": (
        model("[s] a, b = Split<axis = 1, foo = 2>(x)"),
        "SG212",
        "SG212",
        "the node is a split, which has to be read",
    ),
    "of a split without a certain reading": (
        model("q = NonZero(x) [s] a, b, d, e, f = Split<axis = 1>(x)", 18),
        "SG207",
        "SG207",
        "no certain reading",
    ),
    "of a split that does not exist": (model("[s] a, b = StringSplit(x)"), "SG214", "SG214", "the node is a split"),
    "of a declared part": (
        model(SPLIT, outputs="int64[N, 2] a"),
        "SG301",
        "SG301",
        "the node is a split, which has to be read",
    ),
    "of a node with subgraphs": (
        model("y = Loop(z, c, x) <body = g (int64 i, bool d, float[N, 4] v) => (bool d) {}>"),
        "SG302",
        "SG302",
        "has subgraphs",
    ),
    "of a call": (model("[call] y = l.f(z, x)", functions=FUNCTION), "SG212", "SG212", "calls a function"),
    "of a graph": (
        onnx.parser.parse_model(
            '<ir_version: 8, opset_import: ["": 13]> g (float[2] w) => () <int64[2] w = {1, 2}> { y = Abs(w) }'
        ),
        "SG301",
        "SG301",
        "about a graph and not about one node",
    ),
}


@pytest.mark.parametrize(("made", "accept", "code", "reason"), STAYS.values(), ids=STAYS)
def test_errors_that_stay(made: onnx.ModelProto, accept: str, code: str, reason: str | None) -> None:
    analysis = splitgraph.infer(made, accept=[accept])
    assert not analysis.ok
    left = [found for found in analysis.diagnostics if found.code == code and found.severity == "error"]
    assert left, analysis.diagnostics
    assert reason is None or all(found.help.startswith("It cannot be accepted:") for found in left)
    assert reason is None or reason in left[0].help


def test_nothing_is_accepted_unless_named() -> None:
    made = model(f"{INVALID} {SPLIT}")
    plain = splitgraph.infer(made)
    assert ([found.code for found in plain.diagnostics], plain.accepted) == (["SG302"], ())
    other = splitgraph.infer(made, accept=["SG212", "SG302@main/other"])
    assert [found.code for found in other.diagnostics] == ["SG302", "SG606", "SG606"]
    assert (other.ok, other.accepted) == (False, ())
    # Nothing else of the analysis differs.
    assert (other.types, other.splits) == (plain.types, plain.splits)


def test_a_stale_acceptance_is_a_note() -> None:
    analysis = splitgraph.infer(model(SPLIT), accept=["SG302"])
    assert analysis.ok
    assert [(found.code, found.severity) for found in analysis.diagnostics] == [("SG606", "info")]


@pytest.mark.parametrize("accept", ["SG302", "SG302@main/bad", "SG302@main/*"])
def test_an_accepted_error_is_no_error(accept: str) -> None:
    analysis = splitgraph.infer(model(f"{INVALID} {SPLIT}"), accept=[accept])
    assert analysis.ok
    assert (analysis.diagnostics, [found.location for found in analysis.accepted]) == ((), ["main/bad"])
    assert [str(length) for length in analysis.splits[0].lengths] == ["2", "2"]


def test_nothing_is_concluded_from_its_node() -> None:
    made = model("[bad] y = Sqrt(z) [next] w = Identity(y)")
    assert splitgraph.infer(made).types["w"] == tensor("int64", (3,))
    assert splitgraph.infer(made, accept=["SG302"]).types["w"] == UNKNOWN


def test_declared_types_are_believed() -> None:
    made = model("[bad] y = Sqrt(z) [next] w = Identity(y)", outputs="float[5] w")
    made.graph.value_info.append(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [5]))
    assert splitgraph.infer(made, accept=["SG302"]).types["w"] == tensor("float32", (5,))


def test_a_contradicted_declaration_is_not_believed() -> None:
    made = model("[bad] y = Abs(z) [next] w = Identity(y)")
    made.graph.value_info.append(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3]))
    assert not splitgraph.infer(made).ok
    analysis = splitgraph.infer(made, accept=["SG301"])
    assert ([found.code for found in analysis.accepted], analysis.ok) == (["SG301"], True)
    assert analysis.types["w"] == UNKNOWN


def test_a_node_like_it_keeps_its_error_and_its_type() -> None:
    made = model("[bad] y = Sqrt(z) [bad2] w = Sqrt(z) [good] u = Abs(z) [fine] v = Abs(z)")
    made.graph.value_info.append(onnx.helper.make_tensor_value_info("v", onnx.TensorProto.FLOAT, [3]))
    analysis = splitgraph.infer(made, accept=["SG302@main/bad", "SG301@main/fine"])
    assert [(found.code, found.location) for found in analysis.diagnostics] == [("SG302", "main/bad2")]
    assert analysis.types["u"] == tensor("int64", (3,))
    assert analysis.types["v"] == UNKNOWN


def test_errors_that_follow_from_it_keep_their_names() -> None:
    """The split reads what the node gives: its error is not hidden by accepting the other one."""
    made = model("[bad] y = Sqrt(z) [s] a, b = Split<axis = 7>(y)")
    analysis = splitgraph.infer(made, accept=["SG302"])
    assert [found.code for found in analysis.diagnostics] == ["SG201"]


def test_a_declaration_that_contradicts_only_its_node_is_no_error_any_more() -> None:
    made = model(INVALID, outputs="float[3] y")
    assert {found.code for found in splitgraph.infer(made).diagnostics} == {"SG301", "SG302"}
    assert splitgraph.infer(made, accept=["SG302"]).ok


def test_in_a_function_and_in_a_branch() -> None:
    made = model("[one] y = l.f(z) [two] w = l.f(z)", functions=FUNCTION)
    assert [found.location for found in splitgraph.infer(made).diagnostics] == ["main/one/in", "main/two/in"]
    assert splitgraph.infer(made, accept=["SG302@main/*"]).ok
    analysis = splitgraph.infer(made, accept=["SG302@main/one/in"])
    assert [found.location for found in analysis.diagnostics] == ["main/two/in"]
    branch = model(
        "[if] y = If(c) <then_branch = t () => (p) { [bad] p = Sqrt(z) }, else_branch = e () => (q) { q = Abs(x) }>"
    )
    (found,) = splitgraph.infer(branch).diagnostics
    assert found.location == "main/if/then_branch/bad"
    assert splitgraph.infer(branch, accept=[f"SG302@{found.location}"]).ok


def test_a_split_with_one_reading_is_accepted_and_read() -> None:
    analysis = splitgraph.infer(model(SPLIT, 18), accept=["SG207@main/s"])
    assert (analysis.ok, [found.code for found in analysis.accepted]) == (True, ["SG207"])
    assert analysis.splits[0].lengths == (2, 2)


def test_conversions_know_the_nodes() -> None:
    made = model(f"{INVALID} {SPLIT}")
    walked = walk_model(made, leeway_of(["SG302"], False))
    assert list(walked.set_aside) == [((), 0)]
    assert [str(each) for each in walked.leeway.accept] == ["SG302", "SG302@main/bad"]
    # The node is known by what it gives, wherever it is now.
    made.graph.node[0].name = "other"
    made.graph.node.append(made.graph.node.pop(0))
    narrow = walked.leeway._replace(accept=walked.leeway.accept[1:])
    assert list(walk_model(made, narrow).set_aside) == [((), 1)]
