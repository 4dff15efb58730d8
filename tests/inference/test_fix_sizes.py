"""`infer` with sizes gives the fixed model: its inputs, outputs, inner values and bodies have the sizes, too."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

import splitgraph
from splitgraph.cli import main

MODELS = Path(__file__).parents[2] / "models"
WORKER = Path(__file__).with_name("shape_log_worker.py")


def parsed(text: str) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')


def written(values: Iterable[ValueInfoProto]) -> list[str]:
    """What is declared of each tensor, `?` for a dimension that is left open: x[N, 3]."""
    texts = []
    for value in values:
        dims = [
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in value.type.tensor_type.shape.dim
        ]
        texts.append(f"{value.name}[{', '.join(str(dim) or '?' for dim in dims)}]")
    return texts


RELU = "(float[N, 3, H, W] x) => (float[N, 3, H, W] y) { y = Relu (x) }"
TWO = "(float[N, 4] x, float[N, 4] z) => (float[M, 4] y) { y = Add (x, z) }"

# The model, the sizes, and what the inputs and outputs are declared as then.
FIXED: list[tuple[str, dict[str, Any], list[str]]] = [
    (RELU, {"bind": {"N": 4}}, ["x[4, 3, H, W]", "y[4, 3, H, W]"]),
    (RELU, {"bind": {"N": 4, "H": 5, "W": 6}}, ["x[4, 3, 5, 6]", "y[4, 3, 5, 6]"]),
    (RELU, {"input_shapes": {"x": [4, 3, 5, 6]}}, ["x[4, 3, 5, 6]", "y[4, 3, 5, 6]"]),
    (RELU, {"input_shapes": {"x": ["N", 3, 5, None]}}, ["x[N, 3, 5, W]", "y[N, 3, 5, W]"]),
    (RELU, {"input_shapes": {"x": ["B", 3, "H", "W"]}}, ["x[B, 3, H, W]", "y[B, 3, H, W]"]),
    (RELU, {"input_shapes": {"x": ["B", 3, "2*K", 8]}}, ["x[B, 3, 2*K, 8]", "y[B, 3, 2*K, 8]"]),
    (RELU, {"input_shapes": {"x": ["B", 3, "H", 8]}, "bind": {"B": 2}}, ["x[2, 3, H, 8]", "y[2, 3, H, 8]"]),
    (RELU, {"input_shapes": {"x": [1, 3, "W", "H"]}}, ["x[1, 3, W, H]", "y[1, 3, W, H]"]),
    (TWO, {"bind": {"N": 4}}, ["x[4, 4]", "z[4, 4]", "y[4, 4]"]),
    (TWO, {"input_shapes": {"x": [4, 4]}}, ["x[4, 4]", "z[4, 4]", "y[4, 4]"]),
    (TWO, {"input_shapes": {"z": ["B", 4]}}, ["x[B, 4]", "z[B, 4]", "y[M, 4]"]),
    (TWO, {"input_shapes": {"x": ["B", 4], "z": [7, 4]}}, ["x[7, 4]", "z[7, 4]", "y[7, 4]"]),
    ("(float[3, 0] x) => (float[] y) { y = Relu (x) }", {"input_shapes": {"x": ["N", "K"]}}, ["x[3, 0]", "y[3, 0]"]),
    ("(float[x_2] x) => (float[] y) { y = Relu (x) }", {"bind": {"x_2": 0}}, ["x[0]", "y[0]"]),
    ("(float x) => (float y) { y = Relu (x) }", {"input_shapes": {"x": []}}, ["x[]", "y[]"]),
    (
        "(float[] x) => (float[] y) { y = Relu (x) }",
        {"input_shapes": {"x": [2, "N", None]}},
        ["x[2, N, ?]", "y[2, N, unk0]"],
    ),
    ("(float[?, 4] x) => (float[?, 4] y) { y = Relu (x) }", {"input_shapes": {"x": [3, 4]}}, ["x[3, 4]", "y[3, 4]"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sizes", "declared"), FIXED)
def test_sizes_are_written_into_inputs_and_outputs(text: str, sizes: dict[str, Any], declared: list[str]) -> None:
    model = parsed(text)
    before = model.SerializeToString()
    graph = splitgraph.infer(model, **sizes).model.graph
    assert written([*graph.input, *graph.output]) == declared
    assert model.SerializeToString() == before


@pytest.mark.parametrize(
    ("declared", "size", "other"),
    [
        ("N", 7, 7),
        ("2*N", 6, 3),
        ("2*N + 1", 7, 3),
        ("N - 2", 4, 6),
        ("2*N", 7, "N"),
        ("N//2", 7, "N"),
        ("N*N", 9, "N"),
    ],
)
def test_a_size_of_an_expression_tells_its_symbol_where_only_one_value_does(
    declared: str, size: int, other: int | str
) -> None:
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [dim]) for name, dim in (("x", declared), ("z", "N"))
    ]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["z"], ["y"])], "g", values, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    fixed = splitgraph.infer(model, input_shapes={"x": [size]}).model.graph
    assert written([*fixed.input, *fixed.output]) == [f"x[{size}]", f"z[{other}]", f"y[{other}]"]


BODIES = """(float[N, 4] x, bool condition) => (float[N, 4] y, float[?, ?] grown)
    <float[N, 4] inner, float[K, 4] unused>
    {
        inner = Relu (x)
        y = If (condition) <
            then_branch = then () => (float[N, 4] a) <float[N, 4] named> { named = Relu (inner) a = Neg (named) },
            else_branch = other () => (float[N, 4] b) { b = Abs (inner) }
        >
        grown = Loop (, condition, x) <
            body = turn (int64 i, bool on, float[N, 4] carried) => (bool again, float[N, 4] longer)
                <float[N, 4] same>
                { again = Identity (on) same = Relu (x) longer = Concat <axis = 0> (carried, same) }
        >
    }"""


def test_sizes_are_written_into_bodies_as_far_as_they_hold_there() -> None:
    graph = splitgraph.infer(parsed(BODIES), bind={"N": 3}).model.graph
    assert written([*graph.input[:1], *graph.output]) == ["x[3, 4]", "y[3, 4]", "grown[?, 4]"]
    assert "inner[3, 4]" in written(graph.value_info)
    branches = {attribute.name: attribute.g for node in graph.node for attribute in node.attribute}
    assert written(branches["then_branch"].output) == ["a[3, 4]"]
    assert written(branches["then_branch"].value_info) == ["named[3, 4]"]
    assert written(branches["else_branch"].output) == ["b[3, 4]"]
    # The list that the loop carries is longer each time, though its author gave it the name of an input's dimension.
    body = branches["body"]
    assert written(body.input[2:]) == ["carried[N, 4]"]
    assert written(body.value_info) == ["same[3, 4]"]


def test_a_bound_name_in_a_loop_says_no_more_than_an_open_one() -> None:
    """The list grows by 3 rows each time; the loop's declarations call it N all the same."""
    for sizes in ({}, {"bind": {"N": 3}}, {"input_shapes": {"x": [3, 4]}}):
        body = splitgraph.infer(parsed(BODIES), **sizes).graphs["main/Loop#2/body"]
        assert isinstance((body["carried"].shape or ())[0], splitgraph.dim.Dim)
        assert (body["carried"].shape or ())[0] != splitgraph.dim.symbol("N")


