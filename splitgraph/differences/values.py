"""Types of values in two models. The symbols that inference made up count as the same where one stands for the other
throughout.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from splitgraph.differences.difference import ValueDifference
from splitgraph.dim import Dim, substitute_names, symbol
from splitgraph.value_type import ValueType

# How often types that tell nothing at first are looked at again. The last time, symbols are paired in their order.
_MOST_ATTEMPTS = 4


class TypeComparison:
    """Compares types. generated: the symbols that are not the authors', of the two models."""

    def __init__(self, generated: tuple[Collection[str], Collection[str]]) -> None:
        self._generated = generated
        self._has_generated = any(generated)
        self._after: dict[str, str] = {}
        self._before: dict[str, str] = {}

    def different(self, pairs: Iterable[tuple[str, ValueType, ValueType]]) -> set[str]:
        """The values with types that do not say the same. pairs: each value with its type in the two models."""
        found, waiting = set[str](), list(pairs)
        for attempt in range(_MOST_ATTEMPTS):
            later = []
            for value in waiting:
                name, before, after = value
                same = self._are_same(before, after, guesses=attempt == _MOST_ATTEMPTS - 1)
                if same is None:
                    later.append(value)
                elif not same:
                    found.add(name)
            waiting = later
        return found

    def _are_same(self, before: ValueType, after: ValueType, *, guesses: bool) -> bool | None:
        """Whether two types say the same; None where other types have to tell first which symbol is which."""
        if before == after and not _has_symbols(before):
            return True
        if (before.kind, before.dtype) != (after.kind, after.dtype):
            return False
        if before.element is not None and after.element is not None:
            return self._are_same(before.element, after.element, guesses=guesses)
        if before.element is not after.element or before.rank != after.rank:
            return False
        pairs = zip(before.shape or (), after.shape or (), strict=True)
        # All of them: each may tell which symbol is which.
        found = [self._is_same_dim(one, other, guesses) for one, other in pairs]
        return False if False in found else None if None in found else True

    def _is_same_dim(self, one: int | Dim | None, other: int | Dim | None, guesses: bool) -> bool | None:
        if not self._has_generated or isinstance(one, int) or isinstance(other, int):
            return one == other
        if one is None or other is None:
            return one is other or self._is_unknown(one, 0) or self._is_unknown(other, 1)
        made = sorted(one.symbols.intersection(self._generated[0]), key=_in_order)
        made_after = sorted(other.symbols.intersection(self._generated[1]), key=_in_order)
        new = [name for name in made if name not in self._after]
        new_after = [name for name in made_after if name not in self._before]
        if len(made) != len(made_after) or len(new) != len(new_after):
            return False
        if len(new) > 1 and not guesses:
            return None
        known = {**self._after, **dict(zip(new, new_after, strict=True))}
        if substitute_names(one, {name: symbol(known[name]) for name in made if known[name]}) != other:
            return False
        self._after.update(zip(new, new_after, strict=True))
        self._before.update(zip(new_after, new, strict=True))
        return True

    def _is_unknown(self, dim: Dim | None, side: int) -> bool:
        """True for a generated symbol where it is met first, which is as unknown as None. A symbol that only one value
        has is None: the first value tells nothing, and others would tell that they have the same size.
        """
        name = str(dim)
        known = (self._after, self._before)[side]
        if dim is None or name not in self._generated[side] or name in known:
            return False
        known[name] = ""
        return True


def _in_order(name: str) -> tuple[int, str]:
    """By number: unk2 before unk10."""
    return len(name), name


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
