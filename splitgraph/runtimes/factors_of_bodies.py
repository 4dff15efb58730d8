"""The factors of operators that hold graphs: If, Loop and Scan."""

from __future__ import annotations

from collections.abc import Iterator

from splitgraph.model.attributes import HOLDING_GRAPHS
from splitgraph.model.onnx_proto import AttributeProto, GraphProto, NodeProto, ValueInfoProto
from splitgraph.runtimes.seen_values import Seen


def factors_of_bodies(node: NodeProto, seen: Seen) -> Iterator[tuple[str, str]]:
    """Yield the factors of the bodies of a node, and of what goes in and out."""
    bodies = [graph for each in node.attribute if each.type in HOLDING_GRAPHS for graph in _graphs(each)]
    if any(not body.node for body in bodies):
        yield "body", "without nodes"
    elif bodies:
        yield "body", "nodes"
    yield "captures", "yes" if any(map(_captures, bodies)) else "no"
    if node.op_type == "If":
        yield "cond", seen.how(node.input[0]) if node.input and node.input[0] else "absent"
        yield from _of_branches(bodies)
        return
    first = 2 if node.op_type == "Loop" else 0
    for place, name in enumerate(node.input):
        if place < first:
            continue
        known = seen.type_of(name)
        yield f"carried.{'unknown' if known.rank is None else known.rank}", "yes"
    kinds = {seen.type_of(name).kind for name in node.output if name}
    for kind in kinds - {"tensor"}:
        yield f"outputs.{kind}", "yes"


def _graphs(held: AttributeProto) -> Iterator[GraphProto]:
    yield from ([held.g] if held.type == AttributeProto.GRAPH else held.graphs)


def _captures(body: GraphProto) -> bool:
    """Return True where a node of a body, or of a body within it, reads a value of a graph around it."""
    own = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
    own |= {name for node in body.node for name in node.output}
    return any(name and name not in own for node in body.node for name in node.input) or any(
        value.name not in own for value in body.output
    )


def _of_branches(bodies: list[GraphProto]) -> Iterator[tuple[str, str]]:
    if len(bodies) != 2:
        return
    pairs = list(zip(bodies[0].output, bodies[1].output, strict=False))
    yield "outputs", "one" if len(pairs) == 1 else "more"
    shapes = [[_shape(value) for value in pair] for pair in pairs]
    ranks = [[None if shape is None else len(shape) for shape in pair] for pair in shapes]
    if any(None in pair for pair in ranks):
        yield "ranks", "undeclared"
    elif any(one != other for one, other in ranks):
        yield "ranks", "differ"
    else:
        yield "ranks", "equal"
        pairs_of_dims = [dims for one, other in shapes for dims in zip(one or (), other or (), strict=True)]
        differ = any(one != other and isinstance(one, int) and isinstance(other, int) for one, other in pairs_of_dims)
        # Names of dimensions may stand for the same size.
        is_equal = all(one == other for one, other in pairs_of_dims)
        yield "shapes", "differ" if differ else "equal" if is_equal else "open"


def _shape(value: ValueInfoProto) -> tuple[int | str, ...] | None:
    tensor = value.type.tensor_type
    return tuple(dim.dim_value or dim.dim_param for dim in tensor.shape.dim) if tensor.HasField("shape") else None
