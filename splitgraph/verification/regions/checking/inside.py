"""Look for regions inside of bodies: a node that changed in a branch, a loop or a function is run alone.

A region holds a node with its bodies as a whole, so that values which are drawn for it meet a changed node in a body
only as what the nodes before it make of them. So the bodies are compared like models: the values that they had come
from those that reached the region, and others are drawn. What a caller of the node has constant stays constant, and
so do the number of an iteration and what is computed from it. Where this is not possible, nothing is lost: the region
is run as a whole all the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import onnx

from splitgraph.inference import infer_model
from splitgraph.model.value_type import UNKNOWN, ValueType
from splitgraph.verification.budget import Budget
from splitgraph.verification.engines.engine_process import Attempt, Workplace, workplace
from splitgraph.verification.models.dependence import index_inputs, shape_inputs, values_of_elements
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.regions.checking.blame import differs_at_drawn
from splitgraph.verification.regions.checking.check import LocalCheck
from splitgraph.verification.regions.checking.question import RegionQuestion
from splitgraph.verification.regions.checking.region_kind import type_of
from splitgraph.verification.regions.drawing.ranges import Range, ValueRanges, union
from splitgraph.verification.regions.finding.bodies import BodyPair, bodies, state_count
from splitgraph.verification.regions.finding.body_values import BodyValues
from splitgraph.verification.regions.finding.cut import cut_out
from splitgraph.verification.regions.finding.find import LIMITING, Border, FoundRegion, ModelRegions
from splitgraph.verification.regions.finding.reached import reached
from splitgraph.verification.values import UnsupportedError, Value, read_values
from splitgraph.verification.verification import Region

# Bodies in bodies are looked into so deep.
_MOST_DEPTH = 4


def look_inside(local: LocalCheck, engine: str, deadline: float, budget: Budget, depth: int = 0) -> None:
    """Compare the bodies of the regions of a check until the deadline, and tell it what differs. budget: says how long
    a difference may be judged.
    """
    waiting = [
        (member.region, member.kind, index, other)
        for member in local.reached()
        for index, other in local.found.opened(member.region)
    ]
    for number, (region, kind, index, other) in enumerate(waiting if depth < _MOST_DEPTH else ()):
        left = deadline - time.monotonic()
        if left <= 0:
            return
        assert kind.base is not None
        base = read_values(kind.base)
        end = time.monotonic() + left / (len(waiting) - number)
        for body in bodies(local.found, index, other):
            values = _given(local, region, index, body, (base, engine, end))
            different = (
                None if values is None else _Inside(local, body, *values, engine, end, budget, depth).different()
            )
            if different is not None:
                kind.inner = kind.inner or different


def _given(
    local: LocalCheck,
    region: FoundRegion,
    index: int,
    body: BodyPair,
    run: tuple[Mapping[str, Value], str, float],
) -> tuple[list[Value], dict[str, Value]] | None:
    """Return what a node and its body read from around it, on the values that reached the region; None where that
    cannot be run. run: these values, the engine, and the end of the time.
    """
    base, engine, end = run
    side = local.found.before
    explicit = [name for name in body.node.input if name]
    names = list(dict.fromkeys([*explicit, *body.outer.values()]))
    if not names:
        return [None for _ in body.node.input], {}
    inside = reached([index], side.reads, side.makers) & set(region.before) - {index}
    part = FoundRegion(tuple(sorted(inside)), (), region.inputs, tuple(Border(name, name) for name in names))
    model = cut_out(part, side, 0)
    try:
        for value in model.graph.input:
            value.type.CopyFrom(type_of(base[value.name]))
    except UnsupportedError:
        return None
    with workplace([model], (None,), (side.folder,), local.place.settings, (False,)) as place:
        outputs = place.run(engine, [Attempt(0, 0, base)], max(end - time.monotonic(), 0.0)).outputs[0]
    if (0, 0) not in outputs:
        return None
    known = dict(zip(names, outputs[0, 0], strict=True))
    given = [known[name] if name else None for name in body.node.input]
    return given, {target: known[name] for target, name in body.outer.items()}


class _Inside:
    """Compares one body of a node in both models. given: the inputs of the node; outer: the values around the body that
    it reads, by the inputs of its models. depth: how many bodies it is in.
    """

    def __init__(
        self,
        local: LocalCheck,
        body: BodyPair,
        given: list[Value],
        outer: Mapping[str, Value],
        engine: str,
        end: float,
        budget: Budget,
        depth: int,
    ) -> None:
        self._local, self._body, self._outer = local, body, outer
        self._values = BodyValues(body, given)
        self._engine, self._end, self._budget, self._depth = engine, end, budget, depth

    def different(self) -> Region | None:
        """Return a region in the body that differs; None if none does, or nothing can be said."""
        feeds = self._feeds()
        if feeds is None:
            return None
        pair = self._typed(0, feeds), self._typed(1, feeds)
        found = ModelRegions(*pair, self._body.locations)
        if not found.regions:
            return None
        own = self._local.question
        question = RegionQuestion(
            found, pair, own.tolerances, own.seed, drawable=self._drawable(), known=self._ranges(found)
        )
        models, folders = [compared.model for compared in pair], [compared.folder for compared in pair]
        with workplace(models, folders=folders, settings=self._local.place.settings) as place:
            check = LocalCheck(question, found.regions, place)
            attempts = self._run_steps(check, feeds, place)
            look_inside(check, self._engine, time.monotonic() + self._left() / 2, self._budget, self._depth + 1)
            different = self._differing(check)
            if len(different) > 1:
                # What one of them changes, another one may undo.
                joined = found.joined([check.members[number].region for number, _ in different])
                together = LocalCheck(question, [joined], place)
                self._run(together, attempts, place)
                different = different if self._differing(together) else []
        return different[0][1] if different else None

    def _left(self) -> float:
        return max(self._end - time.monotonic(), 0.0)

    # Values ------------------------------------------------------------------------------------------------------

    def _feeds(self) -> dict[str, Value] | None:
        """Return the inputs of the models in this step; None if one of them is not known, or does not tell its type."""
        if self._values.inputs is None:
            return None
        feeds = {name: value for name, value in zip(self._body.inputs, self._values.inputs, strict=True) if name}
        feeds |= self._outer
        try:
            for value in feeds.values():
                type_of(value)
        except UnsupportedError:
            return None
        return feeds

    def _typed(self, number: int, feeds: Mapping[str, Value]) -> ComparedModel:
        model, known = self._body.models[number], self._known_types()
        for value in model.graph.input:
            value.type.CopyFrom(type_of(feeds[value.name]))
            _fix_sizes(value.type, known.get(value.name, UNKNOWN))
        side = self._local.found.sides[number]
        return ComparedModel(model, model, infer_model(model, fill=False), folder=side.folder)

    def _known_types(self) -> dict[str, ValueType]:
        """Return what inference knows of the inputs of the models: from the values around the body, and inside it. A
        size that is a number there is no other one in any run.
        """
        side, body = self._local.found.before, self._body
        formal = [value.name for each in body.node.attribute if each.name == body.attribute for value in each.g.input]
        types, names = (
            (side.graphs.get(body.locations[0], {}), formal) if body.attribute else (side.types, body.node.input)
        )
        known = {name: side.types.get(around, UNKNOWN) for name, around in body.outer.items()}
        return known | {
            name: types.get(own, UNKNOWN) for name, own in zip(body.inputs, names, strict=False) if name and own
        }

    def _run_steps(self, check: LocalCheck, feeds: Mapping[str, Value], place: Workplace) -> list[Attempt]:
        """Run the body on the values of its first steps; return these."""
        has_run, attempts = self._values.has_run, list[Attempt]()
        following: Mapping[str, Value] | None = feeds
        while following is not None and self._left():
            attempts.append(Attempt(len(attempts), 0, following))
            outputs = self._run(check, attempts[-1:], place)
            following = self._feeds() if outputs is not None and self._values.next(outputs) else None
        if not has_run:
            # It had no values: those of a branch that is not taken say nothing but their types.
            check.forget_captured()
            return []
        return attempts

    def _run(self, check: LocalCheck, attempts: Sequence[Attempt], place: Workplace) -> list[Value] | None:
        """Compare the regions on the values of the body; return what the first model computes for the last ones."""
        while True:
            run = place.run(self._engine, attempts, self._left(), regions=check.job(()), only_first=True)
            if not check.add(run):
                break
        return run.outputs[0].get((attempts[-1].case, 0)) if attempts else None

    def _differing(self, check: LocalCheck) -> list[tuple[int, Region]]:
        """Compare the regions on drawn values; return those that differ, each with its number."""
        check.draw(self._engine, self._end)
        check.settle(self._engine, self._budget.judging_ends(self._end))
        # Ordinary numbers that alone show a difference need not be ones that the body can have.
        return [
            (number, region)
            for number, region in enumerate(check.results())
            if region.verdict == "different" and not differs_at_drawn(check.question, check.members[number])
        ]

    # What may be drawn -------------------------------------------------------------------------------------------

    def _drawable(self) -> set[str]:
        """Return the values of the body that may be drawn: they depend on elements that may change around it. Sizes,
        positions, and what only some numbers reach, are left out, though what is computed from them is not.
        """
        body, model = self._body, self._body.models[0]
        results = [value.name for value in model.graph.output]
        states = {name: result for name, result in self._states(results) if name}
        fixed = set(body.inputs[:2]) if body.node.op_type == "Loop" and body.attribute else set[str]()
        sources = dict(self._sources())
        fixed |= {name for name, source in sources.items() if not self._local.question.is_drawable(source)}
        while True:
            known = values_of_elements(model, fixed)
            grown = {name for name, result in states.items() if name in fixed and result in known}
            if not grown:
                break
            fixed -= grown
        makers = {name: node.op_type for node in model.graph.node for name in node.output}
        limited = {
            name
            for name, source in sources.items()
            if self._is_limited(source) and (name not in states or makers.get(states[name], "") in LIMITING)
        }
        return known - limited - shape_inputs(model) - index_inputs(model)

    def _ranges(self, found: ModelRegions) -> dict[str, Range | None]:
        """Return the ranges of the inputs of the models: of what they begin with, and of what a loop makes of them."""
        results = dict(self._states([value.name for value in self._body.models[0].graph.output]))
        ranges = {name: self._local.question.ranges.of(source) for name, source in self._sources()}
        after_a_step = ValueRanges(found.before, {})
        return {
            name: union(known, after_a_step.of(results[name])) if name in results else known
            for name, known in ranges.items()
        }

    def _sources(self) -> Iterator[tuple[str, str]]:
        """Yield the inputs of the models, each with the value of the first model that it begins with."""
        body = self._body
        yield from body.outer.items()
        if body.node.op_type != "If" or not body.attribute:
            skipped = 2 if body.node.op_type == "Loop" and body.attribute else 0
            pairs = zip(body.inputs[skipped:], body.node.input[skipped:], strict=False)
            yield from (pair for pair in pairs if pair[0])

    def _states(self, results: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield the states of a loop, each with what the body computes for its next step."""
        body = self._body
        count = state_count(body.node, len(body.inputs)) if body.attribute else 0
        shift = 1 if body.node.op_type == "Loop" else 0
        for place in range(count):
            number = body.outputs[place + shift]
            if number is not None:
                yield body.inputs[place + 2 * shift], results[number]

    def _is_limited(self, name: str) -> bool:
        """Return True if only some numbers reach a value around the body."""
        side = self._local.found.before
        maker = side.makers.get(name)
        return not self._local.question.is_drawable(name) or (
            maker is not None and side.nodes[maker].op_type in LIMITING
        )


def _fix_sizes(declared: onnx.TypeProto, known: ValueType) -> None:
    """Write the sizes that are known as numbers into the type of a tensor."""
    dims = declared.tensor_type.shape.dim if declared.HasField("tensor_type") else ()
    if known.shape is None or len(dims) != len(known.shape):
        return
    for dim, size in zip(dims, known.shape, strict=True):
        if isinstance(size, int):
            dim.dim_value = size
