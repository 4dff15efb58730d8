"""Types that follow backwards: a node demands a rank and an element type of an input that nothing describes.

The outputs of an unknown operator have no type. But a Conv with a weight of rank 4 and type float16 reads a value of
rank 4 and type float16; every other value would make the node invalid. The nodes are read from the last to the first,
so that a demand passes through the nodes that keep the rank. Then the model is walked again with these types
(`infer.py`).

A node demands something only of values of its own graph: a branch or body may not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitgraph.inference.alone import Alone
from splitgraph.inference.declared_types import with_demand
from splitgraph.inference.operators import operator_of
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.schemas import OperatorVersion
from splitgraph.model.schemas.fit import element_types
from splitgraph.model.scopes import GraphPath, Scope, node_label, plain_domain
from splitgraph.model.value_type import UNKNOWN, ValueType, tensor

Types = Mapping[str, ValueType]
Demands = Mapping[GraphPath, Types]


def demanded_types(state: WalkState) -> Demands:
    """Return the types that the nodes of a walked model demand of values that the walk knows less about."""
    demands: dict[GraphPath, Types] = {}
    alone = Alone()
    for scope in state.record.scopes:
        detail = state.record.details.get(scope.path)
        if detail is not None and any(map(_is_open, detail.types.values())):
            demanded = _of_graph(state, alone, scope, detail.types)
            if demanded:
                demands[scope.path] = demanded
    return demands


def _is_open(known: ValueType) -> bool:
    return known.kind == "unknown" or (known.kind == "tensor" and (known.shape is None or known.dtype is None))


def _of_graph(state: WalkState, alone: Alone, scope: Scope, types: Types) -> Types:
    demands: dict[str, ValueType] = {}

    def type_of(name: str) -> ValueType:
        if name in demands or name in types:
            return demands.get(name) or types[name]
        path = scope.path[:-3]
        while name and path in state.record.details:
            if name in state.record.details[path].types:
                return state.record.details[path].types[name]
            path = path[:-3] or (None,)
        return UNKNOWN

    for index in reversed(range(len(scope.nodes))):
        node = scope.nodes[index]
        given = [type_of(name) for name in node.input]
        if plain_domain(node.domain) or not any(map(_is_open, given)):
            continue
        if state.task.set_aside and f"{scope.location}/{node_label(node, index)}" in state.task.set_aside:
            continue
        schema = operator_of(state, scope.imports, node).schema
        made = [type_of(name) for name in node.output]
        ranks, dtypes = _ranks(alone, scope.imports, node, schema, given, made), _dtypes(schema, given, made)
        for position, (name, known) in enumerate(zip(node.input, given, strict=True)):
            rank, dtype = ranks.get(position), dtypes.get(position)
            if name not in types or not _is_open(known) or (rank is None and dtype is None):
                continue
            better = with_demand(known, tensor(dtype, None if rank is None else (None,) * rank))
            if better != known:
                demands[name] = better
    return demands


def _ranks(
    alone: Alone,
    imports: Mapping[str, int],
    node: NodeProto,
    schema: OperatorVersion | None,
    given: Sequence[ValueType],
    made: Sequence[ValueType],
) -> dict[int, int]:
    """Return the demanded rank of each input. There is none if the node contradicts itself."""
    if schema is None or any(attribute.ref_attr_name for attribute in node.attribute):
        return {}
    ranks, known = dict[int, int](), [*given]
    waiting = [place for place, kind in enumerate(given) if node.input[place] and _is_open(kind) and kind.shape is None]
    # What is found of one input may tell the rank of another one.
    while waiting:
        found = ((place, alone.only_rank(node, imports, known, made, place)) for place in waiting)
        place, rank = next((each for each in found if each[1] is not None), (None, None))
        if place is None or rank is None:
            break
        waiting.remove(place)
        ranks[place], known[place] = rank, tensor(given[place].dtype, (None,) * rank)
    return ranks


def _dtypes(schema: OperatorVersion | None, given: Sequence[ValueType], made: Sequence[ValueType]) -> dict[int, str]:
    """Return the demanded element type of each input. It follows from the schema, and from values with the same type
    variable.
    """
    if schema is None:
        return {}
    bound: dict[str, set[str]] = {}
    for formals, values in ((schema.inputs, given), (schema.outputs, made)):
        for place, known in enumerate(values if formals else ()):
            formal = formals[min(place, len(formals) - 1)]
            if known.kind == "tensor" and known.dtype is not None and formal.is_generic and formal.homogeneous:
                bound.setdefault(formal.type_variable, set()).add(known.dtype)
    dtypes: dict[int, str] = {}
    for place in range(len(given) if schema.inputs else 0):
        formal = schema.inputs[min(place, len(schema.inputs) - 1)]
        allowed = element_types(formal.types)
        shared = bound.get(formal.type_variable, set()) if formal.homogeneous else set()
        possible = allowed & shared if shared else allowed if len(allowed) == len(formal.types) else set()
        if len(possible) == 1:
            dtypes[place] = next(iter(possible))
    return dtypes
