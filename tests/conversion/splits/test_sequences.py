"""SplitToSequence as plain Split: what is kept and why, then what is converted, by execution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from known_opsets import known, known_pairs
from onnx import NodeProto, TensorProto, helper, numpy_helper

import splitgraph
from splitgraph.verification.reference.evaluator import load, run

FLOAT = TensorProto.FLOAT
Shape = Sequence["int | str | None"]


def value(name: str, shape: Shape | None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def held(name: str, array: Any, dtype: type = np.int64) -> TensorProto:
    return numpy_helper.from_array(np.array(array, dtype=dtype), name)


def split(*, lengths: bool = True, **attributes: int) -> NodeProto:
    return helper.make_node(
        "SplitToSequence", ["x", "lengths"] if lengths else ["x"], ["q"], name="split", **attributes
    )


def at(position: str, output: str) -> NodeProto:
    return helper.make_node("SequenceAt", ["q", position], [output], name=f"{output}_at")


def model_of(
    nodes: Sequence[NodeProto], outputs: Sequence[onnx.ValueInfoProto], initializers: Sequence[TensorProto] = (),
    inputs: Sequence[onnx.ValueInfoProto] = (), *, opset: int = 18, shape: Shape = (7, 3),
) -> onnx.ModelProto:  # fmt: skip
    graph = helper.make_graph(list(nodes), "sequences", [value("x", shape), *inputs], list(outputs), list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def assert_same(before: onnx.ModelProto, after: onnx.ModelProto, *feeds: dict[str, np.ndarray]) -> None:
    onnx.checker.check_model(after, full_check=True)
    for given in feeds:
        for want, have in zip(run(load(before), given), run(load(after), given), strict=True):
            assert want.dtype == have.dtype
            np.testing.assert_array_equal(want, have)


def x(*shape: int) -> dict[str, np.ndarray]:
    return {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}


# Kept ----------------------------------------------------------------------------------------------------------------

SIZE_3 = held("lengths", 3)
FIRST = held("first", 0)
SEQUENCE_OUTPUT = helper.make_tensor_sequence_value_info("q", FLOAT, None)

LENGTH = value("n", [], TensorProto.INT64)
LENGTH_OF_R = helper.make_node("SequenceLength", ["r"], ["n"])

KEPT = {
    "the sequence is an output": model_of(
        [split(), at("first", "y")], [value("y", [None, 3]), SEQUENCE_OUTPUT], [SIZE_3, FIRST]
    ),
    "a position known at run time": model_of(
        [split(), at("i", "y")], [value("y", [None, 3])], [SIZE_3], [value("i", [], TensorProto.INT64)]
    ),
    "another operator reads it": model_of(
        [split(), helper.make_node("SequenceInsert", ["q", "x"], ["r"]), LENGTH_OF_R], [LENGTH], [SIZE_3]
    ),
    "a number of parts known at run time": model_of(
        [split(), at("first", "y")], [value("y", [None, 3])], [SIZE_3, FIRST], shape=("N", 3)
    ),
    "a size known at run time": model_of(
        [split(), at("first", "y")], [value("y", [None, 3])], [FIRST], [value("lengths", [], TensorProto.INT64)]
    ),
    "keepdims=0 beside a chunk size": model_of(
        [split(keepdims=0), at("first", "y")], [value("y", [1, 3])], [held("lengths", 1), FIRST]
    ),
    "no parts at all": model_of(
        [split(lengths=False), helper.make_node("SequenceLength", ["q"], ["n"])], [LENGTH], shape=(0, 3)
    ),
    "a reader in a branch reads at run time": model_of(
        [
            split(),
            helper.make_node(
                "If", ["c"], ["y"],
                then_branch=helper.make_graph([at("i", "t")], "then", [], [value("t", None)]),
                else_branch=helper.make_graph([at("first", "e")], "else", [], [value("e", None)]),
            ),
        ],
        [value("y", [None, 3])], [SIZE_3, FIRST], [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", KEPT)
def test_kept_with_a_reason(why: str) -> None:
    rewrite = splitgraph.convert(KEPT[why], "split")
    assert rewrite.model == KEPT[why]
    assert rewrite.changes == ()
    (note,) = rewrite.diagnostics
    assert (note.code, note.severity, note.location) == ("SG408", "info", "main/split")


def test_an_element_type_that_an_older_version_does_not_take_is_refused() -> None:
    outputs = [helper.make_tensor_sequence_value_info("q", TensorProto.BFLOAT16, ["N", 1])]
    graph = helper.make_graph([split(lengths=False)], "g", [value("x", ["N", 4], TensorProto.BFLOAT16)], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
    with pytest.raises(splitgraph.ConversionError, match="SplitToSequence-11 does not take bfloat16"):
        splitgraph.downgrade(model, 23)


def test_a_position_out_of_range_is_refused() -> None:
    model = model_of([split(), at("far", "y")], [value("y", [None, 3])], [SIZE_3, held("far", 3)])
    before = model.SerializeToString()
    analysis = splitgraph.infer(model)
    if analysis.ok:
        assert splitgraph.convert(model, "split").model == model
    else:
        with pytest.raises(splitgraph.ConversionError):
            splitgraph.convert(model, "split")
    assert model.SerializeToString() == before


def test_joining_without_an_axis_is_refused() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 13]> g (float[4, 6] x) => (float[4, 6] y) {
      q = SplitToSequence <axis = 1> (x)  y = ConcatFromSequence (q)
    }""")
    with pytest.raises(splitgraph.ConversionError) as raised:
        splitgraph.convert(model, "split")
    assert [found.code for found in raised.value.diagnostics] == ["SG212"]


