"""Cut a region out of its models: a small model of what it is before, and one of what it is after.

Both have the same inputs and outputs, in the order of the border: "in.0", "in.1", …, "out.0", …; the constants that
the nodes read are in the model. The values inside are numbered, and names of nodes are left out, so that regions that
repeat (the layers of a model) give the same bytes. Their inputs have no types: these are known when the values are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx

from splitgraph.model.schemas import kinds, version_at
from splitgraph.model.scopes import FunctionKey, called_function, function_key, plain_domain, subgraphs
from splitgraph.verification.models.model_files import elements_of, nodes_within, scoped_nodes

if TYPE_CHECKING:
    from splitgraph.verification.models.model_pair import ComparedModel
    from splitgraph.verification.regions.finding.find import FoundRegion
    from splitgraph.verification.regions.finding.sides import ModelSide

# Operators of which each element of the result is computed of one element of each input, or is one.
_ELEMENTWISE = kinds.BY_ELEMENT | kinds.PICKED | kinds.SIZES | {"Concat", "Constant", "ConstantOfShape"}
_ADDING = frozenset({"Add", "Mean", "Sub", "Sum"})
# Functions that have a value at infinity or 0, or none, whatever is added first. So has a division by data.
_NAN_OF_INFINITY = frozenset(
    {"Exp", "Log", "LogSoftmax", "Pow", "Reciprocal", "ReduceLogSum", "ReduceLogSumExp", "Sqrt"}
)


def input_name(position: int) -> str:
    """Return the name of an input of the model of a region."""
    return f"in.{position}"


def cut_out(region: FoundRegion, side: ModelSide, number: int) -> onnx.ModelProto:
    """Return the model of a region. side, number: of the model to take it from, 0 for the first and 1 for the second
    one.
    """
    indices = (region.before, region.after)[number]
    inputs = [border[number] for border in region.inputs]
    outputs = [border[number] for border in region.outputs]
    nodes = [side.nodes[index] for index in indices]
    made, names = side.made_by(indices), names_within(region, side, number)
    constants = constants_read(region, side, number)
    # Below 4, initializers are inputs, too, and a body cannot read those that are none.
    model = onnx.ModelProto(ir_version=max(side.model.ir_version, 4))
    model.opset_import.extend(side.model.opset_import)
    model.functions.extend(called_functions(side.model, nodes))
    model.graph.name = "region"
    model.graph.input.extend(onnx.ValueInfoProto(name=input_name(place)) for place in range(len(inputs)))
    model.graph.output.extend(onnx.ValueInfoProto(name=_output_name(place)) for place in range(len(outputs)))
    for name in constants.values():
        add_constant(model.graph, side, name, names[name])
    for node in nodes:
        own = model.graph.node.add()
        own.CopyFrom(node)
        _rename(own, names)
    for position, name in enumerate(outputs):
        # A value that the other model computes, and this one has as an input or as a constant.
        if name not in made:
            model.graph.node.append(
                onnx.helper.make_node("Identity", [names.get(name, name)], [_output_name(position)])
            )
    return model


def names_within(region: FoundRegion, side: ModelSide, number: int) -> dict[str, str]:
    """Return the names that values of a model have in the model of a region."""
    made = side.made_by((region.before, region.after)[number])
    inputs = [border[number] for border in region.inputs]
    outputs = [border[number] for border in region.outputs]
    names = {name: input_name(position) for position, name in enumerate(inputs) if name not in made}
    names |= {name: constant for constant, name in constants_read(region, side, number).items()}
    inner = (name for name in made if name not in outputs)
    names |= {name: f"value.{position}" for position, name in enumerate(inner)}
    names |= {name: _output_name(position) for position, name in enumerate(outputs) if name in made}
    return names


def constants_read(region: FoundRegion, side: ModelSide, number: int) -> dict[str, str]:
    """Return the names of the constants that a region holds, by their names in its model."""
    indices = (region.before, region.after)[number]
    made = side.made_by(indices)
    read = (name for index in indices for name in side.reads[index])
    names = dict.fromkeys(name for name in (*read, *(border[number] for border in region.outputs)))
    own = [name for name in names if name in side.constants and name not in made]
    return {f"constant.{position}": name for position, name in enumerate(own)}


def _output_name(position: int) -> str:
    return f"out.{position}"


def add_constant(graph: onnx.GraphProto, side: ModelSide, name: str, own_name: str) -> None:
    """Add a constant of a model to a graph, under another name."""
    constants = side.constants
    tensor = constants.tensor(name)
    if tensor is not None:
        added = graph.initializer.add()
        added.CopyFrom(tensor)
        added.name = own_name
    elif name in constants.sparse:
        sparse = graph.sparse_initializer.add()
        sparse.CopyFrom(constants.sparse[name])
        sparse.values.name = own_name
    else:
        node = graph.node.add()
        node.CopyFrom(constants.nodes[name])
        _rename(node, {name: own_name})


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Rename what a node and its bodies read and compute, and drop what only people read."""
    for each in nodes_within([node]):
        for field in ("name", "doc_string", "metadata_props", "device_configurations"):
            each.ClearField(field)
    rename_values(node, names)


