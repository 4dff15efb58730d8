"""Walks a model in rounds until all sizes are followed, and lists what is in the way in the end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from copy import deepcopy

from splitgraph.conversion.plan import errors_of
from splitgraph.conversion.sizes.follow import Follower, Operators
from splitgraph.conversion.sizes.last_walk import LastWalk, Stuck
from splitgraph.conversion.sizes.needs import InputPlace, Need
from splitgraph.conversion.sizes.origins import Origins
from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.conversion.sizes.weights import WeightReader
from splitgraph.dim import Dim, DimLike, symbols_of
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference import Walked
from splitgraph.model.scopes import MAIN, Scope, node_label, reads, roots
from splitgraph.model.value_type import UNKNOWN, ValueType

# Each round decides about the sizes that the last one found in the way.
_MOST_ROUNDS = 40


def walk_followed(
    walk: Callable[[], Walked], follower: Follower, weights: WeightReader
) -> tuple[Walked, dict[Need, Stuck]]:
    """Walk a model until nothing more can be decided. Return the last walk, and the needs that nothing meets, each with
    the reason.
    """
    decided = follower.decided
    for number in range(_MOST_ROUNDS):
        # A number may mean a dimension that only a later node has.
        met = len(decided.met)
        walked = walk()
        _repeat_for_equal_nodes(walked, follower)
        stuck: dict[Need, Stuck] = {}
        before = deepcopy((decided.entries, decided.expanded)), dict(decided.orders), met
        origins = [Origins(LastWalk(root, walked.graphs, follower), weights) for root in roots(walked.scopes)]
        inside = {**walked.graphs, **follower.seen.bodies}
        for root in roots(walked.scopes):
            Origins(LastWalk(root, inside, follower), weights).find_orders()
        if before[1] != decided.orders and 2 * number < _MOST_ROUNDS:
            # With these orders of digits, nodes may need other sizes.
            continue
        for each in origins:
            for need in follower.seen.needs:
                if need.place.path in each.paths:
                    try:
                        each.follow(need)
                    except Stuck as reason:
                        stuck[need] = reason.with_traceback(None)
        if before == ((decided.entries, decided.expanded), decided.orders, len(decided.met)):
            break
    return walked, stuck


def _repeat_for_equal_nodes(walked: Walked, follower: Follower) -> None:
    """Note for all equal nodes what the walk has found at the first of them, the only one that it saw."""
    for scope in walked.scopes:
        first: dict[int, int] = {}
        for index, visit in enumerate(walked.visits(scope)):
            if visit is None:
                continue
            seen = first.setdefault(id(visit), index)
            if seen != index:
                _repeat(follower, scope, seen, index)


def _repeat(follower: Follower, scope: Scope, seen: int, index: int) -> None:
    before, after = (scope.path, seen), (scope.path, index)
    for held in (follower.seen.edits, follower.seen.attributes, follower.seen.values, follower.seen.taking_all):
        if before in held:
            held[after] = held[before]  # type: ignore[assignment]
    node = scope.nodes[index]
    location = f"{scope.location}/{node_label(node, index)}"
    for need in [need for need in follower.seen.needs if need.place[:2] == before]:
        place = InputPlace(*after, need.place.position)
        name = node.input[need.place.position]
        follower.seen.needs.append(need._replace(place=place, name=name, location=location))
    for place, axis in [asked for asked in follower.seen.merged if asked[0][:2] == before]:
        follower.seen.merged[place._replace(node=index), axis] = node.input[place.position]
    for key, alternative in [*follower.seen.alternatives.items()]:
        if not isinstance(key[0], InputPlace) and alternative.place[:2] == before:
            follower.seen.alternatives[key] = alternative.repeated_at(location)
        elif isinstance(key[0], InputPlace) and key[0][:2] == before:
            place = InputPlace(*after, key[0].position)
            follower.seen.alternatives[place, key[1]] = alternative._replace(place=place, location=location)


# What is in the way ---------------------------------------------------------------------------------------------------


def in_the_way(
    walked: Walked, follower: Follower, stuck: Mapping[Need, Stuck], known: Collection[str] = ()
) -> Iterator[Diagnostic]:
    """Yield what is left in the way of the new sizes. known: where the model has errors without them."""
    wanted = follower.wanted
    for need, reason in stuck.items():
        wish = f"to be {wanted.after(need.dim)} along axis {need.axis}"
        if need.digits:
            wish = f"to count all of [{', '.join(str(wanted.after(dim)) for dim in need.digits)}]"
        text = f"needs {need.name!r} {wish}, and {wanted.spelled(str(reason))}"
        yield diagnostic("SG420", text, need.location, help=reason.help)
    told = {need.location for need in stuck}
    for location, text in follower.seen.blocked.items():
        yield diagnostic("SG420", wanted.spelled(text), location)
        told.add(location)
    for location, text in (
        *_replaceable_sizes(walked, wanted, follower.operators),
        *_unknown_results(walked, wanted),
    ):
        if location not in told:
            told.add(location)
            yield diagnostic("SG420", wanted.spelled(text), location)
    told.update(known)
    for error in errors_of(walked):
        if error.location not in told:
            yield diagnostic("SG420", f"with the new sizes: {error.message}", error.location)
            told.add(error.location)


def _unknown_results(walked: Walked, wanted: Wanted) -> Iterator[tuple[str, str]]:
    """Yield the nodes that read a dimension that changes, and of whose results nothing is known."""
    for scope in walked.scopes:
        types = walked.graphs[scope.path].types if scope.path in walked.graphs else {}
        # A rank that readers demand says nothing of the sizes.
        demanded = walked.demands.get(scope.path, {})
        for index, node in enumerate(scope.nodes):
            given = [demanded.get(name) or types.get(name, UNKNOWN) for name in node.output if name]
            if not given or not all(map(_is_open, given)):
                continue
            own = set(node.input)
            dims = ((name, dim) for name in reads(node) if name in types for dim in types[name].shape or ())
            # What a body reads of a batch may be one item after the other.
            read = (dim for name, dim in dims if name in own or _is_length(dim, wanted))
            changing = next((dim for dim in read if wanted.changes(dim)), None)
            if changing is not None:
                location = f"{scope.location}/{node_label(node, index)}"
                yield location, f"what {node.op_type} makes of {changing} is not known"


def _is_length(dim: DimLike | None, wanted: Wanted) -> bool:
    """Return True for a size that is not made of batches alone."""
    return isinstance(dim, Dim) and not symbols_of(dim) <= wanted.unquestioned


def _replaceable_sizes(walked: Walked, wanted: Wanted, operators: Operators) -> Iterator[tuple[str, str]]:
    """Yield the nodes whose sizes stand in a default that a caller may replace."""
    main = next((scope for scope in walked.scopes if scope.path == MAIN), None)
    if main is None or main.is_function:
        return
    detail = walked.graphs[MAIN]
    defaults = {value.name for value in main.proto.input} & {tensor.name for tensor in main.proto.initializer}
    for index, node in enumerate(main.nodes) if defaults else ():
        position = operators.saying.get(node.op_type, len(node.input))
        name = node.input[position] if position < len(node.input) else ""
        data = detail.types.get(node.input[0], UNKNOWN).shape if node.input else None
        if name in defaults and name not in detail.constants and any(map(wanted.changes, data or ())):
            text = f"{name!r} says a size, and is a default that a caller may replace"
            yield f"{main.location}/{node_label(node, index)}", text


def _is_open(kind: ValueType) -> bool:
    """Return True for a value of which no size is known."""
    if kind.shape is None:
        return kind.kind in ("tensor", "unknown")
    return bool(kind.shape) and all(dim is None for dim in kind.shape)
