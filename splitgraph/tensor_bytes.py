"""How many bytes the elements of a tensor take, and whether they are where they should be."""

from __future__ import annotations

import math

from splitgraph.onnx_proto import TensorProto

# Bits of one element of each TensorProto.DataType that has a fixed size.
_BITS: dict[int, int] = {
    **dict.fromkeys((25, 26), 2),
    **dict.fromkeys((21, 22, 23), 4),
    **dict.fromkeys((27, 28), 6),
    **dict.fromkeys((2, 3, 9, 17, 18, 19, 20, 24), 8),
    **dict.fromkeys((4, 5, 10, 16), 16),
    **dict.fromkeys((1, 6, 12), 32),
    **dict.fromkeys((7, 11, 13, 14), 64),
    15: 128,
}


def byte_size(tensor: TensorProto) -> int | None:
    """Bytes that a tensor of this type and shape takes as raw data; None for strings and unknown types."""
    bits = _BITS.get(tensor.data_type)
    return None if bits is None else (math.prod(tensor.dims) * bits + 7) // 8


def is_external(tensor: TensorProto) -> bool:
    """True when the tensor's contents lie in another file."""
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def misfit(tensor: TensorProto) -> str | None:
    """What is wrong with a tensor's raw data, None where it is as long as type and shape need, or in another file."""
    if not tensor.HasField("raw_data") or is_external(tensor):
        return None
    needed = byte_size(tensor)
    if needed is None or needed < 0:
        return None
    # One copy of the elements; ByteSize writes the whole message, which takes two.
    found = len(tensor.raw_data)
    return None if found == needed else f"it has {found} bytes of data, and its type and shape need {needed}"
