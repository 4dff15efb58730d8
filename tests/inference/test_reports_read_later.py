"""Reports of splits and symbols, made when they are first read: of the model as it was, and in a copy as well."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

import splitgraph

MODELS = Path(__file__).resolve().parents[2] / "models"
READ_LATER = ("splits", "symbols", "required_by", "assumed_by", "generated")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_reports_that_were_not_read_yet_are_in_a_copy(copied: Callable[[Any], Any]) -> None:
    analysis = splitgraph.infer(MODELS / "gpt2.opset17.onnx")
    same = copied(analysis)
    assert same == analysis
    assert [getattr(same, name) for name in READ_LATER] == [getattr(analysis, name) for name in READ_LATER]


def test_reports_are_of_the_model_as_it_was() -> None:
    model = onnx.load(MODELS / "gpt2.opset17.onnx")
    before, after = splitgraph.infer(model), splitgraph.infer(model)
    expected = [getattr(before, name) for name in READ_LATER]
    del model.graph.node[:], model.graph.input[:]
    assert [getattr(after, name) for name in READ_LATER] == expected
