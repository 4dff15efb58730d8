"""What one node does to sizes, asked from its inference rule: the node is inferred alone, with a symbol for each size.

So which size makes which, and which sizes have to be equal, is stated once: by the rules. A size of 1 stays a number,
because it may be broadcast. Nodes with bodies cannot be asked.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from splitgraph.dim import Dim, DimLike, Facts, evaluate, substitute_if_defined, symbol, symbols_of
from splitgraph.inference.rules import load_rules
from splitgraph.inference.task import Task
from splitgraph.inference.walk import Walk
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.attributes import HOLDING_GRAPHS
from splitgraph.model.onnx_proto import ModelProto, NodeProto, TensorProto
from splitgraph.model.scopes import MAIN
from splitgraph.model.value_type import UNKNOWN, Contents, Item, ValueType, tensor
from splitgraph.model.values import tensor_contents

# Inputs with more elements say no sizes, axes or positions that matter to a dimension.
MOST_ELEMENTS = 64
# A larger number says "to the end".
_LARGEST_SIZE = 2**31 - 2
# Ranges and slices in longer steps are not followed.
_MOST_STEPS = 64
# No operator is asked about inputs of more dimensions.
_LARGEST_RANK = 8
# Numbers for dimensions without an old size, so that each has another one.
_FIRST_STAND_IN = 1009
# So many steps show how fast a size grows. All other sizes are made larger by _FAR then, so that none is in its way.
_STEPS_SHOWN = 1 << 16
_FAR = 1 << 40


class Given(NamedTuple):
    """What is known of an input: its type, and its elements if they are known."""

    type: ValueType
    elements: Contents | TensorProto | None = None

    @property
    def items(self) -> tuple[Item, ...]:
        """The elements that have been read; none if they are not known."""
        return self.elements.items if isinstance(self.elements, Contents) else ()


class Source(NamedTuple):
    """A dimension of an input along an axis, or an element of an input that says sizes. position: of the input. place:
    the axis, or the number of the element.
    """

    position: int
    place: int
    is_element: bool = False


class Made(NamedTuple):
    """How a size of an output follows from the size that all the sources have:
    `times * (size of the sources) = each * (size of the output) + more`.
    """

    sources: tuple[Source, ...]
    times: int = 1
    each: int = 1
    more: int = 0

    @property
    def is_same(self) -> bool:
        """True if the size is that of the sources."""
        return (self.times, self.each, self.more) == (1, 1, 0)

    def size_for(self, size: DimLike) -> DimLike | None:
        """Return the size of the sources with which the node gives this size; None if there is none."""
        whole = size * self.each + self.more
        part = whole // self.times
        return part if part * self.times == whole else None


class _Question(NamedTuple):
    """The inputs of a node with symbols in place of sizes. sources: what each symbol stands for. least: its least
    value.
    """

    given: tuple[Given | None, ...]
    sources: Mapping[str, Source]
    least: Mapping[str, int]


class _Answer(NamedTuple):
    """What the rule says. shapes: of each output. sources: what each symbol stands for. groups: the sources whose sizes
    are equal, more than one in each. summed: the sources that are equal to others only together, as lengths of a split.
    equalities: what has to be equal, in terms of the symbols. is_wrong: the rule has found an error.
    """

    shapes: tuple[tuple[DimLike | None, ...] | None, ...]
    sources: Mapping[str, Source]
    groups: tuple[tuple[Source, ...], ...]
    summed: frozenset[Source]
    equalities: tuple[tuple[DimLike, DimLike], ...]
    generated: frozenset[str]
    is_wrong: bool

    def known(self) -> Iterator[tuple[int, int]]:
        """Yield each output and axis whose dimension is known."""
        for output, shape in enumerate(self.shapes):
            for axis, dim in enumerate(shape or ()):
                if dim is not None and self.generated.isdisjoint(symbols_of(dim)):
                    yield output, axis


@dataclass(slots=True)
class Alone:
    """Infers nodes alone. Remembers what rules say: it depends on the operator and its opset, the attributes, which
    inputs and outputs there are, the types and ranks of inputs, their sizes of 0 and 1, and the elements of inputs of
    few elements. The remembered answers are about these alone, and are never forgotten.
    """

    _task: Task = field(default_factory=lambda: Task(ModelProto(), is_reported=False))
    _answers: dict[Hashable, _Answer] = field(default_factory=dict)
    _ranks: dict[Hashable, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        load_rules()

    def made(
        self,
        node: NodeProto,
        imports: Mapping[str, int],
        given: Sequence[Given | None],
        output: int,
        axis: int,
        said_by: int | None = None,
    ) -> Made | None:
        """Return how a size of an output is made; None if it is made of several sizes, or of none that is known.

        given: what is known of each input, at one size of each dimension; None for an omitted one. said_by: the input
        whose elements say sizes.
        """
        if _has_bodies(node):
            return None
        given = [*map(_few, given)]
        answer = self._answer(node, imports, given, said_by)
        if (output, axis) not in set(answer.known()):
            return None
        dim, (values, open_ones) = (answer.shapes[output] or ())[axis], _values(answer.sources, given)
        if not isinstance(dim, Dim) or not symbols_of(dim) <= values.keys():
            return None
        makers = [name for name in sorted(symbols_of(dim)) if _grows(dim, name, values)]
        stated = [name for name in makers if answer.sources[name].is_element]
        # An end at the end of the data is the end of any data, if all of it is taken.
        whole = [name for name in makers if stated and name not in stated and values[name] == evaluate(dim, values)]
        makers = whole or stated or makers
        if len(makers) != 1:
            return None
        maker = answer.sources[makers[0]]
        sources = next((group for group in answer.groups if maker in group), (maker,))
        if any(source.is_element and source in answer.summed for source in sources):
            return None
        return Made(sources) if whole else _relation(dim, makers[0], values, open_ones, sources)

    def equal_sizes(
        self, node: NodeProto, imports: Mapping[str, int], given: Sequence[Given | None], said_by: int | None = None
    ) -> tuple[tuple[Source, ...], ...]:
        """Return which sizes of the inputs a node needs to be equal."""
        if _has_bodies(node):
            return ()
        given = [*map(_few, given)]
        answer = self._answer(node, imports, given, said_by)
        if answer.is_wrong:
            # A size of 1 has to be a larger one.
            answer = self._answer(node, imports, given, said_by, least=1)
        return answer.groups

    def carried(self, node: NodeProto, imports: Mapping[str, int], given: Sequence[Given | None]) -> frozenset[Source]:
        """Return the sizes of inputs that are part of a size of an output."""
        if _has_bodies(node):
            return frozenset()
        answer = self._answer(node, imports, [*map(_few, given)], None)
        dims = ((answer.shapes[output] or ())[axis] for output, axis in answer.known())
        names = {name for dim in dims if dim is not None for name in symbols_of(dim)}
        return frozenset(answer.sources[name] for name in names & answer.sources.keys())

    def repeated(
        self,
        node: NodeProto,
        imports: Mapping[str, int],
        given: Sequence[Given | None],
        larger: Sequence[Given | None],
    ) -> Iterator[tuple[int, int]]:
        """Yield each output and axis that is 1, and is more with larger inputs. larger: has 2 for 1 in places."""
        if _has_bodies(node):
            return
        before, after = (self._answer(node, imports, [*map(_few, each)], None) for each in (given, larger))
        known = () if after.is_wrong else set(before.known()) & set(after.known())
        for output, axis in known:
            sizes = [(answer.shapes[output] or ())[axis] for answer in (before, after)]
            if sizes[0] == 1 != sizes[1]:
                yield output, axis

    def equal_dims(
        self, node: NodeProto, imports: Mapping[str, int], given: Sequence[Given | None]
    ) -> Iterator[tuple[DimLike, DimLike]]:
        """Yield which dimensions of the inputs, or sums of them, a node needs to be equal; that of the first input
        first.
        """
        if _has_bodies(node):
            return
        answer = self._answer(node, imports, given, None)
        shapes = [() if each is None else each.type.shape or () for each in given]
        dims = {name: shapes[source.position][source.place] for name, source in answer.sources.items()}
        for sides in answer.equalities:
            one, other = (substitute_if_defined(side, dims) if isinstance(side, Dim) else side for side in sides)  # type: ignore[arg-type]
            if one is not None and other is not None and one != other:
                yield one, other

    def only_rank(
        self,
        node: NodeProto,
        imports: Mapping[str, int],
        given: Sequence[ValueType],
        made: Sequence[ValueType],
        position: int,
    ) -> int | None:
        """Return the only rank that an input can have beside the other inputs and the outputs; None if it can have
        several, if no rank fits, or if it is larger than all that are asked for. given, made: what is known of the type
        of each input and output.
        """
        if _has_bodies(node):
            return None
        asked = [
            Given(_with_symbols(kind, at)) if name else None
            for at, (name, kind) in enumerate(zip(node.input, given, strict=True))
        ]
        ranks = tuple(kind.rank if kind.kind == "tensor" else None for kind in made)
        key = (*_key(node, imports), position, ranks, tuple(each and each.type for each in asked))
        if key not in self._ranks:
            # One more is tried: a node that has an axis 7 takes any rank from 8 on.
            fitting = [
                rank
                for rank in range(_LARGEST_RANK + 2)
                if self._may_have(node, imports, asked, ranks, position, tensor(given[position].dtype, (None,) * rank))
            ]
            self._ranks[key] = fitting[0] if len(fitting) == 1 and fitting[0] <= _LARGEST_RANK else None
        return self._ranks[key]

    def _may_have(
        self,
        node: NodeProto,
        imports: Mapping[str, int],
        given: Sequence[Given | None],
        ranks: Sequence[int | None],
        position: int,
        kind: ValueType,
    ) -> bool:
        """Return True if an input may have a type. ranks: of the outputs, None if one is not known."""
        tried = (*given[:position], Given(_with_symbols(kind, position)), *given[position + 1 :])
        answer = self._infer(node, imports, _Question(tried, {}, {}))
        made = zip(answer.shapes, ranks, strict=True)
        return not answer.is_wrong and all(None in (shape, rank) or len(shape or ()) == rank for shape, rank in made)

    def says_shapes(
        self, node: NodeProto, imports: Mapping[str, int], given: Sequence[Given | None], position: int
    ) -> bool:
        """Return True if the elements of an input say shapes that a node gives: they are not known without."""
        asked = given[position] if position < len(given) else None
        if _has_bodies(node) or asked is None or asked.elements is None:
            return False
        fewer = [*given[:position], Given(asked.type), *given[position + 1 :]]
        answer, without = (self._infer(node, imports, _Question(tuple(each), {}, {})) for each in (given, fewer))
        return not set(answer.known()) <= set(without.known())

    def _answer(
        self,
        node: NodeProto,
        imports: Mapping[str, int],
        given: Sequence[Given | None],
        said_by: int | None,
        least: int = 2,
    ) -> _Answer:
        key = (
            *_key(node, imports),
            (said_by, least),
            tuple(None if each is None else _comparable(each) for each in given),
        )
        if key not in self._answers:
            self._answers[key] = self._ask(node, imports, given, said_by, least)
        return self._answers[key]

    def _ask(
        self,
        node: NodeProto,
        imports: Mapping[str, int],
        given: Sequence[Given | None],
        said_by: int | None,
        least: int,
    ) -> _Answer:
        """Return what the rule says, given only those elements of inputs on which a dimension depends. Without the
        other elements, more sizes are symbols.
        """
        answer = self._infer(node, imports, _question(given, said_by, least))
        known = set(answer.known())
        for position, each in enumerate(given):
            if each is None or each.elements is None:
                continue
            fewer = [*given[:position], Given(each.type), *given[position + 1 :]]
            without = self._infer(node, imports, _question(fewer, said_by, least))
            if known <= set(without.known()) and without.is_wrong <= answer.is_wrong:
                given, answer = fewer, without
        return answer

    def _infer(self, node: NodeProto, imports: Mapping[str, int], question: _Question) -> _Answer:
        alone = NodeProto(op_type=node.op_type, domain=node.domain, attribute=node.attribute)
        alone.input.extend("" if each is None else f"i{at}" for at, each in enumerate(question.given))
        alone.output.extend(f"o{at}" if name else "" for at, name in enumerate(node.output))
        facts = Facts({name: (least, None) for name, least in question.least.items()})
        known = {name: each for name, each in zip(alone.input, question.given, strict=True) if each is not None}
        walk = inferred_alone(self._task, alone, imports, known, facts)
        types = [walk.types.get(name, UNKNOWN) if name else UNKNOWN for name in alone.output]
        groups, summed = _equalities(facts, question.sources)
        return _Answer(
            tuple(kind.shape if kind.kind == "tensor" else None for kind in types),
            question.sources,
            tuple(groups),
            summed,
            tuple(_sides(facts, question.sources)),
            frozenset(walk.state.symbols.generated),
            any(finding.severity == "error" for finding in walk.state.record.diagnostics),
        )


def inferred_alone(
    task: Task, node: NodeProto, imports: Mapping[str, int], known: Mapping[str, Given], facts: Facts | None = None
) -> Walk:
    """Return the walk over a graph of only this node. known: what is known of the values that it reads."""
    walk = Walk(WalkState(task), MAIN, "main", imports, Facts() if facts is None else facts, bindings={})
    for name, each in known.items():
        walk.types[name] = each.type
        if each.elements is not None:
            walk.constants[name] = each.elements
    walk.run([node])
    return walk


# Questions ------------------------------------------------------------------------------------------------------------


def _question(given: Sequence[Given | None], said_by: int | None, least: int) -> _Question:
    """Return the question about a node in which a symbol stands for each size of its inputs, and for each number among
    the elements of the input `said_by`. Any other input whose elements are known stays as it is.

    least: the smallest size that gets a symbol, 1 or 2. A symbol is at least 2, or 1 for a size of 1.
    """
    sources: dict[str, Source] = {}
    bounds: dict[str, int] = {}

    def named(item: Item, source: Source, smallest: int) -> Item:
        is_size = isinstance(item, Dim) or (isinstance(item, int) and smallest <= item <= _LARGEST_SIZE)
        if not is_size:
            return item
        name = f"size {len(sources)}"
        sources[name] = source
        bounds[name] = 1 if item == 1 else 2
        return symbol(name)

    asked: list[Given | None] = []
    for position, each in enumerate(given):
        if each is None or (each.elements is not None and position != said_by):
            asked.append(each)
        elif isinstance(each.elements, Contents):
            items = [named(item, Source(position, at, True), 2) for at, item in enumerate(each.elements.items)]
            asked.append(Given(each.type, Contents(each.elements.shape, tuple(items))))
        else:
            dims = [named(dim, Source(position, axis), least) for axis, dim in enumerate(each.type.shape or ())]
            known = each.type if each.type.shape is None else each.type.with_shape(dims)  # type: ignore[arg-type]
            asked.append(Given(known))
    return _Question(tuple(asked), sources, bounds)


def _key(node: NodeProto, imports: Mapping[str, int]) -> tuple[Hashable, ...]:
    """Return what is equal for nodes that say the same of equal inputs."""
    return (
        (node.op_type, node.domain, tuple(map(bool, node.output))),
        tuple(sorted(imports.items())),
        tuple(sorted(attribute.SerializeToString() for attribute in node.attribute)),
    )


def _with_symbols(kind: ValueType, position: int) -> ValueType:
    """Return the type of an input with a symbol for each dimension that is no number."""
    if kind.shape is None:
        return kind
    return kind.with_shape(
        [dim if isinstance(dim, int) else symbol(f"size {axis} of {position}") for axis, dim in enumerate(kind.shape)]
    )


def _has_bodies(node: NodeProto) -> bool:
    return any(attribute.type in HOLDING_GRAPHS for attribute in node.attribute)


def _few(given: Given | None) -> Given | None:
    """Return what is known of an input, with its elements read if they are few, and without any others."""
    if given is None:
        return None
    elements = given.elements
    if isinstance(elements, TensorProto):
        elements = tensor_contents(elements) if prod(elements.dims) <= MOST_ELEMENTS else None
    return Given(given.type, elements if elements is not None and len(elements.items) <= MOST_ELEMENTS else None)


def _comparable(given: Given) -> Hashable:
    kind, elements = given.type, given.elements
    if isinstance(elements, Contents):
        return kind, elements.shape, tuple((type(item), item) for item in elements.items)
    pattern = None if kind.shape is None else tuple(dim if dim in (0, 1, None) else -1 for dim in kind.shape)
    return kind.kind, kind.dtype, pattern


# Answers --------------------------------------------------------------------------------------------------------------


def _equalities(facts: Facts, sources: Mapping[str, Source]) -> tuple[list[tuple[Source, ...]], frozenset[Source]]:
    """Return the sources whose sizes have to be equal, and those that are equal to others only together."""
    group_of, summed = {name: {name} for name in sources}, set[str]()
    for obligation in facts.obligations:
        difference = obligation.lhs - obligation.rhs
        names = symbols_of(difference) & sources.keys()
        if obligation.relation != "==" or not names:
            continue
        one, other = min(names), max(names)
        if difference in (symbol(one) - symbol(other), symbol(other) - symbol(one)):
            joined = group_of[one] | group_of[other]
            group_of.update(dict.fromkeys(joined, joined))
        else:
            summed |= names
    groups = {id(group): group for group in group_of.values() if len(group) > 1}.values()
    found = [tuple(sources[name] for name in sources if name in group) for group in groups]
    return found, frozenset(sources[name] for name in summed)


def _sides(facts: Facts, sources: Mapping[str, Source]) -> Iterator[tuple[DimLike, DimLike]]:
    """Yield both sides of each equality between sizes, the one that names the first symbol first."""
    numbers = {name: number for number, name in enumerate(sources)}
    for obligation in facts.obligations:
        if obligation.relation == "==" and symbols_of(obligation.lhs - obligation.rhs) <= sources.keys():
            sides = (obligation.lhs, obligation.rhs)
            yield tuple(sorted(sides, key=lambda side: min(map(numbers.__getitem__, symbols_of(side)), default=-1)))  # type: ignore[misc]


def _values(sources: Mapping[str, Source], given: Sequence[Given | None]) -> tuple[dict[str, int], frozenset[str]]:
    """Return the size for which each symbol stands, and the symbols of dimensions without a number: each gets one."""
    stand_ins: dict[Item, int] = {}
    values, open_ones = {}, set[str]()
    for name, (position, place, is_element) in sources.items():
        each = given[position]
        if each is None:
            continue
        item = each.items[place] if is_element else (each.type.shape or ())[place]
        values[name] = item if isinstance(item, int) else stand_ins.setdefault(item, _FIRST_STAND_IN + len(stand_ins))
        open_ones.update(() if isinstance(item, int) else [name])
    return values, frozenset(open_ones)


def _at(dim: DimLike, values: Mapping[str, int], name: str, more: int) -> int | None:
    try:
        return evaluate(dim, {**values, name: values[name] + more})
    except ArithmeticError:
        return None


def _grows(dim: Dim, name: str, values: Mapping[str, int]) -> bool:
    less, now, greater = (_at(dim, values, name, more) for more in (-1, 0, 1))
    return now is not None and ((greater is not None and greater > now) or (less is not None and less < now))


def _relation(
    dim: Dim, name: str, values: Mapping[str, int], open_ones: frozenset[str], sources: tuple[Source, ...]
) -> Made | None:
    """Return how a dimension grows with a symbol: in proportion, or, for an element, by 1 for some steps."""
    for times in (coefficient for monomial, coefficient in dim.terms if len(monomial) == 1 and coefficient > 0):
        rest = dim - times * symbol(name)
        others = _at(rest, values, name, 0)
        if others is not None and symbols_of(rest).isdisjoint({*open_ones, name}):
            return Made(sources, times, 1, -others)
    now = _at(dim, values, name, 0)
    if not any(source.is_element for source in sources) or now is None:
        return None
    apart = {other: value + (0 if other == name else _FAR) for other, value in values.items()}
    start = _at(dim, apart, name, 0)
    for each in range(1, _MOST_STEPS + 1):
        once, last = (_at(dim, apart, name, steps * each) for steps in (1, _STEPS_SHOWN))
        if start is not None and (once, last) == (start + 1, start + _STEPS_SHOWN):
            return Made(sources, 1, each, values[name] - each * now)
    return None
