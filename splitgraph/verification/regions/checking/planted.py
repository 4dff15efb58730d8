"""Plant a fault in a value inside of a region: where its outputs do not show this fault, they do not show others.

Two models may differ in a value that their readers undo, such as a doubled number of which ArgMax reads the order. That
the readers give the same on some inputs says nothing where they give the same of anything: a Sigmoid of large numbers.
So part of the value is changed a little. Where this does not show, an equal result proves nothing of the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import onnx
from onnx import TensorProto, helper

from splitgraph.model.scopes import opset_imports
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType
from splitgraph.verification.regions.finding.cut import cut_out, names_within
from splitgraph.verification.regions.finding.find import FoundRegion, ModelRegions
from splitgraph.verification.regions.finding.sides import ModelSide

Cut = Callable[[FoundRegion, ModelSide, int], onnx.ModelProto]

# Of the last dimension of a value, the elements at these places change, each alone: shares in hundredths.
_PLACES = (0, 60)
# By this factor, which all floating-point types of 16 bits hold, or by 1.
_FACTOR = 1 + 2.0**-7
_FLOATS = ("float16", "bfloat16", "float32", "float64")
# Range says the places along a dimension of any length since this opset.
_FIRST_OPSET = 11
_FAULTY = "faulty"


class PlantedFault(NamedTuple):
    """A change of a value of the second model. place: where along its last dimension, in hundredths."""

    value: str
    place: int


def faults_in(value: str) -> Iterator[PlantedFault]:
    """Yield the faults of a value of the second model."""
    return (PlantedFault(value, place) for place in _PLACES)


def with_faults(faults: Mapping[FoundRegion, PlantedFault], found: ModelRegions) -> Cut | None:
    """Return what cuts regions out with a fault each in the second model; None if one of the values gets none."""
    opset = opset_imports(found.after.model.opset_import).get("", 0)
    types = found.after.types
    changes = {region: _change(types.get(value, UNKNOWN), place, opset) for region, (value, place) in faults.items()}

    def cut(region: FoundRegion, side: ModelSide, number: int) -> onnx.ModelProto:
        model, change = cut_out(region, side, number), changes[region]
        if number == 0 or change is None:
            return model
        return _planted(model, names_within(region, side, number)[faults[region].value], change)

    return None if None in changes.values() else cut


class _Change(NamedTuple):
    """op_type: computes the faulty value from the right one and a mask. mask: the nodes that compute it. held: the
    constants that they read.
    """

    op_type: str
    mask: list[onnx.NodeProto]
    held: list[TensorProto]


def _change(kind: ValueType, place: int, opset: int) -> _Change | None:
    """Return how a value of a type changes; None if it cannot."""
    if kind.kind != "tensor" or kind.dtype is None or kind.shape is None:
        return None
    if kind.dtype in _FLOATS:
        op_type, usual, other = "Mul", 1.0, _FACTOR
    elif kind.dtype == "bool":
        op_type, usual, other = "Xor", 0, 1
    elif "int" in kind.dtype:
        op_type, usual, other = "Add", 0, 1
    else:
        return None
    number = DTYPE_NUMBERS[kind.dtype]
    length = kind.shape[-1] if kind.shape else 1
    if isinstance(length, int):
        elements = [usual] * length
        elements[place * length // 100 : place * length // 100 + 1] = [other] * min(length, 1)
        return _Change(op_type, [], [helper.make_tensor("mask", number, [length][: len(kind.shape)], elements)])
    if opset < _FIRST_OPSET:
        return None
    numbers = {"zero": 0, "one": 1, "last": -1, "place": place, "whole": 100}
    held = [helper.make_tensor(name, TensorProto.INT64, [], [each]) for name, each in numbers.items()]
    held += [helper.make_tensor(name, number, [], [each]) for name, each in (("usual", usual), ("other", other))]
    steps = [
        ("Shape", [_FAULTY], "lengths"),
        ("Gather", ["lengths", "last"], "length"),
        ("Range", ["zero", "length", "one"], "places"),
        ("Mul", ["length", "place"], "times"),
        ("Div", ["times", "whole"], "own"),
        ("Equal", ["places", "own"], "is own"),
        ("Where", ["is own", "other", "usual"], "mask"),
    ]
    return _Change(op_type, [helper.make_node(each, read, [made]) for each, read, made in steps], held)


def _planted(model: onnx.ModelProto, name: str, change: _Change) -> onnx.ModelProto:
    """Return the model of a region with a change of one of its values."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    for node in model.graph.node:
        own = made.graph.node.add()
        own.CopyFrom(node)
        if name in node.output:
            own.output[:] = [_FAULTY if each == name else each for each in node.output]
            made.graph.node.extend(change.mask)
            made.graph.node.add(op_type=change.op_type, input=[_FAULTY, "mask"], output=[name])
    made.graph.initializer.extend(change.held)
    return made
