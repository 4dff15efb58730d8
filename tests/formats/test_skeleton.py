"""Models that are read without their weights: what is read, what is written, and what stays where it is."""

from __future__ import annotations

import itertools
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from node_tests import node_tests
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, TensorShapeProto, helper, numpy_helper

import splitgraph
from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats import onnx_file, open_model, skeleton, write
from splitgraph.formats.external_data import all_tensors
from splitgraph.formats.onnx_file import read_onnx, whole_model
from splitgraph.model.tensor_data import place_of

MODELS = Path(__file__).parents[2] / "models"
NODE_TESTS = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data").rglob("*.onnx"))


@pytest.fixture
def leaves_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of any size are read without their weights, and so are tensors of more than a few bytes."""
    monkeypatch.setattr(onnx_file, "WHOLE", 0)
    monkeypatch.setattr(skeleton, "SMALL", 8)


def saved(path: Path, target: Path) -> bytes:
    """What a model becomes that is read and written as it is."""
    loaded = open_model(path, weights="leave")
    write(loaded.content, target, source=loaded)
    return target.read_bytes()


def tensors_of_every_kind() -> list[TensorProto]:
    """Of each field that holds elements, and some that are not in one piece."""
    held = [numpy_helper.from_array(np.arange(40, dtype=np.float32), "raw")]
    held.append(helper.make_tensor("floats", TensorProto.FLOAT, [40], np.arange(40.0)))
    held.append(helper.make_tensor("doubles", TensorProto.DOUBLE, [40], np.arange(40.0)))
    held.append(helper.make_tensor("int32s", TensorProto.INT32, [40], [-(7**i) % 2**31 for i in range(40)]))
    held.append(helper.make_tensor("int64s", TensorProto.INT64, [40], [(-7) ** (i % 20) for i in range(40)]))
    held.append(helper.make_tensor("uint64s", TensorProto.UINT64, [40], [7 ** (i % 20) for i in range(40)]))
    held.append(helper.make_tensor("strings", TensorProto.STRING, [3], [b"a" * 50, b"\xff\xfe", b""]))
    held.append(helper.make_tensor("halves", TensorProto.FLOAT16, [40], np.arange(40.0)))
    held.append(TensorProto(name="both", data_type=1, dims=[20], raw_data=b"\0" * 80, float_data=[1.0] * 20))
    held.append(TensorProto(name="said", data_type=1, dims=[20], raw_data=b"\1" * 80, data_location=0, doc_string="d"))
    held.append(TensorProto(name="", data_type=1, dims=[20], raw_data=b"\2" * 80))
    return held


def whole(depth: int = 3) -> ModelProto:
    """Tensors wherever onnx.proto has them, in subgraphs and functions, with fields that nobody knows."""
    graph = GraphProto(name="inner", initializer=tensors_of_every_kind())
    for level in range(depth):
        node = helper.make_node("If", ["c"], [f"y{level}"], name=f"if{level}")
        node.attribute.append(AttributeProto(name="then_branch", type=AttributeProto.GRAPH, g=graph))
        graph = GraphProto(name=f"graph{level}", node=[node], initializer=tensors_of_every_kind()[:2])
    model = ModelProto(ir_version=9, graph=graph, producer_name="p", doc_string="of all")
    model.opset_import.add(version=17)
    constant = helper.make_node("Constant", [], ["k"], value=tensors_of_every_kind()[0])
    many = helper.make_node("Many", [], ["m"])
    many.attribute.append(AttributeProto(name="t", type=AttributeProto.TENSORS, tensors=tensors_of_every_kind()))
    sparse = onnx.SparseTensorProto(dims=[900])
    sparse.values.CopyFrom(numpy_helper.from_array(np.arange(30, dtype=np.float32), "sparse"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.arange(30)))
    many.attribute.append(AttributeProto(name="s", type=AttributeProto.SPARSE_TENSOR, sparse_tensor=sparse))
    model.graph.node.extend([constant, many])
    model.graph.sparse_initializer.append(sparse)
    function = model.functions.add(name="f", domain="d", node=[constant])
    function.attribute_proto.append(AttributeProto(name="a", type=AttributeProto.TENSOR, t=tensors_of_every_kind()[0]))
    model.training_info.add(initialization=GraphProto(initializer=tensors_of_every_kind()))
    model.metadata_props.add(key="k", value="v")
    unknown = ModelProto.FromString(model.SerializeToString() + b"\xfa\x7f\x03abc")
    unknown.graph.MergeFromString(b"\xfa\x7f\x02de")
    return unknown


@pytest.mark.usefixtures("leaves_all")
@pytest.mark.parametrize("path", [*sorted(MODELS.glob("*.onnx")), *NODE_TESTS], ids=lambda path: path.name)
def test_what_is_not_changed_is_byte_for_byte_the_same(path: Path, tmp_path: Path) -> None:
    assert saved(path, tmp_path / "new.onnx") == path.read_bytes()


@pytest.mark.slow
@pytest.mark.usefixtures("leaves_all")
def test_node_tests_that_onnx_makes_in_memory_are_written_as_they_were(tmp_path: Path) -> None:
    models = {case.name: case.model for case in node_tests()}
    assert len(models) > 1500
    path = tmp_path / "model.onnx"
    for name, model in models.items():
        path.write_bytes(model.SerializeToString())
        assert saved(path, tmp_path / "new.onnx") == path.read_bytes(), name


@pytest.mark.usefixtures("leaves_all")
@pytest.mark.parametrize("depth", [0, 3, 29])
def test_every_field_is_written_as_it_was(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(whole(depth).SerializeToString())
    assert saved(path, tmp_path / "new.onnx") == path.read_bytes()
    assert saved(path, path) == whole(depth).SerializeToString()


@pytest.mark.usefixtures("leaves_all")
def test_elements_stay_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(whole().SerializeToString())
    read = read_onnx(path, external_data="keep", weights="leave")
    places = {tensor.name: place_of(tensor) for tensor in all_tensors(read.model)}
    assert sorted(name for name, place in places.items() if place is None) == ["both", "strings"]
    assert {name: place.entries for name, place in places.items() if place and place.entries} == {
        "floats": 40, "doubles": 40, "int32s": 40, "int64s": 40, "uint64s": 40, "halves": 40,
    }  # fmt: skip
    assert len(read.model.SerializeToString()) < 3 * path.stat().st_size
    assert whole_model(read.model, path) == ModelProto.FromString(path.read_bytes())


EDITS: dict[str, Callable[[ModelProto], object]] = {
    "an initializer is renamed": lambda model: setattr(model.graph.initializer[0], "name", "a longer name than before"),
    "an initializer goes": lambda model: model.graph.initializer.pop(0),
    "one comes": lambda model: model.graph.initializer.append(numpy_helper.from_array(np.arange(99.0), "new")),
    "one stands twice": lambda model: model.graph.initializer.append(model.graph.initializer[0]),
    "one gets a text": lambda model: setattr(model.graph.initializer[-1], "doc_string", "x" * 300),
    "one gets another shape": lambda model: model.graph.initializer[0].dims.insert(0, 1),
    "a node goes": lambda model: model.graph.node.pop(0),
    "a name is very long": lambda model: setattr(model.graph, "name", "y" * 40_000),
    "a node is copied": lambda model: model.graph.node.append(model.graph.node[-1]),
    "a function goes": lambda model: model.functions.__delitem__(slice(-1, None)),
    "a graph moves": lambda model: model.training_info.add().algorithm.CopyFrom(model.graph),
    "the opset is another": lambda model: setattr(model.opset_import[0], "version", 2**40),
}


@pytest.mark.usefixtures("leaves_all")
@settings(max_examples=examples(120), deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(sorted(EDITS)), max_size=8))
def test_what_is_written_is_what_protobuf_would_write(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("edits")
    path, target = folder / "model.onnx", folder / "new.onnx"
    path.write_bytes(whole().SerializeToString())
    loaded, plain = open_model(path, weights="leave"), onnx.load(path)
    for name in names:
        results = []
        for model in (loaded.model, plain):
            try:
                EDITS[name](model)
                results.append(True)
            except IndexError:  # nothing is left of it
                results.append(False)
        assert results[0] == results[1]
    write(loaded.model, target, source=loaded)
    assert target.read_bytes() == plain.SerializeToString()


# Wrong files -----------------------------------------------------------------------------------------------------

LARGE = TensorProto(name="w", data_type=1, dims=[30_000], raw_data=bytes(120_000)).SerializeToString()


def model_around(tensor: bytes) -> bytes:
    """The bytes of a model with the bytes of one initializer."""
    shape = TensorShapeProto(dim=[TensorShapeProto.Dimension(dim_value=30_000)])
    made = ModelProto(ir_version=8)
    made.opset_import.add(version=13)
    made.graph.name = "g"
    made.graph.node.append(helper.make_node("Identity", ["w"], ["y"]))
    made.graph.output.append(onnx.ValueInfoProto(name="y"))
    made.graph.output[0].type.tensor_type.elem_type = 1
    made.graph.output[0].type.tensor_type.shape.CopyFrom(shape)
    length = len(tensor)
    graph = made.graph.SerializeToString() + b"\x2a" + _varint(length) + tensor
    made.ClearField("graph")
    return made.SerializeToString() + b"\x3a" + _varint(len(graph)) + graph


def _varint(number: int) -> bytes:
    return bytes([number & 127 | 128, number >> 7 & 127 | 128, number >> 14])


ODD = {
    "as it should be": LARGE,
    "the elements twice": LARGE + b"\x4a" + _varint(120_000) + bytes([1]) * 120_000,
    "a field that nobody knows": LARGE + b"\xfa\x7f\x03abc",
    "a group that nobody knows": LARGE + b"\xfb\x7f\xfc\x7f",
    "the type behind the elements": LARGE + b"\x10\x06",
    "elements one by one": TensorProto(name="w", data_type=1, dims=[30_000]).SerializeToString() + b"\x25abcd" * 30_000,
}


@pytest.mark.parametrize("tensor", ODD.values(), ids=ODD)
def test_an_odd_file_is_what_protobuf_reads(tensor: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_file, "WHOLE", 0)
    path = tmp_path / "model.onnx"
    path.write_bytes(model_around(tensor))
    read = read_onnx(path, weights="leave")
    assert whole_model(read.model, path) == onnx.load(path)


def _number(field: int, value: int) -> bytes:
    return skeleton.tag(field, 0) + skeleton.varint(value)


_TENSOR = skeleton.head(5, 29) + TensorProto(name="w", data_type=1, raw_data=b"\1" * 20, dims=[5]).SerializeToString()

_LISTS = {
    "ints": _number(8, 300),
    "floats": skeleton.tag(7, 5) + b"\0\0\x80?",
    "strings": skeleton.head(9, 4) + b"LEAF",
    "graphs of none": _number(3, 1),
    "unknown fields": _number(900, 5),
}
_NAME = skeleton.head(1, 1) + b"a"
# By name: what an attribute has before the many fields, and behind them; whether protobuf reads it.
_AROUND = {
    "its type behind": (_NAME, _number(20, 7), True),
    "two types": (_NAME + _number(20, 4), _number(20, 7), True),
    "a tensor before": (_NAME + _TENSOR, _number(20, 4), True),
    "a tensor behind": (_NAME, _TENSOR + _number(20, 4), True),
    "a tensor, and another type": (_NAME, _TENSOR + _number(20, 7), True),
    "two tensors": (_NAME + _TENSOR, _TENSOR + _number(20, 4), True),
    "a number that does not end": (_NAME, b"\xa0\xff", False),
    "a length behind the end": (_NAME, b"\x4a\x7f", False),
    "no field": (_NAME, b"\x07", False),
}


@pytest.mark.usefixtures("leaves_all")
@pytest.mark.parametrize("listed", _LISTS.values(), ids=_LISTS)
@pytest.mark.parametrize(("before", "behind", "is_read"), _AROUND.values(), ids=_AROUND)
def test_an_attribute_of_many_fields_is_what_protobuf_reads(
    listed: bytes, before: bytes, behind: bytes, is_read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attribute = before + listed * 1000 + behind
    node = skeleton.head(4, 1) + b"N" + skeleton.head(5, len(attribute)) + attribute
    graph = skeleton.head(1, len(node)) + node
    path = tmp_path / "model.onnx"
    path.write_bytes(_number(1, 8) + skeleton.head(7, len(graph)) + graph)
    walked = list[object]()
    fields = skeleton.fields

    def counted(*given: object) -> Iterator[object]:
        for found in fields(*given):
            walked.append(found)
            yield found

    found = list[object]()
    for few in (10_000, 3):
        monkeypatch.setattr(skeleton, "_MANY_FIELDS", few)
        monkeypatch.setattr(skeleton, "fields", counted)
        try:
            read = read_onnx(path, weights="leave")
            found.append(whole_model(read.model, path))
        except ModelError as error:
            found.append(str(error))
        if few == 3 and is_read and _TENSOR not in before + behind:
            assert len(walked) < 40
        walked.clear()
    assert found[0] == found[1]
    assert isinstance(found[1], str) is not is_read
    if is_read:
        assert found[1] == ModelProto.FromString(path.read_bytes())


@pytest.mark.parametrize("place", [0, 5, 40, 60, 70, 80, 90, 100])
@pytest.mark.parametrize("byte", [0, 7, 127, 128, 255])
def test_a_damaged_file_is_refused_or_read_as_protobuf_reads_it(
    place: int, byte: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_file, "WHOLE", 0)
    data = bytearray(model_around(LARGE))
    data[place] = byte
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    try:
        read = read_onnx(path, external_data="keep", weights="leave")
    except ModelError as error:
        assert error.diagnostics
        return
    assert whole_model(read.model, path) == ModelProto.FromString(bytes(data))


# Results ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A model with 2 MB of weights in it."""
    weights = np.random.default_rng(0).normal(size=(512, 1024)).astype(np.float32) / 32
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Split", ["h"], ["a", "b"], axis=1)]
    inputs = [helper.make_tensor_value_info("x", 1, ["N", 512])]
    outputs = [helper.make_tensor_value_info(name, 1, ["N", 512]) for name in "ab"]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(weights, "w")])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


