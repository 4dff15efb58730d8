"""Windows wider than the data of ordinary runs: padding hides their outer taps, so that longer data is run."""

from __future__ import annotations

import numpy as np
import pytest

import splitgraph
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.regions.finding.find import ModelRegions
from splitgraph.verification.regions.sizes.windows import window_lengths

from ..model_pairs import Pair, find_difference, show_difference

F = np.float32
LINE, PLANE = "float[N, 1, L] x => float[N, 1, M] y", "float[N, 2, H, V] x => float[N, 2, P, Q] y"
RNG = np.random.default_rng(0)
X, IMAGE = RNG.standard_normal((1, 1, 200)), RNG.standard_normal((1, 2, 90, 90))


def conv(dilation: int, weights: str = "k", dims: int = 1) -> str:
    pads, dilations = [dilation] * 2 * dims, [dilation] * dims
    return f"Conv<pads = {pads}, dilations = {dilations}>(x, {weights})"


def pool(size: int, op: str = "MaxPool") -> str:
    return f"{op}<kernel_shape = [{size}], pads = {[size // 2] * 2}>(x)"


THREE = {"k": RNG.standard_normal((1, 1, 3)).astype(F)}
LONG = RNG.standard_normal((1, 1, 65)).astype(F)
WRONG = LONG / 2
WRONG[0, 0, 2] += 0.5
DIFFERENT = {
    "a dilation": Pair(LINE, f"y = {conv(64)}", f"y = {conv(32)}", {"x": X}, THREE),
    "a dilation of images": Pair(
        PLANE, f"y = {conv(24, dims=2)}", f"y = {conv(18, dims=2)}", {"x": IMAGE}, {"k": RNG.random((2, 2, 3, 3), F)}
    ),
    "a causal dilation": Pair(
        LINE,
        "y = Conv<pads = [128, 0], dilations = [128]>(x, k)",
        "y = Conv<pads = [64, 0], dilations = [64]>(x, k)",
        {"x": X},
        {"k": np.ones((1, 1, 2), F)},
    ),
    "a dilation in a branch": Pair(
        "float[N, 1, L] x, bool c => float[N, 1, M] y",
        f"y = If (c) <then_branch = t () => (a) {{ a = {conv(24)} }}, else_branch = e () => (b) {{ b = Neg(x) }}>",
        f"y = If (c) <then_branch = t () => (a) {{ a = {conv(20)} }}, else_branch = e () => (b) {{ b = Neg(x) }}>",
        {"x": X, "c": True},
        THREE,
    ),
    "the highest": Pair(LINE, f"y = {pool(41)}", f"y = {pool(39)}", {"x": X}),
    "the highest, in two steps": Pair(
        LINE,
        f"y = {pool(65)}",
        "a = MaxPool<kernel_shape = [31], pads = [15, 15]>(x) y = MaxPool<kernel_shape = [31], pads = [15, 15]>(a)",
        {"x": X},
    ),
    "a norm": Pair(LINE, f"y = {pool(61, 'LpPool')}", f"y = {pool(59, 'LpPool')}", {"x": X}),
    "a far tap that is folded": Pair(
        LINE,
        "t = Conv<pads = [32, 32]>(x, k) y = Mul(t, h)",
        "y = Conv<pads = [32, 32]>(x, w)",
        {"x": X},
        {"k": LONG, "h": F(0.5), "w": WRONG},
    ),
    "a moving mean": Pair(
        LINE,
        "y = Conv<pads = [49, 0]>(x, k)",
        "y = Conv<pads = [48, 0]>(x, w)",
        {"x": X},
        {"k": np.full((1, 1, 50), 0.02, F), "w": np.full((1, 1, 49), 0.02, F)},
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_wide_window_is_told_apart(name: str) -> None:
    find_difference(DIFFERENT[name])


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_witness_shows_it(name: str) -> None:
    show_difference(DIFFERENT[name])


EQUAL = {
    "a far tap that is folded rightly": DIFFERENT["a far tap that is folded"]._replace(
        constants={"k": LONG, "h": F(0.5), "w": LONG / 2}
    ),
    "the highest, in three steps": Pair(
        LINE,
        f"y = {pool(61)}",
        "a = MaxPool<kernel_shape = [31], pads = [15, 15]>(x) y = MaxPool<kernel_shape = [31], pads = [15, 15]>(a)",
    ),
    "of data that is always short": Pair(
        "float[1, 1, 9] x => float[1, 1, 9] y", f"y = {conv(64)}", f"y = {conv(32)}", {}, THREE
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_windows_raise_no_alarm(name: str) -> None:
    found = splitgraph.verify(*EQUAL[name].models(), timeout=60)
    assert found.verdict == "equal", found


def lengths(pair: Pair) -> list[list[int]]:
    before, after = (ComparedModel(model, model, splitgraph.infer(model)) for model in pair.models())
    return window_lengths(ModelRegions(before, after))


@pytest.mark.parametrize(
    ("pair", "wanted"),
    [
        (Pair(LINE, "y = Relu(x)", "z = Neg(x) y = Relu(z)"), []),
        # Any run reads all of these.
        (Pair(LINE, f"y = {pool(7)}", f"y = {pool(5)}"), []),
        # A window that both have is in no region.
        (Pair(LINE, f"a = {pool(41)} y = Relu(a)", f"a = {pool(41)} y = Neg(a)"), []),
        (Pair(LINE, f"y = {pool(9)}", f"y = {pool(11)}"), [[19, 24, 32, 64], [23, 24, 32, 64]]),
        (Pair(LINE, f"y = {conv(20)}", f"y = {conv(3)}", {}, THREE), [[83, 88, 96, 128]]),
    ],
    ids=["no window", "small windows", "an unchanged window", "pools", "a dilation"],
)
def test_lengths_that_are_tried(pair: Pair, wanted: list[list[int]]) -> None:
    assert lengths(pair) == wanted
