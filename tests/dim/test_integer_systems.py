"""Systems of linear constraints over the integers: right in both directions, within a limit, in whatever order."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable
from itertools import product

import pytest
from campaigns.integer_systems import random_dense_system, random_system
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from splitgraph.dim.integer_systems import Linear, has_solution

System = tuple[list[Linear], list[Linear]]
X, Y, Z, U = range(4)
# Far more steps than any system here takes.
PLENTY = 20_000


def between(low: int, terms: dict[int, int], high: int) -> list[Linear]:
    return [(terms, -low), ({variable: -times for variable, times in terms.items()}, high)]


def at_least_0(*variables: int) -> list[Linear]:
    return [({variable: 1}, 0) for variable in variables]


SOLVABLE: list[tuple[str, list[Linear], list[Linear]]] = [
    ("nothing is asked", [], []),
    ("only numbers", [({}, 0)], [({}, 3)]),
    ("a coefficient of 0", [], [({X: 0}, 0)]),
    ("x = 5", [({X: 1}, -5)], [({X: 1}, 0)]),
    ("3x + 5y = 1 without bounds", [({X: 3, Y: 5}, -1)], []),
    ("a chain without an end", [], [({X: 1, Y: -1}, -1), ({Y: 1, Z: -1}, -1)]),
    ("17x - 23y = 4 from 0 on", [({X: 17, Y: -23}, -4)], at_least_0(X, Y)),
    ("going back through the steps gives integers", [], between(0, {X: 3, Y: -5}, 20) + between(1, {X: 7, Y: 4}, 60)),
    ("Pugh's example, made wider", [], between(27, {X: 11, Y: 13}, 45) + between(-10, {X: 7, Y: -9}, 6)),
    ("a dark shadow", [], [({X: 3, Y: -2}, -1), ({X: -3, Y: -4}, 1), ({X: 3, Y: 4}, 7)]),
    ("two dark shadows", [], [({X: 3, Y: 4, Z: 3}, 4), ({X: -3, Y: -2}, 1), ({X: 2, Z: -4}, -6)]),
    ("a value near a bound", [], [({X: -4, Y: -7}, -1), ({X: 2, Y: 6}, 4), ({X: 7, Y: -3}, -2), ({X: 1, Y: -5}, -3)]),
    ("the last value of a narrow left side", [], [*between(2, {X: 5, Y: 2}, 3), ({X: 1, Y: -2}, -7), ({Y: 1}, 5)]),
    ("the first value of a narrow left side", [], [*between(1, {X: 3, Y: -7}, 2), ({X: -6}, -3)]),
    ("30 in coins of 6, 10 and 15", [({X: 6, Y: 10, Z: 15}, -30)], at_least_0(X, Y, Z)),
    (
        "(NX + 2)//8 can exceed NX//8",
        [],
        [*between(0, {X: 1, Y: -8}, 7), *between(-2, {X: 1, Z: -8}, 5), ({Z: 1, Y: -1}, -1)],
    ),
]

UNSOLVABLE: list[tuple[str, list[Linear], list[Linear]]] = [
    ("-1 >= 0", [], [({}, -1)]),
    ("1 = 0", [({}, 1)], []),
    ("2x + 4y = 1", [({X: 2, Y: 4}, -1)], []),
    ("x + y even, x - y odd", [({X: 1, Y: 1, Z: -2}, 0), ({X: 1, Y: -1, U: -2}, -1)], []),
    ("x = 1 mod 4 and x = 2 mod 6", [({X: 1, Y: -4}, -1), ({X: 1, Y: -6, Z: -6}, -2)], []),
    ("1 <= 3x <= 2", [], between(1, {X: 3}, 2)),
    ("5 <= 2x + 6y <= 5", [], between(5, {X: 2, Y: 6}, 5)),
    ("two opposite rows meet at no integer", [], between(3, {X: 4, Y: -6}, 3)),
    ("x = y and x > y", [({X: 1, Y: -1}, 0)], [({X: 1, Y: -1}, -1)]),
    ("a cycle", [], [({X: 1, Y: -1}, -1), ({Y: 1, Z: -1}, -1), ({Z: 1, X: -1}, -1)]),
    ("Pugh's example", [], between(27, {X: 11, Y: 13}, 45) + between(-10, {X: 7, Y: -9}, 4)),
    ("no dark shadow, no value near a bound", [], [({X: -4, Y: -3}, -2), ({X: 3, Y: 7}, 1), ({X: 2}, 2)]),
    ("a thin triangle without integers", [], [({X: 3, Y: -2}, -1), ({X: -3, Y: 4}, -1), ({X: -3, Y: -4}, 6)]),
    ("29 in coins of 6, 10 and 15", [({X: 6, Y: 10, Z: 15}, -29)], at_least_0(X, Y, Z)),
    (
        "the ends of 4x//2 = 2x",
        [({X: 4, Y: -2, Z: -1}, 0), ({U: 1, Y: -1, X: 2}, 0)],
        [*between(0, {Z: 1}, 1), ({U: 1}, -1)],
    ),
    ("N = 4t, 2*(N//2) < N", [({X: 1, Y: -4}, 0)], [*between(0, {X: 1, Z: -2}, 1), ({X: 1, Z: -2}, -1)]),
    (
        "N//2//3 > N//6",
        [],
        [
            *between(0, {X: 1, Y: -2}, 1),
            *between(0, {Y: 1, Z: -3}, 2),
            *between(0, {X: 1, U: -6}, 5),
            ({Z: 1, U: -1}, -1),
        ],
    ),
    ("one part of two", [], at_least_0(X) + between(1, {Y: 2, Z: 2}, 1)),
]


@pytest.mark.parametrize(
    ("equalities", "inequalities"), [row[1:] for row in SOLVABLE], ids=[row[0] for row in SOLVABLE]
)
def test_integers_exist(equalities: list[Linear], inequalities: list[Linear]) -> None:
    assert has_solution(equalities, inequalities, PLENTY) is True


@pytest.mark.parametrize(
    ("equalities", "inequalities"), [row[1:] for row in UNSOLVABLE], ids=[row[0] for row in UNSOLVABLE]
)
def test_no_integers_exist(equalities: list[Linear], inequalities: list[Linear]) -> None:
    assert has_solution(equalities, inequalities, PLENTY) is False


PUGH = between(27, {X: 11, Y: 13}, 45) + between(-10, {X: 7, Y: -9}, 4)


def test_a_limit_that_is_reached_gives_no_answer_and_a_higher_one_the_same_or_more() -> None:
    answers = [has_solution([], PUGH, limit) for limit in range(60)]
    undecided = answers.count(None)
    assert 0 < undecided < 60
    assert answers == [None] * undecided + [False] * (60 - undecided)


def test_each_new_inequality_counts() -> None:
    bounds = [({X: 1}, 0), ({X: 1, Y: -1}, 0), ({X: -1}, 9), ({X: -1, Y: -1}, 9), ({Y: 1}, 7), ({Y: -1}, 7)]
    assert has_solution([], between(0, {X: 1}, 5), 0) is None
    assert has_solution([], between(0, {X: 1}, 5), 1) is True
    # The one lower and three upper bounds of y make 3. Then x has one of each, because only the tightest ones are kept.
    assert has_solution([], bounds, 3) is None
    assert has_solution([], bounds, 4) is True


def test_large_coefficients_end_at_the_limit() -> None:
    system = between(1, {X: 10**30 + 57, Y: -(10**29) - 319, Z: 10**28 + 3}, 10**27)
    system += between(0, {X: 10**25 + 13, Y: 10**26 + 7, Z: -(10**24) - 9}, 10**23) + between(0, {Z: 7, X: -9}, 10**25)
    assert has_solution([], system, 200) in (None, True)


def test_what_needs_no_new_inequality_needs_no_limit() -> None:
    assert has_solution([({X: 2}, -1)], [], 0) is False
    assert has_solution([({X: 3, Y: 5}, -1)], [], 0) is True
    assert has_solution([], between(3, {X: 2, Y: 4}, 3), 0) is False


def test_independent_parts_take_the_sum_of_their_steps() -> None:
    narrow = between(30, {Z: 11, U: 13}, 45) + between(-10, {Z: 7, U: -9}, 6)
    alone = [
        next(limit for limit in range(200) if has_solution([], part, limit) is not None) for part in (PUGH, narrow)
    ]
    assert has_solution([], narrow + PUGH, sum(alone)) is False


def is_satisfied(system: System, values: tuple[int, ...]) -> bool:
    def value(linear: Linear) -> int:
        return sum([times * values[variable] for variable, times in linear[0].items()], linear[1])

    return all(value(linear) == 0 for linear in system[0]) and all(value(linear) >= 0 for linear in system[1])


WIDTH, MOST = 3, 4
linears = st.tuples(st.dictionaries(st.integers(0, WIDTH - 1), st.integers(-13, 13), min_size=1), st.integers(-20, 20))
systems = st.tuples(st.lists(linears, max_size=2), st.lists(linears, max_size=5))


def exists_in_box(system: System) -> bool:
    return any(is_satisfied(system, values) for values in product(range(-MOST, MOST + 1), repeat=WIDTH))


@settings(derandomize=True, deadline=None, max_examples=examples(400))
@given(systems)
def test_in_a_box_as_by_trying_all_values(system: System) -> None:
    box = [bound for variable in range(WIDTH) for bound in between(-MOST, {variable: 1}, MOST)]
    assert has_solution(system[0], system[1] + box, PLENTY) is exists_in_box(system)


@settings(derandomize=True, deadline=None, max_examples=examples(400))
@given(systems)
def test_without_bounds_a_solution_is_never_denied(system: System) -> None:
    if exists_in_box(system):
        assert has_solution(*system, 200) is not False


Point = tuple[int, ...]


def face(points: list[Point], opposite: Point) -> tuple[Point, int]:
    """The row of the line through two points, or the plane through three, that is at least 0 at the opposite point."""
    p, *others = points
    u, *rest = [[a - b for a, b in zip(other, p, strict=True)] for other in others]
    if rest:
        v = rest[0]
        normal = (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])
    else:
        normal = (u[1], -u[0])
    constant = -sum(a * b for a, b in zip(normal, p, strict=True))
    if sum(a * b for a, b in zip(normal, opposite, strict=True)) + constant < 0:
        return tuple(-a for a in normal), -constant
    return normal, constant


@pytest.mark.parametrize(("dimensions", "unit", "count"), [(2, 12, 4000), (2, 5, 2000), (3, 7, 1200), (3, 4, 1500)])
def test_triangles_and_tetrahedra_as_by_trying_all_values(dimensions: int, unit: int, count: int) -> None:
    # Their corners are multiples of 1/unit up to 2 in size. They need dark shadows and values near bounds, because few
    # of their sides are parallel or have a coefficient of 1.
    rng = random.Random(unit)
    answers = []
    for _ in range(count):
        corners = [tuple(rng.randint(-2 * unit, 2 * unit) for _ in range(dimensions)) for _ in range(dimensions + 1)]
        faces = [face(corners[:i] + corners[i + 1 :], corner) for i, corner in enumerate(corners)]
        if sum(a * b for a, b in zip(faces[0][0], corners[0], strict=True)) + faces[0][1] == 0:
            continue
        rows = [({i: unit * a for i, a in enumerate(normal)}, constant) for normal, constant in faces]
        expected = any(is_satisfied(([], rows), values) for values in product(range(-2, 3), repeat=dimensions))
        assert has_solution([], rows, PLENTY) is expected, rows
        answers.append(expected)
    assert len(answers) / 10 < sum(answers) < len(answers) * 9 / 10


def steps_needed(system: System) -> int:
    """The smallest limit with an answer; more than 300 counts as 300."""
    return bisect_left(range(300), True, key=lambda limit: has_solution(*system, limit) is not None)


def scrambled(system: System, rng: random.Random) -> System:
    """The same system with other numbers for its variables, in another order, with multiples of its constraints."""
    variables = sorted({variable for terms, _ in system[0] + system[1] for variable in terms})
    names = dict(zip(variables, rng.sample(range(100), len(variables)), strict=True))

    def changed(linears: list[Linear], factors: tuple[int, ...]) -> list[Linear]:
        made = []
        for terms, constant in rng.sample(linears, len(linears)):
            factor = rng.choice(factors)
            in_order = rng.sample(sorted(terms.items()), len(terms))
            made.append(({names[variable]: factor * times for variable, times in in_order}, factor * constant))
        return made

    return changed(system[0], (-2, -1, 1, 3)), changed(system[1], (1, 1, 2))


@pytest.mark.parametrize(
    "first", [0, pytest.param(200, marks=pytest.mark.slow), pytest.param(500, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("make", [random_system, random_dense_system])
def test_order_and_numbers_of_variables_change_neither_answers_nor_steps(
    make: Callable[[int], System], first: int
) -> None:
    rng = random.Random(first)
    for seed in range(first, first + (300 if first else 200)):
        system = make(seed)
        other = scrambled(system, rng)
        needed = steps_needed(system)
        assert steps_needed(other) == needed, seed
        assert has_solution(*other, needed) is has_solution(*system, needed), seed


@pytest.mark.parametrize("count", [3, 6, 12])
def test_variables_that_look_alike_may_be_in_any_order(count: int) -> None:
    quotients = [row for i in range(count) for row in between(0, {i: 1, count + i: -3}, 2)]
    sums = between(7, {count + i: 2 for i in range(count)}, 8) + between(1, dict.fromkeys(range(count), 3), 40)
    system: System = ([], quotients + sums + at_least_0(*range(count)))
    rng = random.Random(count)
    for limit in (10, 100, 1000):
        answers = {has_solution(*scrambled(system, rng), limit) for _ in range(10)}
        assert len(answers) == 1


def test_the_question_changes_nothing_that_was_given() -> None:
    equalities, inequalities = random_system(7)
    before = repr((equalities, inequalities))
    has_solution(equalities, inequalities, 100)
    assert repr((equalities, inequalities)) == before
    assert has_solution(iter(equalities), iter(inequalities), 100) is has_solution(equalities, inequalities, 100)
