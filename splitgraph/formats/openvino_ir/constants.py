"""Where in the .bin the contents of a Const are, checked against its type, its shape and the size of the .bin."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from splitgraph.diagnostics import ModelError
from splitgraph.formats.openvino_ir.element_types import byte_size
from splitgraph.formats.openvino_ir.graph import Graph, Layer
from splitgraph.formats.openvino_ir.refusal import quoted, refusal
from splitgraph.formats.openvino_ir.shape_text import parse_static_shape

_NUMBER = re.compile(r"[0-9]{1,19}")
_MOST_ELEMENTS = 2**63


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes of the .bin: `size` of them from `offset`."""

    offset: int
    size: int


def check_constants(graph: Graph, available: int | None, path: str | os.PathLike[str] | None) -> None:
    """Check every Const of a graph and its bodies. available: bytes of the .bin, None when there is none. Raises
    ModelError (SG107, SG111).
    """
    for layer in graph.layers:
        if layer.type == "Const":
            locate(layer, available, path)
        for body in layer.bodies.values():
            check_constants(body, available, path)


def locate(layer: Layer, available: int | None, path: str | os.PathLike[str] | None) -> Place:
    """Where the contents of a Const are. Raises ModelError: SG107 when the .bin does not hold them, SG111 when the
    layer does not say where they are or gives a size that its type and shape do not have.
    """

    def refuse(code: str, message: str) -> ModelError:
        return refusal(code, f"layer {quoted(layer.name)} (id {layer.id}) {message}", path)

    if layer.type != "Const":
        raise refuse("SG111", f"is a {layer.type}, which has no contents in the .bin")
    for attribute in ("element_type", "shape", "offset", "size"):
        if attribute not in layer.data:
            raise refuse("SG111", f"is a Const without {attribute}")
    numbers = [layer.data[attribute].strip() for attribute in ("offset", "size")]
    if not all(_NUMBER.fullmatch(number) for number in numbers):
        raise refuse(
            "SG111", f"has the offset {quoted(numbers[0])} and the size {quoted(numbers[1])}; both must be numbers"
        )
    offset, size = map(int, numbers)
    try:
        shape = parse_static_shape(layer.data["shape"])
    except ValueError as error:
        raise refuse("SG111", f"has the shape {quoted(layer.data['shape'])}: {error}") from None
    elements = _product(shape)
    if elements > _MOST_ELEMENTS:
        raise refuse("SG111", f"has the shape {quoted(layer.data['shape'])}, of more elements than any file holds")
    expected = byte_size(layer.data["element_type"], elements)
    # For a constant without elements OpenVINO writes a byte that holds nothing.
    is_padding = expected == 0 and size == 1
    if expected is not None and size != expected and not is_padding:
        what = f"{quoted(layer.data['element_type'])} of shape {quoted(layer.data['shape'])}"
        raise refuse("SG111", f"has {size:,} bytes, but {what} takes {expected:,}")
    if available is None:
        raise refuse("SG107", "is in the .bin, but there is none beside the .xml")
    if offset + size > available:
        raise refuse("SG107", f"needs {size:,} bytes from byte {offset:,} of the .bin, which has only {available:,}")
    return Place(offset, 0 if is_padding else size)


def _product(shape: tuple[int, ...]) -> int:
    """The number of elements, or some number above _MOST_ELEMENTS: the product of many sizes has too many digits."""
    if 0 in shape:
        return 0
    product = 1
    for size in shape:
        product *= size
        if product > _MOST_ELEMENTS:
            break
    return product
