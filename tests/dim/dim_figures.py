"""Figures of many judged cases, and the table of what is proved of what isl proves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from dim_judging import Verdict

# Answers that are more or less precise, where the others are proofs or none.
_PRECISION: Final = ("range_of", "simplify")


@dataclass
class Figures:
    """Sums over cases: of answers by kind, and of linear claims that hold, by kind and by what is in them."""

    cases: int = 0
    checked: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    proved: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: Counter[tuple[str, str]] = field(default_factory=Counter)
    unsound: int = 0
    disagreements: int = 0

    def add(self, verdict: Verdict) -> None:
        """Count one more case."""
        self.cases += 1
        self.unsound += len(verdict.unsound)
        self.disagreements += len(verdict.disagreements)
        for name in ("checked", "unknown", "proved", "missed"):
            getattr(self, name).update(getattr(verdict, name))

    def merge(self, other: Figures) -> None:
        """Add the figures of other cases."""
        for name, value in vars(other).items():
            if isinstance(value, int):
                setattr(self, name, getattr(self, name) + value)
            else:
                getattr(self, name).update(value)

    @property
    def share_proved(self) -> float:
        """Of the linear proofs that isl finds, the share that `Facts` finds."""
        return _share(*self._counts(_is_proof))

    def table(self) -> str:
        """Markdown: by kind of question, and by what is in the facts and the question."""
        every = [*(self.proved | self.missed)]
        kinds = sorted({kind for kind, _ in every}, key=lambda kind: (kind in _PRECISION, kind))
        rows = [(kind, *self._counts(lambda about, kind=kind: about[0] == kind)) for kind in kinds]
        for name in sorted({name for kind, name in every if kind not in _PRECISION}):
            with_it = self._counts(lambda about, name=name: about[1] == name and _is_proof(about))
            rows.append((f"all proofs with {name}", *with_it))
        rows.append(("all proofs", *self._counts(_is_proof)))
        lines = ["| Question | right for isl | found | share |", "|---|---:|---:|---:|"]
        for name, proved, missed in rows:
            lines.append(f"| {name} | {proved + missed:,} | {proved:,} | {_share(proved, missed):.2%} |")
        return "\n".join(lines)

    def _counts(self, chosen: Callable[[tuple[str, str]], bool]) -> tuple[int, int]:
        proved, missed = (
            sum(number for about, number in found.items() if chosen(about)) for found in (self.proved, self.missed)
        )
        return proved, missed

    def lines(self) -> Iterator[str]:
        """The other figures."""
        yield f"{self.cases:10,} cases"
        yield f"{sum(self.checked.values()):10,} answers that claim something, of which"
        for kind, number in sorted(self.checked.items()):
            yield f"{number:10,}   {kind}" + (
                f" ({self.unknown[kind]:,} undecided by z3)" if self.unknown[kind] else ""
            )
        yield f"{self.disagreements:10,} disagreements of isl and z3"
        yield f"{self.unsound:10,} unsound answers"


def _is_proof(about: tuple[str, str]) -> bool:
    return about[0] not in _PRECISION


def _share(proved: int, missed: int) -> float:
    return proved / (proved + missed) if proved + missed else 1.0
