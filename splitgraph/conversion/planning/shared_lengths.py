"""Lengths that several splits of one graph share, computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set

from splitgraph.dim import DimLike, symbols_of


class SharedLengths:
    """The names of computed lengths in one graph, by dimension and meaning.

    inputs: the symbols in the shapes of inputs without a default. Only lengths of dimensions made of these are shared:
    the names of other dimensions are often wrong. Only Split reads shared lengths, because it fails where they do not
    sum to its dimension. Only Split-13 needs computed lengths, and a later upgrade keeps them, so that the node that
    computes them may stay.
    """

    def __init__(self, inputs: Set[str]) -> None:
        self._inputs = inputs
        self._names: dict[Hashable, str] = {}
        self._held: set[str] = set()

    def of(self, total: DimLike | None, meaning: Hashable, compute: Callable[[], str]) -> str:
        """The name of the lengths of a dimension, computed now unless an earlier node computed them.

        meaning: equal for equal lengths of this dimension.
        """
        if total is None or not symbols_of(total) <= self._inputs:
            return compute()
        name = self._names.get((total, meaning))
        if name is None:
            name = self._names[total, meaning] = compute()
            self._held.add(name)
        return name

    def holds(self, name: str) -> bool:
        """True for the name of shared lengths."""
        return name in self._held
