"""External data is found wherever a model has a tensor, read only from its folder, and goes where the model goes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats import broken_text, load_onnx, onnx_file, open_model, save, save_onnx, whole_model
from splitgraph.formats.external_data import all_tensors
from splitgraph.model.tensor_data import byte_size

from .tiny_models import add_model, external, field, float_value, model_of, write_external_model

WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)


def refusal(path: Path, **arguments: Any) -> str:
    with pytest.raises(ModelError) as caught:
        load_onnx(path, **arguments)
    assert caught.value.diagnostics[0].code == "SG107"
    return str(caught.value)


BAD_ENTRIES = [
    ({"offset": "x"}, "not a number"),
    ({"length": "1e3"}, "not a number"),
    ({"offset": -4}, "negative"),
    ({"length": -1}, "negative"),
    ({"offset": 4}, "needs 24 bytes from byte 4"),
    ({"offset": 10**30}, "needs 24 bytes"),
    ({"length": 20}, "takes 24 bytes, but names 20"),
    ({"length": 10**9}, "takes 24 bytes"),
]


@pytest.mark.parametrize("external_data", ["load", "keep"])
@pytest.mark.parametrize(("entries", "words"), BAD_ENTRIES)
def test_bad_entries(tmp_path: Path, entries: dict[str, object], words: str, external_data: str) -> None:
    path = write_external_model(tmp_path, **entries)
    assert words in refusal(path, external_data=external_data)


BAD_LOCATIONS = ["../secret.bin", "sub/../../secret.bin", "{absolute}", "link.bin", "linked/secret.bin", ".."]


@pytest.mark.parametrize("external_data", ["load", "keep"])
@pytest.mark.parametrize("location", BAD_LOCATIONS)
def test_locations_that_lead_outside(tmp_path: Path, location: str, external_data: str) -> None:
    folder = tmp_path / "model"
    path = write_external_model(folder)
    secret = tmp_path / "secret.bin"
    secret.write_bytes(WEIGHTS.tobytes())
    (folder / "sub").mkdir()
    (folder / "link.bin").symlink_to("../secret.bin")
    (folder / "linked").symlink_to("..")
    model = onnx.ModelProto.FromString(path.read_bytes())
    model.graph.initializer[0].external_data[0].value = location.format(absolute=secret)
    path.write_bytes(model.SerializeToString())
    assert "outside the model's folder" in refusal(path, external_data=external_data)


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("", "names no file"),
        (".", "not a regular file"),
        ("no.bin", "is missing"),
        ("w.bin/x", "cannot be read"),
        ("w.bin/", "cannot be read"),
        ("loop", "cannot be read"),
    ],
)
def test_locations_without_data(tmp_path: Path, location: str, words: str) -> None:
    path = write_external_model(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    model = onnx.ModelProto.FromString(path.read_bytes())
    model.graph.initializer[0].external_data[0].value = location
    path.write_bytes(model.SerializeToString())
    assert words in refusal(path)


def test_nul_in_a_location(tmp_path: Path) -> None:
    path = write_external_model(tmp_path)
    model = onnx.ModelProto.FromString(path.read_bytes())
    model.graph.initializer[0].external_data[0].value = "w\0.bin"
    path.write_bytes(model.SerializeToString())
    assert "outside" in refusal(path)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [("dims", [-2, -3], "negative dimension"), ("data_type", TensorProto.STRING, "holds strings")],
)
def test_tensors_that_no_file_can_hold(tmp_path: Path, field: str, value: Any, words: str) -> None:
    path = write_external_model(tmp_path)
    model = onnx.ModelProto.FromString(path.read_bytes())
    weight = model.graph.initializer[0]
    if field == "dims":
        weight.dims[:] = value
    else:
        weight.data_type = value
    path.write_bytes(model.SerializeToString())
    assert words in refusal(path)


def test_data_that_shrinks_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_external_model(tmp_path)
    status = os.stat(tmp_path / "w.bin")
    (tmp_path / "w.bin").write_bytes(b"short")
    real = os.stat

    def before(target: Any, **arguments: Any) -> os.stat_result:
        return status if str(target).endswith("w.bin") else real(target, **arguments)

    monkeypatch.setattr(os, "stat", before)
    assert "became shorter" in refusal(path)


@pytest.mark.parametrize(
    "entries", [{}, {"offset": 0, "length": 24}, {"length": 24}, {"checksum": "0" * 40}, {"basepath": "/"}]
)
def test_weights_are_read(tmp_path: Path, entries: dict[str, object]) -> None:
    model = load_onnx(write_external_model(tmp_path, **entries))
    assert model == add_model(WEIGHTS)


def test_location_in_a_folder_below(tmp_path: Path) -> None:
    assert load_onnx(write_external_model(tmp_path, "a/b/w.bin")) == add_model(WEIGHTS)


def test_links_within_the_folder_are_followed(tmp_path: Path) -> None:
    path = write_external_model(tmp_path, "data/w.bin")
    (tmp_path / "data" / "w.bin").rename(tmp_path / "real.bin")
    (tmp_path / "data" / "w.bin").symlink_to("../real.bin")
    assert load_onnx(path) == add_model(WEIGHTS)


def test_folder_reached_through_a_link(tmp_path: Path) -> None:
    write_external_model(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    assert load_onnx(tmp_path / "link" / "model.onnx") == add_model(WEIGHTS)


def test_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_external_model(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert load_onnx("model.onnx") == add_model(WEIGHTS)


def tensor(name: str, values: Any = (1, 2)) -> TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def crowded_model() -> onnx.ModelProto:
    """A tensor in every place where ONNX allows one."""
    sparse = helper.make_sparse_tensor(tensor("sparse_values"), tensor("sparse_indices"), [4])
    body = helper.make_graph([], "b", [], [float_value("i")], [tensor("in_subgraph")])
    nodes = [
        helper.make_node("Constant", [], ["c"], value=tensor("in_attribute")),
        helper.make_node("Constant", [], ["s"], sparse_value=sparse),
        helper.make_node(
            "Custom", [], ["l"], domain="d", many=[tensor("in_list_1"), tensor("in_list_2")], bodies=[body]
        ),
        helper.make_node("If", ["cond"], ["y"], then_branch=body, else_branch=body),
    ]
    model = model_of(helper.make_graph(nodes, "g", [], [float_value("y")], [tensor("initializer")]))
    model.graph.sparse_initializer.append(sparse)
    function = helper.make_function("d", "F", [], ["o"], nodes, [helper.make_opsetid("", 18)])
    function.attribute_proto.append(helper.make_attribute("default", tensor("in_default")))
    model.functions.append(function)
    model.training_info.add().algorithm.initializer.append(tensor("in_training"))
    return model


def test_every_place_of_a_tensor_is_found(tmp_path: Path) -> None:
    model = crowded_model()
    everywhere = sorted(t.name for t in all_tensors(model))
    # An initializer and two sparse parts, a default, a training graph; and in nodes, which are there twice: an
    # attribute, two sparse parts, two of a list, and three graphs.
    assert len(everywhere) == 3 + 1 + 1 + 2 * (1 + 2 + 2 + 3)
    expected = model.SerializeToString()
    for number, found in enumerate(all_tensors(model)):
        (tmp_path / f"{number}.bin").write_bytes(found.raw_data)
        external(found, f"{number}.bin")
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    assert load_onnx(tmp_path / "model.onnx").SerializeToString() == expected


# How many bytes of text a file may have to be parsed twice, and of nodes to be looked at as bytes.
SEARCHES = {"whole file": (2**20, 0), "its nodes": (0, 2**20), "each tensor": (0, 0)}


@pytest.mark.parametrize(("parsed_twice", "for_a_node"), SEARCHES.values(), ids=SEARCHES)
def test_a_tensor_is_found_wherever_it_is_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parsed_twice: int, for_a_node: int
) -> None:
    monkeypatch.setattr(broken_text, "_MOST_PARSED_TWICE", parsed_twice)
    monkeypatch.setattr(onnx_file, "_BYTES_FOR_A_NODE", for_a_node)
    model = crowded_model()
    if not parsed_twice:
        model.graph.initializer.append(tensor("weights", [112, 1] * 9999))
    expected = model.SerializeToString()
    (tmp_path / "out").mkdir()
    for number in range(len(list(all_tensors(model)))):
        model = onnx.ModelProto.FromString(expected)
        found = list(all_tensors(model))[number]
        (tmp_path / f"{number}.bin").write_bytes(found.raw_data)
        external(found, f"{number}.bin")
        (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
        assert load_onnx(tmp_path / "model.onnx").SerializeToString() == expected
        save_onnx(model, tmp_path / "out" / "model.onnx", source=tmp_path / "model.onnx")
        assert (tmp_path / "out" / f"{number}.bin").exists()


@pytest.mark.parametrize("written", [b"\x70\x01", b"\x70\x81\x00", b"\x70\x81\x80\x00"])
def test_numbers_that_take_more_bytes_than_they_need(tmp_path: Path, written: bytes) -> None:
    content = write_external_model(tmp_path).read_bytes()
    assert content.count(b"\x70\x01") == 1
    # A graph that follows another is put together with it: the initializer is written by hand.
    model = onnx.ModelProto.FromString(content)
    held = model.graph.initializer.pop().SerializeToString().replace(b"\x70\x01", written)
    path = tmp_path / "other.onnx"
    path.write_bytes(model.SerializeToString() + field(7, field(5, held)))
    assert load_onnx(path) == add_model(WEIGHTS)


def test_sizes_agree_with_onnx() -> None:
    for data_type in TensorProto.DataType.values():
        if data_type in (TensorProto.UNDEFINED, TensorProto.STRING):
            continue
        made = numpy_helper.from_array(np.zeros(5, helper.tensor_dtype_to_np_dtype(data_type)))
        assert (made.data_type, byte_size(made)) == (data_type, len(made.raw_data))


def large_model(folder: Path) -> Path:
    """Large weights, a small shape and a small scale, all external."""
    tensors = [
        numpy_helper.from_array(np.arange(3000, dtype=np.float32).reshape(1000, 3), "w"),
        numpy_helper.from_array(np.array([3, -1], np.int64), "shape"),
        numpy_helper.from_array(np.array([2.0], np.float32), "scale"),
    ]
    with (folder / "weights.bin").open("wb") as file:
        for item in tensors:
            content = item.raw_data
            external(item, "weights.bin", offset=file.tell(), length=file.write(content))
    nodes = [helper.make_node("Mul", ["w", "scale"], ["m"]), helper.make_node("Reshape", ["m", "shape"], ["y"])]
    model = model_of(helper.make_graph(nodes, "g", [], [float_value("y", (3, 1000))], tensors))
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder / "model.onnx"


def test_keep_reads_only_what_shapes_may_need(tmp_path: Path) -> None:
    path = large_model(tmp_path)
    weights, shape, scale = load_onnx(path, external_data="keep").graph.initializer
    assert weights.data_location == TensorProto.EXTERNAL and not weights.raw_data
    assert numpy_helper.to_array(shape).tolist() == [3, -1]
    assert numpy_helper.to_array(scale).tolist() == [2.0]
    assert open_model(path, weights="leave").model.graph.initializer[0] == weights


def test_whole_model_makes_a_copy_whole(tmp_path: Path) -> None:
    path = large_model(tmp_path)
    kept = load_onnx(path, external_data="keep")
    before = kept.SerializeToString()
    assert whole_model(kept, path) == load_onnx(path)
    assert kept.SerializeToString() == before
    whole = load_onnx(path)
    assert whole_model(whole, path) is whole


def test_saved_elsewhere_takes_its_data_along(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    path = large_model(tmp_path / "in")
    save_onnx(load_onnx(path, external_data="keep"), tmp_path / "out" / "new.onnx", source=path)
    assert load_onnx(tmp_path / "out" / "new.onnx") == load_onnx(path)
    assert sorted(os.listdir(tmp_path / "out")) == ["new.onnx", "weights.bin"]


@pytest.mark.parametrize("location", ["deep/w.bin", "deep/deeper/../w.bin", "deep/../w.bin"])
def test_folders_of_data_are_made(tmp_path: Path, location: str) -> None:
    model = add_model(np.arange(3000, dtype=np.float32))
    (tmp_path / "in" / "deep" / "deeper").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / location).write_bytes(model.graph.initializer[0].raw_data)
    external(model.graph.initializer[0], location)
    save_onnx(model, tmp_path / "out" / "new.onnx", source=tmp_path / "in" / "model.onnx")
    assert load_onnx(tmp_path / "out" / "new.onnx") == add_model(np.arange(3000, dtype=np.float32))


@pytest.mark.parametrize("name", ["model.onnx", "new.onnx"])
def test_saved_in_the_same_folder_leaves_the_data_alone(tmp_path: Path, name: str) -> None:
    path = large_model(tmp_path)
    whole, before = load_onnx(path), (tmp_path / "weights.bin").stat()
    save_onnx(load_onnx(path, external_data="keep"), tmp_path / name, source=path)
    after = (tmp_path / "weights.bin").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert load_onnx(tmp_path / name) == whole


def test_model_is_never_written_over_its_own_data(tmp_path: Path) -> None:
    path = large_model(tmp_path)
    before = (tmp_path / "weights.bin").read_bytes()
    with pytest.raises(ModelError, match="of the model itself"):
        save_onnx(load_onnx(path, external_data="keep"), tmp_path / "weights.bin", source=path)
    assert (tmp_path / "weights.bin").read_bytes() == before


def test_model_is_not_written_where_its_data_has_to_go(tmp_path: Path) -> None:
    path, elsewhere = large_model(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.raises(ModelError, match=r"is where the external data weights\.bin has to go"):
        save_onnx(load_onnx(path, external_data="keep"), elsewhere / "weights.bin", source=path)
    assert list(elsewhere.iterdir()) == []


def test_other_data_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    path, new = large_model(tmp_path / "in"), tmp_path / "out" / "new.onnx"
    taken = tmp_path / "out" / "weights.bin"
    taken.write_bytes(b"of another model")
    model = load_onnx(path, external_data="keep")
    with pytest.raises(ModelError) as caught:
        save_onnx(model, new, source=path, overwrite=False)
    assert caught.value.diagnostics[0].code == "SG108"
    assert taken.read_bytes() == b"of another model"
    assert os.listdir(tmp_path / "out") == ["weights.bin"]
    save_onnx(model, new, source=path)
    assert load_onnx(new) == load_onnx(path)
    # The same data once more is in nobody's way.
    new.unlink()
    save_onnx(model, new, source=path, overwrite=False)


def test_failing_copy_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    path = large_model(tmp_path / "in")
    model = load_onnx(path, external_data="keep")
    replace = os.replace

    def fail_for_the_model(source: Any, target: Any) -> None:
        if str(target).endswith("new.onnx"):
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_for_the_model)
    with pytest.raises(KeyboardInterrupt):
        save_onnx(model, tmp_path / "out" / "new.onnx", source=path)
    assert os.listdir(tmp_path / "out") == []


def test_target_folder_that_leads_outside(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "data").symlink_to("..")
    path = write_external_model(tmp_path / "in", "data/w.bin")
    model = onnx.ModelProto.FromString(path.read_bytes())
    with pytest.raises(ModelError, match="outside the model's folder"):
        save_onnx(model, tmp_path / "out" / "new.onnx", source=path)
    assert not (tmp_path / "w.bin").exists()
    assert os.listdir(tmp_path / "out") == ["data"]


def test_saving_without_the_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    model = load_onnx(large_model(tmp_path / "in"), external_data="keep")
    with pytest.raises(ModelError) as caught:
        save(model, tmp_path / "out" / "new.onnx")
    assert caught.value.diagnostics[0].code == "SG107"
    assert os.listdir(tmp_path / "out") == []


def test_saving_changes_no_model(tmp_path: Path) -> None:
    path = large_model(tmp_path)
    model = load_onnx(path, external_data="keep")
    before = model.SerializeToString()
    save_onnx(model, tmp_path / "new.onnx", source=path)
    assert model.SerializeToString() == before
