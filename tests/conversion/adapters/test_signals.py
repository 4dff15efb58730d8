"""DFT and RoiAlign."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conversion.adapters.crossings import Crossing
from conversion.adapters.execute import random_array

X = random_array((2, 6, 5, 2))


def dft(source: int, target: int, inputs: tuple[str, ...], held: dict[str, Any], **attributes: Any) -> Crossing:
    return Crossing("", "DFT", source, target, {"x": X}, held, attributes, inputs, tolerance=1e-4)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            Crossing("", "DFT", 20, 19, {"x": X, "axis": np.array(1)}, {}, {}, ("x", "", "axis")),
            "axis is an attribute below opset 20",
        ),
        (
            Crossing(
                "",
                "RoiAlign",
                16,
                15,
                {"x": X.astype(np.float32), "r": np.ones((1, 4), np.float32)},
                {"b": np.array([0])},
            ),
            "a region be smaller than a pixel",
        ),
    ],
    ids=str,
)
def test_refusals(case: Crossing, words: str) -> None:
    assert words in case.refused()


@pytest.mark.parametrize("axis", [None, 1, 2, -2, -3, 0])
@pytest.mark.parametrize("inverse", [0, 1])
def test_axis_goes_up(axis: int | None, inverse: int) -> None:
    attributes = {"inverse": inverse, **({} if axis is None else {"axis": axis})}
    signal = X[..., 0] + 1j * X[..., 1]
    at = 1 if axis is None else axis + 1 if axis < 0 else axis
    for length in (None, 4, 8):
        expected = (np.fft.ifft if inverse else np.fft.fft)(signal, length, at)
        pair = np.stack([expected.real, expected.imag], axis=-1).astype(np.float32)
        held, inputs = ({}, ("x",)) if length is None else ({"n": np.array(length)}, ("x", "n"))
        for target in (20, 24):
            case = dft(17, target, inputs, held, **attributes)
            replace(case, expected=[pair]).check()


@pytest.mark.parametrize("axis", [None, 1, 2, -2, -3, 0])
def test_axis_goes_down(axis: int | None) -> None:
    signal = X[..., 0] + 1j * X[..., 1]
    at = 2 if axis is None else axis + 1 if axis < 0 else axis
    expected = np.fft.fft(signal, None, at)
    pair = np.stack([expected.real, expected.imag], axis=-1).astype(np.float32)
    held, inputs = ({}, ("x",)) if axis is None else ({"axis": np.array(axis)}, ("x", "", "axis"))
    for target in (19, 17):
        replace(dft(20, target, inputs, held), expected=[pair]).check()
