"""DFT, STFT and MelWeightMatrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conversion.operators.crossings import Crossing
from conversion.operators.execute import Array, operators, random_array

X = random_array((2, 6, 5, 2))
SIGNAL = random_array((2, 40, 1), seed=1)


def dft(source: int, target: int, inputs: tuple[str, ...], held: dict[str, Any], **attributes: Any) -> Crossing:
    return Crossing("", "DFT", source, target, {"x": X}, held, attributes, inputs, tolerance=1e-4)


def as_pair(found: Array, dtype: str = "float32") -> Array:
    return np.stack([found.real, found.imag], axis=-1).astype(dtype)


def transformed(data: Array, axis: int, length: int | None, *, inverse: bool, half: bool) -> Array:
    """What NumPy gives: numbers as pairs, or as they are where they are real."""
    signal = data[..., 0] + 1j * data[..., 1] if data.shape[-1] == 2 else data[..., 0]
    if inverse and half:
        return np.fft.irfft(signal, length, axis)[..., None].astype(data.dtype)
    apply = np.fft.ifft if inverse else np.fft.rfft if half else np.fft.fft
    return as_pair(apply(signal, length, axis), str(data.dtype))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            Crossing("", "DFT", 20, 19, {"x": X, "axis": np.array(1)}, {}, {}, ("x", "", "axis"), shapes="unknown"),
            "rank",
        ),
        (Crossing("", "DFT", 17, 16, {"x": X}, shapes="unknown"), "rank"),
        (Crossing("", "DFT", 17, 16, {"x": X}, shapes="symbolic"), "real or complex"),
        (Crossing("", "DFT", 17, 16, {"x": X[:, :1]}, {}, {"inverse": 1, "onesided": 1}), "it has no length"),
        (
            Crossing("", "STFT", 17, 16, {"x": SIGNAL.repeat(2, -1), "s": np.array(4)}, shapes="symbolic"),
            "for real input only",
        ),
    ],
    ids=str,
)
def test_refusals(case: Crossing, words: str) -> None:
    # No engine gives a shape for what is declared without one.
    assert words in replace(case, expected=[X]).refused()


@pytest.mark.parametrize("axis", [None, 1, 2, -2, -3, 0])
@pytest.mark.parametrize("inverse", [0, 1])
def test_axis_goes_up(axis: int | None, inverse: int) -> None:
    attributes = {"inverse": inverse, **({} if axis is None else {"axis": axis})}
    at = 1 if axis is None else axis + 1 if axis < 0 else axis
    for length in (None, 4, 8):
        expected = transformed(X, at, length, inverse=bool(inverse), half=False)
        held, inputs = ({}, ("x",)) if length is None else ({"n": np.array(length)}, ("x", "n"))
        for target in (20, 24):
            case = dft(17, target, inputs, held, **attributes)
            replace(case, expected=[expected]).check()


@pytest.mark.parametrize("axis", [None, 1, 2, -2, -3, 0])
def test_axis_goes_down(axis: int | None) -> None:
    at = 2 if axis is None else axis + 1 if axis < 0 else axis
    expected = transformed(X, at, None, inverse=False, half=False)
    held, inputs = ({}, ("x",)) if axis is None else ({"axis": np.array(axis)}, ("x", "", "axis"))
    for target in (19, 17):
        replace(dft(20, target, inputs, held), expected=[expected]).check()


@pytest.mark.parametrize("shapes", ["static", "symbolic"])
@pytest.mark.parametrize("axis", [0, 1, 2, -2, -3, -4])
def test_axis_of_run_time_goes_down(axis: int, shapes: Any) -> None:
    at = axis + 4 if axis < 0 else axis
    given: dict[str, Any] = {"x": X, "n": np.array(4), "axis": np.array(axis)}
    for inverse, half, length in ((0, 0, None), (1, 0, None), (0, 1, 4), (0, 1, None)):
        data = X[..., :1] if half else X
        inputs = ("x", "n" if length else "", "axis")
        feeds = {name: data if name == "x" else given[name] for name in inputs if name}
        attributes = {"inverse": inverse, "onesided": half}
        expected = transformed(data, at, length, inverse=bool(inverse), half=bool(half))
        case = Crossing("", "DFT", 20, 19, feeds, {}, attributes, inputs, 1, [expected], 1e-5, shapes)
        after = case.check()
        assert operators(after).count("DFT") == 1
        replace(case, target=17).check()


def test_axis_of_run_time_of_nothing() -> None:
    empty = X[:0]
    for axis in (1, 2):
        given = {"x": empty, "axis": np.array(axis)}
        Crossing("", "DFT", 20, 18, given, {}, {}, ("x", "", "axis"), 1, [empty], shapes="symbolic").check()


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(("inverse", "half"), [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("length", [None, 4, 5, 10, 13])
def test_transform_below_17(length: int | None, inverse: int, half: int, parts: int) -> None:
    if (parts == 2) != bool(inverse) and half:
        parts = 3 - parts
    for axis, dtype, target in ((1, "float32", 16), (0, "float64", 16), (-2, "float32", 13), (1, "float32", 9)):
        data = X[:, :, :3, :parts].astype(dtype)
        at = axis + 4 if axis < 0 else axis
        if half and inverse and length is None and data.shape[at] < 2:
            continue
        held = {} if length is None else {"n": np.array(length, np.int32)}
        inputs, attributes = ("x", *held), {"axis": axis, "inverse": inverse, "onesided": half}
        expected = transformed(data, at, length, inverse=bool(inverse), half=bool(half))
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        constant = Crossing("", "DFT", 17, target, {"x": data}, held, attributes, inputs, 1, [expected], tolerance)
        assert "DFT" not in operators(constant.check())
        replace(constant, given={"x": data, **held}, constants={}).check()


def test_long_transform_is_worked_out_at_run_time() -> None:
    data = random_array((1, 2000, 1))
    expected = transformed(data, 1, None, inverse=False, half=True)
    case = Crossing("", "DFT", 17, 16, {"x": data}, {}, {"onesided": 1}, expected=[expected], tolerance=1e-4)
    after = case.check()
    assert after.ByteSize() < 100_000


def test_half_precision_is_transformed_in_float32() -> None:
    data = random_array((1, 16, 1), "float16")
    expected = transformed(data.astype(np.float32), 1, None, inverse=False, half=False).astype(np.float16)
    Crossing("", "DFT", 17, 16, {"x": data}, expected=[expected], tolerance=2e-3).check()


def frames_of(signal: Array, hop: int, window: Array, onesided: int) -> Array:
    """The frames of a signal of [batch, length, parts], windowed and transformed by NumPy."""
    found = []
    for start in range(0, signal.shape[1] - len(window) + 1, hop):
        frame = signal[:, start : start + len(window)] * window[:, None]
        found.append(transformed(frame, 1, None, inverse=False, half=bool(onesided)))
    return np.stack(found, axis=1)


FRAMES: Sequence[tuple[int, int | None, int | None]] = [(8, None, 16), (7, 16, None), (1, 16, 16), (40, None, None)]


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize(("hop", "window", "length"), FRAMES)
@pytest.mark.parametrize("target", [16, 11, 9])
def test_frames_below_17(hop: int, window: int | None, length: int | None, onesided: int, target: int) -> None:
    held: dict[str, Any] = {"hop": np.array(hop)}
    names = ["x", "hop", "", ""]
    size = window or length or SIGNAL.shape[1]
    shape = np.ones(size, np.float32)
    if window:
        shape = np.hanning(window).astype(np.float32)
        held["window"], names[2] = shape, "window"
    if length:
        held["length"], names[3] = np.array(length), "length"
    inputs = tuple(names)
    expected = frames_of(SIGNAL, hop, shape, onesided)
    attributes = {"onesided": onesided}
    case = Crossing("", "STFT", 17, target, {"x": SIGNAL}, held, attributes, inputs, 1, [expected], 1e-5)
    assert "STFT" not in operators(case.check())
    replace(case, given={"x": SIGNAL, **held}, constants={}).check()


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("target", [16, 9])
def test_frames_of_signals_without_the_last_dimension(target: int, onesided: int) -> None:
    signal = random_array((2, 20))
    held = {"hop": np.array(5), "window": np.hanning(10).astype(np.float32)}
    expected = frames_of(signal[..., None], 5, held["window"], onesided)
    attributes = {"onesided": onesided}
    Crossing("", "STFT", 17, target, {"x": signal}, held, attributes, None, 1, [expected], 1e-5).check()


def test_frames_of_complex_signals() -> None:
    signal = random_array((1, 20, 2))
    held = {"hop": np.array(5), "window": np.hanning(10).astype(np.float32)}
    expected = frames_of(signal, 5, held["window"], 0)
    attributes = {"onesided": 0}
    Crossing("", "STFT", 17, 16, {"x": signal}, held, attributes, None, 1, [expected], 1e-5).check()


@pytest.mark.parametrize(
    ("bands", "length", "low", "high"), [(8, 16, 0.0, 4096.0), (20, 512, 100.0, 7000.0), (3, 64, 50.0, 60.0)]
)
@pytest.mark.parametrize("target", [16, 13, 9])
def test_mel_weights_below_17(bands: int, length: int, low: float, high: float, target: int) -> None:
    held = {
        "bands": np.array(bands),
        "length": np.array(length),
        "rate": np.array(16000),
        "low": np.array(low, np.float32),
        "high": np.array(high, np.float32),
    }
    case = Crossing("", "MelWeightMatrix", 17, target, {}, held, tolerance=1e-6)
    assert "MelWeightMatrix" not in operators(case.check())
    replace(case, given=held, constants={}).check()
