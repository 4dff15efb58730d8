"""Errors in a branch that may not run: a branch of an If whose condition is not known, the body of a Loop that may not
start. Where every other way is right and the sizes are to blame, such an error says that this branch never runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from splitgraph.diagnostics import CODES, Diagnostic


class OpenBranches:
    """What is found in the branches of one inference.

    avoidable: errors in a branch beside one that is right. of_symbols: findings that are contradictions between what
    nodes demand of symbols, which no runtime sees before it runs them.
    """

    def __init__(self) -> None:
        self.avoidable: dict[Diagnostic, None] = {}
        self.of_symbols: set[Diagnostic] = set()
        self._held: list[list[Diagnostic]] = []

    @contextmanager
    def hold(self) -> Iterator[list[Diagnostic]]:
        """Hold back what is found from here on, until it is known what the other ways are."""
        found: list[Diagnostic] = []
        self._held.append(found)
        try:
            yield found
        finally:
            self._held.pop()

    def place(self, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
        """Where a finding goes now: what is held back, or these diagnostics of the model."""
        return self._held[-1] if self._held else diagnostics

    def spoil(self, found: Sequence[Diagnostic]) -> bool:
        """True where what was found in a branch leaves no way through it."""
        return any(each.severity == "error" and each not in self.avoidable for each in found)

    def avoid(self, found: Sequence[Diagnostic]) -> None:
        """Note that the errors of a branch stand beside a way that is right."""
        self.avoidable.update((each, None) for each in found if each.severity == "error")

    def settled(
        self, diagnostics: Sequence[Diagnostic], is_of_sizes: Callable[[Diagnostic], bool]
    ) -> tuple[list[Diagnostic], list[Diagnostic]]:
        """The diagnostics, errors that are only of sizes as information; and those errors."""
        if not self.avoidable:
            return list(diagnostics), []
        never = [found for found in self.avoidable if found in self.of_symbols or is_of_sizes(found)]
        chosen = frozenset(never)
        return [_as_information(found) if found in chosen else found for found in diagnostics], never


def _as_information(found: Diagnostic) -> Diagnostic:
    text = f"this branch cannot run with these sizes: {found.message} [{found.code}]"
    return replace(found, code="SG306", severity="info", message=text, help=CODES["SG306"].help)
