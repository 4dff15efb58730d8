"""Finds the reading of a model in which the items of a batch stay apart, and the dimensions along which items stand.

A Reshape of a batch of 1 can often be read in several ways: (S, 1, C) to [S, heads, C / heads] has the batch beside S,
or beside the heads. With the wrong one, some later node computes over the batch, or does not fit. So another place is
tried at the last such Reshape before the first node that is in the way, and kept if that node is no longer there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from splitgraph.conversion.sizes.follow import Follower, InputPlace, Need, Operators, Reading
from splitgraph.conversion.sizes.items import items_by_number
from splitgraph.conversion.sizes.laws import Judgement, judge
from splitgraph.conversion.sizes.rounds import in_the_way, walk_followed
from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.conversion.sizes.weights import WeightReader
from splitgraph.dim import Dim, DimLike, symbols_of
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference import Walked
from splitgraph.inference.alone import Alone
from splitgraph.model.onnx_proto import GraphProto, NodeProto
from splitgraph.model.scopes import MAIN, node_label

# So many readings are tried.
_MOST_TRIALS = 24
# Operators that read nothing of a value but its shape.
_READ_SHAPES = frozenset(("SequenceLength", "Shape", "Size"))
_ITEMS_HELP = "If it is no batch, name the dimension with reshape --input-shape, and not with reshape --batch."


class Found(NamedTuple):
    """A walk with new sizes. stuck: the needs that nothing gives, with why. over: where a dimension is computed over,
    by symbol; lost: the outputs that do not have one. judgement: what the laws say (`laws.py`). dropped: the same of
    dimensions that are taken for lengths. questions: what has several readings that fit.
    """

    wanted: Wanted
    walked: Walked
    follower: Follower
    stuck: Mapping[Need, str]
    over: Mapping[str, tuple[str, str]]
    lost: Mapping[str, tuple[str, str]]
    judgement: Judgement
    dropped: Mapping[str, tuple[str, str]] = MappingProxyType({})
    questions: tuple[Diagnostic, ...] = ()

    @property
    def given(self) -> tuple[frozenset[str], Mapping[str, str]]:
        """Return the dimensions along which items stand apart, and why they do not along others."""
        lengths = {name: f"{location}: {text}" for name, (location, text) in self.dropped.items()}
        return self.wanted.batch, lengths

    def not_apart(self) -> Mapping[str, tuple[str, str]]:
        """Return why items do not stand apart along a dimension, by symbol: the node, and what it does."""
        return {**self.judgement.lost, **self.lost, **self.over}

    def in_the_way(self, known: Collection[str] = ()) -> Iterator[Diagnostic]:
        """Yield what is in the way of the new sizes. known: where the model has errors without them."""
        others = [*in_the_way(self.walked, self.follower, self.stuck, known), *self.questions]
        places = {found.location for found in others}
        for breach in self.judgement.breaches:
            if breach.location not in places:
                places.add(breach.location)
                others.append(diagnostic("SG420", self.wanted.spelled(breach.text), breach.location))
        yield from others
        # An output may miss a dimension only because of these.
        reasons = self.over if others else self.not_apart()
        for name in sorted(self.wanted.batch & self.wanted.asked):
            if name in reasons:
                location, text = reasons[name]
                told = f"{self.wanted.spelled(text)}, where the items of a batch have to stay apart"
                yield diagnostic("SG420", told, location, help=_ITEMS_HELP)


def find_reading(
    wanted: Wanted,
    operators: Operators,
    entries: Mapping[InputPlace, Mapping[int, DimLike]],
    before: Walked,
    walk: Callable[[Follower], Walked],
    weights: WeightReader,
) -> Found:
    """Walk a model with new sizes until nothing more can be decided. entries: what the user says of constants. before:
    the walk over the model as it is, with the new names of its own dimensions. walk: walks the model with what it is
    given.
    """

    ignored = {found.location for found in before.diagnostics if found.severity == "error"}
    alone = Alone()

    def follow(wanted: Wanted, choices: Mapping[Reading, int]) -> Found:
        decided = {place: dict(each) for place, each in entries.items()}
        follower = Follower(wanted, operators, alone, decided, choices=choices)
        walked, stuck = walk_followed(lambda: walk(follower), follower, weights)
        judgement = judge(before, walked, wanted, ignored)
        over = (
            {**items_by_number(walked, follower, wanted.batch), **follower.over} if operators.over is not None else {}
        )
        return Found(wanted, walked, follower, stuck, over, _lost(walked, wanted), judgement)

    if operators.over is None:
        first = {name for name, inputs in wanted.axes.items() if set(inputs.values()) == {0}}
        return _with_best_reading(follow(replace(wanted, batch=frozenset(first)), {}), follow)
    dropped = dict[str, tuple[str, str]]()
    while True:
        found = follow(wanted, {})
        read = {name for each in found.follower.alternatives.values() for name in each.choice.symbols}
        lengths = wanted.batch & found.not_apart().keys() - read - wanted.asked
        if not lengths:
            found = _with_best_reading(found, follow)
            lengths = wanted.batch & found.not_apart().keys() - wanted.asked
        if not lengths:
            return found._replace(dropped=dropped)
        dropped.update((name, found.not_apart()[name]) for name in lengths)
        wanted = replace(wanted, batch=wanted.batch - lengths)


def _with_best_reading(found: Found, follow: Callable[[Wanted, Mapping[Reading, int]], Found]) -> Found:
    choices: dict[Reading, int] = {}
    tried = {_key(choices)}
    for _ in range(_MOST_TRIALS):
        first = _first_problem(found)
        if first is None:
            break
        for trial in _others(found, choices, first):
            if _key(trial) in tried or len(tried) > _MOST_TRIALS:
                continue
            tried.add(_key(trial))
            other = follow(found.wanted, trial)
            problem = _first_problem(other)
            if problem is None or problem > first:
                found, choices = other, trial
                break
        else:
            break
    return found if _first_problem(found) is not None else _with_questions(found, choices, follow)


def _with_questions(
    found: Found, choices: Mapping[Reading, int], follow: Callable[[Wanted, Mapping[Reading, int]], Found]
) -> Found:
    """Ask where another reading fits as well."""
    questions = []
    for reading, (choice, _, location) in found.follower.alternatives.items():
        if not choice.is_asked:
            continue
        taken = min(choices.get(reading, 0), len(choice.readings) - 1)
        others = [number for number in range(len(choice.readings)) if number != taken]
        # What can be cut is a length, unless somebody asked for a batch.
        lengths = choice.symbols - found.wanted.not_asked if choice.is_cut else frozenset()
        wanted = replace(found.wanted, batch=found.wanted.batch - lengths)
        fitting = [each for each in others if _first_problem(follow(wanted, {**choices, reading: each})) is None]
        if fitting:
            readings = [choice.readings[number] for number in sorted([taken, *fitting])]
            told = ", or ".join(f"{dim} as entry {entry}" for entry, dim in readings)
            ways = ", or ".join(f"--follow {location}[{entry}]={dim}" for entry, dim in readings)
            text = f"the target can have several meanings: {found.wanted.spelled(told)}"
            questions.append(diagnostic("SG421", text, location, help=f"Say which: reshape {ways}."))
    return found._replace(questions=tuple(questions))


def _key(choices: Mapping[Reading, int]) -> frozenset[tuple[Reading, int]]:
    return frozenset(choices.items())


def _others(found: Found, choices: Mapping[Reading, int], first: tuple[object, ...]) -> Iterator[dict[Reading, int]]:
    """Yield the choices with another place in one Reshape before the first problem, the last such one first."""
    order = _order(found.walked)
    alternatives = found.follower.alternatives
    before = [reading for reading, each in alternatives.items() if order.get(each.location, ()) < first]
    for reading in sorted(before, key=lambda reading: order.get(alternatives[reading].location, ()), reverse=True):
        for number in range(len(alternatives[reading].choice.readings)):
            if number != choices.get(reading, 0):
                yield {**choices, reading: number}


def _first_problem(found: Found) -> tuple[object, ...] | None:
    """Return the place of the first node that is in the way, or that computes over a batch."""
    order = _order(found.walked)
    locations = [each.location for each in found.in_the_way()]
    reasons = found.not_apart()
    locations += [reasons[name][0] for name in found.wanted.batch & reasons.keys()]
    # What has no place of its own, such as an output, comes last.
    return min((order.get(location, (len(order),)) for location in locations), default=None)


def _order(walked: Walked) -> dict[str, tuple[object, ...]]:
    return {
        f"{scope.location}/{node_label(node, index)}": (*scope.path, index)
        for scope in walked.scopes
        for index, node in enumerate(scope.nodes)
    }


# Items that get lost --------------------------------------------------------------------------------------------------


def _lost(walked: Walked, wanted: Wanted) -> dict[str, tuple[str, str]]:
    """Return the symbols that an output does not have, though it is computed from inputs that have them."""
    main = next((scope for scope in walked.scopes if scope.path == MAIN), None)
    if main is None or main.is_function:
        return {}
    types, found = walked.graphs[MAIN].types, dict[str, tuple[str, str]]()
    for name in wanted.batch:
        reached = _reached(main.proto, wanted.axes[name])
        for output in main.proto.output:
            shape = types[output.name].shape if output.name in types else None
            if output.name in reached and shape is not None and None not in shape:
                generated = [dim for dim in shape if isinstance(dim, Dim) and not symbols_of(dim) <= _known(wanted)]
                if not generated and not any(isinstance(dim, Dim) and name in symbols_of(dim) for dim in shape):
                    found[name] = f"main/{output.name}", f"the output {output.name!r} has no dimension {name}"
    return found


def _known(wanted: Wanted) -> set[str]:
    return {*wanted.old, *wanted.places}


def _reached(graph: GraphProto, names: Collection[str]) -> set[str]:
    """Return the values that are computed from some, and not from their shapes alone."""
    reached = set(names)
    for node in graph.node:
        if node.op_type not in _READ_SHAPES and not reached.isdisjoint(_read_by(node)):
            reached.update(output for output in node.output if output)
    return reached


def _read_by(node: NodeProto) -> Iterator[str]:
    yield from node.input
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            for inner in graph.node:
                yield from _read_by(inner)
