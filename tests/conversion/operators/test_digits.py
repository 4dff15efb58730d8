"""Forms that a conversion writes keep the digits that the original has: numbers far from 0, large, small and mixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import splitgraph
from splitgraph.verification.regions.judging.widening import widened

F = np.float32
EPS = 2.0**-24
# A form may round differently, and may not lose two digits.
ALLOWED = 30.0
# Of a number of mean 1e4 and deviation 1, float32 has four digits behind the mean.
LEFT = 2e-3
SHAPE, IMAGES = "float[8, 16, 12]", "float[2, 4, 5, 3]"


def model(opset: int, inputs: str, outputs: str, body: str, **constants: Any) -> onnx.ModelProto:
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {{ {body} }}')
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items())
    return made


def line(opset: int, body: str, shape: str = SHAPE, **constants: Any) -> onnx.ModelProto:
    return model(opset, f"{shape} x", f"{shape} y", body, **constants)


def ones(count: int) -> Any:
    return np.ones(count, F)


def grouped(x: Any, groups: int) -> Any:
    rows = x.reshape(x.shape[0], groups, -1)
    centred = rows - rows.mean(-1, keepdims=True)
    return (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)).reshape(x.shape)


def standardised(x: Any) -> Any:
    return (x - x.mean((0, 2, 3), keepdims=True)) / x.std((0, 2, 3), keepdims=True)


def log_softmax(x: Any) -> Any:
    less = x - x.max(1, keepdims=True)
    return less - np.log(np.exp(less).sum(1, keepdims=True))


# What the reference evaluator computes less exactly than it could.
EXACT: Mapping[str, Callable[[Any], Any]] = {
    "GroupNormalization-18": lambda x: grouped(x, 4),
    "GroupNormalization-21": lambda x: grouped(x, 4),
    "MeanVarianceNormalization-9": standardised,
    "MeanVarianceNormalization-13": standardised,
    "LogSoftmax": log_softmax,
}
GROUPS = "y = GroupNormalization <num_groups = 4> (x, s, b)"
ALL_AXES = "a = Constant <value_ints = [2]> () y = {} (x, a)"


def reduced(name: str) -> onnx.ModelProto:
    return model(18, f"{SHAPE} x", "float[8, 16, 1] y", ALL_AXES.format(name))


FORMS: dict[str, tuple[onnx.ModelProto, int]] = {
    "LayerNormalization": (line(17, "y = LayerNormalization (x, s, b)", s=ones(12), b=ones(12)), 16),
    "GroupNormalization-18": (line(18, GROUPS, s=ones(4), b=ones(4) * 0), 17),
    "GroupNormalization-21": (line(21, GROUPS, s=ones(16), b=ones(16) * 0), 18),
    "RMSNormalization": (line(23, "y = RMSNormalization (x, s)", s=ones(12)), 22),
    "MeanVarianceNormalization-9": (line(9, "y = MeanVarianceNormalization (x)", IMAGES), 8),
    "MeanVarianceNormalization-13": (line(13, "y = MeanVarianceNormalization (x)", IMAGES), 8),
    "Softmax": (line(13, "y = Softmax <axis = 1> (x)"), 12),
    "LogSoftmax": (line(13, "y = LogSoftmax <axis = 1> (x)"), 12),
    "ReduceLogSumExp": (reduced("ReduceLogSumExp"), 17),
    "ReduceL2": (reduced("ReduceL2"), 17),
    "ReduceSumSquare": (reduced("ReduceSumSquare"), 17),
    "Gelu": (line(20, "y = Gelu (x)"), 19),
    "Gelu by tanh": (line(20, 'y = Gelu <approximate = "tanh"> (x)'), 19),
    "Mish": (line(18, "y = Mish (x)"), 17),
    "Swish": (line(24, "y = Swish <alpha = 1.5> (x)"), 23),
    "Celu": (line(12, "y = Celu <alpha = 2.0> (x)"), 11),
    "HardSwish": (line(14, "y = HardSwish (x)"), 13),
    "Einsum": (model(12, f"{SHAPE} x", "float[8, 16, 16] y", 'y = Einsum <equation = "bij,bkj->bik"> (x, x)'), 11),
    "Mod": (line(13, "y = Mod <fmod = 1> (x, c)", c=F(3.7)), 9),
    "BatchNormalization": (
        line(15, "y = BatchNormalization (x, s, b, m, v)", s=ones(16), b=ones(16), m=ones(16) * 1e4, v=ones(16)),
        14,
    ),
}
NUMBERS: dict[str, Callable[[Any], Any]] = {
    "ordinary": lambda z: z,
    "around 1e4": lambda z: z + 1e4,
    "around 100": lambda z: z * 0.01 + 100,
    "below -50": lambda z: z - 50,
    "large": lambda z: z * 1e4,
    "small": lambda z: z * 1e-4,
}


def error(made: onnx.ModelProto, x: Any, exact: Any) -> float:
    """The largest error, relative to the largest number; infinite where one is no number and the other one is."""
    with np.errstate(all="ignore"):
        (found,) = ReferenceEvaluator(made).run(None, {"x": x})
    finite = np.isfinite(exact)
    if not np.array_equal(np.isfinite(found), finite) or not finite.any():
        return float("inf")
    return float(np.abs(found[finite] - exact[finite]).max() / max(np.abs(exact[finite]).max(), 1e-30))


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("name", FORMS)
def test_a_form_keeps_the_digits_of_the_original(name: str, numbers: str) -> None:
    before, opset = FORMS[name]
    sizes = [dim.dim_value for dim in before.graph.input[0].type.tensor_type.shape.dim]
    x = NUMBERS[numbers](np.random.default_rng(5).standard_normal(sizes)).astype(F)
    wide = x.astype(np.float64)
    exact = EXACT[name](wide) if name in EXACT else ReferenceEvaluator(widened(before)).run(None, {"x": wide})[0]
    own = error(before, x, exact)
    # The evaluator itself overflows in LogSoftmax, before and after.
    allowed = min(ALLOWED * max(own, EPS), LEFT) if own < np.inf or name != "LogSoftmax" else np.inf
    assert error(splitgraph.convert(before, opset=opset).model, x, exact) <= allowed
