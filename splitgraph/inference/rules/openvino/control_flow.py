"""OpenVINO's If, TensorIterator and Loop, which pass values to their bodies through port maps."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

from splitgraph.dim import Dim, DimLike, symbols_of
from splitgraph.inference.context import Body, NodeContext
from splitgraph.inference.rules.onnx.control_flow import infer_branches, settle_iterations
from splitgraph.inference.rules.openvino.attributes import layer
from splitgraph.inference.rules.operands import InvalidNode, at_most
from splitgraph.model.onnx_proto import GraphProto
from splitgraph.model.value_type import UNKNOWN, Contents, ValueType, tensor

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import Graph, Layer


def ports_of(ctx: NodeContext, key: str) -> list[PortEntry]:
    """Return the entries of a port map."""
    return read_ports(str(ctx.attribute(key, "[]")))


def _graph(ctx: NodeContext, key: str) -> GraphProto:
    graph = ctx.attribute(key)
    if not isinstance(graph, GraphProto):
        raise InvalidNode(f"{key} is missing")
    return graph


@layer("If")
def branches(ctx: NodeContext) -> Sequence[ValueType]:
    """Walk both bodies. The outputs have what the bodies have in common, or the taken body's types where the condition
    is constant.
    """
    walked: list[Body] = []

    def walk(name: str) -> Body:
        walked.append(_branch(ctx, name))
        return walked[-1]

    outputs = infer_branches(ctx, lambda: walk("then"), lambda: walk("else"))
    for index, value in enumerate(outputs):
        _bound_between(ctx, value, [body.types[index] for body in walked])
    return outputs


def _bound_between(ctx: NodeContext, value: ValueType, given: Sequence[ValueType]) -> None:
    """Bound each dimension that has different sizes in the branches by the smallest and the largest of them."""
    for axis, dim in enumerate(value.shape or ()):
        dims = [other.shape[axis] for other in given if other.shape is not None and len(other.shape) > axis]
        known = [other_dim for other_dim in dims if other_dim is not None]
        if not ctx.is_generated(dim) or dim in known or len(known) != len(given):
            continue
        ranges = [ctx.facts.range_of(other_dim) for other_dim in known]
        highs = [high for _, high in ranges if high is not None]
        low = min(max(low or 0, 0) for low, _ in ranges)
        high = max(highs) if len(highs) == len(ranges) else None
        if (low, high) != (0, None):
            ctx.facts.tighten(str(dim), low, high)


def _branch(ctx: NodeContext, name: str) -> Body:
    graph, ports = _graph(ctx, f"{name}_body"), ports_of(ctx, f"{name}_port_map")
    given: list[ValueType | None] = [None] * len(graph.input)
    known: list[Contents | None] = [None] * len(graph.input)
    for entry in ports:
        if entry.tag == "input" and entry.external is not None and entry.internal is not None:
            given[entry.internal] = ctx.complete(ctx.input(entry.external))
            known[entry.internal] = ctx.contents(entry.external)
    body = ctx.walk_body(f"{name}_body", given, elements=known)
    if body is None:
        raise InvalidNode(f"{name}_body is missing")
    types, contents = [UNKNOWN] * len(ctx.outputs), list[Contents | None]([None] * len(ctx.outputs))
    for entry in ports:
        if entry.tag == "output" and entry.external is not None and entry.internal is not None:
            types[entry.external] = body.types[entry.internal]
            contents[entry.external] = body.contents[entry.internal]
    return Body(types, contents, body.given, body.facts)


class Carried(NamedTuple):
    """What an iterating layer passes to its body in the first iteration. given, elements: by the body's inputs.
    back: the body's outputs that its inputs are given in the next iteration. outside: the layer's inputs, by those of
    the body.
    """

    given: Sequence[ValueType | None]
    elements: Sequence[Contents | None]
    back: Mapping[int, int]
    outside: Mapping[int, int]


def passed_to_body(ctx: NodeContext) -> Carried:
    """Return what a TensorIterator or a Loop passes to its body."""
    graph, ports = _graph(ctx, "body"), ports_of(ctx, "port_map")
    back = {
        edge.internal: edge.external
        for edge in ports_of(ctx, "back_edges")
        if edge.internal is not None and edge.external is not None
    }
    given: list[ValueType | None] = [None] * len(graph.input)
    elements: list[Contents | None] = [None] * len(graph.input)
    outside: dict[int, int] = {}
    for entry in ports:
        if entry.tag == "input" and entry.external is not None and entry.internal is not None:
            outside[entry.internal] = entry.external
            given[entry.internal] = ctx.complete(_passed(ctx, entry))
            if entry.axis is None and entry.internal not in back:
                elements[entry.internal] = ctx.contents(entry.external)
    return Carried(given, elements, back, outside)


@layer("TensorIterator", "Loop")
def iterations(ctx: NodeContext) -> Sequence[ValueType]:
    """Walk the body until the values that it carries between iterations settle."""
    given, elements, back, _ = passed_to_body(ctx)
    carried = [position for position in back if given[position] is not None]

    def walk(known: Sequence[ValueType], _: Iterable[int]) -> Body | None:
        now = list(given)
        for position, value in zip(carried, known, strict=True):
            now[position] = value
        return ctx.walk_body("body", now, elements=elements)

    first = [value for position in carried if (value := given[position]) is not None]
    body, results, lost = settle_iterations(
        ctx, first, set(), walk, lambda body: [body.types[back[position]] for position in carried]
    )
    if body is None:
        return ()
    after = {back[position]: value for position, value in zip(carried, results, strict=True)}
    return _outputs(ctx, ports_of(ctx, "port_map"), body, after, lost)


def _passed(ctx: NodeContext, entry: PortEntry) -> ValueType:
    """Return the type of a body input: the whole layer input, or a part of it along an axis."""
    known = ctx.input(entry.external) if entry.external is not None else UNKNOWN
    if entry.axis is None or known.shape is None:
        return known if entry.axis is None else known.with_shape(None)
    if entry.axis >= len(known.shape):
        raise InvalidNode(f"slice axis {entry.axis} is out of range for an input of rank {len(known.shape)}")
    return known.with_shape([*known.shape[: entry.axis], entry.part_size, *known.shape[entry.axis + 1 :]])


def _outputs(
    ctx: NodeContext,
    ports: Sequence[PortEntry],
    body: Body,
    after: Mapping[int, ValueType],
    lost: Collection[Dim],
) -> list[ValueType]:
    count = _trips(ctx, ports, body) if ctx.node.op_type == "Loop" else _parts(ctx, ports)
    outputs = [UNKNOWN] * len(ctx.outputs)
    for entry in ports:
        if entry.tag != "output" or entry.external is None or entry.internal is None:
            continue
        known = body.types[entry.internal]
        if entry.axis is None:
            outputs[entry.external] = after.get(entry.internal) or _without(known, lost)
        else:
            outputs[entry.external] = _stacked(ctx, _without(known, lost), entry, count)
    return outputs


def _without(value: ValueType, lost: Collection[Dim]) -> ValueType:
    """Return the type without dimensions that differ from one iteration to the next."""
    if value.shape is None:
        return value
    names = {name for dim in lost for name in symbols_of(dim)}
    shape = [None if isinstance(dim, Dim) and names & set(symbols_of(dim)) else dim for dim in value.shape]
    return value.with_shape(shape)


def _stacked(ctx: NodeContext, value: ValueType, entry: PortEntry, count: DimLike | None) -> ValueType:
    """Stack the results of the iterations along an axis. TensorIterator takes a part of each, Loop the whole, which the
    map calls a part of 1.
    """
    if value.shape is None or entry.axis is None or entry.axis >= len(value.shape):
        return tensor(value.dtype, None)
    given = value.shape[entry.axis]
    part = given if ctx.node.op_type == "Loop" else entry.part_size
    length = None if count is None or part is None else count * part
    return value.with_shape([*value.shape[: entry.axis], length, *value.shape[entry.axis + 1 :]])


def _parts(ctx: NodeContext, ports: Sequence[PortEntry]) -> DimLike | None:
    """Return how many parts the sliced inputs have; None if no input is sliced into parts that follow one another."""
    for entry in ports:
        if entry.tag != "input" or entry.external is None or entry.axis is None or abs(entry.stride) != entry.part_size:
            continue
        shape = ctx.input(entry.external).shape
        dim = None if shape is None or entry.axis >= len(shape) else shape[entry.axis]
        if dim is None or entry.part_size < 1:
            continue
        # The first and the last element that are read; a negative one counts from the end.
        first, last = (place if place >= 0 else dim + place for place in (entry.start, entry.end))
        read = (last - first if entry.stride > 0 else first - last) + 1
        if ctx.facts.prove_ge(read, 0):
            return read // entry.part_size
    return None


def _trips(ctx: NodeContext, ports: Sequence[PortEntry], body: Body) -> DimLike | None:
    """Return the number of iterations: the trip count if nothing else can end the loop, else a dimension that is at
    most as large; None if it is unknown.
    """
    count, start = ctx.contents(0), ctx.contents(1)
    most = None if count is None or len(count.items) != 1 else count.dims[0]
    place = next((entry.internal for entry in ports if entry.purpose == "execution_condition"), None)
    goes_on = None if place is None else body.contents[place]
    starts, continues = start is not None and start.scalar == 1, None if goes_on is None else goes_on.scalar
    if most is None:
        return None
    # Without a limit, the count is -1.
    if starts and continues == 0 and (most == -1 or ctx.facts.prove_ge(most, 1)):
        return 1
    if not ctx.facts.prove_ge(most, 0):
        return None
    return most if starts and continues == 1 else at_most(ctx, most, least=1 if starts else 0)


# Port maps ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PortEntry:
    """One entry of a port map, or of the back edges.

    tag: "input", "output" or "edge". external: the position of the layer's input or output, None without one. internal:
    the position of the body's input or output. For an edge, external is the body's output, which internal, its input,
    is given in the next iteration. axis: along which slices are taken or put together, from start to end, in parts of
    part_size, which begin stride after one another. purpose: of a Loop's iteration number and condition.
    """

    tag: str
    external: int | None
    internal: int | None
    axis: int | None
    start: int
    end: int
    stride: int
    part_size: int
    purpose: str


def write_ports(layer: Layer, key: str) -> str:
    """Return a port map as text, for an attribute of the mirrored node."""
    prefix = key.removesuffix("port_map") if key.endswith("port_map") else ""
    body = layer.bodies.get(f"{prefix}body")
    return json.dumps([asdict(_entry(layer, body, written)) for written in layer.port_maps[key]])


def read_ports(text: str) -> list[PortEntry]:
    """Return the entries that `write_ports` has written."""
    return [PortEntry(**entry) for entry in json.loads(text)]


def _entry(layer: Layer, body: Graph | None, written: Mapping[str, str]) -> PortEntry:
    tag = written.get("tag", "")
    results, parameters = _ids(body, "Result"), _ids(body, "Parameter")
    if tag == "edge":
        external, internal = _position(results, written, "from-layer"), _position(parameters, written, "to-layer")
    else:
        ports = layer.inputs if tag == "input" else layer.outputs
        external = _position([port.id for port in ports], written, "external_port_id")
        internal = _position(parameters if tag == "input" else results, written, "internal_layer_id")
    axis = _integer(written, "axis", -1)
    return PortEntry(
        tag,
        external,
        internal,
        axis if "axis" in written and axis >= 0 else None,
        _integer(written, "start", 0),
        _integer(written, "end", -1),
        _integer(written, "stride", 1),
        _integer(written, "part_size", 1),
        written.get("purpose", ""),
    )


def _ids(body: Graph | None, kind: str) -> list[int]:
    return [] if body is None else [layer.id for layer in body.layers if layer.type == kind]


def _position(ids: list[int], written: Mapping[str, str], name: str) -> int | None:
    wanted = _integer(written, name, -1)
    return ids.index(wanted) if wanted in ids else None


def _integer(written: Mapping[str, str], name: str, default: int) -> int:
    text = written.get(name, "").strip()
    return int(text) if text.removeprefix("-").isdigit() and text.isascii() else default
