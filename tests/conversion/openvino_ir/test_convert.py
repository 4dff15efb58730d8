"""Splits of IR files between Split and VariadicSplit: refusals, and the corpus rewritten and inferred again."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import tostring

import pytest

import splitgraph
from splitgraph.conversion.openvino_ir import convert_ir

TESTS = Path(__file__).parents[2]
CASES: dict[str, dict[str, Any]] = {
    case["id"]: case for case in json.loads((TESTS / "conformance/openvino_cases.json").read_text("utf-8"))["cases"]
}
VALID = [name for name, case in CASES.items() if case["expected"].get("outputs")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("corpus")
    with zipfile.ZipFile(TESTS / "formats/openvino_ir/corpus.zip") as archive:
        archive.extractall(path)
    yield path


def load(folder: Path, name: str) -> splitgraph.OpenVINOModel:
    (path,) = folder.rglob(f"{name}.xml")
    model = splitgraph.load(path)
    assert isinstance(model, splitgraph.OpenVINOModel)
    return model


REFUSED = [
    ("ovtp_vs_04_scalar_i16", "split", "SG408", "cannot pin one that is dynamic"),
    ("ovtp_vs_err_rank", "variadic-split", "SG211", "1-D tensor"),
    ("e_vs_axis_param_scalar", "split", "SG408", "these are 2, 4"),
]


@pytest.mark.parametrize(("name", "to", "code", "words"), REFUSED)
def test_refused(folder: Path, name: str, to: str, code: str, words: str) -> None:
    with pytest.raises(splitgraph.ConversionError) as caught:
        convert_ir(load(folder, name), to)
    assert code in {found.code for found in caught.value.diagnostics}
    assert any(words in found.message for found in caught.value.diagnostics)


@pytest.mark.parametrize(
    ("to", "explicit", "words"),
    [
        ("slices", False, "the targets are 'split' and 'variadic-split'"),
        ("slice", False, "splits of an OpenVINO IR cannot be converted to 'slice'"),
        ("split", True, "has no lengths to write out"),
    ],
)
def test_wrong_arguments(folder: Path, to: str, explicit: bool, words: str) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match=words):
        convert_ir(load(folder, VALID[0]), to, explicit_lengths=explicit)


def test_an_ir_has_no_opset(folder: Path) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="no opset of ONNX"):
        splitgraph.upgrade(load(folder, VALID[0]), 18)


def types(analysis: splitgraph.Analysis) -> list[list[str]]:
    """The types of the parts, an expression of symbols by what it is."""
    return [[str(value) for _, value in split.outputs] for split in analysis.splits]


def layers_of(model: splitgraph.OpenVINOModel) -> dict[str, bytes]:
    return {str(layer.get("name")): tostring(layer) for layer in model.root.iter("layer")}


@pytest.mark.parametrize("name", VALID)
def test_as_variadic_split(folder: Path, name: str) -> None:
    """The parts have the types that they had, and every other layer is what it was."""
    model = load(folder, name)
    before = layers_of(model)
    rewrite = convert_ir(model, "variadic-split")
    assert layers_of(model) == before
    assert {split.op for split in splitgraph.infer(rewrite.model).splits} == {"VariadicSplit"}
    assert bool(rewrite.changes) == (CASES[name]["op"] == "Split")
    changed = {change.location.rpartition("/")[2] for change in rewrite.changes}
    after = layers_of(rewrite.model)
    assert {key: text for key, text in after.items() if key in before and key not in changed} == {
        key: text for key, text in before.items() if key not in changed
    }
    assert types(splitgraph.infer(rewrite.model)) == types(splitgraph.infer(model))


def test_there_and_back(folder: Path) -> None:
    """Equal parts of a static dimension come back as the Split that they were."""
    count = 0
    for name in VALID:
        model = load(folder, name)
        (split,) = splitgraph.infer(model).splits
        if split.op == "Split" and all(isinstance(length, int) for length in split.lengths) and split.lengths:
            back = convert_ir(convert_ir(model, "variadic-split").model, "split").model
            assert tostring(back.root) == tostring(model.root)
            count += 1
    assert count >= 3


def test_a_rest_is_written_out_where_it_is_known(folder: Path) -> None:
    model = load(folder, "ovtp_vs_02_default_ctor_i64")
    rewrite = convert_ir(model, "variadic-split", explicit_lengths=True)
    assert types(splitgraph.infer(rewrite.model)) == types(splitgraph.infer(model))


def test_files_and_command_line(folder: Path, tmp_path: Path) -> None:
    """The written pair of files loads, and gives the same again."""
    model = load(folder, "ovtp_s_dyn_2")
    rewrite = splitgraph.convert(model, to="variadic-split")
    splitgraph.save(rewrite.model, tmp_path / "out.xml")
    assert types(splitgraph.infer(tmp_path / "out.xml")) == types(splitgraph.infer(model))
    filled = splitgraph.infer(tmp_path / "out.xml").model
    splitgraph.save(filled, tmp_path / "filled.xml")
    assert types(splitgraph.infer(tmp_path / "filled.xml")) == types(splitgraph.infer(model))
