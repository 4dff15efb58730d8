"""What a rewrite does with other arithmetic, and whether that gives the same by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from verifying import verify_models

from splitgraph.inference import infer_model
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.rounding import measure
from splitgraph.verification.rounding.isolate import Case, Isolated, agree_in_isolation, isolate
from splitgraph.verification.verdict.engine_trial import EngineTrial

from ..sensitive_models import QUIET, STEPS, TURNS, WIDTH, arithmetic, normalization, sensitive
from ..small_models import constant, graph_of, model_of, node, value

pytestmark = pytest.mark.usefixtures("in_process")
Nodes = list[onnx.NodeProto]


def compared(model: onnx.ModelProto) -> ComparedModel:
    return ComparedModel(model, model, infer_model(model, fill=False))


def find(before: onnx.ModelProto, after: onnx.ModelProto) -> Isolated | None:
    return isolate(compared(before), compared(after))


def renamed(nodes: Sequence[onnx.NodeProto], names: dict[str, str], prefix: str) -> Nodes:
    """The nodes with some values under other names, and all others but constants with a prefix."""
    made = {name for each in nodes for name in each.output}
    copies = []
    for each in nodes:
        copied = onnx.NodeProto.FromString(each.SerializeToString())
        for held in (copied.input, copied.output):
            held[:] = [names.get(name, prefix + name if name in made else name) for name in held]
        copies.append(copied)
    return copies


def twice(layer: Callable[[], Nodes], again: Callable[[], Nodes] | None = None) -> Nodes:
    """One layer after the other: x to t, and t to u."""
    return [*layer(), *renamed((again or layer)(), {"x": "t", "t": "u"}, "second_"), node("Neg", ["u"], ["y"])]


def in_a_branch(inner: Nodes) -> onnx.ModelProto:
    branches = [graph_of(renamed(inner, {"t": name}, name), [], [value(name, None)], name=name) for name in "pq"]
    choice = node("If", ["condition"], ["y"], then_branch=branches[0], else_branch=branches[1])
    model = sensitive([choice])
    model.graph.input.append(value("condition", (), TensorProto.BOOL))
    return model


def in_a_function(inner: Nodes, outer: bool = False) -> onnx.ModelProto:
    inputs = ["x", "weight", "bias", "epsilon"]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    functions = [helper.make_function("local", "Norm", inputs, ["t"], inner, imports)]
    if outer:
        call = helper.make_node("Norm", inputs, ["t"], domain="local")
        functions.append(helper.make_function("local", "Outer", inputs, ["t"], [call], imports))
    call = helper.make_node("Outer" if outer else "Norm", inputs, ["t"], domain="local")
    model = sensitive([call, *QUIET])
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.extend(functions)
    return model


def split(as_slices: bool) -> onnx.ModelProto:
    bounds = [constant("zero", [0]), constant("two", [2]), constant("four", [4])]
    cut = [node("Slice", ["x", "zero", "two"], ["a"]), node("Slice", ["x", "two", "four"], ["b"])]
    parts = cut if as_slices else [node("Split", ["x"], ["a", "b"], axis=0)]
    return model_of([*parts, node("Sub", ["a", "b"], ["y"])], [value("x", (4, 4))], ["y"], bounds, opset=17)


FOUND: dict[str, tuple[onnx.ModelProto, onnx.ModelProto, list[int] | None]] = {
    "one node": (sensitive([*normalization(), *QUIET]), sensitive([*arithmetic(), *QUIET]), [0]),
    "one node of several": (sensitive([*normalization(), *TURNS]), sensitive([*arithmetic(), *TURNS]), [0]),
    "two of them": (sensitive(twice(normalization)), sensitive(twice(arithmetic)), [0, 1]),
    "the second": (sensitive(twice(normalization)), sensitive(twice(normalization, arithmetic)), [1]),
    "none": (sensitive([*normalization(), *QUIET]), sensitive([*normalization(), *QUIET], weight=2.0), None),
    "what is only moved": (split(False), split(True), None),
    "in a branch": (in_a_branch(normalization()), in_a_branch(arithmetic()), None),
    "a function": (in_a_function(normalization()), in_a_function(arithmetic()), [0]),
    "a function of a function": (in_a_function(normalization(), True), in_a_function(arithmetic(), True), [0]),
    "the same function": (in_a_function(normalization()), in_a_function(normalization()), None),
    "a function put in place": (in_a_function(normalization()), sensitive([*arithmetic(), *QUIET]), [0]),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found(name: str) -> None:
    before, after, positions = FOUND[name]
    told = [model.SerializeToString(deterministic=True) for model in (before, after)]
    found = find(before, after)
    assert (None if found is None else found.positions) == positions
    assert told == [model.SerializeToString(deterministic=True) for model in (before, after)]


def agrees(before: onnx.ModelProto, after: onnx.ModelProto, tolerance: float = 1e-4) -> bool:
    found = find(before, after)
    assert found is not None
    x = np.random.default_rng(3).standard_normal((64, WIDTH)).astype(np.float32)
    return agree_in_isolation(
        compared(before), found, {0: Case({"x": x}, ())}, "onnxruntime", math.inf, (tolerance, tolerance / 10)
    )


@pytest.mark.parametrize("name", [name for name, (_, _, positions) in FOUND.items() if positions])
def test_what_is_right_agrees_on_its_own(name: str) -> None:
    before, after, _ = FOUND[name]
    assert agrees(before, after)
    assert not agrees(before, after, 0.0)


WRONG: dict[str, tuple[Nodes, onnx.ModelProto]] = {
    "a coefficient": ([*normalization(), *QUIET], sensitive([*arithmetic(), *QUIET], weight=1.0005)),
    "a bias": ([*normalization(), *QUIET], sensitive([*arithmetic(bias="no_bias"), *QUIET])),
    "an axis": ([*normalization(), *QUIET], sensitive([*arithmetic(axis=0), *QUIET])),
    "the second of two": (twice(normalization), sensitive(twice(arithmetic, lambda: arithmetic(bias="no_bias")))),
    "the first of two": (twice(normalization), sensitive(twice(lambda: arithmetic(bias="no_bias"), arithmetic))),
    "what follows": ([*normalization(), *QUIET], sensitive([*arithmetic(), *QUIET], two=1.0005)),
    "an attribute of what follows": (
        [*normalization(), node("Softmax", ["t"], ["y"], axis=0)],
        sensitive([*arithmetic(), node("Softmax", ["t"], ["y"])]),
    ),
    "a type": (
        [*normalization(), *QUIET],
        sensitive([*renamed(arithmetic(), {"x": "x"}, "r_"), node("Cast", ["r_t"], ["t"], to=TensorProto.DOUBLE)]),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_does_not(name: str) -> None:
    nodes, after = WRONG[name]
    if name == "a type":
        after.graph.output[0].name = "t"
    assert not agrees(sensitive(nodes), after)


def test_a_mistake_that_chaos_would_drown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rounding makes anything of a model's results, only what was replaced can tell whether it is right."""
    rest, many = STEPS, 1e3
    before = sensitive([*normalization(), *rest], many=many)
    right, wrong = (sensitive([*arithmetic(), *rest], many=many, weight=factor) for factor in (1.0, 1.0005))
    options = {"rtol": 1e-4, "atol": 1e-5, "rounding": True}
    # Unusual inputs show the mistake, too.
    monkeypatch.setattr(EngineTrial, "_draw_extras", lambda self, base: None)
    assert verify_models(before, right, **options).verdict == "equal"
    assert verify_models(before, wrong, **options).verdict == "different"
    monkeypatch.setattr(measure, "agree_in_isolation", lambda *given: True)
    assert verify_models(before, wrong, **options).verdict == "equal"
