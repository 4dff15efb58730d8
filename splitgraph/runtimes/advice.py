"""Says in one line what to do about a check for a target, once the model was converted for the target."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.runtimes.runners.interpreters import KINDS
from splitgraph.runtimes.target import Target

if TYPE_CHECKING:
    from splitgraph.runtimes.check import Examined, TargetCheck

# Of what a conversion leaves as it is.
NO_OTHER_FORM = "no other form of it is known to be read"
# The layers of an IR that conversion rewrites.
_SPLIT_LAYERS = frozenset({"Split", "VariadicSplit"})


class Converted(NamedTuple):
    """What became of a model after its conversion for a target: whether it runs, as `TargetCheck.runs`; and the
    findings, or the blockers of the conversion.
    """

    runs: bool | None
    findings: Sequence[Diagnostic]


def asked_name(target: Target) -> str:
    """Return the name of a target as `--target` has to get it: with the version that was asked for, even if another one
    stands for it.
    """
    return target.key if target.is_measured_version else f"{target.name}@{target.asked}"


def has_open_inputs(model: ModelProto) -> bool:
    """Return True if an input of a model has a dimension without a size, so that sizes can be fixed."""
    types = [value.type.tensor_type for value in model.graph.input if value.type.HasField("tensor_type")]
    return any(
        not given.HasField("shape") or any(not dim.HasField("dim_value") for dim in given.shape.dim) for given in types
    )


def convert_command(model: str, name: str) -> str:
    """Return the command that converts a model for a target. model: its path, "" for a model in memory."""
    return " ".join(["splitgraph convert", *_path(model), "--target", name])


def run_command(model: str, name: str) -> str:
    """Return the command that runs a model in the runtime of a target."""
    return " ".join(["splitgraph check", *_path(model), "--target", name, "--run"])


def advice(examined: Examined, check: TargetCheck, converted: Converted | None, model: str) -> str:
    """Return what to do about a check in one line, "" if nothing is to do or the findings say it.

    converted: what became of the model, None if it was not converted; then nobody knows whether that helps. model: its
    path, "" for a model in memory.
    """
    if examined.errors:
        return ""
    if check.has_errors:
        return _about_what_is_in_the_way(examined, check, converted, model)
    if check.ran is not None or (check.runs and check.target.is_measured_version):
        return ""
    return _who_knows(examined, check, model)


def _about_what_is_in_the_way(examined: Examined, check: TargetCheck, converted: Converted | None, model: str) -> str:
    target, name = check.target, asked_name(check.target)
    command = convert_command(model, name)
    if examined.ir is not None and not _has_splits_in_the_way(examined, check):
        return f"Convert the original model with {target.label}, or an older release: it writes layers that it reads."
    is_refused = converted is not None and converted.runs is False
    if check.ran is not None and check.ran.failed and not is_refused:
        return f"Try {command}, which runs its result, too."
    if converted is None:
        return ""
    if is_refused:
        fixed = ""
        if has_open_inputs(examined.model):
            reshape = " ".join(["splitgraph reshape", *_path(model), "--input-shape NAME=SIZES"])
            fixed = f" Fixed sizes may help: {reshape}."
        others = " ".join(["splitgraph check", *_path(model), "--all-targets"])
        return f"convert knows no other form. For other runtimes: {others}.{fixed}"
    if converted.runs:
        return f"runs after  {command}"
    return f"nothing known is in the way after  {command}"


def _has_splits_in_the_way(examined: Examined, check: TargetCheck) -> bool:
    """Return True if the target does not read a layer that conversion rewrites."""
    return any(
        node.node.op_type in _SPLIT_LAYERS and answer.answer in ("refuses", "wrong")
        for node, answer in zip(examined.nodes, check.nodes, strict=True)
    )


def _who_knows(examined: Examined, check: TargetCheck, model: str) -> str:
    """Return who says what the table does not."""
    target = check.target
    label = target.label if target.is_measured_version else f"{target.title} {target.asked}"
    if target.name not in KINDS or examined.ir is not None:
        return f"Run the model in {label}, and compare the results with those of ONNX Runtime."
    return f"To find out, where {label} is installed: {run_command(model, asked_name(target))}"


def _path(model: str) -> list[str]:
    return [shlex.quote(model)] if model else []
