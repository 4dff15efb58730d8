"""The constants of an OpenVINO IR, those of its bodies among them, and copies of an IR with other ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import onnx

from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel
from splitgraph.formats.openvino_ir.notation import dtype_of, parse_static_shape
from splitgraph.model.value_type import DTYPE_NUMBERS
from splitgraph.verification.values import Array

# A constant of more bytes is not compared.
_MOST_BYTES = 2**26
# Fractions that differ by a smaller share are the same.
_SAME = 1e-5

# Where a layer is: the positions of the layers with bodies around it, each with the tag of the body, and its own.
Path = tuple[tuple[int, str], ...]


class IRConstant(NamedTuple):
    """A constant of an IR, by its place (see `Path`)."""

    path: Path
    layer: Layer

    @property
    def dims(self) -> tuple[int, ...]:
        """Return its shape."""
        return parse_static_shape(self.layer.data["shape"])

    def elements(self, model: OpenVINOModel) -> Array | None:
        """Return its elements; None for types that NumPy lacks, and for very large ones."""
        number = DTYPE_NUMBERS.get(dtype_of(self.layer.data["element_type"]) or "")
        if number is None or number == onnx.TensorProto.STRING or model.place_of(self.layer).size > _MOST_BYTES:
            return None
        dtype, content = onnx.helper.tensor_dtype_to_np_dtype(number), model.constant(self.layer)
        if dtype.kind not in "fiub" or len(content) != math.prod(self.dims) * dtype.itemsize:
            return None
        return np.frombuffer(content, dtype).reshape(self.dims)


class ChangedConstant(NamedTuple):
    """A constant that has other elements in the second of two IRs. places: which, in its flat form."""

    constant: IRConstant
    places: Array
    arrays: tuple[Array, Array]

    def first_place(self) -> list[int]:
        """Return the index of the first element that differs."""
        return [int(index) for index in np.unravel_index(int(self.places[0]), self.arrays[1].shape)]


def ir_constants(model: OpenVINOModel) -> Iterator[IRConstant]:
    """Yield the constants of an IR."""
    yield from (IRConstant(path, layer) for path, layer in _layers(model.graph, ()) if layer.type == "Const")


def ir_limits(model: OpenVINOModel) -> Iterator[float]:
    """Yield the limits that layers have as attributes."""
    for _, layer in _layers(model.graph, ()):
        if layer.type == "Clamp":
            yield from (float(layer.data[name]) for name in ("min", "max") if name in layer.data)


def changed_constants(first: OpenVINOModel, second: OpenVINOModel) -> Iterator[ChangedConstant]:
    """Yield the constants that have other elements in the second IR. The two have one name; or one place, where
    OpenVINO gave them names and neither IR has the elements of the other.
    """
    by_name = {_name(one): one for one in ir_constants(first)}
    in_second = list(ir_constants(second))
    named = {_name(other) for other in in_second}
    # Those whose name is in one of the IRs alone.
    alone = {one.path: one for name, one in by_name.items() if name not in named}
    pools = (
        _elements(alone.values(), first),
        _elements((other for other in in_second if _name(other) not in by_name), second),
    )
    for other in in_second:
        has_name = _name(other) in by_name
        one = by_name[_name(other)] if has_name else alone.get(other.path)
        arrays = None if one is None else one.elements(first), other.elements(second)
        if arrays[0] is None or arrays[1] is None:
            continue
        if (arrays[0].dtype, arrays[0].shape) != (arrays[1].dtype, arrays[1].shape):
            continue
        # A constant of the place that is found elsewhere in the other IR was moved.
        if not has_name and (_is_held(arrays[1], pools[0]) or _is_held(arrays[0], pools[1])):
            continue
        places = different_places(arrays[0], arrays[1])
        if places.size:
            yield ChangedConstant(other, places, (arrays[0], arrays[1]))


def _name(constant: IRConstant) -> tuple[str, ...]:
    """Return what names a constant in its IR: the tags of the bodies around it, and its own name."""
    return (*(tag for _, tag in constant.path), constant.layer.name)


def _elements(constants: Iterable[IRConstant], model: OpenVINOModel) -> list[Array]:
    return [array for constant in constants if (array := constant.elements(model)) is not None]


def _is_held(array: Array, pool: Sequence[Array]) -> bool:
    """Return True if a constant of a pool has the same elements."""
    alike = (other for other in pool if (other.dtype, other.size) == (array.dtype, array.size))
    return any(not different_places(other.reshape(array.shape), array).size for other in alike)


def with_other_elements(model: OpenVINOModel, change: ChangedConstant) -> OpenVINOModel:
    """Return a copy of the second IR whose elements that differ are others once more: runs that read them show it."""
    copy = model.copy()
    layer = next(layer for path, layer in _layers(copy.graph, ()) if path == change.constant.path)
    one, other = (np.array(array).reshape(-1) for array in change.arrays)
    made = np.array(other)
    if other.dtype.kind == "f":
        own, another = other[change.places], one[change.places]
        between = another / 2 + own / 2
        made[change.places] = np.where(np.isfinite(between) & (between != own), between, another)
    elif other.dtype.kind == "b":
        made[change.places] = one[change.places]
    else:
        more = np.where(other[change.places] == np.iinfo(other.dtype).max, 0, 1)
        made[change.places] += np.where(more == 1, 1, -1).astype(other.dtype)
    data = layer.element.find("data")
    assert data is not None
    data.set("offset", str(copy.append_constant(made.tobytes())))
    copy.refresh()
    return copy


def different_places(one: Array, other: Array) -> Array:
    """Return the places, in their flat form, at which two arrays of one shape differ by more than rounding."""
    if one.dtype.kind != "f":
        return np.flatnonzero(one != other)
    left, right = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(left - right) <= _SAME * np.maximum(np.abs(left), np.abs(right))
    return np.flatnonzero(~near & ~(left == right) & ~(np.isnan(left) & np.isnan(right)))


def _tags(path: Path) -> Sequence[str]:
    return [tag for _, tag in path]


def _layers(graph: Graph, path: Path) -> Iterator[tuple[Path, Layer]]:
    for layer in graph.layers:
        yield (*path, (layer.id, "")), layer
        for tag, body in layer.bodies.items():
            yield from _layers(body, (*path, (layer.id, tag)))
