"""verify_models end to end: what is equal, what is different, what could not be run, and what is proved."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from verifying import verify_models

from splitgraph.conversion.splits.forms import convert_forms
from splitgraph.verification.engines.engine_process import EngineFailure, EngineRun, Workplace

from .small_models import constant, graph_of, halves, model_of, node, parsed, split_model, value

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def redirect(model: onnx.ModelProto, output: str, *nodes: onnx.NodeProto, dtype: int = FLOAT) -> onnx.ModelProto:
    """The model with one of its outputs computed from what it was: nodes read "old" and give the output's name."""
    for existing in model.graph.node:
        existing.output[:] = ["old" if name == output else name for name in existing.output]
    model.graph.node.extend(nodes)
    for declared in model.graph.output:
        if declared.name == output:
            declared.CopyFrom(value(output, None, dtype))
    return model


def drop_output() -> onnx.ModelProto:
    model = halves()
    del model.graph.output[1]
    return model


def reorder_outputs() -> onnx.ModelProto:
    model = halves()
    model.graph.output.reverse()
    return model


def rename(kind: str) -> onnx.ModelProto:
    model = halves()
    if kind == "output":
        redirect(model, "q", node("Identity", ["old"], ["q2"]))
        model.graph.output[1].name = "q2"
    else:
        model.graph.input[0].name = "x2"
        for each in model.graph.node:
            each.input[:] = ["x2" if name == "x" else name for name in each.input]
    return model


def collapse_batch() -> onnx.ModelProto:
    model = halves()
    model.graph.initializer.extend([constant("axes", [0])])
    return redirect(model, "p", node("ReduceMean", ["old", "axes"], ["p"], keepdims=1))


def add_rank() -> onnx.ModelProto:
    model = halves()
    model.graph.initializer.extend([constant("axes", [0])])
    return redirect(model, "p", node("Unsqueeze", ["old", "axes"], ["p"]))


def first_row() -> onnx.ModelProto:
    model = halves()
    return redirect(model, "p", node("Slice", ["old", "zero", "one", "zero"], ["p"]))


def declare_fixed(where: str, size: int) -> onnx.ModelProto:
    model = halves()
    declared = getattr(model.graph, where)[0]
    name = declared.name
    declared.CopyFrom(value(name, (size, "T", 4)))
    return model


