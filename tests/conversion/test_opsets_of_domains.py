"""The opsets of ai.onnx and of ai.onnx.ml, asked for together or apart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_line.program import in_child
from onnx import parser

import splitgraph

ML = "ai.onnx.ml"
SCALER = """<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 4]>
g (float[N, 2] x) => (float[N, 2] y) {
  s = ai.onnx.ml.Scaler <offset: floats = [1.0, 2.0], scale: floats = [0.5, 2.0]> (x)
  y = Relu (s)
}"""
ALONE = """<ir_version: 8, opset_import: ["ai.onnx.ml" : 4]>
g (float[N, 2] x) => (float[N, 2] y) {
  y = ai.onnx.ml.Scaler <offset: floats = [1.0, 2.0], scale: floats = [0.5, 2.0]> (x)
}"""
ENCODER = """<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 2]>
g (string[N] x) => (int64[N] y) {
  y = ai.onnx.ml.LabelEncoder <keys_strings: strings = ["a", "b"], values_int64s: ints = [3, 3]> (x)
}"""
ENCODER_ALONE = ENCODER.replace('"" : 13, ', "")


@pytest.fixture
def scaler() -> onnx.ModelProto:
    return parser.parse_model(SCALER)


# Wrong arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opset", "text"),
    [
        ({}, "the opset is {}"),
        ({"": "17"}, "must be an integer"),
        ({ML: True}, "must be an integer"),
        ({"com.microsoft": 1}, "'com.microsoft' is not a domain with opsets to convert to"),
        ({1: 1}, "1 is not a domain"),
        ({"": 13, "ai.onnx": 14}, "given twice"),
        ({ML: 6}, "there is no opset 6 of ai.onnx.ml; splitgraph knows 1 to 5"),
        ({ML: 0}, "there is no opset 0 of ai.onnx.ml"),
        ({ML: 4, "": 99}, "there is no opset 99 of ai.onnx"),
    ],
)
def test_wrong_opsets_are_refused(scaler: onnx.ModelProto, opset: Any, text: str) -> None:
    for convert in (splitgraph.convert, splitgraph.upgrade, splitgraph.downgrade, splitgraph.blockers):
        with pytest.raises(splitgraph.SplitgraphError, match=text.replace("{", r"\{").replace("}", r"\}")):
            convert(scaler, opset=opset)


@pytest.mark.parametrize(
    ("verb", "opset"), [("upgrade", {ML: 3}), ("downgrade", {ML: 5}), ("upgrade", {"": 17, ML: 3})]
)
def test_a_direction_holds_for_each_domain(scaler: onnx.ModelProto, verb: str, opset: Mapping[str, int]) -> None:
    with pytest.raises(splitgraph.ConversionError) as caught:
        getattr(splitgraph, verb)(scaler, opset)
    assert [finding.code for finding in caught.value.diagnostics] == ["SG418"]
    assert "ai.onnx.ml 4" in caught.value.diagnostics[0].message


def test_a_domain_that_the_model_does_not_import_has_nothing_to_convert() -> None:
    model = parser.parse_model(SCALER.replace(', "ai.onnx.ml" : 4', "").replace("ai.onnx.ml.Scaler", "Elu"))
    model.graph.node[0].ClearField("attribute")
    rewrite = splitgraph.convert(model, opset={"": 14, ML: 3})
    assert rewrite.to_opset == {"": 14}


# What changes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opset", "imports"),
    [
        ({ML: 3}, {"": 13, ML: 3}),
        ({ML: 5}, {"": 13, ML: 5}),
        ({"": 17, ML: 1}, {"": 17, ML: 1}),
        ({"ai.onnx": 9, ML: 4}, {"": 9, ML: 4}),
        (17, {"": 17, ML: 4}),
    ],
)
def test_where_nothing_changes_the_imports_do(scaler: onnx.ModelProto, opset: Any, imports: dict[str, int]) -> None:
    rewrite = splitgraph.convert(scaler, opset=opset)
    assert rewrite.from_opset == {"": 13, ML: 4}
    assert rewrite.to_opset == imports
    assert not rewrite.changes
    assert rewrite.model.graph == scaler.graph
    assert {entry.domain: entry.version for entry in rewrite.model.opset_import} == imports


@pytest.mark.parametrize("opset", [{ML: 3}, {ML: 3, "": 17}], ids=str)
def test_a_model_that_imports_no_ai_onnx_imports_none_after(opset: dict[str, int]) -> None:
    rewrite = splitgraph.convert(parser.parse_model(ALONE), opset=opset)
    assert rewrite.from_opset == {ML: 4}
    assert rewrite.to_opset == {ML: 3}


def test_what_replaces_a_node_may_import_ai_onnx() -> None:
    rewrite = splitgraph.convert(parser.parse_model(ENCODER_ALONE), opset={ML: 1}, verify=True)
    assert rewrite.to_opset.keys() == {"", ML}
    assert [node.op_type for node in rewrite.model.graph.node] == ["LabelEncoder", "Gather"]
    assert rewrite.verified


def test_nodes_in_functions_and_branches_are_converted() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 2, "own" : 1]>
        g (string[N] x, bool c) => (int64[N] y, int64[N] z) {
          y = own.f (x)
          z = If (c) <then_branch = t () => (int64[N] a) {
                a = ai.onnx.ml.LabelEncoder <keys_strings: strings = ["a"], values_int64s: ints = [2]> (x)
              }, else_branch = e () => (int64[N] b) { b = Identity (y) }>
        }
        <domain: "own", opset_import: ["" : 13, "ai.onnx.ml" : 2]>
        f (x) => (y) { y = ai.onnx.ml.LabelEncoder <keys_strings: strings = ["a"], values_int64s: ints = [1]> (x) }"""
    )
    result = splitgraph.convert(model, opset={ML: 1}).model
    entries = {entry.domain: entry.version for entry in result.functions[0].opset_import}
    assert entries == {"": 13, ML: 1}
    branch = result.graph.node[1].attribute[0].g
    for node in (result.functions[0].node[0], branch.node[0]):
        assert [attribute.name for attribute in node.attribute] == ["classes_strings", "default_int64"]


