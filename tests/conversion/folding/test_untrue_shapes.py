"""What a model declares of inner values, and what is not so: runtimes that believe it refuse the model."""

from __future__ import annotations

import onnx
import pytest
from folded_models import fold, model

from splitgraph.conversion.folding.fold import convert_folded


def declared(made: onnx.ModelProto, **shapes: list[int | str]) -> onnx.ModelProto:
    for name, shape in shapes.items():
        made.graph.value_info.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
    return made


TWO = "(float[N, 4] x) => (float[4, N] y) { h = Transpose<perm = [1, 0]> (x) y = Relu (h) }"


@pytest.mark.parametrize("shape", [[4, 7], [4], [0, 0], [3, "N"], [4, "N", 1]])
def test_a_declared_shape_that_does_not_hold_goes(shape: list[int | str]) -> None:
    given = declared(model(TWO), h=shape)
    rewrite = convert_folded(given, nonempty=True)
    assert not rewrite.model.graph.value_info
    assert [change.location for change in rewrite.changes] == ["main/h"]
    # The model of the caller stays.
    assert [value.name for value in given.graph.value_info] == ["h"]
    # For nobody in particular it stays.
    assert not fold(given).changes


@pytest.mark.parametrize("shape", [[4, "N"], [4, "M"], ["A", "B"]])
def test_a_declared_shape_that_may_hold_stays(shape: list[int | str]) -> None:
    rewrite = convert_folded(declared(model(TWO), h=shape), nonempty=True)
    assert [value.name for value in rewrite.model.graph.value_info] == ["h"]
    assert not rewrite.changes


def test_what_nobody_knows_better_is_believed() -> None:
    """The number of ones is found in a run."""
    body = "(float[N] x) => (float[M] y) { i = NonZero (x) h = Cast<to = 1> (i) z = Squeeze (h) y = Relu (z) }"
    rewrite = convert_folded(declared(model(body), h=[1, 3]), nonempty=True)
    assert [value.name for value in rewrite.model.graph.value_info] == ["h"]
