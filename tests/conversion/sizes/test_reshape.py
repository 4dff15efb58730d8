"""Models with other sizes: what follows, what is in the way, and that the result is the same at the old size."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import splitgraph
from splitgraph.conversion.sizes.convert import convert_sizes
from splitgraph.options import NewSizes


def model(graph: str, opset: int = 17) -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {graph}')


def reshaped(made: ModelProto, *follow: str, batch: Any = None, **shapes: Any) -> ModelProto:
    result = convert_sizes(made, NewSizes(shapes or None, batch, follow)).model
    onnx.checker.check_model(result, full_check=True)
    return result


def run(made: ModelProto, **inputs: Any) -> list[Any]:
    return list(ReferenceEvaluator(made).run(None, inputs))


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
    "a resize": model("""g (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <int64[4] s = {1, 1, 4, 4}>
            { y = Resize <mode = "nearest"> (x, , , s) }"""),
}


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("items", [1, 2, 3])
def test_each_item_gives_what_it_gives_alone(name: str, items: int) -> None:
    before = FOLLOWING[name]
    sizes = [dim.dim_value for dim in before.graph.input[0].type.tensor_type.shape.dim]
    axis = 1 if name == "a state" else 0
    after = reshaped(before, x=[*sizes[:axis], "N", *sizes[axis + 1 :]])
    groups = [drawn(*sizes) + number for number in range(items)]
    (found,) = run(after, x=np.concatenate(groups, axis))
    out = 2 if name == "a state" else 0
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
GONE = model("g (float[1, 4] x) => (float[4] y) <int64[1] a = {0}> { y = Squeeze (x, a) }")
LENGTHS = model("g (float[1, 5] x) => (float[1, 2] y) <int64[2] s = {2, 3}> { y, z = Split <axis = 1> (x, s) }")
LARGER = model("""g (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <int64[4] s = {1, 1, 4, 4}>
    { y = Resize <mode = "nearest"> (x, , , s) }""")


@pytest.mark.parametrize(
    ("made", "shape", "code", "said"),
    [
        (WEIGHTS, [1, "C"], "SG420", "the weights 'w' have 4 along axis 0, and are not the same all along it"),
        (POSITIONS, [1, "S"], "SG420", "the weights 'p' have 3 along axis 1"),
        (GONE, ["N", 4], "SG420", "needs N == 1"),
        (LENGTHS, [1, "S"], "SG421", "lengths 2, 3 of 5"),
        (LARGER, [1, 1, "H", 2], "SG421", "4 whatever the size of the data, or 2*H"),
    ],
)
def test_what_is_in_the_way(made: ModelProto, shape: list[Any], code: str, said: str) -> None:
    ((found, location, message),) = blockers(made, x=shape)
    assert (found, location.split("/")[0]) == (code, "main") and said in message


def test_counted_weights_are_counted_again() -> None:
    made = model("g (float[1, 4] x) => (float[1, 4] y) <float[1, 4] p = {2, 5, 8, 11}> { y = Add (x, p) }")
    (found,) = run(reshaped(made, x=[1, "S"]), x=np.zeros((1, 6), np.float32))
    assert found.tolist() == [[2, 5, 8, 11, 14, 17]]


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
    ],
)
def test_a_wrong_word_of_the_user(follow: str, said: str) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match=said):
        convert_sizes(LARGER, NewSizes({"x": [1, 1, "H", 2]}, None, (follow,)))


TWO = model("g (float[1, 4] x, float[3, 4] z) => (float[3, 4] y) { y = Add (x, z) }")


@pytest.mark.parametrize(
    ("made", "sizes", "said"),
    [
        (HEAD, NewSizes(), "needs the shape of an input"),
        (HEAD, NewSizes({"z": ["N", 4, 4]}), "no input 'z'"),
        (HEAD, NewSizes({"x": ["N", 4]}), "has 3 dimensions"),
        (HEAD, NewSizes({"x": ["N", None, 4]}), "needs a number or a name"),
        (HEAD, NewSizes({"x": ["N", "N", 4]}), "1 and 4 at once"),
        (HEAD, NewSizes({"x": ["2*N", 4, 4]}), "needs a number or one name"),
        (TWO, NewSizes(None, "N"), "one batch is not what they share"),
    ],
)
def test_wrong_sizes(made: ModelProto, sizes: NewSizes, said: str) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match=said):
        convert_sizes(made, sizes)


def test_items_that_depend_on_each_other_are_refused() -> None:
    made = model("g (float[1, 4] x) => (float[1, 4] y) { y = Softmax <axis = 0> (x) }")
    with pytest.raises(splitgraph.VerificationError) as caught:
        splitgraph.reshape(made, batch="N", verify=True)
    assert [found.code for found in caught.value.diagnostics] == ["SG422"]


@pytest.mark.parametrize("batch", ["N", 5])
def test_a_batch_is_verified(batch: Any) -> None:
    verification = splitgraph.reshape(FOLLOWING["a token in front"], batch=batch, verify=True).verification
    assert verification is not None and verification.verdict == "equal"


def test_a_dimension_of_the_model_is_found_in_its_input() -> None:
    made = model("""g (float[B, 1, 6] x) => (float[B, 6, 1] y) <int64[2] s = {-1, 6}, int64[3] t = {0, 6, 1}>
        { f = Reshape (x, s) y = Reshape (f, t) }""")
    before = drawn(2, 1, 6)
    assert run(reshaped(made, x=["B", 1, 6]), x=before)[0].shape == (2, 6, 1)
    after = reshaped(made, x=["B", "C", 6])
    (found,) = run(after, x=drawn(2, 3, 6))
    assert found.shape == (6, 6, 1)


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