def rename_values(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Rename what a node and its bodies read and compute."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for _, _, body in subgraphs(node):
        for inner in body.node:
            rename_values(inner, names)
        for value in body.output:
            value.name = names.get(value.name, value.name)


def called_functions(model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]) -> list[onnx.FunctionProto]:
    """Return the functions of a model that some nodes call, directly or not."""
    functions = {function_key(function): function for function in model.functions}
    waiting, called = list(nodes), dict[FunctionKey, onnx.FunctionProto]()
    while waiting and functions:
        for node in nodes_within([waiting.pop()]):
            key = called_function(node)
            if key in functions and key not in called:
                called[key] = functions[key]
                waiting += functions[key].node
    return [called[key] for key in functions if key in called]


# What differs between the two models of a region ----------------------------------------------------------------------


def has_same_operators(before: onnx.ModelProto, after: onnx.ModelProto) -> bool:
    """Return True if both models of a region are the same nodes but for attributes and constants."""
    return list(map(_code, _without_constants(before))) == list(map(_code, _without_constants(after)))


def has_same_kernels(before: onnx.ModelProto, after: onnx.ModelProto) -> bool:
    """Return True if an engine runs both models of a region with the same kernels: with the same operators in the same
    versions, wherever in the models they are. How often each is there does not matter, nor does Identity.
    """
    return _kernels(before) == _kernels(after)


def regroups_sums(before: onnx.ModelProto, after: onnx.ModelProto) -> bool:
    """Return True if the models of a region may put sums together in other ways. Then infinite terms meet others of the
    other sign in one model alone: two products of matrices are infinite where one is NaN. A function that is NaN where
    another one is infinite is not explained by that.
    """
    models = before, after
    operators = [[node.op_type for node, _ in scoped_nodes(model)] for model in models]
    used = {op_type for own in operators for op_type in own}
    if used & _NAN_OF_INFINITY or any(map(_divides_by_data, models)):
        return False
    sums, products = ([sum(op_type in of for op_type in own) for own in operators] for of in (_ADDING, {"Mul"}))
    # A product of a sum is a sum of products.
    is_multiplied_out = all(sums) and all(products) and products[0] != products[1]
    return bool(used - _ELEMENTWISE) or max(sums) > 1 or is_multiplied_out


def _divides_by_data(model: onnx.ModelProto) -> bool:
    nodes = [node for node, _ in scoped_nodes(model)]
    constants = {tensor.name for tensor in model.graph.initializer}
    constants |= {name for node in nodes if node.op_type == "Constant" for name in node.output}
    return any(node.op_type == "Div" and node.input[1] not in constants for node in nodes)


def _kernels(model: onnx.ModelProto) -> set[tuple[str, str, int]]:
    functions = {function_key(function) for function in model.functions}
    found = set[tuple[str, str, int]]()
    for node, imports in scoped_nodes(model):
        domain = plain_domain(node.domain)
        version = version_at(domain, node.op_type, imports.get(domain, 0))
        if called_function(node) not in functions and node.op_type not in ("Identity", "Constant"):
            found.add((domain, node.op_type, imports.get(domain, 0) if version is None else version.since_version))
    return found


def cast_types(model: onnx.ModelProto) -> set[int]:
    """Return the types that a model of a region casts to, wherever in it."""
    nodes = (node for node, _ in scoped_nodes(model) if node.op_type == "Cast")
    return {attribute.i for node in nodes for attribute in node.attribute if attribute.name == "to"}


def have_other_constants(models: Sequence[onnx.ModelProto], pair: Sequence[ComparedModel], rtol: float) -> bool:
    """Return True if only the constants of a region differ, by more than `rtol` of their own size. models: with the
    same operators. pair: the models that the region is from.
    """
    if list(_without_constants(models[0])) != list(_without_constants(models[1])):
        return False
    others = [[node for node in model.graph.node if _is_other_constant(node)] for model in models]
    if others[0] != others[1] or list(models[0].graph.sparse_initializer) != list(models[1].graph.sparse_initializer):
        return True
    constants = [dict(_constants(model)) for model in models]
    if constants[0].keys() != constants[1].keys():
        return False
    for name, tensor in constants[0].items():
        if onnx.TensorProto.STRING in (tensor.data_type, constants[1][name].data_type):
            # Texts need not be UTF-8.
            if tensor.string_data != constants[1][name].string_data or tensor.dims != constants[1][name].dims:
                return True
            continue
        one, other = (
            elements_of(each, compared.folder)
            for each, compared in zip((tensor, constants[1][name]), pair, strict=True)
        )
        if one.dtype != other.dtype or one.shape != other.shape:
            return True
        if one.dtype.kind != "f" and "float" not in one.dtype.name:
            if not np.array_equal(one, other):
                return True
            continue
        left, right = one.astype(np.float64), other.astype(np.float64)
        with np.errstate(invalid="ignore"):
            is_far = ~(
                (left == right) | (np.isnan(left) & np.isnan(right)) | (np.abs(left - right) <= rtol * np.abs(left))
            )
        if is_far.any():
            return True
    return False


def _without_constants(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    return (node for node in model.graph.node if node.op_type != "Constant")


def _is_other_constant(node: onnx.NodeProto) -> bool:
    """Return True for a Constant that is not given as a dense tensor."""
    return node.op_type == "Constant" and all(attribute.name != "value" for attribute in node.attribute)


def _constants(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    yield from ((tensor.name, tensor) for tensor in model.graph.initializer)
    for node in model.graph.node:
        if node.op_type == "Constant":
            yield from ((node.output[0], attribute.t) for attribute in node.attribute if attribute.name == "value")


def _code(node: onnx.NodeProto) -> tuple[object, ...]:
    return called_function(node), tuple(node.input), tuple(node.output)
