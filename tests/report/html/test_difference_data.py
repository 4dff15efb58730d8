"""What the page of a rewrite has of each change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

import splitgraph
from splitgraph.reports.html.changes_page import changes_page

from .pages import page_data, split_model

MODELS = Path(__file__).parents[3] / "models"


def data_of(before: onnx.ModelProto, after: onnx.ModelProto, rewrite: object = None) -> dict[str, object]:
    analyses = splitgraph.infer(before), splitgraph.infer(after)
    changes = getattr(rewrite, "changes", ())
    return page_data(changes_page(*analyses, splitgraph.diff(before, after), ("a", "b"), changes=changes))  # type: ignore[no-any-return]


def test_equal_models_have_no_changes() -> None:
    data = data_of(split_model(), split_model())
    assert data["changes"] == data["parts"] == data["values"] == []
    assert len(data["models"]) == 2  # type: ignore[arg-type]


def test_a_rewrite_with_its_reasons() -> None:
    before = onnx.load(MODELS / "gpt2.opset11.onnx")
    rewrite = splitgraph.upgrade(before, 18)
    data = data_of(before, rewrite.model, rewrite)
    reasons = {change.location: change.why for change in rewrite.changes}
    splits = [each for each in data["changes"] if each["before"] == "Split-11"]  # type: ignore[attr-defined]
    assert [(each["kind"], each["after"]) for each in splits] == [("changed", "Split-18")] * 2
    assert [each["why"] for each in splits] == [reasons[each["loc"]] for each in splits]
    assert "attribute split: [24, 24, 24] → none" in splits[0]["details"]
    for each in data["changes"]:  # type: ignore[attr-defined]
        for place, model in zip(each["nodes"], data["models"], strict=True):  # type: ignore[call-overload]
            assert place is None or model["graphs"][place[0]]["names"][place[1]]


def test_every_change_is_in_one_group_with_its_like() -> None:
    before = onnx.load(MODELS / "gpt2.opset18.onnx")
    data: Any = data_of(before, splitgraph.downgrade(before, 11).model)
    places = [place for group in data["groups"] for cluster in group["clusters"] for place in cluster]
    assert sorted(places) == list(range(len(data["changes"])))
    for group in data["groups"]:
        firsts = [data["changes"][cluster[0]] for cluster in group["clusters"]]
        assert len({(each["kind"], each["before"], each["after"], each["what"]) for each in firsts}) == 1
    # Each LayerNormalization became several nodes.
    assert any("ReduceMean" in group["others"] and len(group["clusters"]) > 1 for group in data["groups"])


def test_nodes_that_only_have_another_version_are_counted() -> None:
    before = onnx.load(MODELS / "gpt2.opset11.onnx")
    data = data_of(before, splitgraph.upgrade(before, 18).model)
    assert not [each for each in data["changes"] if each["before"].split("-")[0] == "MatMul"]  # type: ignore[attr-defined]
    assert [text for text in data["parts"] if "another version of the operator" in text]  # type: ignore[attr-defined]


def test_added_and_removed_nodes_have_a_place_in_one_model() -> None:
    after = split_model()
    after.graph.node[0].op_type = "Abs"
    after.graph.node[0].name = "other"
    data = data_of(split_model(), after)
    found = {each["kind"]: each["nodes"] for each in data["changes"]}  # type: ignore[attr-defined]
    assert found in ({"removed": [[0, 0], None], "added": [None, [0, 0]]}, {"changed": [[0, 0], [0, 0]]})


def test_findings_of_only_one_model() -> None:
    after = split_model()
    after.graph.node[1].attribute[0].i = 5
    data = data_of(split_model(), after)
    assert [each["severity"] for each in data["new_findings"]] == ["error"]  # type: ignore[attr-defined]
    assert data["gone_findings"] == []
