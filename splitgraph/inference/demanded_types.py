"""Types that follow backwards: a node demands a rank and an element type of an input that nothing describes.

The outputs of an unknown operator have no type. But a Conv with a weight of rank 4 and type float16 reads a value of
rank 4 and type float16; every other value would make the node invalid. The nodes are read from the last to the first,
so that a demand passes through the nodes that keep the rank. Then the model is walked again with these types
(`infer.py`).

A node demands something only of values of its own graph: a branch or body may not run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from splitgraph.inference.declared_types import with_demand
from splitgraph.inference.operators import operator_of
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.attributes import attribute_value
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.schemas import OperatorVersion, kinds
from splitgraph.model.schemas.fit import element_types
from splitgraph.model.scopes import GraphPath, Scope, node_label, plain_domain
from splitgraph.model.value_type import MAX_RANK, UNKNOWN, ValueType, tensor

Types = Mapping[str, ValueType]
Demands = Mapping[GraphPath, Types]


# Values of one rank: inputs by position, outputs by the complement of their position.
_FIRST = (0, ~0)
_ONE_RANK: Mapping[tuple[int, ...], frozenset[str]] = {
    _FIRST: kinds.KEEPS_SHAPE | kinds.POOLS | kinds.names("Pad Resize Slice Split Tile Transpose Upsample"),
    (0, 1, ~0): kinds.CONVOLUTIONS | kinds.names("GatherElements GridSample MaxUnpool SwiGLU"),
    (0, 1, 2, ~0): kinds.names("DeformConv Scatter ScatterElements"),
    (0, 3, ~0): kinds.names("QLinearConv"),
    (0, ~0, ~1): kinds.names("TopK"),
}
_RANK_GROUPS = {name: group for group, names in _ONE_RANK.items() for name in names}
_REDUCING = {"ArgMax", "ArgMin", *kinds.REDUCES}
_RECURRENT = (3, 3, 3, 2, 1, 3)
# The rank of each input, None where the operator leaves it open.
_RANKS: dict[str, Sequence[int | None]] = {
    "AffineGrid": (3, 1),
    "BatchNormalization": (None, 1, 1, 1, 1),
    "Col2Im": (3, 1, 1),
    "ConstantOfShape": (1,),
    "Conv": (None, None, 1),
    "ConvTranspose": (None, None, 1),
    "DepthToSpace": (4,),
    "Expand": (None, 1),
    "EyeLike": (2,),
    "Gemm": (2, 2),
    "GroupNormalization": (None, 1, 1),
    "InstanceNormalization": (None, 1, 1),
    **dict.fromkeys(kinds.RECURRENT, _RECURRENT),
    "LSTM": (*_RECURRENT, 3, 2),
    "MaxRoiPool": (4, 2),
    "Multinomial": (2,),
    "NonMaxSuppression": (3, 3),
    "Pad": (None, 1),
    "QLinearConv": (*(None,) * 8, 1),
    "Reshape": (None, 1),
    "Resize": (None, 1, 1, 1),
    "ReverseSequence": (None, 1),
    "RoiAlign": (4, 2, 1),
    "Slice": (None, 1, 1, 1, 1),
    "SpaceToDepth": (4,),
}
# How many elements these attributes have for each spatial dimension. The rank is two more than these.
_WINDOWS = {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 2}
_WINDOWED = kinds.CONVOLUTIONS | kinds.names("AveragePool LpPool MaxPool MaxUnpool")
# The vectors with so many elements for each dimension of the first input.
_VECTORS = {"Tile": {1: 1}, "Pad": {1: 2}, "Resize": {2: 1, 3: 1}, "Upsample": {1: 1}}


def demanded_types(state: WalkState) -> Demands:
    """Return the types that the nodes of a walked model demand of values that the walk knows less about."""
    demands: dict[GraphPath, Types] = {}
    for scope in state.record.scopes:
        detail = state.record.details.get(scope.path)
        if detail is not None and any(map(_is_open, detail.types.values())):
            demanded = _of_graph(state, scope, detail.types)
            if demanded:
                demands[scope.path] = demanded
    return demands


def _is_open(known: ValueType) -> bool:
    return known.kind == "unknown" or (known.kind == "tensor" and (known.shape is None or known.dtype is None))


def _of_graph(state: WalkState, scope: Scope, types: Types) -> Types:
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
        ranks, dtypes = _ranks(node, schema, given, made), _dtypes(schema, given, made)
        for position, (name, known) in enumerate(zip(node.input, given, strict=True)):
            rank, dtype = ranks.get(position), dtypes.get(position)
            if name not in types or not _is_open(known) or (rank is None and dtype is None):
                continue
            better = with_demand(known, tensor(dtype, None if rank is None else (None,) * rank))
            if better != known:
                demands[name] = better
    return demands


def _ranks(
    node: NodeProto, schema: OperatorVersion | None, given: Sequence[ValueType], made: Sequence[ValueType]
) -> dict[int, int]:
    """Return the demanded rank of each input. There is none if the node contradicts itself."""
    op_type = node.op_type
    attributes = {
        attribute.name: attribute_value(attribute) for attribute in node.attribute if not attribute.ref_attr_name
    }
    if any(attribute.ref_attr_name for attribute in node.attribute) or schema is None:
        return {}
    ranks = {place: rank for place, rank in enumerate(_RANKS.get(op_type, ())) if rank is not None}
    if op_type == "BatchNormalization" and schema.since_version < 9:
        ranks.clear()
    if op_type == "Einsum":
        ranks.update(_of_equation(attributes.get("equation"), len(given)))
    group = _RANK_GROUPS.get(op_type, ())
    if op_type == "Concat":
        group = (*range(len(given)), ~0)
    elif op_type in _REDUCING and attributes.get("keepdims", 1):
        group = _FIRST
    sides = [(made if place < 0 else given, ~place if place < 0 else place) for place in group]
    known = {values[place].rank for values, place in sides if place < len(values) and values[place].kind == "tensor"}
    known |= set(_told_ranks(op_type, attributes, given))
    known.discard(None)
    if len(known) == 1:
        (rank,) = known
        if rank is not None and rank <= MAX_RANK and (rank >= 3 or op_type not in _WINDOWED):
            ranks.update({place: rank for place in group if place >= 0})
    return ranks


def _told_ranks(op_type: str, attributes: Mapping[str, object], given: Sequence[ValueType]) -> Iterator[int]:
    """Yield the ranks of the first input that follow from attributes and from the lengths of vectors."""
    perm = attributes.get("perm")
    if op_type == "Transpose" and isinstance(perm, tuple):
        yield len(perm)
    for name, count in _WINDOWS.items() if op_type in _WINDOWED else ():
        window = attributes.get(name)
        if isinstance(window, tuple):
            yield len(window) // count + 2
    # Axes choose the dimensions that the vector is about.
    if "axes" in attributes or (op_type == "Pad" and len(given) > 3):
        return
    for place, count in _VECTORS.get(op_type, {}).items():
        shape = given[place].shape if place < len(given) else None
        if shape is not None and len(shape) == 1 and isinstance(shape[0], int) and shape[0]:
            yield shape[0] // count


def _of_equation(equation: object, count: int) -> dict[int, int]:
    terms = equation.replace(" ", "").split("->")[0].split(",") if isinstance(equation, str) else []
    if len(terms) != count:
        return {}
    return {place: len(term) for place, term in enumerate(terms) if "." not in term}


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
