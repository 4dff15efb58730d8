"""What is meant: names that nearly fit, and what to do where nothing does."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import splitgraph
from splitgraph.findings.diagnostics import ModelError, SplitgraphError, meant

from .program import Run


def model(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    """A model with the inputs x and weight, and the symbols B and width."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", "width"]) for name in ("x", "weight")]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(list(nodes), "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


ADD = model(helper.make_node("Add", ["x", "weight"], ["y"], name="add"))


@pytest.mark.parametrize("call", [("reshape", "x.onnx", "--batch"), ("check", "x.onnx", "--frob"), ("infer",)])
def test_a_wrong_call_names_the_help_of_its_command(call: tuple[str, ...], run: Run) -> None:
    code, _, err = run(*call)
    assert (code, err.splitlines()[-1]) == (2, f"Try 'splitgraph {call[0]} --help' for help.")


@pytest.mark.parametrize(
    ("name", "known", "told"),
    [
        ("b", ["B"], "; did you mean 'B'?"),
        ("weigth", ["x", "weight"], "; did you mean 'weight'?"),
        ("batch_size", ["batch-size", "N"], "; did you mean 'batch-size'?"),
        ("Batch", ["batch", "Bitch"], "; did you mean 'batch'?"),
        ("Q", ["B", "N"], ""),
        ("frobnicate", ["x", "weight"], ""),
        (3, ["B"], ""),
        ("b", [], ""),
    ],
)
def test_near_names(name: object, known: list[str], told: str) -> None:
    assert meant(name, known) == told


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: splitgraph.infer(ADD, bind={"b": 1}), "is named 'b'; did you mean 'B'?; it has: B, width"),
        (lambda: splitgraph.infer(ADD, bind={"widht": 1}), "did you mean 'width'?"),
        (lambda: splitgraph.upgrade(ADD, 18, bind={"b": 1}), "did you mean 'B'?"),
        (lambda: splitgraph.infer(ADD, input_shapes={"weigth": [1, 2]}), "did you mean 'weight'?"),
        (lambda: splitgraph.infer(ADD, bind={"Q": 1}), "no dimension of the model is named 'Q'; it has"),
    ],
)
def test_names_of_the_caller(call: object, told: str) -> None:
    with pytest.raises(SplitgraphError) as caught:
        call()  # type: ignore[operator]
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("read", "told"),
    [
        ("weigth", "; did you mean 'weight'?"),
        ("X", "; did you mean 'x'?"),
        ("hiden", "; did you mean 'hidden'?"),
        ("frobnicate", ""),
        # A later node has it, which is another finding.
        ("y", None),
    ],
)
def test_names_that_nothing_defines(read: str, told: str | None) -> None:
    hidden = helper.make_node("Relu", ["x"], ["hidden"])
    found = splitgraph.infer(model(hidden, helper.make_node("Add", ["x", read], ["y"]))).diagnostics
    text = "which no input, initializer or earlier node defines"
    messages = [each.message for each in found if text in each.message]
    assert messages == ([] if told is None else [f"reads {read!r}, {text}{told}"])


def test_the_first_node_of_an_unknown_operator() -> None:
    one = model(helper.make_node("Foo", ["x"], ["y"], name="foo"))
    two = model(
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node("Foo", ["h"], ["i"], name="foo", domain="mine"),
        helper.make_node("Foo", ["i"], ["y"], domain="mine"),
    )
    two.opset_import.append(helper.make_opsetid("mine", 1))
    assert splitgraph.infer(one).diagnostics[0].message.startswith("ai.onnx has no operator Foo (main/foo), so")
    assert "mine::Foo has no schema and no function body (2 nodes, the first is main/foo), so" in (
        splitgraph.infer(two).diagnostics[0].message
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("bell\x07 back\x08", "bell\\x07 back\\x08"),
        ("\u202eright to left", "\\u202eright to left"),
        ("\x9b31m", "\\x9b31m"),
        ("carriage\rreturn", "carriage\\rreturn"),
        ("\udcff", "\\udcff"),
        ("two\nlines of \N{SNOWMAN} and \u4e2d\u6587", "two\nlines of \N{SNOWMAN} and \u4e2d\u6587"),
        ("C:\\path", "C:\\path"),
    ],
)
def test_errors_hold_no_escape_characters(text: str, shown: str) -> None:
    assert str(SplitgraphError(text)) == shown
    assert str(ModelError(text)) == shown


def test_a_file_whose_name_is_hostile() -> None:
    with pytest.raises(ModelError) as caught:
        splitgraph.load("\x1b[2Jnone.onnx")
    assert "\x1b" not in str(caught.value)


def dims(path: str) -> list[str | int]:
    inputs = onnx.load(path).graph.input
    return [dim.dim_param or dim.dim_value for each in inputs for dim in each.type.tensor_type.shape.dim]


UPGRADE, DOWNGRADE = ("upgrade", "--opset", "18"), ("downgrade", "--opset", "11")


@pytest.mark.parametrize(
    "call",
    [
        UPGRADE,
        DOWNGRADE,
        # The opset that it has: the size is what changes.
        ("upgrade", "--opset", "13"),
        ("convert", "--opset", "18"),
        ("convert", "--to", "split"),
        ("convert", "--to", "slice"),
        ("convert", "--target", "openvino"),
        ("infer",),
    ],
)
def test_bind_fixes_what_is_written(call: tuple[str, ...], run: Run, folder: Path) -> None:
    onnx.save(ADD, "model.onnx")
    unverified = () if call == ("infer",) else ("--no-verify",)
    assert run(*call, "model.onnx", "-o", "out.onnx", "--bind", "B=2", *unverified)[0] == 0
    assert dims("out.onnx") == [2, "width", 2, "width"]


@pytest.mark.parametrize("call", [UPGRADE, DOWNGRADE, ("convert", "--opset", "18")])
def test_try_fixes_nothing(call: tuple[str, ...], run: Run, folder: Path) -> None:
    onnx.save(ADD, "model.onnx")
    assert run(*call, "model.onnx", "-o", "out.onnx", "--try", "B=2", "--no-verify")[0] == 0
    assert dims("out.onnx") == ["B", "width", "B", "width"]


def test_bind_and_try_in_python() -> None:
    fixed = splitgraph.upgrade(ADD, 18, bind={"B": 2}, verify=True, engine="reference", samples=1)
    tried = splitgraph.upgrade(ADD, 18, try_sizes={"B": 2}, verify=True, engine="reference", samples=1)
    assert fixed.verification is not None
    assert tried.verification is not None
    assert (fixed.verification.verdict, tried.verification.verdict) == ("equal", "equal")
    assert fixed.model.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2
    assert tried.model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "B"
    # The caller's model stays as it is.
    assert ADD.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "B"


def test_bind_fixes_an_ir() -> None:
    path = Path(__file__).parents[2] / "models" / "interval_split.xml"
    names = [name for name, value in splitgraph.infer(path).symbols.items()]
    assert names
    fixed = splitgraph.convert(path, "variadic-split", bind={names[0]: 4})
    assert names[0] not in splitgraph.infer(fixed.model).symbols
