"""Files that are wrong where their weights are: read without these, they are what protobuf reads, or are refused."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import AttributeProto, GraphProto, TensorProto

import splitgraph
from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats import onnx_file, skeleton, whole_model
from splitgraph.formats.external_data import all_tensors
from splitgraph.formats.onnx_file import read_onnx
from splitgraph.model.tensor_data import place_of
from splitgraph.model.wire_format import Malformed, fields, varint

from .tiny_models import add_model, field

RAW = bytes(range(100))
TENSOR = TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[25], raw_data=RAW)
MODEL = add_model().SerializeToString()


def with_initializer(content: bytes) -> bytes:
    """A model with one more initializer, of the content; protobuf joins the two graphs."""
    return MODEL + field(7, field(5, field(8, b"w2") + content))


def long_varint(number: int, size: int) -> bytes:
    """A number in so many bytes."""
    held = varint(number)
    return bytes([*[byte | 0x80 for byte in held], *[0x80] * (size - len(held) - 1), 0])


# The content of a tensor: float_data 4, int32_data 5, int64_data 7, raw_data 9, double_data 10, uint64_data 11.
REFUSED = {
    "floats that end within one": field(4, bytes(41)),
    "doubles that end within one": field(10, bytes(44)),
    "int32s that end within one": field(5, b"\1" * 40 + b"\x80"),
    "int64s that end within one": field(7, b"\1" * 40 + b"\xff"),
    "a uint64 of 11 bytes": field(11, b"\1" * 40 + b"\x80" * 10 + b"\1" * 9),
    "a length of six bytes": b"\x4a" + long_varint(100, 6) + RAW,
    "a tag of six bytes": long_varint(9 << 3 | 2, 6) + varint(100) + RAW,
    "a field number of 30 bits": varint(2**29 << 3 | 2) + varint(100) + RAW,
    "a length of 2**63": b"\x4a" + varint(2**63) + RAW,
    "a length behind the end": b"\x4a" + varint(101) + RAW,
}
READ = {
    "raw data": field(9, RAW),
    "a length of five bytes": b"\x4a" + long_varint(100, 5) + RAW,
    "a tag of five bytes": long_varint(9 << 3 | 2, 5) + varint(100) + RAW,
    "int64s of ten bytes": field(7, (b"\xff" * 9 + b"\1") * 5),
    "int64s of more bytes than they need": field(7, b"\x81\x80\x00" * 20),
}


@pytest.fixture(autouse=True)
def leaves_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of any size are read without their weights, and so are tensors of more than a few bytes."""
    monkeypatch.setattr(onnx_file, "WHOLE", 0)
    monkeypatch.setattr(skeleton, "SMALL", 8)


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_what_protobuf_refuses_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(with_initializer(content))
    with pytest.raises(DecodeError):
        onnx.load(path)
    said = set()
    for weights in ("load", "leave"):
        with pytest.raises(ModelError) as caught:
            read_onnx(path, weights=weights)  # type: ignore[arg-type]
        said.add(str(caught.value))
    assert len(said) == 1


@pytest.mark.parametrize("content", READ.values(), ids=READ)
def test_what_protobuf_reads_is_read(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(with_initializer(content))
    assert whole_model(read_onnx(path, weights="leave").model, path) == onnx.load(path)


@pytest.mark.parametrize("more", [field(4, bytes(40)), field(6, b"text"), field(5, b"\1")])
def test_elements_in_two_fields_are_told_of(more: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(with_initializer(TENSOR.SerializeToString() + more))
    (found,) = splitgraph.infer(path).diagnostics
    assert "has elements in both raw_data and" in found.message


def test_what_is_wrong_is_told_with_its_place_in_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(with_initializer(field(9, RAW)) + b"\x0f")
    with pytest.raises(ModelError, match=f"at byte {path.stat().st_size - 1:,}"):
        read_onnx(path, weights="leave")


GRAPH = GraphProto(name="g", initializer=[TENSOR])
ATTRIBUTES = {
    "a tensor": (AttributeProto(type=AttributeProto.TENSOR, t=TENSOR), True),
    "a graph": (AttributeProto(type=AttributeProto.GRAPH, g=GRAPH), True),
    "no type": (AttributeProto(t=TENSOR), False),
    "a tensor that is an integer": (AttributeProto(type=AttributeProto.INT, t=TENSOR), False),
    "a graph that is a tensor": (AttributeProto(type=AttributeProto.TENSOR, g=GRAPH), False),
    "a graph beside a tensor": (AttributeProto(type=AttributeProto.TENSOR, t=TENSOR, g=GRAPH), False),
}


@pytest.mark.parametrize(("attribute", "is_left"), ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_weights_are_left_only_where_they_are_looked_for(
    attribute: AttributeProto, is_left: bool, tmp_path: Path
) -> None:
    model = add_model()
    model.graph.node[0].attribute.append(attribute)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    read = read_onnx(path, weights="leave")
    # The other one is the initializer that the model has.
    assert sum(place_of(tensor) is not None for tensor in all_tensors(read.model)) == 1 + is_left
    assert whole_model(read.model, path) == onnx.load(path)


@pytest.mark.parametrize("size", [5, 6, 10])
def test_tags_and_lengths_take_five_bytes_at_most(size: int) -> None:
    for written in (long_varint(9 << 3 | 2, size) + b"\0", b"\x4a" + long_varint(0, size)):
        if size > 5:
            with pytest.raises(Malformed):
                list(fields(written, 0, len(written)))
            with pytest.raises(DecodeError):
                TensorProto.FromString(written)
        else:
            assert [found.number for found in fields(written, 0, len(written))] == [9]
            assert TensorProto.FromString(written) == TensorProto(raw_data=b"")
