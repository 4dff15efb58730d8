"""Parts of a model that only empty values reach: nothing differs in these, so other values are drawn for them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from verifying import verify_models

from ...small_models import parsed

pytestmark = pytest.mark.usefixtures("in_process")
F = np.float32
HELD = {
    "threshold": F(1e6),
    "most": np.array([10]),
    "overlap": F(0.5),
    "score": F(1e9),
    "one": np.array([1]),
    "two": np.array([2]),
    "three": np.array([3]),
    "all": np.array([4, 0]),
    "c": F(2),
}
COMPRESSED = "float[N] x => float[M] y"
NOTHING_FOUND = "g = Greater(x, threshold) k = Compress<axis = 0>(x, g) "
BOXES = "float[1, N, 4] b, float[1, 3, N] p => float[1, M, 4] y"
NO_BOX = "s = NonMaxSuppression(b, p, most, overlap, score) k = Slice(s, two, three, one) q = Squeeze(k, one) "

# A signature, what follows where nothing is found, and what follows in the second model.
PAIRS: dict[str, tuple[str, str, str, str, str]] = {
    "another sign": (COMPRESSED, NOTHING_FOUND, "y = Neg(k)", "y = Abs(k)", "different"),
    "another form": (COMPRESSED, NOTHING_FOUND, "y = Add(k, k)", "y = Mul(k, c)", "equal"),
    "boxes of another tensor": (
        BOXES,
        NO_BOX,
        "y = Gather<axis = 1>(b, q)",
        "n = Abs(b) y = Gather<axis = 1>(n, q)",
        "different",
    ),
    "positions in another form": (
        BOXES,
        NO_BOX,
        "y = Gather<axis = 1>(b, q)",
        "i = Cast<to = 6>(q) y = Gather<axis = 1>(b, i)",
        "equal",
    ),
    "texts": (
        "string[N] t, float[N] x => string[M] y",
        "g = Greater(x, threshold) k = Compress<axis = 0>(t, g) ",
        'y = StringNormalizer<case_change_action = "UPPER">(k)',
        "y = StringNormalizer(k)",
        "different",
    ),
}


def model_of_text(signature: str, body: str) -> onnx.ModelProto:
    return parsed(signature, body, **{name: array for name, array in HELD.items() if name in body})


@pytest.mark.parametrize("name", PAIRS)
def test_what_follows_where_nothing_is_found(name: str) -> None:
    signature, found_first, first, second, verdict = PAIRS[name]
    models = [model_of_text(signature, found_first + rest) for rest in (first, second)]
    found = verify_models(*models)
    assert found.verdict == verdict, found
    assert all(region.cases for region in found.regions)


SPLIT = "float[N, 4] x => float[N, 4] y, float[N, 0] z"


def test_what_is_always_empty_is_equal() -> None:
    first = model_of_text(SPLIT, "y, e = Split<axis = 1>(x, all) z = Neg(e)")
    second = model_of_text(SPLIT, "y, e = Split<axis = 1>(x, all) z = Mul(e, c)")
    found = verify_models(first, second)
    assert (found.verdict, [region.cases for region in found.regions]) == ("equal", [0])


def test_given_inputs_that_are_empty_prove_nothing() -> None:
    """Beside given inputs nothing is drawn."""
    first, second = (parsed("float[N] x => float[N] y", body) for body in ("y = Neg(x)", "y = Abs(x)"))
    found = verify_models(first, second, inputs={"x": np.zeros(0, F)})
    assert (found.verdict, [each.code for each in found.diagnostics]) == ("not-run", ["SG506"])
    assert "main/Neg#0 (no values reached it, or only empty ones)" in found.diagnostics[0].message
    assert verify_models(first, first, inputs={"x": np.zeros(0, F)}).verdict == "equal"