VERBS: dict[str, Callable[[Path], splitgraph.Analysis | splitgraph.Rewrite]] = {
    "infer": splitgraph.infer,
    "upgrade": lambda path: splitgraph.upgrade(path, 18),
    "downgrade": lambda path: splitgraph.downgrade(path, 11),
    "convert": lambda path: splitgraph.convert(path, "split", explicit_lengths=True),
    "the opset that it is at": lambda path: splitgraph.upgrade(path, 13),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_model_is_put_together_when_it_is_asked_for(
    verb: Callable[[Path], splitgraph.Analysis | splitgraph.Rewrite], large: Path
) -> None:
    result = verb(large)
    target = large.with_name("new.onnx")
    result.save(target)
    assert place_of(result.held.content.graph.initializer[0]) is not None
    assert result.model == onnx.load(target)
    assert result.model.graph.initializer[0] == onnx.load(large).graph.initializer[0]
    splitgraph.save(result, large.with_name("third.onnx"))
    assert large.with_name("third.onnx").read_bytes() == target.read_bytes()
    assert pickle.loads(pickle.dumps(result.held)) == result.model


def test_a_model_that_was_asked_for_is_saved_as_it_is_now(large: Path) -> None:
    result = splitgraph.upgrade(large, 18)
    result.model.graph.name = "mine"
    result.save(large)
    assert onnx.load(large).graph.name == "mine"


def test_a_file_that_is_replaced_is_still_the_one_that_was_read(large: Path) -> None:
    expected = onnx.load(large).graph.initializer[0]
    result = splitgraph.upgrade(large, 18)
    result.save(large)
    assert result.model.graph.initializer[0] == expected


def test_a_file_that_is_changed_is_not_believed(large: Path) -> None:
    result = splitgraph.upgrade(large, 18)
    with large.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"other")
    os.utime(large, ns=(1, 1))
    target = large.with_name("new.onnx")
    with pytest.raises(ModelError, match="was changed after it was read"):
        result.save(target)
    assert not target.exists()
    with pytest.raises(ModelError, match="was changed after it was read"):
        result.model  # noqa: B018, it is what raises


