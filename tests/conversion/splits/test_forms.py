"""VariadicSplit in ONNX files by hand: what is kept or refused, then what other writers' calls become; repairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from known_opsets import known
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import splitgraph
from splitgraph.splits.variadic_split_1 import variadic_function
from splitgraph.verification.reference.evaluator import load, run

DOMAIN = "org.splitgraph"
FLOAT = TensorProto.FLOAT


def value(name: str, shape: Sequence[int | str | None] | None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def imports(model: onnx.ModelProto) -> dict[str, int]:
    return {entry.domain: entry.version for entry in model.opset_import}


def calling(
    axis: Any,
    lengths: Any,
    shape: Sequence[int | str | None],
    *,
    parts: int = 2,
    opset: int = 18,
    axis_type: type = np.int64,
    lengths_type: type = np.int64,
) -> onnx.ModelProto:
    """A call of VariadicSplit_<parts>; None for an axis or lengths that are graph inputs."""
    inputs, initializers = [value("x", shape)], []
    for name, given, dtype, declared in (("axis", axis, axis_type, []), ("lengths", lengths, lengths_type, [parts])):
        if given is None:
            inputs.append(value(name, declared, helper.np_dtype_to_tensor_dtype(np.dtype(dtype))))
        else:
            initializers.append(numpy_helper.from_array(np.array(given, dtype), name))
    names = [f"out{index}" for index in range(parts)]
    call = helper.make_node(f"VariadicSplit_{parts}", ["x", "axis", "lengths"], names, name="split", domain=DOMAIN)
    outputs = [value(name, [None] * len(shape)) for name in names]
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(
        helper.make_graph([call], "calls", inputs, outputs, initializers), opset_imports=imports, ir_version=8
    )
    model.functions.append(variadic_function(parts, opset))
    onnx.checker.check_model(model, full_check=True)
    return model


def split_model(
    shape: Sequence[int | str | None],
    *,
    parts: int = 2,
    opset: int = 18,
    inputs: Sequence[str] = ("x",),
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one Split."""
    names = [f"out{index}" for index in range(parts)]
    node = helper.make_node("Split", list(inputs), names, name="split", **attributes)
    outputs = [value(name, [None] * len(shape)) for name in names]
    graph = helper.make_graph([node], "splits", [value("x", shape)], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def data(*shape: int) -> dict[str, np.ndarray]:
    return {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}


def assert_same(before: onnx.ModelProto, after: onnx.ModelProto, *feeds: dict[str, np.ndarray]) -> None:
    onnx.checker.check_model(after, full_check=True)
    for given in feeds:
        for want, have in zip(run(load(before), given), run(load(after), given), strict=True):
            np.testing.assert_array_equal(want, have)


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


# Refused and kept ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["Split", "variadic_split", "", "split-18"])
def test_an_unknown_target_is_refused(to: str) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="split"):
        splitgraph.convert(split_model((4,), num_outputs=2), to)  # type: ignore[arg-type]


@pytest.mark.parametrize("opset", [1, 2, 10])
def test_no_function_below_opset_11(opset: int) -> None:
    with pytest.raises(splitgraph.ConversionError) as raised:
        splitgraph.convert(split_model((4,), opset=opset, axis=0), "variadic-split")
    (found,) = raised.value.diagnostics
    assert (found.code, found.location) == ("SG408", "main/split")


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [({"axis": 3, "num_outputs": 2}, (4, 3)), ({"num_outputs": 3}, (4, 3)), ({"axis": -3, "num_outputs": 2}, (4, 3))],
)
@pytest.mark.parametrize("to", ["split", "variadic-split"])
def test_an_invalid_split_is_refused(attributes: dict[str, int], shape: tuple[int, ...], to: str) -> None:
    model = split_model(shape, **attributes)
    with pytest.raises(splitgraph.ConversionError) as raised:
        splitgraph.convert(model, to)  # type: ignore[arg-type]
    assert all(found.location == "main/split" for found in raised.value.diagnostics)


