"""The reference engine: the right kernel in every scope, and no answer where onnx's evaluator would be wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from splitgraph.verification.engines.error_texts import is_unsupported, reason_of
from splitgraph.verification.reference import evaluator
from splitgraph.verification.reference.kernels import ONNX_KERNEL_VERSIONS, KernelError
from splitgraph.verification.reference.replacements import implementation
from splitgraph.verification.values import UnsupportedError

from ..small_models import constant, graph_of, model_of, node, split_model, value

FOUR = np.arange(8, dtype=np.float32).reshape(2, 4)
BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64


def run(model: onnx.ModelProto, **feeds: Any) -> list[Any]:
    return evaluator.run(evaluator.load(model), feeds)


SPLIT_OPSETS = {1: 1, 2: 2, 9: 2, 11: 11, 12: 11, 13: 13, 17: 13, 18: 18, 24: 18, 28: 18}
OPSETS = [opset for opset in SPLIT_OPSETS if opset <= onnx.defs.onnx_opset_version()]


def test_every_version_is_selected_by_an_opset_of_the_table() -> None:
    assert set(SPLIT_OPSETS.values()) == set(ONNX_KERNEL_VERSIONS["Split"]), "extend SPLIT_OPSETS"


@pytest.mark.parametrize("opset", OPSETS)
def test_the_opset_selects_the_kernel(opset: int) -> None:
    """What is refused tells the versions apart: int64 in 1, num_outputs before 18, no lengths at all in 18."""
    plain = split_model(opset, axis=1)
    integers = split_model(opset, axis=1, lengths=[1, 3], dtype=INT64)
    counted = split_model(opset, axis=1, num_outputs=2)
    version = SPLIT_OPSETS[opset]
    refused = []
    for name, model, feed in (
        ("plain", plain, FOUR),
        ("int64", integers, FOUR.astype(np.int64)),
        ("count", counted, FOUR),
    ):
        try:
            run(model, x=feed)
        except KernelError:
            refused.append(name)
    assert refused == {1: ["int64", "count"], 18: ["plain"]}.get(version, ["count"])


def branch(name: str, lengths: list[int]) -> onnx.GraphProto:
    return graph_of(
        [node("Split", ["x", f"{name}_lengths"], [f"{name}_a", f"{name}_b"], axis=1)],
        [],
        [f"{name}_a", f"{name}_b"],
        [constant(f"{name}_lengths", lengths)],
        name,
    )


def if_model(opset: int, then_lengths: list[int], else_lengths: list[int]) -> onnx.ModelProto:
    nodes = [
        node(
            "If",
            ["c"],
            ["a", "b"],
            then_branch=branch("then", then_lengths),
            else_branch=branch("else", else_lengths),
        )
    ]
    return model_of(nodes, [value("c", (), BOOL), value("x")], ["a", "b"], opset=opset)


@pytest.mark.parametrize(("condition", "widths"), [(True, (1, 3)), (False, (4, 0))])
def test_a_split_in_a_branch(condition: bool, widths: tuple[int, int]) -> None:
    results = run(if_model(13, [1, 3], [4, 0]), c=np.array(condition), x=FOUR)
    assert tuple(result.shape[1] for result in results) == widths


def test_a_branch_is_as_strict_as_the_main_graph() -> None:
    with pytest.raises(KernelError, match="sum to 3"):
        run(if_model(13, [1, 2], [4, 0]), c=np.array(True), x=FOUR)


def loop_model(cond: str, trips: str = "m") -> onnx.ModelProto:
    """Splits x in each iteration; the left half is carried, the right one scanned."""
    body = graph_of(
        [
            node("Identity", ["alive"], ["alive_out"]),
            node("Split", ["x"], ["left", "right"], axis=1),
            node("Add", ["state", "left"], ["state_out"]),
        ],
        [value("i", (), INT64), value("alive", (), BOOL), value("state", None)],
        [value("alive_out", (), BOOL), "state_out", value("right", (2, 2))],
        name="body",
    )
    loop = node("Loop", [trips, cond, "start"], ["total", "rights"], body=body)
    inputs = [value("m", (), INT64), value("c", (), BOOL), value("x"), value("start", (2, 2))]
    return model_of([loop], inputs, ["total", "rights"], opset=13)


@pytest.mark.parametrize(("cond", "trips"), [("", 3), ("c", 3), ("", 0), ("", 1)])
def test_a_split_in_a_loop(cond: str, trips: int) -> None:
    zeros = np.zeros((2, 2), np.float32)
    total, rights = run(loop_model(cond), m=np.array(trips), c=np.array(True), x=FOUR, start=zeros)
    assert total.tolist() == (trips * FOUR[:, :2]).tolist()
    assert rights.shape == (trips, 2, 2)
    assert (rights == FOUR[:, 2:]).all()


def test_a_loop_whose_condition_is_false_does_not_run() -> None:
    zeros = np.zeros((2, 2), np.float32)
    total, rights = run(loop_model("c"), m=np.array(3), c=np.array(False), x=FOUR, start=zeros)
    assert (total.tolist(), rights.shape) == (zeros.tolist(), (0, 2, 2))


def test_a_loop_without_iterations_and_an_undeclared_output_has_no_answer() -> None:
    model = loop_model("")
    model.graph.node[0].attribute[0].g.output[2].type.tensor_type.ClearField("shape")
    with pytest.raises(UnsupportedError, match="undeclared type"):
        run(model, m=np.array(0), c=np.array(True), x=FOUR, start=np.zeros((2, 2), np.float32))


@pytest.mark.parametrize("opset", [11, 18])
def test_a_split_in_a_scan(opset: int) -> None:
    attributes = {"num_outputs": 2} if opset == 18 else {}
    body = graph_of([node("Split", ["row"], ["a", "b"], **attributes)], [value("row", (4,))], ["a", "b"], name="body")
    scan = node("Scan", ["x"], ["lefts", "rights"], num_scan_inputs=1, body=body)
    lefts, rights = run(model_of([scan], [value("x")], ["lefts", "rights"], opset=opset), x=FOUR)
    assert (lefts.tolist(), rights.tolist()) == (FOUR[:, :2].tolist(), FOUR[:, 2:].tolist())


SCANS: list[tuple[dict[str, Any], Any]] = [
    # attributes, the rows as they were met
    ({}, [[0, 1, 2, 3], [4, 5, 6, 7]]),
    ({"scan_input_directions": [1]}, [[4, 5, 6, 7], [0, 1, 2, 3]]),
    ({"scan_output_directions": [1]}, [[4, 5, 6, 7], [0, 1, 2, 3]]),
    ({"scan_output_axes": [-1]}, [[0, 4], [1, 5], [2, 6], [3, 7]]),
    ({"scan_input_axes": [1]}, [[0, 4], [1, 5], [2, 6], [3, 7]]),
]


@pytest.mark.parametrize(("attributes", "rows"), SCANS)
def test_the_directions_and_axes_of_a_scan(attributes: dict[str, Any], rows: Any) -> None:
    nodes = [node("Add", ["state", "row"], ["state_out"]), node("Identity", ["row"], ["row_out"])]
    body = graph_of(nodes, [value("state", None), value("row", None)], ["state_out", "row_out"], name="body")
    scan = node("Scan", ["start", "x"], ["total", "rows"], num_scan_inputs=1, body=body, **attributes)
    results = run(model_of([scan], [value("start", ()), value("x")], ["total", "rows"]), start=np.float32(0), x=FOUR)
    assert results[0].tolist() == FOUR.sum(axis=1 if "scan_input_axes" in attributes else 0).tolist()
    assert results[1].tolist() == rows


def test_a_scan_over_nothing_and_over_different_lengths() -> None:
    body = graph_of(
        [node("Add", ["p", "q"], ["s"])], [value("p", (4,)), value("q", (4,))], [value("s", (4,))], name="body"
    )
    scan = node("Scan", ["x", "y"], ["sums"], num_scan_inputs=2, body=body)
    model = model_of([scan], [value("x"), value("y")], ["sums"])
    assert run(model, x=FOUR[:0], y=FOUR[:0])[0].shape == (0, 4)
    with pytest.raises(ValueError, match=r"different lengths \[2, 1\]"):
        run(model, x=FOUR, y=FOUR[:1])


def function_of(nodes: list[onnx.NodeProto], opset: int, defaults: dict[str, int] | None = None) -> onnx.FunctionProto:
    return helper.make_function(
        "local",
        "Halves",
        ["x"],
        ["a", "b"],
        nodes,
        [helper.make_opsetid("", opset)],
        attributes=[] if defaults else ["axis"],
        attribute_protos=[helper.make_attribute(name, number) for name, number in (defaults or {}).items()],
    )


def with_reference(split: onnx.NodeProto, name: str, source: str) -> onnx.NodeProto:
    attribute = split.attribute.add()
    attribute.name, attribute.ref_attr_name, attribute.type = name, source, onnx.AttributeProto.INT
    return split


def call_model(function: onnx.FunctionProto, **attributes: int) -> onnx.ModelProto:
    call = helper.make_node("Halves", ["x"], ["a", "b"], domain="local", **attributes)
    return model_of([call], [value("x")], ["a", "b"], opset=18, functions=[function], domains={"local": 1})


FUNCTION_CALLS = [
    # opset of the function, default of its attribute, what the call gives, shape of each half
    (13, None, {"axis": 1}, (2, 2)),
    (13, None, {"axis": 0}, (1, 4)),
    (13, None, {}, (1, 4)),
    (11, {"axis": 1}, {}, (2, 2)),
    (11, {"axis": 1}, {"axis": -2}, (1, 4)),
]


@pytest.mark.parametrize(("opset", "defaults", "given", "shape"), FUNCTION_CALLS)
def test_a_function_takes_its_own_opset_and_the_attributes_of_the_call(
    opset: int, defaults: dict[str, int] | None, given: dict[str, int], shape: tuple[int, ...]
) -> None:
    split = with_reference(node("Split", ["x"], ["a", "b"]), "axis", "axis")
    results = run(call_model(function_of([split], opset, defaults), **given), x=FOUR)
    assert [result.shape for result in results] == [shape, shape]


def test_a_function_is_as_strict_as_the_main_graph() -> None:
    split = with_reference(node("Split", ["x"], ["a", "b"]), "axis", "axis")
    with pytest.raises(KernelError, match="neither"):
        run(call_model(function_of([split], 18), axis=1), x=FOUR)


def test_functions_in_functions_with_references_in_subgraphs() -> None:
    split = with_reference(node("Split", ["x"], ["inner_a", "inner_b"]), "axis", "way")
    inner = graph_of([split], [], ["inner_a", "inner_b"], name="inner")
    condition = node("Constant", [], ["true"], value=constant("t", True, np.bool_))
    choice = node("If", ["true"], ["a", "b"], then_branch=inner, else_branch=inner)
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("local", 1)]
    cut = helper.make_function("local", "Cut", ["x"], ["a", "b"], [condition, choice], imports, ["way"])
    call = helper.make_node("Cut", ["x"], ["a", "b"], domain="local")
    outer = helper.make_function(
        "local", "Halves", ["x"], ["a", "b"], [with_reference(call, "way", "axis")], imports, ["axis"]
    )
    model = call_model(outer, axis=1)
    model.functions.append(cut)  # after its caller
    assert [result.shape for result in run(model, x=FOUR)] == [(2, 2), (2, 2)]


@pytest.mark.parametrize("domain", ["ai.onnx", ""])
@pytest.mark.parametrize("imported", ["ai.onnx", ""])
def test_both_names_of_the_default_domain(domain: str, imported: str) -> None:
    model = split_model(13, axis=1)
    model.graph.node.append(node("Relu", ["a"], ["c"]))
    model.graph.output.append(value("c", None))
    for each in model.graph.node:
        each.domain = domain
    model.opset_import[0].domain = imported
    assert [result.shape for result in run(model, x=FOUR)] == [(2, 2)] * 3


@pytest.mark.parametrize(("operator", "opset"), [("Scan", 8)])
def test_an_operator_that_would_run_with_another_versions_meaning_is_refused(operator: str, opset: int) -> None:
    model = model_of([node(operator, ["x", "x"], ["y"])], [value("x")], ["y"], opset=opset)
    with pytest.raises(UnsupportedError, match=f"{operator}-{opset} with the meaning of"):
        evaluator.load(model)


@pytest.mark.parametrize(
    ("operator", "opset", "refused"), [("Relu", 14, True), ("Relu", 13, False), ("Abs", 14, False)]
)
def test_a_version_that_the_installed_onnx_does_not_know_is_refused(
    operator: str, opset: int, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if onnx ended at opset 13, where Relu-14 is Relu-13 to it.
    known = onnx.defs.get_schema
    monkeypatch.setattr("onnx.defs.get_schema", lambda op, opset=13, domain="": known(op, min(opset, 13), domain))
    model = model_of([node(operator, ["x"], ["y"])], [value("x")], ["y"], opset=opset)
    if not refused:
        evaluator.load(model)
        return
    with pytest.raises(UnsupportedError, match="knows Relu-13, but not Relu-14"):
        evaluator.load(model)


def test_an_operator_that_does_not_exist_at_the_opset_is_refused() -> None:
    model = model_of([node("GridSample", ["x", "x"], ["y"])], [value("x")], ["y"], opset=15)
    with pytest.raises(UnsupportedError, match="does not exist at opset 15"):
        evaluator.load(model)


@pytest.mark.parametrize(("operator", "total"), [("Softmax", 2.0), ("Hardmax", 2.0), ("LogSoftmax", None)])
@pytest.mark.parametrize("opset", [1, 11])
def test_softmax_until_opset_12_counts_the_dimensions_from_axis_on_as_one(
    operator: str, total: float | None, opset: int
) -> None:
    data = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    model = model_of([node(operator, ["x"], ["y"])], [value("x", (2, 3, 4))], ["y"], opset=opset)
    (result,) = run(model, x=data)
    assert (result.shape, result.dtype) == (data.shape, data.dtype)
    sums = (np.exp(result) if total is None else result).sum(axis=(1, 2))
    np.testing.assert_allclose(sums, [1.0, 1.0], rtol=1e-6)


@pytest.mark.parametrize(("axis", "ones"), [(0, 1), (1, 2), (2, 6), (-1, 6)])
def test_hardmax_11_has_a_one_for_each_row(axis: int, ones: int) -> None:
    data = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
    model = model_of([node("Hardmax", ["x"], ["y"], axis=axis)], [value("x", (2, 3, 4))], ["y"], opset=11)
    assert run(model, x=data)[0].sum() == ones


def test_softmax_13_is_left_to_the_evaluator() -> None:
    assert implementation("Softmax", 13) is None


def optional_model(operator: str) -> onnx.ModelProto:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    wrap = helper.make_node("Optional", ["x"] if operator == "full" else [], ["o"], type=tensor)
    outputs = [node("OptionalHasElement", ["o"], ["has"])]
    if operator == "full":
        outputs.append(node("OptionalGetElement", ["o"], ["y"]))
    names = ["has", "y"][: len(outputs)]
    return model_of([wrap, *outputs], [value("x")], names, opset=18)


def test_optionals_hold_the_element_or_nothing() -> None:
    has, element = run(optional_model("full"), x=FOUR)
    assert (bool(has), element.tolist()) == (True, FOUR.tolist())
    assert [bool(has) for has in run(optional_model("empty"), x=FOUR)] == [False]


FAILURES = [
    ("Add", [(2, 3), (2, 4)], {}, False),
    ("Concat", [(2, 3), (3, 4)], {"axis": 0}, False),
    ("Concat", [(2, 4), (2, 4)], {"axis": 0, "unheard_of": 1}, True),
    ("Add", [(2, 2), (2,)], {"broadcast": 1, "axis": 0}, True),
]


@pytest.mark.parametrize(("operator", "shapes", "attributes", "unsupported"), FAILURES)
def test_a_wrong_model_is_told_from_what_the_evaluator_lacks(
    operator: str, shapes: list[tuple[int, ...]], attributes: dict[str, int], unsupported: bool
) -> None:
    model = model_of([node(operator, ["x", "y"], ["z"], **attributes)], [value("x"), value("y")], ["z"], opset=18)
    feeds = {name: np.zeros(shape, np.float32) for name, shape in zip("xy", shapes, strict=True)}
    with pytest.raises(Exception) as caught:
        run(model, **feeds)
    assert is_unsupported(caught.value) is unsupported
    assert reason_of(caught.value)


def test_an_omitted_output_is_not_an_omitted_input() -> None:
    """onnx's evaluator keeps the value of an omitted output under "", the name of every omitted input."""
    nodes = [node("Split", ["x"], ["a", ""], axis=1, num_outputs=2), node("Clip", ["x", "", "most"], ["y"])]
    most = helper.make_tensor("most", TensorProto.FLOAT, [], [5.0])
    model = model_of(nodes, [value("x")], ["y"], [most], opset=18)
    before = model.SerializeToString()
    np.testing.assert_array_equal(run(model, x=FOUR)[0], np.minimum(FOUR, 5))
    assert model.SerializeToString() == before


