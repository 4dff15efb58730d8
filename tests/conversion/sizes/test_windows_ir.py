"""Windows of an IR, blocks of columns, and a batch of 1 whose transposition became a Reshape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from openvino import opset15

import splitgraph
from splitgraph.formats import open_model

F = np.float32


def given(*shape: int) -> Any:
    made = ops.parameter(ov.PartialShape(list(shape)), F, name="x")
    made.output(0).set_names({"x"})
    return made


def opened(output: Any, x: Any, folder: Path) -> Any:
    output.set_friendly_name("last")
    ov.save_model(ov.Model([output], [x]), folder / "m.xml", compress_to_fp16=False)
    return open_model(folder / "m.xml").content


def told(model: Any, *shape: Any, **said: Any) -> list[tuple[str, str]]:
    """Return the codes of what is asked or refused, with the text."""
    try:
        splitgraph.reshape(model, {"x": [*shape]}, verify=False, **said)
    except splitgraph.ConversionError as error:
        return [(each.code, each.message) for each in error.diagnostics]
    return []


H = ("SG421", "entry 0 can mean 6 whatever the size of the data, or H")
W = ("SG421", "entry 1 can mean 7 whatever the size of the data, or W")


@pytest.mark.parametrize(
    ("kind", "kernel", "pads", "shape", "expected"),
    [
        ("avg", [6, 7], [0, 0], (1, 3, "H", "W"), [H, W]),
        ("max", [6, 7], [0, 0], (1, 3, "H", 7), [H]),
        ("max", [1, 7], [0, 0], (1, 3, "H", "W"), [W]),
        # Another window, one that goes beyond the data, another dimension, and a batch.
        ("avg", [3, 2], [0, 0], (1, 3, "H", "W"), []),
        ("avg", [6, 7], [3, 3], (1, 3, "H", "W"), []),
        ("avg", [1, 7], [0, 0], (1, 3, "H", 7), []),
        ("avg", [6, 7], [0, 0], ("N", 3, 6, 7), []),
    ],
)
def test_a_window_that_takes_everything_is_asked(
    kind: str, kernel: list[int], pads: list[int], shape: tuple[Any, ...], expected: Any, tmp_path: Path
) -> None:
    x = given(1, 3, 6, 7)
    if kind == "avg":
        pooled = ops.avg_pool(x, [1, 1], pads, pads, kernel, exclude_pad=False)
    else:
        pooled = ops.max_pool(x, [1, 1], [1, 1], pads, pads, kernel)
    model = opened(pooled, x, tmp_path)
    assert told(model, *shape) == expected
    if expected:
        assert not told(model, *shape, keep=["main/last[0]", "main/last[1]"])


@pytest.mark.parametrize(
    ("shape", "number", "meant"),
    [
        ((1, 3, "H", "W"), 126, "3*H*W"),
        ((1, 3, "H", 7), 126, "21*H"),
        ((1, 3, "H", "W"), 42, "H*W"),
        ((1, 3, "H", 7), 6, "H"),
        ((1, 3, "H", "W"), 125, None),
        ((1, 3, "H", 7), 4, None),
        (("N", 3, 6, 7), 126, None),
    ],
)
def test_an_inverse_of_a_product_of_lengths_is_asked(
    shape: tuple[Any, ...], number: int, meant: str | None, tmp_path: Path
) -> None:
    x = given(1, 3, 6, 7)
    summed = ops.reduce_sum(x, _numbers(1, 2, 3), False)
    model = opened(ops.multiply(summed, ops.constant(np.array([1 / number], F))), x, tmp_path)
    text = f"entry 0 can mean 1/({number}) whatever the size of the data, or 1/({meant})"
    assert told(model, *shape) == ([("SG421", text)] if meant else [])
    assert not told(model, *shape, keep=["main/last[0]"])


@pytest.mark.parametrize(
    ("shape", "codes"), [((1, 12, "T"), ["SG420"]), ((1, 12, 20), ["SG420"]), (("N", 12, 12), []), ((1, 24, 12), [])]
)
def test_columns_are_as_many_as_places_of_a_block(shape: tuple[Any, ...], codes: list[str], tmp_path: Path) -> None:
    """OpenVINO does not load an IR with others."""
    x = given(1, 12, 12)
    image = opset15.col2im(x, _numbers(4, 5), _numbers(2, 2))
    assert [code for code, _ in told(opened(image, x, tmp_path), *shape)] == codes


@pytest.mark.parametrize("shape", [("N", 5, 3), ("N", "T", 3), (4, 5, 3)])
def test_both_directions_of_a_sequence_of_one_item_are_not_merged_with_its_steps(
    shape: tuple[Any, ...], tmp_path: Path
) -> None:
    """OpenVINO makes one Reshape of the transposition to [1, 5, 8] and of one that only removes an axis."""
    x, drawn = given(1, 5, 3), np.random.default_rng(1)
    state = ops.broadcast(ops.constant(F(0)), ops.concat([_items(x), _numbers(2), _numbers(4)], 0))
    lengths = ops.broadcast(_numbers(5), _items(x))
    weights = [ops.constant(drawn.standard_normal(each).astype(F)) for each in ((2, 16, 3), (2, 16, 4), (2, 16))]
    both = ops.lstm_sequence(x, state, state, lengths, *weights, 4, "bidirectional").output(0)
    steps = ops.transpose(both, _numbers(2, 0, 1, 3))
    model = opened(ops.reshape(steps, _numbers(1, 5, 8), False), x, tmp_path)
    ((code, text),) = told(model, *shape)
    assert (code, "which was 1, is in [1, 5, 8]" in text) == ("SG420", True)


def _numbers(*numbers: int) -> Any:
    return ops.constant(np.array(numbers, np.int64))


def _items(x: Any) -> Any:
    return ops.gather(ops.shape_of(x), _numbers(0), ops.constant(np.int64(0)))
