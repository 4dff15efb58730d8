"""Files of inputs that hold more than they seem to: what fits is read, all else is refused before memory is taken."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from command_line.program import split_model
from onnx import SequenceProto, TensorProto, helper, numpy_helper

from splitgraph.cli import main
from splitgraph.verification.inputs import test_data
from splitgraph.verification.inputs.test_data import read_test_data

from ..small_models import value

MIB = 2**20
SEQUENCE = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None)


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """8 MiB for all files, and 4 MiB for an archive, or 32 times its size."""
    monkeypatch.setattr(test_data, "_MOST_OF_ARCHIVE", 4 * MIB)
    monkeypatch.setattr(test_data, "_MOST", 8 * MIB)


def zeros(count: int) -> np.ndarray:
    return np.zeros(count, np.uint8)


def archive(**arrays: np.ndarray) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        np.savez_compressed(folder / "data.npz", **arrays)
        return folder / "data.npz"

    return make


def plain_archive(folder: Path) -> Path:
    np.savez(folder / "data.npz", x=np.arange(5 * MIB // 8))
    return folder / "data.npz"


def long_header(folder: Path) -> Path:
    """The second version of the format, whose header may be as long as 4 GiB."""
    header = b"\x93NUMPY\x02\x00" + struct.pack("<I", 9 * MIB) + b"{" + b" " * (9 * MIB)
    with zipfile.ZipFile(folder / "data.npz", "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("x.npy", header)
    return folder / "data.npz"


def array(count: int) -> Callable[[Path], Path]:
    """A file with a hole, which takes no room on the disk."""

    def make(folder: Path) -> Path:
        begin = io.BytesIO()
        np.lib.format.write_array_header_1_0(begin, {"descr": "|u1", "fortran_order": False, "shape": (count,)})
        (folder / "x.npy").write_bytes(begin.getvalue())
        with (folder / "x.npy").open("r+b") as file:
            file.truncate(len(begin.getvalue()) + count)
        return folder

    return make


def message(proto: object) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "input_0.pb").write_bytes(proto.SerializeToString())  # type: ignore[attr-defined]
        return folder

    return make


def several_cases(folder: Path) -> Path:
    for number in range(3):
        case = folder / f"test_data_set_{number}"
        case.mkdir()
        np.save(case / "x.npy", zeros(3 * MIB))
    return folder


def holed_message(folder: Path) -> Path:
    with (folder / "input_0.pb").open("wb") as file:
        file.truncate(3 * 2**30)
    return folder


FITS: dict[str, tuple[Callable[[Path], Path], onnx.ValueInfoProto]] = {
    "zeros, compressed": (archive(x=zeros(3 * MIB)), value("x")),
    "an archive that is not compressed": (plain_archive, value("x")),
    "an array": (array(7 * MIB), value("x")),
    "raw data": (message(numpy_helper.from_array(zeros(3 * MIB))), value("x")),
    "typed data": (message(helper.make_tensor("x", 1, [50_000], np.ones(50_000))), value("x")),
    "a list": (message(SequenceProto(elem_type=1, tensor_values=[numpy_helper.from_array(zeros(9))] * 99)), SEQUENCE),
}
REFUSED: dict[str, tuple[Callable[[Path], Path], onnx.ValueInfoProto, str]] = {
    "one array": (archive(x=zeros(5 * MIB)), value("x"), "takes 5.0 MiB of memory, and the limit leaves 4.0 MiB"),
    "several arrays": (archive(x=zeros(3 * MIB), y=zeros(3 * MIB)), value("x"), "the limit leaves 1.0 MiB"),
    "texts": (archive(x=np.zeros(MIB // 8, "<U1")), value("x"), "takes 8.0 MiB of memory"),
    "texts without characters": (archive(x=np.zeros(MIB // 8, "<U0")), value("x"), "takes 8.0 MiB of memory"),
    "a long header": (long_header, value("x"), "its header is longer than 10000 bytes"),
    "a file with a hole": (array(9 * MIB), value("x"), "takes 9.0 MiB of memory, and the limit leaves 8.0 MiB"),
    "several cases": (several_cases, value("x"), "takes 3.0 MiB of memory, and the limit leaves 2.0 MiB"),
    "raw data": (message(numpy_helper.from_array(zeros(5 * MIB))), value("x"), "takes 10.0 MiB of memory"),
    "small numbers": (message(helper.make_tensor("x", 6, [MIB], np.zeros(MIB))), value("x"), "of memory"),
    "many texts": (message(helper.make_tensor("x", 8, [50_000], [b""] * 50_000)), value("x"), "of memory"),
    "many tensors": (message(SequenceProto(elem_type=1, tensor_values=[TensorProto()] * 50_000)), SEQUENCE, "memory"),
    "a message with a hole": (holed_message, value("x"), "more than 2 GiB"),
}


@pytest.mark.parametrize(("make", "declared"), FITS.values(), ids=FITS)
def test_what_fits_is_read(make: Callable[[Path], Path], declared: onnx.ValueInfoProto, tmp_path: Path) -> None:
    (case,) = read_test_data(make(tmp_path), [declared], [])
    assert list(case.inputs) == ["x"]


@pytest.mark.parametrize(("make", "declared", "words"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused_before_it_is_read(
    make: Callable[[Path], Path], declared: onnx.ValueInfoProto, words: str, tmp_path: Path
) -> None:
    path = make(tmp_path)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=words) as refused:
            read_test_data(path, [declared], [])
        assert tracemalloc.get_traced_memory()[1] < 10 * MIB
    finally:
        tracemalloc.stop()
    assert str(tmp_path) in str(refused.value)


@pytest.mark.parametrize("verb", [["verify", "m.onnx", "m.onnx"], ["upgrade", "m.onnx", "--opset", "18"]])
def test_the_command_line_says_so(
    verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(split_model(), "m.onnx")
    archive(x=zeros(5 * MIB))(tmp_path)
    assert main([*verb, "--inputs", "data.npz"]) == 2
    assert "data.npz cannot be read as arrays: it takes 5.0 MiB of memory" in capsys.readouterr().err
    assert not Path("m.opset18.onnx").exists()
