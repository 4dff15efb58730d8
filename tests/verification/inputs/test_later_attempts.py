"""Attempts at a case: each demands less, until the model accepts the inputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from verifying import verify_models

from splitgraph.inference import infer_model
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.inputs.later_attempts import RETRY_POLICY

from ..small_models import constant, graph_of, model_of, node, parsed, value

RNG = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:  # type: ignore[type-arg]
    return RNG.standard_normal(shape).astype(np.float32)


# A number that is 1, which inference cannot tell: the sign of what is never below 1.
ONE = """
    most = ReduceMax<keepdims = 0>(x, axes) a = Abs(most) more = Add(a, onef) sign = Sign(more) k = Cast<to = 7>(sign)
    ones = Reshape(k, one)
"""
HELD = {"axes": np.array([0, 1, 2]), "one": np.array([1]), "onef": np.float32(1), "four": np.array([4])}
GRU = {"w": weights(1, 12, 3), "r": weights(1, 12, 4)}
LSTM = {"w": weights(1, 16, 3), "r": weights(1, 16, 4)}


def demanding(before: str, *, signature: str = "float[T, N, 3] x => float[A, B, C, D] y") -> onnx.ModelProto:
    """A GRU whose initial state has a batch of 1 that no one can tell."""
    body = f"{ONE} d = Concat<axis = 0>(one, ones, four) h = Expand(h0, d) {before}"
    return parsed(signature, body, **HELD, **GRU, h0=weights(1, 1, 4))


KNOWN = {
    "GRU": parsed(
        "float[T, N, 3] x => float[T, 1, N, 4] y", "y = GRU<hidden_size = 4>(x, w, r, , , h)", **GRU, h=weights(1, 1, 4)
    ),
    "LSTM": parsed(
        "float[T, N, 3] x => float[T, 1, N, 4] y",
        "y = LSTM<hidden_size = 4>(x, w, r, , , h, c)",
        **LSTM,
        h=weights(1, 1, 4),
        c=weights(1, 1, 4),
    ),
    "lengths": parsed(
        "float[T, N, 3] x => float[T, 1, N, 4] y",
        "y = GRU<hidden_size = 4>(x, w, r, , l)",
        **GRU,
        l=np.array([2], np.int32),
    ),
    "an instance": parsed("float[1, C, L] x => float[1, C, L] y", "y = InstanceNormalization(x, s, s)", s=weights(3)),
    "behind windows": parsed(
        "float[N, 3, L] x => float[T, 1, N, 4] y",
        "f = Conv<strides = [4]>(x, k) t = Transpose<perm = [2, 0, 1]>(f) y = GRU<hidden_size = 4>(t, w, r, , , h)",
        **GRU,
        k=weights(3, 3, 8),
        h=weights(1, 1, 4),
    ),
}
UNSEEN = {
    "the second": demanding("y = GRU<hidden_size = 4>(x, w, r, , , h)"),
    "the first": demanding(
        "t = Transpose<perm = [1, 0, 2]>(x) y = GRU<hidden_size = 4>(t, w, r, , , h)",
        signature="float[N, T, 3] x => float[A, B, C, D] y",
    ),
    "beside a long one": demanding(
        "m = Mul(ones, steps) p = Slice(x, zero, m) q = Reshape(p, flat) z = MatMul(q, v) g = GRU<hidden_size = 4>"
        "(x, w, r, , , h) y = Add(g, z)"
    ),
    "beside two others": demanding(
        "j = MatMul(e, e2) i = ReduceMean<keepdims = 0>(j) g = GRU<hidden_size = 4>(x, w, r, , , h) y = Add(g, i)",
        signature="float[T, N, 3] x, float[E, F] e, float[F, G] e2 => float[A, B, C, D] y",
    ),
}
LONG = {"steps": np.array([60]), "zero": np.array([0]), "flat": np.array([-1]), "v": weights(180)}
UNSEEN["beside a long one"].graph.initializer.extend(
    parsed("int64 i => int64 o", "o = Neg(i)", **LONG).graph.initializer
)


# In a process of its own: onnxruntime ends on a GRU of size 0, which is one of the unusual inputs.
@pytest.mark.parametrize("model", KNOWN.values(), ids=KNOWN)
def test_what_states_demand_is_met_at_once(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: set[int] = set()
    draw = InputMaker.draw

    def noted(self: InputMaker, case: int, attempt: int = 0, earlier: object = ()) -> object:
        attempts.add(attempt)
        return draw(self, case, attempt, earlier)  # type: ignore[arg-type]

    monkeypatch.setattr(InputMaker, "draw", noted)
    found = verify_models(model, model, engine="onnxruntime")
    assert (found.verdict, found.cases, found.diagnostics) == ("equal", 3, ())
    assert attempts == {0}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("model", UNSEEN.values(), ids=UNSEEN)
def test_what_is_demanded_unseen_is_found_by_trying(model: onnx.ModelProto) -> None:
    found = verify_models(model, model, engine="onnxruntime")
    assert (found.verdict, found.engine) == ("equal", "onnxruntime"), found
    # Not at sizes of 1 alone.
    assert "SG505" not in {each.code for each in found.diagnostics}


def test_each_dimension_is_1_in_turn_with_the_others_large() -> None:
    model = parsed("float[T, N, 3, L] x => float[T, N, 3, L] y", "y = Neg(x)")
    singles = [number for number, rule in enumerate(RETRY_POLICY) if rule.single is not None]
    shapes = [InputMaker(infer_model(model, fill=False)).draw(0, number)[0]["x"].shape for number in singles[:3]]
    assert [shape.index(1) for shape in shapes] == [0, 1, 3]
    assert all(min(size for size in shape if size not in (1, 3)) >= 7 for shape in shapes)
    bound = InputMaker(infer_model(model, fill=False), bind={"T": 5}).draw(0, singles[0])[0]["x"].shape
    assert bound[:2] == (5, 1)


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


SIGNALS = [number for number, rule in enumerate(RETRY_POLICY) if rule.signal_length]


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