MUTANTS: dict[str, tuple[onnx.ModelProto, str]] = {
    "two outputs swapped": (halves(order="ba"), "shape|elements differ"),
    "two outputs in another order": (reorder_outputs(), "another order"),
    "an output dropped": (drop_output(), "the second model has no output 'q'"),
    "an output renamed": (rename("output"), "the second model has no output 'q'"),
    "an input renamed": (rename("input"), "the second model has no input 'x'"),
    "the declared type of an output changed": (
        halves(dtype=TensorProto.DOUBLE),
        "float32 in the first model and float64",
    ),
    "the type of an output changed, undeclared": (
        redirect(halves(), "p", node("Cast", ["old"], ["p"], to=TensorProto.DOUBLE), dtype=0),
        "float64",
    ),
    "a batch dimension collapsed": (collapse_batch(), "shape"),
    "the batch cut to its first row": (first_row(), "shape"),
    "an input's batch declared 1": (declare_fixed("input", 1), "declared with shape"),
    "an output's batch declared 1": (declare_fixed("output", 1), "declared with shape"),
    "a rank added": (add_rank(), "shape"),
    "lengths off by one with the same total, for odd sizes only": (halves("floor"), "shape"),
    "a relative error of 5e-4": (halves(scale=1.0005), "elements differ"),
    "no error but the sign of small numbers": (redirect(halves(), "q", node("Abs", ["old"], ["q"])), "elements differ"),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_different(name: str) -> None:
    mutant, reason = MUTANTS[name]
    found = verify_models(halves(), mutant)
    assert found.verdict == "different", found
    assert found.first_difference is not None
    assert any(part in found.first_difference.reason for part in reason.split("|"))


@pytest.mark.usefixtures("in_process")
def test_a_fixed_length_off_by_one_with_the_same_total() -> None:
    before, after = (split_model(13, lengths=lengths, axis=1) for lengths in ([1, 3], [2, 2]))
    found = verify_models(before, after, engine="reference")
    assert found.verdict == "different"
    assert found.first_difference is not None
    assert (found.first_difference.name, found.first_difference.case) == ("a", 0)


def reserialised(model: onnx.ModelProto) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(model.SerializeToString())


EQUAL: dict[str, tuple[onnx.ModelProto, onnx.ModelProto, int]] = {
    "the same": (halves(), reserialised(halves()), 3),
    "half a rounding error": (halves(), halves(scale=1.000001), 3),
    "equal parts of 13 and 18": (split_model(13), split_model(18, num_outputs=2), 3),
    "attribute and input": (split_model(11, lengths=[1, 3], axis=1), split_model(13, lengths=[1, 3], axis=1), 3),
    "omitted outputs": (split_model(11, outputs=["", "b"]), split_model(18, outputs=["", "b"], num_outputs=2), 3),
    "of 1 and 2": (split_model(1, axis=0), split_model(2), 3),
    "without symbols": (split_model(13, dims=(2, 4)), split_model(18, dims=(2, 4), num_outputs=2), 3),
    "empty parts": (
        split_model(18, dims=(5, 4), outputs="abcd", num_outputs=4),
        split_model(18, dims=(5, 4), outputs="abcd", lengths=[2, 2, 1, 0]),
        3,
    ),
    "a repaired split": (split_model(18), split_model(18, num_outputs=2), 3),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", EQUAL)
def test_equal_models(name: str) -> None:
    before, after, cases = EQUAL[name]
    found = verify_models(before, after)
    assert (found.verdict, found.cases) == ("equal", cases), found
    assert found.first_difference is None
    assert found.max_abs_diff is not None
    assert found.max_rel_diff is not None


@pytest.mark.parametrize("engine", ["reference", "onnxruntime", "openvino"])
def test_each_engine(engine: Any) -> None:
    found = verify_models(split_model(13), split_model(18, num_outputs=2), engine=engine, samples=2)
    if importlib.util.find_spec(engine) is None and engine != "reference":
        assert (found.verdict, found.diagnostics[0].code) == ("not-run", "SG503")
    else:
        assert (found.verdict, found.engine, found.cases) == ("equal", engine, 2)


BAD_ARGUMENTS = [
    ({"engine": "tensorrt"}, "no engine 'tensorrt'; there are: auto, reference, onnxruntime, openvino"),
    ({"samples": 0}, "samples is 0"),
    ({"timeout": 0}, "timeout is 0"),
    ({"timeout": float("nan")}, "timeout is nan"),
    ({"bind": {"Q": 1}}, "is named 'Q'"),
    ({"inputs": {"z": np.zeros(1)}}, "no input 'z'"),
]


@pytest.mark.parametrize(("options", "reason"), BAD_ARGUMENTS)
def test_arguments_that_fit_nothing(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        verify_models(halves(), halves(), **options)


def test_neither_model_is_changed_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    before, after = split_model(18), split_model(18, num_outputs=2)
    texts = before.SerializeToString(), after.SerializeToString()
    assert verify_models(before, after, engine="reference", samples=1, timeout=float("inf")).verdict == "equal"
    assert (before.SerializeToString(), after.SerializeToString()) == texts
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("engine", ["auto", "reference", "onnxruntime"])
def test_uneven_dimensions_that_only_the_first_model_takes(engine: Any) -> None:
    found = verify_models(split_model(18, num_outputs=2), split_model(13), engine=engine)
    assert found.verdict == "different"
    assert found.first_difference is not None
    assert "fails on inputs that the first one runs on" in found.first_difference.reason


@pytest.mark.usefixtures("in_process")
def test_empty_parts_are_no_fault_of_the_model() -> None:
    before, after = (
        split_model(18, dims=("N", 4), outputs="abcd", num_outputs=4),
        split_model(18, dims=(5, 4), outputs="abcd", num_outputs=4),
    )
    explicit = split_model(18, dims=(5, 4), outputs="abcd", lengths=[2, 2, 1, 0])
    assert verify_models(explicit, after).verdict == "equal"
    written = convert_forms(before, "split", explicit_lengths=True).model
    assert verify_models(written, before).verdict == "equal"


@pytest.mark.usefixtures("in_process")
def test_given_arrays_and_bindings_make_one_case() -> None:
    array = np.ones((2, 5, 4), np.float32)
    found = verify_models(halves(), halves(), inputs={"x": array}, engine="reference")
    assert (found.verdict, found.cases) == ("equal", 1)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("size", "is_seen"), [(6, False), (7, True)])
def test_a_difference_in_an_inner_value_counts_at_sizes_at_which_no_output_shows_it(size: int, is_seen: bool) -> None:
    """One model adds 1 before it divides by 2: the outputs tell that for odd sizes only."""
    found = verify_models(halves(), halves("floor"), bind={"T": size}, engine="reference")
    assert (found.verdict, [region.name for region in found.regions]) == ("different", ["main/Add#1"])
    assert ("the outputs are equal on the inputs that were tried" in found.difference_text) is not is_seen


@pytest.mark.usefixtures("in_process")
def test_the_callers_tolerance() -> None:
    found = verify_models(halves(), halves(scale=1.0005), rtol=1e-3, engine="reference", samples=1)
    assert found.verdict == "equal"
    assert found.max_rel_diff == pytest.approx(5e-4, rel=1e-2)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("tolerances", "verdict"), [({}, "different"), ({"rtol": 0.5}, "equal"), ({"atol": 10}, "equal")]
)
def test_the_callers_tolerance_holds_for_other_weights_too(tolerances: dict[str, float], verdict: str) -> None:
    assert verify_models(halves(), halves(scale=1.3), **tolerances).verdict == verdict


@pytest.mark.usefixtures("in_process")
def test_another_value_of_a_default_shows_a_constant_folded_away() -> None:
    weights = constant("w", np.ones(4), np.float32)
    inputs = [value("x"), value("w", (4,))]
    before = model_of([node("Mul", ["x", "w"], ["y"])], inputs, ["y"], [weights])
    after = model_of([node("Identity", ["x"], ["y"])], inputs, ["y"], [weights])
    found = verify_models(before, after, engine="reference")
    assert found.first_difference is not None
    assert found.first_difference.case == 1


@pytest.mark.usefixtures("in_process")
def test_random_numbers_are_not_compared() -> None:
    noise = node("RandomNormalLike", ["x"], ["y"])
    model = model_of([noise], [value("x")], ["y"])
    found = verify_models(model, model, engine="reference", samples=1)
    assert found.verdict == "not-run"
    assert "random" in found.diagnostics[-1].message
    noise.attribute.append(helper.make_attribute("seed", 3.0))
    seeded = model_of([noise], [value("x")], ["y"])
    assert verify_models(seeded, seeded, engine="reference", samples=1).verdict == "equal"


DRAWN = {
    "another operator of one distribution": ("u = RandomUniformLike<seed = 1.0>(x) y = Less(u, x)", "not-run"),
    "another seed": ("b = Bernoulli<seed = 2.0>(x) y = Cast<to = 9>(b)", "different"),
    "another distribution": ("u = RandomNormalLike<seed = 1.0>(x) y = Less(u, x)", "different"),
    "one more": (
        "b = Bernoulli<seed = 1.0>(x) u = RandomUniformLike<seed = 1.0>(x) l = Less(u, x) c = Cast<to = 9>(b) "
        "y = Xor(c, l)",
        "different",
    ),
    "none": ("z = Sub(x, x) y = Less(z, x)", "different"),
    "the same": ("b = Bernoulli<seed = 1.0>(x) y = Cast<to = 9>(b)", "equal"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_of_one_seed_two_operators_draw_different_numbers(name: str) -> None:
    body, verdict = DRAWN[name]
    signature = "float[64] x => bool[64] y"
    before = parsed(signature, "b = Bernoulli<seed = 1.0>(x) y = Cast<to = 9>(b)")
    inputs = {"x": np.full(64, 0.5, np.float32)}
    assert verify_models(before, parsed(signature, body), inputs=inputs).verdict == verdict


@pytest.mark.usefixtures("in_process")
def test_inputs_that_the_first_model_refuses_are_drawn_again() -> None:
    """Only multiples of 32 go into rows of 32, which no declaration says."""
    nodes = [node("Reshape", ["x", "pairs"], ["y"])]
    model = model_of(nodes, [value("x", ("N",))], ["y"], [constant("pairs", [32, -1])])
    found = verify_models(model, model)
    assert (found.verdict, found.cases) == ("equal", 3)


def branches(lengths: list[int]) -> onnx.ModelProto:
    def branch(name: str, sizes: list[int]) -> onnx.GraphProto:
        split = node("Split", ["x", f"{name}_sizes"], [f"{name}_a", f"{name}_b"], axis=1)
        return graph_of([split], [], [f"{name}_a"], [constant(f"{name}_sizes", sizes)], name)

    choice = node("If", ["c"], ["y"], then_branch=branch("then", [1, 3]), else_branch=branch("else", lengths))
    return model_of([choice], [value("c", (), BOOL), value("x")], ["y"])


@pytest.mark.usefixtures("in_process")
def test_both_branches_of_a_condition_are_taken() -> None:
    found = verify_models(branches([2, 2]), branches([3, 1]), engine="reference")
    assert found.verdict == "different"


# Proofs ---------------------------------------------------------------------------------------------------------------


def named(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    model.graph.node[-1].name = name
    return model


def on_unknown_sizes() -> onnx.ModelProto:
    nodes = [node("NonZero", ["x"], ["z"]), node("Split", ["z"], ["a", "b"], axis=1)]
    return model_of(nodes, [value("x")], [value("a", None, INT64), value("b", None, INT64)], opset=13)


def thirds() -> onnx.ModelProto:
    return split_model(18, num_outputs=3, outputs="abc")


PROOFS: list[tuple[onnx.ModelProto, onnx.ModelProto, tuple[str, ...]]] = [
    (named(split_model(13), "s"), split_model(18, num_outputs=2), ("main/s",)),
    (named(split_model(11, lengths=[1, 3], axis=-1), "h/a"), split_model(18, lengths=[1, 3], axis=1), ("main/h/a",)),
    (
        named(split_model(18, num_outputs=3, outputs="abc"), "s"),
        split_model(18, num_outputs=3, outputs="abc"),
        ("main/s",),
    ),
    (split_model(13, lengths=[1, 3], axis=1), split_model(13, lengths=[2, 2], axis=1), ()),
    (split_model(13, lengths=[2, 2], dims=(4, 4)), split_model(13, lengths=[2, 2], axis=1, dims=(4, 4)), ()),
    (split_model(13), split_model(13, outputs="ac"), ()),
    (split_model(13), split_model(13, dims=("M", 4)), ()),
    (on_unknown_sizes(), on_unknown_sizes(), ()),
]


@pytest.mark.parametrize(("before", "after", "proofs"), PROOFS)
def test_splits_that_are_equal_for_every_size(
    monkeypatch: pytest.MonkeyPatch, before: onnx.ModelProto, after: onnx.ModelProto, proofs: tuple[str, ...]
) -> None:
    monkeypatch.setattr(
        Workplace,
        "run",
        lambda self, name, attempts, seconds, **options: EngineRun(
            failures=[EngineFailure("load", 1, None, True, "NOT_IMPLEMENTED")]
        ),
    )
    assert verify_models(before, after).proofs == proofs


@pytest.mark.usefixtures("in_process")
def test_proofs_in_branches_and_in_spite_of_a_difference() -> None:
    found = verify_models(branches([2, 2]), branches([3, 1]), engine="reference")
    (proof,) = found.proofs
    assert "then_branch" in proof
