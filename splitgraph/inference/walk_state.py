"""The state that all walks of one inference share: the task, the symbols, the record of what is said."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from weakref import ReferenceType

from splitgraph.dim import Dim, DimLike, Facts, Obligation, symbol
from splitgraph.inference.memo import InternedKnowledge
from splitgraph.inference.record import Record
from splitgraph.inference.task import Task
from splitgraph.model.names import declared_dimensions
from splitgraph.model.scopes import GraphPath, Scope, outermost, scopes


@dataclass(slots=True)
class Symbols:
    """What is known of symbols in the whole model.

    generated: the symbols that are not the author's; ordinals: how many there were before each. reserved: names that
    none of them may have. stand_ins: those for unknown dimensions in function bodies as written. open_dimensions: those
    for open dimensions of the model's inputs. named_dimensions: the dimensions that the inputs name.

    definitions: declared names of computed dimensions, each with its meaning and a location; None where two values of
    one name differ. adopted: declared names that unknown dimensions adopted, each with the graphs by path. The
    reference is to the walk of the graph, because each call of a function has its own; it is weak, because the walk
    holds this object. declared_numbers: obligations of generated symbols that come from declared numbers of later
    values: no reason to show the numbers for earlier values. declared_sizes: what warnings about declarations said of
    open dimensions.

    broadcasts: generated symbols for the broadcast of two dimensions: the two, and the location of the first node;
    broadcast_cache: the symbol of each pair. assumptions: those under which the broadcast of two dimensions is the
    larger one, each with the first node that needs it; assumptions_on: the same by the symbols in them. They are only
    about dimensions that the caller of the model chooses: those that its inputs name. assumed_pairs: the pairs of
    dimensions whose broadcast was assumed to be the larger one, with the first node; larger_ones: the first pair for
    each larger one. assumed_sizes: the dimensions that were assumed to be at least 1, with the first node.
    """

    reserved: set[str]
    generated: set[str] = field(default_factory=set)
    ordinals: dict[str, int] = field(default_factory=dict)
    stand_ins: list[Dim] = field(default_factory=list)
    open_dimensions: frozenset[str] = frozenset()
    named_dimensions: frozenset[str] = frozenset()
    definitions: dict[str, tuple[DimLike, str] | None] = field(default_factory=dict)
    adopted: dict[str, dict[GraphPath, ReferenceType[object]]] = field(default_factory=dict)
    declared_numbers: set[Obligation] = field(default_factory=set)
    declared_sizes: Facts = field(default_factory=Facts)
    broadcasts: dict[str, tuple[Dim, Dim, str]] = field(default_factory=dict)
    broadcast_cache: dict[frozenset[DimLike], Dim] = field(default_factory=dict)
    assumptions: dict[Obligation, str] = field(default_factory=dict)
    assumptions_on: dict[str, list[Obligation]] = field(default_factory=dict)
    assumed_pairs: dict[tuple[Dim, Dim], str] = field(default_factory=dict)
    larger_ones: dict[DimLike, tuple[Dim, Dim]] = field(default_factory=dict)
    assumed_sizes: dict[Dim, str] = field(default_factory=dict)
    counter: int = 0

    def fresh(self) -> Dim:
        """Return a new generated symbol, of a name that the model does not use."""
        while True:
            name = f"unk{self.counter}"
            self.counter += 1
            if name not in self.reserved:
                self.ordinals[name] = len(self.generated)
                self.generated.add(name)
                return symbol(name)


class WalkState:
    """The task, what is known of symbols, the record of what is said, and what is known of values."""

    __slots__ = ("knowledge", "readings", "record", "symbols", "task")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.symbols = Symbols({*task.reserved, *declared_dimensions(outermost(task.model))})
        self.record = Record(task)
        self.knowledge = InternedKnowledge()
        # How nodes are read (`reading.py`), by the imports of their graph.
        self.readings: dict[Hashable, object] = {}

    def fresh(self) -> Dim:
        """Return a new generated symbol. That it was made is an effect of the node."""
        self.record.effects += 1
        return self.symbols.fresh()

    def note_broadcast(self, a: Dim, b: Dim, made: Dim, location: str) -> None:
        """Use a generated symbol for the broadcast of two dimensions, from here on and in the whole model."""
        symbols = self.symbols
        symbols.broadcasts[str(made)] = a, b, location
        # Broadcast with either of the two once more it is itself.
        for pair in ((a, b), (a, made), (b, made)):
            symbols.broadcast_cache[frozenset(pair)] = made
        self.record.journal.unrepeatable += 1

    def find_scopes(self) -> set[str]:
        """List every graph of the model, after the walk. Return the declared dimensions that have the name of a
        generated symbol.
        """
        self.record.scopes = tuple(scopes(self.task.model, self._having_bodies))
        # Those of the main graph and of functions were read before the walk.
        known = {scope.path for scope in outermost(self.task.model)}
        self.symbols.reserved |= declared_dimensions(scope for scope in self.record.scopes if scope.path not in known)
        return self.symbols.reserved & self.symbols.generated

    def _having_bodies(self, scope: Scope) -> Iterable[int]:
        """Return the indices of nodes with bodies, as the walk recorded them. If a graph was not walked to the end,
        return all its nodes, or none if graphs are nested too deep.
        """
        detail, count = self.record.details.get(scope.path), len(scope.nodes)
        if detail is None or len(detail.visits) != count:
            return () if self.record.is_too_deep else range(count)
        return detail.having_bodies
