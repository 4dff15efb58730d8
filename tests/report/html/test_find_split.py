"""Which split a name or a location means."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import helper

import splitgraph
from splitgraph.reports.html.split_svg import find_split

from .pages import split_model

MODELS = Path(__file__).parents[3] / "models"
IN_FUNCTION = splitgraph.infer(str(MODELS / "split_in_function.onnx"))


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("split", "2 splits are named 'split'. Give the location of one: 'main/gate_channels/split', 'main/gate_se"),
        ("splitt", "there is no split 'splitt'; did you mean 'split'?"),
        ("main/gate_channel/split", "did you mean 'main/gate_channels/split'"),
        ("zzz", "there is no split 'zzz'; the model has 'split', 'split'"),
        ("", "there is no split ''; the model has"),
    ],
)
def test_what_means_no_split(wanted: str, told: str) -> None:
    with pytest.raises(splitgraph.SplitgraphError) as raised:
        find_split(IN_FUNCTION, wanted)
    assert told in str(raised.value)
    assert [each.code for each in raised.value.diagnostics] == ["SG601"]


def test_a_model_without_splits() -> None:
    model = split_model()
    del model.graph.node[1:]
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("y", 1, None))
    with pytest.raises(splitgraph.SplitgraphError, match="the model has no splits"):
        find_split(splitgraph.infer(model), "s")


def test_a_name_and_a_location() -> None:
    analysis = splitgraph.infer(split_model("the split"))
    assert find_split(analysis, "the split") is find_split(analysis, "main/the split") is analysis.splits[0]
    assert find_split(IN_FUNCTION, "main/gate_sequence/split") is IN_FUNCTION.splits[1]
