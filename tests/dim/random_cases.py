"""Random facts and questions, each case from its seed.

Most have numbers that fit: facts hold at one point, and what is asked for holds at all small points where the facts do.
Numbers at random would give questions that are nearly all hopeless or obvious.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from dim_cases import KINDS, Bounds, Case, Fact, Question
from dim_expressions import Tree
from dim_points import Points
from random_expressions import Expressions, plus

NAMES: Final = ("N", "X", "W", "b", "seq", "H", "past", "a")

_WITH_PRODUCTS: Final = 0.3  # of the cases
_PLAIN: Final = 0.5
_FITTING: Final = 0.9  # of the facts
_AIMED: Final = 0.75  # of the questions
_TRIES: Final = 6


def random_case(seed: int) -> Case:
    """The case of the seed, with 1 to 6 symbols and up to 8 facts."""
    rng = Random(seed)
    names = rng.sample(NAMES, rng.choice((1, 2, 2, 3, 3, 4, 5, 6)))
    witness = {name: rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 12)) for name in names}
    expressions = Expressions(rng, names, products=rng.random() < _WITH_PRODUCTS, plain=rng.random() < _PLAIN)
    bounds: Bounds = {}
    for name in names:
        if rng.random() < 0.3:
            low = rng.randint(0, witness[name])
            bounds[name] = (low, None if rng.random() < 0.5 else witness[name] + rng.randint(0, 8))
    at_witness = Points.at(witness)
    facts = tuple(_fact(rng, expressions, at_witness) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8))))
    case = Case(bounds, facts, Question("simplify", 0), witness)
    kind = rng.choice(KINDS)
    return case._replace(question=_Asker(rng, case, expressions).question(kind))


def other_questions(case: Case, seed: int) -> list[Question]:
    """Questions about the same symbols, which must not change the answer to the case's own."""
    rng = Random(f"others {seed}")
    asker = _Asker(rng, case, Expressions(rng, case.names, products=not case.is_linear))
    return [asker.question(kind) for kind in rng.sample(KINDS[:-1], 4)]


def _fact(rng: Random, expressions: Expressions, at_witness: Points) -> Fact:
    def fitting(tree: Tree, otherwise: int) -> int:
        found = at_witness.values_that_exist(tree)
        return int(found[0]) if found.size and rng.random() < _FITTING else otherwise

    form = rng.choice(("bound", "divisible", "equal", "equal", "at least", "at least"))
    if form == "bound":
        name = rng.choice(at_witness.names)
        limit = fitting(name, rng.randint(0, 12))
        slack = rng.randint(0, 4)
        return Fact(limit + slack, ">=", name) if rng.random() < 0.4 else Fact(name, ">=", max(limit - slack, 0))
    if form == "divisible":
        tree, number = expressions.short(), rng.choice((2, 2, 3, 4, 4, 5, 6, 8, 16))
        rest = fitting(("%", tree, number), rng.randrange(number))
        if rng.random() < 0.7:
            tree, rest = plus(tree, -rest), 0
        return Fact(("%", tree, number), "==", rest)
    left, right = expressions.short(), expressions.short() if rng.random() < 0.6 else 0
    gap = fitting(("-", left, right), rng.randint(-6, 12))
    if form == "equal":
        return Fact(left, "==", plus(right, gap))
    return Fact(left, ">=", plus(right, gap - rng.choice((0, 0, 1, 2, 3, 5))))


