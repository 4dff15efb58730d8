"""Faults that users meet in other tools, each a test that splitgraph does not share it; numbers name the reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import splitgraph
from splitgraph.splits.variadic_split_1 import variadic_function

from .matrix_checks import differences, execute

FLOAT = TensorProto.FLOAT
Shape = Sequence["int | str | None"]


def value(name: str, shape: Shape | None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def lengths(name: str, values: Any, dtype: type = np.int64) -> TensorProto:
    return numpy_helper.from_array(np.array(values, dtype), name)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str],
    initializers: Sequence[TensorProto] = (),
    *,
    opset: int = 18,
    rank: int = 1,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    declared = [value(name, [None] * rank) for name in outputs]
    graph = helper.make_graph(list(nodes), "fault", list(inputs), declared, list(initializers))
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(function.domain, 1) for function in functions)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=8)


def split(inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Split", list(inputs), list(outputs), name="split", **attributes)


def shapes(model: onnx.ModelProto, *names: str) -> list[list[str]]:
    """The inferred shapes, as text; fails for a model with an error."""
    analysis = splitgraph.infer(model)
    assert analysis.ok, analysis.diagnostics
    return [[str(dim) for dim in analysis.types[name].shape or ()] for name in names]


def codes(model: onnx.ModelProto) -> list[str]:
    return [found.code for found in splitgraph.infer(model).diagnostics]


def data(*shape: int) -> dict[str, np.ndarray]:
    return {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}


def assert_same(before: onnx.ModelProto, after: onnx.ModelProto, *feeds: dict[str, np.ndarray]) -> None:
    onnx.checker.check_model(after)
    assert not list(differences(execute(before, feeds), execute(after, feeds)))


def written_lengths(model: onnx.ModelProto) -> list[int]:
    """The constant lengths of the only Split of a model."""
    (node,) = (node for node in model.graph.node if node.op_type == "Split")
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return [int(length) for length in held[node.input[1]]]


# onnx: inference and checker -----------------------------------------------------------------------------------------


def test_onnx_aborts_on_fewer_num_outputs_than_outputs() -> None:
    model = model_of([split(["x"], "abcd", num_outputs=2)], [value("x", [8])], "abcd")
    assert codes(model) == ["SG209"]
    for rewrite in (splitgraph.downgrade, splitgraph.upgrade):
        with pytest.raises(splitgraph.ConversionError):
            rewrite(model, 13 if rewrite is splitgraph.downgrade else 21)


@pytest.mark.parametrize("count", [200_000_000, 2**40, 2**63 - 1])
def test_onnx_takes_gigabytes_for_a_huge_num_outputs(count: int) -> None:
    assert codes(model_of([split(["x"], "ab", num_outputs=count)], [value("x", [8])], "ab")) == ["SG209"]
    assert codes(model_of([split(["x"], "ab", num_outputs=count)], [value("x", ["N"])], "ab")) == ["SG209"]


def test_onnx_loses_the_rank_behind_a_node_that_gives_the_lengths() -> None:
    constants = [lengths("one", [1]), lengths("three", [3])]
    joined = helper.make_node("Concat", ["one", "three"], ["lengths"], axis=0)
    copied = helper.make_node("Identity", ["lengths"], ["copied"])
    nodes = [joined, copied, split(["x", "copied"], "ab", axis=1)]
    assert shapes(model_of(nodes, [value("x", ["N", 4])], "ab", constants, rank=2), "a", "b") == [
        ["N", "1"],
        ["N", "3"],
    ]


def test_onnx_gives_unknown_dims_for_constant_lengths_of_a_symbolic_batch() -> None:
    model = model_of(
        [split(["x", "lengths"], "ab")], [value("x", ["N", 4])], "ab", [lengths("lengths", [2, 4])], rank=2
    )
    assert shapes(model, "a", "b") == [["2", "4"], ["4", "4"]]
    assert [report.obligations for report in splitgraph.infer(model).splits] == [("N == 6",)]


@pytest.mark.parametrize(("dim", "count"), [(5, 4), (3, 5), (1, 3), (1172, 60)])
def test_onnx_infers_a_negative_dimension_for_chunks_that_overrun(dim: int, count: int) -> None:
    names = [f"part{index}" for index in range(count)]
    model = model_of([split(["x"], names, num_outputs=count)], [value("x", [dim])], names)
    analysis = splitgraph.infer(model)
    assert [(found.code, found.severity) for found in analysis.diagnostics] == [("SG203", "warning")]
    found = [analysis.types[name].shape for name in names]
    assert found == [output.shape for output in execute(model, [data(dim)])[0].values()]
    assert [d.code for d in splitgraph.infer(model, empty_chunks="error").diagnostics if d.severity == "error"] == [
        "SG203"
    ]


@pytest.mark.parametrize("dim", [2**31, 2**32 + 4, 2**62])
def test_onnx_truncates_dimensions_to_32_bits(dim: int) -> None:
    model = model_of([split(["x"], "ab", num_outputs=2)], [value("x", [dim])], "ab")
    assert shapes(model, "a", "b") == [[str(dim // 2)], [str(dim // 2)]]
    lowered = splitgraph.downgrade(model, 11).model
    assert shapes(lowered, "a", "b") == [[str(dim // 2)], [str(dim // 2)]]


# onnx: version converter ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "target"), [(1, 2), (18, 17), (11, 10)])
def test_onnx_converter_lacks_an_adapter(source: int, target: int) -> None:
    attributes = {"num_outputs": 2} if source == 18 else {"split": [2, 4]}
    model = model_of([split(["x"], "ab", axis=0, **attributes)], [value("x", [6])], "ab", opset=source)
    rewrite = splitgraph.upgrade if target > source else splitgraph.downgrade
    assert_same(model, rewrite(model, target).model, data(6))


def test_onnx_converter_makes_an_invalid_node_of_an_omitted_lengths_input() -> None:
    model = model_of([split(["x", ""], "ab")], [value("x", [6])], "ab", opset=13)
    converted = splitgraph.upgrade(model, 18).model
    (node,) = converted.graph.node
    assert list(node.input) == ["x"] and [attribute.name for attribute in node.attribute] == ["num_outputs"]
    assert_same(model, converted, data(6))


def test_onnx_converter_deletes_the_input_of_an_overridable_initializer() -> None:
    inputs = [value("x", [6]), value("lengths", [2], TensorProto.INT64)]
    model = model_of([split(["x", "lengths"], "ab")], inputs, "ab", [lengths("lengths", [2, 4])], opset=13)
    converted = splitgraph.downgrade(model, 12).model
    assert [given.name for given in converted.graph.input] == ["x", "lengths"]
    assert [held.name for held in converted.graph.initializer][:1] == ["lengths"]
    assert_same(model, converted, data(6), {**data(6), "lengths": np.array([5, 1])})


def test_onnx_converter_drops_model_local_functions() -> None:
    function = helper.make_function(
        "local", "Cut", ["v"], ["p", "q"], [split(["v"], "pq")], [helper.make_opsetid("", 13)]
    )
    call = helper.make_node("Cut", ["x"], ["a", "b"], domain="local")
    model = model_of([call], [value("x", [6])], "ab", opset=13, functions=[function])
    converted = splitgraph.upgrade(model, 18).model
    assert [made.name for made in converted.functions] == ["Cut"]
    assert converted.functions[0].opset_import[0].version == 18
    assert_same(model, converted, data(6))


def test_onnx_converter_raises_beyond_2_gib() -> None:
    """Tensors in other files are neither read nor touched, however large."""
    huge = TensorProto(name="huge", data_type=FLOAT, dims=[2**20, 2**12], data_location=TensorProto.EXTERNAL)
    huge.external_data.add(key="location", value="weights.bin")
    nodes = [split(["x"], "ab"), helper.make_node("MatMul", ["a", "huge"], ["y"])]
    model = model_of(nodes, [value("x", [2, 2**20])], ["y", "b"], [huge], opset=13, rank=2)
    converted = splitgraph.upgrade(model, 18).model
    assert converted.graph.initializer[0] == huge
    assert shapes(converted, "y") == [["1", "4096"]]


# Exporters -----------------------------------------------------------------------------------------------------------


def test_onnx_5222_and_paddle2onnx_1273_write_neither_split_nor_num_outputs() -> None:
    model = model_of([split(["x"], "abc", axis=1)], [value("x", ["N", 7])], "abc", rank=2)
    (found,) = splitgraph.infer(model).diagnostics
    assert (found.code, found.severity, found.location) == ("SG207", "error", "main/split")
    meant = model_of([split(["x"], "abc", axis=1, num_outputs=3)], [value("x", ["N", 7])], "abc", rank=2)
    for rewrite in (splitgraph.upgrade(model, 18), splitgraph.downgrade(model, 11), splitgraph.convert(model, "split")):
        assert [found.code for found in rewrite.diagnostics] == ["SG401"]
        assert_same(meant, rewrite.model, data(2, 7), data(3, 7))


# onnxruntime: symbolic_shape_infer -----------------------------------------------------------------------------------


def test_onnxruntime_14200_makes_uneven_parts_equal() -> None:
    model = model_of([split(["x"], "abc", num_outputs=3)], [value("x", [7])], "abc")
    assert shapes(model, "a", "b", "c") == [["3"], ["3"], ["1"]]
    model = model_of([split(["x"], "ab", num_outputs=2)], [value("x", ["N"])], "ab")
    assert shapes(model, "a", "b") == [["(N + 1)//2"], ["N//2"]]


def test_onnxruntime_crashes_on_symbolic_lengths() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["dim"]),
        helper.make_node("Sub", ["dim", "two"], ["first"]),
        helper.make_node("Concat", ["first", "two"], ["lengths"], axis=0),
        split(["x", "lengths"], "ab"),
    ]
    assert shapes(model_of(nodes, [value("x", ["N"])], "ab", [lengths("two", [2])]), "a", "b") == [["N - 2"], ["2"]]


def test_onnxruntime_crashes_on_an_unknown_rank() -> None:
    nodes = [helper.make_node("Squeeze", ["x"], ["v"]), split(["v"], "ab", axis=-1, num_outputs=2)]
    model = model_of(nodes, [value("x", ["A", "B", "C"])], "ab", rank=2)
    assert splitgraph.infer(model).ok
    assert_same(model, splitgraph.downgrade(model, 11).model, data(1, 3, 5), data(4, 1, 6))


def test_onnxruntime_crashes_on_omitted_outputs() -> None:
    model = model_of(
        [split(["x", "lengths"], ["a", "", "c"])], [value("x", [6])], "ac", [lengths("lengths", [1, 2, 3])]
    )
    assert shapes(model, "a", "c") == [["1"], ["3"]]
    for target in (2, 11, 13):
        converted = splitgraph.downgrade(model, target).model
        assert list(converted.graph.node[0].output) == ["a", "split_part1", "c"]
        assert_same(model, converted, data(6))


def test_onnxruntime_crashes_on_every_split_to_sequence() -> None:
    nodes = [
        helper.make_node("SplitToSequence", ["x", "size"], ["q"], axis=1),
        helper.make_node("SequenceAt", ["q", "last"], ["a"]),
        helper.make_node("ConcatFromSequence", ["q"], ["b"], axis=1),
    ]
    constants = [lengths("size", 3), lengths("last", -1)]
    assert shapes(model_of(nodes, [value("x", ["N", 7])], "ab", constants, rank=2), "a", "b") == [
        ["N", "1"],
        ["N", "7"],
    ]


# OpenVINO: what its frontend cannot read, it can after explicit lengths are written ----------------------------------


@pytest.mark.parametrize(
    ("dim", "count", "expected"),
    [(7, 3, [3, 3, 1]), (5, 4, [2, 2, 1, 0]), (1172, 60, [20] * 58 + [12, 0])],
    ids=["negative axis", "5 in 4", "openvino#14718"],
)
def test_openvino_14718_fails_on_uneven_num_outputs(dim: int, count: int, expected: list[int]) -> None:
    names = [f"part{index}" for index in range(count)]
    model = model_of([split(["x"], names, axis=-1, num_outputs=count)], [value("x", [2, dim])], names, rank=2)
    converted = splitgraph.convert(model, "split", explicit_lengths=True).model
    assert written_lengths(converted) == expected
    assert_same(model, converted, data(2, dim))


def test_openvino_fails_on_a_dynamic_dimension_that_turns_out_uneven() -> None:
    model = model_of([split(["x"], "ab", axis=-1, num_outputs=2)], [value("x", [2, "N"])], "ab", rank=2)
    converted = splitgraph.convert(model, "split", explicit_lengths=True).model
    assert [len(node.input) for node in converted.graph.node if node.op_type == "Split"] == [2]
    assert_same(model, converted, data(2, 4), data(2, 5), data(2, 1))


def test_openvino_fails_on_a_lengths_input_of_unknown_length() -> None:
    inputs = [value("x", ["N"]), value("lengths", ["k"], TensorProto.INT64)]
    model = model_of([split(["x", "lengths"], "ab")], inputs, "ab")
    analysis = splitgraph.infer(model)
    assert analysis.ok
    assert "k == 2" in analysis.splits[0].obligations
    feeds = {**data(5), "lengths": np.array([1, 4])}
    assert_same(model, splitgraph.downgrade(model, 11).model, feeds)


def test_openvino_fails_on_every_model_with_local_functions() -> None:
    node = split(["v"], "pq", num_outputs=2)
    function = helper.make_function("local", "Cut", ["v"], ["p", "q"], [node], [helper.make_opsetid("", 18)])
    model = model_of(
        [helper.make_node("Cut", ["x"], ["a", "b"], domain="local")], [value("x", ["N"])], "ab", functions=[function]
    )
    assert shapes(model, "a", "b") == [["(N + 1)//2"], ["N//2"]]


def test_openvino_ignores_the_lengths_input_of_split_1() -> None:
    constants = [lengths("lengths", [1, 5], np.float32)]
    model = model_of([split(["x", "lengths"], "ab", axis=0)], [value("x", [6])], "ab", constants, opset=1)
    assert shapes(model, "a", "b") == [["1"], ["5"]]
    for target in (2, 11, 18):
        assert_same(model, splitgraph.upgrade(model, target).model, data(6))


def test_openvino_reads_out_of_bounds_where_the_rest_is_negative() -> None:
    function = variadic_function(3, 18)
    call = helper.make_node(function.name, ["x", "axis", "lengths"], "abc", name="split", domain=function.domain)
    constants = [lengths("axis", 0), lengths("lengths", [5, 3, -1])]
    model = model_of([call], [value("x", [6])], "abc", constants, functions=[function])
    assert codes(model) == ["SG204"]
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.convert(model, "split")


def test_openvino_gives_wrong_shapes_for_string_splits() -> None:
    texts = numpy_helper.from_array(np.array([b"a b", b" c  d e "], object), "texts")
    node = helper.make_node("StringSplit", ["texts"], ["parts", "counts"])
    outputs = [value("parts", [None, None], TensorProto.STRING), value("counts", [None], TensorProto.INT64)]
    graph = helper.make_graph([node], "strings", [], outputs, [texts])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    assert shapes(model, "parts", "counts") == [["2", "3"], ["2"]]


# Other runtimes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [11, 13, 18])
def test_tvm_18751_migraphx_2254_and_burn_469_know_neither_uneven_chunks_nor_sequences(target: int) -> None:
    nodes = [
        split(["x"], "ab", axis=1, num_outputs=2),
        helper.make_node("SplitToSequence", ["x", "size"], ["q"], axis=1),
        helper.make_node("SequenceAt", ["q", "one"], ["c"]),
    ]
    constants = [lengths("size", 3), lengths("one", 1)]
    model = model_of(nodes, [value("x", ["N", 7])], "abc", constants, rank=2)
    plain = splitgraph.convert(model, "split", explicit_lengths=True).model
    lowered = splitgraph.downgrade(plain, target).model
    assert {node.op_type for node in lowered.graph.node} <= {"Split", "Identity"}
    for node in lowered.graph.node:
        assert "num_outputs" not in [attribute.name for attribute in node.attribute]
    assert_same(model, lowered, data(2, 7), data(3, 7))