def test_a_function_with_a_sequence_output_keeps_it() -> None:
    function = helper.make_function("local", "Cut", ["x"], ["q"], [split(lengths=False)], [helper.make_opsetid("", 18)])
    nodes = [helper.make_node("Cut", ["x"], ["r"], domain="local"), LENGTH_OF_R]
    graph = helper.make_graph(nodes, "calls", [value("x", [4])], [LENGTH])
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    model = helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=8)
    assert splitgraph.convert(model, "split").model == model


# Converted -----------------------------------------------------------------------------------------------------------

LENGTHS: dict[str, tuple[dict[str, Any], list[TensorProto], int]] = {
    "size of chunks, even": ({}, [held("lengths", 2)], 3),
    "size of chunks, uneven": ({}, [held("lengths", 4)], 2),
    "size of chunks, int32": ({}, [held("lengths", 4, np.int32)], 2),
    "size of one chunk": ({}, [held("lengths", 9)], 1),
    "lengths": ({}, [held("lengths", [1, 3, 2])], 3),
    "lengths, int32": ({}, [held("lengths", [1, 3, 2], np.int32)], 3),
    "lengths with an empty one": ({}, [held("lengths", [4, 0, 2])], 3),
    "lengths, keepdims ignored": ({"keepdims": 0}, [held("lengths", [1, 3, 2])], 3),
    "each": ({"lengths": False}, [], 6),
    "each, without the axis": ({"lengths": False, "keepdims": 0}, [], 6),
}
OPSETS = known([11, 12, 13, 17, 18, 24, 28])


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_positions_length_and_concatenation(lengths: str, opset: int, axis: int) -> None:
    attributes, initializers, count = LENGTHS[lengths]
    squeezed = attributes.get("keepdims") == 0 and not attributes.get("lengths", True)
    shape = (6, 2) if axis == 0 else (2, 6)
    rank = 1 if squeezed else 2
    nodes = [
        split(axis=axis, **attributes),
        at("first", "a"),
        at("last", "b"),
        helper.make_node("SequenceLength", ["q"], ["n"], name="length"),
        helper.make_node("ConcatFromSequence", ["q"], ["c"], name="joined", axis=axis, new_axis=int(squeezed)),
    ]
    outputs = [
        value("a", [None] * rank),
        value("b", [None] * rank),
        value("n", [], TensorProto.INT64),
        value("c", shape),
    ]
    constants = [*initializers, held("first", 0), held("last", -1)]
    model = model_of(nodes, outputs, constants, opset=opset, shape=shape)
    rewrite = splitgraph.convert(model, "split")
    assert_same(model, rewrite.model, x(*shape))
    assert "Sequence" not in " ".join(operators(rewrite.model))
    assert len(next(node for node in rewrite.model.graph.node if node.op_type == "Split").output) == count
    assert {"first", "last"}.isdisjoint(tensor.name for tensor in rewrite.model.graph.initializer)
    assert [change.location for change in rewrite.changes] == [f"main/{node.name}" for node in nodes]
    assert splitgraph.convert(rewrite.model, "split").model == rewrite.model


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_parts_of_one_length_are_stacked(axis: int) -> None:
    nodes = [split(), helper.make_node("ConcatFromSequence", ["q"], ["c"], axis=axis, new_axis=1)]
    model = model_of(nodes, [value("c", [None] * 3)], [held("lengths", 2)], shape=(6, 4))
    assert_same(model, splitgraph.convert(model, "split").model, x(6, 4))


