"""Errors in branches that may not run: of an If with an unknown condition, or the body of a Loop that may not start. If
the other branch has no error and the error depends on sizes, this branch never runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from splitgraph.diagnostics import CODES, Diagnostic


class OpenBranches:
    """The findings in branches of one inference.

    avoidable: errors in a branch whose sibling has none. of_symbols: findings that are contradictory requirements on
    symbols, which no runtime notices before it runs the nodes.
    """

    def __init__(self) -> None:
        self.avoidable: dict[Diagnostic, None] = {}
        self.of_symbols: set[Diagnostic] = set()
        self._held: list[list[Diagnostic]] = []

    @contextmanager
    def hold(self) -> Iterator[list[Diagnostic]]:
        """Hold back findings from here on, until the other branches have been walked."""
        found: list[Diagnostic] = []
        self._held.append(found)
        try:
            yield found
        finally:
            self._held.pop()

    def place(self, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
        """The list for a new finding: the findings held back, or else these diagnostics of the model."""
        return self._held[-1] if self._held else diagnostics

    def spoil(self, found: Sequence[Diagnostic]) -> bool:
        """True if the findings of a branch include an error that is not avoidable."""
        return any(each.severity == "error" and each not in self.avoidable for each in found)

    def avoid(self, found: Sequence[Diagnostic]) -> None:
        """Record the errors of a branch as avoidable: another branch has none."""
        self.avoidable.update((each, None) for each in found if each.severity == "error")

    def settled(
        self, diagnostics: Sequence[Diagnostic], is_of_sizes: Callable[[Diagnostic], bool]
    ) -> tuple[list[Diagnostic], list[Diagnostic]]:
        """The diagnostics, in which avoidable errors that depend on sizes became information; and these errors."""
        if not self.avoidable:
            return list(diagnostics), []
        never = [found for found in self.avoidable if found in self.of_symbols or is_of_sizes(found)]
        chosen = frozenset(never)
        return [_as_information(found) if found in chosen else found for found in diagnostics], never


def _as_information(found: Diagnostic) -> Diagnostic:
    text = f"this branch cannot run with these sizes: {found.message} [{found.code}]"
    return replace(found, code="SG306", severity="info", message=text, help=CODES["SG306"].help)
