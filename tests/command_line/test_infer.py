"""splitgraph infer: exit codes, pages, JSON and the model that it writes."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.numpy_helper
import pytest
from onnx import TensorProto, helper

import splitgraph

from .program import Run, files, split_model


def test_infer(run: Run, folder: Path) -> None:
    code, out, err = run("infer", "model.onnx")
    assert (code, err) == (0, "")
    assert out == (
        "model.onnx · opset 13 · 1 node · 1 split\n"
        "\n"
        "  input   x   float32[N, 6]\n"
        "  output  p0  float32[N, 3]\n"
        "  output  p1  float32[N, 3]\n"
        "\n"
        "  node  operator  axis  input          parts\n"
        "  s     Split-13  1     float32[N, 6]  3 | 3\n"
        "\n"
        "6 of 6 dimensions known, 3 symbolic. No findings.\n"
    )
    assert files(folder) == {"model.onnx"}


def test_why(run: Run, folder: Path) -> None:
    code, out, err = run("infer", "model.onnx", "--why", "p1")
    assert (code, err) == (0, "")
    assert out == (
        "model.onnx · the dimensions of p1\n"
        "\n"
        "  value  type           operator  node  depends on\n"
        "  p1     float32[N, 3]  Split     s     x\n"
        "  x      float32[N, 6]  input\n"
    )
    code, out, _ = run("infer", "model.onnx", "--why", "p1", "--json")
    assert [(step["name"], step["source"], step["reads"]) for step in json.loads(out)["why"]] == [
        ("p1", "node", ["x"]),
        ("x", "input", []),
    ]
    assert "why" not in json.loads(run("infer", "model.onnx", "--json")[1])


def test_many_inputs_are_folded(run: Run, folder: Path) -> None:
    model = split_model()
    model.graph.input.extend(
        helper.make_tensor_value_info(f"more{number}", TensorProto.FLOAT, ["N"]) for number in range(12)
    )
    onnx.save(model, "model.onnx")
    out = run("infer", "model.onnx")[1]
    assert "  input   more6       float32[N]\n          and 5 more  --all shows them\n  output  p0" in out
    out = run("infer", "model.onnx", "--all")[1]
    assert "  input   more11  float32[N]\n  output  p0" in out
    assert "  operator  nodes\n  Split     1\n" in out


def test_inputs_with_a_default_are_no_inputs(run: Run, folder: Path) -> None:
    model = split_model()
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [1]))
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [1], [0]))
    onnx.save(model, "model.onnx")
    document = json.loads(run("infer", "model.onnx", "--json")[1])
    assert (list(document["inputs"]), list(document["outputs"])) == (["x"], ["p0", "p1"])


def test_quiet_tells_what_is_wrong(run: Run, folder: Path) -> None:
    assert run("infer", "model.onnx", "--quiet") == (0, "", "")
    onnx.save(split_model(axis=5), "wrong.onnx")
    code, out, err = run("infer", "wrong.onnx", "--quiet")
    assert (code, err) == (1, "error: wrong.onnx: 1 error\n")
    assert "SG" in out and "main/s" in out


def test_infer_json(run: Run, folder: Path) -> None:
    code, out, err = run("infer", "model.onnx", "--json", "--all")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["splitgraph"] == splitgraph.__version__
    assert (document["model"], document["opset"], document["ok"]) == ("model.onnx", {"": 13}, True)
    (split,) = document["splits"]
    assert (split["node"], split["op"], split["since_version"], split["location"]) == ("s", "Split", 13, "main/s")
    assert (split["axis"], split["lengths"], split["obligations"]) == (1, [3, 3], [])
    assert split["input"] == {"name": "x", "kind": "tensor", "dtype": "float32", "shape": ["N", 6]}
    part = {"kind": "tensor", "dtype": "float32", "shape": ["N", 3]}
    assert split["outputs"] == [{"name": "p0", **part}, {"name": "p1", **part}]
    assert document["values"]["p0"] == part
    assert document["symbols"]["N"] == {"min": 0, "max": None}
    assert document["diagnostics"] == []
    assert "values" not in json.loads(run("infer", "model.onnx", "--json")[1])


def test_infer_shows_what_the_model_requires(run: Run, folder: Path) -> None:
    onnx.save(split_model(shape=("N", "M"), parts=3), "model.onnx")
    code, out, _ = run("infer", "model.onnx")
    assert code == 0
    assert "  requires M % 3 == 0  s\n" in out


def test_infer_shows_what_a_generated_symbol_of_an_output_stands_for(run: Run, folder: Path) -> None:
    """A name such as batch-size stands in no expression, so that its double has a name of its own."""
    doubled = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N, "batch-size"] x) => (float[N, M] y) { y = Concat <axis = 1> (x, x) }""")
    doubled.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(doubled, "model.onnx")
    code, out, _ = run("infer", "model.onnx")
    assert code == 0
    assert "  output  y  float32[N, unk0]\n" in out
    assert "\n  with unk0 == 2*[batch-size]\n" in out
    # With every value, all symbols are listed as they were.
    assert out.count("unk0 ==") == run("infer", "model.onnx", "--all")[1].count("unk0 ==") == 1


