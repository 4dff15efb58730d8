"""Models converted for a target: what stays as it is, what is refused, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx.numpy_helper
import pytest
from runtimes import models
from runtimes.models import model

import splitgraph


def operators(given: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in given.graph.node]


@pytest.mark.parametrize(
    ("given", "target"),
    [
        (models.LENGTHS, "mnn"),
        (models.EVEN, "tinygrad"),
        (models.UNEVEN, "onnxruntime"),
        (models.EITHER, "tvm"),
        (models.EITHER, "tract"),
        (models.SEQUENCE, "mnn"),
        (models.ATTRIBUTE, "tvm"),
        (models.MIXED, "mnn"),
        (models.HALF, "tract"),
        (model("y0 = Slice(x, a, b, c)", 24, 11, more="<int64[1] a = {0}, int64[1] b = {3}, int64[1] c = {1}>"), "tvm"),
        (model("y0 = Relu(x)", 13, 3), "tract"),
    ],
)
def test_what_a_target_reads_stays(given: onnx.ModelProto, target: str) -> None:
    rewrite = splitgraph.convert(given, target=target)
    assert rewrite.model == given
    assert rewrite.model is not given
    assert rewrite.changes == ()


@pytest.mark.parametrize(
    ("given", "target", "words"),
    [
        (models.HALF, "mnn", "refuses Split-13 with T=float16"),
        (models.RANK_1, "opencv@4", "a result of rank 1"),
        (models.EMPTY, "opencv@4", "part of length 0"),
        (model('y0, y1 = StringSplit<delimiter = " ">(x)', 20, 9, data="string[2] x"), "tract", "StringSplit"),
        (model("y0, y1 = Split<axis = 5, num_outputs = 2>(x)"), "mnn", "out of range"),
        (
            model("y0, y1 = Split<axis = 1>(x, s)", 13, data="float[2, N, 8] x, int64[2] s"),
            "tract",
            "lengths as an input of the model",
        ),
    ],
)  # fmt: skip
def test_refusals(given: onnx.ModelProto, target: str, words: str) -> None:
    with pytest.raises(splitgraph.ConversionError, match=words) as raised:
        splitgraph.convert(given, target=target)
    assert raised.value.diagnostics


def test_a_target_says_the_form_itself() -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="a target says which forms"):
        splitgraph.convert(models.EVEN, "split", target="mnn")
    with pytest.raises(splitgraph.SplitgraphError, match="there is no target 'none'"):
        splitgraph.convert(models.EVEN, target="none")


@pytest.mark.parametrize(
    ("given", "target", "expected", "opset"),
    [
        (models.UNEVEN, "mnn", ["Split"], 18),
        (models.UNEVEN, "onnx2torch", ["Slice", "Slice", "Slice"], 18),
        (models.SEQUENCE, "tract", ["Split", "Identity", "Identity"], 13),
        (models.WITHOUT_AXIS, "opencv", ["Split"], 13),
        (models.JOINED, "mnn", ["Slice", "Slice", "Slice", "Concat"], 13),
        (models.JOINED, "opencv@4.14", ["Split", "Concat"], 13),
        (models.SLICES, "tvm", ["Split"], 9),
        (models.ATTRIBUTE, "iree", ["Split"], 13),
        (models.MIXED, "onnx2torch", ["Slice"], 13),
    ],
)
def test_what_is_not_read_gets_another_form(
    given: onnx.ModelProto, target: str, expected: Sequence[str], opset: int
) -> None:
    rewrite = splitgraph.convert(given, target=target, verify=True)
    assert operators(rewrite.model) == expected
    assert rewrite.model.opset_import[0].version == opset
    assert rewrite.verified
    assert [found for found in splitgraph.check(rewrite.model, target) if found.severity == "error"] == []
    # A second conversion has nothing to do.
    assert splitgraph.convert(rewrite.model, target=target).model == rewrite.model


def test_lengths_are_written_out_and_the_axis_too() -> None:
    converted = splitgraph.convert(models.UNEVEN, target="mnn").model
    (split,) = converted.graph.node
    assert [attribute.name for attribute in split.attribute] == ["axis"]
    assert onnx.numpy_helper.to_array(converted.graph.initializer[0]).tolist() == [3, 3, 1]
    (split,) = splitgraph.convert(models.WITHOUT_AXIS, target="opencv").model.graph.node
    assert [(attribute.name, attribute.i) for attribute in split.attribute] == [("axis", 0)]


def test_an_empty_part_leaves_a_concat() -> None:
    converted = splitgraph.convert(models.JOINED, target="opencv@4.14").model
    split, concat = converted.graph.node
    assert len(split.output) == 2
    assert list(concat.input) == [split.output[1], split.output[0]]


def test_a_concat_of_empty_parts_alone_keeps_them() -> None:
    body = "a, b, c = Split<axis = 1>(x, s) d = Concat<axis = 1>(a, b) y0 = Concat<axis = 1>(d, c)"
    given = model(body, 13, more="<int64[3] s = {0, 0, 7}>")
    with pytest.raises(splitgraph.ConversionError, match="part of length 0"):
        splitgraph.convert(given, target="opencv@4.14")
    assert splitgraph.convert(given, target="tvm", verify=True).verified


def test_an_ir_version_that_the_target_does_not_read_is_refused() -> None:
    with pytest.raises(splitgraph.ConversionError, match="reads IR versions up to 9"):
        splitgraph.convert(models.EVEN, target="onnxruntime@1.15", ir_version=10)


def test_an_output_without_a_name_gets_one() -> None:
    given = model("y0, u, y1 = Split<axis = 1>(x, s)", 13, more="<int64[3] s = {1, 2, 4}>")
    given.graph.node[0].output[1] = ""
    (split,) = splitgraph.convert(given, target="onnxruntime").model.graph.node
    assert all(split.output)


def test_functions_are_inlined() -> None:
    given = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 13, "own": 1]>
        g (float[2, 8] x) => (y0, y1) { y0, y1 = own.cut(x) }
        <opset_import: ["": 13], domain: "own"> cut (x) => (a, b) { a, b = Split<axis = 1>(x) }""")
    rewrite = splitgraph.convert(given, target="tract", verify=True)
    assert operators(rewrite.model) == ["Split"]
    assert rewrite.verified


