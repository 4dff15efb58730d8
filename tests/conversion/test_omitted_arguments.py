"""Inputs of functions that a call leaves out: what would have to be written anew for one meaning or the other is
refused.
"""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

import splitgraph

SPLIT = "y, z = Split<axis = 1>(x, l)"
TWO = "y, z"
# By name: opset, body of the function, its outputs, calls, outputs of the graph, target, the operator that is refused.
REFUSED = {
    "upward": (13, SPLIT, TWO, ["y, z = my.f(x)"], "float[N,4] y, float[N,4] z", 18, "Split"),
    "downward": (13, SPLIT, TWO, ["y, z = my.f(x)"], "float[N,4] y, float[N,4] z", 11, "Split"),
    "as an empty name": (13, SPLIT, TWO, ['y, z = my.f(x, "")'], "float[N,4] y, float[N,4] z", 18, "Split"),
    "by one of two calls": (
        13,
        SPLIT,
        TWO,
        ["k = Constant<value_ints = [4, 4]>()", "y0, z = my.f(x, k)", "y, z0 = my.f(x)"],
        "float[N,4] y, float[N,4] z",
        18,
        "Split",
    ),
    "of another operator": (13, "y = Clip(x, l)", "y", ["y = my.f(x)"], "float[N,8] y", 10, "Clip"),
    "to an attribute": (18, "y = ReduceMean(x, l)", "y", ["y = my.f(x)"], "float[1,1] y", 17, "ReduceMean"),
    "to a function body": (17, "y = Trilu(x, l)", "y", ["y = my.f(x)"], "float[N,8] y", 13, "Trilu"),
    "by another that is like one that stays": (
        11,
        "w = Constant<value = float[8,1] {1, 1, 1, 1, 1, 1, 1, 1}>() y = Gemm(x, w, l) z = Gemm(x, w, k)",
        "y, z",
        ["u = other.unknown(x)", "y, z = my.f(x, \"\", u)", "y0, z0 = my.f(x, u, u)"],
        "float[N,1] y, float[N,1] z",
        9,
        "Gemm",
    ),
    "where it is needed": (11, "w = Constant<value = float[8,1] {1, 1, 1, 1, 1, 1, 1, 1}>() y = Gemm(x, w, l)", "y",
                           ["y = my.f(x)"], "float[N,1] y", 9, "Gemm"),
}  # fmt: skip
KEPT = {
    "clip": (13, "y = Clip(x, l)", "y", ["y = my.f(x)"], "float[N,8] y", 18),
    "another that is given": (18, "y = ReduceMean(x, k)", "y",
                              ["k = Constant<value_ints = [1]>()", "y = my.f(x, \"\", k)"], "float[N,1] y", 20),
    "read by nothing that changes": (13, "y, z = Split<axis = 1>(x) c = Clip(y, l)", "y, z, c",
                                     ["y, z0, c = my.f(x)"], "float[N,4] y", 18),
}  # fmt: skip


def model(opset: int, body: str, outputs: str, calls: list[str], results: str) -> onnx.ModelProto:
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}, "my" : 1, "other" : 1]>'
        f"g (float[N,8] x) => ({results}) {{ {' '.join(calls)} }}"
        f'<domain: "my", opset_import: ["" : {opset}]> f(x, l, k) => ({outputs}) {{ {body} }}'
    )
    onnx.checker.check_model(made)
    return made


