"""Types of values in two models. The symbols that inference made up count as the same where one stands for the other
throughout.
"""

from __future__ import annotations

from collections.abc import Collection

from splitgraph.differences.difference import ValueDifference
from splitgraph.dim import Dim, substitute_names, symbol
from splitgraph.value_type import ValueType


class TypeComparison:
    """Compares types. generated: the symbols that are not the authors', of the two models."""

    def __init__(self, generated: tuple[Collection[str], Collection[str]]) -> None:
        self._generated = generated
        self._has_generated = any(generated)
        self._after: dict[str, str] = {}
        self._before: dict[str, str] = {}

    def are_same(self, before: ValueType, after: ValueType) -> bool:
        """True for types that say the same."""
        if before == after and not _has_symbols(before):
            return True
        if (before.kind, before.dtype) != (after.kind, after.dtype):
            return False
        if before.element is not None and after.element is not None:
            return self.are_same(before.element, after.element)
        if before.element is not after.element or before.rank != after.rank:
            return False
        pairs = zip(before.shape or (), after.shape or (), strict=True)
        # All of them: each may tell which symbol is which.
        found = [self._is_same_dim(one, other) for one, other in pairs]
        return all(found)

    def _is_same_dim(self, one: int | Dim | None, other: int | Dim | None) -> bool:
        if not self._has_generated or not isinstance(one, Dim) or not isinstance(other, Dim):
            return one == other
        made = sorted(one.symbols.intersection(self._generated[0]))
        made_after = sorted(other.symbols.intersection(self._generated[1]))
        if len(made) != len(made_after):
            return False
        new = [name for name in made if name not in self._after]
        new_after = [name for name in made_after if name not in self._before]
        if len(new) == len(new_after) == 1:
            self._after[new[0]], self._before[new_after[0]] = new_after[0], new[0]
        known = {name: symbol(self._after[name]) for name in made if name in self._after}
        return len(known) == len(made) and substitute_names(one, known) == other


def _has_symbols(value: ValueType) -> bool:
    return any(isinstance(dim, Dim) for dim in value.innermost.shape or value.shape or ())


def value_difference(
    location: str, names: tuple[str, str], before: ValueType | None, after: ValueType | None
) -> ValueDifference:
    """The difference of a value. names: in the first and in the second model, "" where it does not exist."""
    if before is None:
        return ValueDifference(location, names[1], "added", None, after)
    if after is None:
        return ValueDifference(location, names[0], "removed", before, None)
    return ValueDifference(location, names[1], "changed", before, after, names[0] if names[0] != names[1] else "")
