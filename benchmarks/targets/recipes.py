"""What a form is made of: nodes and constants of a small model, and the outputs that NumPy expects of the model.

The input is `x`, of shape [2, 6, 8] unless a form says otherwise, and the outputs are `y0`, `y1`, …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
# A size, the name of a symbolic dimension, or None for a dimension of which nothing is said.
Shape = Sequence[int | str | None]
Expectation = Callable[[Array], list[Array]]

SHAPE = (2, 6, 8)
# The IR version of the onnx release that brought each opset.
IR_VERSIONS = {7: 3, 9: 4, 10: 5, 11: 6, 13: 7, 17: 8, 18: 8, 20: 9, 21: 10, 22: 10, 23: 11, 24: 11, 25: 12, 26: 13}


@dataclass
class Body:
    """The nodes and constants of a model, in the order in which they were added."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)

    def node(self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Add a node. The attribute `domain` is the domain of the operator."""
        self.nodes.append(helper.make_node(operator, inputs, outputs, **attributes))

    def weight(self, name: str, value: Any, kind: str = "int64") -> str:
        """Add an initializer, and give its name."""
        self.weights.append(numpy_helper.from_array(np.array(value, kind), name))
        return name

    def constant(self, name: str, value: Any) -> str:
        """Add a node Constant with an int64 tensor, and give the name of its output."""
        self.node("Constant", [], [name], value=numpy_helper.from_array(np.array(value, np.int64), name))
        return name


@dataclass(frozen=True)
class Recipe:
    """How to make the model, the input and the expected outputs of one form.

    declared: the shapes of the outputs as the model states them; None where the expected shapes are stated. dims: the
    shape of the input as the model states it; None where its sizes are stated. kind: the NumPy type of the input;
    "str" for strings. more: further inputs of the model. listed: names of initializers that are also inputs of the
    graph.
    """

    opset: int
    body: Body
    expect: Expectation
    shape: Sequence[int] = SHAPE
    dims: Shape | None = None
    kind: str = "float32"
    names: Sequence[str] | None = None
    declared: Sequence[Shape] | None = None
    more: Mapping[str, Array] = field(default_factory=dict)
    listed: Sequence[str] = ()
    functions: Sequence[onnx.FunctionProto] = ()
    ir_version: int | None = None


@dataclass(frozen=True)
class Form:
    """A small model of one form of split, its inputs, and what its outputs have to be."""

    model: onnx.ModelProto
    inputs: dict[str, Array]
    expected: dict[str, Array]


def build(name: str, recipe: Recipe) -> Form:
    """The form of this name: the values of the input depend on the name, and on nothing else."""
    x = _values(np.random.default_rng(crc32(name.encode())), recipe)
    arrays = recipe.expect(x)
    names = recipe.names or [f"y{index}" for index in range(len(arrays))]
    declared = recipe.declared or [array.shape for array in arrays]
    inputs = {"x": x, **recipe.more}
    weights = {weight.name: numpy_helper.to_array(weight) for weight in recipe.body.weights}
    listed = {**inputs, **{key: weights[key] for key in recipe.listed}}
    graph = helper.make_graph(
        recipe.body.nodes,
        "g",
        [_value(key, array, recipe.dims if key == "x" else None) for key, array in listed.items()],
        [_value(key, array, shape) for key, array, shape in zip(names, arrays, declared, strict=True)],
        recipe.body.weights,
    )
    domains = {function.domain: 1 for function in recipe.functions}
    model = helper.make_model(
        graph,
        ir_version=recipe.ir_version or IR_VERSIONS[recipe.opset],
        opset_imports=[helper.make_opsetid(*pair) for pair in {"": recipe.opset, **domains}.items()],
        functions=recipe.functions,
    )
    return Form(model, inputs, dict(zip(names, arrays, strict=True)))


def _values(random: np.random.Generator, recipe: Recipe) -> Array:
    if recipe.kind == "str":
        return np.array([f"s{index} t{index}" for index in range(np.prod(recipe.shape))], object).reshape(recipe.shape)
    if recipe.kind == "bool":
        return random.random(recipe.shape) < 0.5
    if np.dtype(recipe.kind).kind in "iu":
        return random.integers(0, 100, recipe.shape).astype(recipe.kind)
    return random.standard_normal(recipe.shape).astype(recipe.kind)


def _value(name: str, array: Array, shape: Shape | None) -> onnx.ValueInfoProto:
    element = onnx.TensorProto.STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, element, array.shape if shape is None else shape)


def cut(x: Array, lengths: Sequence[int], axis: int) -> list[Array]:
    """The parts of these lengths along an axis, one after the other; elements may remain."""
    ends = np.cumsum(lengths)
    return [x.take(np.arange(end - length, end), axis) for length, end in zip(lengths, ends, strict=True)]
