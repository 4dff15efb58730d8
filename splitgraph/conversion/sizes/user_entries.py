"""Reads what the user says of numbers: which ones stay (`--keep`), and which dimensions others are (`--follow`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from splitgraph.conversion.sizes.follow import Operators
from splitgraph.conversion.sizes.needs import InputPlace
from splitgraph.conversion.sizes.values import constant_input
from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.conversion.sizes.windows import may_be_global, window_of
from splitgraph.dim import Dim, DimLike, parse_given_dim, symbols_of
from splitgraph.findings.diagnostics import SplitgraphError, meant
from splitgraph.inference import Walked
from splitgraph.model.onnx_proto import NodeProto, TensorProto
from splitgraph.model.scopes import MAIN, Scope, node_label
from splitgraph.model.value_type import Contents, Item
from splitgraph.model.values import tensor_contents
from splitgraph.options import NewSizes

_SLICES = ("Slice", "StridedSlice")
_CARRYING = ("Loop",)
_PLACE = re.compile(r"(.+)\[(\d+)\]")
# An input of a node, an entry of it, and what the entry is.
_Said = tuple[InputPlace, int, DimLike]


def given_by_the_user(
    walk: Callable[[], Walked], sizes: NewSizes, operators: Operators, wanted: Wanted
) -> dict[InputPlace, dict[int, DimLike]]:
    """Return the entries of constants of which the user says what they are: dimensions, or the numbers that they have.
    Raises SplitgraphError.

    The window of a pooling counts as an input behind all inputs of its node, and the sizes of weights as the next one.
    """
    said: dict[str, str | None] = {**dict.fromkeys(sizes.keep), **dict(map(_as_pair, sizes.follow))}
    if not said:
        return {}
    reader = _EntryReader(walk(), operators, wanted)
    found: dict[InputPlace, dict[int, DimLike]] = {}
    for text, written in said.items():
        for place, entry, value in reader.read(text, written):
            found.setdefault(place, {})[entry] = value
    return found


@dataclass(slots=True)
class _EntryReader:
    """Reads what the user says of one number after the other."""

    walked: Walked
    operators: Operators
    wanted: Wanted
    # The nodes by location, and the locations that several nodes have.
    nodes: dict[str, tuple[Scope, int]] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for scope in self.walked.scopes:
            for index, node in enumerate(scope.nodes):
                location = f"{scope.location}/{node_label(node, index)}"
                if location in self.nodes:
                    self.repeated.add(location)
                self.nodes[location] = scope, index

    def read(self, text: str, written: str | None) -> Iterator[_Said]:
        """Yield what the user says of a number. text: NODE[ENTRY]. written: the dimension; None if the number stays."""
        scope, index, entry = self._named(text)
        node = scope.nodes[index]
        entry, position = self._position(scope, node, entry)
        window = window_of(node)
        if entry < len(window):
            size = self._window(node, text, written, window[entry])
            yield InputPlace(scope.path, index, len(node.input)), entry, size
            return
        numbers = _items(self.walked, scope, node.input[position]) if 0 <= position < len(node.input) else ()
        dim = None if written is None else _read_dim(written, text, self.wanted)
        names = _weights_of(self.walked, scope, index, self.operators, self.wanted)
        before = None if dim is None else self.wanted.before(dim)
        if _is_of_weights(self.walked, scope, names, entry, before, numbers[entry:]):
            yield InputPlace(scope.path, index, len(node.input) + 1), entry, 1 if dim is None else dim
            has_number = entry < len(numbers) and isinstance(numbers[entry], (int, float))
            if dim is not None or not has_number:
                return
        yield self._element(scope, index, position, entry, text, written)

    def _named(self, text: str) -> tuple[Scope, int, int]:
        """Return the node of a text NODE[ENTRY], as graph and number, and the entry."""
        match = _PLACE.fullmatch(text)
        if match is None or match[1] not in self.nodes:
            near = "" if match is None else meant(match[1], self.nodes)
            raise SplitgraphError(f"{text!r} names no number of a node{near}; write NODE[ENTRY], as in main/reshape[0]")
        if match[1] in self.repeated:
            raise SplitgraphError(f"{text!r}: several nodes are called {match[1]}; give them names of their own first")
        return *self.nodes[match[1]], int(match[2])

    def _position(self, scope: Scope, node: NodeProto, entry: int) -> tuple[int, int]:
        """Return the entry, and the input of a node in which it counts; -1 for a node without an input of sizes."""
        if node.op_type in _CARRYING and entry in range(2, len(node.input)):
            # A number that a loop carries is called by its input.
            return 0, entry
        if node.op_type in self.operators.values:
            held = [_elements(self.walked, scope, name) is not None for name in node.input]
            return entry, constant_input(node.op_type, held) or 0
        return entry, self.operators.saying.get(node.op_type, -1)

    def _window(self, node: NodeProto, text: str, written: str | None, size: int) -> DimLike:
        """Return what a window of this size is."""
        if written is None:
            return size
        if not may_be_global(self.operators.domain, node):
            raise SplitgraphError(
                f"{text}={written}: the window is an attribute, which holds numbers; it can only stay"
            )
        return _checked(_read_dim(written, text, self.wanted), size, text, self.wanted)

    def _element(self, scope: Scope, index: int, position: int, entry: int, text: str, written: str | None) -> _Said:
        """Return what an element of a constant input is."""
        node = scope.nodes[index]
        if not 0 <= position < len(node.input):
            raise SplitgraphError(
                f"{text.rpartition('[')[0]} is a {node.op_type} without an input that says a size; where an attribute "
                f"says it, upgrade the model first"
            )
        known = _elements(self.walked, scope, node.input[position])
        if node.op_type in _SLICES and known is not None and entry >= len(known.items):
            # The user counts the starts behind the ends.
            entry, position = entry - len(known.items), position - 1
            known = _elements(self.walked, scope, node.input[position])
        if known is None or not entry < len(known.items):
            raise SplitgraphError(f"{text!r}: there is no constant with an entry {entry}")
        place, before = InputPlace(scope.path, index, position), known.items[entry]
        if written is None:
            if not isinstance(before, (int, float)):
                raise SplitgraphError(f"{text!r} is no number, so that it cannot stay as it is")
            return place, entry, before  # type: ignore[return-value]
        if isinstance(before, float) and node.op_type not in self.operators.values:
            raise SplitgraphError(
                f"{text}={written}: the model has {before} there, which is no integer, and so no size"
            )
        return place, entry, _checked(_read_dim(written, text, self.wanted), before, text, self.wanted)


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
