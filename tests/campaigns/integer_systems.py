"""Random systems of linear constraints, decided by splitgraph and by isl.

    python tests/campaigns/integer_systems.py --from 0 --count 20000 --limits 200 500 2000
    python tests/campaigns/integer_systems.py --dense --count 20000

Needs islpy beside splitgraph. The systems are like those that questions about dimensions make: symbols >= 0, quotients
and remainders, facts, and a question. Most questions ask for a value just outside, or just inside, of the range that
was found at sampled sizes. With `--dense` the systems are 3-7 rows of 2-4 variables instead, with coefficients up to
13; they need more shadows. Printed are each system on which the two contradict each other, with its seed; the share of
isl's answers that splitgraph finds within each limit; and the processor time of both. Ends with 1 where the two
contradict each other.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2])]

from splitgraph.dim.integer_systems import Linear, has_solution  # noqa: E402, the folder above is on the path only now

System = tuple[list[Linear], list[Linear]]
LARGEST = 40


class Maker:
    """One random system, which grows with its variables; `points` are sampled values of all variables."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.equalities: list[Linear] = []
        self.inequalities: list[Linear] = []
        self.points: list[list[int]] = [[] for _ in range(40)]

    def add_variable(self, values: list[int]) -> int:
        for point, value in zip(self.points, values, strict=True):
            point.append(value)
        return len(self.points[0]) - 1

    def add_symbol(self) -> None:
        values = [self.rng.choice((self.rng.randrange(5), self.rng.randrange(LARGEST))) for _ in self.points]
        self.inequalities.append(({self.add_variable(values): 1}, 0))

    def expression(self, most: int = 3) -> Linear:
        variables = range(len(self.points[0]))
        taken = self.rng.sample(variables, min(len(variables), self.rng.randint(1, most)))
        return {v: self.rng.choice((-4, -3, -2, -1, -1, 1, 1, 1, 2, 3, 4, 6)) for v in taken}, self.rng.randint(-6, 6)

    def values(self, expression: Linear) -> list[int]:
        terms, constant = expression
        return [constant + sum(times * point[v] for v, times in terms.items()) for point in self.points]

    def add_quotient(self) -> None:
        """q = e // k, as 0 <= e - k*q <= k - 1; or r = e % k, with a quotient, as e = k*q + r."""
        (terms, constant), k = self.expression(), self.rng.choice((2, 2, 3, 4, 4, 5, 6, 8))
        values = self.values((terms, constant))
        quotient = self.add_variable([value // k for value in values])
        rest = {**terms, quotient: -k}
        if self.rng.random() < 0.6:
            self.inequalities += [(rest, constant), (negated(rest), k - 1 - constant)]
            return
        remainder = self.add_variable([value % k for value in values])
        self.equalities.append(({**rest, remainder: -1}, constant))
        self.inequalities += [({remainder: 1}, 0), ({remainder: -1}, k - 1)]

    def add_fact(self) -> None:
        """A fact that holds at one of the sampled points at least, if it is not a random one."""
        terms, constant = self.expression()
        values = self.values((terms, constant))
        here = self.rng.choice(values)
        kind = self.rng.choice(("==", ">=", "divides", "bound", "random"))
        if kind == "==":
            self.equalities.append((terms, constant - here))
            self.keep([value == here for value in values])
        elif kind == ">=":
            self.inequalities.append((terms, constant - here))
            self.keep([value >= here for value in values])
        elif kind == "divides":
            k = self.rng.choice((2, 3, 4, 8))
            times = self.add_variable([(value - here) // k for value in values])
            self.equalities.append(({**terms, times: -k}, constant - here))
            self.keep([(value - here) % k == 0 for value in values])
        elif kind == "bound":
            symbol = self.rng.choice(sorted(terms))
            most = max(point[symbol] for point in self.points)
            self.inequalities.append(({symbol: -1}, most))
        else:
            self.rng.choice((self.equalities, self.inequalities, self.inequalities)).append((terms, constant))

    def keep(self, holds: list[bool]) -> None:
        self.points = [point for point, held in zip(self.points, holds, strict=True) if held]

    def ask(self) -> None:
        terms, constant = self.expression(4)
        values = self.values((terms, constant))
        asked = self.rng.random()
        if asked < 0.6:
            self.inequalities.append((negated(terms), min(values) - constant - self.rng.choice((1, 1, 1, 2, 4, 0))))
        elif asked < 0.8:
            self.equalities.append((terms, constant - self.rng.choice(values) + self.rng.choice((0, 1, 2))))
        else:
            self.inequalities.append((terms, constant))


def negated(terms: dict[int, int]) -> dict[int, int]:
    return {variable: -times for variable, times in terms.items()}


def random_system(seed: int) -> System:
    """A system of 1-6 symbols, 0-3 quotients or remainders, 0-4 facts and one question."""
    rng = random.Random(seed)
    maker = Maker(rng)
    for _ in range(rng.randint(1, 6)):
        maker.add_symbol()
    for _ in range(rng.randint(0, 3)):
        maker.add_quotient()
    for _ in range(rng.randint(0, 4)):
        maker.add_fact()
    maker.ask()
    return maker.equalities, maker.inequalities


def random_dense_system(seed: int) -> System:
    rng = random.Random(seed)
    variables, most = range(rng.randint(2, 4)), rng.choice((3, 7, 13))

    def linear(least: int, largest: int) -> Linear:
        return {v: rng.randint(-most, most) for v in variables if rng.random() < 0.8}, rng.randint(least, largest)

    equalities = [linear(-9, 9) for _ in range(rng.choice((0, 0, 0, 1)))]
    return equalities, [linear(-20, 12) for _ in range(rng.randint(3, 7))]


def decide_by_isl(system: System) -> tuple[bool, float]:
    """Whether isl finds a solution, and the seconds it takes, with those to make its set."""
    import islpy as isl

    count = 1 + max((variable for terms, _ in system[0] + system[1] for variable in terms), default=0)
    space = isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, count)
    started = time.thread_time()
    found = isl.BasicSet.universe(space)
    for make, rows in ((isl.Constraint.alloc_equality, system[0]), (isl.Constraint.alloc_inequality, system[1])):
        for terms, constant in rows:
            constraint = make(isl.LocalSpace.from_space(space)).set_constant_val(constant)
            for variable, times in terms.items():
                constraint = constraint.set_coefficient_val(isl.dim_type.set, variable, times)
            found = found.add_constraint(constraint)
    return not found.is_empty(), time.thread_time() - started


def decide(system: System, limit: int) -> tuple[bool | None, float]:
    started = time.thread_time()
    answer = has_solution(*system, limit)
    return answer, time.thread_time() - started


def report_times(name: str, seconds: list[float]) -> None:
    print(
        f"{name}: mean {statistics.mean(seconds) * 1e6:.0f} us, median {statistics.median(seconds) * 1e6:.0f} us,"
        f" 99% under {statistics.quantiles(seconds, n=100)[98] * 1e6:.0f} us, most {max(seconds) * 1e3:.2f} ms"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="start", type=int, default=0)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--limits", type=int, nargs="+", default=[200, 500, 2000])
    parser.add_argument("--dense", action="store_true")
    arguments = parser.parse_args()
    make = random_dense_system if arguments.dense else random_system
    seeds = range(arguments.start, arguments.start + arguments.count)
    systems = {seed: make(seed) for seed in seeds}
    truth = {seed: decide_by_isl(system) for seed, system in systems.items()}
    report_times("isl, with its set", [seconds for _, seconds in truth.values()])
    wrong = 0
    for limit in arguments.limits:
        answers: Counter[tuple[bool, bool | None]] = Counter()
        seconds = []
        for seed, system in systems.items():
            answer, taken = decide(system, limit)
            seconds.append(taken)
            answers[truth[seed][0], answer] += 1
            if answer is (not truth[seed][0]):
                wrong += 1
                print(f"seed {seed}: splitgraph says {answer}, isl {truth[seed][0]}: {system}")
        report_times(f"limit {limit}", seconds)
        for isl_answer, name in ((False, "refuted"), (True, "with a solution")):
            total = sum(count for (known, _), count in answers.items() if known is isl_answer)
            same = answers[isl_answer, isl_answer]
            print(f"  {name}: {same} of {total} ({100 * same / max(total, 1):.3f}%)")
    print(f"wrong: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
