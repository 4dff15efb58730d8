"""Random facts and questions: no answer of `Facts` is wrong for isl, for z3, or at small points.

150 cases by default and 850 others with `-m slow`; the campaign in tests/campaigns/dim_oracles.py asks the same of a
million, or of as many as its `--count` says.
"""

from __future__ import annotations

import pytest

pytest.importorskip("islpy", reason="islpy judges the answers; it has no wheels for Windows")
pytest.importorskip("z3", reason="z3-solver judges the answers")

from dim_cases import KINDS, Case, Fact, Question
from dim_expressions import Constraint, Tree, dim_of, text_of, tree_of
from dim_figures import Figures
from dim_judging import judged
from dim_points import Points
from dim_shrinking import shrunk
from dim_today import NEVER_ENDING, SHARE_PROVED
from isl_judge import IslJudge
from random_cases import random_case
from z3_judge import Z3Judge

from splitgraph.dim import Facts, parse_expression

COUNT = 1_000
EVERY_DAY = 50
AT_ONCE = 50
LARGE = 475
# So few cases may by chance be worse than all.
SAMPLING_ERROR = 0.05
# z3 checks what isl has checked in one case of so many.
EVERY_JUDGE = 20


def _check(seeds: range) -> Figures:
    figures, wrong = Figures(), []
    for seed in seeds:
        if seed in NEVER_ENDING:
            continue
        verdict = judged(random_case(seed), every_judge=seed % EVERY_JUDGE == 0)
        figures.add(verdict)
        wrong += [(seed, text) for text in verdict.unsound + verdict.disagreements]
    assert wrong == []
    return figures


@pytest.mark.parametrize("start", range(0, EVERY_DAY, AT_ONCE))
def test_no_answer_is_wrong(start: int) -> None:
    figures = _check(range(start, start + AT_ONCE))
    # That many claims are checked, and nearly all of them beyond the points.
    checked = sum(figures.checked.values())
    assert checked > AT_ONCE
    assert sum(figures.unknown.values()) < checked / 20
    assert figures.share_proved >= SHARE_PROVED - SAMPLING_ERROR, figures.table()


@pytest.mark.slow
@pytest.mark.parametrize("start", range(EVERY_DAY, COUNT, LARGE))
def test_no_answer_of_many_is_wrong_and_most_of_what_isl_proves_is_proved(start: int) -> None:
    figures = _check(range(start, start + LARGE))
    assert figures.share_proved >= SHARE_PROVED, figures.table()


def test_questions_of_every_kind_are_asked_of_few_and_many_symbols_and_facts() -> None:
    cases = [random_case(seed) for seed in range(300)]
    assert {case.question.kind for case in cases} == {*KINDS}
    assert {len(case.names) for case in cases} == {*range(1, 7)}
    assert {len(case.facts) for case in cases} == {*range(9)}
    assert 0.5 < sum(case.is_linear for case in cases) / len(cases) < 0.9


# The judges themselves ----------------------------------------------------------------------------------------------

N3, NB = ("%", "N", 3), ("*", "N", "b")
QUOTIENT = ("//", "N", "b")
FOLLOWING = [
    ((), (), Constraint("N", ">="), True),
    ((), (), Constraint(("-", "N", 1), ">="), False),
    ((Constraint(N3, "=="),), (), Constraint(("-", ("*", 3, ("//", "N", 3)), "N"), "=="), True),
    ((Constraint(N3, "=="),), (), Constraint(("-", "N", 4), "!="), True),
    ((Constraint(N3, "=="),), (), Constraint(("-", "N", 6), "!="), False),
    ((Constraint(("-", "N", ("+", "b", 2)), ">="),), (), Constraint(("-", ("max", "N", "b"), "N"), "=="), True),
    ((), (), Constraint(("-", ("min", "N", "b"), "N"), "=="), False),
    ((), (), Constraint(("-", ("//", ("-", 0, "N"), 2), -3), ">="), False),
]  # fmt: skip
WITH_PRODUCTS = [
    ((Constraint(("-", "b", 1), ">="),), (), Constraint(("-", NB, "N"), ">="), True),
    ((), (), Constraint(("-", NB, "N"), ">="), False),
    # A quotient by 0 has no value: left out where it is given, and wrong where it is concluded.
    ((), (QUOTIENT,), Constraint(("-", "N", ("*", "b", QUOTIENT)), ">="), True),
    ((), (), Constraint(("-", "N", ("*", "b", QUOTIENT)), ">="), False),
    ((Constraint(("-", QUOTIENT, 1), ">="),), (), Constraint(("-", "b", 1), ">="), True),
]