class _Asker:
    """Makes questions that the small points do not refute, where it finds some."""

    def __init__(self, rng: Random, case: Case, expressions: Expressions) -> None:
        self._rng = rng
        self._facts = case.facts
        self._expressions = expressions
        self._free = Points.around(case.witness)
        self._known = Points.around(case.witness)
        for constraint in [*case.bound_constraints, *(fact.constraint for fact in case.facts)]:
            self._known.assume(constraint)

    def question(self, kind: str) -> Question:
        """A question of the kind."""
        if kind == "range_of":
            return Question(kind, self._expressions.short())
        if kind == "simplify":
            return Question(kind, self._pair()[0])
        if self._rng.random() < _AIMED and self._known.count:
            found = self._aimed(kind)
            if found is not None:
                return found
        left, right = self._two()
        if kind == "prove_divisible":
            return Question(kind, left, self._rng.choice((2, 3, 4, 5, 6, 8)))
        return Question(kind, left, right, self._rng.choice(("==", ">=")))

    def _aimed(self, kind: str) -> Question | None:
        if kind == "prove_eq":
            return self._equal(kind)
        if kind == "prove_ge":
            return self._at_least(kind)
        if kind == "prove_ne":
            return self._different(kind)
        if kind == "prove_divisible":
            return self._divisible(kind)
        made = self._rng.choice((self._equal, self._at_least, self._impossible, self._different))
        return made(kind)

    def _equal(self, kind: str) -> Question | None:
        for _ in range(_TRIES):
            left, right = self._pair()
            gaps = self._known.values_that_exist(("-", left, right))
            if gaps.size and gaps.min() == gaps.max() and not self._is_constant(("-", left, right)):
                return Question(kind, left, plus(right, int(gaps[0])), "==")
        return None

    def _at_least(self, kind: str) -> Question | None:
        left, right = self._pair() if self._rng.random() < 0.3 else self._two()
        gaps = self._known.values_that_exist(("-", left, right))
        if not gaps.size:
            return None
        return Question(kind, left, plus(right, int(gaps.min()) - self._rng.choice((0, 0, 0, 1, 2))), ">=")

    def _impossible(self, kind: str) -> Question | None:
        left, right = self._two()
        gaps = self._known.values_that_exist(("-", left, right))
        if not gaps.size:
            return None
        return Question(kind, left, plus(right, int(gaps.max()) + self._rng.choice((1, 1, 1, 2, 3))), ">=")

    def _different(self, kind: str) -> Question | None:
        left, right = self._two()
        gaps = self._known.values_that_exist(("-", left, right))
        if not gaps.size:
            return None
        low, high = int(gaps.min()), int(gaps.max())
        there = set(gaps.tolist())
        between = [gap for gap in range(low, min(high, low + 12)) if gap not in there]
        return Question(kind, left, plus(right, self._rng.choice(between or [low - 1, high + 1])), "==")

    def _divisible(self, kind: str) -> Question | None:
        for _ in range(_TRIES):
            tree, number = self._rng.choice(self._pair()), self._rng.choice((2, 2, 3, 4, 5, 6, 8))
            rests = self._known.values_that_exist(("%", tree, number))
            if rests.size and rests.min() == rests.max() and not self._is_constant(tree):
                return Question(kind, plus(tree, -int(rests[0])), number)
        return None

    def _is_constant(self, tree: Tree) -> bool:
        """True when the tree is the same number whatever the facts say."""
        values = self._free.values_that_exist(tree)
        return bool(values.size == 0 or values.min() == values.max())

    def _two(self) -> tuple[Tree, Tree]:
        return self._expressions.short(), self._expressions.short()

    def _pair(self) -> tuple[Tree, Tree]:
        """Two expressions that may differ by a number only, where the facts hold."""
        return self._rng.choice(list(self._pairs()))

    def _pairs(self) -> Iterator[tuple[Tree, Tree]]:
        rng, tree, number = self._rng, self._expressions.short(), self._rng.choice((2, 2, 3, 4, 6, 8))
        other = self._expressions.short()
        yield tree, other
        yield ("max", tree, other), tree
        yield ("min", tree, other), tree
        yield ("//", tree, number), ("//", plus(tree, rng.randint(1, 3)), number)
        yield ("*", number, ("//", tree, number)), tree
        yield ("//", ("+", tree, ("*", number, other)), number), ("+", ("//", tree, number), other)
        for fact in self._facts:
            if fact.relation == "==":
                yield ("+", ("*", rng.choice((1, 1, 2, 3)), ("-", fact.left, fact.right)), tree), tree
                yield fact.left, fact.right
            if isinstance(fact.left, tuple) and fact.left[0] == "%":
                inner, modulus = fact.left[1], fact.left[2]
                yield ("//", ("*", rng.choice((1, 2, 3)), inner), modulus), ("//", inner, modulus)
                yield ("*", modulus, ("//", inner, modulus)), inner
                yield ("//", plus(inner, rng.randint(1, 3)), modulus), ("//", inner, modulus)
                yield ("%", ("+", inner, tree), modulus), ("%", tree, modulus)
