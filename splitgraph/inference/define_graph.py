"""Defining the inputs, initializers and declared types of a graph, before its nodes are walked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.dim import Dim
from splitgraph.graph.nesting import MOST_NESTED
from splitgraph.graph.scopes import MAIN
from splitgraph.graph.tensors import tensor_type
from splitgraph.graph.types import nested_types, value_type
from splitgraph.inference.declared_types import check_default, check_sizes, reconcile, with_demand
from splitgraph.inference.graph_walk import GraphWalk, symbols_of_type
from splitgraph.onnx_proto import GraphProto, TensorProto, ValueInfoProto
from splitgraph.value_type import UNKNOWN, ValueType


def define_graph_values(values: GraphWalk, graph: GraphProto, given: Sequence[ValueType | None] | None = None) -> None:
    """Define a graph's inputs and initializers. given: types of the inputs as the caller of a subgraph has them."""
    assumed = values.state.task.assumes_defaults and values.path == MAIN
    constant_inputs = assumed or values.state.task.model.ir_version < 4
    inputs = {value.name for value in graph.input}
    defaults = {held.name: tensor_type(held) for held in graph.initializer if held.name in inputs}
    for position, value in enumerate(graph.input):
        passed = given[position] if given is not None and position < len(given) else None
        default = defaults.get(value.name)
        if default is not None:
            check_default(values, value.name, default, value_type(value.type))
        known = _input_type(values, value, passed, default if constant_inputs else None)
        if values.state.task.sizes.bound and values.path == MAIN:
            check_sizes(values, value.name, value_type(value.type), known)
        values.define(value.name, known, values.location)
    if values.parent is None:
        values.state.symbols.open_dimensions = frozenset(values.state.symbols.generated)
        of_inputs = frozenset[str]().union(*map(symbols_of_type, values.types.values()))
        values.state.symbols.named_dimensions = of_inputs - values.state.symbols.open_dimensions
    for found in values.state.record.tensors.of_initializers(graph, values.location):
        values.report(found)
    first: dict[str, TensorProto] = {}
    for held in graph.initializer:
        name = held.name
        earlier = first.setdefault(name, held)
        if values.path == MAIN and earlier is not held and earlier == held:
            values.report(_same_twice(name, values.location))
            continue
        if name in inputs and earlier is not held:
            # The input defines the name, so that no second definition is found below.
            text = f"the initializer {name!r} is there twice, with different elements"
            values.report(diagnostic("SG104", text, values.location))
        if name not in inputs:
            values.define(name, tensor_type(held), values.location)
        # From IR 4 on an initializer that is also an input is a default that a caller may override, so no constant.
        if name not in inputs or constant_inputs:
            values.constants[name] = held
    for sparse in graph.sparse_initializer:
        if sparse.values.name not in inputs:
            dense = ValueType("tensor", tensor_type(sparse.values).dtype, tuple(sparse.dims))
            values.define(sparse.values.name, dense, values.location)
    for value in (*graph.value_info, *graph.output):
        if value.type.WhichOneof("value") is not None:
            values.declared[value.name] = _declared(values, value)
    # ONNX cannot write every type of other formats.
    for name, given_type in values.state.task.given_types.get(values.path, {}).items():
        written = values.types.get(name)
        if written is None:
            values.define(name, values.state.task.bind(given_type), values.location)
        elif written.dtype is None:
            values.types[name] = replace(written, dtype=given_type.dtype)
    values.declared.update(values.state.task.declared_types.get(values.path, {}))
    take_demands(values)


def take_demands(values: GraphWalk) -> None:
    """Add to the types of inputs, and to declared types, what nodes demand (`demanded_types.py`)."""
    for name, demanded in values.state.task.demands.get(values.path, {}).items():
        if name in values.types:
            values.types[name] = values.complete(with_demand(values.types[name], demanded))
        else:
            values.declared[name] = with_demand(values.declared.get(name, UNKNOWN), demanded)


def _same_twice(name: str, location: str) -> Diagnostic:
    """The warning about two equal initializers of one name. Runtimes load the graph, whichever of the two they take."""
    text = f"the initializer {name!r} is there twice, with the same elements"
    return diagnostic("SG104", text, location, severity="warning", help="Remove one of the two.")


def _input_type(
    values: GraphWalk, value: ValueInfoProto, passed: ValueType | None, constant: ValueType | None
) -> ValueType:
    """passed: what the input is given. constant: of the initializer that it always is."""
    declared = _declared(values, value, is_believed=values.parent is None)
    if passed is not None:
        return reconcile(values, value.name, passed, declared, values.location, passed_in=True)
    declared = values.state.task.bind(declared)
    is_named = any(isinstance(dim, Dim) for dim in declared.shape or ())
    return declared if constant is None or is_named else constant


def _declared(values: GraphWalk, value: ValueInfoProto, *, is_believed: bool = False) -> ValueType:
    declared = value_type(value.type)
    if declared is UNKNOWN and (depth := nested_types(value.type)) > MOST_NESTED:
        text = f"the type of {value.name!r} is nested {depth:,} levels deep; at most {MOST_NESTED} levels are supported"
        values.report(diagnostic("SG114", text, values.location))
    if not values.is_repeated:
        # In a loop a name may have another value in each iteration: there it is no better known for being bound.
        declared = values.state.task.bind(declared)
    return declared if is_believed or values.state.task.believes_shapes else declared.with_shape(None)
