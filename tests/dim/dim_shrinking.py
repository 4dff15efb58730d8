"""The smallest case like one: what a person needs in order to see why an answer is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dim_cases import Case, Question
from dim_expressions import Tree, symbols_in


def shrunk(case: Case, is_alike: Callable[[Case], bool]) -> Case:
    """A case that is still alike, nothing of which can be left out or made smaller."""
    while True:
        smaller = next((one for one in _smaller(case) if is_alike(one)), None)
        if smaller is None:
            return case
        case = smaller


def _smaller(case: Case) -> Iterator[Case]:
    facts = case.facts
    for place, fact in enumerate(facts):
        # An answer to a fact is wrong: what comes after has no part in it.
        yield case._replace(facts=facts[:place], question=Question("require", fact.left, fact.right, fact.relation))
    for place in range(len(facts)):
        yield case._replace(facts=(*facts[:place], *facts[place + 1 :]))
    for name in case.bounds:
        yield case._replace(bounds={other: bound for other, bound in case.bounds.items() if other != name})
    used = {*symbols_in(*case.trees), *case.bounds} or {case.names[0]}
    if not used.issuperset(case.names):
        yield case._replace(witness={name: value for name, value in case.witness.items() if name in used})
    for place, fact in enumerate(facts):
        for left, right in _smaller_pairs(fact.left, fact.right):
            yield case._replace(facts=(*facts[:place], fact._replace(left=left, right=right), *facts[place + 1 :]))
    for left, right in _smaller_pairs(case.question.left, case.question.right):
        # The number that divides stays one above 0.
        if case.question.kind != "prove_divisible" or (isinstance(right, int) and right > 0):
            yield case._replace(question=case.question._replace(left=left, right=right))


def _smaller_pairs(left: Tree, right: Tree) -> Iterator[tuple[Tree, Tree]]:
    for smaller in _smaller_trees(left):
        yield smaller, right
    for smaller in _smaller_trees(right):
        yield left, smaller


def _smaller_trees(tree: Tree) -> Iterator[Tree]:
    if isinstance(tree, int):
        yield from dict.fromkeys(number for number in (0, 1, tree // 2, tree - 1) if abs(number) < abs(tree))
    elif isinstance(tree, str):
        yield 1
    else:
        operator, left, right = tree
        yield left
        yield right
        for smaller in _smaller_trees(left):
            yield (operator, smaller, right)
        for smaller in _smaller_trees(right):
            # A quotient by 0, and a remainder by 1, are no questions.
            if operator not in ("//", "%") or smaller not in (0, 1):
                yield (operator, left, smaller)
