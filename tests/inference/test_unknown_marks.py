"""Texts that mark unknown dimensions are no names: each stands for a dimension of its own, wherever a model has it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, helper

import splitgraph
from splitgraph.cli import main
from splitgraph.dim.parsing import _MARKS
from splitgraph.findings.diagnostics import SplitgraphError

MARKS = [
    "?", "-1", "None", "none", "unk", "", " ", "*", " ? ", "NONE", "Unknown", "dynamic", "dyn", "null", "nan",
    "undefined", "__dynamic_dimension__", "-9223372036854775808", "\t-1\n",
]  # fmt: skip

# Names that look like marks, or hold one, and are names all the same.
NAMES = [
    "N", "batch", "unk__12", "unk0", "unk_0", "s0", "u0", "?0", "??", "-1x", "1", "0", "None_", "None1", "Nonempty",
    "nanometres", "dynamic_axes_1", "x_dynamic_axes_0", "unknown_0", "dyn_batch", "DynamicDimension.0",
    "p2o.DynamicDimension.1",
    "batch-1", "**", "- 1", "--1", "FreeDimension", "anything", "nul",
]  # fmt: skip


def declared(name: str, *dims: int | str, dtype: int = TensorProto.FLOAT) -> ValueInfoProto:
    """A tensor whose dimensions have exactly these numbers and texts; helper leaves some of them out."""
    value = helper.make_tensor_value_info(name, dtype, [1] * len(dims))
    for entry, dim in zip(value.type.tensor_type.shape.dim, dims, strict=True):
        if isinstance(dim, str):
            entry.dim_param = dim
    return value


def texts(value: ValueInfoProto) -> list[str | int]:
    """What is written of each dimension."""
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in value.type.tensor_type.shape.dim]


def convolution(text: str) -> ModelProto:
    """Of images of which the batch, the height and the width are declared by one and the same text."""
    weight = onnx.numpy_helper.from_array(np.ones((8, 3, 3, 3), np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Split", ["c"], ["a", "b"], axis=1),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [declared("x", text, 3, text, text)],
        [declared("y", text, 4, text, text)],
        [weight],
        value_info=[declared("c", text, 8, text, text)],
    )
    graph.input[0].type.tensor_type.shape.dim[1].dim_value = 3
    graph.output[0].type.tensor_type.shape.dim[1].dim_value = 4
    graph.value_info[0].type.tensor_type.shape.dim[1].dim_value = 8
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("mark", MARKS)
def test_dimensions_with_a_mark_need_not_be_equal(mark: str) -> None:
    model = convolution(mark)
    batch, _, height, width = splitgraph.infer(model).types["x"].shape or ()
    assert len({batch, height, width}) == 3
    sizes = splitgraph.infer(model, input_shapes={"x": [2, 3, 48, 192]})
    assert sizes.diagnostics == ()
    assert str(sizes.types["y"]) == "float32[2, 4, 24, 96]"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stays_one_dimension(name: str) -> None:
    analysis = splitgraph.infer(convolution(name))
    assert str(analysis.types["x"]) == f"float32[{name}, 3, {name}, {name}]"
    assert splitgraph.infer(convolution(name), bind={name: 6}).types["x"].shape == (6, 3, 6, 6)
    refused = splitgraph.infer(convolution(name), input_shapes={"x": [2, 3, 48, 192]})
    assert [found.code for found in refused.diagnostics if found.severity == "error"][:1] == ["SG304"]


@pytest.mark.parametrize("mark", MARKS)
def test_inputs_keep_their_marks_and_outputs_get_what_is_known(mark: str) -> None:
    model = convolution(mark)
    filled = splitgraph.infer(model).model
    assert filled.graph.input == model.graph.input
    rows, columns = texts(filled.graph.output[0])[2:]
    assert rows != columns
    assert str(rows).endswith("//2")
    assert texts(filled.graph.output[0])[1] == 4


@pytest.mark.parametrize("mark", ["?", "-1", "None"])
def test_a_mark_stays_where_nothing_is_known(mark: str) -> None:
    node = helper.make_node("Compress", ["x", "chosen"], ["y"], axis=0)
    graph = helper.make_graph(
        [node],
        "g",
        [declared("x", mark, 4), declared("chosen", "K", dtype=TensorProto.BOOL)],
        [declared("y", mark, mark)],
    )
    graph.input[0].type.tensor_type.shape.dim[1].dim_value = 4
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    assert texts(splitgraph.infer(model).model.graph.output[0]) == [mark, 4]


def _values(text: str) -> GraphProto:
    """Two values of which onnx's operators say nothing: an optional sequence and what a custom operator gives."""
    node = helper.make_node("Unknown", ["x"], ["held", "y"], domain="custom")
    held = declared("held", text, text)
    return helper.make_graph([node], "g", [declared("x", "N")], [declared("y", text, text)], value_info=[held])


@pytest.mark.parametrize(("text", "count"), [("?", 4), ("None", 4), ("-1", 4), ("N", 1), ("unk__3", 1)])
def test_marks_in_value_info_and_outputs(text: str, count: int) -> None:
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("custom", 1)]
    types = splitgraph.infer(helper.make_model(_values(text), opset_imports=imports, ir_version=8)).types
    dims = [*(types["held"].shape or ()), *(types["y"].shape or ())]
    assert len([dim for dim in dims if dim is None] or set(map(str, dims))) == count


