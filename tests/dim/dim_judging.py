"""Each answer of `Facts` to a case before three judges: points of a small box, isl where all is linear, and z3."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from dim_answers import Claim, Step, steps_of
from dim_cases import Case
from dim_expressions import Constraint, Tree, is_linear, parts_of
from dim_points import Points
from isl_judge import IslJudge
from z3_judge import Z3Judge

# Nothing says what they could miss.
_ONLY_CHECKED: Final = ("bounds", "solution")
_INGREDIENTS: Final = {"//": "quotients", "%": "remainders", "max": "extrema", "min": "extrema"}


@dataclass
class Verdict:
    """What the judges say of a case.

    unsound: wrong answers, with a point where each fails, or the judge that says so. unknown: answers that no judge
    could check beyond the points. proved, missed: linear claims that are right, and that `Facts` made, or did not; by
    kind of question and what is in it. overlooked: the missed ones. disagreements: isl and z3 contradict each other.
    """

    unsound: list[str] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    proved: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: Counter[tuple[str, str]] = field(default_factory=Counter)
    overlooked: list[str] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)


def judged(case: Case, *, every_judge: bool = False) -> Verdict:
    """Ask `Facts` and check each answer. every_judge: z3 is asked too where isl is enough."""
    court = _Court(case, every_judge)
    for step in steps_of(case):
        court.hear(step)
        if court.contradictory:
            break
        if step.fact is not None:
            court.assume(step.fact.constraint)
    return court.verdict


class _Court:
    def __init__(self, case: Case, every_judge: bool) -> None:
        self.verdict = Verdict()
        # Facts that `Facts` took for granted, although they contradict each other: all follows from them.
        self.contradictory = False
        self._points = Points.around(case.witness)
        self._isl = IslJudge(case.names)
        self._z3 = Z3Judge(case.names)
        self._every_judge = every_judge
        self._linear = True
        self._ingredients: set[str] = set()
        for constraint in case.bound_constraints:
            self.assume(constraint)

    def assume(self, constraint: Constraint) -> None:
        self._ingredients |= ingredients_of(constraint.tree)
        self._points.assume(constraint)
        self._z3.assume(constraint)
        self._linear = self._linear and is_linear(constraint.tree)
        if self._linear:
            self._isl.assume(constraint)

    def hear(self, step: Step) -> None:
        for claim in step.claims:
            point = self._points.counterexample(claim.given, claim.concluded)
            if claim.claimed:
                self.verdict.checked[claim.kind] += 1
            if point is not None:
                if claim.claimed:
                    self.verdict.unsound.append(f"{step.said}; not at {point}")
            elif self._linear and is_linear(claim.concluded.tree):
                self._linear_claim(step, claim)
            elif claim.claimed:
                self._settle(step, claim, self._z3.follows(claim.given, claim.concluded), "z3")

    def _linear_claim(self, step: Step, claim: Claim) -> None:
        right = self._isl.follows(claim.given, claim.concluded)
        if self._every_judge and right is not None:
            other = self._z3.follows(claim.given, claim.concluded)
            if other is not None and other != right:
                self.verdict.disagreements.append(f"{step.said}: {claim.concluded} is {right} for isl, {other} for z3")
        if claim.claimed:
            self._settle(step, claim, right, "isl")
        if not right or claim.kind in _ONLY_CHECKED:
            return
        used = self._ingredients | ingredients_of(claim.concluded.tree)
        about = claim.kind, ", ".join(sorted(used)) or "sums"
        if claim.claimed:
            self.verdict.proved[about] += 1
            return
        self.verdict.missed[about] += 1
        self.verdict.overlooked.append(f"{step.said}, but {claim.concluded} always holds")
        # What contradicts the facts and was taken for granted makes everything else follow.
        self.contradictory |= claim.kind == "fact: contradiction"

    def _settle(self, step: Step, claim: Claim, right: bool | None, judge: str) -> None:
        if right is None:
            self.verdict.unknown[claim.kind] += 1
        elif not right:
            self.verdict.unsound.append(f"{step.said}; not so for {judge}")


def ingredients_of(tree: Tree) -> set[str]:
    """What is in the tree besides sums of multiples of symbols."""
    return {_INGREDIENTS[part[0]] for part in parts_of(tree) if isinstance(part, tuple) and part[0] in _INGREDIENTS}
