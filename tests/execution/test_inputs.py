"""Inputs that satisfy the model."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from splitgraph.execution.attempts import MANNERS
from splitgraph.execution.elements import draw_elements
from splitgraph.execution.model_inputs import InputError
from splitgraph.execution.operator_roles import compose

from .drawing import draw, maker
from .small_models import constant, graph_of, model_of, node, split_model, value

INT64, INT32, BOOL, STRING = TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.STRING


def identity(dims: Any, dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    return model_of([node("Identity", ["x"], ["y"])], [value("x", dims, dtype)], [value("y", None, dtype)])


WRONG_ARGUMENTS = [
    ({"bind": {"M": 3}}, "no symbol 'M'; it has: N"),
    ({"bind": {"N": -1}}, "cannot be -1"),
    ({"bind": {"N": 2.5}}, "cannot be 2.5"),
    ({"given": {"z": np.zeros((2, 4), np.float32)}}, "no input 'z'; it has: x"),
    ({"given": {"x": np.zeros((2, 4))}}, "type float64; the model takes float32"),
    ({"given": {"x": [[0.0] * 4]}}, "is a list; the model takes an array"),
    ({"given": {"x": np.array([["a"] * 4])}}, "type string; the model takes float32"),
    ({"given": {"x": np.zeros((2, 4, 1), np.float32)}}, r"shape \[2, 4, 1\]; the model takes"),
    ({"given": {"x": np.zeros((2, 5), np.float32)}}, "dimension 1 of the input 'x' is 5; the model takes 4"),
    ({"given": {"x": np.zeros((2, 4), np.float32)}, "bind": {"N": 3}}, "is 2, but N is 3 elsewhere"),
]


@pytest.mark.parametrize(("options", "reason"), WRONG_ARGUMENTS)
def test_arguments_that_fit_nothing(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        maker(identity(("N", 4)), **options)


IMPOSSIBLE = [
    (identity((1 << 20, 1 << 10)), "takes more than 256 MiB"),
    (identity((1 << 40, 1 << 40)), "takes more than 256 MiB"),
]


@pytest.mark.parametrize(("model", "reason"), IMPOSSIBLE)
def test_models_that_no_inputs_can_be_made_for(model: onnx.ModelProto, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        draw(model)


def test_a_binding_against_an_obligation() -> None:
    with pytest.raises(InputError, match="no sizes"):
        draw(split_model(13, dims=("N", 4)), bind={"N": 3})


def test_a_map_cannot_be_made_up() -> None:
    model = identity(("N",))
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    model.graph.input[0].type.CopyFrom(onnx.TypeProto(map_type=onnx.TypeProto.Map(key_type=7, value_type=tensor)))
    with pytest.raises(InputError, match="cannot make up"):
        draw(model)


OBLIGED = [
    # model, what must hold of the shape of x
    (split_model(13, outputs="abc"), lambda n: n % 3 == 0),
    (split_model(13, lengths=[2, 4]), lambda n: n == 6),
    (split_model(11, lengths=[2, 4]), lambda n: n == 6),
    (split_model(18, outputs="ab", num_outputs=2), lambda n: n >= 0),
    (split_model(13, outputs="ab", dims=("batch-size", 4)), lambda n: n % 2 == 0),
    (split_model(13, outputs="ab", dims=(None, 4)), lambda n: n % 2 == 0),
]


@pytest.mark.parametrize(("model", "holds"), OBLIGED)
def test_sizes_meet_the_obligations(model: onnx.ModelProto, holds: Any) -> None:
    sizes = [case["x"].shape[0] for case in draw(model)]
    assert all(holds(size) and size > 1 for size in sizes)
    assert len(set(sizes)) == 3 or set(sizes) == {6}


def upsampled(*later: onnx.NodeProto, **options: Any) -> onnx.ModelProto:
    """x beside what it is when halved and doubled again, and later nodes that read "half"."""
    nodes = [
        node("MaxPool", ["x"], ["half"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        node("Resize", ["half", "", "scales"], ["doubled"]),
        node("Concat", ["x", "doubled"], ["y"], axis=1),
        *later,
    ]
    scales = constant("scales", [1, 1, 2, 2], np.float32)
    wide = constant("wide", np.ones((1, 1, 5, 1)), np.float32)
    outputs = [later[-1].output[0]] if later else []
    model = model_of(nodes, [value("x", ("b", 1, "h", "w"))], ["y", *outputs], [scales, wide])
    model.graph.value_info.extend(options.get("declared", ()))
    return model


DEMANDED = [
    # model, what must hold of the shape of x
    (upsampled(), lambda b, c, h, w: h % 2 == w % 2 == 0),
    (upsampled(node("Concat", ["half", "wide"], ["z"], axis=3)), lambda b, c, h, w: (b, h) == (1, 10) and w % 2 == 0),
    (
        upsampled(
            node("Concat", ["half", "wide"], ["z"], axis=3), declared=[value("half", ("b", 1, "rows", "columns"))]
        ),
        lambda b, c, h, w: (b, h) == (1, 10) and w % 2 == 0,
    ),
]


@pytest.mark.parametrize(("model", "holds"), DEMANDED)
def test_sizes_meet_what_other_nodes_than_splits_demand(model: onnx.ModelProto, holds: Any) -> None:
    assert all(holds(*case["x"].shape) for case in draw(model))


def test_a_binding_against_a_demand_of_no_split_is_tried() -> None:
    """Inference may be stricter than an engine, which has the last word."""
    assert [case["x"].shape[2] for case in draw(upsampled(), bind={"h": 3})] == [3, 3, 3]


def test_later_attempts_meet_what_splits_demand_alone() -> None:
    made = maker(upsampled())
    shapes = [made.draw(0, attempt)[0]["x"].shape for attempt in range(6)]
    assert [shape[2] % 2 == shape[3] % 2 == 0 for shape in shapes] == [True] * 5 + [False]


def test_large_images_come_in_small_batches() -> None:
    made = maker(identity(("b", 3, "h", "w")))
    shapes = [made.draw(0, attempt)[0]["x"].shape for attempt in range(1, 5)]
    assert max(min(shape[2:]) for shape in shapes) >= 224
    assert all(np.prod(shape) * 4 <= 8 << 20 for shape in shapes)


def test_dimensions_that_sum() -> None:
    nodes = [
        node("Shape", ["p"], ["ps"], end=1),
        node("Shape", ["q"], ["qs"], end=1),
        node("Concat", ["ps", "qs"], ["lengths"], axis=0),
        node("Split", ["x", "lengths"], ["a", "b"]),
    ]
    inputs = [value("x", ("N", 4)), value("p", ("A", 3)), value("q", ("B", 2))]
    drawn = draw(model_of(nodes, inputs, ["a", "b"]))
    totals = [(len(case["x"]), len(case["p"]), len(case["q"])) for case in drawn]
    assert all(n == a + b and min(a, b) > 1 for n, a, b in totals)
    assert len(set(totals)) == 3


def test_shared_and_unknown_dimensions_and_ranks() -> None:
    model = model_of(
        [node("Add", ["x", "y"], ["s"]), node("Relu", ["z"], ["r"])],
        [value("x", ("N", None)), value("y", ("N", 1)), value("z", None)],
        ["s", "r"],
    )
    for case in draw(model):
        assert case["x"].shape[0] == case["y"].shape[0]
        assert case["x"].shape[0] != case["x"].shape[1]
        assert case["z"].ndim > 0


def test_expressions_over_symbols() -> None:
    model = identity(("past_len + 1", "past_len"))
    for case in draw(model):
        assert case["x"].shape[0] == case["x"].shape[1] + 1 > 2


ELEMENT_TYPES = [number for number in TensorProto.DataType.values() if number not in (0, 8, 9)]


@pytest.mark.parametrize("number", [n for n in ELEMENT_TYPES if n <= 22])
def test_every_element_type(number: int) -> None:
    (first, second) = draw(identity((3, 5), number), cases=2)
    expected = helper.tensor_dtype_to_np_dtype(number)
    assert first["x"].dtype == expected
    assert first["x"].tobytes() != second["x"].tobytes()


def test_floats_of_every_third_case_are_positive() -> None:
    signs = [bool((case["x"] < 0).any()) for case in draw(identity((40,)))]
    assert signs == [True, True, False]


def test_booleans_are_both_and_strings_hold_white_space_and_delimiters() -> None:
    assert set(draw(identity((4,), BOOL))[0]["x"].tolist()) == {True, False}
    split = node("StringSplit", ["x"], ["y", "z"], delimiter=";")
    outputs = [value("y", None, STRING), value("z", None, INT64)]
    (texts, *_) = draw(model_of([split], [value("x", (30,), STRING)], outputs, opset=20))
    assert any(";" in text for text in texts["x"])
    assert any(" " in text for text in texts["x"])
    assert any(text.endswith(";;") for text in texts["x"])


def test_integers_are_distinct_and_of_both_signs_in_the_second_case() -> None:
    first, second, _ = draw(identity(("N", 5), INT64))
    assert len(set(first["x"].ravel().tolist())) == first["x"].size
    assert first["x"].min() == 1
    assert second["x"].min() < 0 < second["x"].max()


DRAWN_APART = [
    ("int64", (), {1, 0}),
    ("uint8", (1,), {1, 0}),
    ("int32", (2, 3), {0}),
    ("bool", (), {True, False}),
    ("bool", (1, 1), {True, False}),
]


@pytest.mark.parametrize(("dtype", "shape", "among"), DRAWN_APART)
def test_what_few_elements_are_differs_from_case_to_case(dtype: str, shape: Any, among: set[int]) -> None:
    """Or a condition would have one value, and a scalar be equal to its cube."""
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    drawn = [case["x"] for case in draw(identity(shape, number))]
    assert all(each.shape == shape for each in drawn)
    found = {element for each in drawn for element in each.ravel().tolist()}
    assert among <= found
    assert dtype == "bool" or max(map(abs, found)) > 1


@pytest.mark.parametrize("operator", ["Div", "Mod"])
def test_integers_that_may_divide_are_not_0(operator: str) -> None:
    """A runtime may end the process over it."""
    inputs = [value("x", (3,), INT64), value("y", (3,), INT64)]
    model = model_of([node(operator, ["x", "y"], ["z"])], inputs, [value("z", (3,), INT64)])
    assert all((case["y"] != 0).all() for case in draw(model, 6))


def test_positions_stay_among_the_elements() -> None:
    model = model_of([node("Gather", ["x", "i"], ["y"])], [value("x", (2,)), value("i", (1,), INT64)], ["y"])
    assert all(abs(case["i"]).max() <= 1 for case in draw(model, 6))


def test_one_number_is_of_both_signs() -> None:
    assert {float(np.sign(case["x"])) for case in draw(identity(()))} == {1.0, -1.0}


@pytest.mark.parametrize(("case", "attempt"), [(0, 0), (2, 0), (1, 1), (1, 5)])
def test_floats_of_other_cases_and_attempts_are_normally_distributed(case: int, attempt: int) -> None:
    numbers = draw_elements("float32", (40,), np.random.default_rng(0), case=case, manner=MANNERS[attempt])
    assert 0 < abs(numbers).min() < abs(numbers).max() < 6


FLOATS = ["float16", "bfloat16", "float32", "float64", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"]


@pytest.mark.parametrize("dtype", [*FLOATS, "float4e2m1"])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (7,), (8,), (3, 5), (400,)])
def test_floats_of_the_second_case_have_large_ones_of_both_signs_and_a_0(dtype: str, shape: Any) -> None:
    drawn = draw_elements(dtype, shape, np.random.default_rng(0), case=1, manner=MANNERS[0])
    numbers = drawn.astype(np.float64).ravel()
    farther = draw_elements(dtype, shape, np.random.default_rng(0), case=1, manner=MANNERS[0], reach=1e30)
    assert np.isfinite([*numbers, *farther.astype(np.float64).ravel()]).all()
    if dtype == "float4e2m1":
        assert abs(numbers).max() <= 6
        return
    large = abs(numbers) >= 7
    assert large.sum() == (len(numbers) + 3) // 4 if len(numbers) > 1 else not large.any()
    assert len(set(np.sign(numbers[large]))) == min(large.sum(), 2)
    if dtype in ("float32", "float64"):
        assert (numbers == 0).sum() == (len(numbers) >= 8)
        assert len(set(numbers.tolist())) == len(numbers)


def test_narrow_integers_stay_in_range() -> None:
    rng = np.random.default_rng(0)
    for name, low, high in (("int4", -8, 7), ("uint4", 0, 15)):
        numbers = draw_elements(name, (200,), rng, case=0, manner=MANNERS[0])
        assert numbers.dtype == getattr(ml_dtypes, name)
        assert (int(numbers.min()), int(numbers.max())) == (low, high)
    assert draw_elements("int8", (300,), rng, case=0, manner=MANNERS[0]).min() >= 0
    assert set(draw_elements("int64", (50,), rng, case=0, manner=MANNERS[4]).tolist()) == {0, 1}


def lengths_model(dims: Any, outputs: str = "ab", opset: int = 13, through: str = "") -> onnx.ModelProto:
    nodes = [node(through, ["lengths"], ["passed"])] if through else []
    nodes.append(node("Split", ["x", "passed" if through else "lengths"], list(outputs), axis=1))
    return model_of(nodes, [value("x", ("N", "T")), value("lengths", dims, INT64)], list(outputs), opset=opset)


@pytest.mark.parametrize("dims", [(2,), ("K",), (None,), None])
@pytest.mark.parametrize("through", ["", "Identity"])
def test_lengths_sum_to_the_dimension(dims: Any, through: str) -> None:
    drawn = draw(lengths_model(dims, through=through))
    for case in drawn:
        assert case["lengths"].shape == (2,)
        assert case["lengths"].sum() == case["x"].shape[1]
        assert case["lengths"].min() > 0


def test_split_1_takes_its_lengths_as_numbers_of_the_datas_type() -> None:
    split = node("Split", ["x", "lengths"], ["a", "b"], axis=1)
    model = model_of([split], [value("x"), value("lengths", (2,))], ["a", "b"], opset=1)
    for case in draw(model):
        assert (case["lengths"].dtype, case["lengths"].sum()) == (np.float32, 4)


@pytest.mark.parametrize(("dims", "shape"), [((), ()), (None, ()), ((3,), (3,))])
def test_lengths_of_a_sequence(dims: Any, shape: tuple[int, ...]) -> None:
    model = model_of(
        [node("SplitToSequence", ["x", "split"], ["s"], axis=0)],
        [value("x", ("N", 4)), value("split", dims, INT32)],
        [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
    )
    for case in draw(model):
        assert (case["split"].shape, case["split"].dtype) == (shape, np.int32)
        assert case["split"].sum() == len(case["x"]) if shape else 1 <= case["split"] <= len(case["x"])


def in_a_loop() -> onnx.ModelProto:
    body = graph_of(
        [node("Identity", ["alive"], ["alive_out"]), node("Split", ["x", "inner"], ["a", "b"], axis=1)],
        [value("i", (), INT64), value("alive", (), BOOL), value("inner", (2,), INT64)],
        [value("alive_out", (), BOOL), value("inner_out", (2,), INT64), value("a"), value("b")],
    )
    body.node.append(node("Identity", ["inner"], ["inner_out"]))
    loop = node("Loop", ["m", "", "lengths"], ["l", "as", "bs"], body=body)
    inputs = [value("m", (), INT64), value("x", ("N", "T")), value("lengths", (2,), INT64)]
    return model_of([loop], inputs, ["as", "bs"])


def in_a_function() -> onnx.ModelProto:
    split = node("Split", ["data", "sizes"], ["a", "b"], axis=1)
    function = helper.make_function(
        "local", "Cut", ["sizes", "data"], ["a", "b"], [split], [helper.make_opsetid("", 13)]
    )
    call = helper.make_node("Cut", ["lengths", "x"], ["a", "b"], domain="local")
    inputs = [value("x", ("N", "T")), value("lengths", (2,), INT64)]
    return model_of([call], inputs, ["a", "b"], functions=[function], domains={"local": 1})


@pytest.mark.parametrize("model", [in_a_loop(), in_a_function()])
def test_lengths_reach_splits_in_subgraphs_and_functions(model: onnx.ModelProto) -> None:
    for case in draw(model):
        assert case["lengths"].sum() == case["x"].shape[1]
        assert case.get("m", 2) in (2, 3, 4)


def test_conditions_go_both_ways_and_combine() -> None:
    inputs = [value("c", (), BOOL), value("d", (), BOOL)]
    nodes = [node("And", ["c", "d"], ["e"])]
    drawn = draw(model_of(nodes, inputs, [value("e", (), BOOL)]), cases=4)
    assert {(bool(case["c"]), bool(case["d"])) for case in drawn} == {
        (a, b) for a in (True, False) for b in (True, False)
    }


def test_sequences_and_optionals() -> None:
    inputs = [
        helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, ("N", 4)),
        helper.make_value_info("o", helper.make_optional_type_proto(helper.make_tensor_type_proto(1, ("N",)))),
    ]
    nodes = [node("ConcatFromSequence", ["s"], ["y"], axis=0), node("OptionalHasElement", ["o"], ["h"])]
    drawn = draw(model_of(nodes, inputs, ["y", value("h", (), BOOL)]))
    assert [len(case["s"]) for case in drawn] == [2, 3, 2]
    assert [case["o"] is None for case in drawn] == [False, True, False]
    assert drawn[0]["s"][0].shape == (len(drawn[0]["o"]), 4)


def test_a_default_is_overridden_in_the_second_case_only() -> None:
    model = model_of(
        [node("Add", ["x", "w"], ["y"])], [value("x"), value("w", (4,))], ["y"], [constant("w", np.ones(4), np.float32)]
    )
    assert ["w" in case for case in draw(model)] == [False, True, False]
    assert "w" not in maker(model).draw(1, 1)[0]


def test_given_arrays_fix_the_sizes_of_the_others() -> None:
    model = model_of([node("MatMul", ["x", "y"], ["z"])], [value("x", ("N", "K")), value("y", ("K", "M"))], ["z"])
    given = {"x": np.ones((3, 7), np.float32)}
    made = maker(model, given=given, bind={"M": 11})
    values, _ = made.draw(0)
    assert values["x"] is given["x"]
    assert values["y"].shape == (7, 11)
    assert made.varies
    assert not maker(identity(("N", 4)), given={"x": np.zeros((2, 4), np.float32)}).varies


def test_the_same_seed_draws_the_same() -> None:
    model = split_model(18, num_outputs=2)
    first, again, other = (draw(model, seed=seed) for seed in (1, 1, 2))
    assert all((a["x"] == b["x"]).all() for a, b in zip(first, again, strict=True))
    assert not all((a["x"] == b["x"]).all() for a, b in zip(first, other, strict=True))


def split_branch(lengths: list[int], name: str) -> onnx.GraphProto:
    split = node("Split", ["x", f"{name}l"], [f"{name}a", f"{name}b"])
    return graph_of([split], [], [f"{name}a"], [constant(f"{name}l", lengths)], name)


def concat_branch(lengths: list[int], name: str) -> onnx.GraphProto:
    beside = constant(f"{name}b", np.ones((sum(lengths), 1)), np.float32)
    return graph_of([node("Concat", ["x", f"{name}b"], [f"{name}a"], axis=1)], [], [f"{name}a"], [beside], name)


@pytest.mark.parametrize("branch", [split_branch, concat_branch])
def test_what_only_a_branch_demands_may_be_left_unmet(branch: Any) -> None:
    choice = node("If", ["c"], ["y"], then_branch=branch([2, 3], "t"), else_branch=branch([2, 4], "e"))
    halves = node("Concat", ["x", "beside"], ["z"], axis=1)
    inputs = [value("c", (), BOOL), value("x")]
    model = model_of([choice, halves], inputs, ["y", "z"], [constant("beside", np.ones((4, 1)), np.float32)])
    assert all(len(case["x"]) == 4 for case in draw(model))


@pytest.mark.parametrize(("total", "parts"), [(6, 2), (6, 6), (2, 4), (0, 3), (1, 1)])
def test_a_composition_sums(total: int, parts: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        lengths = compose(total, parts, rng)
        assert (len(lengths), sum(lengths)) == (parts, total)
        assert min(lengths) >= (1 if total >= parts else 0)
