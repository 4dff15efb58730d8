"""The keys of Constant nodes in the memo of visits: the bytes of their attribute. A third of the nodes that exporters
write are Constants, and most of them are equal.

Asking protobuf for an output and an attribute makes objects, which takes three times as long as writing the whole node
as bytes and reading it from there. Source: the fields of NodeProto in onnx.proto.
"""

from __future__ import annotations

from collections.abc import Container

from splitgraph.wire_format import ONE_BYTE, Malformed, field, tag, varint_at

# How NodeProto's fields begin, and the operator's whole field.
_OUTPUT, _NAME, _ATTRIBUTE = (tag(number)[0] for number in (2, 3, 5))
_OPERATOR = field(4, b"Constant")

# A longer Constant holds weights: comparing them would cost more than it saves.
MOST_BYTES = 4096


def constant_key(written: bytes, earlier: Container[object] = ()) -> tuple[str, bytes] | None:
    """The output of a Constant node and its key, which is its attribute as bytes, from the bytes of the node.

    earlier: keys that were read before, among other things. None unless the node is an output, perhaps a name,
    the operator and one attribute, in this order and nothing else, all short, with an output of less than 128 bytes and
    a name, too: what else there is means something, or is rare.
    """
    if len(written) > MOST_BYTES:
        return None
    head, _, attribute = written.partition(_OPERATOR)
    size = len(head)
    try:
        end = head[1] + 2
        named = end == size or (head[end] == _NAME and head[end + 1] < ONE_BYTE and end + 2 + head[end + 1] == size)
        if not (named and head[0] == _OUTPUT and 2 < end < 2 + ONE_BYTE):
            return None
        if attribute not in earlier and not _is_one_attribute(attribute):
            return None
        return head[2:end].decode(), attribute
    except (IndexError, UnicodeDecodeError):
        return None


def _is_one_attribute(written: bytes) -> bool:
    """True for the bytes of one attribute and nothing else."""
    try:
        length, start = varint_at(written, 1, len(written))
    except Malformed:
        return False
    return written[0] == _ATTRIBUTE and start + length == len(written)
