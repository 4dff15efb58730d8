"""What a wide look says, by what the engines give. Functions of one input take the place of engines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from splitgraph.verification.comparison import Comparison
from splitgraph.verification.engines.engine_process import Attempt, EngineRun
from splitgraph.verification.verdict.wide_inputs import WideCase
from splitgraph.verification.verdict.wide_look import WideLook, runner_of

F = np.float32
Function = Callable[[Any], Any]


class Drawn(NamedTuple):
    """Takes the place of `WideInputs`, and of the maker of inputs."""

    drawn: Sequence[WideCase]
    pair: Sequence[Any] = ()
    seed: int = 0

    @property
    def maker(self) -> Drawn:
        return self

    def varying(self) -> list[str]:
        return ["x"]

    def cases(self) -> Iterator[WideCase]:
        yield from self.drawn


def runs(*functions: Function | None) -> Callable[[Sequence[Attempt], float], EngineRun]:
    """Return what runs two models. None: a model does not run."""

    def run(attempts: Sequence[Attempt], seconds: float) -> EngineRun:
        ran = EngineRun()
        for attempt in attempts:
            for function, outputs in zip(functions, ran.outputs, strict=True):
                if function is not None:
                    outputs[attempt.case, 0] = [np.asarray(function(attempt.inputs["x"]), F)]
        return ran

    return run


def plain(x: Any) -> Any:
    return x


def grown(share: float) -> Function:
    return lambda x: x * F(1 + share)


def beyond_5(number: float) -> Function:
    """Give a number beyond 5."""
    return lambda x: np.where(x > 5, F(number), x)


def in_window(x: Any) -> Any:
    return np.where(np.abs(x - 777) < 0.01, F(1), x)


FIVE = [WideCase({"x": np.full(3, 7, F)})]
ORDINARY = [WideCase({"x": np.full(3, 7, F)}, is_ordinary=True)]
TIED = [WideCase({"x": np.full(3, 7, F)}, has_ties=True)]
# The cases, the two models by two engines, both by OpenVINO alone, and what is found: "" for nothing.
TABLE: dict[str, tuple[list[WideCase], tuple[Function, ...], tuple[Function | None, ...], str]] = {
    "nothing": (FIVE, (plain, plain), (plain, plain), ""),
    "engines that round": (FIVE, (plain, grown(0.05)), (grown(0.05), grown(0.05)), ""),
    "engines that differ": (FIVE, (plain, grown(0.5)), (grown(0.5), grown(0.5)), "open"),
    "models that differ a little": (FIVE, (plain, grown(0.005)), (plain, grown(0.005)), "clear"),
    "models that differ in one engine alone": (FIVE, (plain, grown(0.05)), (None, plain), "clear"),
    "engines that round, on one model alone": (FIVE, (plain, grown(0.005)), (None, plain), ""),
    "other sizes": (ORDINARY, (plain, grown(0.05)), (plain, plain), "clear"),
    "a tie": (TIED, (plain, plain), (plain, beyond_5(1)), "open"),
    "an engine that clips": (FIVE, (beyond_5(math.nan), plain), (plain, plain), ""),
    "a model that gives NaN": (FIVE, (plain, plain), (beyond_5(math.nan), plain), "open"),
    "a model that gives NaN on ordinary numbers": (ORDINARY, (plain, plain), (plain, beyond_5(math.nan)), "clear"),
    "numbers that must not move": ([WideCase({"x": np.full(3, 777, F)})], (plain, plain), (plain, in_window), "open"),
}


@pytest.mark.parametrize(("cases", "two", "alone", "wanted"), TABLE.values(), ids=TABLE)
def test_what_is_said(
    cases: list[WideCase], two: tuple[Function, ...], alone: tuple[Function | None, ...], wanted: str
) -> None:
    by_two = runner_of(runs(*two), Comparison(1e-2, 1e-3, only_finite=True), is_one=False)
    by_one = runner_of(runs(*alone), Comparison(1e-2, 1e-3), is_one=True)
    look = WideLook(Drawn(cases), by_two, by_one, ["y"])  # type: ignore[arg-type]
    found = look.find([Attempt(0, 0, {"x": np.ones(3, F)})], 16, math.inf)
    assert ("" if found.difference is None else "clear" if found.is_clear else "open") == wanted
    assert found.difference is not None or found.attempts


def test_what_had_no_time_to_run_again_is_open() -> None:
    run = runs(plain, grown(0.5))
    left = iter([run, runs(None, None)])
    by_one = runner_of(lambda attempts, seconds: next(left)(attempts, seconds), Comparison(1e-2, 1e-3), is_one=True)
    found = WideLook(Drawn(FIVE), by_one, None, ["y"]).find([Attempt(0, 0, {})], 16, math.inf)  # type: ignore[arg-type]
    assert found.difference is not None
    assert not found.is_clear


def test_what_differed_once_is_no_run_that_reads_a_constant() -> None:
    """Numbers that are off show no difference, so that rounding may have decided."""
    left = iter([runs(plain, grown(0.5)), runs(plain, plain)])
    by_one = runner_of(lambda attempts, seconds: next(left)(attempts, seconds), Comparison(1e-2, 1e-3), is_one=True)
    found = WideLook(Drawn(FIVE), by_one, None, ["y"]).find([Attempt(0, 0, {})], 16, math.inf)  # type: ignore[arg-type]
    assert found == (None, True, [])
