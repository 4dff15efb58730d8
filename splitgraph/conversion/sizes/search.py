"""Finds the reading of a model in which the items of a batch stay apart, and says which dimensions are batches.

A Reshape of a batch of 1 can often be read in several ways: (S, 1, C) to [S, heads, C / heads] has the batch beside S,
or beside the heads. With the wrong one, some later node computes over the batch, or does not fit. So another reading is
tried, that of the last such Reshape before the first node that is in the way. It is kept if the first node that is in
the way comes later then.
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
from splitgraph.conversion.sizes.values import READ_SHAPES
from splitgraph.conversion.sizes.walk_records import Decided
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
_ITEMS_HELP = "If it is no batch, name the dimension with reshape --input-shape, and not with reshape --batch."


# The dimensions along which items stand apart, why they do not along others, the readings, and what follows from them.
Given = tuple[frozenset[str], Mapping[str, str], Mapping[Reading, int], Mapping[str, DimLike]]


class Found(NamedTuple):
    """A walk with new sizes, and what it showed.

    stuck: the needs that nothing meets, with the reason. over: by symbol, the node that computes over the dimension,
    and what it does. lost: by symbol, the output that lacks the dimension. judgement: what the laws say (`laws.py`).
    dropped: entries of `over` and `lost`, for symbols that are lengths because of them. questions: about numbers of
    which several readings fit. choices: the readings that are taken, where that is not the first one.
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
        """Yield the nodes that compute over a first dimension that was 1 and is merged with others. Items may have lost
        their place before, unless the user has said where they are. places: of what is in the way besides.
        """
        placed = self.follower.placed
        for name in sorted((self.dropped.keys() & self.follower.seen.over_merged.keys()) - placed):
            location, text = self.follower.seen.over_merged[name]
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
    """Return the walk with new sizes in the best reading of the model. If the items of a batch do not stay apart in it,
    the batch is a length, and the model is walked again.

    entries: what the user says of constants. before: the walk over the model as it is, with the new names of its own
    dimensions. walk: walks the model with a follower. taken: the readings if they are known; nothing is asked then.
    """
    follow = _Walks(operators, entries, before, walk, weights).follow
    dropped = dict[str, tuple[str, str]]()
    while True:
        found = follow(wanted, {})
        if taken:
            # The first walk has found the dimensions that numbers can mean.
            found = follow(wanted, taken)
        # Another reading may still keep the items of these symbols apart.
        undecided = {name for each in found.follower.seen.alternatives.values() for name in each.choice.symbols}
        lengths = wanted.batch & found.not_apart().keys() - undecided - wanted.batch_of_caller
        if not lengths and taken is None:
            found = _with_best_reading(found, follow)
            lengths = wanted.batch & found.not_apart().keys() - wanted.batch_of_caller
        if not lengths:
            return found._replace(dropped=dropped)
        dropped.update((name, found.not_apart()[name]) for name in lengths)
        wanted = replace(wanted, batch=wanted.batch - lengths)


