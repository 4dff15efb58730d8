"""If, TensorIterator and Loop of OpenVINO: the splits in their bodies, and what holds after them."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from splitgraph.formats.openvino_ir import OpenVINOModel, load_ir
from splitgraph.inference.openvino_ir import infer_ir
from splitgraph.inference.rules.openvino.control_flow import PortEntry, read_ports, write_ports

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    unpacked = tmp_path_factory.mktemp("bodies")
    with zipfile.ZipFile(HERE / "layers.zip") as archive:
        archive.extractall(unpacked)
    return unpacked


def test_split_in_a_branch(folder: Path) -> None:
    """It is given the layer's own input, an interval; its lengths are exact."""
    analysis = infer_ir(load_ir(folder / "branches.xml"))
    (split,) = analysis.splits
    assert "/then_body/" in split.location
    assert [str(known) for _, known in split.outputs] == ["float32[unk0, 1]", "float32[unk0, p01_1 - 1]"]


def test_split_in_an_iteration(folder: Path) -> None:
    """Lengths that are the same in each iteration are followed into the body."""
    analysis = infer_ir(load_ir(folder / "split_in_iterations.xml"))
    (split,) = analysis.splits
    assert "/body/" in split.location
    assert split.lengths[0] == 3
    assert str(split.lengths[1]) == f"{split.input.shape[2]} - 3"


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("iterated", {"float32[2, 8]", "float32[2, p00_1, 8]"}),
        ("iterated_backward", {"float32[2, 8, unk0]"}),
        ("growing", {"float32[?, 8]", "int64[3]"}),
        ("branches", {"float32[unk0, unk1]", "float32[unk0, unk2]"}),
    ],
)
def test_what_holds_afterwards(folder: Path, group: str, expected: set[str]) -> None:
    model = load_ir(folder / f"{group}.xml")
    analysis = infer_ir(model)
    (node,) = [layer for layer in model.graph.layers if layer.bodies]
    given = [name for port in node.outputs for name in port.names]
    assert {str(analysis.types[name]) for name in given} == expected
    assert not analysis.diagnostics


def test_a_length_that_an_iteration_changes_is_not_that_of_the_input(folder: Path) -> None:
    analysis = infer_ir(load_ir(folder / "growing.xml"))
    (body,) = [types for location, types in analysis.graphs.items() if location.endswith("/body")]
    first = analysis.types["p00"].shape
    assert all(known.shape is None or first is None or known.shape[:1] != first[:1] for known in body.values())


def edited(folder: Path, group: str, tag: str, name: str, text: str) -> OpenVINOModel:
    model = load_ir(folder / f"{group}.xml")
    for element in model.root.iter(tag):
        if name in element.attrib:
            element.set(name, text)
    model.refresh()
    return model


def test_axis_beyond_the_rank(folder: Path) -> None:
    (found,) = infer_ir(edited(folder, "iterated_backward", "input", "axis", "7")).diagnostics
    assert found.code == "SG302"
    assert "slice axis 7 is out of range" in found.message


def test_parts_that_are_not_from_end_to_end_are_counted(folder: Path) -> None:
    model = edited(folder, "iterated_backward", "input", "end", "3")
    (node,) = [layer for layer in model.graph.layers if layer.bodies]
    assert str(infer_ir(model).types[node.outputs[0].names[0]]) == "float32[2, 4, unk0]"


# What stands in for a constant of the loop of three iterations: text of the IR, which of its occurrences, the other
# text, and what is then known of the number of iterations.
_COUNT = 'type="Const" version="opset1"> <data element_type="i64" shape="" offset="0" size="8" />'
_CONDITION = 'type="Const" version="opset1"> <data element_type="boolean" shape="" offset="8" size="1" />'
_ANY = 'type="Parameter" version="opset1"> <data element_type="{}" shape="{}" />'
ITERATIONS: dict[str, tuple[str, int, str, str]] = {
    "as many as are said": (_COUNT, 0, _COUNT, "int64[3]"),
    "any number": (_COUNT, 0, _ANY.format("i64", ""), "int64[?]"),
    "without an end": (_COUNT, 0, _COUNT.replace('offset="0"', 'offset="17"'), "int64[?]"),
    # A generated symbol stands for an interval that ends at 3.
    "perhaps none": (_CONDITION, 0, _ANY.format("boolean", ""), "int64[unk1]"),
    "none": (_CONDITION, 0, _CONDITION.replace('offset="8"', 'offset="9"'), "int64[unk1]"),
    "perhaps one": (_CONDITION, 1, _ANY.format("boolean", ""), "int64[unk1]"),
    "one": (_CONDITION, 1, _CONDITION.replace('offset="8"', 'offset="9"'), "int64[1]"),
}


@pytest.mark.parametrize("name", ITERATIONS)
def test_how_many_iterations_there_are(folder: Path, tmp_path: Path, name: str) -> None:
    text, place, other, expected = ITERATIONS[name]
    parts = re.sub(r">\s+<", "> <", (folder / "growing.xml").read_text()).split(text)
    edited_text = text.join(parts[: place + 1]) + other + text.join(parts[place + 1 :])
    (tmp_path / "growing.xml").write_text(edited_text)
    weights = (folder / "growing.bin").read_bytes()
    assert len(weights) == 17
    # A count of -1, and zeros before it, of which one is False.
    (tmp_path / "growing.bin").write_bytes(weights + b"\xff" * 8)
    analysis = infer_ir(load_ir(tmp_path / "growing.xml"))
    assert not analysis.diagnostics
    assert str(analysis.types["steps"]) == expected


def test_port_map_through_the_mirror(folder: Path) -> None:
    model = load_ir(folder / "iterated.xml")
    (node,) = [layer for layer in model.graph.layers if layer.bodies]
    entries = read_ports(write_ports(node, "port_map"))
    assert entries[0] == PortEntry("input", 0, entries[0].internal, 1, 0, -1, 1, 1, "")
    assert [entry.external for entry in entries if entry.tag == "output"] == [0, 1]
    (edge,) = read_ports(write_ports(node, "back_edges"))
    assert (edge.tag, edge.external, edge.internal) == ("edge", 1, 1)