def test_blockers_tell_what_each_domain_can_reach() -> None:
    model = parser.parse_model(ENCODER)
    assert splitgraph.blockers(model, {"": 17, ML: 1}).reachable == {"": 17, ML: 1}
    model.graph.node[0].attribute[1].ints.append(4)
    found = splitgraph.blockers(model, {"": 17, ML: 1})
    assert found
    model = parser.parse_model(ENCODER)
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    assert not splitgraph.blockers(model, {ML: 5})


# The command line -----------------------------------------------------------------------------------------------------


def _write(folder: Path, text: str) -> str:
    path = folder / "model.onnx"
    onnx.save(parser.parse_model(text), path)
    return str(path)


@pytest.mark.parametrize(
    ("options", "name", "told"),
    [
        (["--opset", "ai.onnx.ml=3"], "model.ml3.onnx", "ai.onnx.ml 4 → 3"),
        (["--opset", "17", "--opset", "ai.onnx.ml=3"], "model.opset17.ml3.onnx", "opset 13 → 17, ai.onnx.ml 4 → 3"),
        (["--opset", "ai.onnx.ml=3", "--opset", "ai.onnx=17"], "model.opset17.ml3.onnx", "opset 13 → 17"),
    ],
)
def test_options_name_the_result(tmp_path: Path, options: list[str], name: str, told: str) -> None:
    model = _write(tmp_path, SCALER)
    done = in_child("-m", "splitgraph", "convert", model, *options)
    assert done.returncode == 0, done.stderr
    assert told in done.stdout
    assert (tmp_path / name).exists()
    again = in_child("-m", "splitgraph", "convert", str(tmp_path / name), *options)
    assert "already has" in again.stdout


@pytest.mark.parametrize("options", [["--opset", "x"], ["--opset", "3", "--opset", "4"], ["--opset", "own=3"]], ids=str)
def test_wrong_options_are_usage(tmp_path: Path, options: list[str]) -> None:
    done = in_child("-m", "splitgraph", "convert", _write(tmp_path, SCALER), *options)
    assert done.returncode == 2
    assert not [*tmp_path.glob("*.opset*")]


def test_arrays_keep_their_values(scaler: onnx.ModelProto) -> None:
    rewrite = splitgraph.convert(scaler, opset={"": 20, ML: 5}, verify=True, inputs={"x": np.ones((3, 2), np.float32)})
    assert rewrite.verified
