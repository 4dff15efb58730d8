"""Draw inputs for a model, and find out what it gives for them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx

from splitgraph.inference.analysis import Analysis
from splitgraph.options import Running
from splitgraph.verification.in_runtime.hosts import Host, HostRun
from splitgraph.verification.inputs.given_inputs import as_cases
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.inputs.later_attempts import FURTHER_ROUNDS
from splitgraph.verification.inputs.model_inputs import InputError
from splitgraph.verification.inputs.solver import SymbolSizes
from splitgraph.verification.inputs.test_data import read_test_data
from splitgraph.verification.values import Value

# Inputs that differ by so much, relative to each number, differ by roundings.
_MOVED = 1e-6


class Case(NamedTuple):
    """Inputs, and what a model gives for them."""

    inputs: Mapping[str, Value]
    expected: Sequence[Value]


class NoCaseError(Exception):
    """Raised if a model runs on no inputs that can be drawn; the message says why."""


def cases_of(model: onnx.ModelProto, analysis: Analysis, running: Running, host: Host, seconds: float) -> list[Case]:
    """Return inputs of a model that it runs on, and what it gives. Sizes that are not fixed differ between them, and
    none is 1 where the model allows another size. Raises NoCaseError, and ValueError for inputs that do not fit.
    """
    path = running.inputs
    if isinstance(path, (str, os.PathLike)):
        given = read_test_data(path, model.graph.input, model.graph.output)
    else:
        given = as_cases(path)
    maker = InputMaker(analysis, seed=running.seed, bind=running.try_sizes, given=given)
    sizes: list[SymbolSizes] = []
    drawn: dict[int, Mapping[str, Value]] = {}
    try:
        for case in range(maker.count(running.samples)):
            drawn[case], chosen = maker.draw(case, 0, sizes)
            sizes.append(chosen)
    except InputError as error:
        raise NoCaseError(str(error)) from None
    found, failed = _run(model, drawn, host, seconds)
    for attempts in FURTHER_ROUNDS if maker.varies else ():
        # Other inputs help against a refusal of these only.
        if failed is None or not failed.may_be_inputs:
            break
        for attempt in attempts:
            again = {case: _redrawn(maker, case, attempt, sizes) for case in drawn if case not in found}
            more, _ = _run(model, {case: inputs for case, inputs in again.items() if inputs is not None}, host, seconds)
            found |= more
            if more:
                break
        if len(found) == len(drawn):
            break
    if not found:
        said = "" if failed is None else failed.said
        raise NoCaseError(f"{host.label} does not run the model: {said}")
    return [found[case] for case in sorted(found)]


def _redrawn(maker: InputMaker, case: int, attempt: int, sizes: Sequence[SymbolSizes]) -> Mapping[str, Value] | None:
    try:
        return maker.draw(case, attempt, sizes)[0]
    except InputError:
        # Too large; other attempts have smaller sizes.
        return None


def _run(
    model: onnx.ModelProto, drawn: Mapping[int, Mapping[str, Value]], host: Host, seconds: float
) -> tuple[dict[int, Case], HostRun | None]:
    """Return the cases that ran, and the first that did not."""
    if not drawn:
        return {}, None
    runs = dict(zip(drawn, host.run(model, list(drawn.values()), seconds), strict=True))
    failed = next((run for run in runs.values() if run.values is None), None)
    return {case: Case(drawn[case], run.values) for case, run in runs.items() if run.values is not None}, failed


def moved_results(model: onnx.ModelProto, case: Case, host: Host, seconds: float) -> Sequence[Value] | None:
    """Return what a model gives if its floating-point inputs differ by roundings; None if it has none, or fails."""
    random = np.random.default_rng(0)
    moved = {
        name: (value * (1 + _MOVED * random.uniform(-1, 1, value.shape))).astype(value.dtype)
        for name, value in case.inputs.items()
        if isinstance(value, np.ndarray) and value.dtype.kind == "f"
    }
    if not moved:
        return None
    (run,) = host.run(model, [{**case.inputs, **moved}], seconds)
    return run.values
