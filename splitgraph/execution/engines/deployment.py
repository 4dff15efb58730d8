"""Report whether onnxruntime loads a rewritten model with its default optimisations.

Models are compared without any optimisation. The optimiser of onnxruntime has faults of its own, but a model that it
fails on is of little use with the default settings.
"""

from __future__ import annotations

from collections.abc import Mapping

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.execution.engines.onnxruntime_engine import LEVELS

# Why onnxruntime does not load a model, by optimisation level.
Failures = Mapping[str, str]


def deployment_note(failures: Mapping[int, Failures]) -> Diagnostic | None:
    """Return a warning if the second model does not load with the default optimisations of onnxruntime.

    failures: of each model (0 first, 1 second); of the first model only if the second one fails.
    """
    own = failures.get(1)
    if not own:
        return None
    works = next(level for level in LEVELS if level not in own)
    text = f"onnxruntime loads the result with {works}, but not with its default, {LEVELS[0]}: {own[LEVELS[0]]}"
    if LEVELS[0] in failures.get(0, {}):
        text += ". The first model fails in the same way, so the rewrite is not the cause"
    help = f"Set SessionOptions.graph_optimization_level to {works}, or try another version of onnxruntime."
    return diagnostic("SG508", text, severity="warning", help=help)
