"""Targets that read OpenVINO IR: the traits of layers, the answer to each, and splits in the form that is read.

What is known of a target is invented here, so that no measurement changes what is tested.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from inference.openvino_ir.one_layer import Input, one_layer
from json_schemas import wrong

import splitgraph
from splitgraph.runtimes.examine_ir import examine_ir
from splitgraph.runtimes.layers import LayerTable, layer_table
from splitgraph.runtimes.operators import read_entry

MODELS = Path(__file__).parents[2] / "models"
INTERVALS = MODELS / "interval_split.xml"

# What of a layer, its data and its inputs: traits that it must have, and traits that it must not have.
TRAITS: dict[str, tuple[tuple[str, str, dict[str, str], list[Input]], set[str], set[str]]] = {
    "types": (
        ("Convert", "opset1", {"destination_type": "i32"}, ["f16 2,3"]),
        {"T=float16", "destination_type=i32"},
        set(),
    ),
    "an attribute that is no word": (
        ("Interpolate", "opset11", {"mode": "cubic", "cube_coeff": "-0.75"}, ["f32 2,3", [1, 2]]),
        {"mode=cubic"},
        {"cube_coeff=-0.75"},
    ),
    "masks": (
        ("StridedSlice", "opset1", {"new_axis_mask": "0, 1", "ellipsis_mask": "0, 0"}, ["f32 2,3", [0], [1], [1]]),
        {"with new_axis_mask"},
        {"with ellipsis_mask"},
    ),
    "an equation": (("Einsum", "opset7", {"equation": "ij,jk->ik"}, ["f32 2,3", "f32 3,2"]), set(), {"a diagonal"}),
    "a diagonal": (("Einsum", "opset7", {"equation": "...ii->...i"}, ["f32 2,3,3"]), {"a diagonal"}, set()),
    "a name": (("ReadValue", "opset6", {"variable_id": "v"}, ["f32 2,3"]), set(), {"variable_id=v"}),
    "constants": (("Gather", "opset8", {}, ["f32 2,3", [1], 0]), {"input 1=int64"}, {"input 1 computed"}),
    "computed indices": (
        ("Gather", "opset8", {}, ["f32 2,3", "i32 1", 0]),
        {"input 1=int32", "input 1 computed"},
        set(),
    ),
    "inputs of one kind": (("Concat", "opset1", {"axis": "0"}, ["f32 2,3", "f32 2,3"]), set(), {"input 1 computed"}),
    "shapes of operands": (("Add", "opset1", {"auto_broadcast": "numpy"}, ["f32 2,3", "f32 3"]), {"broadcast"}, set()),
    "shapes of other inputs": (("Gather", "opset8", {}, ["f32 2,3", "i64 1", 0]), {"rank 2"}, {"broadcast"}),
    "attention": (
        ("ScaledDotProductAttention", "opset13", {}, ["f32 2,4,8", "f32 2,4,8", "f32 2,4,8", "f32 4,4"]),
        {"T=float32", "input 3 computed"},
        {"values of another size", "one mask for all queries"},
    ),
    "attention to other values": (
        ("ScaledDotProductAttention", "opset13", {}, ["f32 2,4,8", "f32 2,4,8", "f32 2,4,6", "f32 1,4"]),
        {"values of another size", "one mask for all queries"},
        set(),
    ),
    "attention without a mask": (
        ("ScaledDotProductAttention", "opset13", {}, ["f32 2,4,8", "f32 2,4,8", "f32 2,4,6"]),
        {"values of another size"},
        {"one mask for all queries"},
    ),
    "attention of one query": (
        ("ScaledDotProductAttention", "opset13", {}, ["f32 2,1,8", "f32 2,4,8", "f32 2,4,8", "f32 1,4"]),
        set(),
        {"one mask for all queries"},
    ),
    "fixed dimensions": (("ReLU", "opset1", {}, ["f32 2,3"]), {"rank 2"}, {"dim 0 open", "dim 1 open"}),
    "a batch": (("ReLU", "opset1", {}, ["f32 ?,3"]), {"dim 0 open"}, {"dim 1 open"}),
    "an interval": (("ReLU", "opset1", {}, ["f32 2,1..4"]), {"dim 1 open"}, {"dim 0 open"}),
    "an empty part": (
        ("VariadicSplit", "opset1", {}, ["f32 2,3", 1, [3, 0]]),
        {"a part of length 0"},
        {"only one part"},
    ),
    "the rest": (("VariadicSplit", "opset1", {}, ["f32 2,3", 1, [1, -1]]), {"a length of -1"}, {"a part of length 0"}),
    "no rest": (("VariadicSplit", "opset1", {}, ["f32 2,3", 1, [1, 2]]), {"input 1=int64"}, {"a length of -1"}),
    "one part": (("Split", "opset1", {"num_splits": "1"}, ["f32 2,3", 1]), {"only one part"}, set()),
}


@pytest.mark.parametrize("name", TRAITS)
def test_traits_of_a_layer(tmp_path: Path, name: str) -> None:
    (type_, version, data, inputs), present, absent = TRAITS[name]
    parts = 2 if type_ == "VariadicSplit" else 1
    (node,) = examine_ir(one_layer(tmp_path, type_, version, data, inputs, outputs=parts)).nodes
    assert (node.label, node.location) == (f"{version}.{type_}", "main/tested")
    assert present <= node.own
    assert not absent & node.own


def test_every_layer_that_computes_is_a_node() -> None:
    nodes = splitgraph.check(INTERVALS, "openvino").nodes
    assert {node.node for node in nodes} == {
        *("main/heads", "main/rest", "main/tail", "main/halves", "main/first", "main/second")
    }
    assert {node.operator for node in nodes} == {"opset1.VariadicSplit", "opset1.Split", "opset1.ReLU"}


# What is known of the target: by layer, the entry of the table.
Known = Mapping[str, Mapping[str, Any]]
Give = Callable[[Known, splitgraph.OpenVINOModel], None]
READ = {"reads": 3}
REFUSED = {"refuses": 2, "said": "Cannot create layer"}
WRONG = {"wrong": 2}
BOTH = {"opset1.VariadicSplit": READ, "opset1.Split": READ, "opset1.ReLU": READ}


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Give:
    """Gives every target these entries, and cases with all traits that a model has."""

    def give(entries: Known, model: splitgraph.OpenVINOModel) -> None:
        traits: dict[str, frozenset[str]] = {}
        for node in examine_ir(model).nodes:
            traits[node.label] = traits.get(node.label, frozenset()) | node.own
        table = LayerTable("2026-11-26", {layer: read_entry(entry) for layer, entry in entries.items()}, traits)
        monkeypatch.setattr("splitgraph.runtimes.layers.layer_table", lambda key: table)

    return give


@pytest.fixture
def model() -> splitgraph.OpenVINOModel:
    loaded = splitgraph.load(INTERVALS)
    assert isinstance(loaded, splitgraph.OpenVINOModel)
    return loaded


# What is known, whether the model runs, and the findings: code, severity, location, words.
CHECKED: dict[str, tuple[Known, bool | None, list[tuple[str, str, str, str]]]] = {
    "all is read": (BOTH, True, []),
    "one is not known": (
        {**BOTH, "opset1.ReLU": {}} | {"opset1.ReLU": {"reads": 1, "unread": ["T=float32"]}},
        None,
        [("SG705", "info", "main/tail", "(4 nodes): opset1.ReLU was not measured with T=float32")],
    ),
    "one was not measured": (
        {"opset1.VariadicSplit": READ, "opset1.Split": READ},
        None,
        [("SG705", "info", "main/tail", "no case of opset1.ReLU was measured")],
    ),
    "one is refused": (
        {**BOTH, "opset1.ReLU": REFUSED},
        False,
        [
            (
                "SG701",
                "error",
                "main/tail",
                "refuses opset1.ReLU (4 nodes): 0 of 2 cases of opset1.ReLU run: Cannot create",
            )
        ],
    ),
    "one is wrong": (
        {**BOTH, "opset1.Split": WRONG},
        False,
        [("SG702", "error", "main/halves", "silently computes wrong results of opset1.Split")],
    ),
    "one is read at times": (
        {**BOTH, "opset1.Split": {"reads": 1, "refuses": 1, "unexplained": 1}},
        None,
        [("SG707", "warning", "main/halves", "does not read every opset1.Split: 1 of 2 cases")],
    ),
    "one is not read at times, and all is like it": (
        {**BOTH, "opset1.Split": {"reads": 1, "refuses": 1, "unexplained": 1, "like": ["T=float32"]}},
        None,
        [("SG707", "warning", "main/halves", "does not read every opset1.Split: 1 of 2 cases")],
    ),
    "one is not read at times, and nothing is like it": (
        {**BOTH, "opset1.Split": {"reads": 1, "refuses": 1, "unexplained": 1, "like": ["empty"]}},
        True,
        [],
    ),
}


@pytest.mark.parametrize("name", CHECKED)
def test_each_layer_has_an_answer(give: Give, model: splitgraph.OpenVINOModel, name: str) -> None:
    entries, runs, told = CHECKED[name]
    give(entries, model)
    found = splitgraph.check(model, "openvino")
    assert found.runs is runs
    assert [(each.code, each.severity, each.location) for each in found] == [each[:3] for each in told]
    assert all(words in each.message for each, (*_, words) in zip(found, told, strict=True))


def test_what_no_release_has_is_refused(tmp_path: Path) -> None:
    findings = splitgraph.check(one_layer(tmp_path, "Swish", "opset3", {}, ["f32 2,3"], "2,3"), "openvino")
    (found,) = findings
    assert (found.code, found.location, findings.runs) == ("SG701", "main/tested", False)
    assert "no layer Swish in opset3; the layer came with opset4" in found.message
    assert "splitgraph convert" not in found.help


def test_an_extension_is_not_known(tmp_path: Path) -> None:
    findings = splitgraph.check(one_layer(tmp_path, "FooBar", "extension", {}, ["f32 2,3"], "2,3"), "openvino@2024")
    assert findings.runs is None
    assert [(found.code, found.severity) for found in findings] == [("SG705", "info")]
    assert "no case of extension.FooBar was measured" in findings[0].message


@pytest.mark.parametrize("verb", ["check", "convert"])
@pytest.mark.parametrize("target", ["mnn", "onnxruntime@1.15"])
def test_only_openvino_reads_an_ir(verb: str, target: str) -> None:
    with pytest.raises(
        splitgraph.SplitgraphError, match=r"reads ONNX models; this is an OpenVINO IR.*--target openvino"
    ):
        splitgraph.check(INTERVALS, target) if verb == "check" else splitgraph.convert(INTERVALS, target=target)


def test_one_target_of_several_does_not_read_an_ir() -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="MNN"):
        splitgraph.check(INTERVALS, ["openvino", "mnn"])


def test_an_ir_that_is_wrong_is_told_first(tmp_path: Path) -> None:
    bad = one_layer(tmp_path, "VariadicSplit", "opset1", {}, ["f32 2,6", 1, [2, 5]], outputs=2)
    codes = [found.code for found in splitgraph.check(bad, "openvino") if found.severity == "error"]
    assert codes == ["SG204"]
    with pytest.raises(splitgraph.ConversionError, match="SG204"):
        splitgraph.convert(bad, target="openvino")


# Converting -----------------------------------------------------------------------------------------------------------

EQUAL = ("VariadicSplit", {}, ["f32 2,6", 1, [3, 3]])
UNEQUAL = ("VariadicSplit", {}, ["f32 2,6", 1, [2, 4]])
PLAIN = ("Split", {"num_splits": "2"}, ["f32 2,6", 1])
OPEN = ("Split", {"num_splits": "2"}, ["f32 2,?", 1])
COMPUTING = {f"opset{version}": READ for version in ("3.ShapeOf", "8.Gather", "1.Divide", "3.Broadcast")}


def split_ir(folder: Path, made: tuple[str, dict[str, str], list[Input]]) -> splitgraph.OpenVINOModel:
    """An IR of one split into two parts."""
    type_, data, inputs = made
    return one_layer(folder, type_, "opset1", data, inputs, outputs=2)


# A split, what is known of the target, and what the split becomes; None for nothing.
CONVERTED: dict[str, tuple[tuple[str, dict[str, str], list[Input]], Known, str | None]] = {
    "nothing to do": (EQUAL, BOTH, None),
    "not known": (EQUAL, {}, None),
    "not known alone": (PLAIN, {"opset1.VariadicSplit": REFUSED}, None),
    "equal lengths": (EQUAL, {**BOTH, "opset1.VariadicSplit": REFUSED}, "Split-1"),
    "equal lengths that are computed wrong": (EQUAL, {**BOTH, "opset1.VariadicSplit": WRONG}, "Split-1"),
    "a plain split": (PLAIN, {**BOTH, "opset1.Split": REFUSED}, "VariadicSplit-1"),
    "a dynamic dimension": (OPEN, {**BOTH, **COMPUTING, "opset1.Split": REFUSED}, "VariadicSplit-1"),
    "a trait that is refused": (
        EQUAL,
        {**BOTH, "opset1.VariadicSplit": {"reads": 1, "refuses": 1, "rules": [[["T=float32"], "refuses", 1]]}},
        "Split-1",
    ),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_a_split_gets_the_form_that_is_read(give: Give, tmp_path: Path, name: str) -> None:
    made, entries, after = CONVERTED[name]
    ir = split_ir(tmp_path, made)
    give(entries, ir)
    rewrite = splitgraph.convert(ir, target="openvino@2023.3")
    expected = [] if after is None else [("main/tested", f"{made[0]}-1", after)]
    assert [(change.location, change.before, change.after) for change in rewrite.changes] == expected
    assert rewrite.model is not ir
    found = splitgraph.check(rewrite.model, "openvino@2023.3")
    assert [each.message for each in found if each.severity == "error"] == []
    assert splitgraph.check(ir, "openvino").after_conversion is found.runs


# A split, what is known of the target, and the words of each blocker.
REFUSALS: dict[str, tuple[tuple[str, dict[str, str], list[Input]], Known, list[str]]] = {
    "lengths that Split cannot have": (
        UNEQUAL,
        {**BOTH, "opset1.VariadicSplit": REFUSED},
        ["refuses opset1.VariadicSplit: 0 of 2 cases .*; Split makes equal parts, and these are 2, 4"],
    ),
    "neither form is read": (
        EQUAL,
        {"opset1.VariadicSplit": REFUSED, "opset1.Split": REFUSED},
        ["refuses opset1.VariadicSplit.*; no other form of it is known to be read"],
    ),
    "what computes the lengths is refused": (
        OPEN,
        {**BOTH, **COMPUTING, "opset8.Gather": REFUSED, "opset1.Split": REFUSED},
        ["refuses opset1.Split: .*; no other form of it is known to be read"],
    ),
    "a layer that is no split": (
        ("ReLU", {}, ["f32 2,6"]),
        {"opset1.ReLU": REFUSED},
        ["refuses opset1.ReLU.*; no other form of it is known to be read"],
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_converted_is_told_in_the_users_names(give: Give, tmp_path: Path, name: str) -> None:
    made, entries, words = REFUSALS[name]
    ir = one_layer(tmp_path, made[0], "opset1", made[1], made[2], outputs=1 if made[0] == "ReLU" else 2)
    give(entries, ir)
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.convert(ir, target="openvino")
    assert [(each.code, each.location) for each in caught.value.diagnostics] == [("SG706", "main/tested")] * len(words)
    for each, wanted in zip(caught.value.diagnostics, words, strict=True):
        assert re.search(wanted, each.message)
        assert "Convert the original model again with the release of OpenVINO that is to read it." in each.help
    assert splitgraph.check(ir, "openvino").after_conversion is False


@pytest.mark.parametrize(
    ("options", "words"), [({"opset": 13}, "no opset of ONNX"), ({"ir_version": 8}, "no IR version")]
)
def test_an_ir_has_no_versions_of_onnx(options: dict[str, int], words: str) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match=words):
        splitgraph.convert(INTERVALS, target="openvino", **options)  # type: ignore[misc]


# The table ------------------------------------------------------------------------------------------------------------

FOLDER = Path(__file__).parents[2] / "splitgraph" / "runtimes" / "table" / "layers"
RELEASES = [target.key for target in splitgraph.targets().values() if target.reads_ir]


@pytest.mark.parametrize("key", RELEASES)
def test_every_release_was_measured(key: str) -> None:
    held = json.loads((FOLDER / f"{key}.json").read_text("utf-8"))
    assert (wrong(held, "operators"), f"{held['name']}@{held['version']}") == ([], key)
    table = layer_table(key)
    assert table.measured is not None
    assert set(table.entries) <= set(table.known)
    for layer, entry in table.entries.items():
        assert entry.cases > 0, layer
        assert entry.unread <= table.known[layer], layer


@pytest.mark.parametrize("key", RELEASES)
def test_a_model_of_splits_runs_in_every_release(key: str) -> None:
    assert splitgraph.check(INTERVALS, key).runs is True


def test_a_newer_layer_is_refused_by_an_older_release(tmp_path: Path) -> None:
    newer = one_layer(tmp_path, "Identity", "opset16", {}, ["f32 2,3"], "2,3")
    assert [splitgraph.check(newer, key).runs for key in ("openvino@2026", "openvino@2023")] == [True, False]


def test_a_runtime_without_a_table_knows_nothing() -> None:
    assert layer_table("mnn@3.6.1").entries == {}
