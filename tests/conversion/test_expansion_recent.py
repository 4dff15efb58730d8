"""Function bodies of operator versions that older releases of onnx do not have."""

from __future__ import annotations

from typing import Any

from conversion.adapters.execute import (
    assert_same,
    build,
    converted,
    operators,
    random_array,
    run_reference,
)
from onnx import helper


def test_the_body_of_a_newer_version_where_the_older_one_lacks_an_attribute() -> None:
    shape = (1, 2, 3, 8)
    inputs: dict[str, Any] = dict.fromkeys("qkv", ("float32", shape))
    model = build(helper.make_node("Attention", list("qkv"), ["y"], left_window_size=1), 25, inputs, {"y": inputs["q"]})
    feeds = {name: random_array(shape, seed=index) for index, name in enumerate("qkv")}
    after = converted(model, 24)
    assert "Attention" not in operators(after)
    assert_same(run_reference(model, feeds), run_reference(after, feeds), 1e-4)
