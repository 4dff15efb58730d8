"""LabelEncoder: a look-up in a table.

Version 1 maps strings to their positions in a list, or positions to strings. Version 2 has keys and values of three
types. Version 4 has further types as tensors, and a key of NaN equals NaN, which equals no key before.

A table that an older version does not have becomes two look-ups: of the position of the key, and of the value at this
position. Strings are looked up by the older version, numbers by operators of ai.onnx.
"""

from __future__ import annotations

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary, require_few
from splitgraph.conversion.operators.machine_learning.tables import (
    LISTS,
    LookUp,
    looked_up,
    position_of,
    read_classes,
    read_table,
)
from splitgraph.conversion.operators.registry import changed, downward, edited_downward, edited_upward, upward
from splitgraph.model.deferred import np

_LIST_OF = {dtype: ending for ending, dtype in LISTS.items()}
_DEFAULT_OF = {"string": "default_string", "int64": "default_int64", "float32": "default_float"}
_IN_LISTS = "the keys and values are in lists of these types"

changed("LabelEncoder", 2, "the classes are keys and values from then on, and have no order")
changed("LabelEncoder", 4, "keys and values may be tensors from then on, and NaN is a key")


def _write_lists(node: NodeAtBoundary, table: LookUp) -> None:
    """Give a LabelEncoder of version 2 or later a table."""
    why = f"{_IN_LISTS} {node.side}"
    node.drop(*list(node.attributes), why=why)
    node.set(f"keys_{_LIST_OF[table.key_dtype]}", table.keys.tolist(), why)
    node.set(f"values_{_LIST_OF[table.value_dtype]}", table.values.tolist(), why)
    node.set(_DEFAULT_OF[table.value_dtype], table.default.tolist()[0], why)


def _are_listed(table: LookUp) -> bool:
    """Return True for a table whose types have lists in version 2, and that means the same there."""
    has_nan = table.keys.dtype.kind == "f" and bool(np.isnan(table.keys).any())
    return table.key_dtype in _LIST_OF and table.value_dtype in _LIST_OF and not has_nan


# To version 2, and back -----------------------------------------------------------------------------------------------


@edited_upward("LabelEncoder", 2)
def keys_of_classes(node: NodeAtBoundary) -> None:
    """Write the positions of the classes out."""
    _write_lists(node, _without_repetitions(read_classes(node)))


def _without_repetitions(table: LookUp) -> LookUp:
    """Return a table in which no key occurs twice."""
    first = {key: place for place, key in reversed([*enumerate(table.keys.tolist())])}
    places = np.array(sorted(first.values()))
    return LookUp(table.keys[places], table.values[places], table.default)


@edited_downward("LabelEncoder", 2)
def classes_of_keys(node: NodeAtBoundary) -> None:
    """Write keys and values as the list of classes that means the same, where there is one."""
    table = _without_repetitions(read_table(node, 2))
    kinds = table.key_dtype, table.value_dtype
    if kinds == ("string", "int64"):
        classes = _classes_in_places(table.keys.tolist(), table.values.tolist())
    elif kinds == ("int64", "string"):
        classes = _classes_with_holes(table)
    else:
        raise Inexact
    _write_classes(node, classes, table)


def _write_classes(node: NodeAtBoundary, classes: list[str], table: LookUp) -> None:
    why = f"the positions of the classes are the numbers {node.side}"
    node.drop(*list(node.attributes), why=why)
    node.set("classes_strings", classes, why)
    node.set(_DEFAULT_OF[table.value_dtype], table.default.tolist()[0], why)


def _classes_in_places(texts: list[str], positions: list[int]) -> list[str]:
    """Return a list in which the last occurrence of each text is at its position."""
    if min(positions) < 0 or len(set(positions)) < len(positions):
        raise Inexact
    require_few(max(positions) + 1)
    # The text at the end fills the places before, where it does not count.
    last = texts[positions.index(max(positions))]
    classes = [last] * (max(positions) + 1)
    for text, position in zip(texts, positions, strict=True):
        classes[position] = text
    return classes


def _classes_with_holes(table: LookUp) -> list[str]:
    """Return a list with the value of each key at its position, and the default at the others."""
    positions = table.keys.tolist()
    if min(positions) < 0:
        raise Inexact
    require_few(max(positions) + 1)
    classes: list[str] = table.default.tolist() * (max(positions) + 1)
    for position, text in zip(positions, table.values.tolist(), strict=True):
        classes[position] = text
    return classes


@downward("LabelEncoder", 2)
def two_look_ups_of_classes(node: NodeAtBoundary) -> None:
    """Look the position of a key up, and the value at the position."""
    table = _without_repetitions(read_table(node, 2))
    f = Formula(node)
    positions = f.input(0, table.key_dtype)
    count = len(table.keys)
    if table.key_dtype == "string":
        name = node.write_own(
            "LabelEncoder", node.inputs, "position", classes_strings=table.keys.tolist(), default_int64=count
        )
        positions = f.value(name, "int64")
    else:
        positions = position_of(f, positions, table)
    _give_values(node, f, positions, table, classes_strings=[*table.values.tolist(), *table.default.tolist()])


def _give_values(node: NodeAtBoundary, f: Formula, positions: Term, table: LookUp, **attributes: object) -> None:
    """Make the node give the value at each position. attributes: of the LabelEncoder that gives strings."""
    if table.value_dtype != "string":
        f.give(looked_up(f, positions, table))
        return
    node.inputs[:] = [positions.name]
    node.attributes.clear()
    for name, value in attributes.items():
        node.set(name, value, f"values are looked up by their positions {node.side}")


# To version 4, and back -----------------------------------------------------------------------------------------------


@edited_upward("LabelEncoder", 4)
def without_nan(node: NodeAtBoundary) -> None:
    """Leave keys of NaN out, which equal nothing before version 4."""
    keys = node.known_value("keys_floats", ())
    if any(np.isnan(keys)):
        table = read_table(node, 2)
        if not len(table.keys):
            raise Inexact
        _write_lists(node, table)


@edited_downward("LabelEncoder", 4)
def lists_of_tensors(node: NodeAtBoundary) -> None:
    """Write tensors as lists, where version 2 has lists of their types."""
    table = read_table(node, 4)
    if not _are_listed(table):
        raise Inexact
    if any(name.endswith("_tensor") for name in node.attributes):
        _write_lists(node, table)


@upward("LabelEncoder", 4)
def only_default(node: NodeAtBoundary) -> None:
    """Give the default for every element: all keys are NaN, which equals nothing before version 4."""
    table, f = read_table(node, 2), Formula(node)
    if len(table.keys):
        raise Inexact
    f.give(looked_up(f, f.filled(f.shape(node.inputs[0]), 0), table))


@downward("LabelEncoder", 4)
def two_look_ups(node: NodeAtBoundary) -> None:
    """Look the position of a key up, and the value at the position."""
    table, f = read_table(node, 4), Formula(node)
    count = len(table.keys)
    if table.key_dtype == "string":
        known = {"values_int64s": [*range(count)], "default_int64": count}
        name = node.write_own("LabelEncoder", node.inputs, "position", keys_strings=table.keys.tolist(), **known)
        positions = f.value(name, "int64")
    else:
        positions = position_of(f, f.input(0, table.key_dtype), table)
    _give_values(
        node,
        f,
        positions,
        table,
        keys_int64s=[*range(count)],
        values_strings=table.values.tolist(),
        default_string=table.default.tolist()[0],
    )
