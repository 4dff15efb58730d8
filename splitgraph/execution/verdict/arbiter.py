"""Ask the reference evaluator about outputs that differ in onnxruntime, whose kernels have faults of their own."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from splitgraph.execution.comparison import Comparison
from splitgraph.execution.engines.engine_process import Attempt, Workplace
from splitgraph.execution.models.model_pair import ComparedModel
from splitgraph.execution.rounding.isolate import isolate
from splitgraph.execution.values import Value
from splitgraph.graph.scopes import node_label

_ARBITER = "reference"
_MOST_NAMES = 3
# The reference evaluator may use this share of the time that is left: it is slow on large models.
_SHARE = 0.5


def rewritten_nodes(before: ComparedModel, after: ComparedModel) -> str | None:
    """Return which nodes of the first model the second one computes in another way; None where neither arithmetic nor
    opset differs. An engine may have another kernel for another version of an operator.
    """
    isolated = isolate(before, after)
    if isolated is None:
        opsets = [model.analysis.opset.get("") for model in (before, after)]
        return None if opsets[0] == opsets[1] else f"all, from opset {opsets[0]} to {opsets[1]}"
    nodes = before.analysis.model.graph.node
    labels = [node_label(nodes[position], position) for position in isolated.positions]
    more = f" and {len(labels) - _MOST_NAMES} more" if len(labels) > _MOST_NAMES else ""
    return ", ".join(labels[:_MOST_NAMES]) + more


def ask_reference(
    place: Workplace,
    inputs: Mapping[str, Value],
    outputs: tuple[list[Value], list[Value]],
    names: list[str],
    comparison: Comparison,
) -> tuple[Literal["equal", "different"] | None, str]:
    """Return whether the outputs of both models differ in the reference evaluator, None if it does not run them; and
    which models the other engine computes differently from it: "first", "second", "both" or "neither".

    outputs: of both models, by the other engine.
    """
    left = _SHARE * (comparison.deadline - time.monotonic())
    if left <= 0 or place.settings.custom_ops or place.settings.has_devices:
        return None, ""
    run = place.run(_ARBITER, [Attempt(0, 0, inputs)], left)
    found = [each.get((0, 0)) for each in run.outputs]
    first, second = found
    if first is None or second is None:
        return None, ""
    plain = replace(comparison, excuse=None)
    differs = plain.compare_outputs(names, first, second, 0) is not None
    deviates = [
        plain.compare_outputs(names, own, theirs, 0) is not None
        for own, theirs in zip((first, second), outputs, strict=True)
    ]
    who = "both" if all(deviates) else "first" if deviates[0] else "second" if deviates[1] else "neither"
    return "different" if differs else "equal", who
