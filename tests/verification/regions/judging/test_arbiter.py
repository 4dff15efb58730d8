"""What the arbiter says of values on which an engine computes a region differently before and after."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from splitgraph.verification.engines.engine_process import Suspect
from splitgraph.verification.regions.judging.arbiter import Arbiter
from splitgraph.verification.regions.judging.widening import in_float64, widened
from splitgraph.verification.values import Value

from ...small_models import parsed
from ..model_pairs import Pair

pytestmark = pytest.mark.usefixtures("in_process")
F, F64, I64 = np.float32, np.float64, np.int64
LINE = "float[N] x => float[N] y"
SAME = Pair(LINE, "y = Neg(x)", "y = Mul(x, c)", constants={"c": F(-1)})
# A sum in which large terms cancel, in two orders.
CANCELS = Pair(
    "float[N] x, float[N] v => float[N] y",
    "a = Add(x, v) y = Sub(a, v)",
    "a = Sub(x, v) y = Add(a, v)",
)
WRONG = Pair(LINE, "y = Neg(x)", "y = Abs(x)")
WHOLE = Pair("float[N] x => int64[N] y", "y = Cast<to = 7>(x)", "f = Floor(x) y = Cast<to = 7>(f)")
HALVES = Pair(LINE, "h = Cast<to = 10>(x) y = Cast<to = 1>(h)", "h = Cast<to = 11>(x) y = Cast<to = 1>(h)")
DOUBLES = Pair(LINE, "h = Mul(x, x) y = Div(h, x)", "h = Div(x, x) y = Mul(h, x)")
UNHEARD = Pair(LINE, "y = local.Unheard(x)", "y = local.Other(x)")
ONE = F([1, -2, 3])


def suspect(inputs: Sequence[Value], before: Value, after: Value | None, kind: str = "captured") -> Suspect:
    outputs = [[before]] if after is None else [[before], [after]]
    return Suspect(kind, 0, "differs", {f"in.{place}": value for place, value in enumerate(inputs)}, outputs)


def models_of(pair: Pair) -> list[onnx.ModelProto]:
    """Return the models with the names of a region: their inputs are called "in.0", …"""
    models = []
    for model in pair.models():
        names = {value.name: f"in.{place}" for place, value in enumerate(model.graph.input)}
        for value in model.graph.input:
            value.name = names[value.name]
        for node in model.graph.node:
            node.input[:] = [names.get(name, name) for name in node.input]
        models.append(model)
    return models


def opinion(pair: Pair, found: Suspect, engine: str = "onnxruntime", **options: Any) -> tuple[str, str]:
    deadline = options.pop("deadline", time.monotonic() + 60)
    arbiter = Arbiter(engine, 1e-5, 1e-6, deadline, **options)
    judged = arbiter.judge(models_of(pair), [None, None], found)
    return judged.cause, judged.who


# Above a power of 2, numbers are rounded more than below.
SMALL, LARGE = F([0.1, 0.2, 0.3]), F([1024, 2048, 4096])
# A pair of models, what an engine computed, and the opinion of it.
JUDGED: dict[str, tuple[Pair, Suspect, tuple[str, str]]] = {
    # The models.
    "the models": (WRONG, suspect([ONE], -ONE, abs(ONE)), ("models", "")),
    "the models and the engine, before": (WRONG, suspect([ONE], ONE, abs(ONE)), ("models", "before")),
    "the models and the engine, after": (WRONG, suspect([ONE], -ONE, ONE), ("models", "after")),
    "one side that fails": (WRONG, suspect([ONE], -ONE, None), ("models", "")),
    "integers that differ": (
        WHOLE,
        suspect([F([-1.5])], I64([-1]), I64([-2])),
        ("models", ""),
    ),
    "float16 in between that overflows": (
        HALVES,
        suspect([F([1, 1e10])], F([1, math.inf]), F([1, 1e10]), "ends"),
        ("models", ""),
    ),
    # The engine.
    "the engine, after": (SAME, suspect([ONE], -ONE, ONE), ("engine", "after")),
    "the engine, before": (SAME, suspect([ONE], ONE, -ONE), ("engine", "before")),
    "the engine, both sides": (SAME, suspect([ONE], ONE, 2 * ONE), ("engine", "both sides")),
    "drawn values without an answer": (UNHEARD, suspect([ONE], ONE, -ONE, "ends"), ("unheard", "")),
    "special values without an answer": (UNHEARD, suspect([ONE], ONE, -ONE, "gaps"), ("unheard", "")),
    # No answer, on values at which engines agree.
    "values of the model without an answer": (UNHEARD, suspect([ONE], ONE, -ONE), ("models", "")),
    "ordinary values without an answer": (UNHEARD, suspect([ONE], ONE, -ONE, "normal"), ("models", "")),
    "positions without an answer": (UNHEARD, suspect([ONE], ONE, -ONE, "rows"), ("models", "")),
    # Rounding.
    "float32 in between that overflows": (
        DOUBLES,
        suspect([F([1, 1e30])], F([1, math.inf]), F([1, 1e30]), "ends"),
        ("rounding", ""),
    ),
    "numbers that cancel": (
        CANCELS,
        suspect([SMALL, LARGE], (SMALL + LARGE) - LARGE, (SMALL - LARGE) + LARGE),
        ("rounding", ""),
    ),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
@pytest.mark.parametrize("name", JUDGED)
def test_what_differs(name: str) -> None:
    pair, found, expected = JUDGED[name]
    assert opinion(pair, found) == expected


def test_the_reference_evaluator_is_asked_only_for_rounding() -> None:
    assert opinion(SAME, suspect([ONE], -ONE, ONE), "reference") == ("models", "")
    _, found, _ = JUDGED["numbers that cancel"]
    assert opinion(CANCELS, found, "reference") == ("rounding", "")


@pytest.mark.parametrize("kind", ["ends", "gaps", "mixed"])
def test_without_an_answer_the_same_kernels_are_believed_at_any_numbers(kind: str) -> None:
    found = suspect([ONE], ONE, -ONE, kind)
    assert opinion(UNHEARD, found)[0] == "unheard"
    assert opinion(UNHEARD, found, has_same_kernels=True)[0] == "models"
    # An answer counts.
    assert opinion(SAME, suspect([ONE], -ONE, ONE, kind), has_same_kernels=True) == ("engine", "after")


def test_at_plain_numbers_the_same_kernels_are_believed_in_any_case() -> None:
    """onnxruntime and the evaluator disagree about what an attribute of Attention-23 says: so do their users."""
    assert opinion(SAME, suspect([ONE], -ONE, ONE, "captured"), has_same_kernels=True) == ("models", "after")
    assert opinion(SAME, suspect([ONE], -ONE, ONE, "captured")) == ("engine", "after")


def test_other_constants_are_no_rounding() -> None:
    found = suspect([ONE], F([0.01, -0.02, 0.03]), F([0.0100002, -0.0200004, 0.03]), "captured")
    pair = Pair(LINE, "y = Mul(x, c)", "y = Mul(x, d)", constants={"c": F(0.01), "d": F(0.0100002)})
    assert opinion(pair, found, is_exact=True)[0] == "models"


def test_signs_of_zeros_are_no_rounding() -> None:
    pair = Pair(LINE, "y = Identity(x)", "y = Add(x, c)", constants={"c": F(0)})
    found = suspect([F([-0.0, 1])], F([-0.0, 1]), F([0.0, 1]))
    assert opinion(pair, found, signed=(0,))[0] == "models"
    assert opinion(pair, found)[0] != "models"


DOUBLE = "double[N] x => double[N] y"
# The first model, and how much float64 numbers differ: as much as float32 rounds.
THROUGH_FLOAT = "a = Cast<to = 1>(x) b = Exp(a) y = Cast<to = 11>(b)"
IN_BETWEEN = {
    "float32 in the first model": (THROUGH_FLOAT, "y = Exp(x)", "rounding"),
    "float32 in the second model alone": ("y = Exp(x)", THROUGH_FLOAT, "models"),
    "no float32": ("y = Exp(x)", "a = Neg(x) b = Exp(a) y = Reciprocal(b)", "models"),
}


@pytest.mark.parametrize("name", IN_BETWEEN)
def test_what_the_first_model_computes_in_a_narrower_type_may_be_rounded_as_there(name: str) -> None:
    before, after, cause = IN_BETWEEN[name]
    x = np.array([0.1, 0.2])
    found = suspect([x], np.exp(x), np.exp(x) * (1 + 1e-7))
    arbiter = Arbiter("reference", 1e-5, 1e-6, time.monotonic() + 60)
    assert arbiter.judge(models_of(Pair(DOUBLE, before, after)), [None, None], found).cause == cause


def test_without_time_there_is_no_answer() -> None:
    found = suspect([ONE], -ONE, ONE)
    assert opinion(SAME, found, deadline=-math.inf) == ("models", "")
    drawn = suspect([ONE], -ONE, ONE, "gaps")
    assert opinion(SAME, drawn, deadline=-math.inf) == ("late", "")


# In float64 -----------------------------------------------------------------------------------------------------------

WIDENED = {
    "an initializer": (parsed(LINE, "y = Mul(x, c)", c=F(0.1)), F64(F(0.1))),
    "a Constant node": (
        parsed(LINE, "k = Constant<value = float {0.5}>() y = Mul(x, k)"),
        F64(0.5),
    ),
    "a number of a Constant node": (parsed(LINE, "k = Constant<value_float = 0.5>() y = Mul(x, k)"), F64(0.5)),
    "numbers of a Constant node": (parsed(LINE, "k = Constant<value_floats = [0.5]>() y = Mul(x, k)"), F64(0.5)),
    "a Cast to float16": (parsed(LINE, "k = Cast<to = 10>(c) l = CastLike(k, x) y = Mul(x, l)", c=F(0.1)), F64(F(0.1))),
    "ConstantOfShape": (
        parsed(LINE, "s = Shape(x) z = ConstantOfShape(s) a = Add(z, c) y = Mul(x, a)", c=F(0.1)),
        F64(F(0.1)),
    ),
    "a body": (
        parsed(
            LINE,
            "g = Constant<value = bool {1}>() k = If(g) <then_branch = t () => (float a) "
            "{ a = Constant<value = float {0.5}>() }, else_branch = e () => (float b) "
            "{ b = Constant<value_float = 2.0>() }> y = Mul(x, k)",
        ),
        F64(0.5),
    ),
}


@pytest.mark.parametrize("name", WIDENED)
def test_everything_is_computed_in_float64(name: str) -> None:
    from onnx.reference import ReferenceEvaluator

    model, factor = WIDENED[name]
    before = model.SerializeToString()
    wide = widened(model)
    x = np.array([1 / 3, 2 / 3])
    (found,) = ReferenceEvaluator(wide).run(None, {"x": x})
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, x * factor, rtol=1e-15)
    assert model.SerializeToString() == before


@pytest.mark.parametrize("opset", [18, 21])
def test_a_group_normalization_is_computed_in_float64(opset: int) -> None:
    """Since opset 21 its function body casts to stash_type, which is float32 by default."""
    from onnx.reference import ReferenceEvaluator

    size = 2 if opset < 21 else 4
    made = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": {opset}]> g (float[1, 4, 2] x, float[{size}] s, float[{size}] b) => '
        "(float[1, 4, 2] y) { y = GroupNormalization<num_groups = 2, epsilon = 0.0> (x, s, b) }"
    )
    # Its variance is that of the squares: of numbers near to 0, it loses nothing.
    x = np.linspace(1, 2, 8).reshape(1, 4, 2)
    inputs = {"x": x, "s": np.ones(size), "b": np.zeros(size)}
    (found,) = ReferenceEvaluator(in_float64(made, None)).run(None, inputs)
    groups = x.reshape(2, 4)
    centred = groups - groups.mean(1, keepdims=True)
    expected = (centred / np.sqrt((centred**2).mean(1, keepdims=True))).reshape(x.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_external_data_is_read(tmp_path: Path) -> None:
    from onnx.reference import ReferenceEvaluator

    model = parsed("float[4] x => float[4] y", "y = Mul(x, c)", c=F([0.1, 0.2, 0.3, 0.4]))
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="data", size_threshold=0)
    left = onnx.load(path, load_external_data=False)
    assert left.graph.initializer[0].data_location == TensorProto.EXTERNAL
    (found,) = ReferenceEvaluator(widened(left, tmp_path)).run(None, {"x": np.ones(4)})
    np.testing.assert_array_equal(found, np.float64(F([0.1, 0.2, 0.3, 0.4])))