def test_opset_and_ir_version_are_lowered_where_they_must_be() -> None:
    new = model("y0, y1 = Split<axis = 2, num_outputs = 2>(x)", 22, 10)
    rewrite = splitgraph.convert(new, target="onnxruntime@1.15", verify=True)
    assert (rewrite.model.opset_import[0].version, rewrite.model.ir_version) == (19, 9)
    given = splitgraph.convert(new, target="onnxruntime@1.15", opset=13).model
    assert given.opset_import[0].version == 13


def test_a_lone_slice_gets_plain_bounds() -> None:
    given = model(
        "y0 = Slice(x, a, b, c)", 13, more="<int64[1] a = {-3}, int64[1] b = {9223372036854775807}, int64[1] c = {1}>"
    )
    rewrite = splitgraph.convert(given, target="jaxonnxruntime", verify=True)
    values = {tensor.name: onnx.numpy_helper.to_array(tensor).tolist() for tensor in rewrite.model.graph.initializer}
    (node,) = rewrite.model.graph.node
    assert [values[name] for name in node.input[1:]] == [[4], [7], [1]]
    assert rewrite.verified


SINGLE = {
    "equal parts": model("y0 = Split<axis = 1>(x)", 13),
    "num_outputs": model("y0 = Split<axis = 1, num_outputs = 1>(x)"),
    "lengths": model("y0 = Split<axis = 1>(x, s)", more="<int64[1] s = {7}>"),
    "an attribute": model("y0 = Split<axis = 1, split = [7]>(x)", 11, 6),
    "a dynamic dimension": model("y0 = Split<axis = 1>(x)", 13, data="float[2, N, 8] x"),
}


@pytest.mark.parametrize("given", SINGLE.values(), ids=SINGLE)
def test_the_only_part_becomes_an_identity_where_it_is_not_read(given: onnx.ModelProto) -> None:
    assert operators(splitgraph.convert(given, target="coreml").model) == ["Identity"]
    # Where it is read, it stays.
    assert splitgraph.convert(given, target="tract").changes == ()


def parts_of(dimension: int, parts: int) -> onnx.ModelProto:
    names = ", ".join(f"y{index}" for index in range(parts))
    return model(f"{names} = Split<axis = 1, num_outputs = {parts}>(x)", data=f"float[2, {dimension}, 8] x")


