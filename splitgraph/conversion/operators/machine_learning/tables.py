"""A table of keys and values: what LabelEncoder looks up, in each of its versions, and in nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary, elements_of
from splitgraph.model.deferred import np, numpy_helper
from splitgraph.model.onnx_proto import TensorProto

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

# What the lists of a table hold, by the ending of their names.
LISTS: Mapping[str, str] = {"strings": "string", "int64s": "int64", "floats": "float32"}
# What the default is without an attribute, by the kind of the NumPy type of the values.
_DEFAULTS: Mapping[str, Any] = {"O": "_Unused", "i": -1, "f": -0.0}
# A table of integers is indexed by the integers themselves if it has at most so many places for each key.
_PLACES_FOR_EACH = 4


@dataclass(frozen=True)
class LookUp:
    """A table: of equal keys the first one counts. All are one-dimensional arrays; strings are objects.

    default: the value of what is no key, an array of one element.
    """

    keys: Array
    values: Array
    default: Array

    @property
    def key_dtype(self) -> str:
        """The element type of the keys."""
        return _dtype_of(self.keys)

    @property
    def value_dtype(self) -> str:
        """The element type of the values."""
        return _dtype_of(self.values)

    @property
    def all_values(self) -> Array:
        """The values, and the default behind them."""
        return np.concatenate([self.values, self.default])


def _dtype_of(array: Array) -> str:
    return "string" if array.dtype == object else str(array.dtype)


def read_classes(node: NodeAtBoundary) -> LookUp:
    """Return the table of a LabelEncoder-1: of strings and their positions, or the other way round. Of equal strings
    the last one counts.
    """
    given, made = node.input_type(0).dtype, node.output_type(0).dtype
    if given is None and made is not None:
        given = {"string": "int64", "int64": "string"}.get(made)
    if given not in ("string", "int64"):
        raise Inexact("whether it maps strings to integers depends on its input, whose element type is unknown")
    classes = _texts(node.known_value("classes_strings", ()))
    if not len(classes):
        raise Inexact("it has no classes")
    positions = np.arange(len(classes))
    if given == "int64":
        return LookUp(positions, classes, _texts([node.known_value("default_string", "_Unused")]))
    default = np.array([node.known_value("default_int64", -1)], np.int64)
    return LookUp(classes[::-1], positions[::-1], default)


def read_table(node: NodeAtBoundary, version: int) -> LookUp:
    """Return the table of a LabelEncoder of version 2 or 4. In version 2 no element equals a key of NaN."""
    keys, values = _column(node, "keys"), _column(node, "values")
    if len(keys) != len(values) or not len(keys):
        raise Inexact("it has no keys, or another number of values")
    if version < 4 and keys.dtype.kind == "f":
        keys, values = keys[~np.isnan(keys)], values[~np.isnan(keys)]
    return LookUp(keys, values, _default(node, values))


def _column(node: NodeAtBoundary, base: str) -> Array:
    tensor = node.known_value(f"{base}_tensor")
    if isinstance(tensor, TensorProto):
        elements = elements_of(tensor).reshape(-1)
        return _texts(elements) if elements.dtype.kind in "OSU" else elements
    for ending, dtype in LISTS.items():
        items = node.known_value(f"{base}_{ending}", ())
        if items:
            return _texts(items) if dtype == "string" else np.array(items, dtype)
    return np.zeros(0, np.int64)


def _default(node: NodeAtBoundary, values: Array) -> Array:
    tensor = node.known_value("default_tensor")
    if isinstance(tensor, TensorProto):
        elements = elements_of(tensor).reshape(-1)[:1]
        return _texts(elements) if values.dtype == object else elements.astype(values.dtype)
    name = {"string": "default_string", "int64": "default_int64", "float32": "default_float"}.get(_dtype_of(values))
    absent = _DEFAULTS[values.dtype.kind]
    default = absent if name is None else node.known_value(name, absent)
    return _texts([default]) if values.dtype == object else np.array([default], values.dtype)


def _texts(items: Any) -> Array:
    """Return strings as an array of objects."""
    texts = [item.decode() if isinstance(item, bytes) else item for item in items]
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def texts_of(f: Formula, texts: Any) -> Term:
    """Return strings as a constant."""
    return f.value(f.node.tensor(numpy_helper.from_array(_texts(texts)), "texts"), "string")


# In nodes -------------------------------------------------------------------------------------------------------------


def position_of(f: Formula, data: Term, table: LookUp) -> Term:
    """Return the position in the table of each element, the number of keys for what is no key; int64. Strings need
    opset 19.
    """
    keys, count = table.keys, len(table.keys)
    if keys.dtype.kind == "i" and count:
        least, most = int(keys.min()), int(keys.max())
        if most - least < max(64, _PLACES_FOR_EACH * count):
            places = np.full(most - least + 2, count)
            # The first of equal keys is written last.
            places[keys[::-1].astype(np.int64) - least] = np.arange(count)[::-1]
            numbers = data.cast("int64")
            is_within = ~((numbers < least) | (numbers > most))
            return f.number(places).take(f.where(is_within, numbers - least, most - least + 1))
    if not count:
        raise Inexact("none of its keys can be equal to an element")
    equal = data.unsqueezed(-1).equals(f.term(keys))
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        is_nan = f.apply("IsNaN", data, gives="bool").unsqueezed(-1)
        equal = equal | (is_nan & f.number(np.isnan(keys), "bool"))
    return f.where(equal, f.number(np.arange(count)), count).reduced("ReduceMin", [-1])


def looked_up(f: Formula, positions: Term, table: LookUp) -> Term:
    """Return the value at each position."""
    values = texts_of(f, table.all_values) if table.value_dtype == "string" else f.term(table.all_values)
    return values.take(positions)
