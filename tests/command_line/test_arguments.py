"""What the arguments of the command line mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from splitgraph.arguments import parse_bindings, parse_input_shapes, rewritten_path
from splitgraph.diagnostics import SplitgraphError
from splitgraph.dim import parse_expression, symbol

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
    ],
)
def test_input_shapes(text: str, shape: tuple) -> None:
    assert parse_input_shapes([text], names={"a/b", "a*b", "K + 1"}) == {"x": shape}


@pytest.mark.parametrize(
    "text", ["x", "=1,2", "x=1,,2", "x=-1", "x=1.5", "x=2 - 3", "x=N +", "x=f(N)", "x=(N", "x=1,2,", "x=" + "9" * 5000]
)
def test_wrong_input_shapes(text: str, run: Run, folder: Path) -> None:
    with pytest.raises(SplitgraphError, match="--input-shape"):
        parse_input_shapes([text], names=())
    code, out, err = run("infer", "model.onnx", "--input-shape", text)
    assert (code, out) == (2, "")
    assert "such as" in err or "allowed" in err


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
    ],
)
def test_default_output(model: str, output: str) -> None:
    assert rewritten_path(Path(model), None, in_place=False, force=False, tag="opset18") == Path(output)


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
