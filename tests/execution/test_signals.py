"""Inputs of models that cut windows from a signal, and choose what to do by numbers such as its sampling rate."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from splitgraph.execution import verify_models
from splitgraph.execution.attempts import MANNERS
from splitgraph.execution.child import EngineRun, Failure, Workplace
from splitgraph.execution.inputs import InputMaker
from splitgraph.inference import infer_model

from .small_models import constant, graph_of, model_of, node, value

INT64 = TensorProto.INT64
SIGNAL = value("x", ("B", "N"))


def windowed(length: int) -> onnx.ModelProto:
    """Windows of a signal and a state of the same batch, which only a branch tells."""
    lengths = constant("window", [1, 1, length])
    then = graph_of([node("Mul", ["x", "s"], ["p"])], [], ["p"], name="then")
    other = graph_of([node("Sub", ["x", "s"], ["q"])], [], ["q"], name="other")
    nodes = [
        node("Equal", ["rate", "usual"], ["is_usual"]),
        node("If", ["is_usual"], ["chosen"], then_branch=then, else_branch=other),
        node("Unsqueeze", ["chosen", "one"], ["line"]),
        node("Reshape", ["ones", "window"], ["kernel"]),
        node("Conv", ["line", "kernel"], ["y"]),
    ]
    held = [constant("usual", 16000), constant("one", [1]), lengths, constant("ones", np.ones(length), np.float32)]
    return model_of(nodes, [SIGNAL, value("s", ("S", 1)), value("rate", (), INT64)], ["y"], held)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("length", [400, 250])
def test_a_window_that_is_longer_than_usual_sizes(length: int) -> None:
    found = verify_models(windowed(length), windowed(length), engine="onnxruntime")
    assert (found.verdict, found.cases) == ("equal", 3), found


SIGNALS = [number for number, manner in enumerate(MANNERS) if manner.signal_length]


def maker_of(model: onnx.ModelProto, **options: dict[str, int]) -> InputMaker:
    return InputMaker(infer_model(model, fill=False), **options)  # type: ignore[arg-type]


def test_signals_are_long_and_all_else_is_not() -> None:
    inputs = [SIGNAL, value("k", ("K",), INT64), value("b", ("B", "M"), TensorProto.BOOL), value("n", (), INT64)]
    model = model_of([node("Neg", ["x"], ["y"])], inputs, ["y"])
    shapes = []
    for attempt in SIGNALS:
        drawn, _ = maker_of(model).draw(0, attempt)
        shapes.append({name: array.shape for name, array in drawn.items()})
        # Which may say how much of the signal counts.
        assert drawn["k"] == drawn["x"].shape[1]
    assert shapes == [{"x": (1, length), "k": (1,), "b": (1, 1), "n": ()} for length in (4000, 256)]
    drawn, _ = maker_of(model, bind={"N": 8}).draw(0, SIGNALS[0])
    assert drawn["x"].shape == (1, 8)


def test_a_number_is_what_it_is_compared_with_in_the_second_case() -> None:
    numbers = [
        maker_of(windowed(250)).draw(case, attempt)[0]["rate"].item()
        for attempt in (0, SIGNALS[0])
        for case in range(4)
    ]
    assert [number == 16000 for number in numbers] == [False, True, False, False] * 2


@pytest.mark.parametrize(("cause", "verdict"), [("SIGFPE", "equal"), ("SIGSEGV", "not-run")])
def test_a_division_by_0_ends_the_engine_and_says_something_of_the_inputs(
    cause: str, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: Workplace, engine: str, attempts: list, seconds: float, probe: object) -> EngineRun:  # type: ignore[type-arg]
        done = EngineRun()
        for each in attempts:
            if each.inputs["x"].shape[-1] < 250:
                done.failures.append(Failure("run", 0, each.case, True, f"crashed ({cause})"))
                break
            for outputs in done.outputs:
                outputs[each.case, each.attempt] = [np.full((2, 2), each.case, np.float32)]
        return done

    monkeypatch.setattr(Workplace, "run", run)
    model = model_of([node("Neg", ["x"], ["y"])], [SIGNAL], ["y"])
    assert verify_models(model, model, engine="onnxruntime").verdict == verdict
