"""Sizes behind an If: what a branch requires tells its own sizes, and requires nothing of the model."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import splitgraph
from splitgraph.dim import Dim, evaluate
from splitgraph.inference.analysis import Analysis

POOLED = "p1 = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(p1)"
ROWS = "rest = Constant<value_ints=[-1]>() inner = Shape<start=1>(p) k = ReduceProd(inner)"
ROWS += " target = Concat<axis=0>(rest, k) r = Reshape(p, target)"
FIXED = "target = Constant<value_ints=[-1,147]>() r = Reshape(p, target)"
WHOLE = "means = GlobalAveragePool(x) flat = Flatten(means)"
TEN = "a = MatMul(r, w) y = Identity(a)"
CHANNELS = "y = MatMul(flat, u)"
BESIDE = "a = MatMul(r, w) b = MatMul(flat, u) c2 = Concat<axis=1>(a, b) y, z2 = Split<axis=1, num_outputs=2>(c2)"
SIX = "s = Constant<value_ints=[6,4]>() one = Constant<value_float=1.0>() y = Expand(one, s)"
FIVE = SIX.replace("6,4", "5,4")
PARTS = "s2 = Constant<value_ints=[2,4]>() k, l = Split<axis=0>(x, s2)"


def model_of(shape: str, then: str, other: str, before: str = "") -> onnx.ModelProto:
    inputs = f"float[{shape}] x, float[147,10] w, float[3,10] u, bool c"
    branches = f"then_branch = t () => (y) {{ {then} }}, else_branch = e () => (y) {{ {other} }}"
    text = f"g ({inputs}) => (result) {{ {before} out = If(c)<{branches}> result = Relu(out) }}"
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> {text}')


def is_unknown(found: Analysis, dim: object) -> bool:
    return isinstance(dim, Dim) and str(dim) in found.generated


def conditions(found: Analysis) -> list[str]:
    """The conditions that hold whichever branch runs."""
    return [str(each) for each in found.obligations if not each.branches]


# The shape of the input, both branches, what comes before, the type of the output, and sizes at which both run.
CASES: dict[str, tuple[str, str, str, str, str, dict[str, int]]] = {
    # What stays unknown, because either size can be the output's.
    "two sizes": ("N, 4", "y = Relu(x)", SIX, "", "float32[?, 4]", {"N": 3}),
    "another size than is required": ("N, 4", f"{PARTS} {FIVE}", "y = Relu(x)", "", "float32[?, 4]", {"N": 6}),
    "a constant number of columns": (
        "B, 3, H, W",
        f"{POOLED} {FIXED} {TEN}",
        f"{WHOLE} {CHANNELS}",
        "",
        "float32[?, 10]",
        {"B": 2, "H": 28, "W": 28},
    ),
    # What is known.
    "computed columns": (
        "B, 3, H, W",
        f"{POOLED} {ROWS} {TEN}",
        f"{WHOLE} {CHANNELS}",
        "",
        "float32[B, 10]",
        {"B": 2, "H": 30, "W": 28},
    ),
    "computed columns in the other branch": (
        "B, 3, H, W",
        f"{WHOLE} {CHANNELS}",
        f"{POOLED} {ROWS} {TEN}",
        "",
        "float32[B, 10]",
        {"B": 2, "H": 28, "W": 31},
    ),
    "named channels": (
        "B, C, H, W",
        f"{POOLED} {ROWS} {TEN}",
        f"{WHOLE} {CHANNELS}",
        "",
        "float32[B, 10]",
        {"B": 1, "C": 3, "H": 28, "W": 28},
    ),
    "pooled before": (
        "B, 3, H, W",
        f"{ROWS} {TEN}",
        f"{WHOLE} {CHANNELS}",
        POOLED,
        "float32[B, 10]",
        {"B": 3, "H": 28, "W": 28},
    ),
    "a fixed width": (
        "B, 3, H, 29",
        f"{POOLED} {ROWS} {TEN}",
        f"{WHOLE} {CHANNELS}",
        "",
        "float32[B, 10]",
        {"B": 2, "H": 28},
    ),
    "a later node of the branch tells the batch": (
        "B, 3, H, W",
        f"{POOLED} {FIXED} {WHOLE} {BESIDE}",
        f"{WHOLE} {CHANNELS}",
        "",
        "float32[B, 10]",
        {"B": 2, "H": 28, "W": 28},
    ),
    "the other branch says what is required": (
        "N, 4",
        f"{PARTS} y = Relu(x)",
        SIX,
        "",
        "float32[6, 4]",
        {"N": 6},
    ),
    "this branch says what is required": ("N, 4", "y = Relu(x)", f"{PARTS} {SIX}", "", "float32[N, 4]", {"N": 6}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_output_of_an_if(name: str) -> None:
    shape, then, other, before, expected, sizes = CASES[name]
    model = model_of(shape, then, other, before)
    found = splitgraph.infer(model)
    assert found.ok, found.diagnostics
    dims = found.types["result"].shape
    assert dims is not None
    assert f"float32[{', '.join('?' if is_unknown(found, dim) else str(dim) for dim in dims)}]" == expected
    assert conditions(found) == (["H//2 >= 2", "W//2 >= 2"] if before else [])
    for condition in (True, False):
        array = np.zeros([int(sizes.get(word.strip(), 0) or word) for word in shape.split(",")], np.float32)
        feeds = {"x": array, "w": np.zeros((147, 10), np.float32), "u": np.zeros((3, 10), np.float32)}
        (ran,) = ReferenceEvaluator(model).run(None, {**feeds, "c": np.array(condition)})
        for dim, size in zip(dims, ran.shape, strict=True):
            if not is_unknown(found, dim):
                assert size == (evaluate(dim, sizes) if isinstance(dim, Dim) else dim)


# Each as before, and without an If: there the requirements are those of the model.
@pytest.mark.parametrize("shape", ["B, 3, H, W", "B, C, H, W", "B, 3, H, 28", "B, 3, 28, 28"])
@pytest.mark.parametrize("rows", [ROWS, "r = Flatten(p)", ROWS.replace("(p)", "(p1)").replace("(p, t", "(p1, t")])
def test_a_product_of_pooled_sizes_divides_out(shape: str, rows: str) -> None:
    text = f"g (float[{shape}] x) => (r) {{ {POOLED} {rows} }}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> {text}')
    assert str(splitgraph.infer(model).types["r"]).startswith("float32[B, ")