def test_a_variadic_split_without_lengths_is_refused() -> None:
    model = splitgraph.convert(split_model((4, 3), num_outputs=2), "variadic-split").model
    call = next(node for node in model.graph.node if node.op_type == "VariadicSplit_2")
    del call.input[2:]
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.convert(model, "split", explicit_lengths=True)


def test_an_axis_known_at_run_time_is_kept() -> None:
    model = calling(None, [1, 3], (4, 4))
    rewrite = splitgraph.convert(model, "split")
    assert rewrite.model == model
    assert [(found.code, found.severity) for found in rewrite.diagnostics] == [("SG408", "warning")]


def test_a_function_of_that_name_that_is_not_ours_is_left_alone() -> None:
    model = calling(0, [1, 3], (4, 4))
    model.functions[0].node[0].attribute[0].t.CopyFrom(numpy_helper.from_array(np.array([-2])))
    assert splitgraph.convert(model, "split").model == model


def test_a_model_without_splits_stays_as_it_is() -> None:
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value("x", [4])], [value("y", [4])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    for to in ("split", "variadic-split"):
        assert splitgraph.convert(model, to).model == model  # type: ignore[arg-type]


def test_split_of_another_domain_is_none_of_ours() -> None:
    model = split_model((4,), num_outputs=2)
    model.graph.node[0].domain = "com.example"
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    assert splitgraph.convert(model, "variadic-split").model == model
    converted = splitgraph.downgrade(model, 13).model
    assert converted.graph.node[0] == model.graph.node[0]


# Calls that others wrote ------------------------------------------------------------------------------------------

CALLS = {
    "lengths": (0, [1, 3], {}),
    "the rest first": (0, [-1, 3], {}),
    "the rest last": (-2, [3, -1], {}),
    "an empty part": (0, [0, 4], {}),
    "an empty rest": (0, [4, -1], {}),
    "axis of shape [1]": ([0], [1, 3], {}),
    "int32": (0, [1, -1], {"axis_type": np.int32, "lengths_type": np.int32}),
    "int8 and uint8": (0, [1, 3], {"axis_type": np.int8, "lengths_type": np.uint8}),
    "lengths at run time": (0, None, {}),
    "int32 lengths at run time": ([-2], None, {"lengths_type": np.int32}),
}


@pytest.mark.parametrize("opset", known([11, 13, 18, 28]))
@pytest.mark.parametrize("dim", [4, "N"])
@pytest.mark.parametrize("call", CALLS)
def test_calls_become_plain_splits(call: str, dim: int | str, opset: int) -> None:
    axis, lengths, types = CALLS[call]
    model = calling(axis, lengths, (dim, 3), opset=opset, **types)
    converted = splitgraph.convert(model, "split").model
    assert not converted.functions
    assert [entry.domain for entry in converted.opset_import] == [""]
    feeds = [data(4, 3)]
    if dim == "N" and lengths is not None and -1 in lengths:
        feeds.append(data(6, 3))
    if lengths is None:
        dtype = types.get("lengths_type", np.int64)
        feeds = [{**data(4, 3), "lengths": np.array(given, dtype)} for given in ([1, 3], [-1, 3], [2, -1], [4, 0])]
    assert_same(model, converted, *feeds)


def test_lengths_of_static_dimensions_are_constants() -> None:
    converted = splitgraph.convert(calling(0, [-1, 3], (4, 3)), "split").model
    (node,) = converted.graph.node
    (lengths,) = (held for held in converted.graph.initializer if held.name == node.input[1])
    assert numpy_helper.to_array(lengths).tolist() == [1, 3]


def test_functions_that_are_still_called_stay() -> None:
    model = calling(None, [1, 3], (4, 4))
    second = helper.make_node("VariadicSplit_2", ["x", "zero", "lengths"], ["p", "q"], name="known", domain=DOMAIN)
    model.graph.node.append(second)
    model.graph.initializer.append(numpy_helper.from_array(np.array(0), "zero"))
    model.graph.output.extend([value("p", [None, 4]), value("q", [None, 4])])
    converted = splitgraph.convert(model, "split").model
    assert operators(converted) == ["VariadicSplit_2", "Split"]
    assert len(converted.functions) == 1
    assert_same(model, converted, {**data(4, 4), "axis": np.array(1)})


# The form that is kept ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(7,), ("N",), ("2*N",)])
def test_chunks_come_back_as_chunks(shape: tuple[int | str]) -> None:
    model = split_model(shape, num_outputs=2)
    variadic = splitgraph.convert(model, "variadic-split").model
    (node,) = splitgraph.convert(variadic, "split").model.graph.node
    assert {attribute.name for attribute in node.attribute} == {"axis", "num_outputs"}
    assert not node.metadata_props


def test_lengths_that_were_edited_since_come_back_as_lengths() -> None:
    """The note of the form is not believed where the lengths are no longer those of that form."""
    variadic = splitgraph.convert(split_model((6,), parts=3, num_outputs=3), "variadic-split").model
    call = variadic.graph.node[-1]
    (lengths,) = (held for held in variadic.graph.initializer if held.name == call.input[2])
    lengths.CopyFrom(numpy_helper.from_array(np.array([1, 3, 2]), lengths.name))
    converted = splitgraph.convert(variadic, "split").model
    assert len(converted.graph.node[0].input) == 2
    assert_same(variadic, converted, data(6))


def test_computed_lengths_that_were_edited_since_come_back_as_lengths() -> None:
    model = split_model(("N", 3), parts=3, num_outputs=3)
    variadic = splitgraph.convert(model, "variadic-split").model
    for held in variadic.graph.initializer:
        if numpy_helper.to_array(held).tolist() == [2]:
            held.CopyFrom(numpy_helper.from_array(np.array([0]), held.name))
    converted = splitgraph.convert(variadic, "split").model
    assert operators(converted)[-1] == "Split" and len(converted.graph.node[-1].input) == 2
    assert_same(variadic, converted, data(6, 3), data(9, 3))


def test_a_function_that_is_there_serves_new_calls() -> None:
    model = splitgraph.convert(split_model((8,), num_outputs=2), "variadic-split").model
    model.graph.node.append(helper.make_node("Split", ["out0"], ["p", "q"], num_outputs=2))
    model.graph.output.append(value("p", [None]))
    converted = splitgraph.convert(model, "variadic-split").model
    assert operators(converted) == ["VariadicSplit_2", "VariadicSplit_2"]
    assert [function.name for function in converted.functions] == ["VariadicSplit_2"]
    assert_same(model, converted, data(8))


def test_one_function_serves_all_calls_of_as_many_parts() -> None:
    nodes = [helper.make_node("Split", ["x"], [f"{name}0", f"{name}1"], num_outputs=2) for name in "ab"]
    nodes.append(helper.make_node("Split", ["x"], ["c0", "c1", "c2"], num_outputs=3))
    outputs = [value(name, [None]) for node in nodes for name in node.output]
    graph = helper.make_graph(nodes, "g", [value("x", [6])], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=7)
    converted = splitgraph.convert(model, "variadic-split").model
    assert sorted(function.name for function in converted.functions) == ["VariadicSplit_2", "VariadicSplit_3"]
    assert converted.ir_version == 8
    assert {entry.domain: entry.version for entry in converted.opset_import} == {"": 18, DOMAIN: 1}
    assert_same(model, converted, data(6))


def test_functions_come_before_those_that_call_them() -> None:
    """onnx's reference evaluator runs no function that calls one behind it in the list."""
    split = helper.make_node("Split", ["x"], ["out0", "out1"], num_outputs=2)
    model = split_model((5,), num_outputs=2)
    model.graph.node[0].CopyFrom(helper.make_node("Halves", ["x"], ["out0", "out1"], domain="local"))
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.append(
        helper.make_function("local", "Halves", ["x"], ["out0", "out1"], [split], [helper.make_opsetid("", 18)])
    )
    converted = splitgraph.convert(model, "variadic-split").model
    assert [function.name for function in converted.functions] == ["VariadicSplit_2", "Halves"]
    parts = ReferenceEvaluator(converted).run(None, {"x": np.arange(5, dtype=np.float32)})
    assert [part.tolist() for part in parts] == [[0, 1, 2], [3, 4]]


@pytest.mark.parametrize("local", [False, True], ids=["main", "function"])
def test_the_imports_before_and_after_are_the_models_own(local: bool) -> None:
    model = split_model((5,), num_outputs=2)
    if local:
        model.opset_import.append(helper.make_opsetid("local", 1))
        copy = helper.make_node("Identity", ["a"], ["b"])
        model.functions.append(
            helper.make_function("local", "Copy", ["a"], ["b"], [copy], [helper.make_opsetid("", 18)])
        )
    there = splitgraph.convert(model, "variadic-split")
    back = splitgraph.convert(there.model, "split")
    for rewrite, before in ((there, model), (back, there.model), (splitgraph.upgrade(there.model, 21), there.model)):
        assert rewrite.from_opset == imports(before)
        assert rewrite.to_opset == imports(rewrite.model)
    assert DOMAIN in there.to_opset and DOMAIN not in back.to_opset
    written_out = splitgraph.convert(model, "split", explicit_lengths=True)
    assert (written_out.from_opset, written_out.to_opset) == (imports(model), imports(written_out.model))


def test_lengths_that_no_runtime_reads_as_an_input_are_written_as_an_attribute() -> None:
    """Split-1 has both, and runtimes know the attribute only."""
    node = helper.make_node("Split", ["x", "n"], ["y", "z"], axis=0)
    held = numpy_helper.from_array(np.array([2, 4], np.float32), "n")
    graph = helper.make_graph([node], "g", [value("x", [6])], [value("y", [2]), value("z", [4])], [held])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 1)], ir_version=8)
    (after,) = splitgraph.convert(model, "split", explicit_lengths=True).model.graph.node
    assert list(after.input) == ["x"]
    assert {each.name: helper.get_attribute_value(each) for each in after.attribute} == {"axis": 0, "split": [2, 4]}


