"""Finds the reading of a model in which the items of a batch stay apart, and the dimensions along which items stand.

A Reshape of a batch of 1 can often be read in several ways: (S, 1, C) to [S, heads, C / heads] has the batch beside S,
or beside the heads. With the wrong one, some later node computes over the batch, or does not fit. So another place is
tried at the last such Reshape before the first node that is in the way, and kept if that node is no longer there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from splitgraph.conversion.sizes.digits import Order, is_one_factor
from splitgraph.conversion.sizes.follow import Follower, Operators
from splitgraph.conversion.sizes.items import items_by_number
from splitgraph.conversion.sizes.last_walk import Stuck
from splitgraph.conversion.sizes.laws import Judgement, judge
from splitgraph.conversion.sizes.needs import Alternative, InputPlace, Need, Reading
from splitgraph.conversion.sizes.reshape_targets import Choice
from splitgraph.conversion.sizes.rounds import in_the_way, walk_followed
from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.conversion.sizes.weights import WeightReader
from splitgraph.dim import Dim, DimLike, symbol, symbols_of
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference import Walked
from splitgraph.inference.alone import Alone
from splitgraph.model.onnx_proto import GraphProto, NodeProto
from splitgraph.model.scopes import MAIN, GraphPath, node_label

# So many readings are tried, and so many to make another reading of one number fit.
_MOST_TRIALS, _MOST_REPAIRS = 24, 4
# Operators that read nothing of a value but its shape, in any format.
_READ_SHAPES = frozenset(("SequenceLength", "Shape", "ShapeOf", "Size"))
_ITEMS_HELP = "If it is no batch, name the dimension with reshape --input-shape, and not with reshape --batch."


# The dimensions along which items stand apart, why they do not along others, the readings, and what follows from them.
Given = tuple[frozenset[str], Mapping[str, str], Mapping[Reading, int], Mapping[str, DimLike]]


class Found(NamedTuple):
    """A walk with new sizes, and what it showed.

    stuck: the needs that nothing meets, with the reason. over: the node that mixes the places of a dimension, and what
    it does, by symbol. lost: the output that lacks a dimension, by symbol. judgement: what the laws say (`laws.py`).
    dropped: as `over` and `lost`, of dimensions that are lengths because of it. questions: about numbers of which
    several readings fit. choices: the readings that are taken, where that is not the first one.
    """

    wanted: Wanted
    walked: Walked
    follower: Follower
    stuck: Mapping[Need, Stuck]
    over: Mapping[str, tuple[str, str]]
    lost: Mapping[str, tuple[str, str]]
    judgement: Judgement
    dropped: Mapping[str, tuple[str, str]] = MappingProxyType({})
    questions: tuple[Diagnostic, ...] = ()
    choices: Mapping[Reading, int] = MappingProxyType({})

    @property
    def given(self) -> Given:
        """Return what `GivenSizes` has beside what was asked for."""
        lengths = {name: f"{location}: {text}" for name, (location, text) in self.dropped.items()}
        return self.wanted.batch, lengths, self.choices, self.wanted.followers

    def not_apart(self) -> Mapping[str, tuple[str, str]]:
        """Return why items do not stand apart along a dimension, by symbol: the node, and what it does."""
        lost = {name: (breach.location, breach.text) for name, breach in self.judgement.lost.items()}
        return {**lost, **self.lost, **self.over}

    def in_the_way(self, known: Collection[str] = ()) -> Iterator[Diagnostic]:
        """Yield what is in the way of the new sizes. known: where the model has errors without them."""
        others = [*in_the_way(self.walked, self.follower, self.stuck, known), *self.questions]
        places = {found.location for found in others}
        for breach in self.judgement.breaches:
            if breach.location not in places:
                places.add(breach.location)
                others.append(diagnostic("SG420", self.wanted.spelled(breach.text), breach.location))
        others += self._merged_items(places)
        yield from others
        # An output may miss a dimension only because of these.
        reasons = self.over if others else self.not_apart()
        for name in sorted(self.wanted.batch & self.wanted.batch_of_caller):
            if name in reasons:
                location, text = reasons[name]
                told = f"{self.wanted.spelled(text)}, where the items of a batch have to stay apart"
                yield diagnostic("SG420", told, location, help=_ITEMS_HELP)

    def _merged_items(self, places: Collection[str]) -> Iterator[Diagnostic]:
        """Yield where a first dimension that was 1 is computed over together with others. It is not told by then from
        items that have lost their place, unless the user has said where they are. places: of what is in the way
        besides.
        """
        placed = self.follower.placed
        for name in sorted((self.dropped.keys() & self.follower.over_merged.keys()) - placed):
            location, text = self.follower.over_merged[name]
            if set(self.wanted.axes.get(name, {}).values()) == {0} and location not in places:
                told = f"{text}, where {name} was 1 and can have any place"
                yield diagnostic("SG420", self.wanted.spelled(told), location)


# Walks a model with a reading of each number that has several.
Follow = Callable[[Wanted, Mapping[Reading, int]], Found]


def find_reading(
    wanted: Wanted,
    operators: Operators,
    entries: Mapping[InputPlace, Mapping[int, DimLike]],
    before: Walked,
    walk: Callable[[Follower], Walked],
    weights: WeightReader,
    taken: Mapping[Reading, int] | None = None,
) -> Found:
    """Walk a model with new sizes until nothing more can be decided. entries: what the user says of constants. before:
    the walk over the model as it is, with the new names of its own dimensions. walk: walks the model with what it is
    given. taken: the readings, if they are known: nothing is asked then.
    """

    ignored = {found.location for found in before.diagnostics if found.severity == "error"}
    alone, met, orders = Alone(), dict[DimLike, None](), dict[tuple[InputPlace, int], Order]()
    constants = {*_constants(before)}
    said = (dim for each in entries.values() for dim in each.values() if isinstance(dim, Dim))
    placed = frozenset(name for dim in said for name in symbols_of(dim))

    def follow(wanted: Wanted, choices: Mapping[Reading, int]) -> Found:
        decided = {place: dict(each) for place, each in entries.items()}
        follower = Follower(
            wanted,
            operators,
            weights,
            constants,
            alone,
            decided,
            placed,
            choices=choices,
            met=met,
            is_first=not choices,
        )
        # Most digits are those of the last reading; what differs is found again.
        follower.orders.update(orders)
        walked, stuck = walk_followed(lambda: walk(follower), follower, weights)
        orders.update(follower.orders)
        judgement = judge(before, walked, wanted, ignored, follower.conditions)
        over = {**items_by_number(walked, follower, wanted.batch), **follower.over}
        return Found(wanted, walked, follower, stuck, over, _lost(walked, wanted), judgement, choices=choices)

    dropped = dict[str, tuple[str, str]]()
    while True:
        found = follow(wanted, {})
        if taken:
            # Only a first walk meets the dimensions that numbers may be.
            found = follow(wanted, taken)
        read = {name for each in found.follower.alternatives.values() for name in each.choice.symbols}
        lengths = wanted.batch & found.not_apart().keys() - read - wanted.batch_of_caller
        if not lengths and taken is None:
            found = _with_best_reading(found, follow)
            lengths = wanted.batch & found.not_apart().keys() - wanted.batch_of_caller
        if not lengths:
            return found._replace(dropped=dropped)
        dropped.update((name, found.not_apart()[name]) for name in lengths)
        wanted = replace(wanted, batch=wanted.batch - lengths)


def _constants(walked: Walked) -> Iterator[tuple[GraphPath, str]]:
    """Yield the names of weights, by graph."""
    for scope in walked.scopes:
        if not scope.is_function:
            yield from ((scope.path, tensor.name) for tensor in scope.proto.initializer)
        for node in scope.nodes:
            if node.op_type == "Constant":
                yield from ((scope.path, name) for name in node.output)


def _with_best_reading(found: Found, follow: Follow) -> Found:
    found, choices = _searched(found, {}, follow)
    return found if _first_problem(found) is not None else _with_questions(found, choices, follow)


def _searched(
    found: Found, choices: dict[Reading, int], follow: Follow, fixed: Collection[Reading] = (), most: int = _MOST_TRIALS
) -> tuple[Found, dict[Reading, int]]:
    """Try other readings until none is in the way. fixed: those that stay. most: how many are tried."""
    tried = {_key(choices)}
    while (first := _first_problem(found)) is not None:
        further = _further(found, choices, first, follow, fixed, tried, len(tried) + most)
        if further is None:
            break
        found, choices = further
    return found, choices


def _further(
    found: Found,
    choices: dict[Reading, int],
    first: tuple[object, ...],
    follow: Follow,
    fixed: Collection[Reading],
    tried: set[frozenset[tuple[Reading, int]]],
    most: int,
) -> tuple[Found, dict[Reading, int]] | None:
    """Return a reading whose first problem comes later: with another reading of one number, or else of two, as of an
    Expand of queries and of the keys that meet them. tried: the readings that were; most: how many there may be.
    """
    waiting = [(found, choices, first)]
    for number, (state, base, problem) in enumerate(waiting):
        for trial in _others(state, base, problem, {*fixed, *(base.keys() - choices.keys())}):
            if _key(trial) in tried or len(tried) >= most:
                continue
            tried.add(_key(trial))
            other = follow(found.wanted, trial)
            own = _first_problem(other)
            if own is None or own > first:
                return other, trial
            if number == 0 and most - len(tried) > _MOST_REPAIRS:
                waiting.append((other, trial, own))
    return None


def _with_questions(found: Found, choices: Mapping[Reading, int], follow: Follow) -> Found:
    """Ask where another reading fits as well, if need be together with others of other numbers."""
    questions: list[_SeveralFit] = []
    # Items that stand elsewhere in several Reshapes at once are the same items.
    alternatives = found.follower.alternatives
    fixed = {key for key in alternatives if not isinstance(key[0], InputPlace)}
    for key, alternative in alternatives.items():
        choice = alternative.choice
        if not choice.is_asked:
            continue
        taken = min(choices.get(key, 0), len(choice.readings) - 1)
        asked = range(len(choice.readings) if taken else choice.likely or len(choice.readings))
        # What is cut may be a length, and so may be what a number follows, unless somebody asked for a batch. A first
        # dimension is a batch, unless the number had to follow for that.
        batch = found.wanted.batch_of_caller if taken and key not in fixed else found.wanted.unquestioned
        # Of a name that is no batch nothing says that items stand there, unless they went beside others, and came back.
        is_beside = key in fixed and not choice.is_cut and not _is_own(choice, taken)
        names = choice.symbols - batch - (_with_own_axes(found) if is_beside else frozenset())
        lengths = replace(found.wanted, batch=found.wanted.batch - names)
        fitting = [*range(len(choice.readings))] if choice.is_value else [taken]
        for each in () if choice.is_value else asked:
            if each != taken:
                trial = {**choices, key: each}
                other, _ = _searched(follow(lengths, trial), trial, follow, fixed | {key}, _MOST_REPAIRS)
                fitting += [each] if _first_problem(other) is None else []
        if fitting == [0] and alternative.is_asked_alone:
            alternative, fitting = alternative.only_staying(), [*range(len(choice.readings))]
        if len(fitting) > 1:
            ways = [choice.readings[each] for each in sorted(fitting)]
            # Of a number, that it follows; of Reshapes, the readings that fit together.
            follows = (way for way in ways if isinstance(way[1], Dim) and not alternative.can_only_stay)
            first = choice.readings[taken] if key in fixed else next(follows, ways[0])
            questions.append(_SeveralFit(alternative, ways, first))
    if len(questions) > 1:
        questions = _together(found, questions, choices, follow, fixed)
    return found._replace(questions=tuple(_asked(questions, found.wanted)))


def _together(
    found: Found,
    questions: Sequence[_SeveralFit],
    choices: Mapping[Reading, int],
    follow: Follow,
    fixed: Collection[Reading],
) -> list[_SeveralFit]:
    """Return the questions with answers that fit together: each follows, or else those that the first answer needs."""
    keys = {id(alternative): key for key, alternative in found.follower.alternatives.items()}
    open_ones = [each for each in questions if not each.alternative.choice.is_value]
    taken = {keys[id(each.alternative)]: each for each in open_ones if id(each.alternative) in keys}
    names = frozenset(name for each in questions for name in each.alternative.choice.symbols)
    lengths = replace(found.wanted, batch=found.wanted.batch - (names - found.wanted.batch_of_caller))
    trial = {**choices, **{key: each.alternative.choice.readings.index(each.first) for key, each in taken.items()}}
    if not taken or _first_problem(follow(lengths, trial)) is None:
        return [*questions]
    first = next(iter(taken))
    trial = {**choices, first: trial[first]}
    other, trial = _searched(follow(lengths, trial), trial, follow, {*fixed, first}, _MOST_REPAIRS)
    if _first_problem(other) is not None:
        return [*questions]
    fitting = {id(each.alternative): each.alternative.choice.readings[trial.get(key, 0)] for key, each in taken.items()}
    return [each._replace(first=fitting.get(id(each.alternative), each.first)) for each in questions]


def _is_own(choice: Choice, taken: int) -> bool:
    """Return True for a reading in which a digit has an entry of its own."""
    dim = choice.readings[taken][1]
    return isinstance(dim, Dim) and is_one_factor(dim)


def _with_own_axes(found: Found) -> frozenset[str]:
    """Return the names that no output has beside others in one dimension, as `3*N` has N."""
    main = next((scope for scope in found.walked.scopes if scope.path == MAIN), None)
    types = found.walked.graphs[MAIN].types
    shapes = [types[output.name].shape or () for output in main.proto.output if output.name in types] if main else []
    merged = [dim for shape in shapes for dim in shape if isinstance(dim, Dim) and dim != symbol(str(dim))]
    return frozenset(found.wanted.old) - {name for dim in merged for name in symbols_of(dim)}


class _SeveralFit(NamedTuple):
    """A number of which several readings fit. first: what it is if all questions are answered at once."""

    alternative: Alternative
    ways: Sequence[tuple[int, DimLike]]
    first: tuple[int, DimLike]


def _asked(questions: Sequence[_SeveralFit], wanted: Wanted) -> Iterator[Diagnostic]:
    """Yield the questions, the first with the options that answer all of them."""
    answers = [_answer(each.alternative, each.first) for each in questions if not each.alternative.is_attribute]
    all_follow = all(isinstance(each.first[1], Dim) or each.alternative.can_only_stay for each in questions)
    for number, (alternative, ways, _) in enumerate(questions):
        location = alternative.location
        form = "{}" if alternative.stays is None else alternative.stays.form
        spelled = [form.format(says) for _, says in ways]
        told = [
            f"{text} whatever the size of the data" if isinstance(says, int) else text
            for text, (_, says) in zip(spelled, ways, strict=True)
        ]
        if len({entry for entry, _ in ways}) > 1:
            told = [f"{text} as entry {entry}" for text, (entry, _) in zip(told, ways, strict=True)]
            text = f"its numbers can mean {', or '.join(told)}"
        else:
            text = f"entry {ways[0][0]} can mean {', or '.join(told)}"
        help = f"Say which: reshape {', or '.join(_answer(alternative, way) for way in ways)}."
        if alternative.stays is not None and alternative.can_only_stay:
            help = f"If it stays: reshape {_answer(alternative, ways[0])}. {alternative.stays.otherwise}"
        if alternative.is_attribute:
            help = (
                "The number is in an attribute. Upgrade the model to an opset that has it in an input, and ask again."
            )
        elif number == 0 and len(questions) > 1:
            how = "if each follows" if all_follow else "so that they fit"
            help += f" All questions at once, {how}: {' '.join(answers)}"
        yield diagnostic("SG421", wanted.spelled(text), location, help=wanted.spelled(help))


def _answer(alternative: Alternative, way: tuple[int, DimLike]) -> str:
    entry, says = way
    option, told = ("keep", "") if isinstance(says, int) else ("follow", f"={says}")
    return " ".join(f'--{option} "{location}[{entry}]{told}"' for location in alternative.locations)


def _key(choices: Mapping[Reading, int]) -> frozenset[tuple[Reading, int]]:
    return frozenset(choices.items())


def _others(
    found: Found, choices: Mapping[Reading, int], first: tuple[object, ...], fixed: Collection[Reading]
) -> Iterator[dict[Reading, int]]:
    """Yield the choices with another reading of one number before the first problem, the last such one first."""
    order = _order(found.walked)
    alternatives = found.follower.alternatives
    before = [
        reading
        for reading, each in alternatives.items()
        if reading not in fixed and not each.choice.is_value and order.get(each.location, ()) <= first
    ]
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
                if generated and name not in wanted.unquestioned:
                    # Beyond the first axis, a length is likelier than items that stand nobody knows where.
                    found[name] = f"main/{output.name}", f"nothing says where the output {output.name!r} has {name}"
                elif not generated and not any(isinstance(dim, Dim) and name in symbols_of(dim) for dim in shape):
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
