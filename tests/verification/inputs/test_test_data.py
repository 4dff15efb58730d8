"""Inputs from files: what is refused and why, then archives, folders of onnx's test data, and several cases."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from splitgraph.verification.inputs.test_data import read_test_data

from ..small_models import value

X, N = np.arange(8, dtype=np.float32).reshape(2, 4), np.array([3], np.int64)
INPUTS, OUTPUTS = [value("x"), value("n", (1,), TensorProto.INT64)], [value("y"), value("z")]


class Bomb:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return Path.touch, (self.path,)  # type: ignore[return-value]


def write(path: Path, array: np.ndarray, name: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(numpy_helper.from_array(array, name).SerializeToString())


def missing(folder: Path) -> Path:
    return folder / "nowhere.npz"


def empty_folder(folder: Path) -> Path:
    (folder / "test_data_set_0").mkdir()
    (folder / "notes.txt").write_text("none")
    return folder


def text_file(folder: Path) -> Path:
    (folder / "data.npz").write_text("x = 3")
    return folder / "data.npz"


def single_array(folder: Path) -> Path:
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def archive_as_array(folder: Path) -> Path:
    np.savez(folder / "x.npz", x=X)
    (folder / "x.npz").rename(folder / "x.npy")
    return folder


def pickled_in_archive(folder: Path) -> Path:
    np.savez(folder / "data.npz", x=np.array([Bomb(folder / "touched")], object))
    return folder / "data.npz"


def pickled_array(folder: Path) -> Path:
    np.save(folder / "x.npy", np.array([Bomb(folder / "touched")], object))
    return folder


def plain_pickle(folder: Path) -> Path:
    (folder / "x.npy").write_bytes(pickle.dumps(Bomb(folder / "touched")))
    return folder


def other_file_in_archive(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "data.npz", "w") as archive:
        archive.writestr("notes", "none")
    return folder / "data.npz"


def cut_array(folder: Path) -> Path:
    np.save(folder / "x.npy", X)
    (folder / "x.npy").write_bytes((folder / "x.npy").read_bytes()[:-5])
    return folder


def huge_array(folder: Path) -> Path:
    """Whose header promises far more than there is."""
    np.save(folder / "x.npy", X)
    (folder / "x.npy").write_bytes((folder / "x.npy").read_bytes().replace(b"(2, 4), }    ", b"(9999999, 99999)}"))
    return folder


def spoiled_header(header: str) -> Callable[[Path], Path]:
    """Make a file .npy with another header."""

    def make(folder: Path) -> Path:
        written = header.encode().ljust(117) + b"\n"
        (folder / "x.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + written + X.tobytes())
        return folder

    make.__name__ = header[:60]
    return make


def described(shape: str, descr: str = "'<f4'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


def huge_array_in_archive(folder: Path) -> Path:
    huge_array(folder)
    with zipfile.ZipFile(folder / "data.npz", "w") as archive:
        archive.write(folder / "x.npy", "x.npy")
    return folder / "data.npz"


def spoiled_archive(*positions: int, value: int = 1) -> Callable[[Path], Path]:
    """Make an archive with other bytes at some positions. In the record at its end, at negative ones."""

    def make(folder: Path) -> Path:
        np.savez_compressed(folder / "data.npz", x=np.arange(400, dtype=np.float32) ** 2)
        written = bytearray((folder / "data.npz").read_bytes())
        directory = written.rfind(b"PK\x01\x02")
        for position in positions:
            written[position if position >= 0 else directory - position] = value
        (folder / "data.npz").write_bytes(written)
        return folder / "data.npz"

    make.__name__ = f"spoiled{positions[:2]}"
    return make


def empty_archive(folder: Path) -> Path:
    np.savez(folder / "data.npz")
    return folder / "data.npz"


def twice_in_archive(*names: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        np.save(folder / "x.npy", X)
        with warnings.catch_warnings(), zipfile.ZipFile(folder / "data.npz", "w") as archive:
            warnings.simplefilter("ignore")
            for name in names:
                archive.write(folder / "x.npy", name)
        return folder / "data.npz"

    make.__name__ = "twice" + "".join(names)
    return make


def damaged_tensor(folder: Path) -> Path:
    (folder / "input_0.pb").write_bytes(b"\xff\xff")
    return folder


def tensor_of_another_size(folder: Path) -> Path:
    made = numpy_helper.from_array(X, "x")
    made.dims[0] = 3
    (folder / "input_0.pb").write_bytes(made.SerializeToString())
    return folder


def tensor_with(field: str, entries: list[Any]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        made = numpy_helper.from_array(X, "x")
        getattr(made, field)[:] = entries
        (folder / "input_0.pb").write_bytes(made.SerializeToString())
        return folder

    make.__name__ = f"{field}{entries}"
    return make


def external_tensor(folder: Path) -> Path:
    (folder / "secret").write_bytes(b"12345678")
    made = TensorProto(name="x", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    made.external_data.add(key="location", value="secret")
    (folder / "input_0.pb").write_bytes(made.SerializeToString())
    return folder


def one_too_many(folder: Path) -> Path:
    write(folder / "input_2.pb", X)
    return folder


def output_too_many(folder: Path) -> Path:
    write(folder / "input_0.pb", X)
    write(folder / "output_2.pb", X)
    return folder


def twice(folder: Path) -> Path:
    write(folder / "input_0.pb", X, "x")
    np.save(folder / "x.npy", X)
    return folder


REFUSED = {
    missing: "do not exist; give an archive data.npz, or a folder",
    empty_folder: "holds no test data; give an archive data.npz",
    text_file: "is no archive of arrays by name",
    single_array: "is no archive of arrays by name",
    archive_as_array: "is an archive; its name must end in .npz",
    pickled_in_archive: "holds Python objects, which are pickled",
    pickled_array: "holds Python objects, which are pickled",
    plain_pickle: "holds Python objects, which are pickled",
    other_file_in_archive: "'notes', which is no array",
    cut_array: "cannot be read as arrays",
    huge_array: r"it has 164 bytes, fewer than the shape \[9999999, 99999\] of its header needs",
    huge_array_in_archive: r"it has 164 bytes, fewer than the shape \[9999999, 99999\] of its header needs",
    spoiled_header(described("(100000000000000000000000,)")): "it has 160 bytes, fewer than the shape",
    spoiled_header(described("(10000000000,)", "'|V0'")): "it has 160 bytes, fewer than the shape",
    spoiled_header(described("(True, 4)")): r"its header has the shape \(True, 4\)",
    spoiled_header(described("(-2, -4)")): r"its header has the shape \(-2, -4\)",
    spoiled_header(described("(2, 4) (")): "its header is damaged",
    spoiled_header("[" * 100): "its header is damaged",
    spoiled_header("'''"): "its header is damaged",
    spoiled_header("{1: 2, 'descr': 3}"): "its header is damaged",
    spoiled_header("a.b"): "its header is damaged$",
    spoiled_header(described("(2, 4)", "'<f1'")): "its header is damaged: descr is not a valid dtype descriptor: '<f1'",
    spoiled_archive(*range(60, 90), value=0xFF): "cannot be read as arrays: .*decompress",
    spoiled_archive(6, -8): "cannot be read as arrays: .*encrypted",
    spoiled_archive(8, -10, value=99): "cannot be read as arrays: .*compression method",
    spoiled_archive(8, -10, value=14): "cannot be read as arrays: ",
    spoiled_archive(8, -10, value=12): "cannot be read",
    empty_archive: "data.npz holds no arrays; give an archive data.npz",
    twice_in_archive("x.npy", "x.npy"): "data.npz holds two arrays with the name 'x'; keep one of them",
    twice_in_archive("x.npy", "x"): "data.npz holds two arrays with the name 'x'; keep one of them",
    damaged_tensor: "cannot be read as a TensorProto",
    tensor_of_another_size: "cannot be read as a TensorProto",
    tensor_with("dims", [-1, 4]): "input_0.pb cannot be read as a TensorProto: dimension -1 is negative",
    tensor_with("float_data", [1.0]): "it has elements in both raw_data and float_data",
    external_tensor: "its elements are in another file",
    one_too_many: r"input_2.pb is for input 2, but the model has 2 inputs: x, n",
    output_too_many: r"output_2.pb is for output 2, but the model has 2 outputs: y, z",
    twice: "holds the input 'x', which another file of the folder holds, too",
}


@pytest.mark.parametrize("make", REFUSED)
def test_refused(make: Callable[[Path], Path], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=REFUSED[make]) as refused:
        read_test_data(make(tmp_path), INPUTS, OUTPUTS)
    assert str(tmp_path) in str(refused.value)
    assert not (tmp_path / "touched").exists()


def test_archive(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", **{"x": X, "a/b": N})
    (case,) = read_test_data(tmp_path / "data.npz", INPUTS, OUTPUTS)
    assert case.name == "data.npz"
    assert list(case.inputs) == ["x", "a/b"]
    np.testing.assert_array_equal(case.inputs["x"], X)


@pytest.mark.parametrize(("first", "second"), [("", ""), ("x", "n"), ("other", "names")])
def test_numbered_files(first: str, second: str, tmp_path: Path) -> None:
    write(tmp_path / "input_0.pb", X, first)
    write(tmp_path / "input_1.pb", N, second)
    write(tmp_path / "output_1.pb", X + 1, "whatever")
    (case,) = read_test_data(tmp_path, INPUTS, OUTPUTS)
    np.testing.assert_array_equal(case.inputs["x"], X)
    np.testing.assert_array_equal(case.inputs["n"], N)
    assert list(case.outputs) == [1]
    np.testing.assert_array_equal(case.outputs[1], X + 1)


def test_the_name_of_a_tensor_counts_more_than_its_number(tmp_path: Path) -> None:
    write(tmp_path / "input_0.pb", N, "n")
    write(tmp_path / "input_1.pb", X, "x")
    (case,) = read_test_data(tmp_path, INPUTS, OUTPUTS)
    np.testing.assert_array_equal(case.inputs["x"], X)


def test_arrays_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "x.1.npy", X)
    np.save(tmp_path / "n.npy", N)
    (case,) = read_test_data(tmp_path, INPUTS, OUTPUTS)
    assert set(case.inputs) == {"x.1", "n"}


def test_several_cases_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 0):
        write(tmp_path / f"test_data_set_{number}" / "input_0.pb", X + number)
    (tmp_path / "test_data_set_x").mkdir()
    (tmp_path / "model.onnx").write_bytes(b"")
    found = read_test_data(tmp_path, INPUTS, OUTPUTS)
    assert [case.name for case in found] == ["test_data_set_0", "test_data_set_2", "test_data_set_10"]
    assert [case.inputs["x"][0, 0] for case in found] == [0, 2, 10]


TENSOR = numpy_helper.from_array(X)
OF_TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
TYPES = {
    "tensor": OF_TENSOR,
    "sequence": helper.make_sequence_type_proto(OF_TENSOR),
    "optional": helper.make_optional_type_proto(OF_TENSOR),
    "optional sequence": helper.make_optional_type_proto(helper.make_sequence_type_proto(OF_TENSOR)),
    "maps": helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.INT64, OF_TENSOR)),
}
HELD = onnx.SequenceProto(elem_type=1, tensor_values=[TENSOR])
NEGATIVE, OUTSIDE = (
    TensorProto(data_type=1, raw_data=TENSOR.raw_data, **each) for each in ({"dims": [-1, 4]}, {"data_location": 1})
)
WRONG_KINDS: list[tuple[str, Any, str]] = [
    ("sequence", TENSOR, "has fields that a SequenceProto does not have; it may be of another kind"),
    ("optional", TENSOR, "has fields that a OptionalProto does not have"),
    ("optional sequence", TENSOR, "has fields that a OptionalProto does not have"),
    ("tensor", HELD, "segments"),
    ("tensor", onnx.OptionalProto(name="abc", elem_type=1), "cannot reshape"),
    (
        "sequence",
        onnx.OptionalProto(elem_type=0),
        "has no value and says that it holds undefined; the model takes tensor",
    ),
    (
        "sequence",
        onnx.OptionalProto(elem_type=3, sequence_value=HELD),
        "has sequence_values and says that it holds sequence",
    ),
    ("sequence", onnx.SequenceProto(tensor_values=[TENSOR]), "says that it holds undefined"),
    ("sequence", onnx.SequenceProto(elem_type=3), "has no value and says that it holds sequence"),
    ("optional", onnx.OptionalProto(tensor_value=TENSOR), "has tensor_value and says that it holds undefined"),
    ("optional", onnx.OptionalProto(elem_type=1), "has no value and says that it holds tensor"),
    (
        "optional",
        onnx.SequenceProto(elem_type=1, tensor_values=[TENSOR, TENSOR]),
        "has 2 values, as a SequenceProto has",
    ),
    ("optional sequence", HELD, "has tensor_value and says that it holds tensor; the model takes sequence"),
    ("optional", onnx.OptionalProto(elem_type=1, tensor_value=NEGATIVE), "dimension -1 is negative"),
    ("sequence", onnx.SequenceProto(elem_type=1, tensor_values=[OUTSIDE]), "its elements are in another file"),
    (
        "optional sequence",
        onnx.OptionalProto(elem_type=3, sequence_value=onnx.SequenceProto(elem_type=1, tensor_values=[OUTSIDE])),
        "its elements are in another file",
    ),
    (
        "maps",
        onnx.SequenceProto(
            elem_type=4,
            map_values=[
                onnx.MapProto(key_type=7, keys=[1], values=onnx.SequenceProto(elem_type=1, tensor_values=[OUTSIDE]))
            ],
        ),
        "its elements are in another file",
    ),
]


@pytest.mark.parametrize(("kind", "proto", "reason"), WRONG_KINDS)
def test_values_of_another_kind_are_refused(kind: str, proto: Any, reason: str, tmp_path: Path) -> None:
    (tmp_path / "input_0.pb").write_bytes(proto.SerializeToString())
    with pytest.raises(ValueError, match=f"input_0.pb cannot be read as .*{reason}"):
        read_test_data(tmp_path, [helper.make_value_info("x", TYPES[kind])], [])


RIGHT_KINDS: list[tuple[str, Any, Any]] = [
    ("sequence", onnx.SequenceProto(elem_type=1), []),
    ("sequence", HELD, [X]),
    ("optional", onnx.OptionalProto(elem_type=0), None),
    ("optional", onnx.OptionalProto(elem_type=1, tensor_value=TENSOR), X),
    ("optional sequence", onnx.OptionalProto(elem_type=3, sequence_value=HELD), [X]),
    ("maps", numpy_helper.from_list([{1: X}]), [{1: X}]),
]


@pytest.mark.parametrize(("kind", "proto", "expected"), RIGHT_KINDS)
def test_values_of_each_kind(kind: str, proto: Any, expected: Any, tmp_path: Path) -> None:
    (tmp_path / "input_0.pb").write_bytes(proto.SerializeToString())
    (case,) = read_test_data(tmp_path, [helper.make_value_info("x", TYPES[kind])], [])
    np.testing.assert_equal(case.inputs["x"], expected)


def test_sequences_and_optionals(tmp_path: Path) -> None:
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    optional = helper.make_value_info("o", helper.make_optional_type_proto(helper.make_tensor_type_proto(1, (None,))))
    held = numpy_helper.from_list([X, X[:1]], "s")
    (tmp_path / "input_0.pb").write_bytes(held.SerializeToString())
    (tmp_path / "input_1.pb").write_bytes(onnx.OptionalProto(name="o").SerializeToString())
    (case,) = read_test_data(tmp_path, [sequence, optional], [])
    assert [array.shape for array in case.inputs["s"]] == [(2, 4), (1, 4)]
    assert case.inputs["o"] is None
