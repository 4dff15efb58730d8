"""ONNX as OpenVINO IR: `splitgraph.save(model, "x.xml")` and `convert ... -o x.xml`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import splitgraph
from splitgraph import cli
from splitgraph.formats import OpenVINOModel, load_ir
from splitgraph.formats.openvino_ir import Layer
from splitgraph.processes.worker_process import ProcessEnded
from splitgraph.verification.engines import openvino_import

MODELS = Path(__file__).parents[2] / "models"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in this process: exit code, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.main(arguments)
        return (code, *capsys.readouterr())

    return run


@pytest.fixture
def imported_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenVINO reads models in this process; the tests of the command line below let it have one of its own."""

    def run_once(work: str, folder: Path, *_: object) -> str:
        return openvino_import.main(folder)

    monkeypatch.setattr(openvino_import, "run_once", run_once)


def variadic_layers(model: OpenVINOModel) -> list[Layer]:
    return [layer for layer in model.graph.layers if layer.type == "VariadicSplit"]


def lengths_of(model: OpenVINOModel, layer: Layer) -> list[int]:
    number = model.graph.sources[layer.id, layer.inputs[2].id][0]
    (source,) = (each for each in model.graph.layers if each.id == number)
    return [int(length) for length in np.frombuffer(model.constant(source), np.int64)]


@pytest.mark.usefixtures("in_process", "imported_in_process")
def test_the_rest_stays_a_rest(tmp_path: Path) -> None:
    model = onnx.load(MODELS / "variadic_split_rest.onnx")
    splitgraph.save(model, tmp_path / "rest.xml")
    written = load_ir(tmp_path / "rest.xml")
    (layer,) = variadic_layers(written)
    assert -1 in lengths_of(written, layer)
    assert splitgraph.verify(model, written).verdict == "equal"


@pytest.mark.usefixtures("in_process", "imported_in_process")
def test_other_functions_are_inlined(tmp_path: Path) -> None:
    model = onnx.load(MODELS / "split_in_function.onnx")
    variadic = splitgraph.convert(model, "variadic-split").model
    splitgraph.save(variadic, tmp_path / "model.xml")
    written = load_ir(tmp_path / "model.xml")
    assert variadic_layers(written)
    assert splitgraph.verify(model, written).verdict == "equal"


FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Declared = onnx.ValueInfoProto
Dims = Sequence["int | str"]


def value(name: str, dims: Dims | None, dtype: int = FLOAT) -> Declared:
    return helper.make_tensor_value_info(name, dtype, dims)


def model_of(nodes: list[onnx.NodeProto], inputs: list[Declared], outputs: str, **options: Any) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, [value(name, None) for name in outputs])
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **options)


def chunks(dims: Dims, *, parts: int = 2, axis: int = -1, also: Sequence[onnx.NodeProto] = ()) -> onnx.ModelProto:
    """num_outputs of "x", or of "d" where another node gives that."""
    names = "yzvw"[:parts]
    source = also[-1].output[0] if also else "x"
    node = helper.make_node("Split", [source], list(names), name="cut", axis=axis, num_outputs=parts)
    return model_of([*also, node], [value("x", dims)], names)


def unrepaired() -> onnx.ModelProto:
    model = chunks(["N", "M"])
    del model.graph.node[0].attribute[1]
    return model


def in_branch() -> onnx.ModelProto:
    def branch(name: str, first: str, second: str) -> onnx.GraphProto:
        cut = helper.make_node("Split", ["x"], [first, second], axis=1, num_outputs=2)
        return helper.make_graph([cut], name, [], [value(f"{name}_a", None)])

    branches = branch("then", "then_a", "then_b"), branch("else", "else_b", "else_a")
    choice = helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    return model_of([choice], [value("c", (), BOOL), value("x", ["N", "M"])], "y")


def in_loop() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Identity", ["alive"], ["alive_out"]),
        helper.make_node("Split", ["state"], ["first", "second"], axis=-1, num_outputs=2),
        helper.make_node("Concat", ["second", "first"], ["state_out"], axis=-1),
    ]
    inputs = [value("i", (), INT64), value("alive", (), BOOL), value("state", ["N", "M"])]
    body = helper.make_graph(nodes, "body", inputs, [value("alive_out", (), BOOL), value("state_out", ["N", "M"])])
    loop = helper.make_node("Loop", ["times", "", "x"], ["y"], body=body)
    times = helper.make_node("Constant", [], ["times"], value_int=3)
    return model_of([times, loop], [value("x", ["N", "M"])], "y")


