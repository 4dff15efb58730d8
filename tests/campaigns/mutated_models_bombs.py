"""Nodes that take few bytes to write and ask for very much: a model must not be able to make its reader do that."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

_LARGE = (2**20, 2**31, 2**40, 2**62)
_ROUNDS = (5, 5, 5, 10, 10, 64)
# Of what takes long for each node.
_FEW_ROUNDS = (3, 10)


class _Builder:
    """Adds nodes and constants to a graph under names that are free."""

    def __init__(self, model: ModelProto) -> None:
        self._graph = model.graph
        self._made = len(model.graph.node)

    def node(self, operator: str, inputs: Sequence[str], outputs: int = 1, **attributes: object) -> str:
        """Add a node; returns the name of its first output."""
        self._made += 1
        names = [f"bomb{self._made}_{number}" for number in range(outputs)]
        self._graph.node.append(helper.make_node(operator, inputs, names, **attributes))
        return names[0]

    def constant(self, *numbers: int) -> str:
        """Add a list of integers; returns its name."""
        self._made += 1
        name = f"bomb{self._made}"
        self._graph.initializer.append(numpy_helper.from_array(np.array(numbers, np.int64), name))
        return name

    def scalar(self, number: int) -> str:
        """Add an integer; returns its name."""
        self._made += 1
        name = f"bomb{self._made}"
        self._graph.initializer.append(numpy_helper.from_array(np.array(number, np.int64), name))
        return name

    def input(self, *shape: int | str | None) -> str:
        """Add an input of floats; returns its name."""
        self._made += 1
        name = f"bomb{self._made}"
        self._graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name


def add_bomb(model: ModelProto, rng: random.Random) -> str:
    """Add one of the bombs to the main graph; returns which."""
    bomb = rng.choice(_BOMBS)
    bomb(_Builder(model), rng)
    return bomb.__name__.lstrip("_")


def _filled(add: _Builder, rng: random.Random) -> None:
    fill = helper.make_tensor("value", TensorProto.INT64, [1], [7])
    whole = add.node("ConstantOfShape", [add.constant(rng.choice(_LARGE), rng.choice(_LARGE))], value=fill)
    add.node("Split", [whole], 3, axis=0)


def _counted(add: _Builder, rng: random.Random) -> None:
    size = add.node("Range", [add.scalar(0), add.scalar(rng.choice(_LARGE)), add.scalar(1)])
    add.node("Reshape", [add.input("N"), size])


def _expanded(add: _Builder, rng: random.Random) -> None:
    large = add.node("Expand", [add.constant(1), add.constant(rng.choice(_LARGE))])
    add.node("ReduceProd", [large])
    add.node("Split", [add.input("N", 4), large], 2, axis=0)


def _doubled(add: _Builder, rng: random.Random) -> None:
    """A list of constants that is joined with itself, again and again."""
    name = add.constant(1, 2)
    for _ in range(rng.choice(_ROUNDS)):
        name = add.node("Concat", [name, name], axis=0)
    add.node("Reshape", [add.input("N", "M"), name])


def _doubled_text(add: _Builder, rng: random.Random) -> None:
    name = add.node("Constant", [], value_strings=[b"ab"])
    for _ in range(rng.choice(_ROUNDS)):
        name = add.node("StringConcat", [name, name])
    add.node("StringSplit", [name], 2)


def _squared(add: _Builder, rng: random.Random) -> None:
    size = add.node("Shape", [add.input("N")])
    for _ in range(rng.choice(_ROUNDS)):
        size = add.node("Mul", [add.node("Add", [size, add.constant(1)]), size])
    add.node("ConstantOfShape", [size])


def _powers(add: _Builder, rng: random.Random) -> None:
    size = add.constant(rng.choice((2, 10, 2**31)))
    for _ in range(rng.choice(_FEW_ROUNDS)):
        size = add.node("Pow", [size, add.constant(rng.choice((2, 1000, 2**40)))])
    add.node("BitShift", [size, add.constant(2**40)], direction="LEFT")
    add.node("ConstantOfShape", [size])


def _tiled(add: _Builder, rng: random.Random) -> None:
    name = add.input(4, "N")
    for _ in range(rng.choice(_ROUNDS)):
        name = add.node("Tile", [name, add.constant(rng.choice(_LARGE), 2)])
    add.node("Split", [name], 2, axis=1)


def _many_dims(add: _Builder, rng: random.Random) -> None:
    axes = add.constant(*range(rng.choice((10, 1000, 5000))))
    add.node("Shape", [add.node("Unsqueeze", [add.input("N"), axes])])


def _padded(add: _Builder, rng: random.Random) -> None:
    pads = add.constant(rng.choice(_LARGE), -(2**63))
    add.node("Pad", [add.constant(1, 2), pads])
    add.node("OneHot", [add.constant(1), add.constant(rng.choice(_LARGE)), add.constant(0, 1)])
    add.node("EyeLike", [add.node("ConstantOfShape", [add.constant(2**20, 2**20)])], k=2**62)


def _steps(add: _Builder, rng: random.Random) -> None:
    """A loop with very many steps, that collects what it makes."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["goes"]), helper.make_node("Concat", ["v", "v"], ["w"], axis=0)],
        "body",
        [helper.make_tensor_value_info(name, kind, None) for name, kind in (("i", 7), ("go", 9), ("v", 7))],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in (("goes", 9), ("w", 7), ("w", 7))],
    )
    steps = rng.choice((add.scalar(rng.choice(_LARGE)), ""))
    add.node("Loop", [steps, "", add.constant(1)], 2, body=body)


def _sparse(add: _Builder, rng: random.Random) -> None:
    """A sparse constant with one element, that is very large when it is written out."""
    values = helper.make_tensor("values", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("indices", TensorProto.INT64, [1], [0])
    size = rng.choice(_LARGE)
    add.node("Constant", [], sparse_value=helper.make_sparse_tensor(values, indices, [size]))


def _many_parts(add: _Builder, rng: random.Random) -> None:
    parts = rng.choice(_LARGE)
    add.node("Split", [add.input("N", parts)], 2, axis=rng.choice((1, -(2**63))), num_outputs=parts)
    sequence = add.node("SplitToSequence", [add.input("N", parts), add.scalar(1)], axis=1)
    add.node("ConcatFromSequence", [sequence], axis=0)


_BOMBS = (
    _filled, _counted, _expanded, _doubled, _doubled_text, _squared, _powers, _tiled, _many_dims, _padded, _steps,
    _sparse, _many_parts,
)  # fmt: skip
