"""Texts that a page stores once, and names made safe to display."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Table(Generic[T]):
    """Distinct entries in the order of first use; the data of a page refers to an entry by its index."""

    def __init__(self) -> None:
        self.entries: list[T] = []
        self._indices: dict[object, int] = {}

    def index(self, entry: T, key: object = None) -> int:
        """The index of an entry, which is added at its first use. key: what identifies an entry without a hash."""
        known = entry if key is None else key
        found = self._indices.get(known)
        if found is None:
            found = self._indices[known] = len(self.entries)
            self.entries.append(entry)
        return found
