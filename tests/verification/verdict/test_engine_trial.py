"""One engine runs both models: a crash that the inputs cause is a refusal of these inputs."""

from __future__ import annotations

import numpy as np
import pytest
from verifying import verify_models

from splitgraph.verification.engines.engine_process import EngineFailure, EngineRun, Workplace

from ..small_models import model_of, node, value


@pytest.mark.parametrize(("cause", "verdict"), [("SIGFPE", "equal"), ("SIGSEGV", "not-run")])
def test_a_division_by_0_ends_the_engine_and_says_something_of_the_inputs(
    cause: str, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: Workplace, engine: str, attempts: list, seconds: float, **options: object) -> EngineRun:  # type: ignore[type-arg]
        done = EngineRun()
        for each in attempts:
            if each.inputs["x"].shape[-1] < 250:
                done.failures.append(EngineFailure("run", 0, each.case, True, f"crashed ({cause})"))
                break
            for outputs in done.outputs:
                outputs[each.case, each.attempt] = [np.full((2, 2), each.case, np.float32)]
        return done

    monkeypatch.setattr(Workplace, "run", run)
    model = model_of([node("Neg", ["x"], ["y"])], [value("x", ("B", "N"))], ["y"])
    assert verify_models(model, model, engine="onnxruntime").verdict == verdict
