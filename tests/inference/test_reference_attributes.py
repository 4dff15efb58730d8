"""Nodes in a function's body that refer to an attribute of the function: what holds of them at every call is known of
the body as written, and nothing that the attribute decides.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import onnx
import pytest
from onnx import AttributeProto, helper

from splitgraph.dim import Dim
from splitgraph.inference import infer_model
from splitgraph.inference.analysis import Analysis
from splitgraph.model.value_type import ValueType

MODEL = """<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
g (float[2,3,4] x, float[2,3,4] z, float[5,5] m, bool c) => (y) { y = my.f<a = VALUE>(x, z, m, c) }
<domain: "my", opset_import: ["" : 17]>
f <a>(x, z, m, c) => (y) { BODY }"""
ONES = "ones = Constant<value_floats = [1.0, 1.0, 1.0, 1.0]>()"
FIRST = "first = Constant<value_ints = [0]>()"
LIKE_X = "float32[2, 3, 4]"
# (body, value of the attribute at the call, the type of y in the body as written, and at the call)
DECIDED_BY_IT = [
    ("y = Concat<axis: int = @a>(x, z)", "1", "float32[...]", "float32[2, 6, 4]"),
    ("y = Cast<to: int = @a>(x)", "7", "?[2, 3, 4]", "int64[2, 3, 4]"),
    ("y = Transpose<perm: ints = @a>(x)", "[2, 1, 0]", "float32[...]", "float32[4, 3, 2]"),
    ("y = Flatten<axis: int = @a>(x)", "2", "float32[...]", "float32[6, 4]"),
    ("y = ReduceMax<keepdims: int = @a>(x)", "0", "float32[...]", "float32[]"),
    ("y = ReduceMean<axes: ints = @a>(x)", "[0]", "float32[...]", "float32[1, 3, 4]"),
    ("y = ArgMax<axis: int = @a>(x)", "1", "int64[...]", "int64[2, 1, 4]"),
    ("y = Gemm<transA: int = @a>(m, m)", "1", "float32[...]", "float32[5, 5]"),
    (f"{FIRST} y = Gather<axis: int = @a>(x, first)", "1", "float32[...]", "float32[2, 1, 4]"),
    ("y = MaxPool<kernel_shape: ints = @a>(x)", "[2]", "float32[...]", "float32[2, 3, 3]"),
    ("y = EyeLike<dtype: int = @a>(m)", "7", "unknown", "int64[5, 5]"),
    ("y = Shape<start: int = @a>(x)", "1", "int64[...]", "int64[2]"),
    # Whether it is there decides.
    (f"{FIRST} b = Cast<to = 9>(first) y = Compress<axis: int = @a>(x, b)", "0", "float32[...]", "float32[0, 3, 4]"),
    ("y = LpPool<kernel_shape: ints = @a>(x)", "[2]", "float32[...]", "float32[2, 3, 3]"),
]
THE_SAME_FOR_ALL = [
    ("y = LeakyRelu<alpha: float = @a>(x)", "0.5", LIKE_X),
    ("y = Elu<alpha: float = @a>(x)", "0.5", LIKE_X),
    ("y = Selu<gamma: float = @a>(x)", "0.5", LIKE_X),
    ("y = Celu<alpha: float = @a>(x)", "0.5", LIKE_X),
    ("y = HardSigmoid<beta: float = @a>(x)", "0.5", LIKE_X),
    ("y = ThresholdedRelu<alpha: float = @a>(x)", "0.5", LIKE_X),
    ("y = LRN<size: int = @a>(x)", "3", LIKE_X),
    ("y = Dropout<seed: int = @a>(x)", "3", LIKE_X),
    ("y = Softmax<axis: int = @a>(x)", "1", LIKE_X),
    ("y = Gemm<alpha: float = @a>(m, m)", "0.5", "float32[5, 5]"),
    (f"{ONES} y = LayerNormalization<epsilon: float = @a>(x, ones)", "0.5", LIKE_X),
    (f"{ONES} y = LayerNormalization<axis: int = @a>(x, ones)", "2", LIKE_X),
    ("y = Constant<value_float: float = @a>()", "0.5", "float32[]"),
    ("y = Constant<value_floats: floats = @a>()", "[0.5]", "float32[?]"),
    ("y = Constant<value_int: int = @a>()", "1", "int64[]"),
    ("y = Constant<value_ints: ints = @a>()", "[1, 2]", "int64[?]"),
    ("y = Constant<value_string: string = @a>()", '"s"', "string[]"),
    ("y = Constant<value_strings: strings = @a>()", '["s"]', "string[?]"),
    ("k = Constant<value_float: float = @a>() y = Mul(x, k)", "0.5", LIKE_X),
    (
        "y = If(c)<then_branch = t () => (p) { p = Elu<alpha: float = @a>(x) }, "
        "else_branch = e () => (q) { q = Neg(x) }>",
        "0.5",
        LIKE_X,
    ),
]


def analysed(body: str, value: str) -> Analysis:
    analysis = infer_model(onnx.parser.parse_model(MODEL.replace("VALUE", value).replace("BODY", body)))
    assert analysis.ok, analysis.diagnostics
    return analysis


def as_written(analysis: Analysis, name: str = "y") -> str:
    """The type of a value in the function's body as written, `?` for what nobody knows."""
    known: ValueType = analysis.details.graphs["F", 0].types[name]
    if known.shape is None:
        return str(known)
    return str(known.with_shape([None if isinstance(dim, Dim) else dim for dim in known.shape]))


