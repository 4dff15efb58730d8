"""Writing the sizes that the caller gives into what a model declares, so that the model that is written has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitgraph.dim import DimLike, read_dim_param, substitute
from splitgraph.graph.names import declared_values
from splitgraph.graph.scopes import GraphPath, Scope
from splitgraph.graph.values import tensor_types, write_dim, write_shape
from splitgraph.inference.given_sizes import BoundSizes
from splitgraph.onnx_proto import ModelProto, ValueInfoProto
from splitgraph.value_type import ValueType

_Types = Mapping[GraphPath, Mapping[str, ValueType]]


def fix_sizes(model: ModelProto, sizes: BoundSizes, scopes: Sequence[Scope], types: _Types) -> None:
    """Write the sizes into the types that a model declares of inputs, outputs and inner values, in subgraphs too.
    Everything else stays byte for byte.

    scopes: the graphs of the model. types: what was inferred of each. A name in the body of a loop may have another
    value in each iteration, so that it is replaced only where inference finds the same.
    """
    for scope in scopes:
        # Names in a function are those of each call.
        if not scope.in_function:
            inferred = types.get(scope.path, {}) if "body" in scope.path else None
            for value in declared_values(scope):
                _bind(value, sizes.bound, inferred)
    for value, given in zip(model.graph.input, sizes.given, strict=False):
        if given is not None and given.shape is not None:
            _give(value, given, given.shape)


def _bind(value: ValueInfoProto, bound: Mapping[str, DimLike], inferred: Mapping[str, ValueType] | None) -> None:
    known = None if inferred is None else inferred.get(value.name)
    for tensor in tensor_types(value.type):
        for axis, entry in enumerate(tensor.shape.dim):
            dim = read_dim_param(entry.dim_param)
            found = None if dim is None else substitute(dim, bound)
            if found is None or found == dim:
                continue
            if inferred is None or (known is not None and known.shape is not None and known.shape[axis] == found):
                write_dim(found, entry)


def _give(value: ValueInfoProto, given: ValueType, shape: Sequence[DimLike | None]) -> None:
    for tensor in tensor_types(value.type):
        if not tensor.HasField("shape"):
            write_shape(given, tensor)
        for dim, entry in zip(shape, tensor.shape.dim, strict=False):
            # A number says more than a name.
            if isinstance(dim, int) or not entry.HasField("dim_value") or entry.dim_value < 0:
                write_dim(dim, entry)