def test_infer_with_bindings_and_shapes(run: Run, folder: Path) -> None:
    assert "float32[4, 6]" in run("infer", "model.onnx", "--bind", "N=4")[1]
    assert "float32[B + 1, 6]" in run("infer", "model.onnx", "--input-shape", "x=B + 1,6")[1]


@pytest.mark.parametrize(
    ("arguments", "said"), [(["--bind", "M=4"], "'M'; it has: N"), (["--input-shape", "z=1,6"], "'z'; it has: x")]
)
def test_infer_with_a_name_that_the_model_does_not_have(
    arguments: list[str], said: str, run: Run, folder: Path
) -> None:
    code, out, err = run("infer", "model.onnx", "--json", *arguments)
    assert (code, json.loads(out)["ok"]) == (2, False)
    assert err.startswith("error: ")
    assert said in err


def test_infer_with_a_shape_that_contradicts_the_model(run: Run, folder: Path) -> None:
    code, _, err = run("infer", "model.onnx", "--input-shape", "x=1,7")
    assert code == 1
    assert err == "error: model.onnx: 2 errors\n"


def test_infer_writes_the_model_with_its_types(run: Run, folder: Path) -> None:
    code, out, _ = run("infer", "model.onnx", "-o", "typed.onnx")
    assert code == 0
    assert out.endswith("wrote typed.onnx\n")
    shape = onnx.load("typed.onnx").graph.output[0].type.tensor_type.shape
    assert [dim.dim_param or dim.dim_value for dim in shape.dim] == ["N", 3]


def test_infer_of_a_wrong_model(run: Run, folder: Path) -> None:
    onnx.save(split_model(axis=5), "wrong.onnx")
    code, out, err = run("infer", "wrong.onnx", "-o", "typed.onnx")
    assert code == 1
    assert "  SG201  main/s  " in out
    # What is wrong stands in the table, once.
    assert err == "error: wrong.onnx: 1 error\n"
    assert "typed.onnx" not in files(folder)
    code, out, err = run("infer", "wrong.onnx", "--json")
    assert (code, json.loads(out)["ok"], err.count("\n")) == (1, False, 1)


def test_a_model_whose_dimensions_double_with_every_layer(run: Run, folder: Path) -> None:
    """60 nodes, 3 KB: the expressions for their dimensions would fill any memory."""
    nodes, last = [], "x"
    for layer in range(30):
        a, b, doubled = f"a{layer}", f"b{layer}", f"c{layer}"
        nodes.append(helper.make_node("Split", [last], [a, b], axis=1, num_outputs=2))
        nodes.append(helper.make_node("Concat", [b, a, b], [doubled], axis=1))
        last = doubled
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "M"])]
    outputs = [helper.make_tensor_value_info(last, TensorProto.FLOAT, ["N", None])]
    imports = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), opset_imports=imports), "doubling.onnx")
    code, out, _ = run("infer", "doubling.onnx", "-o", "filled.onnx", "--json")
    assert code == 0
    assert len(out) < 2_000_000
    assert len(Path("filled.onnx").read_bytes()) < 2_000_000
