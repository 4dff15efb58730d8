"""Lengths that several splits of one graph have in common, computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set

from splitgraph.dim import DimLike, symbols_of


class SharedLengths:
    """Names of tensors of lengths, by what they mean, in the graph that computes them.

    inputs: symbols in the shapes of the model's inputs that are what each run gives. Only dimensions made of these are
    shared: other names are the author's word for what only a run knows, and such names are often careless. Only a Split
    reads what is shared, because it fails where the lengths do not sum to its dimension. The versions of Split that
    have lengths to compute are 13 to 17, and a later upgrade keeps such lengths: the node that first computed them may
    stay.
    """

    def __init__(self, inputs: Set[str]) -> None:
        self._inputs = inputs
        self._names: dict[Hashable, str] = {}
        self._held: set[str] = set()

    def of(self, total: DimLike | None, meaning: Hashable, compute: Callable[[], str]) -> str:
        """The name of the lengths of a dimension, computed now unless an earlier node has them.

        meaning: all that tells them from other lengths of this dimension.
        """
        if total is None or not symbols_of(total) <= self._inputs:
            return compute()
        name = self._names.get((total, meaning))
        if name is None:
            name = self._names[total, meaning] = compute()
            self._held.add(name)
        return name

    def holds(self, name: str) -> bool:
        """True for the name of lengths that are shared."""
        return name in self._held
