"""What `Facts` answers to a case, as claims that a judge can check; only its public methods are asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from dim_cases import Case, Fact, Question
from dim_expressions import Constraint, Tree, dim_of, symbols_in, text_of, tree_of

from splitgraph.dim import Facts, Obligation

# Less than what has a bound at all, with the numbers of these cases.
_FAR: Final = -1000


class Claim(NamedTuple):
    """What holds wherever the facts hold and the given trees have values.

    claimed: whether `Facts` said so; if not, and the claim is right, then `Facts` missed it. kind: of the question.
    """

    kind: str
    given: tuple[Tree, ...]
    concluded: Constraint
    claimed: bool


class Step(NamedTuple):
    """An answer. fact: what is known from here on."""

    said: str
    claims: tuple[Claim, ...]
    fact: Fact | None = None


def facts_of(case: Case) -> Facts:
    """`Facts` with the case's bounds only."""
    return Facts(case.bounds)


def ask(facts: Facts, question: Question) -> tuple[object, ...]:
    """The answer of `Facts` to a question, as a value that can be compared."""
    left, right = dim_of(question.left), dim_of(question.right)
    if question.kind == "require":
        return (facts.require(Obligation(left, question.relation, right)),)
    if question.kind == "range_of":
        return facts.range_of(left)
    if question.kind == "simplify":
        return facts.simplify(left), facts.simplify(left, fixed=True)
    method = {"prove_ge": facts.prove_ge, "prove_eq": facts.prove_eq, "prove_ne": facts.prove_ne}
    if question.kind == "prove_divisible":
        return (facts.prove_divisible(left, right),)
    return (method[question.kind](left, right),)


def steps_of(case: Case) -> Iterator[Step]:
    """Every answer: to each fact in turn, the bounds that follow, and to the question."""
    facts = facts_of(case)
    for fact in case.facts:
        yield _required(facts, "fact", fact)
    yield Step(f"bounds are {dict(facts.bounds)}", tuple(_claims_of_bounds(facts)))
    question = case.question
    if question.kind == "require":
        yield _required(facts, "require", Fact(question.left, question.relation, question.right))
        return
    answer = ask(facts, question)
    yield Step(f"{question} is {', '.join(map(str, answer))}", tuple(_claims(question, answer)))
    if question.kind == "simplify":
        solved = facts.solution(dim_of(question.left))
        equal = Constraint(("-", question.left, tree_of(solved)), "==")
        yield Step(
            f"solution({text_of(question.left)}) is {solved}", (Claim("solution", (question.left,), equal, True),)
        )


def _required(facts: Facts, kind: str, fact: Fact) -> Step:
    (answer,) = ask(facts, Question("require", *_sides(fact)))
    follows, fails = fact.constraint, _negated(fact.constraint)
    given = (fact.constraint.tree,)
    claims = (
        Claim(f"{kind}: proved", given, follows, answer == "proved"),
        Claim(f"{kind}: contradiction", given, fails, answer == "contradiction"),
    )
    return Step(f"require({fact}) is {answer}", claims, fact if answer == "assumed" else None)


def _sides(fact: Fact) -> tuple[Tree, Tree, str]:
    return fact.left, fact.right, fact.relation


def _negated(constraint: Constraint) -> Constraint:
    if constraint.relation == ">=":
        return Constraint(("-", -1, constraint.tree), ">=")
    return Constraint(constraint.tree, "!=" if constraint.relation == "==" else "==")


def _claims_of_bounds(facts: Facts) -> Iterator[Claim]:
    for name, (low, high) in facts.bounds.items():
        yield Claim("bounds", (), Constraint(("-", name, low), ">="), True)
        if high is not None:
            yield Claim("bounds", (), Constraint(("-", high, name), ">="), True)


def _claims(question: Question, answer: tuple[object, ...]) -> Iterator[Claim]:
    kind, left, right = question.kind, question.left, question.right
    if kind == "range_of":
        for end, upwards in zip(answer, (left, ("-", 0, left)), strict=True):
            yield from _claims_of_end(left, upwards, -end if end is not None and upwards is not left else end)
    elif kind == "simplify":
        simplest = [tree_of(dim) for dim in dict.fromkeys(answer)]
        for simple in simplest:
            yield Claim(kind, (left,), Constraint(("-", left, simple), "=="), True)
        for name in symbols_in(left) if isinstance(simplest[0], tuple) else ():
            yield Claim(kind, (left,), Constraint(("-", left, name), "=="), False)
    elif kind == "prove_divisible":
        yield Claim(kind, (left,), Constraint(("%", left, right), "=="), bool(answer[0]))
    else:
        relation = {"prove_ge": ">=", "prove_eq": "==", "prove_ne": "!="}[kind]
        yield Claim(kind, (left, right), Constraint(("-", left, right), relation), bool(answer[0]))


def _claims_of_end(asked: Tree, tree: Tree, least: int | None) -> Iterator[Claim]:
    """That the tree is never less; missed are a bound that is better by 1, and any where none was found."""
    if least is not None:
        yield Claim("range_of", (asked,), Constraint(("-", tree, least), ">="), True)
    better = _FAR if least is None else least + 1
    yield Claim("range_of", (asked,), Constraint(("-", tree, better), ">="), False)
