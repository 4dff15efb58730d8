"""Operators of opsets 1 to 12, taken up: they give what their documents of that time say."""

from __future__ import annotations

import onnx
import pytest
from known_opsets import known

import splitgraph

from .model_cases import ModelCase, assert_converted
from .model_table import models_of

CASES = models_of("old operator")
TARGETS = known([18, 28])
# With auto_pad beside output_shape, engines disagree.
REFUSED = {"ConvTranspose-1 odd upper": "ConvTranspose changes at opset 11"}
# Engines have always distributed this padding as the document does from opset 11 on, so the result does, too.
AS_ENGINES_DO = ("ConvTranspose-1 odd",)
# Where the node is still of the old version, engines do not do what its document says.
FIRST_OPSETS = dict.fromkeys((*REFUSED, *AS_ENGINES_DO, "OneHot-9 negative"), 11)


def check(old: ModelCase, target: int) -> None:
    if old.name in REFUSED:
        with pytest.raises(splitgraph.ConversionError, match=REFUSED[old.name]):
            splitgraph.upgrade(old.model, target)
        return
    if old.name in AS_ENGINES_DO:
        changes = splitgraph.upgrade(old.model, target, verify=True).changes
        assert any("onnxruntime, OpenVINO and onnx's evaluator" in change.why for change in changes), changes
        return
    assert_converted(old, splitgraph.upgrade(old.model, target).model)


def test_the_models_are_valid_at_their_own_opset() -> None:
    for old in CASES.values():
        onnx.checker.check_model(old.model)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_document(name: str, target: int) -> None:
    check(CASES[name], target)


@pytest.mark.slow
@pytest.mark.parametrize("target", [target for target in known(range(7, 29)) if target not in TARGETS])
def test_document_at_every_opset(target: int) -> None:
    for old in CASES.values():
        if target >= FIRST_OPSETS.get(old.name, old.model.opset_import[0].version + 1):
            check(old, target)
