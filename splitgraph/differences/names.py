"""Which value of one graph is which value of another: two models may use other names for the same value."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.differences.graphs import Graph


class ValueNames:
    """The values of two graphs that are the same.

    pairs: the matched nodes. by_position: see `match_nodes`. outer: the values of the graphs around these two.
    """

    def __init__(
        self,
        before: Graph,
        after: Graph,
        pairs: Sequence[tuple[int, int]],
        *,
        by_position: bool,
        outer: ValueNames | None = None,
    ) -> None:
        self._defined = before.defined
        self._defined_after = after.defined
        self._outer = outer
        self.after: dict[str, str] = {}
        self._taken: set[str] = set()
        if by_position:
            self._add(before.formal_inputs, after.formal_inputs)
        else:
            # What a caller names is the same value, whatever produces it.
            named = [{*graph.formal_inputs, *graph.formal_outputs} & graph.defined.keys() for graph in (before, after)]
            shared = named[0] & named[1]
            self._add(sorted(shared), sorted(shared))
        for index, other in pairs:
            names, others = before.outputs[index], after.outputs[other]
            if before.operators[index] == after.operators[other] and len(names) == len(others):
                self._add(names, others)
        # Whatever the nodes are, a name that both graphs define means the same value, unless it is known to be another.
        for name in before.defined:
            if name in after.defined:
                self._add([name], [name])

    def _add(self, names: Sequence[str], others: Sequence[str]) -> None:
        for name, other in zip(names, others, strict=False):
            if name and other and name not in self.after and other not in self._taken:
                self.after[name] = other
                self._taken.add(other)

    def is_same(self, name: str, other: str) -> bool:
        """True if two names, each read in its graph, are of the same value; "" is an omitted one."""
        if not name or not other:
            return name == other
        if name in self._defined or other in self._defined_after:
            return self.after.get(name) == other
        return name == other if self._outer is None else self._outer.is_same(name, other)
