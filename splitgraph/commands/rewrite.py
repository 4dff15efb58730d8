"""`splitgraph upgrade`, `downgrade` and `convert`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splitgraph import api
from splitgraph.arguments import parse_bindings, refuse_existing, rewritten_path
from splitgraph.commands.files import write_model
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.diagnostics import ConversionError, Diagnostic, diagnostic
from splitgraph.exit_codes import CLEAN, FINDINGS, NOT_CHECKED
from splitgraph.formats import ExternalData, LoadedModel, is_ir_name, open_model, whole_model
from splitgraph.graph.scopes import opset_imports
from splitgraph.inference.analysis import IR
from splitgraph.onnx_proto import ModelProto
from splitgraph.report.layout import SEVERITY_STYLES, line
from splitgraph.report.pages import blockers_page, rewrite_findings, rewrite_page, verification_notes
from splitgraph.report.printing import LONG, print_document, print_notice, print_result, working

if TYPE_CHECKING:
    from splitgraph.formats import Model

_ANOTHER_NAME = "pass --in-place to overwrite the model, or another name with -o"


@dataclass(frozen=True, slots=True)
class Task:
    """What a rewriting command does. tag: part of the default output's name. opset: the new one, None keeps the
    model's. to: the form of the splits, None keeps their form. target: the runtime that the model is for.
    """

    rewrite: Callable[[Any], Rewrite]
    tag: str
    opset: int | None
    to: str | None = None
    target: str | None = None

    def may_be_done(self, opset: int | None) -> bool:
        """Whether a model with this opset may be what is wanted as it is."""
        return self.target is not None or (self.to is None and self.opset is not None and self.opset == opset)


@dataclass(frozen=True, slots=True)
class Destination:
    """Paths and options of a rewrite. verify: without a verdict None writes the result, True does not."""

    model: Path
    output: str | None
    in_place: bool
    force: bool
    external_data: ExternalData | None
    verify: bool | None
    as_json: bool
    # How the two models are run: keywords of `api.verify_rewrite`.
    running: Mapping[str, Any]


def rewrite(
    task: Task,
    model: Path,
    *,
    output: str | None,
    in_place: bool,
    force: bool,
    external_data: ExternalData | None,
    verify: bool | None,
    as_json: bool,
    bind: Sequence[str],
    **running: Any,
) -> int:
    """Load, rewrite, verify, save and report; the model is written only if all other steps succeed.

    running: other keywords of `api.verify_rewrite`.
    """
    running["bind"] = parse_bindings(bind)
    return _rewrite(task, Destination(model, output, in_place, force, external_data, verify, as_json, running))


def _rewrite(task: Task, destination: Destination) -> int:
    model, force = destination.model, destination.force
    path = rewritten_path(model, destination.output, in_place=destination.in_place, tag=task.tag)
    if destination.output is not None:
        refuse_existing(path, model, force=force, advice=_ANOTHER_NAME)
    loaded = open_model(model, weights="leave")
    before = loaded.content
    is_there = task.may_be_done(_opset_of(before).get(""))
    if destination.output is None and not destination.in_place and not is_there:
        refuse_existing(path, model, force=force, advice=_ANOTHER_NAME)
    try:
        # Not its content, which the verb would check once more.
        result = task.rewrite(loaded)
        if is_ir_name(path) and isinstance(result.model, ModelProto):
            result = _as_ir(result, model)
    except ConversionError as error:
        return _report_blockers(error.diagnostics, task, destination, _opset_of(before))
    code = CLEAN
    if is_there and not result.changes and result.model == before:
        return _report_there(result, task, destination, path, loaded)
    if destination.output is None and not destination.in_place:
        refuse_existing(path, model, force=force, advice=_ANOTHER_NAME)
    if destination.verify is not False:
        result, code = _verified(loaded, result, destination)
    if code == CLEAN:
        data = destination.external_data
        write_model(result.model, path, loaded, overwrite=force or destination.in_place, external_data=data)
    _report_rewrite(result, task, destination, path if code == CLEAN else None)
    return code


def _report_there(result: Rewrite, task: Task, destination: Destination, path: Path, loaded: LoadedModel) -> int:
    """Report that the model has this opset already; write a copy only if -o names another file."""
    model = destination.model
    output = None if destination.output is None else path
    if output is not None:
        data = destination.external_data
        write_model(result.model, output, loaded, overwrite=destination.force, external_data=data)
    if destination.as_json:
        from splitgraph.report.documents import rewrite_json

        document = rewrite_json(result, str(model), output=None if output is None else str(output))
        print_document({**document, "ok": True, "already_there": True})
    else:
        ending = "nothing was written." if output is None else f"wrote a copy, {output}."
        is_so = f"already has opset {task.opset}" if task.target is None else f"is as {task.target} reads it"
        print_result([line(f"{model} {is_so}; {ending}")])
    if found := rewrite_findings(result):
        print_notice(found)
    return CLEAN


def _opset_of(model: Model) -> Mapping[str, int]:
    return opset_imports(model.opset_import) if isinstance(model, ModelProto) else {IR: model.version}


def _as_ir(result: Rewrite, source: Path) -> Rewrite:
    """The result as IR, with the changes that OpenVINO needs; a split that changes twice counts as one change."""
    from splitgraph.execution.engines.openvino_import import import_onnx

    with working("converting to OpenVINO IR"):
        imported = import_onnx(whole_model(result.model, source))
    again = {change.location: change for change in imported.changes}
    changes = [
        replace(again.pop(change.location), before=change.before) if change.location in again else change
        for change in result.changes
    ]
    return replace(result, held=imported.model, changes=(*changes, *again.values()))


def _verified(before: LoadedModel, result: Rewrite, destination: Destination) -> tuple[Rewrite, int]:
    """The result with its verification, and an exit code: the result may be written only if the code is CLEAN."""
    wanted = bool(destination.verify)
    began = time.monotonic()
    with working("running both models", hint="--no-verify skips this") as say:
        verification = api.verify_rewrite(before, result, progress=say, **destination.running)
    if time.monotonic() - began > LONG:
        print_notice([line(f"verification took {time.monotonic() - began:.0f} s; --no-verify skips it")])
    code, findings = CLEAN, result.diagnostics
    if verification.verdict == "not-run":
        code = NOT_CHECKED if wanted else CLEAN
        reasons = "; ".join(d.message for d in verification.diagnostics) or "no engine could run both models"
        cause = next((d for d in verification.diagnostics if d.code in ("SG501", "SG506")), None)
        code_of, help = ("SG501", None) if cause is None else (cause.code, cause.help)
        findings = (*findings, diagnostic(code_of, reasons, severity="error" if wanted else "warning", help=help))
    elif verification.verdict == "different":
        code = FINDINGS
        first = verification.first_difference
        told = () if first is None else filter(None, (first.name, first.reason))
        reason = ": ".join(told) or "the rewritten model gives another result"
        findings = (*findings, diagnostic("SG502", reason))
    else:
        findings = (*findings, *verification.warnings)
    return replace(result, verification=verification, diagnostics=findings), code


def _report_blockers(
    blockers: Sequence[Diagnostic], task: Task, destination: Destination, opset: Mapping[str, int]
) -> int:
    model = str(destination.model)
    if destination.as_json:
        from splitgraph.report.documents import failed_rewrite_json

        after = opset if task.opset is None else {**opset, "": task.opset}
        print_document(failed_rewrite_json(model, blockers, before=opset, after=after))
    goal = f"be converted to {task.to}" if task.target is None else f"be converted for {task.target}"
    if task.opset is not None and task.target is None:
        goal = f"go from opset {opset['']} to {task.opset}" if "" in opset else f"go to opset {task.opset}"
    print_notice(blockers_page(f"{model} cannot {goal}", blockers))
    return FINDINGS


def _report_rewrite(result: Rewrite, task: Task, destination: Destination, written: Path | None) -> None:
    if destination.as_json:
        from splitgraph.report.documents import rewrite_json

        output = None if written is None else str(written)
        print_document(rewrite_json(result, str(destination.model), output=output))
    elif written is not None:
        form = task.to if task.opset is None else None
        print_result(rewrite_page(result, output=str(written), to_form=form))
    if found := rewrite_findings(result):
        print_notice(found)
    if written is None and result.verification is not None:
        print_notice(verification_notes(result.verification))
    if written is None:
        print_notice([line("Nothing was written.")])
    elif result.verified is False:
        warning = ("NOT VERIFIED: ", SEVERITY_STYLES["warning"])
        text = f"{written} was written, but is not verified to equal {destination.model}. Use --verify to refuse this."
        print_notice([line(warning, text)])