class _Walks:
    """Walks a model in one reading after the other. What does not depend on the reading is kept from walk to walk."""

    def __init__(
        self,
        operators: Operators,
        entries: Mapping[InputPlace, Mapping[int, DimLike]],
        before: Walked,
        walk: Callable[[Follower], Walked],
        weights: WeightReader,
    ) -> None:
        self._operators, self._entries, self._before, self._walk = operators, entries, before, walk
        self._weights, self._constants = weights, {*_constants(before)}
        # Nodes with errors at the old sizes.
        self._ignored = {found.location for found in before.diagnostics if found.severity == "error"}
        dims = (dim for each in entries.values() for dim in each.values() if isinstance(dim, Dim))
        self._placed = frozenset(name for dim in dims for name in symbols_of(dim))
        self._alone, self._met = Alone(), dict[DimLike, None]()
        self._orders = dict[tuple[InputPlace, int], Order]()

    def follow(self, wanted: Wanted, choices: Mapping[Reading, int]) -> Found:
        """Return the walk in a reading. choices: the readings of numbers that are not the first ones."""
        follower = Follower(
            wanted,
            self._operators,
            self._weights,
            self._constants,
            self._alone,
            self._placed,
            choices,
            is_first=not choices,
            decided=Decided(
                entries={place: dict(each) for place, each in self._entries.items()},
                # Most digits are those of the last reading; what differs is found again.
                orders=dict(self._orders),
                met=self._met,
            ),
        )
        walked, stuck = walk_followed(lambda: self._walk(follower), follower, self._weights)
        self._orders.update(follower.decided.orders)
        judgement = judge(self._before, walked, wanted, self._ignored, follower.seen.conditions)
        over = {**items_by_number(walked, follower, wanted.batch), **follower.seen.over}
        return Found(wanted, walked, follower, stuck, over, _lost(walked, wanted), judgement, choices=choices)


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
    """Return the walk in which nothing is in the way, or else the best one that was found, and its readings. fixed: the
    readings that stay. most: how many are tried.
    """
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
    """Return a reading whose first problem comes later; None if none is found. One number is read otherwise, or else
    two, as an Expand of queries and one of the keys that meet them.

    first: the place of the first problem. tried: the readings that were tried. most: how many may be.
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
    """Return the walk with a question about each number of which several readings fit."""
    alternatives = found.follower.seen.alternatives
    # Other readings of Reshapes are not tried together: items with another place in several of them are the same items.
    of_reshapes = {key for key in alternatives if _is_of_reshape(key)}
    asked = [key for key, each in alternatives.items() if each.choice.is_asked]
    possible = (_question(found, key, choices, follow, of_reshapes) for key in asked)
    questions = [each for each in possible if each is not None]
    if len(questions) > 1:
        questions = _together(found, questions, choices, follow, of_reshapes)
    return found._replace(questions=tuple(_told(questions, found.wanted)))


def _is_of_reshape(key: Reading) -> bool:
    """Return True for a reading of a target of a Reshape, and not of an entry of a constant."""
    return not isinstance(key[0], InputPlace)


def _question(
    found: Found, key: Reading, choices: Mapping[Reading, int], follow: Follow, fixed: Collection[Reading]
) -> _SeveralFit | None:
    """Return the question about a number; None if only one of its readings fits. fixed: as for `_fitting`."""
    alternative = found.follower.seen.alternatives[key]
    readings = alternative.choice.readings
    taken = min(choices.get(key, 0), len(readings) - 1)
    fitting = sorted(_fitting(found, key, taken, choices, follow, fixed))
    if fitting == [0] and alternative.is_asked_alone:
        alternative, fitting = alternative.only_staying(), [*range(len(readings))]
    if len(fitting) == 1:
        return None
    ways = [readings[each] for each in fitting]
    if _is_of_reshape(key):
        # The readings that are taken fit together.
        return _SeveralFit(alternative, ways, readings[taken])
    follows = (way for way in ways if isinstance(way[1], Dim) and not alternative.can_only_stay)
    return _SeveralFit(alternative, ways, next(follows, ways[0]))


def _fitting(
    found: Found,
    key: Reading,
    taken: int,
    choices: Mapping[Reading, int],
    follow: Follow,
    fixed: Collection[Reading],
) -> list[int]:
    """Return which readings of a number fit, if need be together with other readings of other numbers.

    taken: the reading of the number that was found to fit. fixed: the readings that stay while others are tried.
    """
    choice = found.follower.seen.alternatives[key].choice
    count = len(choice.readings)
    if choice.is_value:
        return [*range(count)]
    wanted = _with_lengths(found, key, taken)
    fitting = [taken]
    for each in range(count if taken else choice.likely or count):
        if each != taken:
            trial = {**choices, key: each}
            other, _ = _searched(follow(wanted, trial), trial, follow, {*fixed, key}, _MOST_REPAIRS)
            if _first_problem(other) is None:
                fitting.append(each)
    return fitting


def _with_lengths(found: Found, key: Reading, taken: int) -> Wanted:
    """Return the wanted sizes for a trial of another reading of a number. The symbols in its readings are lengths
    there, over which nodes may compute, unless it is known that items stand along them.

    That is known of a batch that the caller names; of a first dimension, unless the number had to follow so that its
    items stay apart; and, if a Reshape merges the symbol with others, of a symbol that comes back to an axis of its own
    in each output.
    """
    choice, wanted = found.follower.seen.alternatives[key].choice, found.wanted
    batch = wanted.unquestioned if _is_of_reshape(key) or not taken else wanted.batch_of_caller
    is_merged = _is_of_reshape(key) and not choice.is_cut and not _is_own(choice, taken)
    lengths = choice.symbols - batch - (_with_own_axes(found) if is_merged else frozenset())
    return replace(wanted, batch=wanted.batch - lengths)


def _together(
    found: Found,
    questions: Sequence[_SeveralFit],
    choices: Mapping[Reading, int],
    follow: Follow,
    fixed: Collection[Reading],
) -> list[_SeveralFit]:
    """Return the questions with answers that fit together: each follows, or else those that the first answer needs."""
    keys = {id(alternative): key for key, alternative in found.follower.seen.alternatives.items()}
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


def _told(questions: Sequence[_SeveralFit], wanted: Wanted) -> Iterator[Diagnostic]:
    """Yield the finding for each question. The first one has the options that answer all questions."""
    answers = [_answer(each.alternative, each.first) for each in questions if not each.alternative.is_attribute]
    all_follow = all(isinstance(each.first[1], Dim) or each.alternative.can_only_stay for each in questions)
    how = "if each follows" if all_follow else "so that they fit"
    for number, (alternative, ways, _) in enumerate(questions):
        text, help = _meanings(alternative, ways), _help(alternative, ways)
        if number == 0 and len(questions) > 1 and not alternative.is_attribute:
            help += f" All questions at once, {how}: {' '.join(answers)}"
        yield diagnostic("SG421", wanted.spelled(text), alternative.location, help=wanted.spelled(help))


def _meanings(alternative: Alternative, ways: Sequence[tuple[int, DimLike]]) -> str:
    """Return the text of a question: what the number can mean."""
    form = "{}" if alternative.stays is None else alternative.stays.form
    is_of_one_entry = len({entry for entry, _ in ways}) == 1
    meanings = []
    for entry, says in ways:
        stays = " whatever the size of the data" if isinstance(says, int) else ""
        place = "" if is_of_one_entry else f" as entry {entry}"
        meanings.append(f"{form.format(says)}{stays}{place}")
    subject = f"entry {ways[0][0]}" if is_of_one_entry else "its numbers"
    return f"{subject} can mean {', or '.join(meanings)}"


def _help(alternative: Alternative, ways: Sequence[tuple[int, DimLike]]) -> str:
    """Return the advice of a question: the options that answer it."""
    if alternative.is_attribute:
        return "The number is in an attribute. Upgrade the model to an opset that has it in an input, and ask again."
    if alternative.stays is not None and alternative.can_only_stay:
        return f"If it stays: reshape {_answer(alternative, ways[0])}. {alternative.stays.otherwise}"
    return f"Say which: reshape {', or '.join(_answer(alternative, way) for way in ways)}."


def _answer(alternative: Alternative, way: tuple[int, DimLike]) -> str:
    """Return the options that say that a number has a meaning, at each node that is read alike."""
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
    alternatives = found.follower.seen.alternatives
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
    """Return the symbols of batches that an output lacks, although it is computed from inputs that have them."""
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
                    # A dimension that is not the first one is more likely a length than a batch of unknown place.
                    found[name] = f"main/{output.name}", f"nothing says where the output {output.name!r} has {name}"
                elif not generated and not any(isinstance(dim, Dim) and name in symbols_of(dim) for dim in shape):
                    found[name] = f"main/{output.name}", f"the output {output.name!r} has no dimension {name}"
    return found


def _known(wanted: Wanted) -> set[str]:
    return {*wanted.old, *wanted.places}


def _reached(graph: GraphProto, names: Collection[str]) -> set[str]:
    """Return the values that are computed from the elements of some others, and not from their shapes alone."""
    reached = set(names)
    for node in graph.node:
        if node.op_type not in READ_SHAPES and not reached.isdisjoint(_read_by(node)):
            reached.update(output for output in node.output if output)
    return reached


def _read_by(node: NodeProto) -> Iterator[str]:
    yield from node.input
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            for inner in graph.node:
                yield from _read_by(inner)
