"""The ways in which a model of one node is written: with inputs or constants, with numbers or symbols in its shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, defs, helper, numpy_helper

import splitgraph

_LONGEST, _MOST_ELEMENTS = 8, 100_000
Array = np.ndarray[Any, Any]
Made = tuple[ModelProto, Mapping[str, Array]]
Way = Callable[[ModelProto, Mapping[str, Array]], Made | None]


def as_inputs(model: ModelProto, inputs: Mapping[str, Array]) -> Made | None:
    """The model as it is; None for one input, where nothing could be a constant."""
    return (model, inputs) if len(inputs) > 1 else None


def with_constants(model: ModelProto, inputs: Mapping[str, Array]) -> Made | None:
    """All inputs but the first as initializers."""
    made = ModelProto()
    made.CopyFrom(model)
    if made.ir_version < 4:
        made.ir_version = 4
    for name in list(inputs)[1:]:
        made.graph.initializer.append(numpy_helper.from_array(inputs[name], name))
    kept = [value for value in made.graph.input if value.name in list(inputs)[:1]]
    del made.graph.input[:]
    made.graph.input.extend(kept)
    return made, dict(list(inputs.items())[:1])


def _with_symbols(model: ModelProto, inputs: Mapping[str, Array], axes: slice) -> Made | None:
    """Some dimensions of the data as symbols. Inputs that are like the first have its symbols, and the others are
    constants, as weights are.
    """
    if not inputs:
        return None
    first = next(iter(inputs.values()))
    alike = {name for name, array in inputs.items() if array.shape == first.shape and array.dtype == first.dtype}
    rest = {name: array for name, array in inputs.items() if name not in alike}
    made = ModelProto()
    made.CopyFrom(model)
    made.ir_version = max(made.ir_version, 4)
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in rest.items())
    kept = [value for value in made.graph.input if value.name in alike]
    del made.graph.input[:]
    made.graph.input.extend(kept)
    is_changed = False
    for value in made.graph.input:
        for axis, dim in list(enumerate(value.type.tensor_type.shape.dim))[axes]:
            if dim.HasField("dim_value") and dim.dim_value > 0:
                dim.dim_param, is_changed = f"d{axis}", True
    analysis = splitgraph.infer(_without_shapes(made)) if is_changed else None
    if analysis is None or analysis.obligations or not analysis.ok:
        # A constant says what the dimension is.
        return None
    return analysis.model, {name: array for name, array in inputs.items() if name in alike}


def _remove(model: ModelProto, name: str) -> None:
    for held in (model.graph.initializer, model.graph.input):
        for each in [each for each in held if each.name == name]:
            held.remove(each)


def _without_shapes(model: ModelProto) -> ModelProto:
    """The model without the declared shapes of its outputs, which inference fills in."""
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return model


def with_batch(model: ModelProto, inputs: Mapping[str, Array]) -> Made | None:
    """The first dimension as a symbol."""
    return _with_symbols(model, inputs, slice(0, 1))


def with_second(model: ModelProto, inputs: Mapping[str, Array]) -> Made | None:
    """The second dimension as a symbol, as that of sequences."""
    return _with_symbols(model, inputs, slice(1, 2))


def with_rest(model: ModelProto, inputs: Mapping[str, Array]) -> Made | None:
    """The later dimensions as symbols, as those of images."""
    return _with_symbols(model, inputs, slice(2, None))


def with_shapes(model: ModelProto, inputs: Mapping[str, Array]) -> Made | None:
    """Short lists of sizes, and sizes, computed from the shape of another input; the others are constants."""
    made, given = with_constants(model, inputs) or (model, inputs)
    given, is_changed = dict(given), False
    for held in (*made.graph.initializer, *made.graph.input):
        name, array = held.name, inputs.get(held.name)
        if array is None or array.dtype != np.int64 or array.ndim > 1 or not 0 < array.size <= _LONGEST:
            continue
        sizes = array.reshape(-1).tolist()
        if min(sizes) < 0 or np.prod(sizes) > _MOST_ELEMENTS:
            continue
        _remove(made, name)
        given.pop(name, None)
        source = f"{name}_sizes"
        symbols = [f"{name}{place}" for place in range(len(sizes))]
        made.graph.input.append(helper.make_tensor_value_info(source, TensorProto.FLOAT, symbols))
        nodes = [helper.make_node("Shape", [source], [name if array.ndim else f"{name}_list"])]
        if not array.ndim:
            made.graph.initializer.append(numpy_helper.from_array(np.array(0, np.int64), f"{name}_first"))
            nodes.append(helper.make_node("Gather", [f"{name}_list", f"{name}_first"], [name]))
        for node in reversed(nodes):
            made.graph.node.insert(0, node)
        given[source], is_changed = np.zeros(sizes, np.float32), True
    return (splitgraph.infer(_without_shapes(made)).model, given) if is_changed else None


WAYS: Mapping[str, Way] = MappingProxyType(
    {
        "constant": with_constants,
        "inputs": as_inputs,
        "dim0": with_batch,
        "dim1": with_second,
        "dim2": with_rest,
        "shapes": with_shapes,
    }
)


def of_type(model: ModelProto, inputs: Mapping[str, Array], dtype: str) -> Made | None:
    """The model with another element type in place of the one that its first input has; None where the operator does
    not take it. Numbers become 1 to 4 where the type has no fractions.
    """
    node = model.graph.node[0]
    if not inputs or not defs.has(node.op_type, domain=node.domain):
        return None
    version = next((each.version for each in model.opset_import if each.domain == node.domain), 1)
    schema = defs.get_schema(node.op_type, version, node.domain)
    own, kind = next(iter(inputs.values())).dtype, helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    variable = schema.inputs[0].type_str if schema.inputs else ""
    allowed = next((each.allowed_type_strs for each in schema.type_constraints if each.type_param_str == variable), ())
    if own.kind not in "fiub" or own == np.dtype(dtype) or f"tensor({_spelled(dtype)})" not in allowed:
        return None
    made = ModelProto()
    made.CopyFrom(model)
    formals = {name: _formal(schema.inputs, index) for index, name in enumerate(node.input)}
    changed = {name for name, formal in formals.items() if name and formal == variable}
    if any(name in changed and inputs[name].dtype != own for name in inputs):
        return None
    for value in made.graph.input:
        if value.name in changed:
            value.type.tensor_type.elem_type = kind
    for index, name in enumerate(node.output):
        if _formal(schema.outputs, index) == variable:
            for value in made.graph.output:
                if value.name == name:
                    value.type.tensor_type.elem_type = kind
    if any(isinstance(each, TensorProto) for each in made.graph.initializer):
        return None
    return made, {name: _cast(array, dtype) if name in changed else array for name, array in inputs.items()}


def of_rank(model: ModelProto, inputs: Mapping[str, Array], rank: int) -> Made | None:
    """The model with data of another rank: items of new first dimensions are the same numbers in another order, and
    a scalar is the first number. Inputs that are like the first have its rank. None for data that have this rank.
    """
    first = next(iter(inputs.values()), None)
    if first is None or first.ndim == rank or 0 < rank < first.ndim or not first.size:
        return None
    changed = {
        name: _ranked(array, rank)
        for name, array in inputs.items()
        if array.shape == first.shape and array.dtype == first.dtype
    }
    made = ModelProto()
    made.CopyFrom(model)
    for value in made.graph.input:
        if value.name in changed:
            kind = value.type.tensor_type.elem_type
            value.CopyFrom(helper.make_tensor_value_info(value.name, kind, changed[value.name].shape))
    analysis = splitgraph.infer(_without_shapes(made))
    return (analysis.model, {**inputs, **changed}) if analysis.ok else None


def _ranked(array: Array, rank: int) -> Array:
    if not rank:
        return np.asarray(array.reshape(-1)[0])
    sizes = (2, 3, 2, 2)[: rank - array.ndim]
    items = [np.roll(array, place) for place in range(int(np.prod(sizes)))]
    return np.stack(items).reshape(*sizes, *array.shape)


def _formal(formals: Any, index: int) -> str:
    last = len(formals) - 1
    return "" if last < 0 else str(formals[min(index, last)].type_str)


def _spelled(dtype: str) -> str:
    return {"float32": "float", "float64": "double"}.get(dtype, dtype)


def _cast(array: Array, dtype: str) -> Array:
    if dtype == "bool":
        return np.asarray(array.astype(float) > 0)
    if np.dtype(dtype).kind in "iu" and array.dtype.kind == "f":
        array = np.where(np.isfinite(array), array, 0)
        return np.asarray((np.abs(array) * 3 % 4 + 1).astype(dtype))
    return np.asarray(array.astype(dtype))
