"""What a readable IR says: layers in order, ports, edges, bodies, and the bytes of its constants."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes  # noqa: F401, numpy knows int4 with it
import numpy as np
import pytest
from process_memory import run_python

import splitgraph
from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats import OpenVINOModel, load_ir, open_model
from splitgraph.formats.openvino_ir.graph import Graph, Layer
from splitgraph.formats.openvino_ir.notation import byte_size, dtype_of, element_type, parse_shape

from .small_ir import BIN, VERSION_10, XML, archived, changed, write

CHECKOUT = Path(__file__).parents[3]
CORPUS = archived("corpus.zip")
BODIES = archived("bodies.zip")


def layer_of(graph: Graph, name: str) -> Layer:
    (found,) = [layer for layer in graph.layers if layer.name == name]
    return found


def body_model(folder: Path, name: str) -> OpenVINOModel:
    return load_ir(write(folder, *BODIES[name]))


def test_small_model(tmp_path: Path) -> None:
    model = load_ir(write(tmp_path))
    assert (model.name, model.version, model.path) == ("small", 11, tmp_path / "model.xml")
    x, axis, split, result = model.graph.layers
    assert (x.id, x.name, x.type, x.version) == (0, "x", "Parameter", "opset1")
    assert x.data == {"shape": "2,6", "element_type": "f32"}
    assert (x.outputs[0].precision, x.outputs[0].dims, x.outputs[0].names) == ("FP32", (2, 6), ("x",))
    assert (axis.outputs[0].dims, bytes(model.constant(axis))) == ((), BIN)
    assert [(port.id, port.dims) for port in split.inputs] == [(0, (2, 6)), (1, None)]
    assert [(port.id, port.dims) for port in split.outputs] == [(2, (2, None)), (3, None)]
    assert split.outputs[0].names == ("a", "a,b")
    assert (result.outputs, result.data, result.bodies, result.port_maps) == ((), {}, {}, {})
    assert model.graph.sources == {(2, 0): (0, 0), (2, 1): (1, 0), (3, 0): (2, 3)}


def test_version_10(tmp_path: Path) -> None:
    model = load_ir(write(tmp_path, VERSION_10, None))
    assert (model.version, model.weights, model.has_weights) == (10, None, False)
    assert model.graph.layers[1].inputs[0].precision == ""


@pytest.mark.parametrize(
    ("text", "names"),
    # As OpenVINO reads them.
    [
        ("", ()),
        (",", ()),
        ("a,", ("a",)),
        ("a,,b", ("a", "b")),
        ("a, b", ("a", " b")),
        ("a\\,b", ("a,b",)),
        ("a\\\\,b", ("a\\,b",)),
        ("a\\", ("a\\",)),
        ("a\\\\b", ("a\\\\b",)),
        ("a&#10;b", ("a\nb",)),
        ("a\\,,b", ("a,", "b")),
    ],
)
def test_names_of_a_tensor(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    model = load_ir(write(tmp_path, changed('names="x"', f'names="{text}"')))
    assert model.graph.layers[0].outputs[0].names == names


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("", ()),
        ("[]", ()),
        ("...", None),
        ("2,6", ((2, 2), (6, 6))),
        ("[2, 6]", ((2, 2), (6, 6))),
        (" 2 , 6", ((2, 2), (6, 6))),
        ("?,-1", ((0, None), (0, None))),
        ("1..10,?,3..,..6", ((1, 10), (0, None), (3, None), (0, 6))),
        ("..,0", ((0, None), (0, 0))),
        (f"2..{2**63 - 1}", ((2, None),)),
    ],
)
def test_shape(text: str, shape: object) -> None:
    assert parse_shape(text) == shape


@pytest.mark.parametrize("seed", range(5))
def test_layers_are_sorted_however_they_are_written(tmp_path: Path, seed: int) -> None:
    layers = re.findall(r"\t\t<layer .*?</layer>\n", XML, re.DOTALL)
    shuffled = random.Random(seed).sample(layers, len(layers))
    model = load_ir(write(tmp_path, XML.replace("".join(layers), "".join(shuffled))))
    seen: set[int] = set()
    for layer in model.graph.layers:
        assert all(model.graph.sources[layer.id, port.id][0] in seen for port in layer.inputs)
        seen.add(layer.id)
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("old", "new", "cyclic"),
    [
        ('from-layer="0" from-port="0" to-layer="2"', 'from-layer="2" from-port="2" to-layer="2"', {2, 3}),
        ('from-layer="2" from-port="3" to-layer="3"', 'from-layer="0" from-port="0" to-layer="3"', set()),
    ],
)
def test_cycle_is_left_to_inference(tmp_path: Path, old: str, new: str, cyclic: set[int]) -> None:
    graph = load_ir(write(tmp_path, changed(old, new))).graph
    assert {layer.id for layer in graph.layers[len(graph.layers) - len(cyclic) :]} == (cyclic or set())
    assert len(graph.layers) == 4


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('<edge from-layer="1" from-port="0" to-layer="2" to-port="1" />', ""),
        ('type="Split"', 'type="Unheard"'),
        ('version="opset1">\n\t\t\t<data num', 'version="mine">\n\t\t\t<data num'),
        ('element_type="f32"', 'element_type="f999"'),
        ('num_splits="2"', 'num_splits="many"'),
        ("<edges>", "<unknown /><edges>"),
    ],
)
def test_fault_of_the_model_is_left_to_inference(tmp_path: Path, old: str, new: str) -> None:
    assert len(load_ir(write(tmp_path, changed(old, new))).graph.layers) == 4


@pytest.mark.parametrize(
    "xml",
    [
        XML.replace('<?xml version="1.0"?>\n', ""),
        XML.replace('"1.0"?>', '"1.0" encoding="utf-8" standalone="yes"?>'),
        "\ufeff" + XML,
        "\n" + XML.split("\n", 1)[1],
        XML.replace("\n", "\r\n"),
        XML.replace("\n", "").replace("\t", ""),
        XML.replace("<layer ", "<!-- <layer id='9'> --><?pi layer?><layer "),
        XML.replace("<dim>2</dim>", "<dim> <![CDATA[2]]> </dim>"),
        XML.replace('"1.0"?>', '"1.0" encoding="utf-16"?>').encode("utf-16"),
        XML.replace('"1.0"?>', '"1.0" encoding="iso-8859-1"?>').encode("latin-1"),
        XML.replace("<rt_info>", "<rt_info><a:b c:d='1' xmlns='e' />"),
    ],
)
def test_the_same_in_other_words(tmp_path: Path, xml: str | bytes) -> None:
    model = load_ir(write(tmp_path, xml))
    assert [layer.name for layer in model.graph.layers] == ["x", "axis", "split", "Result_3"]
    assert model.graph.layers[2].inputs[0].dims == (2, 6)


def test_if_bodies(tmp_path: Path) -> None:
    model = body_model(tmp_path, "if")
    (layer,) = [layer for layer in model.graph.layers if layer.type == "If"]
    assert set(layer.bodies) == {"then_body", "else_body"}
    assert layer.port_maps["then_port_map"] == (
        {"tag": "input", "external_port_id": "1", "internal_layer_id": "0"},
        {"tag": "output", "external_port_id": "2", "internal_layer_id": "4"},
    )
    then_split = layer_of(layer.bodies["then_body"], "then_split")
    lengths = layer.bodies["then_body"].sources[then_split.id, 2][0]
    (constant,) = [inner for inner in layer.bodies["then_body"].layers if inner.id == lengths]
    assert np.frombuffer(model.constant(constant), np.int64).tolist() == [2, -1]
    assert layer.bodies["else_body"].element.tag == "else_body"


def test_tensor_iterator_body(tmp_path: Path) -> None:
    (layer,) = [layer for layer in body_model(tmp_path, "tensor_iterator").graph.layers if layer.bodies]
    assert (layer.type, list(layer.bodies)) == ("TensorIterator", ["body"])
    assert layer.port_maps["back_edges"] == ({"tag": "edge", "from-layer": "5", "to-layer": "1"},)
    sliced = layer.port_maps["port_map"][0]
    assert (sliced["axis"], sliced["end"], sliced["part_size"]) == ("0", "-1", "1")
    assert layer.bodies["body"].layers[0].type == "Parameter"


def test_loop_body(tmp_path: Path) -> None:
    (layer,) = [layer for layer in body_model(tmp_path, "loop").graph.layers if layer.bodies]
    purposes = {
        entry["purpose"]: entry["external_port_id"] for entry in layer.port_maps["port_map"] if "purpose" in entry
    }
    assert purposes == {"current_iteration": "-1", "execution_condition": "-1"}


def nested(levels: int) -> str:
    """Loops in Loops: bodies with nothing in them but the next."""
    start = '<layers><layer id="0" name="l" type="Loop" version="opset5"><body>'
    end = "</body></layer></layers>"
    return f'<net name="n" version="11">{start * levels}<layers />{end * levels}</net>'


def test_bodies_in_bodies(tmp_path: Path) -> None:
    graph = load_ir(write(tmp_path, nested(42), None)).graph
    depth = 0
    while graph.layers:
        graph, depth = graph.layers[0].bodies["body"], depth + 1
    assert depth == 42
    with pytest.raises(ModelError, match="nested deeper"):
        load_ir(write(tmp_path, nested(43), None))


CASES = {
    case["id"]: case for case in json.loads((CHECKOUT / "tests/conformance/openvino_cases.json").read_text())["cases"]
}


@pytest.mark.parametrize("name", CORPUS)
def test_corpus(tmp_path: Path, name: str) -> None:
    """Each IR that OpenVINO wrote of a case has its split, with the constants that the case names."""
    case, model = CASES[name], load_ir(write(tmp_path, *CORPUS[name]))
    (split,) = [layer for layer in model.graph.layers if layer.type in ("Split", "VariadicSplit")]
    assert split.type == case["op"]
    if case["axis"]["value"] is not None:
        assert constant_of(model, split, 1) == np.ravel(case["axis"]["value"]).tolist()
    if isinstance(case.get("split_lengths", {}).get("values"), list):
        assert constant_of(model, split, 2) == case["split_lengths"]["values"]


def constant_of(model: OpenVINOModel, layer: Layer, index: int) -> list[int]:
    number = model.graph.sources[layer.id, layer.inputs[index].id][0]
    (source,) = [found for found in model.graph.layers if found.id == number]
    dtype = dtype_of(source.data["element_type"])
    held: list[int] = np.frombuffer(model.constant(source), np.dtype(dtype)).tolist()
    return held


@pytest.mark.parametrize(
    ("name", "dtype", "bits"),
    [
        ("FP32", "float32", 32),
        ("f32", "float32", 32),
        ("BOOL", "bool", 8),
        ("boolean", "bool", 8),
        ("BIN", "u1", 1),
        ("u1", "u1", 1),
        ("F8E4M3", "float8e4m3fn", 8),
        ("NF4", "nf4", 4),
        ("U3", "u3", 3),
        ("U2", "uint2", 2),
        ("STRING", "string", None),
        *((name, None, None) for name in ("UNSPECIFIED", "dynamic", "undefined", "", "fp", "float32")),
    ],
)
def test_element_type(name: str, dtype: str | None, bits: int | None) -> None:
    element = element_type(name)
    assert (dtype_of(name), element and element.bits) == (dtype, bits)


@pytest.mark.parametrize(
    ("name", "sizes"),
    # Of constants of 1, 2, 3, 5, 8, 9 and 11 elements, as OpenVINO writes them.
    [
        ("u1", [1, 1, 1, 1, 1, 2, 2]),
        ("u2", [1, 1, 1, 2, 2, 3, 3]),
        ("u3", [3, 3, 3, 3, 3, 6, 6]),
        ("u6", [3, 3, 3, 6, 6, 9, 9]),
        ("i4", [1, 1, 2, 3, 4, 5, 6]),
        ("boolean", [1, 2, 3, 5, 8, 9, 11]),
        ("i64", [8, 16, 24, 40, 64, 72, 88]),
        ("string", [None] * 7),
    ],
)
def test_size_of_a_constant(name: str, sizes: list[int | None]) -> None:
    assert [byte_size(name, count) for count in (1, 2, 3, 5, 8, 9, 11)] == sizes


def test_constant_of_what_is_none(tmp_path: Path) -> None:
    model = load_ir(write(tmp_path))
    with pytest.raises(ModelError, match="is a Parameter, which has no contents"):
        model.constant(model.graph.layers[0])


def test_constant_of_a_type_that_is_not_known(tmp_path: Path) -> None:
    model = load_ir(write(tmp_path, changed('element_type="i64" shape=""', 'element_type="q7" shape="3"')))
    assert bytes(model.constant(model.graph.layers[1])) == BIN


def test_weights_that_are_written_over_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    model = load_ir(path)
    with path.with_suffix(".bin").open("r+b") as file:
        file.truncate(4)
    with pytest.raises(ModelError, match="were written to") as caught:
        model.constant(model.graph.layers[1])
    assert caught.value.diagnostics[0].code == "SG107"


def test_weights_that_are_replaced_are_still_there(tmp_path: Path) -> None:
    path = write(tmp_path)
    model = load_ir(path)
    path.with_suffix(".bin").unlink()
    path.with_suffix(".bin").write_bytes(b"other")
    assert bytes(model.constant(model.graph.layers[1])) == BIN


def test_large_weights_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path, changed('offset="0"', f'offset="{3 << 30}"'), None)
    with path.with_suffix(".bin").open("wb") as file:
        file.seek(3 << 30)
        file.write(BIN)
    program = (
        "import sys; from splitgraph.formats import load_ir; model = load_ir(sys.argv[1])\n"
        "sys.exit(bytes(model.constant(model.graph.layers[1])).hex() != sys.argv[2])"
    )
    status, held = run_python(["-c", program, str(path), BIN.hex()], tmp_path)
    assert status == 0
    # The interpreter takes a third of it.
    assert held < 100_000_000


def test_source_of_every_kind(tmp_path: Path) -> None:
    path = write(tmp_path)
    loaded = open_model(path)
    assert (loaded.kind, loaded.path, loaded.content) == ("openvino", path, loaded.openvino)
    model = splitgraph.load(path)
    assert isinstance(model, OpenVINOModel)
    assert open_model(model).openvino is model
    # By its contents, whatever its name.
    path.rename(tmp_path / "model.ir")
    assert isinstance(splitgraph.load(tmp_path / "model.ir"), OpenVINOModel)


def test_openvino_is_not_imported(tmp_path: Path) -> None:
    program = "import sys, splitgraph; splitgraph.load(sys.argv[1]); print('openvino' in sys.modules)"
    path = write(tmp_path)
    run = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    assert run.stdout.strip() == "False"
