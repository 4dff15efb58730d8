"""Conversions that take the defaults of inputs for constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

import splitgraph


def model(opset: int = 13, ir_version: int = 8, lengths: str = "w") -> onnx.ModelProto:
    """A split of float[N, 4] whose lengths [1, 3] are an input with a default, as is the summand k."""
    head = f'<ir_version: {ir_version}, opset_import: ["": {opset}]> g (float[N, 4] x, int64[2] w, float[4] k)'
    held = "<int64[2] w = {1, 3}, float[4] k = {1, 2, 3, 4}, int64[2] v = {1, 3}>"
    body = f"y = Add(x, k) [s] a, b = Split<axis = 1>(y, {lengths})"
    return onnx.parser.parse_model(f"{head} => (float[N, P] a, float[N, Q] b) {held} {{ {body} }}")


def note(found: splitgraph.Diagnostic) -> bool:
    return found.code == "SG305" and "treated as constant" in found.message


def test_defaults_are_no_constants_unless_assumed() -> None:
    rewrite = splitgraph.downgrade(model(), 11)
    assert [change.after for change in rewrite.changes] == ["Slice"]
    assert (rewrite.assumed_defaults, [found.code for found in rewrite.diagnostics]) == ((), [])
    assert not any(change.after.startswith("Split") for change in splitgraph.downgrade(model(), 9).changes)


def test_where_there_is_nothing_to_assume() -> None:
    made = model()
    del made.graph.input[1:]
    for each in (made, model(ir_version=3)):
        rewrite = splitgraph.downgrade(each, 11, assume_defaults=True)
        assert [change.after for change in rewrite.changes] == ["Split-11"]
        assert (rewrite.assumed_defaults, list(filter(note, rewrite.diagnostics))) == ((), [])


@pytest.mark.parametrize("opset", [11, 9, 2])
def test_assumed_defaults_are_constants(opset: int) -> None:
    rewrite = splitgraph.downgrade(model(), opset, assume_defaults=True, ir_version="keep")
    assert rewrite.assumed_defaults == ("w", "k")
    assert len(list(filter(note, rewrite.diagnostics))) == 1
    (split,) = (node for node in rewrite.model.graph.node if node.op_type == "Split")
    assert list(onnx.helper.get_attribute_value(split.attribute[1])) == [1, 3]
    # The interface is the same: a caller may still give the default, which changes nothing any more.
    assert [value.name for value in rewrite.model.graph.input] == ["x", "w", "k"]
    assert [held.name for held in rewrite.model.graph.initializer][:2] == ["w", "k"]
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    before, after = (ReferenceEvaluator(each).run(None, {"x": x}) for each in (model(), rewrite.model))
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("given", [{"w": np.int64([1, 3])}, [{}, {"w": np.int64([2, 2])}]])
def test_a_case_with_an_assumed_default_is_refused(given: Any) -> None:
    options: dict = {"ir_version": "keep", "verify": True, "inputs": given}
    with pytest.raises(splitgraph.SplitgraphError, match="the input 'w' counts as a constant because of --assume-def"):
        splitgraph.downgrade(model(), 11, assume_defaults=True, **options)
    with pytest.raises(splitgraph.SplitgraphError, match="has no input 'v'"):
        splitgraph.downgrade(model(), 11, assume_defaults=True, **{**options, "inputs": {"v": np.int64([1, 3])}})
    # Without the option, the input takes a value.
    verification = splitgraph.downgrade(model(), 11, **options).verification
    assert verification is not None
    assert verification.verdict == "equal"


def test_a_verification_gives_no_assumed_default() -> None:
    """With one, the results would differ: the rewrite relies on the defaults."""
    rewrite = splitgraph.downgrade(model(), 11, assume_defaults=True, ir_version="keep", verify=True, samples=4)
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal"
    seen = splitgraph.verify(model(), rewrite.model, samples=4)
    assert seen.verdict != "equal"


def test_other_verbs() -> None:
    made = model()
    for rewrite in (
        splitgraph.upgrade(made, 18, assume_defaults=True),
        splitgraph.convert(made, "slice", assume_defaults=True),
        splitgraph.convert(made, "split", opset=18, assume_defaults=True),
        splitgraph.convert(made, target="onnxruntime", assume_defaults=True),
        splitgraph.convert(made, target="onnxruntime", opset=11, assume_defaults=True),
    ):
        assert rewrite.assumed_defaults == ("w", "k")
        assert len(list(filter(note, rewrite.diagnostics))) == 1
    assert [change.after for change in splitgraph.convert(made, "slice", assume_defaults=True).changes] == ["Slice-13"]
    assert not any(map(note, splitgraph.check(made, "onnxruntime")))
    assert any(map(note, splitgraph.check(made, "onnxruntime", assume_defaults=True)))
