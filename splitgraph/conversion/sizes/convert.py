"""A model with other sizes: its inputs get them, and what follows from them follows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from splitgraph.conversion.apply import apply_plan
from splitgraph.conversion.inlining import inline_functions, told_inlined
from splitgraph.conversion.plan import Plan, errors_of
from splitgraph.conversion.repair import repaired
from splitgraph.conversion.rewrite import Rewrite, step
from splitgraph.conversion.sizes.follow import Follower, InputPlace, Need
from splitgraph.conversion.sizes.origins import Origins, Stuck
from splitgraph.conversion.sizes.wanted import Wanted, read_wanted, relabelled
from splitgraph.conversion.sizes.write import NotWritable, SizeWriter
from splitgraph.dim import Dim, DimLike, Obligation, parse_given_dim, substitute
from splitgraph.findings.diagnostics import Diagnostic, SplitgraphError, diagnostic, meant
from splitgraph.inference import Walked, infer_model, walk_model
from splitgraph.model.names import FreshNames, used_names
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import MAIN, GraphPath, Scope, node_label, roots, scopes
from splitgraph.model.value_type import Contents
from splitgraph.model.values import write_dim
from splitgraph.options import STRICT, Leeway, NewSizes

# Each round decides about the sizes that the last one found in the way.
_MOST_ROUNDS = 40
# Sizes at which a requirement may hold, besides the old one.
_TRIED = (*range(1, 18), *(2**power for power in range(5, 13)), *(96, 160, 192, 224, 320, 384, 640, 768, 1280))


def convert_sizes(model: ModelProto, sizes: NewSizes, leeway: Leeway = STRICT) -> Rewrite[ModelProto]:
    """Return a copy of the model whose inputs have other sizes. Constants that say an old size say it in terms of the
    new dimension. Raises ConversionError with everything that is in the way, SplitgraphError for wrong sizes.
    """
    return replace(convert_to(model, read_wanted(model, sizes), sizes.follow, leeway), new_sizes=sizes)


def convert_to(
    model: ModelProto, wanted: Wanted, follow: Sequence[str] = (), leeway: Leeway = STRICT
) -> Rewrite[ModelProto]:
    """Do the same with sizes that were read. follow: as in `NewSizes`."""
    plan = Plan()
    rewrite, walked = repaired(model, leeway)
    plan.refuse_errors(walked)
    plan.raise_blockers("the model is wrong", rewrite.diagnostics)
    rewrite, leeway = rewrite.then(_without_functions(rewrite.model)), walked.leeway
    model = rewrite.model
    labelled = relabelled(model, wanted)
    follower = Follower(wanted)
    follower.elements.update(_given_by_the_user(labelled, follow))
    walked, stuck = _followed(labelled, follower, leeway)
    plan.blockers += _in_the_way(walked, follower, stuck)
    plan.raise_blockers("the sizes cannot change")
    names = FreshNames(used_names(labelled, walked.scopes))
    for root in roots(walked.scopes):
        plan.start(root)
        try:
            SizeWriter(plan, walked, follower, names, root).run()
        except NotWritable as reason:
            plan.blockers.append(diagnostic("SG420", str(reason), root[0].location))
    plan.raise_blockers("the sizes cannot change")
    written = apply_plan(plan, labelled)
    result = _declared_anew(written.model, wanted)
    return rewrite.then(replace(written, held=result))


def _without_functions(model: ModelProto) -> Rewrite[ModelProto]:
    """Return the model with its functions inlined: a call may need other sizes than the next one."""
    if not model.functions:
        return step(model)
    try:
        inlined = inline_functions(model, ours_too=True)
    except ValueError as error:
        plan = Plan(blockers=[diagnostic("SG420", f"onnx cannot inline the local functions: {error}", "main")])
        plan.raise_blockers("the sizes cannot change")
        raise
    note = diagnostic("SG413", told_inlined(model), "main", severity="info")
    return step(model).then(step(inlined, (), [note]))


# Following ------------------------------------------------------------------------------------------------------------


def _followed(model: ModelProto, follower: Follower, leeway: Leeway) -> tuple[Walked, dict[Need, str]]:
    """Walk a model until nothing more can be decided. Return the last walk, and the needs that are left, with why."""
    for _ in range(_MOST_ROUNDS):
        walked = walk_model(model, leeway, follower)
        _repeat_for_equal_nodes(walked, follower)
        stuck: dict[Need, str] = {}
        decided = dict(follower.elements), dict(follower.shapes), dict(follower.outer)
        for root in roots(walked.scopes):
            paths = {scope.path for scope in root}
            origins = Origins(root, walked.graphs, follower)
            for need in follower.needs:
                if need.place.path in paths:
                    try:
                        origins.follow(need)
                    except Stuck as reason:
                        stuck[need] = str(reason)
            _find_what_is_outside(origins, paths, follower)
        if decided == (follower.elements, follower.shapes, follower.outer):
            break
    return walked, stuck


def _find_what_is_outside(origins: Origins, paths: Collection[GraphPath], follower: Follower) -> None:
    """Find out what stands outside of N in dimensions of 24*N that the last walk met."""
    for (place, axis), name in follower.merged.items():
        if place.path in paths and (place, axis) not in follower.outer:
            try:
                follower.outer[place, axis] = origins.outer(place.path, name, axis)
            except Stuck:
                # Then the outermost place is taken, as before.
                follower.outer[place, axis] = None


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
    for held in (follower.edits, follower.attributes):
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
    for doubt in [doubt for doubt in follower.doubts if doubt.place[:2] == before]:
        follower.doubts.append(doubt._replace(place=InputPlace(*after, doubt.place.position), location=location))


# The input that says a size, by operator.
_SAYING = {
    "ConstantOfShape": 0,
    "Expand": 1,
    "Range": 1,
    "Reshape": 1,
    "Resize": 3,
    "Slice": 2,
    "Split": 1,
    "Tile": 1,
    "TopK": 1,
}
_PLACE = re.compile(r"(.+)\[(\d+)\]")


def _given_by_the_user(model: ModelProto, given: Sequence[str]) -> dict[InputPlace, Contents]:
    """Return the elements of constants that the user says in terms of dimensions. Raises SplitgraphError."""
    said = dict(map(_as_pair, given))
    if not said:
        return {}
    walked = walk_model(model)
    nodes = {
        f"{scope.location}/{node_label(node, index)}": (scope, index)
        for scope in walked.scopes
        for index, node in enumerate(scope.nodes)
    }
    found: dict[InputPlace, Contents] = {}
    for text, dim in said.items():
        match = _PLACE.fullmatch(text)
        if match is None or match[1] not in nodes:
            near = "" if match is None else meant(match[1], nodes)
            raise SplitgraphError(f"{text!r} names no number of a node{near}; write NODE[ENTRY], as in main/reshape[0]")
        scope, index = nodes[match[1]]
        node, entry = scope.nodes[index], int(match[2])
        position = _SAYING.get(node.op_type, -1)
        if not 0 <= position < len(node.input):
            raise SplitgraphError(f"{match[1]} is a {node.op_type}, which has no input that says a size")
        place = InputPlace(scope.path, index, position)
        known = found.get(place) or walked.graphs[scope.path].constants.get(node.input[position])
        if not isinstance(known, Contents) or not entry < len(known.items):
            raise SplitgraphError(f"{text!r}: there is no constant with an entry {entry}")
        items = list(known.items)
        items[entry] = _read_dim(dim, text)
        found[place] = Contents(known.shape, tuple(items))
    return found


def _read_dim(written: str, place: str) -> DimLike:
    try:
        dim = parse_given_dim(written, ())
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


def _in_the_way(walked: Walked, follower: Follower, stuck: Mapping[Need, str]) -> Iterator[Diagnostic]:
    """Yield what is left in the way of the new sizes."""
    wanted = follower.wanted
    for need, reason in stuck.items():
        text = f"needs {need.name!r} to be {wanted.after(need.dim)} along axis {need.axis}, and {reason}"
        yield diagnostic("SG420", text, need.location)
    told = {need.location for need in stuck}
    for location, text in follower.blocked.items():
        yield diagnostic("SG420", text, location)
        told.add(location)
    for doubt in follower.doubts:
        if doubt.place not in follower.elements:
            text = f"entry {doubt.entry} can mean {doubt.choices}"
            help = f"Say it: reshape --follow {doubt.location}[{doubt.entry}]=N, in terms of the new dimensions."
            yield diagnostic("SG421", text, doubt.location, help=help)
            told.add(doubt.location)
    for error in errors_of(walked):
        if error.location not in told:
            yield diagnostic("SG420", f"with the new sizes: {error.message}", error.location)
            told.add(error.location)
    for requirement in walked.requirements:
        obligation = requirement.obligation
        if requirement.location not in told and _forbids(obligation, wanted):
            told.add(requirement.location)
            yield diagnostic("SG420", f"needs {_spelled(obligation, wanted)}", requirement.location)


def _spelled(obligation: Obligation, wanted: Wanted) -> str:
    places = {name: f"{wanted.places[name].input}[{wanted.places[name].axis}]" for name in wanted.new}
    text = str(obligation)
    for name, place in places.items():
        text = text.replace(name, place)
    return text


def _forbids(obligation: Obligation, wanted: Wanted) -> bool:
    """Return True for a requirement that does not hold at the wanted numbers, or at the old size of a symbol only."""
    names = obligation.symbols & wanted.old.keys()
    if not names or (obligation.relation == ">=" and not names <= wanted.new.keys()):
        return False
    if names <= wanted.new.keys():
        return not _holds(obligation, wanted.new)
    for name in names - wanted.new.keys():
        others = {**wanted.old, **wanted.new}
        tried = (size for size in (*_TRIED, wanted.old[name] * 2, wanted.old[name] * 3) if size != wanted.old[name])
        # One other size is a coincidence: N == 24 where 24 items broadcast with 24 positions.
        if sum(_holds(obligation, {**others, name: size}) for size in tried) < 2:
            return True
    return False


def _holds(obligation: Obligation, sizes: Mapping[str, int]) -> bool:
    """Return False if an obligation cannot hold at these sizes; True also where other symbols decide."""
    left, right = (
        substitute(side, sizes) if isinstance(side, Dim) else side for side in (obligation.lhs, obligation.rhs)
    )
    if isinstance(left, Dim) or isinstance(right, Dim):
        return True
    return left == right if obligation.relation == "==" else left >= right


# Declared types -------------------------------------------------------------------------------------------------------


def _declared_anew(model: ModelProto, wanted: Wanted) -> ModelProto:
    """Return the model with the numbers that are wanted in its inputs, and with the types of outputs and inner values
    as they are now: those that it declared, and no others.
    """
    for value in model.graph.input:
        for axis, dim in enumerate(wanted.shapes.get(value.name, ())):
            if dim is not None:
                write_dim(wanted.after(dim), value.type.tensor_type.shape.dim[axis])
    declared: dict[GraphPath, set[str]] = {}
    for scope in scopes(model):
        if scope.is_function:
            continue
        declared[scope.path] = {value.name for value in scope.proto.value_info}
        del scope.proto.value_info[:]
        if scope.path == MAIN:
            for value in scope.proto.output:
                value.type.tensor_type.ClearField("shape")
    filled: ModelProto = infer_model(model).model
    for scope in scopes(filled):
        if scope.is_function:
            continue
        kept = [value for value in scope.proto.value_info if value.name in declared.get(scope.path, ())]
        del scope.proto.value_info[:]
        scope.proto.value_info.extend(kept)
    return filled