@pytest.mark.parametrize(("known", "given", "concluded", "expected"), FOLLOWING + WITH_PRODUCTS, ids=str)
def test_what_follows_for_each_judge(
    known: tuple[Constraint, ...], given: tuple[Tree, ...], concluded: Constraint, expected: bool
) -> None:
    linear = (known, given, concluded, expected) in FOLLOWING
    judges = [Z3Judge(["N", "b"]), *([IslJudge(["N", "b"])] if linear else [])]
    points = Points.around({"N": 4, "b": 2})
    for constraint in known:
        points.assume(constraint)
        for judge in judges:
            judge.assume(constraint)
    assert [judge.follows(given, concluded) for judge in judges] == [expected] * len(judges)
    assert (points.counterexample(given, concluded) is None) == expected


@pytest.mark.parametrize("text", ["N + 1", "-N", "2*N - 3*b", "max(0, N - b, 4)", "(N + 2)//3 % 4", "b*N//(b + 1)"])
def test_a_tree_is_what_is_printed(text: str) -> None:
    dim = parse_expression(text)
    assert dim_of(tree_of(dim)) == dim
    assert parse_expression(text_of(tree_of(dim))) == dim


CASE = Case({}, (Fact("N", ">=", 2), Fact("b", ">=", 4)), Question("prove_ge", "N", 1), {"N": 3, "b": 5})
WRONG = [
    ("prove_ge", lambda *_: True, Question("prove_ge", "N", 3)),
    ("prove_eq", lambda *_: True, Question("prove_eq", "N", "b")),
    ("prove_ne", lambda *_: True, Question("prove_ne", "N", "b")),
    ("prove_divisible", lambda *_: True, Question("prove_divisible", "N", 2)),
    ("range_of", lambda *_: (3, None), Question("range_of", "N")),
    ("range_of", lambda *_: (None, 1000), Question("range_of", "N")),
    ("simplify", lambda self, d, fixed=False: d if fixed else d + 1, Question("simplify", "N")),
    ("require", lambda *_: "proved", Question("require", "N", 3, ">=")),
    ("require", lambda *_: "contradiction", Question("require", "N", 3, "==")),
]


@pytest.mark.parametrize(("method", "answer", "question"), WRONG)
def test_a_wrong_answer_is_found(
    method: str, answer: object, question: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASE._replace(question=question)
    assert judged(case).unsound == []
    monkeypatch.setattr(Facts, method, answer)
    assert judged(case).unsound


def test_the_smallest_wrong_case_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Facts, "prove_ge", lambda *_: True)
    case = CASE._replace(question=Question("prove_ge", ("+", "N", ("//", "b", 2)), 5))
    assert str(shrunk(case, lambda one: bool(judged(one).unsound))) == "known: nothing; asked: prove_ge(0, 1)"


def test_a_missed_proof_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = Figures()
    figures.add(judged(CASE))
    assert figures.share_proved == 1.0
    monkeypatch.setattr(Facts, "prove_ge", lambda *_: False)
    figures.add(judged(CASE))
    assert figures.share_proved == 0.5
    assert "| prove_ge | 2 | 1 | 50.00% |" in figures.table()