@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
def test_engines_read_weights_where_they_are(engine: str, large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splitgraph.model.tensor_data.SourceFile.read", None)
    rewrite = splitgraph.upgrade(large, 18, verify=True, engine=engine)  # type: ignore[arg-type]
    assert rewrite.verification is not None
    assert (rewrite.verification.verdict, rewrite.verification.engine) == ("equal", engine)
    rewrite.save(large.with_name("new.onnx"))
    # Whether two files have the same weights is only known when they are read, piece by piece.
    monkeypatch.undo()
    assert splitgraph.verify(large, large.with_name("new.onnx"), engine=engine).verdict == "equal"  # type: ignore[arg-type]


def test_other_weights_are_another_model(large: Path) -> None:
    changed = onnx.load(large)
    weights = numpy_helper.to_array(changed.graph.initializer[0]).copy()
    weights[7, 11] += 0.5
    changed.graph.initializer[0].CopyFrom(numpy_helper.from_array(weights, "w"))
    other = large.with_name("other.onnx")
    onnx.save(changed, other)
    for engine in ("onnxruntime", "reference"):
        assert splitgraph.verify(large, other, engine=engine).verdict == "different"  # type: ignore[arg-type]


def test_weights_behind_a_link_are_found(large: Path, tmp_path: Path) -> None:
    (tmp_path / "snapshot").mkdir()
    link = tmp_path / "snapshot" / "model.onnx"
    link.symlink_to(large)
    rewrite = splitgraph.upgrade(link, 18, verify=True)
    assert rewrite.verification is not None
    assert (rewrite.verification.verdict, rewrite.verification.engine) == ("equal", "onnxruntime")


@pytest.mark.parametrize("small", [True, False])
def test_external_data_stays_external(small: bool, tmp_path: Path) -> None:
    shape = (4, 8) if small else (64, 128)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Split", ["h"], ["a", "b"], axis=1)]
    inputs = [helper.make_tensor_value_info("x", 1, ["N", shape[0]])]
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in "ab"]
    weights = numpy_helper.from_array(np.ones(shape, np.float32), "w")
    graph = helper.make_graph(nodes, "g", inputs, outputs, [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for target in (tmp_path / "new.onnx", elsewhere / "new.onnx"):
        result = splitgraph.upgrade(path, 18)
        result.save(target)
        written = onnx.load(target, load_external_data=False).graph.initializer[0]
        assert written == onnx.load(path, load_external_data=False).graph.initializer[0]
        assert result.model.graph.initializer[0].raw_data == weights.raw_data
        assert onnx.load(target).graph.initializer[0].raw_data == weights.raw_data


def test_what_would_be_read_is_counted_before(tmp_path: Path) -> None:
    """A file of a few KB, whose 200 initializers are all one sparse file of 200 MB."""
    (tmp_path / "w.bin").touch()
    os.truncate(tmp_path / "w.bin", 200 * 10**6)
    nodes, names = [], [f"w{number}" for number in range(200)]
    model = ModelProto(ir_version=8)
    model.opset_import.add(version=13)
    for name, before in zip(names, ["x", *(f"h{name}" for name in names)], strict=False):
        tensor = model.graph.initializer.add(name=name, data_type=1, dims=[50_000_000])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="w.bin")
        nodes.append(helper.make_node("Add", [before, name], [f"h{name}"]))
    model.graph.node.extend([*nodes, helper.make_node("Split", [f"h{names[-1]}"], ["a", "b"])])
    model.graph.name = "g"
    model.graph.input.append(helper.make_tensor_value_info("x", 1, [50_000_000]))
    model.graph.output.extend(helper.make_tensor_value_info(name, 1, [25_000_000]) for name in "ab")
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    rewrite = splitgraph.upgrade(path, 18, verify=True)
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "not-run"
    (found,) = itertools.islice(rewrite.verification.diagnostics, 1)
    assert "a model has 37.3 GiB of weights" in found.message
