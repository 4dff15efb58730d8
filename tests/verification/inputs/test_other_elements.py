"""Other elements for the inputs of a model."""

from __future__ import annotations

import numpy as np
import pytest

from splitgraph.verification.inputs.later_attempts import BATCHES, batches, refill, suggested_numbers

from ..small_models import parsed

REFILLED = {
    "floats": np.ones((3, 5), np.float32),
    "halves": np.ones((3, 5), np.float16),
    "a number": np.float32(1).reshape(1),
    "an integer": np.array([3]),
    "integers": np.arange(6),
    "a condition": np.array(True),
    "text": np.array(["a", "b"], dtype=object),
    "complex": np.ones(3, np.complex64),
    "a sequence": [np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)],
    "nothing": np.ones((0, 3), np.float32),
}


@pytest.mark.parametrize("name", REFILLED)
def test_what_is_refilled_keeps_its_type_and_shape(name: str) -> None:
    value = REFILLED[name]
    for number in range(sum(BATCHES)):
        made = refill(value, number, 0, np.random.default_rng(number), [1.0, 16000.0, 1e9])
        for new, old in zip(made, value, strict=True) if isinstance(value, list) else [(made, value)]:
            assert (new.dtype, new.shape) == (old.dtype, old.shape)
    assert [number for batch in batches() for number in batch] == list(range(sum(BATCHES)))


def test_numbers_are_those_of_the_model_and_usual_ones() -> None:
    body = "r = Constant<value = float {12345.0}>() d = Sub(x, r) y = MatMul(d, w)"
    model = parsed("float[N, 77] x => float[N, 4] y", body, w=np.ones((77, 4), np.float32), e=np.float32(1e-12))
    found = suggested_numbers(model)
    assert {12345.0, 77.0, 4.0, 0.0, 1.0, 16000.0} <= set(found)
    assert 1e-12 not in found