@pytest.mark.parametrize("opset", known([11, 13, 18, 28]))
def test_lengths_known_at_run_time(opset: int) -> None:
    """Their number is known, which is all that separate outputs need."""
    for dtype in (TensorProto.INT32, TensorProto.INT64):
        nodes = [split(), at("first", "a"), helper.make_node("ConcatFromSequence", ["q"], ["c"], axis=0)]
        inputs = [value("lengths", [3], dtype)]
        model = model_of(
            nodes, [value("a", [None, 3]), value("c", [None, 3])], [FIRST], inputs, opset=opset, shape=("N", 3)
        )
        array = helper.tensor_dtype_to_np_dtype(dtype)
        feeds = [{**x(6, 3), "lengths": np.array([1, 3, 2], array)}, {**x(5, 3), "lengths": np.array([2, 0, 3], array)}]
        converted = splitgraph.convert(model, "split").model
        assert not any("Sequence" in name for name in operators(converted))
        assert_same(model, converted, *feeds)


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_a_symbolic_size(opset: int) -> None:
    """The number of chunks is known though their size is not: a third of the dimension."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["dim"]),
        helper.make_node("Div", ["dim", "three"], ["lengths"]),
        split(),
        at("first", "a"),
        at("last", "b"),
    ]
    outputs = [value("a", [None, 3]), value("b", [None, 3])]
    constants = [FIRST, held("last", -1), held("three", 3)]
    model = model_of(nodes, outputs, constants, opset=opset, shape=("3*N", 3))
    converted = splitgraph.convert(model, "split").model
    assert operators(converted) == ["Split", "Identity", "Identity"]
    assert_same(model, converted, x(6, 3), x(15, 3))


def test_readers_in_branches() -> None:
    then = helper.make_graph([at("first", "t")], "then", [], [value("t", None)], [held("first", 0)])
    other = helper.make_graph([at("last", "e")], "else", [], [value("e", None)], [held("last", -2)])
    nodes = [
        split(),
        helper.make_node("If", ["c"], ["y"], name="if", then_branch=then, else_branch=other),
        helper.make_node("SequenceLength", ["q"], ["n"]),
    ]
    outputs = [value("y", [None, 3]), value("n", [], TensorProto.INT64)]
    model = model_of(nodes, outputs, [SIZE_3], [value("c", [], TensorProto.BOOL)])
    converted = splitgraph.convert(model, "split").model
    assert_same(model, converted, {**x(7, 3), "c": np.array(True)}, {**x(7, 3), "c": np.array(False)})
    branches = [attribute.g for attribute in converted.graph.node[1].attribute]
    assert [[node.op_type for node in branch.node] for branch in branches] == [["Identity"], ["Identity"]]
    assert not any(branch.initializer for branch in branches)


def test_a_sequence_within_a_function() -> None:
    body = [
        split(lengths=False, keepdims=0),
        helper.make_node("Constant", [], ["one"], value_int=1),
        at("one", "y"),
    ]
    function = helper.make_function("local", "Pick", ["x"], ["y"], body, [helper.make_opsetid("", 18)])
    graph = helper.make_graph(
        [helper.make_node("Pick", ["x"], ["y"], domain="local")], "g", [value("x", [4, 3])], [value("y", [None])]
    )
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    model = helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=8)
    converted = splitgraph.convert(model, "split").model
    assert "SplitToSequence" not in [node.op_type for node in converted.functions[0].node]
    assert_same(model, converted, x(4, 3))


def test_documentation_and_metadata_stay() -> None:
    model = model_of([split(), at("first", "y")], [value("y", [None, 3])], [SIZE_3, FIRST])
    for node in model.graph.node:
        node.doc_string = f"about {node.name}"
        node.metadata_props.add(key="origin", value=node.name)
    model.graph.value_info.append(SEQUENCE_OUTPUT)
    converted = splitgraph.convert(model, "split").model
    named = {node.name: node for node in converted.graph.node}
    for node in model.graph.node:
        assert named[node.name].doc_string == node.doc_string
        assert list(named[node.name].metadata_props) == list(node.metadata_props)
    assert "q" not in [entry.name for entry in converted.graph.value_info]


def test_explicit_lengths_of_equal_chunks() -> None:
    model = model_of([split(), at("first", "y")], [value("y", [None, 3])], [held("lengths", 2), FIRST], shape=(6, 3))
    (plain,) = (n for n in splitgraph.convert(model, "split").model.graph.node if n.op_type == "Split")
    assert [(attribute.name, attribute.i) for attribute in plain.attribute] == [("axis", 0), ("num_outputs", 3)]
    converted = splitgraph.convert(model, "split", explicit_lengths=True).model
    (explicit,) = (n for n in converted.graph.node if n.op_type == "Split")
    assert len(explicit.input) == 2
    assert_same(model, converted, x(6, 3))


@pytest.mark.parametrize(("opset", "target"), known_pairs([(11, 28), (24, 11), (23, 24), (28, 18)]))
def test_sequences_go_to_any_opset_that_has_them(opset: int, target: int) -> None:
    model = model_of([split(), at("first", "y")], [value("y", [None, 3])], [SIZE_3, FIRST], opset=opset)
    verb = splitgraph.upgrade if target > opset else splitgraph.downgrade
    assert_same(model, verb(model, target).model, x(7, 3))


@pytest.mark.parametrize("lengths", [1, 2])
def test_runtimes_disagree_on_keepdims_beside_a_chunk_size(lengths: int) -> None:
    """As PyTorch's scripted unbind is exported: onnxruntime drops the axis, which the specification says it keeps."""
    model = model_of([split(keepdims=0), at("first", "y")], [value("y", [None, 3])], [held("lengths", lengths), FIRST])
    analysis = splitgraph.infer(model)
    assert [(found.code, found.severity) for found in analysis.diagnostics] == [("SG219", "warning")]
    assert analysis.types["y"].shape == (lengths, 3)


