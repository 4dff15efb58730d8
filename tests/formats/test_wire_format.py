"""The one reader and writer of the wire format, against protobuf."""

from __future__ import annotations

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto

from splitgraph.model.wire_format import FIXED32, LENGTH, VARINT, Malformed, field, fields, head, tag, varint, varint_at

BROKEN = {
    "nothing behind a tag": (b"\x0a", "is truncated: it ends within a number", 1),
    "a length that is cut off": (b"\x0a\x80", "is truncated: it ends within a number", 2),
    "a value that is cut off": (b"\x0a\x05abc", "is truncated: a field ends at byte 7, but there are only 5", 0),
    "a length of 2**63": (b"\x0a" + varint(2**63), "is truncated: a field ends at byte 9,223,372,036,854,775,819", 0),
    "a number without an end": (b"\x08" + b"\xff" * 11, "holds a number of more than 64 bits", 11),
    "a long tag": (b"\xff" * 11, "holds a number of more than 64 bits", 10),
    "the field 0": (b"\x02\x00", "holds bytes that are no protobuf field (tag 2)", 0),
    "a group": (b"\x0b\x0c", "holds bytes that are no protobuf field (tag 11)", 0),
    "an unknown wire type": (b"\x0e", "holds bytes that are no protobuf field (tag 14)", 0),
    "four bytes that are two": (b"\x0d\x00\x00", "is truncated: a field ends at byte 5, but there are only 3", 0),
}


@pytest.mark.parametrize(("data", "fault", "position"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_field_is_told_with_its_place(data: bytes, fault: str, position: int) -> None:
    with pytest.raises(Malformed) as raised:
        list(fields(data, 0, len(data)))
    assert str(raised.value).startswith(fault)
    assert raised.value.position == position


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**14, 2**31 - 1, 2**32, 2**63, 2**64 - 1])
def test_numbers_are_written_as_they_are_read(number: int) -> None:
    written = varint(number)
    assert varint_at(written + b"\xff", 0, len(written) + 1) == (number, len(written))


def test_fields_are_those_of_protobuf() -> None:
    node = NodeProto(op_type="Split", input=["x", ""], output=["a" * 200])
    node.attribute.add(name="axis", type=AttributeProto.INT, i=-1)
    written = node.SerializeToString()
    found = [(each.number, written[each.start : each.end]) for each in fields(written, 0, len(written))]
    attribute = node.attribute[0].SerializeToString()
    assert found == [(1, b"x"), (1, b""), (2, b"a" * 200), (4, b"Split"), (5, attribute)]
    kinds = [(each.number, each.kind) for each in fields(attribute, 0, len(attribute))]
    assert kinds == [(1, LENGTH), (3, VARINT), (20, VARINT)]


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(st.binary(max_size=300), st.integers(-(2**63), 2**63 - 1), st.text(max_size=200), st.floats(width=32))
def test_what_is_written_is_what_protobuf_reads(raw: bytes, number: int, name: str, value: float) -> None:
    made = TensorProto(name=name, raw_data=raw, dims=[number % 1000])
    written = field(8, name.encode("utf-8", "surrogatepass")) + field(9, raw) + tag(1, VARINT) + varint(number % 1000)
    assert TensorProto.FromString(written) == made
    graph = GraphProto(initializer=[made])
    content = made.SerializeToString()
    assert head(5, len(content)) + content == graph.SerializeToString()
    attribute = AttributeProto(name=name, type=AttributeProto.FLOAT, f=value).SerializeToString()
    assert b"".join(attribute[each.begin : each.end] for each in fields(attribute, 0, len(attribute))) == attribute
    assert [each.number for each in fields(attribute, 0, len(attribute)) if each.kind == FIXED32] == [2]
