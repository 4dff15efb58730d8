"""Bodies of local functions that cannot be converted as written: inlined where that is what makes it possible."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import splitgraph
from splitgraph.verification.reference.evaluator import load, run

HEAD = '<ir_version: 8, opset_import: ["": 18, "my": 1]> g (float[2, 3, 4] x) => (float[A, B, C] y)'
MINE = '<domain: "my", opset_import: ["": 18, "my": 1]>'

# Calls, functions, and the target. What each call gives, the body does not know.
INLINED = {
    "an axis": ("y = my.f <a: int = 1> (x)", [f"{MINE} f <a> (x) => (y) {{ y = Softmax <axis: int = @a> (x) }}"], 11),
    "axes of a reduction": (
        "y = my.f <a: ints = [0]> (x)",
        [f"{MINE} f <a> (x) => (y) {{ c = Constant <value_ints: ints = @a> () y = ReduceMax (x, c) }}"],
        11,
    ),
    "axes of Unsqueeze and Squeeze": (
        "y = my.f <a: ints = [1]> (x)",
        [
            f"{MINE} f <a> (x) => (y) {{ c = Constant <value_ints: ints = @a> () u = Unsqueeze (x, c)"
            " y = Squeeze (u, c) }"
        ],
        11,
    ),
    "two calls": (
        "z = my.f <a: int = 1> (x) y = my.f <a: int = 0> (z)",
        [f"{MINE} f <a> (x) => (y) {{ y = LogSoftmax <axis: int = @a> (x) }}"],
        12,
    ),
    "a function that another calls": (
        "y = my.outer (x)",
        [
            f"{MINE} outer (x) => (y) {{ y = my.f <a: ints = [1]> (x) }}",
            f"{MINE} f <a> (x) => (y) {{ c = Constant <value_ints: ints = @a> () y = ReduceMean (x, c) }}",
        ],
        10,
    ),
    "one of five": (
        "y = my.f <a: int = 2> (x)",
        [
            f"{MINE} f <a> (x) => (y) {{ y = Hardmax <axis: int = @a> (x) }}",
            *(f"{MINE} f{index} (x) => (y) {{ y = Neg (x) }}" for index in range(4)),
        ],
        11,
    ),
}


def parsed(call: str, functions: list[str]) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"{HEAD} {{ {call} }} {' '.join(functions)}")


@pytest.mark.parametrize("name", INLINED)
def test_inlined_where_that_makes_it_possible(name: str) -> None:
    call, functions, target = INLINED[name]
    model = parsed(call, functions)
    result = splitgraph.downgrade(model, target, ir_version="keep")
    assert not result.model.functions
    (note,) = result.diagnostics
    assert (note.code, note.severity) == ("SG413", "info")
    assert f"inlined {len(functions)} local function" in note.message
    assert len(note.message) < 150
    assert note.message.count("my.") == min(len(functions), 3)
    onnx.checker.check_model(splitgraph.infer(result.model).model, full_check=True)
    data = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    for expected, found in zip(run(load(model), {"x": data}), run(load(result.model), {"x": data}), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


KEPT = [
    ("y = my.f (x)", [f"{MINE} f (x) => (y) {{ y = Softmax <axis = 1> (x) }}"], 11),
    ("y = my.f <a: float = 0.5> (x)", [f"{MINE} f <a> (x) => (y) {{ y = LeakyRelu <alpha: float = @a> (x) }}"], 15),
    ("y = my.f (x)", [f"{MINE} f (x) => (y) {{ a, y = Split <axis = 2, num_outputs = 2> (x) }}"], 13),
]


@pytest.mark.parametrize(("call", "functions", "target"), KEPT)
def test_functions_that_are_not_in_the_way_stay(call: str, functions: list[str], target: int) -> None:
    result = splitgraph.downgrade(parsed(call, functions), target, ir_version="keep")
    assert (len(result.model.functions), result.diagnostics) == (1, ())


def test_what_inlining_does_not_help_is_told_of_the_model_as_it_is() -> None:
    body = f"{MINE} f (x) => (y) {{ y = my.other (x) }}"
    model = parsed("z = my.f (x) y = Mish (z)", [body])
    model.functions[0].node[0].domain = ""
    model.functions[0].node[0].op_type = "BitwiseNot"
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.downgrade(model, 11)
    assert any(found.location.startswith(("main/f", "my::f")) for found in caught.value.diagnostics)


def test_the_fewer_blockers_are_told() -> None:
    function = f"{MINE} f <a> (x) => (y) {{ y = Softmax <axis: int = @a> (x) }}"
    model = parsed("z = my.f <a: int = 1> (x) w = SequenceConstruct (z) y = Neg (x)", [function])
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.downgrade(model, 10)
    assert not any("enclosing function" in found.message for found in caught.value.diagnostics)