# Repairs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(6, 3), (7, 3), ("N", 3)])
def test_a_split_18_with_neither_is_repaired_by_every_verb(shape: tuple[int | str, ...]) -> None:
    model = split_model(shape, parts=2)
    right = split_model(shape, parts=2, num_outputs=2)
    feeds = [data(6, 3)] if shape[0] == 6 else [data(7, 3)] if shape[0] == 7 else [data(6, 3), data(7, 3)]
    assert "SG207" in [found.code for found in splitgraph.infer(model).diagnostics]
    rewrites = {
        "upgrade": splitgraph.upgrade(model, 21),
        "same opset": splitgraph.upgrade(model, 18),
        "downgrade": splitgraph.downgrade(model, 13),
        "split": splitgraph.convert(model, "split"),
        "explicit": splitgraph.convert(model, "split", explicit_lengths=True),
        "variadic": splitgraph.convert(model, "variadic-split"),
    }
    for verb, rewrite in rewrites.items():
        assert ("SG401", "main/split") in [(found.code, found.location) for found in rewrite.diagnostics], verb
        assert rewrite.changes, verb
        assert splitgraph.infer(rewrite.model).ok, verb
        assert_same(right, rewrite.model, *feeds)


# What asks for the rank of a part on the way to a target, and what the split becomes there.
READERS = [
    (helper.make_node("ReduceMax", ["a", "axes"], ["z"]), 10, "Split-2"),
    (helper.make_node("Softmax", ["a"], ["z"], axis=0), 12, "Split-11"),
    (helper.make_node("Add", ["a", "b"], ["z"]), 6, "Split-2"),
    (helper.make_node("Split", ["a"], ["z", "w"], axis=-1), 6, "Split-2"),
]