def in_function() -> onnx.ModelProto:
    cut = helper.make_node("Split", ["d"], ["a", "b"], axis=-1, num_outputs=2)
    cut.attribute[0].CopyFrom(onnx.AttributeProto(name="axis", type=onnx.AttributeProto.INT, ref_attr_name="axis"))
    function = helper.make_function("my", "Halves", ["d"], ["a", "b"], [cut], [helper.make_opsetid("", 18)], ["axis"])
    calls = [
        helper.make_node("Halves", ["x"], ["y", "z"], domain="my", axis=1),
        helper.make_node("Halves", ["x"], ["v", "w"], domain="my", axis=-2),
    ]
    return model_of(calls, [value("x", [4, "M"])], "yzvw", functions=[function])


def beside_a_rest() -> onnx.ModelProto:
    model = onnx.load(MODELS / "variadic_split_rest.onnx")
    cut = helper.make_node("Split", [model.graph.input[0].name], ["p", "q"], axis=0, num_outputs=2)
    model.graph.node.append(cut)
    model.graph.output.extend(value(name, None) for name in "pq")
    return model


TWICE = [helper.make_node("Concat", ["x", "x"], ["d"], axis=1)]
CHUNKS: dict[str, tuple[Callable[[], onnx.ModelProto], list[str]]] = {
    # Kept as they are: what is even at every size.
    "even": (lambda: chunks([3, 6]), ["Split"]),
    "even, of a dynamic batch": (lambda: chunks(["N", 6], parts=3), ["Split"]),
    "even for every size": (lambda: chunks(["N", "M"], also=TWICE, axis=1), ["Split"]),
    "lengths": (lambda: onnx.load(MODELS / "split18_lengths.onnx"), ["VariadicSplit"]),
    # Written out.
    "dynamic": (lambda: chunks(["N", "M"]), ["VariadicSplit"]),
    "dynamic, along the first axis": (lambda: chunks(["N", 4], parts=3, axis=0), ["VariadicSplit"]),
    "uneven": (lambda: chunks([3, 5]), ["VariadicSplit"]),
    "parts that are empty": (lambda: chunks([2, 5], parts=4), ["VariadicSplit"]),
    "neither lengths nor num_outputs": (unrepaired, ["VariadicSplit"]),
    "in branches": (in_branch, ["VariadicSplit", "VariadicSplit"]),
    "in a loop": (in_loop, ["VariadicSplit"]),
    "in a function, even in one of its calls": (in_function, ["Split", "VariadicSplit"]),
    "beside a rest": (beside_a_rest, ["VariadicSplit", "VariadicSplit"]),
}


@pytest.mark.usefixtures("in_process", "imported_in_process")
@pytest.mark.parametrize("name", CHUNKS)
@pytest.mark.sample(4)
def test_num_outputs_that_may_be_uneven_gets_lengths(name: str, tmp_path: Path) -> None:
    make, layers = CHUNKS[name]
    model = make()
    content = model.SerializeToString()
    splitgraph.save(model, tmp_path / "model.xml")
    assert model.SerializeToString() == content
    written = load_ir(tmp_path / "model.xml")
    text = (tmp_path / "model.xml").read_text("utf-8")
    assert sorted(re.findall(r'type="(Split|VariadicSplit)"', text)) == layers
    found = splitgraph.verify(model, written, samples=5)
    assert (found.verdict, found.cases) == ("equal", 5), found


def test_the_command_line_says_which_splits_got_lengths(run: Run, tmp_path: Path) -> None:
    onnx.save(chunks(["N", "M"]), tmp_path / "model.onnx")
    target = tmp_path / "model.xml"
    arguments = ("upgrade", str(tmp_path / "model.onnx"), "--opset", "20", "-o", str(target), "--force")
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert (
        out
        == f"opset 18 → 20 · 1 split rewritten · verified equal on 3 inputs (onnxruntime+openvino)\nwrote {target}\n"
    )
    document = json.loads(run(*arguments, "--json")[1])
    assert document["changes"] == [
        {
            "location": "main/cut",
            "before": "Split-18",
            "after": "VariadicSplit-1",
            "why": "OpenVINO reads num_outputs as equal parts",
        }
    ]


