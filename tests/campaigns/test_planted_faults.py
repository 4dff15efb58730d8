"""A sample of the campaign that plants faults: which faults there are, and the class of each."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import onnx
import planted_faults
import pytest
from planted_faults_changes import changed_nodes, new_initializers
from planted_faults_oracle import tell_apart
from planted_faults_process import Helper
from planted_faults_spoilings import WAYS, change_tensor, spoilings

ROOT = Path(__file__).resolve().parents[2]
BEFORE = onnx.parser.parse_model(
    """<ir_version: 8, opset_import: ["": 11]> g (float[N, 6] x) => (float[N, 3] y, int32[N, 3] z) {
        p, q = Split<axis = 1>(x)
        y = Relu(p)
        z = Cast<to = 6>(q)
    }"""
)
AFTER = onnx.parser.parse_model(
    """<ir_version: 8, opset_import: ["": 13]> g (float[N, 6] x) => (float[N, 3] y, int32[N, 3] z)
    <int64[2] lengths = {3, 3}, float factor = {1.5}> {
        p, q = Split<axis = 1>(x, lengths)
        y = Relu(p)
        r = Div(q, factor)
        wide = Cast<to = 7>(r)
        z = Cast<to = 6>(wide)
    }"""
)


def test_changed_nodes_are_those_that_the_source_does_not_have_alike():
    found = [(each.place, each.node.op_type, each.change) for each in changed_nodes(BEFORE, AFTER)]
    assert found == [
        ("main/0", "Split", "written"),
        ("main/1", "Relu", "renumbered"),
        ("main/2", "Div", "written"),
        ("main/3", "Cast", "written"),
        ("main/4", "Cast", "written"),
    ]
    assert [tensor.name for _, tensor in new_initializers(BEFORE, AFTER)] == ["lengths", "factor"]
    assert list(changed_nodes(AFTER, AFTER)) == []


def test_each_way_spoils_what_it_says_and_no_two_faults_are_the_same_model():
    found = spoilings(BEFORE, AFTER)
    assert {each.way for each in found} == {*WAYS} - {"attribute"}
    kinds = Counter((each.place, each.way, each.detail) for each in found)
    assert kinds["main/0", "off by one", "input 1"] == 1
    assert kinds["main/0", "default", "input 1"] == 1
    assert kinds["main/4", "cast", "narrower"] == 1
    assert kinds["main/2", "swapped", "inputs 0 and 1"] == 1
    assert kinds["main/1", "dropped", "first output"] == 1
    assert set(kinds.values()) == {1}
    assert [each.key for each in spoilings(BEFORE, AFTER)] == [each.key for each in found]
    written = [each.edit.apply(AFTER).SerializeToString(deterministic=True) for each in found]
    assert len({*written, AFTER.SerializeToString(deterministic=True)}) == len(found) + 1


@pytest.mark.parametrize(
    ("elements", "kind", "expected"),
    [
        ([2, 3], "one", [3, 3]),
        ([2**63 - 1], "one", [-1]),
        ([2, 3, 4], "neighbours", [3, 2, 4]),
        ([4], "neighbours", None),
        ([1, 0], "-1", [0, 0]),
        ([2, -3], "negate", [-2, 3]),
        ([0, 0], "negate", None),
        ([], "one", None),
    ],
)
def test_the_changes_of_a_constant(elements, kind, expected):
    tensor = onnx.helper.make_tensor("t", onnx.TensorProto.INT64, [len(elements)], elements)
    found = change_tensor(tensor, kind, 0.0)
    assert (None if found is None else onnx.numpy_helper.to_array(found).tolist()) == expected


def test_a_smaller_every_adds_to_the_sample_and_each_way_takes_its_turn():
    found = spoilings(BEFORE, AFTER)
    few, more = (planted_faults.chosen(found, every, "seed") for every in (4, 2))
    assert more[: len(few)] == few
    assert len(more) == -(-len(found) // 2)
    assert planted_faults.chosen(found, 2, "seed", most=len(few)) == few
    assert len(planted_faults.chosen(found, 10_000, "seed")) == 1
    kinds = {(each.way, each.change) for each in found}
    assert len({(each.way, each.change) for each in more}) == min(len(more), len(kinds))


@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
def test_the_judgement_tells_a_fault_from_none(engine, tmp_path):
    bodies = {
        "before": "y = Add(r, r)",
        "right": "y = Sum(r, r)",
        "wrong": "y = Add(r, x)",
        "other": "s = Add(r, r)  y = Relu(s)",
    }
    for name, body in bodies.items():
        text = (
            f"""<ir_version: 8, opset_import: ["": 13]> g (float[N, 6] x) => (float[N, 6] y) {{ r = Relu(x) {body} }}"""
        )
        onnx.save(onnx.parser.parse_model(text), tmp_path / f"{name}.onnx")
    paths = {name: str(tmp_path / f"{name}.onnx") for name in bodies}
    wrong = tell_apart(paths["before"], paths["right"], paths["wrong"], engine, 20)
    assert wrong["apart"]
    assert wrong["ran"] > 0
    other = tell_apart(paths["before"], paths["right"], paths["other"], engine, 20)
    assert other == {"ran": 40, "apart": "", "fails": 0}


def test_a_process_that_does_not_answer_is_replaced():
    with Helper(ROOT) as helper:
        assert helper.ask("tree", 60) == {"tree": str(ROOT)}
        assert helper.ask("verify", 0.01, before="a", after="b", timeout=1) == {"failed": "no answer in 0 s"}
        assert helper.ask("unknown", 60) == {"failed": "KeyError: 'unknown'"}


@pytest.mark.slow
def test_a_run_goes_on_where_it_ended_and_is_compared_with_itself(tmp_path, capsys):
    results = tmp_path / "results.jsonl"
    given = [str(results), "--only", "split13_initializer", "--every", "20", "--oracle-seconds", "5"]
    assert planted_faults.main([*given, "--limit", "1"]) == 0
    first = results.read_text().splitlines()
    assert planted_faults.main(given) == 0
    lines = results.read_text().splitlines()
    assert lines[: len(first)] == first
    records = [json.loads(line) for line in lines]
    assert len({record["key"] for record in records}) == len(records) > len(first)
    assert {record["verdict"] for record in records if record["way"] == "none"} == {"equal"}
    classes = Counter(record["class"] for record in records if record["way"] != "none")
    assert set(classes) <= {*planted_faults.CLASSES}
    assert classes["caught"] > 0
    assert classes["failed"] == 0
    capsys.readouterr()
    assert planted_faults.main([str(results), "--summary", "--against", str(results)]) == 0
    text = capsys.readouterr().out
    assert f"| all | {classes.total()} |" in text
    assert f"{classes.total()} spoiled models are in both" in text
    assert "became" not in text


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([{"ran": 40, "fails": 3}, {"ran": 2, "apart": "at [0] 1 became 2"}], "missed"),
        ([{"ran": 40, "fails": 3}, {"ran": 40, "fails": 1}], "missed"),
        ([{"ran": 40, "fails": 3}, {"ran": 0}], "missed"),
        ([{"ran": 40, "fails": 3}, {"ran": 40, "fails": 0}], "unrunnable"),
        ([{"ran": 0}, {"ran": 40}], "indistinguishable"),
        ([{"failed": "no answer in 60 s"}, {"ran": 0}], "unjudged"),
    ],
)
def test_the_class_of_an_equal(answers, expected):
    assert planted_faults._class_of_equal(answers) == expected
