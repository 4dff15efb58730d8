"""Values that are computed with sizes have one number if they are the same at all sizes, and others if they may not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from splitgraph import infer
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.regions.finding.sides import ModelSide
from splitgraph.verification.regions.sizes.size_numbers import SizeNumbers
from splitgraph.verification.regions.sizes.size_part import SizePart

from ...small_models import parsed

I64 = np.int64
CONSTANTS = {"zero": I64(0), "one": I64(1), "list": I64([1]), "first": I64([0]), "again": I64([1])}


def part(text: str, opset: int, numbers: SizeNumbers) -> SizePart:
    declared = "float[N, M] x, float[N, M] z, float[M, N] w => int64[A] y"
    model = parsed(declared, text, opset=opset, **CONSTANTS)
    assert isinstance(model, onnx.ModelProto)
    return SizePart(ModelSide(ComparedModel(model, None, infer(model))), (), numbers)


def have_one_number(one: tuple[str, int], other: tuple[str, int]) -> bool:
    numbers = SizeNumbers()
    sides = [part(*each, numbers) for each in (one, other)]
    assert all("y" in side.sized for side in sides)
    return sides[0].number_of("y") == sides[1].number_of("y")


SHAPE = "s = Shape(x) y = Neg(s)"
GATHER = "s = Shape(x) n = Gather(s, one) y = {}"
SAME = {
    "of another value with the same dimensions": ((SHAPE, 13), ("s = Shape(z) y = Neg(s)", 13)),
    "another version": ((SHAPE, 11), (SHAPE, 21)),
    "an attribute that became an input": (
        (GATHER.format("Unsqueeze<axes = [0]>(n)"), 11),
        (GATHER.format("Unsqueeze(n, first)"), 13),
    ),
    "the bounds of a Slice": (
        ("s = Shape(x) y = Slice<starts = [0], ends = [1]>(s)", 9),
        ("s = Shape(x) y = Slice(s, first, list)", 13),
    ),
    "an equal constant": (("s = Shape(x) y = Add(s, list)", 13), ("s = Shape(x) y = Add(s, again)", 13)),
    "with an Identity": ((SHAPE, 13), ("s = Shape(x) t = Identity(s) y = Neg(t)", 13)),
    "a Shape of one dimension": (
        ("s = Shape<start = 1>(x) y = Neg(s)", 15),
        ("s = Shape<end = 1>(w) y = Neg(s)", 15),
    ),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_one_number(one: tuple[str, int], other: tuple[str, int]) -> None:
    assert have_one_number(one, other)


OTHERS = {
    "other dimensions": ((SHAPE, 13), ("s = Shape(w) y = Neg(s)", 13)),
    "another operator": ((SHAPE, 13), ("s = Shape(x) y = Abs(s)", 13)),
    "another constant": (("s = Shape(x) y = Add(s, list)", 13), ("s = Shape(x) y = Add(s, first)", 13)),
    "another rank of a constant": (("s = Shape(x) y = Add(s, list)", 13), ("s = Shape(x) y = Add(s, one)", 13)),
    "inputs in another order": (("s = Shape(x) y = Sub(s, list)", 13), ("s = Shape(x) y = Sub(list, s)", 13)),
    "another axis": (
        (GATHER.format("Unsqueeze<axes = [0]>(n)"), 11),
        ("s = Shape(x) y = Unsqueeze(s, list)", 13),
    ),
    "another end": (
        ("s = Shape(x) y = Slice<starts = [0], ends = [2]>(s)", 9),
        ("s = Shape(x) y = Slice(s, first, list)", 13),
    ),
    "another attribute": (
        ("s = Shape(x) y = Concat<axis = 0>(s, list)", 13),
        ("s = Shape(x) y = Concat<axis = -1>(s, list)", 13),
    ),
    "another output": (
        ("s = Shape(x) y, o = Split<axis = 0>(s)", 13),
        ("s = Shape(x) o, y = Split<axis = 0>(s)", 13),
    ),
}


@pytest.mark.parametrize(("one", "other"), OTHERS.values(), ids=OTHERS)
def test_other_numbers(one: tuple[str, int], other: tuple[str, int]) -> None:
    assert not have_one_number(one, other)


def test_values_of_one_number_are_all_told() -> None:
    layers = "s = Shape(x) n = Gather(s, one) u = Unsqueeze(n, first) t = Shape(z) m = Gather(t, one) "
    sizes = part(f"{layers} v = Unsqueeze(m, first) y = Concat<axis = 0>(u, v, u)", 13, SizeNumbers())
    assert sizes.prepare(["y", "u", "v"])
    values = sizes.run({"N": 2, "M": 3})
    assert {name: value.tolist() for name, value in values.items() if name in "yuv"} == {
        "y": [3, 3, 3],
        "u": [3],
        "v": [3],
    }
