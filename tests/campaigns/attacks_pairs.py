"""What pairs of `attacks.py` are made of: models of onnx's node tests, and bodies around a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from node_tests import node_tests
from onnx import helper

Array = npt.NDArray[Any]
FLOATS = ("float32", "float64", "float16")
_MOST_ELEMENTS = 4000


@dataclass(frozen=True, slots=True)
class Pair:
    """Two models. differs: what is known of them. feed: inputs on which they differ; None: any may show it."""

    name: str
    before: onnx.ModelProto
    after: onnx.ModelProto
    differs: bool
    feed: Mapping[str, Array] | None = None


@dataclass(frozen=True, slots=True)
class Base:
    """One node with its inputs. free: the inputs of the model; the others are constants."""

    name: str
    node: onnx.NodeProto
    opset: int
    free: Mapping[str, Array]
    constants: Mapping[str, Array]
    imports: Sequence[onnx.OperatorSetIdProto] = field(default=())


def with_node(base: Base, node: onnx.NodeProto, **constants: Array) -> Base:
    """Return a base with another node, and other constants."""
    held = {**base.constants, **constants}
    return Base(base.name, node, base.opset, base.free, {name: held[name] for name in held if name in node.input})


def changed(node: onnx.NodeProto) -> onnx.NodeProto:
    """Return a copy of a node, to be changed."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


@cache
def bases() -> tuple[Base, ...]:
    """Return the nodes of onnx's node tests that have one node and tensors alone: floating-point inputs are free, all
    others constants, which say sizes, axes and positions.
    """
    return tuple(base for case in node_tests() if (base := _base(case)) is not None)


def _base(case: Any) -> Base | None:
    graph = case.model.graph
    imports = {entry.domain or "ai.onnx": entry.version for entry in case.model.opset_import}
    if len(graph.node) != 1 or case.model.functions or set(imports) != {"ai.onnx"} or not case.data_sets:
        return None
    node = changed(graph.node[0])
    if node.name.endswith("_expanded") or any(attribute.HasField("g") for attribute in node.attribute):
        return None
    given = dict(zip((value.name for value in graph.input), case.data_sets[0][0], strict=False))
    arrays = {name: value for name, value in given.items() if isinstance(value, np.ndarray)}
    if len(arrays) != len(graph.input) or sum(array.size for array in arrays.values()) > _MOST_ELEMENTS:
        return None
    free = {name: array for name, array in arrays.items() if array.dtype.name in FLOATS and array.ndim}
    if not free or any(array.dtype.kind not in "fiub" for array in arrays.values()):
        return None
    constants = {name: array for name, array in arrays.items() if name not in free}
    return Base(case.name, node, imports["ai.onnx"], free, constants)


def first_free(base: Base) -> Base:
    """Return a base of which the first free input stays so; the others are weights."""
    first = next(iter(base.free))
    held = {name: array for name, array in base.free.items() if name != first}
    return Base(base.name, base.node, base.opset, {first: base.free[first]}, {**base.constants, **held})


# Models around a node -------------------------------------------------------------------------------------------------


def value(name: str, array: Array | None = None, elem_type: int = 0) -> onnx.ValueInfoProto:
    """Return the declaration of a value: of the type and shape of an array, or of an element type alone."""
    if array is None:
        return helper.make_tensor_value_info(name, elem_type, None)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape))


def _tensors(constants: Mapping[str, Array]) -> list[onnx.TensorProto]:
    return [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]