def test_cast_1_names_the_type() -> None:
    model = model_of([node("Cast", ["x"], ["y"], to="INT64")], [value("x", (2,))], [value("y", (2,), INT64)], opset=5)
    (found,) = run(model, x=np.array([1.7, -2.3], np.float32))
    assert (found.dtype, found.tolist()) == (np.int64, [1, -2])


SCALE, BIAS, MEAN, VARIANCE = (np.array(each, np.float32) for each in ([2, 1], [0.5, 0], [1, -1], [4, 1]))
BEFORE_14 = {1: 5, 6: 6, 7: 8, 9: 13}


def batch_normalization(opset: int, outputs: int = 1, **attributes: int) -> onnx.ModelProto:
    """Opsets 1 and 6 say by is_test what they do."""
    names = ["y", "mean_out", "var_out", "saved_mean", "saved_var"][:outputs]
    made = node("BatchNormalization", ["x", "scale", "bias", "mean", "var"], names, epsilon=0.0, **attributes)
    if opset < 6:
        made.attribute.append(helper.make_attribute("consumed_inputs", [0, 0, 0, 1, 1]))
    return model_of([made], [value(name) for name in ("x", "scale", "bias", "mean", "var")], names, opset=opset)


@pytest.mark.parametrize("version", BEFORE_14)
@pytest.mark.parametrize("shape", [(3, 2), (3, 2, 4, 5)])
def test_batch_normalization_takes_the_statistics_that_are_given(version: int, shape: tuple[int, ...]) -> None:
    """onnx's evaluator takes those of the batch, as if it trained."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    attributes = {"is_test": 1} if version < 7 else {}
    feeds = {"x": x, "scale": SCALE, "bias": BIAS, "mean": MEAN, "var": VARIANCE}
    (found,) = run(batch_normalization(BEFORE_14[version], **attributes), **feeds)
    scale, bias, mean, variance = (each.reshape(2, *[1] * (x.ndim - 2)) for each in (SCALE, BIAS, MEAN, VARIANCE))
    np.testing.assert_allclose(found, scale * (x - mean) / np.sqrt(variance) + bias, rtol=1e-6)


@pytest.mark.parametrize("model", [batch_normalization(6), batch_normalization(8, outputs=5)])
def test_batch_normalization_that_trains_is_refused(model: onnx.ModelProto) -> None:
    with pytest.raises(UnsupportedError, match="training mode"):
        run(model, x=np.ones((3, 2), np.float32), scale=SCALE, bias=BIAS, mean=MEAN, var=VARIANCE)


EIGHT = np.arange(8, dtype=np.float32).reshape(1, 8, 1)
# An operator, its opset, its attributes, its inputs, and which of them are one number.
ONE_NUMBER: dict[str, tuple[str, int, dict[str, Any], list[Any], set[int]]] = {
    "OneHot": ("OneHot", 11, {}, [np.int64([0, -1]), np.int64(4), np.float32([0, 1])], {1}),
    "CumSum": ("CumSum", 14, {}, [FOUR, np.int64(1)], {1}),
    "HannWindow": ("HannWindow", 17, {}, [np.int64(5)], {0}),
    "DFT": ("DFT", 20, {}, [EIGHT, np.int64(6), np.int64(1)], {1, 2}),
    "DFT-17": ("DFT", 17, {"axis": 1}, [EIGHT, np.int64(6)], {1}),
    "STFT": ("STFT", 17, {}, [EIGHT, np.int64(2), None, np.int64(4)], {1, 3}),
    "NonMaxSuppression": (
        "NonMaxSuppression",
        11,
        {},
        [
            np.float32([[[0, 0, 1, 1], [0, 0, 2, 1], [2, 2, 3, 3]]]),
            np.float32([[[0.9, 0.8, 0.7]]]),
            np.int64(2),
            np.float32(0.5),
            np.float32(0.1),
        ],
        {2, 3, 4},
    ),
    "TopK": ("TopK", 11, {}, [FOUR, np.int64([2])], set()),
}


@pytest.mark.parametrize("case", ONE_NUMBER.values(), ids=ONE_NUMBER)
def test_a_number_may_be_a_list_of_one(case: tuple[str, int, dict[str, Any], list[Any], set[int]]) -> None:
    op_type, opset, attributes, inputs, numbers = case
    names = ["" if held is None else f"i{place}" for place, held in enumerate(inputs)]
    results = []
    for shape in ((), (1,)):
        held = [np.reshape(each, shape) if place in numbers else each for place, each in enumerate(inputs)]
        types = [value(name, np.shape(each)) for name, each in zip(names, held, strict=True) if name]
        outputs = ["y", "z"] if op_type == "TopK" else ["y"]
        model = model_of([node(op_type, names, outputs, **attributes)], types, outputs, opset=opset)
        results.append(run(model, **{name: each for name, each in zip(names, held, strict=True) if name})[0])
    assert np.array_equal(*results)
    assert results[0].size
