"""Rewrites that round otherwise: a difference is none where rounding makes it as well, and is one everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from verifying import verify_models

from splitgraph.inference import infer_model
from splitgraph.verification.engines.engine import load_engine
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.rounding import measure
from splitgraph.verification.rounding.measure import with_noise
from splitgraph.verification.verification import Verification

from ..sensitive_models import HALF_QUIET, LOGARITHM, QUIET, STEPS, TURNS, arithmetic, normalization, sensitive
from ..small_models import constant, model_of, node, value

pytestmark = pytest.mark.usefixtures("in_process")


def compare(before: onnx.ModelProto, after: onnx.ModelProto, *, rounding: bool = True) -> Verification:
    return verify_models(before, after, rtol=1e-4, atol=1e-5, rounding=rounding)


MAGNIFIED = {"turns": TURNS, "steps": STEPS, "the rest quiet": HALF_QUIET}


@pytest.mark.parametrize("name", MAGNIFIED)
def test_a_right_rewrite_is_equal_where_the_model_magnifies_rounding(name: str) -> None:
    before, after = (sensitive([*nodes, *MAGNIFIED[name]]) for nodes in (normalization(), arithmetic()))
    plain, found = compare(before, after, rounding=False), compare(before, after)
    assert plain.verdict == "different"
    assert found.verdict == "equal", found
    assert found.cases == 3
    # What was measured is told as it is.
    assert found.max_abs_diff is not None
    assert found.max_abs_diff > 1e-4
    noted = [(each.code, each.severity) for each in found.diagnostics]
    assert noted == [("SG504", "info")]


def test_nothing_is_said_where_nothing_was_magnified() -> None:
    before, after = (sensitive([*nodes, *QUIET]) for nodes in (normalization(), arithmetic()))
    found = compare(before, after)
    assert (found.verdict, found.diagnostics) == ("equal", ())


def steps_scaled(factor: float) -> onnx.ModelProto:
    return sensitive([*arithmetic(), *STEPS], many=factor)


def tail_scaled(factor: float) -> onnx.ModelProto:
    """An error where nothing is magnified, of a model that magnifies elsewhere."""
    nodes = [*arithmetic(), *TURNS[:1], node("Sin", ["angle"], ["sine"]), node("Mul", ["t", "one"], ["u"])]
    model = sensitive([*nodes, node("Concat", ["u", "sine"], ["y"], axis=-1)])
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(factor), "one"))
    return model


# Each with what follows in the original.
MISTAKES: dict[str, tuple[list[onnx.NodeProto], Callable[[], onnx.ModelProto]]] = {
    "another epsilon": (QUIET, lambda: sensitive([*arithmetic(), *QUIET], epsilon=30.0)),
    "a small error of a quiet model": (QUIET, lambda: sensitive([*arithmetic(), *QUIET], two=1.0005)),
    "a coefficient, before turns": (TURNS, lambda: sensitive([*arithmetic(), *TURNS], weight=1.001)),
    "a coefficient, before steps": (STEPS, lambda: sensitive([*arithmetic(), *STEPS], weight=1.001)),
    "a coefficient, before a logarithm": (LOGARITHM, lambda: sensitive([*arithmetic(), *LOGARITHM], weight=1.001)),
    "another axis, before steps": (STEPS, lambda: sensitive([*arithmetic(axis=0), *STEPS])),
    "no bias, before turns": (TURNS, lambda: sensitive([*arithmetic(bias="no_bias"), *TURNS])),
    "another epsilon, before turns": (TURNS, lambda: sensitive([*arithmetic(), *TURNS], epsilon=2.0)),
    "another scale of the steps": (STEPS, lambda: steps_scaled(1.001)),
    "another frequency": (TURNS, lambda: sensitive([*arithmetic(), *TURNS], many=1.001)),
    "an error in the quiet half": (HALF_QUIET, lambda: tail_scaled(1.0005)),
    # Nothing was written otherwise that could have rounded.
    "no arithmetic at all": (TURNS, lambda: sensitive([*normalization(), *TURNS], weight=1.00001)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_different_all_the_same(name: str) -> None:
    rest, mistaken = MISTAKES[name]
    found = compare(sensitive([*normalization(), *rest]), mistaken())
    assert found.verdict == "different", found
    assert all(each.code != "SG504" for each in found.diagnostics)


def test_each_output_is_held_to_its_own_effect() -> None:
    outputs = ("y", "q")
    quiet = node("Mul", ["t", "two"], ["q"])
    before = sensitive([*normalization(), *TURNS, quiet], outputs)
    right = sensitive([*arithmetic(), *TURNS, quiet], outputs)
    wrong = sensitive([*arithmetic(), *TURNS, quiet], outputs, two=1.0005)
    assert compare(before, right).verdict == "equal"
    found = compare(before, wrong)
    assert found.verdict == "different"


def test_integers_are_the_same_or_different() -> None:
    whole = [*STEPS[:2], node("Cast", ["whole"], ["y"], to=TensorProto.INT64)]
    outputs = [value("y", None, TensorProto.INT64)]
    before, after = (sensitive([*nodes, *whole], outputs) for nodes in (normalization(), arithmetic()))
    assert compare(before, after).verdict == "different"


def no_room(*given: object) -> None:
    raise OSError(28, "No space left on device")


OBSTACLES = {
    "many weights": ("_LARGEST_WEIGHTS", 100),
    "no time": ("run_model", lambda *given: {}),
    "no room": ("run_model", no_room),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_nothing_is_allowed_where_nothing_can_be_measured(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, *OBSTACLES[name])
    before, after = (sensitive([*nodes, *TURNS]) for nodes in (normalization(), arithmetic()))
    assert compare(before, after).verdict == "different"


def test_the_reference_evaluator_measures_as_well() -> None:
    before, after = (sensitive([*nodes, *TURNS], dims=(4, 64)) for nodes in (normalization(), arithmetic()))
    tolerances = {"rtol": 1e-4, "atol": 1e-5}
    found = verify_models(before, after, engine="reference", rounding=True, **tolerances)
    assert (found.verdict, found.engine) == ("equal", "reference")
    wrong = sensitive([*arithmetic(), *TURNS], dims=(4, 64), weight=1.001)
    assert verify_models(before, wrong, engine="reference", rounding=True, **tolerances).verdict == "different"


FLOAT, HALF, BRAIN, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE


def compared(model: onnx.ModelProto) -> ComparedModel:
    return ComparedModel(model, model, infer_model(model, fill=False))


def rounded_to(dtype: int, op_type: str = "Neg") -> onnx.ModelProto:
    """x to a type, one operator, and back to float64."""
    nodes = [node("Cast", ["x"], ["c"], to=dtype), node(op_type, ["c"], ["d"]), node("Cast", ["d"], ["y"], to=DOUBLE)]
    return model_of(nodes, [value("x", ("N",), DOUBLE)], [value("y", ("N",), DOUBLE)])


# The distance from 1 to the next larger number.
TYPES = {"float64": (DOUBLE, 2.0**-52), "float32": (FLOAT, 2.0**-23), "float16": (HALF, 2.0**-10)}
TYPES["bfloat16"] = (BRAIN, 2.0**-7)


@pytest.mark.parametrize("dtype", TYPES)
def test_noise_is_of_a_few_steps_of_the_type(dtype: str, tmp_path: Path) -> None:
    number, step = TYPES[dtype]
    model = rounded_to(number)
    noisy = with_noise(compared(model), [1], 0)
    onnx.checker.check_model(noisy)
    x = np.concatenate([np.linspace(-8, 8, 257), [1e-3, 30000.0]])
    still, moved = (run(each, {"x": x}, tmp_path) for each in (model, noisy))
    assert np.all(moved[still == 0] == 0)
    apart = np.abs(moved - still)[still != 0] / np.abs(still[still != 0])
    # Twice two steps, and as much again as each product is rounded.
    assert 0 < apart.max() <= 8 * step
    assert not np.array_equal(run(with_noise(compared(model), [1], 1), {"x": x}, tmp_path), moved)


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray], folder: Path) -> np.ndarray:
    path = folder / "model.onnx"
    onnx.save(model, str(path))
    engine = "reference" if "bfloat16" in str(infer_model(model, fill=False).types) else "onnxruntime"
    return np.asarray(load_engine(engine, path).run(feeds)[0])


def test_nodes_and_values_that_get_none() -> None:
    nodes = [
        node("Shape", ["x"], ["size"]),
        node("Mul", ["x", "weight"], ["scaled"]),
        node("Constant", [], ["half"], value=constant("", 0.5, np.float32)),
        node("Add", ["scaled", "half"], ["noise_0"]),
        node("Identity", ["noise_0"], ["y"]),
    ]
    model = model_of(nodes, [value("x")], [value("y")], [constant("weight", 2.0, np.float32)])
    told = model.SerializeToString(deterministic=True)
    for places in ([], [0]):
        assert [n.op_type for n in with_noise(compared(model), places, 0).graph.node if "Random" in n.op_type] == (
            ["RandomUniformLike"] * len(places)
        )
    noisy = with_noise(compared(model), [1, 3], 0)
    onnx.checker.check_model(noisy, full_check=True)
    # x, scaled, scaled again and noise_0: not the weight, nor the constant.
    drawn = [each for each in noisy.graph.node if each.op_type == "RandomUniformLike"]
    assert len(drawn) == 4
    assert len({onnx.helper.get_node_attr_value(each, "seed") for each in drawn}) == 4
    assert [value.name for value in noisy.graph.output] == ["y"]
    assert model.SerializeToString(deterministic=True) == told