@pytest.mark.parametrize("attributes", [{}, {"keepdims": 1}])
def test_runtimes_agree_without_it(attributes: dict[str, Any]) -> None:
    model = model_of([split(**attributes), at("first", "y")], [value("y", [None, 3])], [held("lengths", 1), FIRST])
    assert splitgraph.infer(model).diagnostics == ()


@pytest.mark.parametrize("target", [10, 9, 5])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_below_11_there_are_no_sequences(lengths: str, target: int) -> None:
    attributes, initializers, count = LENGTHS[lengths]
    squeezed = attributes.get("keepdims") == 0 and not attributes.get("lengths", True)
    nodes = [split(axis=0, **attributes), at("first", "a"), helper.make_node("SequenceLength", ["q"], ["n"])]
    outputs = [value("a", [None] * (1 if squeezed else 2)), value("n", [], TensorProto.INT64)]
    model = model_of(nodes, outputs, [*initializers, held("first", 0)], shape=(6, 2))
    rewrite = splitgraph.downgrade(model, target)
    assert [change.before for change in rewrite.changes][:3] == [
        "SplitToSequence-11",
        "SequenceAt-11",
        "SequenceLength-11",
    ]
    # The plain split is no node of the model's author: that it is written in yet another form is no change of its own.
    assert len({change.location for change in rewrite.changes}) == len(rewrite.changes)
    onnx.checker.check_model(rewrite.model)
    ran = run(load(rewrite.model), x(6, 2))
    wanted = run(load(model), x(6, 2))
    for have, want in zip(ran, wanted, strict=True):
        np.testing.assert_array_equal(have, want)
    assert int(ran[1]) == count


def test_changes_of_nodes_that_share_a_name_are_all_told() -> None:
    attributes, initializers, _ = LENGTHS["lengths"]
    nodes = [split(axis=0, **attributes), at("first", "a"), helper.make_node("Gemm", ["x", "w"], ["g"], name="split")]
    outputs = [value("a", [None, None]), value("g", [6, 2])]
    held_by_name = [*initializers, held("first", 0), numpy_helper.from_array(np.ones((2, 2), np.float32), "w")]
    rewrite = splitgraph.downgrade(model_of(nodes, outputs, held_by_name, shape=(6, 2)), 10)
    assert {"SplitToSequence-11", "Gemm-13"} <= {change.before for change in rewrite.changes}


def test_below_11_a_sequence_that_stays_one_is_refused() -> None:
    with pytest.raises(splitgraph.ConversionError) as raised:
        splitgraph.downgrade(KEPT["a number of parts known at run time"], 10)
    first = raised.value.diagnostics[0]
    help = "Stop at opset 11. 'convert --to split' says why it cannot be a plain split."
    assert (first.code, first.help) == ("SG404", help)
