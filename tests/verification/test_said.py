"""Of which sizes a verdict is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from onnx import ModelProto, parser
from verifying import verify_models

import splitgraph
from splitgraph.verification.verification import Verdict, Verification

VERIFIED = "verified equal"


def model(shape: str, axis: int = 1) -> ModelProto:
    text = f"g (float[{shape}, 4] x) => (float[{shape}, 4] y) {{ y = Softmax <axis = {axis}> (x) }}"
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')


@pytest.mark.parametrize(
    ("verdict", "compared", "only_ran", "said"),
    [
        ("equal", {}, (), VERIFIED),
        ("equal", {"N": (1, 2, 3)}, (), VERIFIED),
        ("different", {"T": (5,)}, (), "different"),
        ("not-run", {"T": (5,)}, ({"T": 8},), "NOT VERIFIED"),
        ("equal", {"T": (5,)}, (), "equal at the old size; nothing says what it should give at others"),
        (
            "equal",
            {"T": (5,)},
            ({"T": 3}, {"T": 8}),
            "equal at the old size; runs at T = 3, 8; nothing says what it should give there",
        ),
        (
            "equal",
            {"N": (1, 2), "T": (5,)},
            ({"T": 8},),
            "equal at N = 1, 2 and the old size of T; runs at T = 8; nothing says what it should give there",
        ),
        (
            "equal",
            {"H": (5,), "W": (6,)},
            ({"H": 2, "W": 3}, {"H": 9, "W": 9}),
            "equal at the old sizes; runs at H = 2, W = 3 and at H = 9, W = 9; nothing says what it should give there",
        ),
    ],
)
def test_the_sizes_are_said(
    verdict: Verdict, compared: Mapping[str, tuple[int, ...]], only_ran: tuple[Mapping[str, int], ...], said: str
) -> None:
    made = Verification(verdict, "", 1, 0.0, 0.0, None, (), compared=compared, only_ran=only_ran)
    assert made.said == made.document()["said"] == said


@pytest.mark.parametrize(
    ("shape", "compared", "only_ran"),
    [
        (["N", 5, 4], {"N": (1, 2, 3, 5)}, ()),
        ([3, 5, 4], {"x[0]": (1, 2, 3, 5)}, ()),
        ([1, "T", 4], {"T": (5,)}, ({"T": 2}, {"T": 10})),
        ([1, 8, 4], {"x[1]": (5,)}, ({"x[1]": 8},)),
        ([3, "T", 4], {"T": (5,), "x[0]": (1, 2, 3, 5)}, ({"T": 2}, {"T": 10})),
    ],
)
def test_a_length_is_compared_at_its_old_size(
    shape: list[Any], compared: Mapping[str, tuple[int, ...]], only_ran: tuple[Mapping[str, int], ...]
) -> None:
    verification = splitgraph.reshape(model("1, 5"), {"x": shape}, verify=True).verification
    assert verification is not None and verification.verdict == "equal"
    assert (verification.compared, verification.only_ran) == (compared, only_ran)
    noted = [each.message for each in verification.diagnostics if each.code == "SG512"]
    assert noted == ([verification.said] if only_ran else [])


@pytest.mark.parametrize(
    ("before", "after", "compared"),
    [
        ("1, 5", "1, 5", {}),
        ("N, 5", "N, 5", {}),
        ("N, 5", "M, 5", {}),
        ("N, T", "1, 5", {}),
        ("1, 5", "1, T", {"T": (5,)}),
        ("N, 5", "N, ?", {"x[1]": (5,)}),
    ],
)
def test_two_models_are_compared_at_the_sizes_of_the_first(
    before: str, after: str, compared: Mapping[str, tuple[int, ...]]
) -> None:
    assert verify_models(model(before), model(after), engine="reference", samples=1).compared == compared