def _model(
    base: Base,
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[str],
    constants: Mapping[str, Array],
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    inputs = [value(name, array) for name, array in base.free.items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(list(nodes), "g", inputs, results, _tensors(constants))
    imports = [helper.make_opsetid("", base.opset)]
    imports += [helper.make_opsetid("attacks", 1)] if functions else []
    model = helper.make_model(graph, opset_imports=imports, functions=functions)
    model.ir_version = min(model.ir_version, 10)
    types = _output_types(base)
    for result, name in zip(model.graph.output, base.node.output, strict=False):
        result.type.tensor_type.elem_type = types.get(name, onnx.TensorProto.FLOAT)
    return model


@cache
def _inferred(text: bytes, opset: int, inputs: tuple[bytes, ...]) -> Mapping[str, int]:
    node = onnx.NodeProto.FromString(text)
    graph = helper.make_graph(
        [node],
        "g",
        [onnx.ValueInfoProto.FromString(each) for each in inputs],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        found = onnx.shape_inference.infer_shapes(model)
    except onnx.shape_inference.InferenceError:
        # A changed node may be invalid: then it has no witness.
        return {}
    return {each.name: each.type.tensor_type.elem_type or onnx.TensorProto.FLOAT for each in found.graph.output}


def _output_types(base: Base) -> Mapping[str, int]:
    inputs = tuple(value(name, array).SerializeToString() for name, array in {**base.free, **base.constants}.items())
    return _inferred(base.node.SerializeToString(), base.opset, inputs)


def alone(base: Base) -> onnx.ModelProto:
    """The node alone."""
    outputs = [name for name in base.node.output if name]
    return _model(base, [base.node], outputs, base.constants)


def behind_identity(base: Base) -> onnx.ModelProto:
    """The node behind an Identity of its first free input."""
    first = next(iter(base.free))
    node = changed(base.node)
    node.input[:] = ["behind" if name == first else name for name in node.input]
    nodes = [helper.make_node("Identity", [first], ["behind"]), node]
    return _model(base, nodes, [name for name in node.output if name], base.constants)


def in_function(base: Base) -> onnx.ModelProto:
    """The node in a function of the model."""
    inputs = [name for name in dict.fromkeys(base.node.input) if name]
    outputs = [name for name in base.node.output if name]
    function = helper.make_function("attacks", "F", inputs, outputs, [base.node], [helper.make_opsetid("", base.opset)])
    return _model(base, [helper.make_node("F", inputs, outputs, domain="attacks")], outputs, base.constants, [function])


def in_if(base: Base) -> onnx.ModelProto:
    """The node in the branch of an If for a positive sum, and a zero of each output in the other one."""
    outputs = [name for name in base.node.output if name]
    types = _output_types(base)
    renamed = changed(base.node)
    renamed.output[:] = [f"{name}.then" if name else "" for name in base.node.output]
    zeros = [
        helper.make_node("Constant", [], [f"{name}.else"], value=helper.make_tensor("z", types.get(name, 1), [1], [0]))
        for name in outputs
    ]
    branches = [
        helper.make_graph(nodes, how, [], [value(f"{name}.{how}", None, types.get(name, 1)) for name in outputs])
        for how, nodes in (("then", [renamed]), ("else", zeros))
    ]
    first = next(iter(base.free))
    nodes = [
        helper.make_node("Cast", [first], ["as_float"], to=onnx.TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["as_float"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "limit"], ["is_large"]),
        helper.make_node("If", ["is_large"], outputs, then_branch=branches[0], else_branch=branches[1]),
    ]
    return _model(base, nodes, outputs, {**base.constants, "limit": np.float32(0.25)})


def in_loop(base: Base) -> onnx.ModelProto:
    """The node in the body of a Loop of two turns, whose results are put together."""
    return _repeated(base, "Loop")


def in_scan(base: Base) -> onnx.ModelProto:
    """The node in the body of a Scan of two turns."""
    return _repeated(base, "Scan")


def _repeated(base: Base, how: str) -> onnx.ModelProto:
    outputs = [name for name in base.node.output if name]
    types = _output_types(base)
    node = changed(base.node)
    node.output[:] = [f"{name}.inner" if name else "" for name in base.node.output]
    results = [value(f"{name}.inner", None, types.get(name, 1)) for name in outputs]
    boolean, whole = onnx.TensorProto.BOOL, onnx.TensorProto.INT64
    if how == "Loop":
        inputs = [helper.make_tensor_value_info("turn", whole, []), helper.make_tensor_value_info("going", boolean, [])]
        again = helper.make_node("Identity", ["going"], ["going.on"])
        body = helper.make_graph(
            [again, node], "body", inputs, [helper.make_tensor_value_info("going.on", boolean, []), *results]
        )
        nodes = [helper.make_node("Loop", ["turns", "always"], outputs, body=body)]
        constants = {"turns": np.array(2, np.int64), "always": np.array(True)}
    else:
        item = helper.make_tensor_value_info("item", onnx.TensorProto.FLOAT, [])
        body = helper.make_graph([node], "body", [item], results)
        nodes = [helper.make_node("Scan", ["items"], outputs, body=body, num_scan_inputs=1)]
        constants = {"items": np.array([1.0, 2.0], np.float32)}
    return _model(base, nodes, outputs, {**base.constants, **constants})


PLACES: Mapping[str, Callable[[Base], onnx.ModelProto]] = {
    "alone": alone,
    "behind Identity": behind_identity,
    "in an If": in_if,
    "in a Loop": in_loop,
    "in a Scan": in_scan,
    "in a function": in_function,
}


def in_places(kind: str, what: str, before: Base, after: Base, places: Sequence[str]) -> Iterator[Pair]:
    """Yield a pair for each place: the first base alone or in it, the second one in it."""
    for place in places:
        make = PLACES[place]
        start = alone if place == "behind Identity" else make
        yield Pair(f"{kind}/{what}/{place}", start(before), make(after), differs=True)