def test_a_split_that_is_rewritten_twice_is_one_change(run: Run, tmp_path: Path) -> None:
    model = chunks(["N", "M"])
    model.opset_import[0].version = 13
    del model.graph.node[0].attribute[1]
    onnx.save(model, tmp_path / "model.onnx")
    target = tmp_path / "model.xml"
    code, out, _ = run("upgrade", str(tmp_path / "model.onnx"), "--opset", "18", "-o", str(target), "--json")
    (change,) = json.loads(out)["changes"]
    assert (code, change["before"], change["after"]) == (0, "Split-13", "VariadicSplit-1")


def test_the_command_line_writes_ir_that_it_verified(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "model.xml"
    arguments = ("convert", str(MODELS / "split18_num_outputs.onnx"), "--to", "variadic-split", "-o", str(target))
    code, out, _ = run(*arguments, "--json")
    document = json.loads(out)
    assert (code, document["ok"], document["output"]) == (0, True, str(target))
    assert (document["verification"]["verdict"], document["verification"]["engine"]) == (
        "equal",
        "onnxruntime+openvino",
    )
    assert len(variadic_layers(load_ir(target))) == 2
    written = target.read_bytes(), target.with_suffix(".bin").read_bytes()
    code, _, err = run(*arguments)
    assert code == 2
    assert "exists" in err
    assert (target.read_bytes(), target.with_suffix(".bin").read_bytes()) == written


def test_other_sizes_are_verified_in_onnx_and_the_ir_against_them(run: Run, tmp_path: Path) -> None:
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[1, 2, 2] x) => (float[1, 4] y)
        <int64[2] s = {1, 4}> { y = Reshape (x, s) }"""
    )
    onnx.save(made, tmp_path / "model.onnx")
    arguments = ("--batch", "N", "--verify", "-o", str(tmp_path / "model.xml"))
    code, out, err = run("reshape", str(tmp_path / "model.onnx"), *arguments)
    assert code == 0 and "verified equal" in out, out + err
    layers = load_ir(tmp_path / "model.xml").graph.layers
    assert [layer.data["shape"] for layer in layers if layer.type == "Parameter"] == ["?,2,2"]


def test_what_openvino_refuses_is_told_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "model.xml"
    code, _, err = run("convert", str(MODELS / "string_split20.onnx"), "--to", "variadic-split", "-o", str(target))
    assert code == 1
    assert "SG411" in err
    assert "StringSplit-20" in err
    assert not list(tmp_path.iterdir())
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.save(onnx.load(MODELS / "string_split20.onnx"), target)
    assert [found.code for found in caught.value.diagnostics] == ["SG411"]
    assert not list(tmp_path.iterdir())


def test_a_crash_of_openvino_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Sequence[object]] = []

    def crash(*arguments: object) -> str:
        told.append(arguments)
        raise ProcessEnded("crashed (SIGSEGV)")

    monkeypatch.setattr(openvino_import, "run_once", crash)
    with pytest.raises(splitgraph.ConversionError, match=r"crashed \(SIGSEGV\)"):
        splitgraph.save(onnx.load(MODELS / "split2_equal.onnx"), tmp_path / "model.xml")
    assert len(told) == 1
    assert not list(tmp_path.iterdir())


def test_weights_in_files_of_their_own_are_carried_over(run: Run, tmp_path: Path) -> None:
    model = onnx.load(MODELS / "glu.opset18.onnx")
    onnx.save(model, tmp_path / "glu.onnx", save_as_external_data=True, location="glu.data", size_threshold=0)
    target = tmp_path / "written" / "glu.xml"
    target.parent.mkdir()
    code, _, err = run("convert", str(tmp_path / "glu.onnx"), "--to", "variadic-split", "-o", str(target))
    assert (code, err) == (0, "")
    assert splitgraph.verify(tmp_path / "glu.onnx", target).verdict == "equal"


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2.opset18", "c2f.opset13", "lstm_loop.opset17", "shufflenet.opset18"])
def test_a_model_goes_to_ir_and_is_compared_both_ways(name: str, tmp_path: Path) -> None:
    model = onnx.load(MODELS / f"{name}.onnx")
    splitgraph.save(splitgraph.convert(model, "variadic-split").model, tmp_path / "model.xml")
    found = load_ir(tmp_path / "model.xml")
    assert {split.op for split in splitgraph.infer(found).splits} == {"VariadicSplit"}
    assert splitgraph.verify(model, found, samples=2).verdict == "equal"
    explicit = splitgraph.convert(found, "variadic-split", explicit_lengths=True).model
    assert splitgraph.verify(explicit, model, samples=2).verdict == "equal"
    assert splitgraph.verify(found, explicit, samples=2).verdict == "equal"
