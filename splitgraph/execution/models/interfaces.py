"""Compare the interfaces of two models: the names, types and ranks of their inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx

from splitgraph.execution.comparison import type_name
from splitgraph.execution.values import Array, Value
from splitgraph.execution.verification import Difference
from splitgraph.value_type import DTYPE_NAMES


def compare_interfaces(before: onnx.ModelProto, after: onnx.ModelProto) -> Difference | None:
    """Return the first difference between the declared inputs and outputs of two models; None without one.

    Both models must have the same output names in the same order, and the same input names. Kinds, element types and
    ranks must agree where both models declare them. The second model may have more inputs, if these have a default.
    """
    names = [value.name for value in before.graph.output], [value.name for value in after.graph.output]
    if names[0] != names[1]:
        return _difference_of_names(*names)
    defaults = default_names(after)
    inputs, inputs_after = caller_inputs(before), {value.name: value for value in after.graph.input}
    for name in inputs:
        if name not in inputs_after:
            return Difference(name, None, f"the second model has no input {name!r}")
    for name in inputs_after:
        if name not in inputs and name not in defaults:
            return Difference(name, None, f"the second model has a new input {name!r}")
    optional = default_names(before)
    for name in inputs:
        if name in optional and name not in defaults:
            return Difference(name, None, f"the input {name!r} has no default in the second model")
    pairs = [("input", value, inputs_after[name]) for name, value in inputs.items()]
    pairs += [("output", *pair) for pair in zip(before.graph.output, after.graph.output, strict=True)]
    for kind, left, right in pairs:
        reason = _difference_of_types(left.type, right.type)
        if reason:
            return Difference(left.name, None, f"the {kind} {left.name!r} is declared {reason}")
    return None


def default_names(model: onnx.ModelProto) -> set[str]:
    """Return the names of all initializers. An input of such a name has a default and may be omitted."""
    names = {tensor.name for tensor in model.graph.initializer}
    return names.union(tensor.values.name for tensor in model.graph.sparse_initializer)


def caller_inputs(model: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    """Return the inputs that a caller may give, by name. Models before IR 4 list every initializer as an input, but
    a caller cannot set these.
    """
    constants = {tensor.name for tensor in model.graph.initializer} if model.ir_version < 4 else set()
    return {value.name: value for value in model.graph.input if value.name not in constants}


def wrong_shapes(values: Iterable[onnx.ValueInfoProto], given: Mapping[str, Value]) -> dict[str, str]:
    """Return each tensor whose rank or fixed dimensions contradict the declaration, with the reason."""
    pairs = _declared_tensors(values, given)
    return {name: reason for name, declared, array in pairs if (reason := _wrong_shape(declared, array))}


def wrong_types(values: Iterable[onnx.ValueInfoProto], given: Mapping[str, Value]) -> dict[str, str]:
    """Return each tensor whose element type contradicts the declaration, with the reason."""
    pairs = _declared_tensors(values, given)
    return {
        name: f"declared with type {_dtype_name(declared.elem_type)} but has type {type_name(array)}"
        for name, declared, array in pairs
        if declared.elem_type and _dtype_name(declared.elem_type) != type_name(array)
    }


def _declared_tensors(
    values: Iterable[onnx.ValueInfoProto], given: Mapping[str, Value]
) -> Iterator[tuple[str, onnx.TypeProto.Tensor, Array]]:
    for value in values:
        array = given.get(value.name)
        if isinstance(array, np.ndarray) and value.type.HasField("tensor_type"):
            yield value.name, value.type.tensor_type, array


def _wrong_shape(declared: onnx.TypeProto.Tensor, array: Array) -> str:
    if not declared.HasField("shape"):
        return ""
    dims = declared.shape.dim
    fits = len(dims) == array.ndim and all(
        not dim.HasField("dim_value") or dim.dim_value == size for dim, size in zip(dims, array.shape, strict=True)
    )
    if fits:
        return ""
    shown = (str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?" for dim in dims)
    return f"declared with shape [{', '.join(shown)}] but has shape {list(array.shape)}"


def _difference_of_names(before: Sequence[str], after: Sequence[str]) -> Difference:
    if sorted(before) == sorted(after):
        name = next(left for left, right in zip(before, after, strict=True) if left != right)
        orders = f"{', '.join(before)} in the first model and {', '.join(after)} in the second"
        return Difference(name, None, f"the outputs have another order: {orders}")
    missing = [name for name in before if name not in after]
    if missing:
        return Difference(missing[0], None, f"the second model has no output {missing[0]!r}")
    new = [name for name in after if name not in before]
    if new:
        return Difference(new[0], None, f"the second model has a new output {new[0]!r}")
    return Difference(after[0] if after else "", None, "one model lists an output more often than the other")


def _difference_of_types(before: onnx.TypeProto, after: onnx.TypeProto) -> str:
    """Return how the two declarations differ, as the end of a sentence; "" where they agree."""
    kind = before.WhichOneof("value"), after.WhichOneof("value")
    if None in kind:
        return ""
    if kind[0] != kind[1]:
        return _in_each(f"as a {_kind_name(kind[0])}", f"as a {_kind_name(kind[1])}")
    left, right = getattr(before, str(kind[0])), getattr(after, str(kind[0]))
    if kind[0] in ("sequence_type", "optional_type"):
        return _difference_of_types(left.elem_type, right.elem_type)
    if kind[0] == "map_type":
        if left.key_type != right.key_type:
            return _in_each(f"with {_dtype_name(left.key_type)} keys", f"with {_dtype_name(right.key_type)} keys")
        return _difference_of_types(left.value_type, right.value_type)
    if left.elem_type and right.elem_type and left.elem_type != right.elem_type:
        return _in_each(_dtype_name(left.elem_type), _dtype_name(right.elem_type))
    if left.HasField("shape") and right.HasField("shape") and len(left.shape.dim) != len(right.shape.dim):
        return _in_each(f"with rank {len(left.shape.dim)}", f"with rank {len(right.shape.dim)}")
    return ""


def _in_each(before: str, after: str) -> str:
    return f"{before} in the first model and {after} in the second"


def _kind_name(kind: str | None) -> str:
    return str(kind).removesuffix("_type").replace("_", " ")


def _dtype_name(elem_type: int) -> str:
    return DTYPE_NAMES.get(elem_type, f"type {elem_type}")
