"""What sizes had better be: what is read from models, what is drawn for it, and when it is given up."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from splitgraph.inference import infer_model
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.inputs.preferred import read_preferred
from splitgraph.verification.inputs.solver import SymbolSizes

from ..small_models import parsed


def preferences(model: onnx.ModelProto) -> list[list[str]]:
    analysis = infer_model(model, fill=False)
    names = [value.name for value in analysis.model.graph.input]
    found = read_preferred(analysis, {name: analysis.types[name] for name in names})
    return [[f"{c.lhs} {c.relation} {c.rhs}" for c in kind] for kind in (found.broadcasts, found.windows)]


def sizes(model: onnx.ModelProto, cases: int = 3, attempt: int = 0, **options: Any) -> list[SymbolSizes]:
    made = InputMaker(infer_model(model, fill=False), **options)
    chosen: list[SymbolSizes] = []
    for case in range(cases):
        chosen.append(made.draw(case, attempt, chosen)[1])
    return chosen


F = "float[N, 3, H, W] x"
DOUBLE = '<domain: "local", opset_import: ["": 18]> F (a) => (b) { b = MaxPool<kernel_shape = [2], strides = [2]>(a) }'
CALLED = "y = local.F(x)"

READ: list[tuple[onnx.ModelProto, list[str], list[str]]] = [
    # model, broadcasts, windows
    (parsed("float[N] x => float[N] y", "y = Relu(x)"), [], []),
    (parsed("float[N, 4] x => float[N, 4] y", "y = Add(x, x)"), [], []),
    (parsed("float[N, 1] x, float[1, M] z => float[N, M] y", "y = Add(x, z)"), [], []),
    (parsed("float[N] x => float[M] y, float[K] z", "y, z = Split<axis = 0, num_outputs = 2>(x)"), [], []),
    (parsed(f"{F} => float[N, 3, 1, 1] y", "y = GlobalMaxPool(x)"), [], []),
    (parsed("float[2, 3, 9, 9] x => float[2, 3, 4, 4] y", "y = MaxPool<kernel_shape = [2, 2]>(x)"), [], []),
    (parsed("float[N] x, float[M] z => float[K] y", "y = Add(x, z)"), ["M == N"], []),
    (
        parsed("float[N] x, float[M] z, float[K] w => float[L] y", "a = Add(x, z) y = Mul(a, w)"),
        ["M == N", "K == N"],
        [],
    ),
    (parsed("float[N, 5] x, float[5] z, float[M] w => float[N, M] y", "a = Add(x, z) y = Mul(a, w)"), ["M == 5"], []),
    (parsed("float[A, 2, 3] x, float[B, 3, 2] z => float[C, 2, 2] y", "y = MatMul(x, z)"), ["B == A"], []),
    (parsed("bool[N] c, float[M, 1] x, float[K] z => float[M, L] y", "y = Where(c, x, z)"), ["K == N"], []),
    (
        parsed(
            "float[1, 2, S, 4] q, float[1, 2, T, 4] k, float[S, L] m => float[1, 2, S, 4] y",
            "y = Attention(q, k, k, m)",
            opset=23,
        ),
        ["L == T"],
        [],
    ),
    (
        parsed(
            "float[S, N, 4] x, float[1, M, 5] h => float[S, 1, N, 5] y",
            "y = RNN<hidden_size = 5>(x, w, r, , , h)",
            w=np.ones((1, 5, 4), np.float32),
            r=np.ones((1, 5, 5), np.float32),
        ),
        ["M == N"],  # demanded, too
        [],
    ),
    (parsed(f"{F} => float[N, 3, A, B] y", "y = MaxPool<kernel_shape = [2, 2]>(x)"), [], ["H >= 4", "W >= 4"]),
    (parsed("float[N, 3, H, 9] x => float[N, 3, A, 2] y", "y = MaxPool<kernel_shape = [8, 8]>(x)"), [], ["H >= 10"]),
    (
        parsed(
            "float[N, 3, L] x => float[N, 3, M] y", "y = MaxPool<kernel_shape = [7], dilations = [2], pads = [6, 6]>(x)"
        ),
        [],
        ["L >= 13"],
    ),
    (
        parsed(
            "float[N, 2, L] x => float[N, 4, M] y", "y = Conv<strides = [4]>(x, w)", w=np.ones((4, 2, 5), np.float32)
        ),
        [],
        ["L >= 13"],
    ),
    (parsed("float[N] x => float[M, 4] y", "y = Reshape(x, s)", s=np.array([-1, 4])), [], ["N >= 12"]),
    (parsed("float[N, 1, L] x => float[N, 1, M] y", CALLED, DOUBLE), [], ["L >= 6"]),
]


@pytest.mark.parametrize(("model", "meetings", "windows"), READ)
def test_what_is_read(model: onnx.ModelProto, meetings: list[str], windows: list[str]) -> None:
    assert preferences(model) == [meetings, windows]


def test_dimensions_that_are_not_declared_have_names_of_their_own() -> None:
    model = parsed("float[?, 1] x, float[?, 1] z => float[?, 1] y", "y = Add(x, z)")
    drawn = InputMaker(infer_model(model, fill=False)).draw(0)[0]
    assert drawn["x"].shape == drawn["z"].shape


POOL = "y = MaxPool<kernel_shape = [4, 4], strides = [4, 4]>(x)"


def test_windows_are_few_in_the_first_case_only() -> None:
    first, *later = sizes(parsed(f"{F} => float[N, 3, A, B] y", POOL))
    assert max(first["H"], first["W"]) < 12
    assert all(min(case["H"], case["W"]) >= 12 for case in later)
    assert sizes(parsed(f"{F} => float[N, 3, A, B] y", POOL), cases=1, attempt=1)[0]["H"] >= 12


GIVEN_UP: list[tuple[onnx.ModelProto, dict[str, Any], Any]] = [
    # model, options, what still holds of the sizes
    (parsed(f"{F} => float[N, 3, A, B] y", POOL), {"bind": {"H": 4}}, lambda s: s["H"] == 4),
    (parsed("float[N, 3] x, float[M] z => float[N, K] y", "y = Add(x, z)"), {"bind": {"M": 1}}, lambda s: s["M"] == 1),
    (
        parsed("float[N] x, float[M] z => float[K] y, float w",
               "y = Add(x, z) a = Concat<axis = 0>(x, z) w = MatMul(a, c)",
               c=np.ones(6, np.float32)),
        {"bind": {"N": 5}},
        lambda s: (s["N"], s["M"]) == (5, 1),
    ),
    # So many windows make inputs that are too large.
    (
        parsed("float[3, 3, D, H, W] x => float[3, 3, A, B, C] y",
               "y = MaxPool<kernel_shape = [90, 90, 90], strides = [90, 90, 90]>(x)"),
        {},
        lambda s: max(s.values()) < 200,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("model", "options", "holds"), GIVEN_UP)
def test_what_cannot_be_is_given_up(model: onnx.ModelProto, options: dict[str, Any], holds: Any) -> None:
    assert all(holds(case) for case in sizes(model, **options))


def test_the_others_are_kept() -> None:
    model = parsed(f"{F} => float[N, 3, A, B] y", POOL)
    assert [case["W"] >= 12 for case in sizes(model, bind={"H": 4})] == [False, True, True]


def test_later_attempts_have_no_preferences() -> None:
    model = parsed("float[N] x, float[M] z => float[K] y", "y = Add(x, z)")
    found = [sizes(model, cases=1, attempt=attempt)[0] for attempt in range(6)]
    assert [case["N"] == case["M"] for case in found] == [True] * 3 + [False] * 3


def test_symbols_that_meet_differ_from_others() -> None:
    model = parsed(
        "float[S, 6] x, float[P, 6] past, float[L] mask => float[6, T] y",
        "k = Concat<axis = 0>(past, x) t = Transpose(k) y = Add(t, mask)",
    )
    for case in sizes(model):
        assert case["L"] == case["S"] + case["P"]
        assert len({case["L"], case["S"], case["P"]}) == 3