@pytest.mark.parametrize(("body", "value", "expected", "called"), DECIDED_BY_IT, ids=lambda text: text.split("<")[0])
def test_what_the_attribute_decides_is_not_known(body: str, value: str, expected: str, called: str) -> None:
    analysis = analysed(body, value)
    assert as_written(analysis) == expected
    assert str(analysis.types["y"]) == called


@pytest.mark.parametrize(("body", "value", "expected"), THE_SAME_FOR_ALL, ids=lambda text: text.split("<")[0])
def test_what_the_attribute_does_not_change_is_known(body: str, value: str, expected: str) -> None:
    assert as_written(analysed(body, value)) == expected


def test_an_attribute_that_a_call_does_not_give_is_absent() -> None:
    """A node that refers to it was taken to have it, with another default than its absence means."""
    text = MODEL.replace("<a = VALUE>", "").replace("BODY", f"{FIRST} b = Cast<to = 9>(first) n = Not(b) y = KEEP")
    compress = text.replace("KEEP", "Compress<axis: int = @a>(x, n)")
    assert str(infer_model(onnx.parser.parse_model(compress)).types["y"]) == "float32[1]"


def test_a_body_walked_quietly_does_not_stay_quiet() -> None:
    """A rule that ends in the midst of a body leaves the rest of the function to be reported."""
    body = """yes = Constant<value_int = 1>() b = Cast<to = 9>(yes)
        y = If(b)<then_branch = t () => (p) { p = Neg(x) }, else_branch: graph = @a>
        wrong = Relu(x, x)"""
    text = MODEL.replace("<a = VALUE>", "").replace("BODY", body).replace("y = my.f(x, z, m, c)", "y = Neg(x)")
    found = infer_model(onnx.parser.parse_model(text)).diagnostics
    assert [diagnostic.message for diagnostic in found] == ["Relu-14 takes 1 inputs, not 2"]


SAMPLE = 500


def referring(case: Any) -> Iterator[onnx.ModelProto]:
    """A model that calls a function of the case's node, once for each attribute, which is then that of the call."""
    (node,) = case.model.graph.node
    for position, attribute in enumerate(node.attribute):
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        model.opset_import.add(domain="my", version=1)
        function = model.functions.add(domain="my", name="f", opset_import=case.model.opset_import)
        function.attribute.append("given")
        inputs = [value.name for value in model.graph.input]
        function.input.extend(inputs)
        function.output.extend([value.name for value in model.graph.output])
        body = function.node.add()
        body.CopyFrom(node)
        body.attribute[position].CopyFrom(
            AttributeProto(name=attribute.name, type=attribute.type, ref_attr_name="given")
        )
        call = helper.make_node("f", inputs, list(function.output), domain="my")
        call.attribute.add().CopyFrom(attribute)
        call.attribute[0].name = "given"
        model.graph.ClearField("node")
        model.graph.node.append(call)
        yield model


def contradicts(written: ValueType, called: ValueType) -> bool:
    """Whether what is known of the body as written is not so at the call."""
    if written.kind == "unknown" or called.kind == "unknown":
        return False
    if written.kind != called.kind or (written.dtype is not None and written.dtype != called.dtype):
        return True
    if written.shape is None or called.shape is None:
        return False
    return len(written.shape) != len(called.shape) or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(written.shape, called.shape, strict=True)
    )


@pytest.mark.slow
def test_nothing_is_known_of_a_body_that_is_not_so_at_its_call() -> None:
    """The nodes of onnx's tests, with values of attributes that are not the defaults."""
    from node_tests import node_tests as onnx_node_tests

    cases = [case for case in onnx_node_tests() if len(case.model.graph.node) == 1 and not case.model.functions]
    wrong, known, compared = [], 0, 0
    for case in random.Random(0).sample(cases, SAMPLE):
        for model in referring(case):
            analysis = infer_model(model)
            types = analysis.details.graphs["F", 0].types
            for name in model.functions[0].output:
                compared += 1
                known += types[name].shape is not None
                if contradicts(types[name], analysis.types[name]):
                    wrong.append(f"{case.name}: {types[name]} as written, {analysis.types[name]} at the call")
    assert wrong == []
    assert known > 0.2 * compared > 0