@pytest.mark.usefixtures("functions_stay")
@pytest.mark.parametrize(
    ("opset", "body", "outputs", "calls", "results", "target", "op"), REFUSED.values(), ids=REFUSED
)
def test_refused(opset: int, body: str, outputs: str, calls: list[str], results: str, target: int, op: str) -> None:
    made = model(opset, body, outputs, calls, results)
    with pytest.raises(splitgraph.ConversionError) as raised:
        (splitgraph.upgrade if target > opset else splitgraph.downgrade)(made, target)
    texts = {found.message for found in raised.value.diagnostics}
    assert f"{op} reads 'l', an input of the function that a call leaves out, and would have to change" in texts


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("opset", "body", "outputs", "calls", "results", "target", "op"), REFUSED.values(), ids=REFUSED
)
def test_inlined(opset: int, body: str, outputs: str, calls: list[str], results: str, target: int, op: str) -> None:
    made = model(opset, body, outputs, calls, results)
    result = (splitgraph.upgrade if target > opset else splitgraph.downgrade)(made, target, verify=True)
    assert not result.model.functions
    assert result.verification is not None
    # No engine runs an operator that nobody knows.
    assert result.verification.verdict == ("not-run" if any("other." in call for call in calls) else "equal")


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("opset", "body", "outputs", "calls", "results", "target"), KEPT.values(), ids=KEPT)
def test_kept(opset: int, body: str, outputs: str, calls: list[str], results: str, target: int) -> None:
    made = model(opset, body, outputs, calls, results)
    result = splitgraph.upgrade(made, target, verify=True)
    assert result.verification is not None
    assert result.verification.verdict == "equal"


@pytest.mark.usefixtures("functions_stay")
def test_handed_on_from_a_function_that_was_called_without() -> None:
    made = model(13, SPLIT, TWO, ["y, z = my.outer(x)"], "float[N,4] y, float[N,4] z")
    text = (
        '<ir_version: 8, opset_import: ["" : 13, "my" : 1]> g (float[N,8] x) => (float[N,4] y) { y, z = my.outer(x) }'
    )
    text += '<domain: "my", opset_import: ["" : 13, "my" : 1]> outer(x, m) => (y, z) { y, z = my.f(x, m) }'
    made.functions.append(onnx.parser.parse_model(text).functions[0])
    with pytest.raises(splitgraph.ConversionError, match="Split reads 'l', an input of the function"):
        splitgraph.upgrade(made, 18)


HANDED_ON = {
    # Opset, what the inner function does, its outputs, those of the graph.
    "axis of a split": (18, "y, z = Split<axis : int = @a, num_outputs = 2>(x)", "y, z", "float[N,4] y, float[N,4] z"),
    "axes of a sum": (12, "y = ReduceSum<axes : ints = @a>(x)", "y", "float[p,q] y"),
}


@pytest.mark.parametrize(("opset", "body", "outputs", "results"), HANDED_ON.values(), ids=HANDED_ON)
def test_an_attribute_that_is_handed_on_unset_is_not_given(opset: int, body: str, outputs: str, results: str) -> None:
    text = (
        f'<ir_version: 8, opset_import: ["" : {opset}, "my" : 1]>'
        f"g (float[N,8] x) => ({results}) {{ {outputs} = my.outer(x) }}"
        f'<domain: "my", opset_import: ["" : {opset}]> f<a>(x) => ({outputs}) {{ {body} }}'
        f'<domain: "my", opset_import: ["" : {opset}, "my" : 1]> outer<a>(x) => ({outputs})'
    )
    kind = "ints" if "ints" in body else "int"
    made = onnx.parser.parse_model(f"{text} {{ {outputs} = my.f<a : {kind} = @a>(x) }}")
    try:
        done = splitgraph.upgrade(made, 20) if opset < 18 else splitgraph.convert(made, "variadic-split")
    except splitgraph.ConversionError as refused:
        assert "a call leaves out" in str(refused)
    else:
        assert splitgraph.verify(made, done.model, engine="onnxruntime").verdict == "equal"


def test_every_call_gives_it() -> None:
    calls = ["k = Constant<value_ints = [4, 4]>()", "y, z = my.f(x, k)"]
    made = model(13, SPLIT, TWO, calls, "float[N,4] y, float[N,4] z")
    assert splitgraph.verify(made, splitgraph.upgrade(made, 18).model).verdict == "equal"


def test_convert_refuses_it_too() -> None:
    made = model(13, SPLIT, TWO, ["y, z = my.f(x)"], "float[N,4] y, float[N,4] z")
    with pytest.raises(splitgraph.ConversionError, match="Split reads 'l', an input of the function"):
        splitgraph.convert(made, "variadic-split")
    inlined = splitgraph.convert(made, "split", explicit_lengths=True).model
    assert splitgraph.verify(made, inlined).verdict == "equal"
