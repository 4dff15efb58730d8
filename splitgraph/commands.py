"""What the commands do: call the API, write the result, print the report. Each returns an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from splitgraph import api
from splitgraph.arguments import parse_bindings, parse_input_shapes, refuse_existing, rewritten_path
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.diagnostics import ConversionError, Diagnostic, diagnostic
from splitgraph.exit_codes import CLEAN, FINDINGS, NOT_CHECKED
from splitgraph.formats import Model, OpenVINOModel, is_ir_name, open_model, with_weights, write
from splitgraph.graph.names import dimension_names
from splitgraph.graph.scopes import opset_imports
from splitgraph.inference.analysis import IR, Analysis
from splitgraph.onnx_proto import ModelProto
from splitgraph.report.documents import analysis_json, failed_rewrite_json, rewrite_json, verification_json
from splitgraph.report.layout import line
from splitgraph.report.pages import (
    analysis_page,
    blockers_page,
    findings_phrase,
    findings_table,
    rewrite_page,
    verification_notes,
    verification_page,
)
from splitgraph.report.printing import print_document, print_notice, print_result, say_error, working


def infer(
    model: Path,
    *,
    output: Path | None,
    force: bool,
    bind: Sequence[str],
    input_shape: Sequence[str],
    with_values: bool,
    as_json: bool,
) -> int:
    """Infer a model and report; write it with its types only when it has no errors."""
    bindings = parse_bindings(bind)
    if output is not None:
        refuse_existing(output, model, force=force, advice="give another name with -o")
    loaded = open_model(model, external_data="keep")
    names = set[str]() if isinstance(loaded.content, OpenVINOModel) else dimension_names(loaded.content)
    shapes = parse_input_shapes(input_shape, names)
    analysis = api.infer(loaded.content, bind=bindings, input_shapes=shapes)
    written = output if analysis.ok else None
    if written is not None:
        write(analysis.model, written, source=loaded, overwrite=force)
    if as_json:
        print_document(analysis_json(analysis, str(model), with_values))
    else:
        page = analysis_page(analysis, str(model), with_values=with_values, brief=sys.stdout.isatty())
        print_result([*page, line("wrote ", (str(written), "bold"))] if written else page)
    return CLEAN if analysis.ok else _say_first_error(analysis, model)


def _say_first_error(analysis: Analysis, model: Path) -> int:
    errors = [d for d in analysis.diagnostics if d.severity == "error"]
    first = ": ".join(filter(None, (errors[0].location, errors[0].message)))
    say_error(f"{model}: {findings_phrase(errors)}: {first}", errors[:1])
    return FINDINGS


def verify(before: Path, after: Path, *, bind: Sequence[str], as_json: bool, **options: Any) -> int:
    """Compare two models by running them; options: the keywords of `api.verify`."""
    bindings = parse_bindings(bind)
    with working("running both models"):
        verification = api.verify(before, after, bind=bindings, **options)
    if as_json:
        print_document(verification_json(verification))
    else:
        print_result(verification_page(verification))
    return {"equal": CLEAN, "different": FINDINGS, "not-run": NOT_CHECKED}[verification.verdict]


@dataclass(frozen=True, slots=True)
class Task:
    """What a rewriting command does. tag: of the default output's name. opset: the target, None for the model's own."""

    rewrite: Callable[[Model], Rewrite]
    tag: str
    opset: int | None


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a rewritten model comes from and goes to. verify: None writes what no engine can run, True does not."""

    model: Path
    output: Path | None
    in_place: bool
    force: bool
    verify: bool | None
    as_json: bool


def rewrite(task: Task, destination: Destination) -> int:
    """Load, rewrite, verify, save and report; a model is written only after everything else went well."""
    model, force = destination.model, destination.force
    path = rewritten_path(model, destination.output, in_place=destination.in_place, force=force, tag=task.tag)
    loaded = open_model(model, external_data="keep")
    before = loaded.content
    try:
        result = task.rewrite(before)
        if is_ir_name(path) and isinstance(result.model, ModelProto):
            result = _as_ir(result, model)
    except ConversionError as error:
        return _report_blockers(error.diagnostics, task, destination, _opset_of(before))
    code = CLEAN
    if destination.verify is not False:
        result, code = _verified(before, result, destination)
    if code == CLEAN:
        write(result.model, path, source=loaded, overwrite=force or destination.in_place)
    _report_rewrite(result, task, destination, path if code == CLEAN else None)
    return code


def _opset_of(model: Model) -> Mapping[str, int]:
    return {IR: model.version} if isinstance(model, OpenVINOModel) else opset_imports(model.opset_import)


def _as_ir(result: Rewrite, source: Path) -> Rewrite:
    """The result as IR, its changes with those that OpenVINO needs; a split that is changed twice is one change."""
    from splitgraph.execution.openvino_import import import_onnx

    with working("converting to OpenVINO IR"):
        imported = import_onnx(with_weights(result.model, source))
    again = {change.location: change for change in imported.changes}
    changes = [
        replace(again.pop(change.location), before=change.before) if change.location in again else change
        for change in result.changes
    ]
    return replace(result, model=imported.model, changes=(*changes, *again.values()))


def _with_weights(model: Model, source: Path) -> Model:
    return model if isinstance(model, OpenVINOModel) else with_weights(model, source)


def _verified(before: Model, result: Rewrite, destination: Destination) -> tuple[Rewrite, int]:
    """The result with its verification, and an exit code: only a clean one may be written."""
    wanted = bool(destination.verify)
    with working("running both models"):
        source = destination.model
        rewritten = replace(result, model=_with_weights(result.model, source))
        verification = api.verify_rewrite(_with_weights(before, source), rewritten)
    code, findings = CLEAN, result.diagnostics
    if verification.verdict == "not-run":
        code = NOT_CHECKED if wanted else CLEAN
        reasons = "; ".join(d.message for d in verification.diagnostics) or "no engine could run both models"
        help = next((d.help for d in verification.diagnostics if d.code == "SG501"), None)
        findings = (*findings, diagnostic("SG501", reasons, severity="error" if wanted else "warning", help=help))
    elif verification.verdict == "different":
        code = FINDINGS
        first = verification.first_difference
        told = () if first is None else filter(None, (first.name, first.reason))
        reason = ": ".join(told) or "the rewritten model gives something else"
        findings = (*findings, diagnostic("SG502", reason))
    return replace(result, verification=verification, diagnostics=findings), code


def _report_blockers(
    blockers: Sequence[Diagnostic], task: Task, destination: Destination, opset: Mapping[str, int]
) -> int:
    model = str(destination.model)
    if destination.as_json:
        after = opset if task.opset is None else {**opset, "": task.opset}
        print_document(failed_rewrite_json(model, blockers, before=opset, after=after))
    goal = f"be converted to {task.tag}"
    if task.opset is not None:
        goal = f"go from opset {opset['']} to {task.opset}" if "" in opset else f"go to opset {task.opset}"
    print_notice(blockers_page(f"{model} cannot {goal}", blockers))
    return FINDINGS


def _report_rewrite(result: Rewrite, task: Task, destination: Destination, written: Path | None) -> None:
    if destination.as_json:
        output = None if written is None else str(written)
        print_document(rewrite_json(result, str(destination.model), output=output))
    elif written is not None:
        form = task.tag if task.opset is None else None
        print_result(rewrite_page(result, output=str(written), to_form=form))
    if result.diagnostics:
        print_notice([findings_table(result.diagnostics)])
    if written is None and result.verification is not None:
        print_notice(verification_notes(result.verification))
    if written is None:
        print_notice([line("Nothing was written.")])
