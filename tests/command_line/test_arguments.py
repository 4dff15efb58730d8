"""What the arguments of the command line mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from splitgraph.dim import parse_expression, symbol
from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.options import Converting
from splitgraph.work.task import FileTask, parse_bindings, parse_input_shapes

from .program import Run, files


@pytest.mark.parametrize(
    ("texts", "bindings"),
    [
        ([], {}),
        (["N=4"], {"N": 4}),
        (["N=4", "N=4", "M=0"], {"N": 4, "M": 0}),
        (["a=b=7"], {"a=b": 7}),
        (["batch-size=12"], {"batch-size": 12}),
    ],
)
def test_bindings(texts: list[str], bindings: dict[str, int]) -> None:
    assert parse_bindings(texts) == bindings


@pytest.mark.parametrize(
    "texts", [["N"], ["N="], ["=4"], ["N=-1"], ["N=x"], ["N=1.5"], ["N=4", "N=5"], [""], ["N= 4"], ["N=" + "9" * 5000]]
)
def test_wrong_bindings(texts: list[str], run: Run, folder: Path) -> None:
    with pytest.raises(SplitgraphError, match="--bind"):
        parse_bindings(texts)
    code, out, err = run("infer", "model.onnx", *(part for text in texts for part in ("--bind", text)))
    assert (code, out) == (2, "")
    assert "--bind" in err


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("x=", ()),
        ("x=5", (5,)),
        ("x=1,3,H,W", (1, 3, symbol("H"), symbol("W"))),
        ("x=?, 4", (None, 4)),
        ("x=N + 2,N+2", (parse_expression("N + 2"), parse_expression("N + 2"))),
        ("x=2*N,(N + 1)//2", (parse_expression("2*N"), parse_expression("(N + 1)//2"))),
        ("x=min(N, 8),3", (parse_expression("min(N, 8)"), 3)),
        ("x=batch-size,2N", (symbol("batch-size"), symbol("2N"))),
        ("x=a/b,seq:0", (symbol("a/b"), symbol("seq:0"))),
        ("x=a*b,K + 1", (parse_expression("a*b"), parse_expression("K + 1"))),
        ("x=4294967300", (2**32 + 4,)),
        # The spellings of Python, of trtexec and of other tools.
        ("x=[4,3,640,640]", (4, 3, 640, 640)),
        ("x = [ 4, 3, H , W ]", (4, 3, symbol("H"), symbol("W"))),
        ("x=(4,3,640,640)", (4, 3, 640, 640)),
        ("x=(4,)", (4,)),
        ("x=[]", ()),
        ("x=( )", ()),
        ("x=['N', \"H\", 3]", (symbol("N"), symbol("H"), 3)),
        ("x=4x3x640x640", (4, 3, 640, 640)),
        ("x=4 x 3 x ?", (4, 3, None)),
        ("x=4X3×640", (4, 3, 640)),
        ("x=[1x3x224x224]", (1, 3, 224, 224)),
        ("x=1x3xHxW", (1, 3, symbol("H"), symbol("W"))),
        ("x=Nx3x224x224", (symbol("N"), 3, 224, 224)),
        ("x:1,3,H,W", (1, 3, symbol("H"), symbol("W"))),
        ("x:1x3x224x224", (1, 3, 224, 224)),
        ("x:[1,3]", (1, 3)),
        ("x=[batch-size]//2,3", (parse_expression("[batch-size]//2"), 3)),
        ("x=[batch-size]", (symbol("batch-size"),)),
        ("x=N-1,N-K", (parse_expression("N - 1"), symbol("N-K"))),
        # What only looks like one of these.
        ("x=(N + 1)//2,(N - 1)", (parse_expression("(N + 1)//2"), parse_expression("N - 1"))),
        ("x=(N + 1)*(N + 2)", (parse_expression("(N + 1)*(N + 2)"),)),
        ("x=max4,x2", (symbol("max4"), symbol("x2"))),
        ("x=axb", (symbol("axb"),)),
        ("x=x", (symbol("x"),)),
        ("x=4x4", (symbol("4x4"),)),
    ],
)
def test_input_shapes(text: str, shape: tuple) -> None:
    names = {"N", "a/b", "a*b", "K + 1", "batch-size", "2N", "seq:0", "N-K", "4x4"}
    assert parse_input_shapes([text], names, inputs={"x"}) == {"x": shape}
    if "4x4" not in text:
        assert parse_input_shapes([text], names) == {"x": shape}


@pytest.mark.parametrize(
    ("text", "name", "shape"),
    [
        ("input:0=1,3", "input:0", (1, 3)),
        ("input:0:1,3", "input:0", (1, 3)),
        ("a=b=1,3", "a=b", (1, 3)),
        ("a=b:1x3", "a=b", (1, 3)),
        (" images =1,3", "images", (1, 3)),
        ("images=seq:0,3", "images", (symbol("seq:0"), 3)),
        ("images:seq:0,3", "images", (symbol("seq:0"), 3)),
        (" y=2", " y", (2,)),
    ],
)
def test_names_of_inputs_with_signs_in_them(text: str, name: str, shape: tuple) -> None:
    inputs = ["input:0", "a=b", "images", " y"]
    assert parse_input_shapes([text], names={"seq:0"}, inputs=inputs) == {name: shape}


@pytest.mark.parametrize(
    "text",
    [
        "x", "=1,2", "x=1,,2", "x=-1", "x=1.5", "x=2 - 3", "x=N +", "x=f(N)", "x=(N", "x=1,2,", "x=" + "9" * 5000,
        "1,3,224,224", "[1,3]", "x=[4,3", "x=4,3]", "x=4 3 640", "x=4;3", "x=4x", "x=4xx3", "x=1.0x3",
        "x=-1x3", "x=batch-size,3", "x=2N", "x=seq:0", "x=a b", "x=a/b", "x=True", "x=lambda", "x=1e3", "x=0x1F",
        "x=N?", "x=?N", "x=[None,3]", "x=unk,3", "x=*,3", "x=dynamic", "x=[[4,3],[1]]", "x=<4>",
    ],
)  # fmt: skip
def test_wrong_input_shapes(text: str, run: Run, folder: Path) -> None:
    for inputs in (None, ["x"]):
        with pytest.raises(SplitgraphError, match="--input-shape"):
            parse_input_shapes([text], names=(), inputs=inputs)
    code, out, err = run("infer", "model.onnx", "--input-shape", text)
    assert (code, out) == (2, "")
    assert "x=1,3,H,W" in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x=-1,3", r"write a name, such as N"),
        ("x=None,3", r"write a name, such as N"),
        ("x=unk,3", "this text marks unknown dimensions in models"),
        ("x=batch-size + 1", r"write it in brackets in an expression: \[batch-size\] \+ 1"),
        ("x=1,,3", "a dimension is empty"),
        ("x=1,3 y=2,4", "Give one --input-shape for each input"),
        ("x=1,3,y=2,4", "Give one --input-shape for each input"),
        ("x=1,3;y=2,4", "Give one --input-shape for each input"),
        ("x:1x3,y:2x4", "Give one --input-shape for each input"),
        ("x=1,3 z=2,4", "Give one --input-shape for each input"),
        ("z=1,3", "the model has no input 'z'; it has: x, y"),
        ("1,3", "not of the form INPUT=DIMENSION"),
    ],
)
def test_what_is_wrong_with_an_input_shape(text: str, said: str) -> None:
    with pytest.raises(SplitgraphError, match=said):
        parse_input_shapes([text], names={"batch-size"}, inputs=["x", "y"])


def test_two_shapes_for_one_input() -> None:
    with pytest.raises(SplitgraphError, match="two shapes"):
        parse_input_shapes(["x=1", "x=2"], names=())


@pytest.mark.parametrize(
    ("model", "output"),
    [
        ("model.onnx", "model.opset18.onnx"),
        ("a.b.onnx", "a.b.opset18.onnx"),
        ("model", "model.opset18.onnx"),
        ("sub/model.onnx", "sub/model.opset18.onnx"),
        ("model.xml", "model.opset18.xml"),
        # The tag of an earlier opset makes way.
        ("model.opset17.onnx", "model.opset18.onnx"),
        ("model.opset18.onnx", "model.opset18.onnx"),
        ("sub/a.opset9.onnx", "sub/a.opset18.onnx"),
        ("opset17.onnx", "opset17.opset18.onnx"),
        ("model.opset17.dynamo.onnx", "model.opset17.dynamo.opset18.onnx"),
    ],
)
def test_default_output(model: str, output: str) -> None:
    assert FileTask("upgrade", Path(model), wanted=Converting(18)).path() == Path(output)


@pytest.mark.parametrize(
    "arguments", [["infer", "-"], ["verify", "model.onnx", "-"], ["infer", "model.onnx", "-o", "-"]]
)
def test_models_do_not_go_through_standard_streams(arguments: list[str], run: Run, folder: Path) -> None:
    before = files(folder)
    code, out, err = run(*arguments)
    assert (code, out, files(folder)) == (2, "", before)
    assert "models are not read from or written to standard streams; give the path of a file." in err


def test_a_file_whose_name_begins_as_an_option(run: Run, folder: Path) -> None:
    Path("-dash\x1b.onnx").write_bytes(Path("model.onnx").read_bytes())
    code, out, err = run("infer", "-dash\x1b.onnx")
    assert (code, out) == (2, "")
    assert "for the file of that name write ./-dash\\x1b.onnx." in err
    assert run("infer", "./-dash\x1b.onnx")[0] == run("infer", "--", "-dash\x1b.onnx")[0] == 0
    assert "file of that name" not in run("infer", "-nothing.onnx")[2]
