"""Reads what weights are along an axis. The weights are in the model, in its file, or in its data files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from splitgraph.conversion.sizes.needs import Counted, Repeated, Triangle
from splitgraph.formats.external_data import with_external_data
from splitgraph.model.attributes import CONSTANT_DTYPES, attribute_value
from splitgraph.model.deferred import helper, np
from splitgraph.model.onnx_proto import NodeProto, TensorProto
from splitgraph.model.scopes import GraphPath
from splitgraph.model.tensor_data import byte_size, is_in_other_file, lacks_data
from splitgraph.model.value_type import DTYPE_NUMBERS
from splitgraph.model.values import array_of
from splitgraph.options import StrPath

# What weights are along an axis.
Pattern = Repeated | Counted | Triangle
# Reads the elements of weights of a graph. Raises NotRead.
ReadWeights = Callable[[GraphPath, TensorProto], Any]
# Bytes of the largest weights that are read: a causal mask of 16,384 positions.
MOST_BYTES = 2**30
# So few numbers, or fewer, are no rule. Only 0 and 1 as integers are.
_FEWEST = 2
# Where the rows and columns of a grid begin to count: at 0, or half a place beside it, as centres of places do.
_STARTS = (0, 0.5, -0.5)


class NotRead(Exception):
    """Weights are not read. The argument says why, to stand after their name."""


class WeightReader:
    """The weights of one model. What was found along an axis is kept as long as the object: weights do not change."""

    def __init__(self, read: ReadWeights) -> None:
        self._read = read
        self._along: dict[tuple[GraphPath, str, int], Pattern | None] = {}

    def elements(self, home: GraphPath, tensor: TensorProto) -> Any:
        """Return the elements of weights. Raises NotRead."""
        size = byte_size(tensor)
        if size is not None and size > MOST_BYTES:
            raise NotRead(f"have {size:,} bytes; weights of at most {MOST_BYTES:,} are read")
        return self._read(home, tensor)

    def along(self, home: GraphPath, name: str, tensor: TensorProto, axis: int) -> Pattern | None:
        """Return what weights are along an axis: all the same, counted, or a triangle; None for all else. Raises
        NotRead.
        """
        key = home, name, axis
        if key not in self._along:
            self._along[key] = found_along(self.elements(home, tensor), axis)
        return self._along[key]


def weights_of(folder: StrPath | None) -> WeightReader:
    """Return the weights of an ONNX model. folder: of its data files; None if it is not known."""

    def read(home: GraphPath, tensor: TensorProto) -> Any:
        if lacks_data(tensor):
            raise NotRead("have no elements in the model")
        if not is_in_other_file(tensor):
            return array_of(tensor)
        if folder is None:
            raise NotRead("are in a data file, whose folder is not known of a model in memory; give its path")
        return array_of(with_external_data(tensor, Path(folder), folder))

    return WeightReader(read)


def constant_tensor(node: NodeProto) -> TensorProto | None:
    """Return the tensor that a Constant gives, also one that is written as a list or a number; None for any other."""
    for attribute in node.attribute:
        if attribute.name == "value":
            return attribute.t
        if attribute.name in CONSTANT_DTYPES and not attribute.ref_attr_name:
            held = attribute_value(attribute)
            items = held if isinstance(held, tuple) else (held,)
            dims = [len(items)] if isinstance(held, tuple) else []
            made: TensorProto = helper.make_tensor("", DTYPE_NUMBERS[CONSTANT_DTYPES[attribute.name]], dims, items)
            return made
    return None


def found_along(array: Any, axis: int) -> Pattern | None:
    """Return what an array is along an axis, as `WeightReader.along` does."""
    first = array.take([0], axis)
    if (array == first).all():
        return Repeated(axis)
    is_finite = array.dtype.kind in "iu" or (array.dtype.kind == "f" and np.isfinite(array).all())
    if is_finite and (first == first.flat[0]).all():
        steps = np.unique(np.diff(array, axis=axis))
        last = array.take([-1], axis).flat[0]
        if steps.size == 1 and (array.shape[axis] > _FEWEST or (array.dtype.kind in "iu" and first.flat[0] == 0)):
            return _counted(axis, float(first.flat[0]), float(last), float(steps[0]))
    triangle = _triangle(array) if axis >= array.ndim - 2 else None
    return _counted_entry(array, axis) if triangle is None and is_finite else triangle


def _counted(axis: int, first: float, last: float, step: float) -> Repeated | None:
    """Return what numbers in equal steps are at any size: counted from 0, or to 0 or 1 from one end of the axis."""
    if (first, step) == (0, 1):
        return Repeated(axis, 0, 1)
    if step == -1 and last in (0, 1):
        return Repeated(axis, int(last) - 1, -1, times=1)
    if step == 1 and last in (0, -1):
        return Repeated(axis, int(last) + 1, 1, times=-1)
    return None


def _counted_entry(array: Any, axis: int) -> Counted | None:
    """Return which entry along another axis counts from 0, as in a grid of rows and columns, where all else stays."""
    size = array.shape[axis]
    if size < _FEWEST or (size == _FEWEST and array.dtype.kind not in "iu"):
        return None
    first = array.take([0], axis)
    step = array.take([1], axis) - first
    numbers = np.arange(size, dtype=array.dtype).reshape([-1 if at == axis else 1 for at in range(array.ndim)])
    for along in (at for at in reversed(range(array.ndim)) if at != axis):
        entries = np.moveaxis(step, along, -1).reshape(-1, array.shape[along])
        if (entries != entries[0]).any() or sorted(entries[0]) != [0] * (entries.shape[1] - 1) + [1]:
            continue
        entry = int(entries[0].argmax())
        starts = first.take(entry, along)
        is_counted = starts.flat[0] in _STARTS and (starts == starts.flat[0]).all()
        is_counted = is_counted and (array == first + step * numbers).all()
        return Counted(axis, entry, along) if is_counted else None
    return None


def _triangle(array: Any) -> Triangle | None:
    """Return what weights are that have one value up to a diagonal, and another above it."""
    if array.ndim < 2:
        return None
    rows, columns = array.shape[-2:]
    if rows != columns or array.size != rows * columns or rows < 2:
        return None
    square = array.reshape(rows, columns)
    below, above = square[-1, 0], square[0, -1]
    is_below = square == below
    if below == above or not is_below.any() or not (is_below | (square == above)).all():
        return None
    # The largest column less the row that has the first value, of the rows that have it.
    last = columns - 1 - is_below[:, ::-1].argmax(axis=1) - np.arange(rows)
    diagonal = int(last[is_below.any(axis=1)].max())
    if abs(diagonal) > 1 and 2 * abs(diagonal) >= rows - 1:
        # It may be counted from the other corner.
        return None
    return Triangle(diagonal, below, above) if (is_below == np.tri(rows, columns, diagonal, bool)).all() else None