def test_other_names_and_all_else_stay_as_they_are() -> None:
    model = parsed(BODIES)
    model.graph.input[0].doc_string = "images"
    model.graph.input[0].type.denotation = "IMAGE"
    model.graph.input[0].type.tensor_type.shape.dim[0].denotation = "BATCH"
    model.metadata_props.add(key="author", value="one")
    fixed = splitgraph.infer(model, bind={"N": 3}).model
    (entry,) = [dim for dim in fixed.graph.input[0].type.tensor_type.shape.dim if dim.denotation]
    assert (entry.dim_value, entry.denotation) == (3, "BATCH")
    entry.dim_param = "N"
    assert fixed.graph.input[0] == model.graph.input[0]
    assert fixed.metadata_props == model.metadata_props
    assert fixed.graph.node[0] == model.graph.node[0]
    assert "unused[K, 4]" in written(fixed.graph.value_info)
    assert splitgraph.infer(model).model.graph.input == model.graph.input


def test_sizes_of_sequences_and_optional_values() -> None:
    model = parsed(
        """(seq(float[N, 4]) s, optional(float[N, 4]) o, float[N] x) => (float[?, ?] y)
        { zero = Constant <value = int64 {0}> () y = SequenceAt (s, zero) }"""
    )
    held = splitgraph.infer(model, bind={"N": 5}).model.graph.input
    for declared in (held[0].type.sequence_type.elem_type, held[1].type.optional_type.elem_type):
        assert [dim.dim_value for dim in declared.tensor_type.shape.dim] == [5, 4]


def test_names_in_functions_are_those_of_each_call() -> None:
    text = """<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        g (float[N] x, float[M] z) => (float[?] y, float[?] w) { y = local.Twice (x) w = local.Twice (z) }
        <opset_import: ["" : 18], domain: "local"> Twice (a) => (b) <float[N] b> { b = Add (a, a) }"""
    model = onnx.parser.parse_model(text)
    fixed = splitgraph.infer(model, bind={"N": 3}).model
    assert fixed.functions == model.functions
    assert written(fixed.graph.output) == ["y[3]", "w[M]"]