@pytest.mark.parametrize(("reader", "target", "after"), READERS, ids=[node.op_type for node, _, _ in READERS])
def test_what_reads_a_repaired_split_knows_its_parts(reader: onnx.NodeProto, target: int, after: str) -> None:
    """However far the model goes: it need not be repaired at its own opset first."""
    broken, axes = helper.make_node("Split", ["x"], ["a", "b"], "broken", axis=-2), np.array([-1])
    graph = helper.make_graph([broken, reader], "g", [value("x", ["N", 4, 6])], [value("z", [None, None, None])])
    graph.initializer.append(numpy_helper.from_array(axes, "axes"))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    rewrite = splitgraph.downgrade(model, target)
    there = [change.after for change in rewrite.changes if change.location == "main/broken"]
    assert there == [after]
    assert "main/broken" in [found.location for found in rewrite.diagnostics if found.code == "SG401"]
    repaired = splitgraph.upgrade(model, 18).model
    assert_same(repaired, rewrite.model, data(2, 4, 6))


@pytest.mark.parametrize(
    ("shape", "parts", "attributes"),
    [((4, 3), 2, {"axis": 2}), ((5, 3), 4, {}), ((3, 3), 5, {})],
    ids=["axis out of range", "chunks that overrun", "more chunks than rows"],
)
def test_what_cannot_have_been_meant_is_not_repaired(
    shape: tuple[int, ...], parts: int, attributes: dict[str, int]
) -> None:
    model = split_model(shape, parts=parts, **attributes)
    for rewrite in (lambda: splitgraph.upgrade(model, 21), lambda: splitgraph.convert(model, "split")):
        with pytest.raises(splitgraph.ConversionError) as raised:
            rewrite()
        assert not {"SG207", "SG201"}.isdisjoint(found.code for found in raised.value.diagnostics)


