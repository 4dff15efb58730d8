"""Checks what a model does with the number of items in a batch.

The items of a batch must not depend on how many there are. So the number N may only say sizes, or count the items to
pick each of them in turn: no branch depends on it, no factor, no number of an item as data. Values are followed in node
order, through bodies. A value is a *size* (its elements are sizes with N in them), a *count* (0, 1, 2 … N - 1, in any
layout), or does not depend on N.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from splitgraph.conversion.sizes.bodies import ports_of_body
from splitgraph.conversion.sizes.follow import Follower
from splitgraph.conversion.sizes.needs import InputPlace, Repeated, Triangle
from splitgraph.dim import Dim, DimLike, product, symbols_of
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import GraphDetail
from splitgraph.model.attributes import attribute_value
from splitgraph.model.names import Definitions
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.scopes import MAIN, GraphPath, Scope, node_label, plain_domain, roots, subgraphs
from splitgraph.model.value_type import UNKNOWN, Contents, Shape


class _Label(NamedTuple):
    """How a value depends on the number of items. counted: the dimension whose places it counts; None for a size.
    stride: it counts in such steps, as `b*T` in `b*T + t`.
    """

    counted: DimLike | None = None
    stride: DimLike = 1


_SIZE = _Label()
# The inputs that decide which body runs, or whether it does.
_CONDITIONS = {"If": frozenset({0}), "Loop": frozenset({1})}


def items_by_number(walked: Walked, follower: Follower, names: frozenset[str]) -> dict[str, tuple[str, str]]:
    """Return the names whose number is used for more than sizes and counts, each with the first node that does so, and
    what it does.
    """
    found: dict[str, tuple[str, str]] = {}
    for root in roots(walked.scopes):
        if root[0].is_function or not names:
            continue
        for name in sorted(names):
            flow = _Flow(name, walked.graphs, {scope.path: scope for scope in root}, Definitions(root), follower)
            misuse = next(flow.run(), None)
            if misuse is not None:
                found[name] = misuse
    return found


@dataclass(slots=True)
class _Flow:
    """Follows what comes from the number of one name."""

    name: str
    graphs: Mapping[GraphPath, GraphDetail]
    scopes: Mapping[GraphPath, Scope]
    definitions: Definitions
    follower: Follower
    labels: dict[tuple[GraphPath, str], _Label] = field(default_factory=dict)
    # The dimensions of which values are numbers of places, as an ArgMax finds them.
    places: dict[tuple[GraphPath, str], DimLike] = field(default_factory=dict)

    def run(self) -> Iterator[tuple[str, str]]:
        """Yield the nodes and outputs that use the number for more than sizes and counts, and what they do."""
        yield from self._graph(MAIN)
        for output in self.scopes[MAIN].proto.output if MAIN in self.scopes else ():
            if (MAIN, output.name) in self.labels:
                yield f"main/{output.name}", f"the output {output.name!r} says how many there are of {self.name}"

    def _graph(self, path: GraphPath) -> Iterator[tuple[str, str]]:
        scope = self.scopes.get(path)
        for index, node in enumerate(() if scope is None or path not in self.graphs else scope.nodes):
            given = self._given(InputPlace(path, index, 0), node)
            self._note_places(path, node)
            made = yield from self._bodies(path, index, node, given)
            made = self._made(InputPlace(path, index, 0), node, given) if made is None else made
            if isinstance(made, str):
                yield f"{scope.location}/{node_label(node, index)}", made  # type: ignore[union-attr]
                continue
            for name, label in zip(node.output, made, strict=False):
                if label is not None and name:
                    self.labels[path, name] = label

    def _note_places(self, path: GraphPath, node: NodeProto) -> None:
        """Note the dimension along which the results of a node are places, as those of an ArgMax are."""
        if plain_domain(node.domain) != self.follower.operators.domain:
            return
        flow = self.follower.operators.flow
        if node.op_type in flow.finding:
            output, axis = flow.finding[node.op_type]
            said = next((attribute_value(each) for each in node.attribute if each.name == "axis"), axis)
            dims = self._dims(path, node.input[0])
            dim = dims[int(said)] if -len(dims) <= int(said) < len(dims) else None
        elif node.op_type in flow.layout and node.op_type != "Concat":
            output, dim = 0, self.places.get((self.definitions.home(path, node.input[0]), node.input[0]))
        else:
            return
        if dim is not None and output < len(node.output):
            self.places[path, node.output[output]] = dim

    def _given(self, place: InputPlace, node: NodeProto) -> dict[int, _Label]:
        """Return the labels of inputs, and those of weights that are counted for this node."""
        found: dict[int, _Label] = {}
        for position, name in enumerate(node.input):
            label = self.labels.get((self.definitions.home(place.path, name), name)) if name else None
            here = place._replace(position=position)
            steps = {
                axis: each.step for axis, each in self.follower.decided.repeated.get(here, {}).items() if each.step
            }
            pattern = self.follower.decided.patterns.get(here)
            steps.update(
                () if pattern is None or isinstance(pattern, Triangle) else ((each.axis, 1) for each in pattern)
            )
            dims = [(dim, axis) for axis, dim in self.follower.decided.expanded.get(here, {}).items() if axis in steps]
            counted = next(((dim, axis) for dim, axis in dims if self.name in symbols_of(dim)), None)
            label = label if counted is None else _Label(counted[0], steps[counted[1]])
            if label is None and self._has_size(self._read(here)):
                label = _SIZE
            if label is not None:
                found[position] = label
        return found

    def _read(self, place: InputPlace) -> Contents | None:
        """Return the elements of a constant that a node reads as others than the model has."""
        return self.follower.seen.edits.get(place[:2], {}).get(place.position)

    def _made(self, place: InputPlace, node: NodeProto, given: Mapping[int, _Label]) -> Sequence[_Label | None] | str:
        """Return the labels of the outputs of a node, or what it does with the number of items that it may not do.

        place: of its first input. given: the labels of its inputs that come from the number.
        """
        path, kind, detail, flow = place.path, node.op_type, self.graphs[place.path], self.follower.operators.flow
        is_own = plain_domain(node.domain) == self.follower.operators.domain
        says = flow.saying.get(kind, ()) if is_own else ()
        if kind in flow.shapes:
            known = self._known(detail, node.output[0])
            return [_SIZE if (self._has_name(node, path, 0) if known is None else known) else None]
        if not given:
            return []
        # A size may say a shape. What other inputs have of the number decides.
        rest = {
            position: label for position, label in given.items() if position not in says or label.counted is not None
        }
        known = self._known(detail, node.output[0]) if len(node.output) == 1 else None
        if known is not None:
            return [_SIZE if known else None]
        if kind == "Range":
            return self._range(place, node)
        if not rest:
            return []
        counts = [label for label in rest.values() if label.counted is not None]
        if len(counts) == len(rest):
            if kind in flow.layout:
                return [counts[0]] * len(node.output)
            if kind in flow.picking and set(rest) == {1} and self._picks_items(place, node, counts[0].stride):
                return []
            within = self._within_steps(place, node, rest) if is_own else None
            if within is not None:
                return [within]
        elif not counts and kind in flow.of_sizes and self._is_list(detail, node):
            return [_SIZE] * len(node.output)
        return f"{kind} computes with the number of {self.name}, and not only with each item in turn"

    def _range(self, place: InputPlace, node: NodeProto) -> Sequence[_Label | None] | str:
        """Return the label of a Range: it counts all items, or something else."""
        start, limit, step = (self._items(place.path, name) for name in node.input)
        read = self._read(place._replace(position=1))
        limit = limit if read is None else tuple(read.dims)
        if start == (0,) and step and limit and step[0] is not None and isinstance(limit[0], Dim):
            counted = limit[0] // step[0] if step[0] != 0 else limit[0]
            if product([counted, step[0]]) == limit[0]:
                return [_Label(counted, step[0])]
        return f"Range computes with the number of {self.name}, and does not count each item from 0"

    def _bodies(
        self, path: GraphPath, index: int, node: NodeProto, given: Mapping[int, _Label]
    ) -> Generator[tuple[str, str], None, Sequence[_Label | None] | str | None]:
        """Return the labels of the outputs of a node with bodies, or what it does with the number of items that it may
        not do; None for a node without bodies. Yield what nodes in the bodies do with that number.

        given: the labels of the inputs.
        """
        bodies = [*subgraphs(node)]
        if not bodies:
            return None
        if given.keys() & _CONDITIONS.get(node.op_type, frozenset()):
            return f"{node.op_type} decides by the number of {self.name}"
        made: list[_Label | None] = [None] * len(node.output)
        for attribute, at, graph in bodies:
            inner = (*path, index, attribute, at)
            ports = ports_of_body(node, attribute, graph)
            passed = {inside: given[outside] for outside, inside in ports.inputs if outside in given}
            if ports.iteration is not None and 0 in given:
                # A Loop over the items counts them.
                limit = self._items(path, node.input[0])
                passed[ports.iteration] = _Label(limit[0] if limit else None)
            for position, label in passed.items():
                if position < len(graph.input):
                    self.labels[inner, graph.input[position].name] = label
            yield from self._graph(inner)
            for inside, outside in ports.outputs:
                name = graph.output[inside].name
                carried = self.labels.get((self.definitions.home(inner, name), name))
                if carried is not None and outside < len(made):
                    made[outside] = carried
        return made

    def _has_name(self, node: NodeProto, path: GraphPath, position: int) -> bool:
        """Return True for an input that has a dimension of the name."""
        dims = self._dims(path, node.input[position])
        return any(dim is not None and self.name in symbols_of(dim) for dim in dims)

    def _dims(self, path: GraphPath, name: str) -> Shape:
        detail = self.graphs.get(self.definitions.home(path, name))
        return (None if detail is None else detail.types.get(name, UNKNOWN).shape) or ()

    def _read_dims(self, place: InputPlace, name: str) -> Shape:
        """Return the dimensions of a value as a node reads it: weights may be repeated for it."""
        repeated = self.follower.decided.expanded.get(place, {})
        return tuple(repeated.get(axis, dim) for axis, dim in enumerate(self._dims(place.path, name)))

    def _within_steps(self, place: InputPlace, node: NodeProto, given: Mapping[int, _Label]) -> _Label | None:
        """Return the label of a count that is multiplied by a size, or to which the places within its steps are added;
        None for anything else.
        """
        if len(node.input) != 2 or len(given) != 1:
            return None
        ((position, label),) = given.items()
        other, name = place._replace(position=1 - position), node.input[1 - position]
        if node.op_type == "Mul" and label.stride == 1:
            items = self._items(place.path, name) or ()
            return label._replace(stride=items[0]) if len(items) == 1 and items[0] is not None else None
        if node.op_type == "Add" and self._counts_to(other, name, label.stride):
            return label
        return None

    def _counts_to(self, place: InputPlace, name: str, stride: DimLike) -> bool:
        """Return True for a list of 0, 1, 2 … as many as there are in a step, or for places among as many."""
        if self.places.get((self.definitions.home(place.path, name), name)) == stride:
            return True
        counted, sizes = self.follower.decided.repeated.get(place, {}), self.follower.decided.expanded.get(place, {})
        if any(each == Repeated(axis, 0, 1) and sizes.get(axis) == stride for axis, each in counted.items()):
            return True
        return isinstance(stride, int) and self._items(place.path, name) == tuple(range(stride))

    def _picks_items(self, place: InputPlace, node: NodeProto, stride: DimLike) -> bool:
        """Return True if indices of a node are those of items: the axis that they count has the name, and each item has
        as many places there as their steps.
        """
        path, axis = place.path, self.follower.operators.flow.picking[node.op_type]
        dims = self._read_dims(place._replace(position=0), node.input[0])
        if axis is None and self._dims(path, node.input[1])[-1:] != (1,):
            return stride == 1 and any(dim is not None and self.name in symbols_of(dim) for dim in dims)
        said: DimLike | None = 0
        if isinstance(axis, str):
            said = next((attribute_value(each) for each in node.attribute if each.name == axis), 0)
        elif axis is not None:
            said = (self._items(path, node.input[axis]) or (None,))[0]
        number = None if said is None else int(said)
        dim = dims[number] if number is not None and -len(dims) <= number < len(dims) else None
        if dim is None or number is None or self.name not in symbols_of(dim):
            return False
        order = self.follower.decided.orders.get((place._replace(position=0), number % len(dims))) or ()
        at = next((at for at, digit in enumerate(order) if self.name in symbols_of(digit.dim)), None)
        return stride == 1 if at is None else product([digit.dim for digit in order[at + 1 :]]) == stride

    def _known(self, detail: GraphDetail, name: str) -> bool | None:
        """Return whether the elements of a value have the name; None if they are not known."""
        known = detail.constants.get(name)
        return self._has_size(known) if isinstance(known, Contents) and None not in known.dims else None

    def _has_size(self, known: Contents | None) -> bool:
        return known is not None and any(dim is not None and self.name in symbols_of(dim) for dim in known.dims)

    def _items(self, path: GraphPath, name: str) -> tuple[DimLike | None, ...] | None:
        detail = self.graphs.get(self.definitions.home(path, name))
        known = None if detail is None else detail.constants.get(name)
        return tuple(known.dims) if isinstance(known, Contents) and known.items else None

    def _is_list(self, detail: GraphDetail, node: NodeProto) -> bool:
        """Return True if a node gives lists or numbers, as sizes are, and not data."""
        shapes = [detail.types.get(name, UNKNOWN).shape for name in node.output if name]
        return all(shape is not None and len(shape) <= 1 for shape in shapes)
