"""Models that are made for one sample at a time: what they demand is met, or found by trying."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from splitgraph.execution import verify_models
from splitgraph.execution.attempts import MANNERS
from splitgraph.execution.inputs import InputMaker
from splitgraph.inference import infer_model

from .small_models import parsed

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


@pytest.mark.usefixtures("in_process")
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
    singles = [number for number, manner in enumerate(MANNERS) if manner.single is not None]
    shapes = [InputMaker(infer_model(model, fill=False)).draw(0, number)[0]["x"].shape for number in singles[:3]]
    assert [shape.index(1) for shape in shapes] == [0, 1, 3]
    assert all(min(size for size in shape if size not in (1, 3)) >= 7 for shape in shapes)
    bound = InputMaker(infer_model(model, fill=False), bind={"T": 5}).draw(0, singles[0])[0]["x"].shape
    assert bound[:2] == (5, 1)