def there_and_back(model: onnx.ModelProto) -> onnx.ModelProto:
    variadic = splitgraph.convert(model, "variadic-split").model
    plain: onnx.ModelProto = splitgraph.convert(variadic, "split").model
    onnx.checker.check_model(plain, full_check=True)
    return plain


# What is edited of the nodes that put the rest in place of a -1, so that they no longer do.
EDITS: dict[str, tuple[str, int]] = {
    "nothing": ("", 0),
    "-1 is compared with something else": ("Equal", 1),
    "the rest is less by something else": ("Sub", 1),
    "the rest is of another value": ("Shape", 0),
    "another axis": ("Cast", 0),
}


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("edit", EDITS)
def test_a_rest_is_ruled_out_once(axis: int, edit: str) -> None:
    """Lengths without a -1 are recognised by the nodes that made them so; others are not believed."""
    first = there_and_back(calling(axis, None, ("N", "M")))
    op_type, position = EDITS[edit]
    if op_type:
        made = [node for node in first.graph.node if node.op_type == op_type]
        # The axis is cast before the lengths, and 1 is subtracted last.
        edited = made[-1] if op_type == "Sub" else made[0]
        shape = [1] if op_type == "Equal" else []
        other = np.full(shape, -2 if op_type == "Equal" else 1 + axis if op_type == "Cast" else 7)
        if op_type == "Shape":
            other = np.zeros((3, 5), np.float32)
        first.graph.initializer.append(numpy_helper.from_array(other, "other"))
        edited.input[position] = "other"
    second = there_and_back(first)
    assert (len(second.graph.node) == len(first.graph.node)) == (edit == "nothing")
    if edit == "nothing":
        assert len(second.graph.initializer) == len(first.graph.initializer)
        for lengths in ([1, 3], [-1, 2], [4, -1]):
            size = 4 if lengths[0] == 1 else 5
            data = {"x": np.arange(size**2, dtype=np.float32).reshape(size, size), "lengths": np.array(lengths)}
            for want, have in zip(run(load(first), data), run(load(second), data), strict=True):
                np.testing.assert_array_equal(want, have)
