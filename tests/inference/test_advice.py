"""What to do about an invalid node: each finding has advice that names what to change."""

from __future__ import annotations

import pytest
from node_models import infer_nodes

ADVICE = [
    ("an attribute's value", "float[1, 4, 4, 4] x", "y = DepthToSpace<blocksize = 2, mode = 'abc'>(x)", "Set 'mode'"),
    ("an axis", "float[2, 3] x", "y = Softmax<axis = 5>(x)", "Set 'axis'"),
    ("a number", "float[1, 4, 4, 4] x", "y = DepthToSpace<blocksize = 0>(x)", "Set 'blocksize'"),
    ("a type", "float[2] x, float[1] s", "y = Reshape(x, s)", "Insert a Cast to int64 before 's' (input 1)"),
    ("two types", "float[2] x, int64[2] w", "y = Add(x, w)", "Insert a Cast, so that 'x' and 'w'"),
    ("shapes", "float[2] x, float[3] w", "y = Add(x, w)", "Correct the shape of 'x' or 'w'"),
    ("a rank", "float[2, 2] x, int64[1, 1] i, float[1, 5] u", "y = ScatterND(x, i, u)", "'u'"),
    ("a scale", "float[2, 4] x, float[3] s", "y = LayerNormalization(x, s)", "Correct 's' (input 1)"),
    ("inner dimensions", "float[2, 3] x, float[4, 5] w", "y = MatMul(x, w)", "Correct the shape of 'x' or 'w'"),
]


@pytest.mark.parametrize(("inputs", "body", "said"), [each[1:] for each in ADVICE], ids=[each[0] for each in ADVICE])
def test_advice_names_what_to_change(inputs: str, body: str, said: str) -> None:
    found = infer_nodes(inputs, body.replace("'abc'", '"abc"')).diagnostics
    helps = [each.help for each in found if each.code == "SG302"]
    assert len(helps) == 1
    assert said in helps[0]
