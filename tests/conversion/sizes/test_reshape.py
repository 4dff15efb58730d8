"""Models with other sizes: what follows, what is in the way, and that the result is the same at the old size."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper, parser

import splitgraph
from splitgraph.conversion.rewrite import GivenSizes
from splitgraph.conversion.sizes.convert import convert_sizes
from splitgraph.conversion.sizes.over import APART, OVER
from splitgraph.findings.diagnostics import diagnostic
from splitgraph.options import NewSizes
from splitgraph.verification.sizes import verify_sizes
from splitgraph.verification.verification import Verdict, Verification


def model(graph: str, opset: int = 17) -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {graph}')


def reshaped(made: ModelProto, *follow: str, batch: Any = None, **shapes: Any) -> ModelProto:
    result = convert_sizes(made, NewSizes(shapes or None, batch, follow)).model
    onnx.checker.check_model(result, full_check=True)
    return result


def run(made: ModelProto, **inputs: Any) -> list[Any]:
    # Bodies read values from around them, which the evaluator of older onnx does not give them in a Scan.
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return list(onnxruntime.InferenceSession(made.SerializeToString(), options).run(None, inputs))


def drawn(*shape: int) -> Any:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def blockers(made: ModelProto, *follow: str, batch: Any = None, **shapes: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(splitgraph.ConversionError) as caught:
        convert_sizes(made, NewSizes(shapes or None, batch, follow))
    return [(found.code, found.location, found.message) for found in caught.value.diagnostics]


HEAD = model("g (float[1, 4, 4] x) => (float[1, 16] y) <int64[2] s = {1, 16}> { y = Reshape (x, s) }")

# Models of a fixed batch, all of which compute each item by itself.
FOLLOWING = {
    "reshape": HEAD,
    "flatten and back": model("""g (float[2, 3, 4] x) => (float[2, 3, 4] y)
            <int64[2] s = {6, 4}, int64[3] t = {2, 3, 4}>
            { f = Reshape (x, s) r = Relu (f) y = Reshape (r, t) }"""),
    "a token in front": model("""g (float[1, 3, 4] x) => (float[1, 4, 4] y) <float[1, 1, 4] c = {1, 2, 3, 4}>
            { y = Concat <axis = 1> (c, x) }"""),
    "a token that is expanded": model("""g (float[1, 3, 4] x) => (float[1, 4, 4] y)
            <float[1, 1, 4] c = {1, 2, 3, 4}, int64[3] s = {1, 1, 4}>
            { e = Expand (c, s) y = Concat <axis = 1> (e, x) }"""),
    "equal rows": model(
        """g (float[2, 3] x) => (float[2, 5] y) <float[2, 2] c = {1, 2, 1, 2}> { y = Concat <axis = 1> (x, c) }"""
    ),
    "zeros": model("""g (float[2, 3] x) => (float[2, 5] y) <int64[2] s = {2, 2}>
            { z = ConstantOfShape (s) y = Concat <axis = 1> (x, z) }"""),
    "a state": model("""g (float[5, 1, 1] x) => (float[5, 1, 1, 1] y) <float[1, 4, 1] w = {0.1, 0.2, 0.3, 0.4},
            float[1, 4, 1] r = {0.5, 0.6, 0.7, 0.8}, float[1, 1, 1] h = {0}, float[1, 1, 1] c = {0.5}>
            { y = LSTM <hidden_size = 1> (x, w, r, , , h, c) }"""),
    "parts": model("""g (float[4, 6] x) => (float[4, 3] y) <int64[2] s = {3, 3}>
            { a, b = Split <axis = 1> (x, s) y = Add (a, b) }"""),
    "all of it": model("""g (float[1, 4] x) => (float[1, 2] y) <int64[2] a = {0, 1}, int64[2] b = {1, 3}>
            { y = Slice (x, a, b) }"""),
    "lengths of sequences": model("""g (float[3, 1] x) => (float[3, 1] y) <int64[1] n = {2}>
            { y = ReverseSequence <batch_axis = 1, time_axis = 0> (x, n) }"""),
    "a state of a loop": model("""g (float[1, 2] x) => (float[1, 2] y)
            <int64 m = {3}, bool go = {1}, float[1, 2] h = {1, 2}>
            { y = Loop <body = b (int64 i, bool c, float[p, q] a) => (bool d, float[p, q] e)
                { d = Identity (c) e = Add (a, x) }> (m, go, h) }"""),
    "a state of a scan": model("""g (float[3, 1, 2] x) => (float[1, 2] y, float[3, 1, 2] z) <float[1, 2] h = {1, 2}>
            { y, z = Scan <num_scan_inputs = 1, body = b (float[p, q] a, float[r, s] v)
                => (float[p, q] e, float[r, s] w) { e = Add (a, v) w = Identity (e) }> (h, x) }"""),
    "states of a scan": model("""g (float[3, 2, 2] x) => (float[2, 2] y, float[3, 2, 2] z)
            <float[2, 2] h = {1, 2, 1, 2}, float[2, 2] w = {1, 2, 3, 4}>
            { y, z = Scan <num_scan_inputs = 1, body = b
                (float[p, q] a, float[r, s] v) => (float[p, q] e, float[r, s] o)
                { m = MatMul (a, w) e = Add (m, v) o = Identity (e) }> (h, x) }"""),
    "indices that count items": model("""g (float[2, 3] x) => (float[2, 2] y)
            <int64[2, 2, 2] i = {0, 2, 0, 0, 1, 2, 1, 0}> { y = GatherND (x, i) }"""),
    "indices put together": model("""g (float[1, 3] x) => (float[1] y) <int64[1, 1] r = {0}, int64[1, 1] c = {2}>
            { i = Concat <axis = -1> (r, c) y = GatherND (x, i) }"""),
    "steps before items": model("""g (float[1, 2, 3] x) => (float[2, 1, 3] y)
            <int64[2] s = {2, 3}, int64[3] t = {2, 1, 3}>
            { u = Transpose <perm = [1, 0, 2]> (x) f = Reshape (u, s) r = Relu (f) y = Reshape (r, t) }"""),
    "a constant that is padded": model("""g (float[2, 4] x) => (float[2, 4] y)
            <float[2, 2] c = {1, 2, 1, 2}, int64[4] p = {0, 1, 0, 1}> { k = Pad (c, p) y = Add (x, k) }"""),
    "a constant that is summed": model("""g (float[2, 3] x) => (float[2, 3] y)
            <float[2, 3, 2] c = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}, int64[1] a = {2}>
            { k = ReduceSum <keepdims = 0> (c, a) y = Add (x, k) }"""),
    "a constant through an Einsum": model("""g (float[2, 2] x) => (float[2, 2] y)
            <float[2, 2] c = {1, 2, 1, 2}, float[2, 2] d = {1, 2, 3, 4}>
            { k = Einsum <equation = "ij,jk->ik"> (c, d) y = Mul (x, k) }"""),
    "depth that becomes space": model("""g (float[2, 1, 2, 2] x) => (float[2, 1, 2, 2] y)
            <float[2, 4, 1, 1] c = {1, 2, 3, 4, 1, 2, 3, 4}>
            { k = DepthToSpace <blocksize = 2> (c) y = Add (x, k) }"""),
    "a resize": model("""g (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <int64[4] s = {1, 1, 4, 4}>
            { y = Resize <mode = "nearest"> (x, , , s) }"""),
}


# The axis of the items in the input and in the first output, where that is not the first one.
_AXES_OF_ITEMS = {
    "a state": (1, 2),
    "lengths of sequences": (1, 1),
    "a state of a scan": (1, 0),
    "states of a scan": (1, 0),
    "steps before items": (0, 1),
}


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("items", [1, 2, 3])
def test_each_item_gives_what_it_gives_alone(name: str, items: int) -> None:
    before = FOLLOWING[name]
    sizes = [dim.dim_value for dim in before.graph.input[0].type.tensor_type.shape.dim]
    axis = _AXES_OF_ITEMS.get(name, (0, 0))[0]
    after = reshaped(before, x=[*sizes[:axis], "N", *sizes[axis + 1 :]])
    groups = [drawn(*sizes) + number for number in range(items)]
    found = run(after, x=np.concatenate(groups, axis))[0]
    out = _AXES_OF_ITEMS.get(name, (0, 0))[1]
    expected = np.concatenate([run(before, x=group)[0] for group in groups], out)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_numbers_are_written_as_numbers() -> None:
    after = reshaped(HEAD, batch=8)
    assert [node.op_type for node in after.graph.node] == ["Reshape"]
    (target,) = after.graph.initializer
    assert numpy_helper.to_array(target).tolist() == [8, 16]
    assert [dim.dim_value for dim in after.graph.output[0].type.tensor_type.shape.dim] == [8, 16]


def test_a_minus_one_says_a_dimension_that_only_the_run_tells() -> None:
    after = reshaped(HEAD, batch="N")
    assert numpy_helper.to_array(after.graph.initializer[0]).tolist() == [-1, 16]
    assert after.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "N"


@pytest.mark.parametrize("asked", ["S", 4])
def test_a_name_that_has_its_size_baked_in_is_a_number(asked: Any) -> None:
    made = model("""g (float[B, seq, 2] x, float[B, seq] z) => (float[B, seq, 2] y)
        <float[3, 1] c = {0, 1, 2}, int64[1] a = {2}>
        { u = Unsqueeze (z, a) v = Add (x, c) y = Add (u, v) }""")
    after = reshaped(made, x=["B", asked, 2])
    x, z = drawn(2, 4, 2), drawn(2, 4)
    found = run(after, x=x, z=z)[0]
    np.testing.assert_allclose(found, x + np.arange(4, dtype=np.float32)[:, None] + z[..., None], rtol=1e-5)


@pytest.mark.parametrize("shape", [["N", "S", 4], ["N", 9, 4], ["?", "S", 4]])
def test_a_dimension_without_a_name_that_has_its_size_baked_in_is_a_number(shape: list[Any]) -> None:
    made = model("g (float[?, ?, 4] x) => (float[a, b, 2, 2] y) <int64[4] s = {0, 7, 2, 2}> { y = Reshape (x, s) }")
    after = reshaped(made, x=shape)
    assert run(after, x=drawn(3, 9, 4))[0].shape == (3, 9, 2, 2)


def test_a_name_that_must_be_a_multiple_is_a_name() -> None:
    made = model("g (float[B, T] x) => (float[B, n, 4] y) <int64[3] s = {0, -1, 4}> { y = Reshape (x, s) }")
    after = reshaped(made, x=["B", "S"])
    assert run(after, x=drawn(2, 8))[0].shape == (2, 2, 4)


def test_indices_that_count_along_two_axes() -> None:
    made = model("""g (float[2, 2, 1] x) => (float[2, 2, 1] y)
        <int64[2, 2, 2] i = {0, 0, 0, 1, 1, 0, 1, 1}> { y = GatherND (x, i) }""")
    after = reshaped(made, x=["N", "T", 1])
    before = drawn(3, 5, 1)
    np.testing.assert_array_equal(run(after, x=before)[0], before)


def test_a_symbol_gets_a_number() -> None:
    made = model("g (float[B, 4] x, float[B, 4] z) => (float[B, 4] y) { y = Add (x, z) }")
    after = reshaped(made, x=[3, 4])
    assert [value.type.tensor_type.shape.dim[0].dim_value for value in after.graph.input] == [3, 3]


def test_nothing_changes_where_nothing_is_asked() -> None:
    rewrite = splitgraph.reshape(HEAD, batch=1)
    assert rewrite.model == HEAD and not rewrite.changes


def test_a_batch_of_one_goes_where_a_later_node_needs_it() -> None:
    made = model("""g (float[1, 1, 4] x) => (float[1, 1, 8] y) <int64[3] s = {1, 1, 4}>
        { r = Reshape (x, s) t = Transpose <perm = [1, 0, 2]> (x) y = Concat <axis = 2> (r, t) }""")
    after = reshaped(made, batch="N")
    assert run(after, x=drawn(3, 1, 4))[0].shape == (1, 3, 8)
    assert splitgraph.reshape(made, batch="N", verify=True).verified


def test_items_get_no_second_axis() -> None:
    made = model("""g (float[1, 1, 4] x) => (float[1, 1, 4] y)
        { t = Transpose <perm = [1, 0, 2]> (x) y = Concat <axis = 2> (x, t) }""")
    assert {code for code, _, _ in blockers(made, batch="N")} == {"SG420"}


def test_the_callers_model_stays() -> None:
    copy = ModelProto()
    copy.CopyFrom(HEAD)
    splitgraph.reshape(HEAD, batch="N")
    assert copy == HEAD


WEIGHTS = model("g (float[1, 4] x) => (float[1, 2] y) <float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> { y = MatMul (x, w) }")
POSITIONS = model("g (float[1, 3] x) => (float[1, 3] y) <float[1, 3] p = {1, 2, 4}> { y = Add (x, p) }")
MEANS = model("g (float[2, 3] x) => (float[2, 3] y) <float[3] m = {1, 2, 4}> { y = Sub (x, m) }")
GONE = model("g (float[1, 4] x) => (float[4] y) <int64[1] a = {0}> { y = Squeeze (x, a) }")
LENGTHS = model("g (float[1, 5] x) => (float[1, 2] y) <int64[2] s = {2, 3}> { y, z = Split <axis = 1> (x, s) }")
LARGER = model("""g (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <int64[4] s = {1, 1, 4, 4}>
    { y = Resize <mode = "nearest"> (x, , , s) }""")


BROADCAST = model("g (float[1, 4] x) => (float[3, 4] y) <float[3, 1] w = {1, 2, 3}> { y = Mul (x, w) }")
SORTED = model("g (float[3] x) => (float[3] y) <int64[1] k = {3}> { y, i = TopK <axis = 0> (x, k) }")


@pytest.mark.parametrize(
    ("made", "shape", "code", "said"),
    [
        (WEIGHTS, [1, "C"], "SG420", "the weights 'w' have 4 along axis 0, and are not the same all along it"),
        (POSITIONS, [1, "S"], "SG420", "the weights 'p' have 3 along axis 1"),
        (MEANS, [2, 6], "SG420", "the weights 'm' have 3 along axis 0, and are not the same all along it"),
        (GONE, ["N", 4], "SG420", "needs N == 1"),
        (BROADCAST, ["N", 4], "SG420", "N was 1, and is broadcast to 3"),
        (SORTED, ["S"], "SG421", "3 whatever the size of the data, or S"),
        (LENGTHS, [1, "S"], "SG421", "S - 3 as entry 0, or S - 2 as entry 1"),
        (LARGER, [1, 1, "H", 2], "SG421", "4 whatever the size of the data, or 2*H"),
    ],
)
def test_what_is_in_the_way(made: ModelProto, shape: list[Any], code: str, said: str) -> None:
    ((found, location, message),) = blockers(made, x=shape)
    assert (found, location.split("/")[0]) == (code, "main") and said in message


def test_the_target_of_a_reshape_1_is_an_attribute() -> None:
    made = model("g (float[1, 2, 4] x) => (float[1, 8] y) { y = Reshape <shape = [1, 8]> (x) }", 4)
    (node,) = convert_sizes(made, NewSizes(None, "N", ())).model.graph.node
    assert list(node.attribute[0].ints) == [0, 8]
    two = model("g (float[1, 3, 4] x) => (float[1, 3, 2, 2] y) { y = Reshape <shape = [1, 3, 2, 2]> (x) }", 4)
    (node,) = convert_sizes(two, NewSizes({"x": ["N", "S", 4]}, None, ())).model.graph.node
    assert list(node.attribute[0].ints) == [0, 0, 2, 2]


@pytest.mark.parametrize("items", [1, 2, 5])
def test_attention_takes_its_mask_and_its_past(items: int) -> None:
    made = model(
        """g (float[1, 1, 3, 2] x) => (float[1, 1, 3, 2] y) <float[1, 1, 2, 2] p = {0, 0, 0, 0}, float[1, 1, 3, 5] m = {
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}> { y, k, v = Attention (x, x, x, m, p, p) }""",
        23,
    )
    after = reshaped(made, x=["N", 1, 3, 2])
    groups = [drawn(1, 1, 3, 2) + number for number in range(items)]
    found = run(after, x=np.concatenate(groups))[0]
    np.testing.assert_allclose(found, np.concatenate([run(made, x=group)[0] for group in groups]), rtol=1e-5)


def test_what_an_unknown_operator_gives_is_not_guessed() -> None:
    made = parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "of.mine": 1]>
        g (float[1, 4] x) => (float[1, 4] y) <float[1, 4] u> { u = of.mine.Op (x) y = Relu (u) }""")
    ((code, location, message),) = blockers(made, batch="N")
    assert (code, location) == ("SG420", "main/Op#0") and "what Op makes of N is not known" in message


@pytest.mark.parametrize("reader", ["y = Conv (c, w)", "y = Compress (x, c)", "d = Add (c, w1) y = Conv (d, w)"])
def test_a_rank_that_a_reader_demands_says_nothing_of_the_sizes(reader: str) -> None:
    made = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17, "of.mine": 1]>
        g (float[1, 6, 4, 4] x, float[8, 6, 2, 2] w, float[1] w1) => (float y) {{ c = of.mine.Op (x) {reader} }}""")
    made.graph.output[0].type.Clear()
    assert [where for _, where, _ in blockers(made, x=["N", 6, 4, 4])] == ["main/Op#0"]


def test_a_threshold_is_no_batch() -> None:
    made = model("g (float[1, 4] x, float[1] t) => (float[1, 4] y) { y = Max (x, t) }")
    assert [message for *_, message in blockers(made, batch="N")] == ["N was 1, and is broadcast to 4"]
    shapes = [value.type.tensor_type.shape.dim for value in reshaped(made, batch="N", t=[1]).graph.input]
    assert [[dim.dim_param or dim.dim_value for dim in shape] for shape in shapes] == [["N", 4], [1]]


def test_one_batch_for_a_name_and_a_number() -> None:
    made = model("g (float[B, 4] x, float[1, 4] z) => (float[B, 4] y) { y = Add (x, z) }")
    verification = splitgraph.reshape(made, {"x": ["N", 4], "z": ["N", 4]}, verify=True).verification
    assert verification is not None and verification.verdict == "equal"


def test_an_output_that_is_an_input_is_left_alone() -> None:
    made = model("g (float[1, 4] x) => (float[1, 4] y, float[1, 4] x) { y = Relu (x) }")
    verification = splitgraph.reshape(made, batch="N", verify=True).verification
    assert verification is not None and verification.verdict == "equal"


def test_nothing_else_of_the_model_is_lost() -> None:
    made = model("""g (float[1, 4] x, seq(float[2]) s) => (float[1, 4] y, seq(float[2]) t, int64[2, nonzeros] z)
        <float[1, 4] u> { u = Relu (x) y = Sigmoid (u) t = SequenceErase (s) z = NonZero (u) }""")
    made.graph.value_info[0].doc_string = "hidden"
    made.graph.output[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    after = convert_sizes(made, NewSizes({"x": ["N", 4]})).model
    y, t, z = after.graph.output
    assert (y.type.tensor_type.shape.dim[0].dim_param, y.type.tensor_type.shape.dim[0].denotation) == (
        "N",
        "DATA_BATCH",
    )
    assert t.type == made.graph.output[1].type
    assert z.type.tensor_type.shape.dim[1].dim_param == "nonzeros"
    assert after.graph.value_info[0].doc_string == "hidden"
    assert after.graph.value_info[0].type.tensor_type.shape.dim[0].dim_param == "N"


def test_constants_of_an_old_ir_version_are_inputs_too() -> None:
    made = parser.parse_model("""<ir_version: 3, opset_import: ["": 8]>
        g (float[1, 2, 4] x, int64[2] s) => (float[1, 8] y) <int64[2] s = {1, 8}> { y = Reshape (x, s) }""")
    after = reshaped(made, batch=3)
    *_, constant = after.graph.initializer
    assert [value.name for value in after.graph.input] == ["x", "s", constant.name] and after.ir_version == 3
    assert run(after, x=drawn(3, 2, 4))[0].shape == (3, 8)
    verification = splitgraph.reshape(made, batch=3, assume_defaults=True, verify=True).verification
    assert verification is not None and verification.verdict == "equal"


def test_a_size_in_a_default_is_not_taken_for_granted() -> None:
    made = model("g (float[1, 2, 4] x, int64[2] s) => (float[1, 8] y) <int64[2] s = {1, 8}> { y = Reshape (x, s) }")
    ((code, _, message),) = blockers(made, x=["N", 2, 4])
    assert code == "SG420" and "a default that a caller may replace" in message
    after = splitgraph.reshape(made, {"x": ["N", 2, 4]}, assume_defaults=True).model
    assert run(after, x=drawn(3, 2, 4))[0].shape == (3, 8)


@pytest.mark.parametrize(
    ("follow", "expected"),
    [("main/Slice#0[1]=S - 1", [[5]]), ("main/Slice#0[0]=S", [[3, 4, 5]]), ("main/Slice#0[0]=4", [[3]])],
)
def test_the_last_element_by_its_number(follow: str, expected: list[list[int]]) -> None:
    made = model("""g (int64[1, 4] x) => (int64[1, n] y) <int64[1] a = {3}, int64[1] b = {4}, int64[1] c = {1}>
        { y = Slice (x, a, b, c) }""")
    ((code, _, message),) = blockers(made, x=[1, "S"])
    assert (code, message.partition(" can mean")[0]) == ("SG421", "entry 1")
    (found,) = run(reshaped(made, follow, x=[1, "S"]), x=np.array([[0, 1, 2, 3, 4, 5]]))
    assert found.tolist() == expected


def test_equal_parts_stay_equal() -> None:
    made = model(
        """g (float[1, 4] x) => (float[1, 2] y) <int64[2] s = {2, 2}>
        { a, b = Split <axis = 1> (x, s) y = Add (a, b) }""",
        18,
    )
    after = reshaped(made, x=[1, "S"])
    assert run(after, x=drawn(1, 6))[0].shape == (1, 3)
    # Two lengths of 1, and not 2 and 1: a run with 3 fails.
    (split,) = [node for node in after.graph.node if node.op_type == "Split"]
    assert len(split.input) == 2 and not any(each.name == "num_outputs" for each in split.attribute)


def test_two_axes_of_equal_weights() -> None:
    made = model("g (float[1, 2, 2] x) => (float[1, 2, 2] y) <float[1, 2, 2] w = {5, 5, 5, 5}> { y = Add (x, w) }")
    (found,) = run(reshaped(made, x=[1, "S", "S"]), x=np.zeros((1, 3, 3), np.float32))
    assert found.tolist() == [[[5.0] * 3] * 3]


def test_an_error_beside_a_warning_of_the_model_is_in_the_way() -> None:
    """A limit of one element is read by some engines, which is a warning; three elements are an error."""
    made = model("""g (int64[1] n) => (int64[?] y) <int64 zero = {0}, int64 one = {1}> { y = Range (zero, n, one) }""")
    assert [(code, location) for code, location, _ in blockers(made, n=[3])] == [("SG420", "main/Range#0")]


def test_sizes_that_no_dimension_fits_are_refused() -> None:
    made = model("""g (float[12] x) => (float[4] y)
        <int64[1] a = {0}, int64[1] b = {4}, int64[1] c = {8}, int64[1] d = {12}>
        { p = Slice (x, a, b) q = Slice (x, b, c) r = Slice (x, c, d) s = Add (p, q) y = Add (s, r) }""")
    ((code, location, message),) = blockers(made, x=["S"])
    assert (code, location) == ("SG420", "main/Add#3") and "cannot be told any more" in message
    assert [code for code, *_ in blockers(made, x=[24])] == ["SG420"]


@pytest.mark.parametrize(
    ("weights", "longer"),
    [
        # What may go on in another way is refused.
        ("float[1, 4] p = {2, 5, 8, 11}", None),
        ("float[4] p = {1, 2, 3, 4}", None),
        ("float[4] p = {0, 2, 4, 6}", None),
        ("float[5] p = {-2, -1, 0, 1, 2}", None),
        ("float[2] p = {3, 10}", None),
        ("float[2] p = {0, 1}", None),
        ("float[2] p = {1, 0}", None),
        ("float[3] p = {0, -1, -2}", None),
        ("float[4] p = {0, 1, 2, 3}", [0, 1, 2, 3, 4, 5]),
        ("float[4] p = {3, 2, 1, 0}", [5, 4, 3, 2, 1, 0]),
        ("float[1, 4] p = {4, 3, 2, 1}", [6, 5, 4, 3, 2, 1]),
        ("float[4] p = {-3, -2, -1, 0}", [-5, -4, -3, -2, -1, 0]),
        ("float[4] p = {-4, -3, -2, -1}", [-6, -5, -4, -3, -2, -1]),
        ("int64[2] p = {0, 1}", [0, 1, 2, 3]),
        ("int64[2] p = {1, 2}", None),
    ],
)
def test_counted_weights_are_counted_again(weights: str, longer: list[int] | None) -> None:
    kind, size = weights[: weights.index("[")], weights[weights.index("]") - 1]
    made = model(f"g ({kind}[1, {size}] x) => ({kind}[1, {size}] y) <{weights}> {{ y = Add (x, p) }}")
    if longer is None:
        assert {code for code, *_ in blockers(made, x=[1, "S"])} == {"SG420"}
        return
    dtype = np.int64 if kind == "int64" else np.float32
    (found,) = run(reshaped(made, x=[1, "S"]), x=np.zeros((1, len(longer)), dtype))
    assert found.tolist() == [longer]


def test_a_triangle_stays_square() -> None:
    made = model("""g (float[3, 2] x) => (float[3, 2] y) <float[3, 3] m = {1, 0, 0, 1, 1, 0, 1, 1, 1}>
        { y = MatMul (m, x) }""")
    (found,) = run(reshaped(made, x=["T", 2]), x=np.ones((5, 2), np.float32))
    assert found[:, 0].tolist() == [1, 2, 3, 4, 5]
    both = model(
        """g (float[3, 3] x) => (float[3, 3] y) <float[3, 3] m = {1, 0, 0, 1, 1, 0, 1, 1, 1}> { y = Add (x, m) }"""
    )
    assert {code for code, *_ in blockers(both, x=["T", "S"])} == {"SG420"}


@pytest.mark.parametrize(
    ("weights", "larger"),
    [
        ("float[2, 2] m = {0, -9, 0, 0}", [[0, -9, -9], [0, 0, -9], [0, 0, 0]]),
        ("float[2, 2] m = {-9, 5, 5, 5}", None),
        ("float[3, 3] m = {7, 7, 5, 7, 7, 7, 7, 7, 7}", [[7, 7, 5, 5], [7, 7, 7, 5], [7, 7, 7, 7], [7, 7, 7, 7]]),
        ("float[3, 3] m = {5, 5, 5, 0, 5, 5, 0, 1, 5}", None),
        ("float[1, 2, 2] m = {0, 1, 1, 0}", None),
    ],
)
def test_a_mask_is_made_as_large_as_what_it_masks(weights: str, larger: list[list[float]] | None) -> None:
    size = int(weights[weights.index("]") - 1])
    shape = weights[weights.index("[") : weights.index("]") + 1]
    made = model(f"g (float{shape} x) => (float{shape} y) <{weights}> {{ y = Add (x, m) }}")
    asked = ["S" if dim.dim_value == size else 1 for dim in made.graph.input[0].type.tensor_type.shape.dim]
    if larger is None:
        assert {code for code, *_ in blockers(made, x=asked)} == {"SG420"}
    else:
        (found,) = run(reshaped(made, x=asked), x=np.zeros((size + 1, size + 1), np.float32))
        assert found.tolist() == larger


def test_a_mask_of_booleans() -> None:
    made = model("g (bool[2, 2] x) => (bool[2, 2] y) <bool[2, 2] m = {1, 0, 1, 1}> { y = And (x, m) }")
    (found,) = run(reshaped(made, x=["S", "S"]), x=np.ones((3, 3), bool))
    assert found.tolist() == np.tri(3, dtype=bool).tolist()


def test_the_user_says_what_a_number_means() -> None:
    after = reshaped(LARGER, "main/Resize#0[2]=2*H", x=[1, 1, "H", 2])
    (found,) = run(after, x=drawn(1, 1, 3, 2))
    assert found.shape == (1, 1, 6, 4)


@pytest.mark.parametrize(
    ("follow", "said"),
    [
        ("main/Resize#0[2]", "is not of the form"),
        ("main/Resize[2]=H", "names no number of a node"),
        ("main/Resize#0[7]=H", "no constant with an entry 7"),
        ("main/Resize#0[2]=?", "needs a dimension"),
        ("main/Resize#0[2]=3*H", "is 6 at the old sizes, where the model has 4"),
        ("main/Resize#0[2]=2*Q", "no input has a dimension Q"),
    ],
)
def test_a_wrong_word_of_the_user(follow: str, said: str) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match=said):
        convert_sizes(LARGER, NewSizes({"x": [1, 1, "H", 2]}, None, (follow,)))


# It runs at seq = 3 only.
BAKED = model("""g (float[B, seq, 2] x) => (float[B, seq, 2] y)
    <float[3, 1] c = {0, 1, 2}> { y = Add (x, c) }""")
# The mask is one longer than the data.
LONGER = model("""g (float[1, 5] x, float[1, 6] mask) => (float[1, 6] y)
    <float[1, 1] one = {1}> { longer = Concat<axis = 1> (x, one) y = Add (longer, mask) }""")
TWO = model("g (float[1, 4] x, float[3, 4] z) => (float[3, 4] y) { y = Add (x, z) }")


@pytest.mark.parametrize(
    ("made", "sizes", "said"),
    [
        (HEAD, NewSizes(), "needs the shape of an input"),
        (HEAD, NewSizes({"z": ["N", 4, 4]}), "no input 'z'"),
        (HEAD, NewSizes({"x": ["N", 4]}), "has 3 dimensions"),
        (HEAD, NewSizes({"x": ["N", None, 4]}), "needs a number or a name"),
        (HEAD, NewSizes({"x": ["N", "N", 4]}), "1 and 4 at once"),
        (HEAD, NewSizes({"x": ["2*N", 4, 4]}), "2*N needs 'N', which no dimension of the inputs becomes"),
        (LONGER, NewSizes({"x": [1, "T"], "mask": [1, "T + 2"]}), r"T \+ 2 would be 7 at the old sizes"),
        (BAKED, NewSizes({"x": ["B", "seq + 1", 2]}), "is seq, and would be seq .* 1; take another name"),
        (TWO, NewSizes(None, "N"), "a batch is the first dimension of every input, and these differ: "),
    ],
)
def test_wrong_sizes(made: ModelProto, sizes: NewSizes, said: str) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match=said):
        convert_sizes(made, sizes)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ({"x": [1, "T"], "mask": [1, "T + 1"]}, {"x": [1, "T"], "mask": [1, "T + 1"]}),
        # The one row of the mask goes with every row.
        ({"mask": [1, "T + 1"], "x": ["N", "T"]}, {"x": ["N", "T"], "mask": [1, "T + 1"]}),
        ({"x": [1, 8], "mask": [1, 9]}, {"x": [1, 8], "mask": [1, 9]}),
        ({"x": [1, 8], "mask": [1, 10]}, None),
        ({"x": [1, "T"]}, None),
        ({"x": [1, "T"], "mask": [1, "M"]}, None),
    ],
)
def test_a_size_that_follows_from_another(shapes: dict[str, Any], expected: dict[str, Any] | None) -> None:
    """The input mask has to be one longer than x: it can be told so, and numbers that fit are taken."""
    if expected is None:
        with pytest.raises(splitgraph.ConversionError, match=r"needs|batch"):
            splitgraph.reshape(LONGER, shapes)
        return
    rewrite = splitgraph.reshape(LONGER, shapes, verify=True)
    assert rewrite.verification is not None and rewrite.verification.verdict == "equal"
    types = {
        name: [dim if isinstance(dim, int) else str(dim) for dim in value.shape]
        for name, value in splitgraph.infer(rewrite.model).inputs.items()
    }
    assert types == expected


# What computes over the first dimension of x, or loses it.
MIXED = {
    "Softmax": "y = Softmax <axis = 0> (x)",
    "ReduceMean": "y = ReduceMean <axes = [0]> (x)",
    "CumSum": "z = Constant <value = int64 {0}> () y = CumSum (x, z)",
    "MatMul": "t = Transpose (x) s = MatMul (t, x) y = MatMul (x, s)",
    "Gemm": "s = Gemm <transA = 1> (x, x) y = MatMul (x, s)",
    "Einsum": 'y = Einsum <equation = "ni,nj->ij"> (x, x)',
    "Gather": "z = Constant <value = int64 {0}> () y = Gather (x, z)",
    "Slice": "z = Constant <value = int64[1] {0}> () o = Constant <value = int64[1] {1}> () y = Slice (x, z, o, z)",
    "Concat": "t = Concat <axis = 0> (x, x) y = Softmax (t)",
    "LayerNormalization": "s = Constant <value = float[4] {1, 2, 3, 4}> () y = LayerNormalization <axis = 0> (x, s)",
    "DynamicQuantizeLinear": "q, s, z = DynamicQuantizeLinear (x) y = DequantizeLinear (q, s, z)",
    "MeanVarianceNormalization": "y = MeanVarianceNormalization <axes = [0]> (x)",
    "Tile": "r = Constant <value = int64[2] {2, 1}> () y = Tile (x, r)",
    "GatherND": "i = Constant <value = int64[2, 2] {0, 1, 0, 2}> () y = GatherND (x, i)",
}


def test_it_is_known_of_each_operator_whether_items_stand_apart() -> None:
    """A new operator of onnx is refused for a batch until somebody says what it computes over."""
    operators = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
    over = {name for domain, name in OVER if not domain}
    assert operators - over - APART == set()
    assert over & APART == set()


@pytest.mark.parametrize("name", MIXED)
def test_items_that_reach_each_other_are_no_batch(name: str) -> None:
    made = model(f"g (float[3, 4] x) => (float[p, q] y) {{ {MIXED[name]} }}", 17)
    if name in ("Gather", "GatherND"):
        made = model(f"g (float[3, 4] x) => (float[p] y) {{ {MIXED[name]} }}")
    ((code, _, message),) = blockers(made, batch="N")
    told = "takes elements along N" if name == "GatherND" else f"{name} computes over N"
    assert code == "SG420" and told in message


def test_indices_of_items_have_to_count_them() -> None:
    made = model("g (float[2, 4] x) => (float[2] y) <int64[2, 2] i = {1, 1, 0, 2}> { y = GatherND (x, i) }")
    assert any("the indices 'i' do not count all of N" in message for *_, message in blockers(made, batch="N"))


def test_an_output_without_the_batch_has_lost_items() -> None:
    made = model("""g (float[2, 1, 4, 4] x) => (float[1, 1, 2, 2] y) <float[1, 5] r = {0, 0, 0, 3, 3}>
        { y = MaxRoiPool <pooled_shape = [2, 2]> (x, r) }""")
    ((code, location, _),) = blockers(made, batch="N")
    assert (code, location) == ("SG420", "main/y")


def test_a_first_dimension_that_is_no_batch_is_a_length() -> None:
    """Steps of a sequence, where --batch says nothing of them."""
    made = FOLLOWING["a state"]
    rewrite = splitgraph.reshape(made, {"x": ["S", "N", 1]}, verify=True)
    assert rewrite.new_sizes is not None and rewrite.new_sizes.items == {"N"}
    assert rewrite.verification is not None and rewrite.verification.verdict == "equal"
    (note,) = [each.message for each in rewrite.verification.diagnostics if each.code == "SG512"]
    assert note.endswith("; S is no batch (main/LSTM#0: LSTM computes over S)")


@pytest.mark.parametrize("items", [1, 2, 3])
def test_a_batch_beside_the_heads(items: int) -> None:
    """Attention over steps: with a batch of 1, the heads take the place of the batch in the target."""
    made = model("""g (float[3, 1, 8] x) => (float[3, 1, 8] y) <int64[3] s = {3, 2, 4}, int64[3] t = {3, 1, 8}>
        { q = Reshape (x, s) a = Transpose <perm = [1, 0, 2]> (q) b = Transpose <perm = [1, 2, 0]> (q) c = MatMul (a, b)
          p = Softmax (c) o = MatMul (p, a) r = Transpose <perm = [1, 0, 2]> (o) y = Reshape (r, t) }""")
    groups = [drawn(3, 1, 8) + number for number in range(items)]
    (found,) = run(reshaped(made, x=[3, "N", 8]), x=np.concatenate(groups, 1))
    np.testing.assert_allclose(found, np.concatenate([run(made, x=group)[0] for group in groups], 1), rtol=1e-5)


@pytest.mark.parametrize("batch", ["N", 5])
def test_a_batch_is_verified(batch: Any) -> None:
    verification = splitgraph.reshape(FOLLOWING["a token in front"], batch=batch, verify=True).verification
    assert verification is not None and verification.verdict == "equal"


def test_a_check_that_proves_nothing_does_not_end_the_others() -> None:
    """What was compared decides, whatever was not: only a difference ends the checks."""
    verdicts: list[Verdict] = ["not-run", *["equal"] * 4]
    nothing = diagnostic("SG506", "nothing is proved", severity="warning")

    def verify(before: ModelProto, after: ModelProto, by_regions: bool) -> Verification:
        verdict = verdicts.pop(0)
        return Verification(verdict, "", 3, 0.0, 0.0, None, (), () if verdict == "equal" else (nothing,))

    made = model("g (float[1, 4] x) => (float[1, 4] y) { y = Relu (x) }")
    sizes = NewSizes({"x": ["N", 4]})
    given = GivenSizes(sizes, frozenset("N"), {}, {}, {})
    verification = verify_sizes(made, convert_sizes(made, sizes).model, given, verify)
    assert not verdicts
    assert verification.verdict == "not-run" and verification.cases == 15
    assert [found.message for found in verification.diagnostics] == ["at the old sizes: nothing is proved"]


def test_a_dimension_of_the_model_is_found_in_its_input() -> None:
    made = model("""g (float[B, 1, 6] x) => (float[B, 6, 1] y) <int64[2] s = {-1, 6}, int64[3] t = {0, 6, 1}>
        { f = Reshape (x, s) y = Reshape (f, t) }""")
    before = drawn(2, 1, 6)
    assert run(reshaped(made, x=["B", 1, 6]), x=before)[0].shape == (2, 6, 1)
    # B items stay B items, so C is no part of what the -1 stands for.
    after = reshaped(made, x=["B", "C", 6])
    before = drawn(2, 3, 6)
    assert run(after, x=before)[0].tolist() == before.reshape(2, 18, 1).tolist()


@pytest.mark.parametrize("opset", [11, 17])
def test_a_squeeze_without_axes_gets_those_that_are_one(opset: int) -> None:
    made = model("g (float[3, 1, 5] x) => (float[3, 5] y) { y = Squeeze (x) }", opset)
    after = reshaped(made, x=["N", 1, "T"])
    assert run(after, x=drawn(1, 1, 1))[0].shape == (1, 1)
    # The batch is one of those that are 1.
    gone = model("g (float[1, 1, 5] x) => (float[5] y) { y = Squeeze (x) }", opset)
    assert {code for code, *_ in blockers(gone, x=["N", 1, 5])} == {"SG420"}


def test_lengths_that_the_user_says() -> None:
    made = model("g (float[1, 5] x) => (float[1, 2] y) <int64[2] s = {2, 3}> { y, z = Split <axis = 1> (x, s) }")
    after = reshaped(made, "main/Split#0[0]=S - 3", x=[1, "S"])
    assert run(after, x=drawn(1, 9))[0].shape == (1, 6)


def test_a_batch_beside_dimensions_without_a_name() -> None:
    made = model("g (float[1, 4, 4] x) => (float[1, 4, 4] y) { y = Relu (x) }")
    made.graph.input[0].type.tensor_type.shape.dim[1].Clear()
    after = reshaped(made, batch="N")
    first, second, _ = after.graph.input[0].type.tensor_type.shape.dim
    assert first.dim_param == "N" and not second.HasField("dim_value")


IN_FUNCTIONS = """<ir_version: 8, opset_import: ["": 17, "local": 1]> g (float[1, 3] x) => (float[1, n] y)
    { r = Relu (x) [first] y = local.Outer (r) }
    <domain: "local", opset_import: ["": 17, "local": 1]> Outer (a) => (b) { [call] b = local.Inner (a) }
    <domain: "local", opset_import: ["": 17]> Inner (a) => (b)
    { w = Constant <value = float[3] {1, 2, 4}> () [add] b = Add (a, w) }"""


def test_nodes_of_functions_have_the_names_of_the_user() -> None:
    found = blockers(parser.parse_model(IN_FUNCTIONS), x=[1, "S"])
    assert {location for _, location, _ in found} == {"main/first/call/add"}
    assert {message for _, _, message in found} == {
        "needs 'w' to be S along axis 0, and the weights 'w' have 3 along axis 0, and are not the same all along it"
    }


def test_what_another_input_needs_is_a_number() -> None:
    made = model("g (float[2, 3] x, float[2, 3] z) => (float[n, 3] y) { y = Add (x, z) }")
    ((_, _, message),) = blockers(made, x=[5, 3])
    assert message == "needs 'z' to be 5 along axis 0, and the input 'z' has 2 along axis 0; give it 5 there, too"


def test_an_output_that_is_declared_with_another_rank_stays_so() -> None:
    """Some exporters declare outputs as scalars. The result equals the model all the same."""
    made = model("g (float[1, 3, 4] x) => (float y) { y = Relu (x) }")
    made.graph.output[0].type.tensor_type.shape.SetInParent()
    changed = splitgraph.reshape(made, {"x": [1, 3, "W"]}, verify=True)
    assert changed.model.graph.output[0] == made.graph.output[0]
