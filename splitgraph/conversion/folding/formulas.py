"""Computes sizes by the shortest formula over the sizes of inputs, if that takes fewer nodes.

Exporters compute each target of a Reshape anew: Shape, Gather, Unsqueeze and Concat for each. Inference follows all of
that, so that a target is known as numbers and dimensions. The dimensions of inputs, and what is computed from them, is
written once in a graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from splitgraph.conversion.folding.elements import Elements
from splitgraph.conversion.folding.uses import Uses
from splitgraph.conversion.node import Node
from splitgraph.conversion.plan import Plan, Replacement
from splitgraph.conversion.sizes.draft import SizeDraft, WrittenSizes
from splitgraph.conversion.sizes.formulas import NotWritable
from splitgraph.conversion.sizes.wanted import SizePlace
from splitgraph.dim import Dim, Facts, large_atoms, symbol, symbols_of
from splitgraph.dim.atoms import FLOOR, MOD, atoms_by_level
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import NodePlace
from splitgraph.model.names import FreshNames
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.scopes import MAIN, Scope, node_label, plain_domain
from splitgraph.model.value_type import Item

WHY = "sizes by a shorter way"
# Longer lists of sizes are not written.
_MOST_ITEMS = 64


@dataclass(slots=True)
class Formulas:
    """Plans the formulas of the main graph. root: its scopes are those of the main graph."""

    plan: Plan
    walked: Walked
    elements: Elements
    uses: Uses
    names: FreshNames
    as_nodes: bool = False
    _sayable: dict[str, Sequence[Item] | None] = field(default_factory=dict, init=False)
    _places: Mapping[str, tuple[int, SizePlace]] = field(init=False)
    _facts: Facts = field(init=False)

    def run(self) -> None:
        """Plan them, all or none."""
        scope, facts = self.uses.scopes.get(MAIN), self.walked.facts.get(MAIN)
        if scope is None or facts is None:
            return
        self._facts, self._places = facts, self._places_of(scope)
        arithmetic = {index for index, node in enumerate(scope.nodes) if self._is_arithmetic(scope, node)}
        if not arithmetic:
            return
        operands = {(MAIN, index): self._operands(scope, index) for index in set(range(len(scope.nodes))) - arithmetic}
        before = self.uses.needed()
        after = self.uses.needed(lambda place: self._reads(place, operands.get(place, ())))
        written, replacements = self._replacements(
            scope, {place: operands[place] for place in operands if place in after}
        )
        if replacements and written < len(before - after):
            self.plan.replace_all(replacements)

    def _places_of(self, scope: Scope) -> Mapping[str, tuple[int, SizePlace]]:
        """Return where a run finds each dimension: a value with it, and the node behind which the value is there."""
        found: dict[str, tuple[int, SizePlace]] = {}
        detail = self.walked.graphs[MAIN]
        values = [(-1, value.name) for value in scope.proto.input]
        values += [(index, name) for index, node in enumerate(scope.nodes) for name in node.output if name]
        for index, name in values:
            known = detail.types.get(name)
            shape = known.shape if known is not None and known.kind == "tensor" else None
            for axis, dim in enumerate(shape or ()):
                if isinstance(dim, Dim) and dim == symbol(str(dim)):
                    found.setdefault(str(dim), (index, SizePlace(name, axis)))
        return found

    def _is_arithmetic(self, scope: Scope, node: NodeProto) -> bool:
        """Return True for a node of which all that is read are lists of sizes."""
        if plain_domain(node.domain) != "" or node.op_type == "Constant":
            return False
        keys = [(name, self.uses.key(MAIN, name)) for name in node.output if name]
        read = [name for name, key in keys if key in self.uses.results or self.uses.readers.get(key)]
        return bool(read) and all(self._items(name) is not None for name in read)

    def _items(self, name: str) -> Sequence[Item] | None:
        """Return the elements of a value that can be written as sizes; None for another value."""
        if name not in self._sayable:
            self._sayable[name] = self._found(name)
        return self._sayable[name]

    def _found(self, name: str) -> Sequence[Item] | None:
        items = self.elements.items_of(MAIN, name)
        if items is None or len(items) > _MOST_ITEMS or not any(isinstance(item, Dim) for item in items):
            return None
        return items if all(isinstance(item, int) or self._is_writable(item) for item in items) else None

    def _is_writable(self, item: Item) -> bool:
        """Return True for a size of dimensions that a run finds, whose quotients ONNX rounds as they are meant."""
        if not isinstance(item, Dim) or not all(name in self._places for name in symbols_of(item)):
            return False
        if large_atoms(item):
            return False
        return all(
            self._facts.prove_ge(atom.args[0], 0) and self._facts.prove_ge(atom.args[1], 1)
            for atom in atoms_by_level([item])
            if atom.kind in (FLOOR, MOD)
        )

    def _operands(self, scope: Scope, index: int) -> Sequence[str]:
        """Return the inputs of a node that can be written as sizes of values before it."""
        node = scope.nodes[index]
        if (MAIN, index) in self.walked.set_aside or (MAIN, index) in self.uses.with_bodies:
            return ()
        names = dict.fromkeys(name for name in node.input if name and self.uses.key(MAIN, name) in self.uses.makers)
        return [name for name in names if self._is_before(index, self._items(name) or ())]

    def _is_before(self, index: int, items: Sequence[Item]) -> bool:
        dims = [item for item in items if isinstance(item, Dim)]
        return bool(dims) and all(self._places[name][0] < index for dim in dims for name in symbols_of(dim))

    def _reads(self, place: NodePlace, names: Sequence[str]) -> Iterator[str]:
        """Yield what a node reads whose sizes are written in terms of others: these others in place of the sizes."""
        for name in self.uses.reads(place):
            if name not in names:
                yield name
                continue
            dims = [item for item in self._items(name) or () if isinstance(item, Dim)]
            yield from {self._places[symbol][1].input for dim in dims for symbol in symbols_of(dim)}

    def _replacements(
        self, scope: Scope, operands: Mapping[NodePlace, Sequence[str]]
    ) -> tuple[int, list[tuple[Scope, int, Replacement]]]:
        """Return the readers with what computes their sizes, and how many nodes that takes."""
        places = {name: place for name, (_, place) in self._places.items()}
        shared, lists = WrittenSizes(), dict[tuple[object, ...], str]()
        written, replacements = 0, []
        for (path, index), names in sorted(operands.items()):
            if not names:
                continue
            node = scope.nodes[index]
            draft = SizeDraft(
                self.plan, self.names, scope, node_label(node, index), places, shared, as_nodes=self.as_nodes
            )
            edited = Node.of(node)
            new = {}
            for name in names:
                known, items = self.elements.type_of(path, name), self._items(name)
                shape = tuple(size for size in known.shape or () if isinstance(size, int))
                assert items is not None
                key = (tuple(items), shape, known.dtype)
                try:
                    if key not in lists:
                        lists[key] = draft.elements(items, shape, known.dtype or "int64")  # type: ignore[arg-type]
                except NotWritable:
                    return 0, []
                new[name] = lists[key]
            edited.inputs = [new.get(name, name) for name in edited.inputs]
            written += sum(made.op_type != "Constant" for made in draft.nodes)
            made = Replacement([*draft.nodes, edited], draft.constants, WHY, after=node.op_type)
            replacements.append((scope, index, made))
        return written, replacements
