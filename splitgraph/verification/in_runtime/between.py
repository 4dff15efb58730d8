"""Run one model in two runtimes, and find the first node at which they part."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import onnx

from splitgraph.findings.diagnostics import diagnostic
from splitgraph.inference import infer_model
from splitgraph.options import Running
from splitgraph.runtimes.check import found_in_run
from splitgraph.runtimes.runners.interpreters import Kind
from splitgraph.runtimes.runners.result import RuntimeRun
from splitgraph.verification.in_runtime.cases import NoCaseError, cases_of
from splitgraph.verification.in_runtime.run import RUN_SECONDS, Trials, host_of
from splitgraph.verification.verification import Difference, Verification

_NOT_RUN = Verification("not-run", "", 0, None, None, None, ())


def verify_between(
    model: onnx.ModelProto, runtimes: Sequence[tuple[Kind, str]], running: Running, folder: Path | None = None
) -> Verification:
    """Run a model in two runtimes on the same inputs, and compare their results; the first runtime gives what is
    expected of the second one.

    runtimes: each with the version that it must have, or the beginning of it; "" for any. running: how many inputs,
    which, and the Pythons that have the runtimes. folder: of the external data. Raises SplitgraphError for a Python
    that does not exist, ValueError for inputs that do not fit.
    """
    with ExitStack() as stack:
        hosts = []
        for kind, version in runtimes:
            host = stack.enter_context(host_of(kind, running, folder=folder, version=version))
            if isinstance(host, RuntimeRun):
                return replace(_NOT_RUN, diagnostics=(found_in_run(host),))
            hosts.append(host)
        first, second = hosts
        engine = f"{first.label} and {second.label}"
        try:
            cases = cases_of(model, infer_model(model, fill=False), running, first, RUN_SECONDS)
        except NoCaseError as error:
            return replace(_NOT_RUN, diagnostics=(diagnostic("SG501", str(error), severity="warning"),))
        trials = Trials(second, first, model, cases)
        ran = trials.run(model)
    if ran.answer == "not-run":
        return replace(_NOT_RUN, diagnostics=(found_in_run(ran),))
    largest = trials.comparison.max_abs_diff, trials.comparison.max_rel_diff
    known = replace(_NOT_RUN, engine=engine, cases=len(cases), max_abs_diff=largest[0], max_rel_diff=largest[1])
    if ran.answer == "equal":
        return replace(known, verdict="equal")
    difference = Difference("", None, f"{second.label} does not run it: {ran.said}")
    if ran.first_difference is not None:
        difference = Difference(*ran.first_difference)
    return replace(known, verdict="different", first_difference=difference, first_node=ran.first_node)