IR_SHAPES: list[tuple[dict[str, Any], str]] = [
    ({"bind": {"hidden_0": 3}}, "3,?,64.."),
    ({"bind": {"hidden_0": 3, "hidden_2": 100}}, "3,?,100"),
    ({"input_shapes": {"hidden": [3, 8, 100]}}, "3,8,100"),
    ({"input_shapes": {"hidden": [None, 8, "K"]}}, "1..8,8,64.."),
    ({}, "1..8,?,64.."),
]


@pytest.mark.parametrize(("sizes", "shape"), IR_SHAPES)
def test_sizes_are_written_into_the_parameters_of_an_ir(sizes: dict[str, Any], shape: str) -> None:
    analysis = splitgraph.infer(MODELS / "interval_split.xml", **sizes)
    (parameter,) = [layer for layer in analysis.model.graph.layers if layer.type == "Parameter"]
    assert analysis.ok
    assert parameter.data["shape"] == shape
    dims = [int(part) if part.isdecimal() else None for part in shape.split(",")]
    assert list(parameter.outputs[0].dims) == dims
    assert parameter.outputs[0].dims == analysis.types["hidden"].shape or None in dims


@pytest.mark.parametrize(
    ("model", "arguments", "inputs"),
    [
        ("c2f.opset17.onnx", ["--bind", "batch=4"], ["x[4, 16, height, width]"]),
        ("c2f.opset17.onnx", ["--input-shape", "x=4x16x8x6"], ["x[4, 16, 8, 6]"]),
        ("c2f.opset17.onnx", ["--input-shape", "x=[B,16,8,8]", "--bind", "B=2"], ["x[2, 16, 8, 8]"]),
        ("split_in_if.onnx", ["--bind", "batch=2"], ["gated[]", "x[2, 8]"]),
    ],
)
def test_the_command_writes_the_fixed_model(
    model: str, arguments: list[str], inputs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fixed.onnx"
    assert main(["infer", str(MODELS / model), *arguments, "-o", str(path)]) == 0
    assert "wrote" in capsys.readouterr().out
    assert sorted(written(onnx.load(path).graph.input)) == sorted(inputs)


@pytest.mark.parametrize(
    ("arguments", "shape"),
    [(["--bind", "hidden_0=3"], "3,?,64.."), (["--input-shape", "hidden=3x8x100"], "3,8,100"), ([], "1..8,?,64..")],
)
def test_the_command_writes_the_fixed_ir(arguments: list[str], shape: str, tmp_path: Path) -> None:
    path = tmp_path / "fixed.xml"
    assert main(["infer", str(MODELS / "interval_split.xml"), *arguments, "-o", str(path)]) == 0
    (parameter,) = [layer for layer in splitgraph.load(path).graph.layers if layer.type == "Parameter"]
    assert parameter.data["shape"] == shape


def test_sizes_that_contradict_the_model_write_nothing(tmp_path: Path) -> None:
    path = tmp_path / "fixed.onnx"
    model = str(MODELS / "c2f.opset17.onnx")
    assert main(["infer", model, "--input-shape", "x=4,17,8,8", "-o", str(path)]) == 1
    assert not path.exists()


# Models in which onnxruntime can compare every shape that it computes with one that is written.
RUN = {
    "c2f.opset17.onnx": {"batch": 2, "height": 8, "width": 6},
    "gpt2.opset18.onnx": {"batch": 2, "seq": 4, "past_len": 5},
    "lstm_loop.opset17.onnx": {"batch": 2, "seq": 3},
    "lstm_scan.opset18.dynamo.onnx": {"batch": 2, "seq": 3},
    "shufflenet.opset13.onnx": {"batch": 2, "height": 16, "width": 24},
    "split_in_if.onnx": {"batch": 2},
    "split_in_function.onnx": {"batch": 2, "seq": 4},
    "split18_num_outputs.onnx": {"batch": 2, "length": 3},
}


def test_onnxruntime_runs_the_fixed_models_without_a_warning(tmp_path: Path) -> None:
    paths, promised = [], []
    for name, sizes in RUN.items():
        analysis = splitgraph.infer(MODELS / name, bind=sizes)
        assert analysis.ok, analysis.diagnostics
        graph = analysis.model.graph
        declared = [[dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in graph.output]
        assert not [
            value
            for value in (*graph.input, *graph.output)
            for dim in value.type.tensor_type.shape.dim
            if dim.dim_param
        ]
        promised.append(declared)
        paths.append(str(tmp_path / name))
        onnx.save(analysis.model, paths[-1])
    ran = subprocess.run([sys.executable, str(WORKER), *paths], capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert json.loads(ran.stdout) == promised
