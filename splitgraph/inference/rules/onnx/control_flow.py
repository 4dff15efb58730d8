"""If, Loop, Scan and SequenceMap: walking their bodies, and the types that hold outside a body."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from splitgraph.dim import Dim, DimLike, Facts
from splitgraph.inference.context import Body, NodeContext, rule
from splitgraph.model.onnx_proto import GraphProto
from splitgraph.model.scopes import plain_domain
from splitgraph.model.value_type import UNKNOWN, ValueType, scalar, sequence, tensor
from splitgraph.model.values import value_type


def join(ctx: NodeContext, first: ValueType, second: ValueType, facts: tuple[Facts, Facts] | None = None) -> ValueType:
    """Return the common type of two values, with a fresh symbol where dimensions differ. facts: what holds where the
    value is the first one, and where it is the second.
    """
    if first.kind != second.kind or first.kind == "unknown" or first.element != second.element:
        return UNKNOWN
    dtype = first.dtype if first.dtype == second.dtype else None
    if first.shape is None or second.shape is None or len(first.shape) != len(second.shape):
        return ValueType(first.kind, dtype, None, first.element)
    pairs = zip(first.shape, second.shape, strict=True)
    return ValueType(first.kind, dtype, tuple(_common_dim(ctx, a, b, facts) for a, b in pairs), first.element)


def _common_dim(
    ctx: NodeContext, first: DimLike | None, second: DimLike | None, facts: tuple[Facts, Facts] | None
) -> DimLike:
    if first is None or second is None:
        return ctx.fresh()
    if first == second or ctx.facts.prove_eq(first, second):
        return first
    # What one branch requires holds where it runs: if its dimension is the other's there, it is the other's everywhere.
    if facts is not None and facts[0].prove_eq(first, second):
        return second
    if facts is not None and facts[1].prove_eq(first, second):
        return first
    return ctx.fresh()


def settle(
    ctx: NodeContext, before: Sequence[ValueType], after: Sequence[ValueType], lost: dict[Dim, None], empty: set[int]
) -> list[ValueType]:
    """Return the types of carried values that hold before and after an iteration.

    lost: symbols of dimensions that change, in the order in which they are found. empty: positions of sequences that
    have no elements yet; for these, the type that the body gives holds. A lost dimension keeps its symbol from round to
    round, so the types settle as soon as nothing more is lost.
    """
    settled = []
    for position, (old, new) in enumerate(zip(before, after, strict=False)):
        if position in empty and old.kind == new.kind and new.dtype in (None, old.dtype):
            settled.append(new)
            continue
        joined = join(ctx, old, new)
        if joined.shape is None or old.shape is None:
            settled.append(joined)
            continue
        shape = []
        for mine, common in zip(old.shape, joined.shape, strict=True):
            if mine == common or mine in lost:
                shape.append(mine)
                continue
            if isinstance(common, Dim):
                lost[common] = None
            shape.append(common)
        settled.append(joined.with_shape(shape))
    return settled


@rule("If")
def infer_if(ctx: NodeContext) -> Sequence[ValueType]:
    """Walk both branches. The outputs have what the branches have in common, or the taken branch's types where the
    condition is constant.
    """
    for name in ("then_branch", "else_branch"):
        graph = ctx.attribute(name)
        if isinstance(graph, GraphProto) and graph.input:
            # Only the reference evaluator runs it.
            ctx.find("SG302", f"{name} has the input {graph.input[0].name!r}; a branch of If has no inputs")
            return ()
    return infer_branches(ctx, lambda: ctx.walk_body("then_branch", ()), lambda: ctx.walk_body("else_branch", ()))


def infer_branches(
    ctx: NodeContext, walk_then: Callable[[], Body | None], walk_else: Callable[[], Body | None]
) -> Sequence[ValueType]:
    """Return the common outputs of both branches, each walked once. The first input is the condition."""
    condition = ctx.contents(0)
    taken = None if condition is None else condition.scalar
    if not isinstance(taken, int):
        return _infer_either(ctx, walk_then, walk_else)
    # What is wrong in a branch that never runs is wrong for no input.
    with ctx.muted(taken == 0):
        then = walk_then()
    with ctx.muted(taken == 1):
        other = walk_else()
    if then is None or other is None:
        return ()
    return _taken(ctx, then if taken else other)


def _taken(ctx: NodeContext, chosen: Body) -> Sequence[ValueType]:
    for index, known in enumerate(chosen.contents):
        ctx.set_contents(index, known)
    return chosen.types


def _infer_either(
    ctx: NodeContext, walk_then: Callable[[], Body | None], walk_else: Callable[[], Body | None]
) -> Sequence[ValueType]:
    """Return the common outputs of both branches, or those of one branch if the other can never run."""
    with ctx.branches.hold() as found_then:
        then = walk_then()
    with ctx.branches.hold() as found_else:
        other = walk_else()
    spoiled = [ctx.branches.spoil(findings) for findings in (found_then, found_else)]
    if spoiled.count(True) == 1:
        ctx.avoid(found_then if spoiled[0] else found_else)
    ctx.release([*found_then, *found_else])
    if then is None or other is None:
        return ()
    if spoiled.count(True) == 1:
        return _taken(ctx, other if spoiled[0] else then)
    if len(then.types) != len(other.types):
        ctx.find(
            "SG302", f"the branches have {len(then.types)} and {len(other.types)} outputs; the numbers must be equal"
        )
        return ()
    outputs = []
    for index, (a, b) in enumerate(zip(then.types, other.types, strict=True)):
        if "unknown" not in (a.kind, b.kind) and (a.kind != b.kind or (a.dtype and b.dtype and a.dtype != b.dtype)):
            ctx.find(
                "SG302",
                f"output {index} is {a} in one branch and {b} in the other; kind and element type must be equal",
            )
        outputs.append(join(ctx, a, b, (then.facts, other.facts)))
        if then.contents[index] == other.contents[index]:
            ctx.set_contents(index, then.contents[index])
    return outputs


@rule("Loop")
def infer_loop(ctx: NodeContext) -> Sequence[ValueType]:
    """Walk the body until the types of loop-carried values settle. A dimension that an iteration changes is unknown."""
    graph = ctx.attribute("body")
    if not isinstance(graph, GraphProto):
        return ()
    carried = [ctx.complete(ctx.input(index)) for index in range(2, len(ctx.node.input))]
    if len(graph.input) != len(carried) + 2 or len(graph.output) < len(carried) + 1:
        text = f"the body has {len(graph.input)} inputs and {len(graph.output)} outputs"
        ctx.find("SG302", f"{text}, which does not fit {len(carried)} carried values")
        return ()
    for index, what in enumerate(("trip count", "condition")):
        given = ctx.input(index).shape
        if given is not None and (len(given) > 1 or (given and isinstance(given[0], int) and given[0] != 1)):
            ctx.find("SG302", f"the {what} of Loop is {ctx.input(index)}; it must have one element")
            return ()
    with ctx.branches.hold() as findings:
        body, results = walk_until_settled(ctx, _counters(ctx, graph), carried, (), first=1)
    if not _starts(ctx):
        ctx.avoid(findings)
    ctx.release(findings)
    if body is None:
        return ()
    trips = _trips(ctx, graph, body)
    if trips is not None:
        results = [_grown(ctx, results, index, carried[index], body, trips) for index in range(len(results))]
    stacked = ctx.fresh() if trips is None else trips
    return [*results, *(_stacked(scanned, stacked) for scanned in body.types[1 + len(carried) :])]


def _starts(ctx: NodeContext) -> bool:
    """Return True if the loop is known to run at least once."""
    count, condition = ctx.contents(0), ctx.contents(1)
    trips = None if count is None or not count.items else count.dims[0]
    is_counted = not ctx.has_input(0) or (trips is not None and ctx.facts.prove_ge(trips, 1))
    return is_counted and (not ctx.has_input(1) or (condition is not None and condition.scalar == 1))


def _counters(ctx: NodeContext, graph: GraphProto) -> list[ValueType]:
    """Return the types of the body's iteration number and condition: scalars, or vectors of one element if it declares
    vectors, as converters from TensorFlow do and runtimes pass them. A condition that goes in as a scalar stays one.
    """
    number, condition = (value_type(value.type).shape for value in graph.input[:2])
    is_vector = number is not None and len(number) == 1, condition is not None and len(condition) == 1
    return [
        tensor("int64", (1,) if is_vector[0] else ()),
        tensor("bool", (1,) if is_vector[1] and ctx.input(1).shape != () else ()),
    ]


def _grown(
    ctx: NodeContext, results: Sequence[ValueType], index: int, first: ValueType, body: Body, trips: DimLike
) -> ValueType:
    """Return the type of a carried value after a number of iterations. If each iteration changes a dimension by the
    same amount, and the model's inputs fix this amount, the dimension changes by the amount times the number of
    iterations.
    """
    value = results[index]
    before, after = body.given[2 + index], body.types[1 + index]
    if value.kind != "tensor" or not (value.shape and first.shape and before and before.shape and after.shape):
        return value
    shape = list(value.shape)
    for axis, (start, size, given) in enumerate(zip(first.shape, before.shape, after.shape, strict=True)):
        # Only a dimension that the walk found to change: a number that the body declares is the author's word.
        if not ctx.is_generated(size) or size == start or given is None or start is None or size is None:
            continue
        growth = given - size
        if ctx.is_of_inputs(growth):
            shape[axis] = start + trips * growth
    return value.with_shape(shape)


# Each round loses at least one dimension of one value; a body that takes more is left without shapes.
MAX_ROUNDS = 16


def walk_until_settled(
    ctx: NodeContext, before: Sequence[ValueType], carried: list[ValueType], after: Sequence[ValueType], first: int
) -> tuple[Body | None, list[ValueType]]:
    """Walk a loop's body until the types of its carried values hold for every iteration.

    before, after: types of the body's inputs around the carried ones. first: position of the first carried output.
    Gives the body of the last walk, and the types of the carried values after the loop, however often it runs.
    """
    # The carried values are the node's last inputs but those after them.
    start = len(ctx.node.input) - len(carried) - len(after)
    empty = {i for i in range(len(carried)) if (info := ctx.sequence(start + i)) is not None and info.length == 0}

    def walk(known: Sequence[ValueType], empty: Iterable[int]) -> Body | None:
        return ctx.walk_body("body", [*before, *known, *after], [len(before) + index for index in empty])

    body, results, _ = settle_iterations(ctx, carried, empty, walk, lambda body: body.types[first:])
    return body, results


def settle_iterations(
    ctx: NodeContext,
    carried: list[ValueType],
    empty: set[int],
    walk: Callable[[Sequence[ValueType], Iterable[int]], Body | None],
    carried_on: Callable[[Body], Sequence[ValueType]],
) -> tuple[Body | None, list[ValueType], Collection[Dim]]:
    """Walk a body, given the types of its carried values, until those that it carries on are the same.

    Gives the body of the last walk, the types of the carried values after the loop, however often it runs, and the
    symbols of dimensions that an iteration changes.
    """
    lost = dict[Dim, None]()
    body, is_walked = None, False
    for _ in range(MAX_ROUNDS):
        with ctx.quietly():
            body = walk(carried, empty)
        if body is None:
            return None, [], lost
        settled = settle(ctx, carried, carried_on(body), lost, empty)
        is_walked, empty = not empty, set()
        if settled == carried:
            break
        carried = settled
    else:
        is_walked, carried = False, [value.with_shape(None) for value in carried]
    # Once more for what it reports. Within a loop that is settling itself nobody listens: to walk each body in it again
    # would triple the time with every level.
    if not (is_walked and ctx.is_quiet):
        body = walk(carried, ())
    if body is None:
        return None, [], lost
    # A dimension that changes from one iteration to the next has one more value, of its own, when the loop has ended.
    ended = {dim: ctx.fresh() for dim in lost}
    results = [_renamed(join(ctx, old, new), ended) for old, new in zip(carried, carried_on(body), strict=False)]
    return body, results, lost


def _renamed(value: ValueType, names: dict[Dim, Dim]) -> ValueType:
    if value.shape is None:
        return value
    return value.with_shape([names.get(dim, dim) if isinstance(dim, Dim) else dim for dim in value.shape])


def _stacked(scanned: ValueType, trips: DimLike) -> ValueType:
    if scanned.kind != "tensor" or scanned.shape is None:
        return scanned.with_shape(None) if scanned.kind == "tensor" else UNKNOWN
    return tensor(scanned.dtype, (trips, *scanned.shape))


def _trips(ctx: NodeContext, graph: GraphProto, body: Body) -> DimLike | None:
    """Return the number of iterations if only the trip count can end the loop; else None."""
    count = ctx.contents(0)
    most = None if count is None else count.dims[0] if count.items else None
    start = ctx.contents(1)
    starts = not ctx.has_input(1) or (start is not None and start.scalar == 1)
    goes_on = body.contents[0] == scalar(1) or _passes_condition(ctx, graph)
    if most is None or not starts or not goes_on or not ctx.facts.prove_ge(most, 0):
        return None
    return most


def _passes_condition(ctx: NodeContext, graph: GraphProto) -> bool:
    """Return True if the body gives its condition input back through nothing but Identity."""
    source = {
        node.output[0]: node.input[0]
        for node in graph.node
        if node.op_type == "Identity"
        and plain_domain(node.domain) == ""
        and not ctx.is_call(node)
        and node.input
        and node.output
    }
    name = graph.output[0].name
    while name in source:
        name = source.pop(name)
    return bool(name == graph.input[1].name)


@rule("SequenceMap")
def infer_sequence_map(ctx: NodeContext) -> Sequence[ValueType]:
    """Walk the body on an element of each sequence. Elements may differ: only static dimensions hold for all."""
    elements = [
        tensor(given.dtype, given.shape) if given is not None and given.kind == "sequence" else given
        for given in ctx.inputs
    ]
    if not _fits_body(ctx, elements):
        return ()
    with ctx.branches.hold() as findings:
        body = ctx.walk_body("body", elements)
    info = ctx.sequence(0)
    if info is None or info.length is None or not ctx.facts.prove_ge(info.length, 1):
        ctx.avoid(findings)
    ctx.release(findings)
    if body is None:
        return ()
    return [
        sequence(made.dtype, None if made.shape is None else [d if isinstance(d, int) else None for d in made.shape])
        for made in body.types
    ]


@rule("Scan")
def infer_scan(ctx: NodeContext) -> Sequence[ValueType] | None:
    """Walk the body on one slice of each scanned input. State variables are carried as in Loop; scanned outputs are
    stacked.
    """
    if ctx.since_version < 9:
        return _infer_scan_8(ctx)
    count = ctx.attribute("num_scan_inputs")
    states = len(ctx.node.input) - count
    # Of as many as there are inputs at most: the attribute may hold any number.
    axes = ctx.attribute("scan_input_axes") or (0,) * min(count, len(ctx.node.input))
    if states < 0 or len(axes) != count:
        ctx.find("SG302", f"num_scan_inputs {count} with {len(axes)} axes does not fit {len(ctx.node.input)} inputs")
        return ()
    slices, length = _slices(ctx, states, axes)
    return _scan_outputs(ctx, states, slices, length, ctx.attribute("scan_output_axes"), batch=None)


def _slices(
    ctx: NodeContext, states: int, axes: Sequence[int], skip: int = 0
) -> tuple[list[ValueType], DimLike | None]:
    """Return one slice of each scanned input, and the common length of the scan."""
    slices, length = [], None
    for position, axis in enumerate(axes):
        scanned = ctx.input(states + skip + position)
        if scanned.kind != "tensor" or scanned.shape is None:
            slices.append(scanned.with_shape(None))
            continue
        rank = len(scanned.shape)
        if not -rank <= axis < rank:
            ctx.find(
                "SG302",
                f"scan axis {axis} is out of range for a tensor of rank {rank}; it must be in [{-rank}, {rank - 1}]",
            )
            slices.append(scanned.with_shape(None))
            continue
        dim = scanned.shape[axis]
        if length is None:
            length = dim
        elif dim is not None:
            ctx.require(
                length, "==", dim, message=f"the scanned inputs have lengths {length} and {dim}; they must be equal"
            )
        slices.append(scanned.with_shape([d for i, d in enumerate(scanned.shape) if i != axis % rank]))
    return slices, length


def _scan_outputs(
    ctx: NodeContext,
    states: int,
    slices: Sequence[ValueType],
    length: DimLike | None,
    output_axes: Sequence[int] | None,
    batch: DimLike | None,
    skip: int = 0,
) -> Sequence[ValueType]:
    carried = [ctx.complete(_without_batch(ctx.input(skip + index), batch)) for index in range(states)]
    if not _fits_body(ctx, [*carried, *slices]):
        return ()
    with ctx.branches.hold() as findings:
        body, results = walk_until_settled(ctx, (), carried, slices, first=0)
    if length is None or not ctx.facts.prove_ge(length, 1):
        ctx.avoid(findings)
    ctx.release(findings)
    if body is None:
        return ()
    steps: DimLike = ctx.fresh() if length is None else length
    for position, scanned in enumerate(body.types[states:]):
        axis = 0 if not output_axes or position >= len(output_axes) else output_axes[position]
        results.append(_inserted(scanned, axis, steps))
    if batch is None:
        return results
    return [value if value.shape is None else value.with_shape((batch, *value.shape)) for value in results]


def _fits_body(ctx: NodeContext, given: Sequence[ValueType | None]) -> bool:
    """Report inputs of a body that do not fit its declarations: onnx and onnxruntime refuse such a Scan or SequenceMap,
    but ignore shapes that the body of a Loop declares. True when all inputs fit.
    """
    graph = ctx.attribute("body")
    if not isinstance(graph, GraphProto):
        return True
    if len(graph.input) != len(given):
        text = f"the body of {ctx.node.op_type} has {len(graph.input)} inputs, but the node passes {len(given)}"
        ctx.find("SG302", text)
        return False
    for value, known in zip(graph.input, given, strict=True):
        declared = value_type(value.type)
        if known is None or declared.shape is None or known.shape is None:
            continue
        pairs = zip(declared.shape, known.shape, strict=False)
        if len(declared.shape) != len(known.shape) or any(
            isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs
        ):
            ctx.find("SG302", f"the body declares {value.name!r} as {declared}, but receives {known}")
            return False
    return True


def _inserted(scanned: ValueType, axis: int, steps: DimLike) -> ValueType:
    if scanned.kind != "tensor" or scanned.shape is None:
        return tensor(scanned.dtype, None)
    rank = len(scanned.shape) + 1
    shape = list(scanned.shape)
    shape.insert(axis % rank, steps)
    return tensor(scanned.dtype, shape)


def _infer_scan_8(ctx: NodeContext) -> Sequence[ValueType]:
    """Walk the body of Scan-8: a batch dimension comes first everywhere, sequence lengths are the first input, and axis
    1 is scanned.
    """
    count = ctx.attribute("num_scan_inputs")
    states = len(ctx.node.input) - 1 - count
    if states < 0:
        ctx.find("SG302", f"num_scan_inputs {count} does not fit {len(ctx.node.input)} inputs")
        return ()
    batch: DimLike | None = None
    for index in range(1, len(ctx.node.input)):
        shape = ctx.input(index).shape
        dim = shape[0] if shape else None
        if dim is None:
            continue
        text = f"Scan-8: the batch sizes are {batch} and {dim}; they must be equal"
        if batch is not None and not ctx.require(batch, "==", dim, message=text):
            return ()
        batch = dim if batch is None else batch
    slices, length = _slices(ctx, states, (1,) * count, skip=1)
    slices = [_without_batch(value, batch) for value in slices]
    return _scan_outputs(ctx, states, slices, length, None, ctx.fresh() if batch is None else batch, skip=1)


def _without_batch(value: ValueType, batch: DimLike | None) -> ValueType:
    return value.with_shape(value.shape[1:]) if batch is not None and value.shape else value