@pytest.mark.parametrize(
    ("dimension", "parts", "lengths"),
    [(5, 4, [2, 2, 1, 0]), (6, 5, [2, 2, 2, 0, 0]), (1, 3, [1, 0, 0]), (9, 7, [2, 2, 2, 2, 1, 0, 0]), (2, 4, None)],
)
def test_chunks_beyond_the_dimension_become_lengths(dimension: int, parts: int, lengths: list[int] | None) -> None:
    given = parts_of(dimension, parts)
    assert [found.code for found in splitgraph.check(given, "onnxruntime")] == ["SG701"]
    for target in ("onnxruntime", "openvino", "tract", "tvm", "iree"):
        made = splitgraph.convert(given, target=target).model
        types = splitgraph.infer(made).types
        assert [types[f"y{part}"].shape[1] for part in range(parts)] == (lengths or [1, 1, 0, 0])
        # No number of parts says them.
        assert not any(attribute.name == "num_outputs" for node in made.graph.node for attribute in node.attribute)
        assert splitgraph.check(made, "onnxruntime") == ()


@pytest.mark.parametrize(("dimension", "parts"), [(7, 4), (8, 4), (6, 4), (3, 3)])
def test_chunks_within_the_dimension_stay(dimension: int, parts: int) -> None:
    assert splitgraph.convert(parts_of(dimension, parts), target="onnxruntime").changes == ()


USERS = {
    "two Slices": "y0 = Slice(x, a, b, c) y1 = Slice(x, b, d, c)",
    "three Slices": "y0 = Slice(x, a, b, c) y1 = Slice(x, b, e, c) y2 = Slice(x, e, d, c)",
    "a node before them": "u = Relu(x) y0 = Slice(u, a, b, c) y1 = Slice(u, b, d, c)",
    "computed bounds": "f = Add(b, b) y0 = Slice(x, a, f, c) y1 = Slice(x, f, d, c)",
    "a sequence": "q = SplitToSequence<axis = 1>(x, k) y0 = SequenceAt(q, i) y1 = SequenceAt(q, j)",
}
HELD = (
    "<int64[1] a = {0}, int64[1] b = {2}, int64[1] c = {1}, int64[1] d = {9223372036854775807}, int64[1] e = {3},"
    " int64[2] k = {3, 4}, int64 i = {0}, int64 j = {1}>"
)


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("body", USERS.values(), ids=USERS)
def test_findings_and_changes_name_nodes_of_the_users_model(body: str, opset: int) -> None:
    for data in ("float[2, 7, 8] x", "float16[2, N, 8] x"):
        given = model(body, opset, data=data, more=HELD)
        users = {f"main/{node.op_type}#{index}" for index, node in enumerate(given.graph.node)}
        for target in ("coreml", "opencv", "aidge", "mnn"):
            try:
                named = {change.location for change in splitgraph.convert(given, target=target).changes}
            except splitgraph.ConversionError as error:
                named = {found.location for found in error.diagnostics}
            assert named <= users | {"main"}


# Operators of onnxruntime ---------------------------------------------------------------------------------------------


FOREIGN = f"""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
g (float[2, 3, 8, 8] x) => (float[2, 4, 6, 6] z) <float[4, 3, 3, 3] w = {{{", ".join(["0.5"] * 108)}}}>
{{ y = com.microsoft.FusedConv<activation = "Relu">(x, w) z = com.microsoft.QuickGelu(y) }}"""


@pytest.mark.parametrize("target", ["tract", "opencv", "tvm", "mnn"])
def test_operators_of_onnxruntime_get_their_standard_form(target: str) -> None:
    model = onnx.parser.parse_model(FOREIGN)
    assert splitgraph.check(model, target).after_conversion is True
    result = splitgraph.convert(model, target=target).model
    assert [node.op_type for node in result.graph.node] == ["Conv", "Relu", "Mul", "Sigmoid", "Mul"]


@pytest.mark.parametrize("target", ["onnxruntime", "onnxruntime@1.15"])
def test_onnxruntime_keeps_its_own_operators(target: str) -> None:
    model = onnx.parser.parse_model(FOREIGN)
    assert [node.op_type for node in splitgraph.convert(model, target=target).model.graph.node] == [
        "FusedConv",
        "QuickGelu",
    ]
