"""Walks a model in rounds until all sizes are followed, reads what the user says, and lists what is in the way."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy

from splitgraph.conversion.plan import errors_of
from splitgraph.conversion.sizes.follow import Follower, Operators
from splitgraph.conversion.sizes.last_walk import LastWalk, Stuck
from splitgraph.conversion.sizes.needs import InputPlace, Need
from splitgraph.conversion.sizes.origins import Origins
from splitgraph.conversion.sizes.values import constant_input
from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.conversion.sizes.weights import WeightReader
from splitgraph.conversion.sizes.windows import may_be_global, window_of
from splitgraph.dim import Dim, DimLike, parse_given_dim, symbols_of
from splitgraph.findings.diagnostics import Diagnostic, SplitgraphError, diagnostic, meant
from splitgraph.inference import Walked
from splitgraph.model.onnx_proto import TensorProto
from splitgraph.model.scopes import MAIN, Scope, node_label, reads, roots
from splitgraph.model.value_type import UNKNOWN, Contents, Item, ValueType
from splitgraph.model.values import tensor_contents
from splitgraph.options import NewSizes

# Each round decides about the sizes that the last one found in the way.
_MOST_ROUNDS = 40


def walk_followed(
    walk: Callable[[], Walked], follower: Follower, weights: WeightReader
) -> tuple[Walked, dict[Need, Stuck]]:
    """Walk a model until nothing more can be decided. Return the last walk, and the needs that are left, with why."""
    for number in range(_MOST_ROUNDS):
        # A number may be a dimension that a later node has.
        met = len(follower.met)
        walked = walk()
        _repeat_for_equal_nodes(walked, follower)
        stuck: dict[Need, Stuck] = {}
        decided, orders = deepcopy((follower.entries, follower.expanded)), dict(follower.orders)
        origins = [Origins(LastWalk(root, walked.graphs, follower), weights) for root in roots(walked.scopes)]
        inside = {**walked.graphs, **follower.bodies}
        for root in roots(walked.scopes):
            Origins(LastWalk(root, inside, follower), weights).find_orders()
        if orders != follower.orders and 2 * number < _MOST_ROUNDS:
            # What was needed may be due to another order.
            continue
        for each in origins:
            for need in follower.needs:
                if need.place.path in each.paths:
                    try:
                        each.follow(need)
                    except Stuck as reason:
                        stuck[need] = reason.with_traceback(None)
        if (decided, orders, met) == ((follower.entries, follower.expanded), follower.orders, len(follower.met)):
            break
    return walked, stuck


def _repeat_for_equal_nodes(walked: Walked, follower: Follower) -> None:
    """A walk sees the first of equal nodes only; what it found there holds for the others."""
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
    for held in (follower.edits, follower.attributes, follower.values, follower.taking_all):
        if before in held:
            held[after] = held[before]  # type: ignore[assignment]
    node = scope.nodes[index]
    location = f"{scope.location}/{node_label(node, index)}"
    for need in [need for need in follower.needs if need.place[:2] == before]:
        place = InputPlace(*after, need.place.position)
        name = node.input[need.place.position]
        follower.needs.append(need._replace(place=place, name=name, location=location))
    for place, axis in [asked for asked in follower.merged if asked[0][:2] == before]:
        follower.merged[place._replace(node=index), axis] = node.input[place.position]
    for key, alternative in [*follower.alternatives.items()]:
        if not isinstance(key[0], InputPlace) and alternative.place[:2] == before:
            follower.alternatives[key] = alternative.repeated_at(location)
        elif isinstance(key[0], InputPlace) and key[0][:2] == before:
            place = InputPlace(*after, key[0].position)
            follower.alternatives[place, key[1]] = alternative._replace(place=place, location=location)


_SLICES = ("Slice", "StridedSlice")
_CARRYING = ("Loop",)
_PLACE = re.compile(r"(.+)\[(\d+)\]")


def given_by_the_user(
    walk: Callable[[], Walked], sizes: NewSizes, operators: Operators, wanted: Wanted
) -> dict[InputPlace, dict[int, DimLike]]:
    """Return the entries of constants that the user says in terms of dimensions, or that stay. Raises
    SplitgraphError.
    """
    said: dict[str, str | None] = {**dict.fromkeys(sizes.keep), **dict(map(_as_pair, sizes.follow))}
    if not said:
        return {}
    walked = walk()
    nodes: dict[str, tuple[Scope, int]] = {}
    twice = set[str]()
    for scope in walked.scopes:
        for index, node in enumerate(scope.nodes):
            location = f"{scope.location}/{node_label(node, index)}"
            twice.update([location] if location in nodes else [])
            nodes[location] = scope, index
    found: dict[InputPlace, dict[int, DimLike]] = {}
    for text, dim in said.items():
        match = _PLACE.fullmatch(text)
        if match is None or match[1] not in nodes:
            near = "" if match is None else meant(match[1], nodes)
            raise SplitgraphError(f"{text!r} names no number of a node{near}; write NODE[ENTRY], as in main/reshape[0]")
        if match[1] in twice:
            raise SplitgraphError(f"{text!r}: several nodes are called {match[1]}; give them names of their own first")
        scope, index = nodes[match[1]]
        node, entry = scope.nodes[index], int(match[2])
        position = operators.saying.get(node.op_type, -1)
        if node.op_type in operators.values:
            held = [_elements(walked, scope, name) is not None for name in node.input]
            position = constant_input(node.op_type, held) or 0
        if node.op_type in _CARRYING and entry in range(2, len(node.input)):
            # What a loop carries on is called by its input.
            entry, position = 0, entry
        window = window_of(node)
        if entry < len(window):
            if dim is not None and not may_be_global(operators.domain, node):
                raise SplitgraphError(
                    f"{text}={dim}: the window is an attribute, which holds numbers; it can only stay"
                )
            said_of = (
                window[entry] if dim is None else _checked(_read_dim(dim, text, wanted), window[entry], text, wanted)
            )
            found.setdefault(InputPlace(scope.path, index, len(node.input)), {})[entry] = said_of
            continue
        numbers = _items(walked, scope, node.input[position]) if 0 <= position < len(node.input) else ()
        own = None if dim is None else _read_dim(dim, text, wanted)
        names = _weights_of(walked, scope, index, operators, wanted)
        if _is_of_weights(walked, scope, names, entry, None if own is None else wanted.before(own), numbers[entry:]):
            found.setdefault(InputPlace(scope.path, index, len(node.input) + 1), {})[entry] = 1 if own is None else own
            if own is not None or not isinstance(dict(enumerate(numbers)).get(entry), (int, float)):
                continue
        if not 0 <= position < len(node.input):
            raise SplitgraphError(
                f"{match[1]} is a {node.op_type} without an input that says a size; where an attribute says it, "
                f"upgrade the model first"
            )
        place = InputPlace(scope.path, index, position)
        known = _elements(walked, scope, node.input[position])
        if node.op_type in _SLICES and known is not None and entry >= len(known.items):
            # Behind the ends come the starts.
            entry, place = entry - len(known.items), place._replace(position=position - 1)
            known = _elements(walked, scope, node.input[position - 1])
        if known is None or not entry < len(known.items):
            raise SplitgraphError(f"{text!r}: there is no constant with an entry {entry}")
        before = known.items[entry]
        if dim is not None and isinstance(before, float) and node.op_type not in operators.values:
            raise SplitgraphError(f"{text}={dim}: the model has {before} there, which is no integer, and so no size")
        if dim is not None:
            before = _checked(_read_dim(dim, text, wanted), before, text, wanted)
        elif not isinstance(before, (int, float)):
            raise SplitgraphError(f"{text!r} is no number, so that it cannot stay as it is")
        found.setdefault(place, {})[entry] = before  # type: ignore[assignment]
    return found


def _elements(walked: Walked, scope: Scope, name: str) -> Contents | None:
    known = walked.graphs[scope.path].constants.get(name)
    return tensor_contents(known) if isinstance(known, TensorProto) else known


def _items(walked: Walked, scope: Scope, name: str) -> tuple[Item, ...]:
    known = _elements(walked, scope, name)
    return () if known is None else known.items


def _weights_of(walked: Walked, scope: Scope, index: int, operators: Operators, wanted: Wanted) -> dict[str, bool]:
    """Return the inputs of a node, and which are weights: what an output is made of is, whatever makes it. Lists that
    say sizes are no weights.
    """
    node, constants = scope.nodes[index], walked.graphs[scope.path].constants
    if scope.path == MAIN and index in wanted.outputs.values():
        return dict.fromkeys(node.input, True)
    saying = operators.flow.saying.get(node.op_type, ())
    return {name: name in constants for position, name in enumerate(node.input) if position not in saying}


def _is_of_weights(
    walked: Walked, scope: Scope, names: Mapping[str, bool], axis: int, size: DimLike | None, held: Sequence[Item]
) -> bool:
    """Return True if an entry may be the axis of weights of a node, or of what has 1 because weights have. names: of
    its inputs, and which are weights. size: what it is said to be, at the old sizes; None if it stays. held: the
    numbers that it may be besides, the first one before all.
    """
    detail = walked.graphs[scope.path]
    shapes = [(name, detail.types[name].shape or ()) for name in names if name in detail.types]
    sizes = {shape[axis] for name, shape in shapes if axis < len(shape) and names[name]}
    if size is not None:
        return size in sizes and size not in held[:1]
    return bool(sizes) or any(shape[axis] == 1 for _, shape in shapes if axis < len(shape))


def _checked(dim: DimLike, before: object, text: str, wanted: Wanted) -> DimLike:
    """Return a dimension that says at the old sizes what the constant says. Raises SplitgraphError."""
    unknown = sorted(symbols_of(dim) - wanted.old.keys() - wanted.places.keys()) if isinstance(dim, Dim) else []
    if unknown:
        raise SplitgraphError(f"{text}={dim}: no input has a dimension {unknown[0]}{meant(unknown[0], wanted.places)}")
    old = wanted.before(dim)
    if isinstance(old, int) and isinstance(before, (int, float)) and before > 0 and old != before:
        told, names = wanted.spelled(f"{text}={dim}"), ", ".join(wanted.spelled(name) for name in wanted.old)
        text = f"{told} is {old} at the old sizes, where the model has {before}; say it in terms of {names}"
        raise SplitgraphError(text)
    return dim


def _read_dim(written: str, place: str, wanted: Wanted) -> DimLike:
    # As messages spell a size that is a number before and after.
    written = wanted.unspelled(written)
    try:
        # -P is counted from the end.
        dim = parse_given_dim(f"0 - {written[1:].lstrip()}" if written.startswith("-") else written, ())
    except ValueError as error:
        raise SplitgraphError(f"{place}: {written!r} is no dimension: {error}") from None
    if dim is None:
        raise SplitgraphError(f"{place} needs a dimension, and not '?'")
    return dim


def _as_pair(text: str) -> tuple[str, str]:
    place, sign, dim = text.rpartition("=")
    if not sign:
        raise SplitgraphError(
            f"reshape --follow {text} is not of the form NODE[ENTRY]=DIMENSION, such as main/reshape[0]=N"
        )
    return place, dim


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
    for location, text in follower.blocked.items():
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
        for index, node in enumerate(scope.nodes):
            given = [types.get(name, UNKNOWN) for name in node.output if name]
            if not given or not all(kind.kind == "unknown" or _is_open(kind) for kind in given):
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
    return kind.kind == "tensor" and kind.shape is None
