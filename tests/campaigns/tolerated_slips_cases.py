"""Models with one small slip each, beside the model without it: of every version of every operator of ai.onnx.

A slip is int32 where the schema asks for int64, or an attribute that another version of the operator has. The models
are onnx's node tests, at each opset at which they are valid or to which they can be converted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from node_tests import node_tests
from onnx import AttributeProto, ModelProto, helper, numpy_helper

import splitgraph
from splitgraph.model.schemas import OperatorVersion, versions_of

# The newest opset that all engines read, and how many models of each version are taken.
NEWEST, MODELS = 22, 3
# Their outputs differ from run to run; a Constant is no node here.
_RANDOM = frozenset(
    {"Bernoulli", "Constant", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"}
)
Feeds = Mapping[str, np.ndarray]


class Base(NamedTuple):
    """A valid model of one node, its operator version, and inputs."""

    name: str
    schema: OperatorVersion
    model: ModelProto
    feeds: Feeds


class Slip(NamedTuple):
    """A model with a slip, by the model without it. key: operator, what slipped, and how: what a table would say."""

    base: str
    key: tuple[str, str, str]
    version: int
    model: ModelProto
    feeds: Feeds

    @property
    def name(self) -> str:
        return f"{self.base} {self.key[1]} {self.key[2]}"


def operators() -> list[str]:
    """Every operator with a node test of one node."""
    found = {case.model.graph.node[0].op_type for case in node_tests() if _is_single(case.model)}
    return sorted(found - _RANDOM)


def bases(op: str) -> Iterator[Base]:
    """Valid models of every version of an operator, the oldest first."""
    held = versions_of("", op)
    ends = [version.since_version - 1 for version in held[1:]] + [NEWEST]
    for schema, last in zip(held, ends, strict=True):
        if schema.deprecated:
            continue
        found = 0
        for case in node_tests():
            if found == MODELS:
                break
            if _is_single(case.model) and case.model.graph.node[0].op_type == op and case.data_sets:
                model = _at(case.model, op, max(schema.since_version, min(last, NEWEST)))
                if model is not None:
                    found += 1
                    name = f"{op}-{schema.since_version} {case.name.removeprefix('test_')}"
                    yield Base(name, schema, *_with_constants(model, case.data_sets[0][0]))


def slips(base: Base) -> Iterator[Slip]:
    """Every slip that is made of a valid model."""
    yield from _narrow_integers(base)
    yield from _foreign_attributes(base)


def _is_single(model: ModelProto) -> bool:
    return len(model.graph.node) == 1 and model.graph.node[0].domain == ""


def _at(model: ModelProto, op: str, opset: int) -> ModelProto | None:
    """The model at another opset, with one node of the operator beside constants; None where that cannot be."""
    relabelled = ModelProto()
    relabelled.CopyFrom(model)
    del relabelled.opset_import[:]
    relabelled.opset_import.append(helper.make_opsetid("", opset))
    relabelled.ir_version = 8
    if not splitgraph.infer(relabelled).diagnostics:
        return relabelled
    try:
        made = splitgraph.downgrade(model, opset, verify=False).model
    except splitgraph.SplitgraphError:
        return None
    others = [node for node in made.graph.node if node.op_type != "Constant"]
    if [node.op_type for node in others] != [op]:
        return None
    made.ir_version = 8
    return made


def _with_constants(model: ModelProto, given: Sequence[Any]) -> tuple[ModelProto, Feeds]:
    """The model with its integer inputs after the first one as constants, which engines need, and its other inputs."""
    made, feeds = ModelProto(), dict[str, np.ndarray]()
    made.CopyFrom(model)
    del made.graph.input[:]
    del made.graph.value_info[:]
    for index, (value, held) in enumerate(zip(model.graph.input, given, strict=False)):
        if index and isinstance(held, np.ndarray) and held.dtype == np.int64:
            made.graph.initializer.append(numpy_helper.from_array(held, value.name))
        else:
            made.graph.input.append(value)
            feeds[value.name] = held
    for value in made.graph.output:
        value.type.Clear()
    for node in list(made.graph.node):
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            made.graph.initializer.append(node.attribute[0].t)
            made.graph.initializer[-1].name = node.output[0]
            made.graph.node.remove(node)
    return made, feeds


def _narrow_integers(base: Base) -> Iterator[Slip]:
    (node,) = base.model.graph.node
    held = {tensor.name: tensor for tensor in base.model.graph.initializer}
    formals = base.schema.inputs
    for index, name in enumerate(node.input):
        formal = formals[min(index, len(formals) - 1)]
        wide = held[name].data_type == onnx.TensorProto.INT64 if name in held else _is_int64(base.feeds.get(name))
        shared = formal.is_generic and sum(each.type_variable == formal.type_variable for each in formals) > 1
        if not wide or ("tensor(int32)" in formal.types and not shared) or list(node.input).count(name) > 1:
            continue
        made, feeds = ModelProto(), dict(base.feeds)
        made.CopyFrom(base.model)
        for tensor in made.graph.initializer:
            if tensor.name == name:
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.int32), name))
        for value in made.graph.input:
            if value.name == name:
                value.type.tensor_type.elem_type = onnx.TensorProto.INT32
                feeds[name] = feeds[name].astype(np.int32)
        yield Slip(base.name, (base.schema.op, "int32", str(index)), base.schema.since_version, made, feeds)


def _is_int64(held: object) -> bool:
    return isinstance(held, np.ndarray) and held.dtype == np.int64


def _foreign_attributes(base: Base) -> Iterator[Slip]:
    foreign = {
        name: formal
        for version in versions_of("", base.schema.op)
        for name, formal in version.attributes.items()
        if name not in base.schema.attributes
    }
    for name, formal in sorted(foreign.items()):
        for value in _values(base, formal.type, formal.default_value):
            made = ModelProto()
            made.CopyFrom(base.model)
            made.graph.node[0].attribute.append(helper.make_attribute(name, value))
            key = (base.schema.op, name, _spelled(value))
            yield Slip(base.name, key, base.schema.since_version, made, base.feeds)


def _values(base: Base, kind: int, default: object) -> list[Any]:
    """Values of an attribute: its default, and those that mean nothing in most operators."""
    first = next(iter(base.feeds.values()), None)
    spatial = max(np.ndim(first) - 2, 0) if isinstance(first, np.ndarray) else 0
    found: list[Any] = [] if default is None else [default]
    if kind == AttributeProto.INT:
        found += [0, 1]
    if kind == AttributeProto.INTS and spatial:
        found += [[1] * spatial, [0] * spatial, [0] * 2 * spatial]
    return [value for place, value in enumerate(found) if value not in found[:place]]


def _spelled(value: Any) -> str:
    """A value as a table writes it: a list of equal numbers by the number alone."""
    if isinstance(value, list):
        return f"all {value[0]}"
    return value if isinstance(value, str) else repr(value)