@pytest.mark.parametrize(("text", "equal"), [("?", False), ("unk", False), (" ", False), ("H", True)])
def test_marks_in_the_graphs_of_branches_and_loops(text: str, equal: bool) -> None:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["again"]),
            helper.make_node("Unknown", ["carried"], ["made"], domain="custom"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            declared("carried", text, text),
        ],
        [helper.make_tensor_value_info("again", TensorProto.BOOL, []), declared("made", text, text)],
    )
    branches = {
        name: helper.make_graph(
            [helper.make_node("Unknown", ["x"], [f"{name}_made"], domain="custom")],
            name,
            [],
            [declared(f"{name}_made", text, text)],
        )
        for name in ("then_branch", "else_branch")
    }
    nodes = [
        helper.make_node("Loop", ["", "condition", "x"], ["looped"], body=body, name="loop"),
        helper.make_node("If", ["condition"], ["chosen"], name="if", **branches),
    ]
    inputs = [declared("x", text, text), helper.make_tensor_value_info("condition", TensorProto.BOOL, [])]
    results = [declared("looped", text, text), declared("chosen", text, text)]
    graph = helper.make_graph(nodes, "g", inputs, results)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("custom", 1)]
    analysis = splitgraph.infer(helper.make_model(graph, opset_imports=imports, ir_version=8))
    assert analysis.ok
    shown = [*analysis.types.items(), *analysis.graphs["main/loop/body"].items()]
    shown += analysis.graphs["main/if/then_branch"].items()
    squares = [value.shape for _, value in shown if value.rank == 2]
    assert len(squares) >= 5
    known = [shape for shape in squares if shape is not None and None not in shape]
    assert {shape[0] == shape[1] for shape in known} <= {equal}
    assert bool(known) or not equal


def test_marks_in_sequences_and_in_functions() -> None:
    function = helper.make_function(
        "local",
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 18)],
        value_info=[declared("b", "?", "?")],
    )
    nodes = [
        helper.make_node("Twice", ["x"], ["y"], domain="local"),
        helper.make_node("SequenceAt", ["list", "zero"], ["z"]),
    ]
    held = helper.make_tensor_sequence_value_info("list", TensorProto.FLOAT, [1, 1])
    for dim in held.type.sequence_type.elem_type.tensor_type.shape.dim:
        dim.dim_param = "?"
    graph = helper.make_graph(
        nodes,
        "g",
        [declared("x", "?", "?"), held],
        [declared("y", "?", "?"), declared("z", "?", "?")],
        [helper.make_tensor("zero", TensorProto.INT64, [], [0])],
    )
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    model = helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=10)
    analysis = splitgraph.infer(model, input_shapes={"x": [4, 9]})
    assert analysis.diagnostics == ()
    assert str(analysis.types["y"]) == "float32[4, 9]"
    assert str(analysis.types["z"]) == "float32[?, ?]"


@pytest.mark.parametrize("mark", ["?", "None", "-1", "unk"])
def test_a_mark_cannot_be_bound(mark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = convolution(mark)
    with pytest.raises(SplitgraphError, match=r"marks unknown dimensions.*--input-shape"):
        splitgraph.infer(model, bind={mark: 4})
    with pytest.raises(SplitgraphError, match="marks unknown dimensions and names none; it has: unk0, unk1, unk2"):
        splitgraph.verify(model, model, bind={mark: 4})
    onnx.save(model, tmp_path / "model.onnx")
    assert main(["infer", str(tmp_path / "model.onnx"), "--bind", f"{mark}=4"]) == 2
    assert "marks unknown dimensions" in capsys.readouterr().err
    assert main(["infer", str(tmp_path / "model.onnx"), "--input-shape", "x=2,3,48,192"]) == 0
    assert "float32[2, 8, 24, 96]" in capsys.readouterr().out


def test_a_model_with_marks_is_verified_with_sizes_that_differ() -> None:
    model = convolution("?")
    rewrite = splitgraph.upgrade(model, 18, verify=True)
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal"
    assert rewrite.model.graph.input == model.graph.input
    given = {"x": np.linspace(-1, 1, 2 * 3 * 48 * 192, dtype=np.float32).reshape(2, 3, 48, 192)}
    assert splitgraph.verify(model, rewrite.model, inputs=given).verdict == "equal"


def test_onnxruntime_shares_no_memory_between_values_with_marks() -> None:
    """Under one name for the rows of all values, it refuses to run this model."""
    nodes = [
        helper.make_node("Sin", ["x"], ["a"]),
        helper.make_node("Concat", ["a", "a", "a"], ["b"], axis=0),
        helper.make_node("Cos", ["b"], ["c"]),
        helper.make_node("Split", ["c"], ["d", "e"], axis=1),
    ]
    inner = [declared(name, "?", "?") for name in "abc"]
    results = [declared(name, "?", "?") for name in "de"]
    graph = helper.make_graph(nodes, "g", [declared("x", "?", "?")], results, value_info=inner)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    verification = splitgraph.verify(model, splitgraph.upgrade(model, 18).model, engine="onnxruntime", samples=2)
    assert (verification.verdict, verification.engine) == ("equal", "onnxruntime")


def test_the_page_of_dimensions_lists_every_mark() -> None:
    page = (Path(__file__).parents[2] / "docs" / "dimensions.md").read_text(encoding="utf-8").lower()
    assert [mark for mark in _MARKS if mark and f"`{mark}`" not in page] == []
