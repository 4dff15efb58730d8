"""Rewrites that round differently in models that amplify that: rounding is no difference, and a mistake stays one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto
from verifying import verify_models

from splitgraph.verification.regions.judging.arbiter import Arbiter
from splitgraph.verification.regions.judging.evaluations import Answers
from splitgraph.verification.verification import Verification

from ...sensitive_models import HALF_QUIET, LOGARITHM, QUIET, STEPS, TURNS, arithmetic, normalization, sensitive
from ...small_models import node, value

pytestmark = pytest.mark.usefixtures("in_process")
Nodes = list[onnx.NodeProto]


def compare(before: onnx.ModelProto, after: onnx.ModelProto) -> Verification:
    return verify_models(before, after, rtol=1e-4, atol=1e-5)


AMPLIFIED = {"turns": TURNS, "steps": STEPS, "the rest quiet": HALF_QUIET, "a logarithm": LOGARITHM}


@pytest.mark.parametrize("name", AMPLIFIED)
def test_a_right_rewrite_is_equal_where_the_rest_amplifies_rounding(name: str) -> None:
    before, after = (sensitive([*nodes, *AMPLIFIED[name]]) for nodes in (normalization(), arithmetic()))
    found = compare(before, after)
    assert (found.verdict, found.cases) == ("equal", 3), found
    (region,) = found.regions
    assert (region.verdict, region.nodes_before) == ("equal", ("main/LayerNormalization#0",))
    assert region.max_abs_diff is not None and 0 < region.max_abs_diff < 1e-4
    # The outputs differ as they do, and a note says why that does not count.
    assert found.max_abs_diff is not None
    noted = [(each.code, each.severity) for each in found.diagnostics]
    assert noted == ([("SG504", "info")] if found.max_abs_diff > 1e-3 else [])


def test_rounding_that_nobody_had_time_to_judge_has_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Arbiter._run

    def only_with_tolerances(arbiter: Arbiter, folders: Any, models: Any, inputs: list[Any]) -> Any:
        if arbiter.rtol == 0:
            return [Answers((None, None), is_late=True) for _ in inputs]
        return run(arbiter, folders, models, inputs)

    monkeypatch.setattr(Arbiter, "_run", only_with_tolerances)
    found = compare(*(sensitive([*nodes, *TURNS]) for nodes in (normalization(), arithmetic())))
    assert (found.verdict, [each.code for each in found.diagnostics]) == ("not-run", ["SG506"])
    assert "was not judged in time" in found.diagnostics[0].message


def test_weights_in_another_file_are_read_to_tell_rounding(tmp_path: Path) -> None:
    paths = []
    for name, nodes in (("before", normalization()), ("after", arithmetic())):
        paths.append(tmp_path / f"{name}.onnx")
        model = sensitive([*nodes, *TURNS])
        onnx.save(model, paths[-1], save_as_external_data=True, location=f"{name}.data", size_threshold=0)
    loaded = [onnx.load(path, load_external_data=False) for path in paths]
    found = verify_models(*loaded, rtol=1e-4, atol=1e-5, folders=(tmp_path, tmp_path))
    assert (found.verdict, [each.code for each in found.diagnostics]) == ("equal", ["SG504"])


def test_a_stash_type_that_is_written_out_changes_nothing() -> None:
    written = node("LayerNormalization", ["x", "weight", "bias"], ["t"], axis=-1, epsilon=1e-5, stash_type=1)
    found = compare(sensitive([written, *TURNS]), sensitive([*arithmetic(), *TURNS]))
    assert (found.verdict, [each.code for each in found.diagnostics]) == ("equal", ["SG504"])


def test_nothing_is_said_where_nothing_was_amplified() -> None:
    before, after = (sensitive([*nodes, *QUIET]) for nodes in (normalization(), arithmetic()))
    found = compare(before, after)
    assert (found.verdict, found.diagnostics) == ("equal", ())


def test_integers_of_amplified_rounding_are_equal() -> None:
    """The outputs are integers that differ, and every part that was changed computes the same."""
    whole = [*STEPS[:2], node("Cast", ["whole"], ["y"], to=TensorProto.INT64)]
    outputs = [value("y", None, TensorProto.INT64)]
    before, after = (sensitive([*nodes, *whole], outputs) for nodes in (normalization(), arithmetic()))
    found = compare(before, after)
    assert (found.verdict, [each.code for each in found.diagnostics]) == ("equal", ["SG504"])


def scaled_tail(factor: float) -> onnx.ModelProto:
    """An error where nothing is amplified, in a model that amplifies elsewhere."""
    nodes = [*arithmetic(), *TURNS[:1], node("Sin", ["angle"], ["sine"]), node("Mul", ["t", "one"], ["u"])]
    model = sensitive([*nodes, node("Concat", ["u", "sine"], ["y"], axis=-1)])
    model.graph.initializer.append(onnx.helper.make_tensor("one", TensorProto.FLOAT, [], [factor]))
    return model


def renamed(nodes: Sequence[onnx.NodeProto], names: dict[str, str], prefix: str) -> Nodes:
    """The nodes with some values under other names, and what they compute with a prefix."""
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


def without_bias() -> Nodes:
    return arithmetic(bias="no_bias")


# Each with what follows in the first model.
MISTAKES: dict[str, tuple[Nodes, Callable[[], onnx.ModelProto]]] = {
    "another epsilon": (QUIET, lambda: sensitive([*arithmetic(), *QUIET], epsilon=30.0)),
    "a small error of a quiet model": (QUIET, lambda: sensitive([*arithmetic(), *QUIET], two=1.0005)),
    "a coefficient": (QUIET, lambda: sensitive([*arithmetic(), *QUIET], weight=1.0005)),
    "an axis": (QUIET, lambda: sensitive([*arithmetic(axis=0), *QUIET])),
    "no bias": (QUIET, lambda: sensitive([*without_bias(), *QUIET])),
    "a coefficient, before turns": (TURNS, lambda: sensitive([*arithmetic(), *TURNS], weight=1.001)),
    "a coefficient, before steps": (STEPS, lambda: sensitive([*arithmetic(), *STEPS], weight=1.001)),
    "a coefficient, before a logarithm": (LOGARITHM, lambda: sensitive([*arithmetic(), *LOGARITHM], weight=1.001)),
    "another axis, before steps": (STEPS, lambda: sensitive([*arithmetic(axis=0), *STEPS])),
    "no bias, before turns": (TURNS, lambda: sensitive([*without_bias(), *TURNS])),
    "another epsilon, before turns": (TURNS, lambda: sensitive([*arithmetic(), *TURNS], epsilon=2.0)),
    "another scale of the steps": (STEPS, lambda: sensitive([*arithmetic(), *STEPS], many=1.001)),
    "another frequency": (TURNS, lambda: sensitive([*arithmetic(), *TURNS], many=1.001)),
    "an error in the quiet half": (HALF_QUIET, lambda: scaled_tail(1.0005)),
    "other weights before turns": (TURNS, lambda: sensitive([*normalization(), *TURNS], weight=1.001)),
    "an attribute of what follows": (
        [node("Softmax", ["t"], ["y"], axis=0)],
        lambda: sensitive([*arithmetic(), node("Softmax", ["t"], ["y"])]),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.sample(5)
def test_a_mistake_is_different_all_the_same(name: str) -> None:
    rest, mistaken = MISTAKES[name]
    found = compare(sensitive([*normalization(), *rest]), mistaken())
    assert found.verdict == "different", found
    assert all(each.code != "SG504" for each in found.diagnostics)


LAYERS: dict[str, tuple[Nodes, str]] = {
    "both right": (twice(arithmetic), "equal"),
    "one right, one kept": (twice(normalization, arithmetic), "equal"),
    "the second one wrong": (twice(arithmetic, without_bias), "different"),
    "the first one wrong": (twice(without_bias, arithmetic), "different"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_each_layer_is_held_to_what_it_does_itself(name: str) -> None:
    nodes, verdict = LAYERS[name]
    found = compare(sensitive(twice(normalization)), sensitive(nodes))
    assert found.verdict == verdict, found
    assert len(found.regions) == (1 if "kept" in name else 2)
    wrong = [region.name for region in found.regions if region.verdict == "different"]
    places = ("first", "second")
    assert wrong == [f"main/LayerNormalization#{places.index(place)}" for place in places if f"{place} one" in name]


def test_a_mistake_that_chaos_would_drown() -> None:
    """Where rounding makes anything of a model's results, only the part that was replaced can tell."""
    many = 1e3
    before = sensitive([*normalization(), *STEPS], many=many)
    right, wrong = (sensitive([*arithmetic(), *STEPS], many=many, weight=factor) for factor in (1.0, 1.0005))
    assert compare(before, right).verdict == "equal"
    assert compare(before, wrong).verdict == "different"


def test_one_output_amplifies_and_another_one_does_not() -> None:
    outputs = ("y", "q")
    quiet = node("Mul", ["t", "two"], ["q"])
    before = sensitive([*normalization(), *TURNS, quiet], outputs)
    right = sensitive([*arithmetic(), *TURNS, quiet], outputs)
    wrong = sensitive([*arithmetic(), *TURNS, quiet], outputs, two=1.0005)
    assert compare(before, right).verdict == "equal"
    found = compare(before, wrong)
    assert found.verdict == "different"


@pytest.mark.parametrize(("weight", "verdict"), [(1.0, "equal"), (1.001, "different")])
def test_the_reference_evaluator_tells_rounding_as_well(weight: float, verdict: str) -> None:
    before = sensitive([*normalization(), *TURNS], dims=(4, 64))
    after = sensitive([*arithmetic(), *TURNS], dims=(4, 64), weight=weight)
    found = verify_models(before, after, engine="reference", rtol=1e-4, atol=1e-5)
    assert (found.verdict, found.engine) == (verdict, "reference")
