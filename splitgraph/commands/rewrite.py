"""`splitgraph upgrade`, `downgrade`, `convert` and `reshape`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from splitgraph import open_models
from splitgraph.commands.many import run_models
from splitgraph.findings.exit_codes import CLEAN, FINDINGS
from splitgraph.model.scopes import named_opset
from splitgraph.options import NewSizes, Shown, Wanted
from splitgraph.reports.pages import blockers_page, data_lines, rewrite_findings, rewrite_page, verification_notes
from splitgraph.reports.printing import LONG, print_document, print_notice, print_result, working
from splitgraph.reports.text import BLANK, SEVERITY_STYLES, count, line, opset_text
from splitgraph.work.rewriting import Rewritten, rewrite_file
from splitgraph.work.task import Call, FileTask

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Rewrite
    from splitgraph.differences.difference import ModelDifference


def rewrite(call: Call) -> int:
    """Load, rewrite, verify, save and report; a model is written only if all other steps succeed."""
    return run_models(call, _rewrite)


def _rewrite(task: FileTask, shown: Shown) -> int:
    rewritten = rewrite_file(task, working)
    if rewritten.seconds_verifying > LONG and not shown.quiet:
        print_notice([line(f"verification took {rewritten.seconds_verifying:.0f} s; --no-verify skips it")])
    if rewritten.status == "refused":
        return _report_blockers(rewritten, task, shown)
    if rewritten.status == "kept":
        _report_kept(rewritten, task, shown)
    elif rewritten.status == "unchanged":
        _report_there(rewritten, task, shown)
    else:
        _report_rewrite(rewritten, task, shown)
    return rewritten.code


def _report_kept(rewritten: Rewritten, task: FileTask, shown: Shown) -> None:
    """Report that the model is beyond the wanted opset, which is no error."""
    output = None if rewritten.output is None else str(rewritten.output)
    if shown.as_json:
        from splitgraph.reports.documents.rewrites import data_files_json
        from splitgraph.reports.documents.skeletons import failed_document

        files = data_files_json(rewritten.data_files)
        known: Any = {"from": dict(rewritten.opset), "to": dict(rewritten.opset), "output": output, "data_files": files}
        document = failed_document(task.verb, task.name, (), **known)
        print_document({**document, "ok": True, "kept": True})
    elif not shown.quiet:
        than = f"{'newer' if task.verb == 'upgrade' else 'older'} than {opset_text(task.converting.opsets)}"
        had = {domain: rewritten.opset[domain] for domain in task.converting.opsets if domain in rewritten.opset}
        text = f"{task.name} has {opset_text(had)}, {than}; {_copied(output)}"
        print_result([line(text), *data_lines(rewritten.data_files)])


def _report_there(rewritten: Rewritten, task: FileTask, shown: Shown) -> None:
    """Report that the model is already as wanted."""
    assert rewritten.rewrite is not None
    if shown.as_json:
        from splitgraph.reports.documents.rewrites import rewrite_json

        output = None if rewritten.output is None else str(rewritten.output)
        document = rewrite_json(rewritten.rewrite, task.name, output=output, data_files=rewritten.data_files)
        print_document({**document, "ok": True, "unchanged": True})
    elif not shown.quiet:
        ending = _copied(None if rewritten.output is None else str(rewritten.output))
        is_so = _how_it_is(rewritten.rewrite, rewritten, task.wanted)
        print_result([line(f"{task.name} {is_so}; {ending}"), *data_lines(rewritten.data_files)])
    if not shown.quiet and (findings := rewrite_findings(rewritten.rewrite)):
        print_notice(findings)


def _how_it_is(rewrite: Rewrite, rewritten: Rewritten, wanted: Wanted) -> str:
    """Return what is so of a model that is already as wanted, to stand after its name."""
    if isinstance(wanted, NewSizes):
        return "already has these sizes"
    if wanted.only_ir_version is not None and rewritten.ir_versions is not None:
        return f"already has IR version {rewritten.ir_versions[0]}"
    if wanted.target is not None:
        return _how_it_is_for(wanted.target, rewrite)
    if wanted.to is not None:
        return f"has nothing to rewrite as {wanted.to}"
    if wanted.drop_zipmap and not wanted.standard and not wanted.fold:
        return "has no output that is made of maps"
    if wanted.standard:
        return "has no operator of another domain that has a standard form"
    return "has nothing that is known and not written" if wanted.fold else f"already has {opset_text(wanted.opsets)}"


def _how_it_is_for(target: str, rewrite: Rewrite) -> str:
    """Return what is so of a model that is already as a target reads it."""
    ran = rewrite.ran
    if ran is not None and ran.answer == "equal":
        return f"runs in {ran.label} as it is, equal on {count(ran.cases, 'input')}"
    from splitgraph.runtimes.target import find_target

    is_open = any(finding.code in ("SG705", "SG707") for finding in rewrite.diagnostics)
    is_known = find_target(target).measured is not None and not is_open
    is_so = f"is read by {target} as it is" if is_known else f"has nothing that {target} is known to refuse"
    return is_so if ran is None else f"{is_so}; {ran.told}"


def _copied(output: str | None) -> str:
    """Return what became of a model that stays as it is."""
    return "nothing was written." if output is None else f"wrote a copy, {output}."


def _report_blockers(rewritten: Rewritten, task: FileTask, shown: Shown) -> int:
    model, opset, blockers, wanted = task.name, rewritten.opset, list(rewritten.blockers), task.wanted
    if shown.as_json:
        from splitgraph.reports.documents.skeletons import failed_document

        after = {**opset, **task.converting.opsets}
        print_document(failed_document(task.verb, model, blockers, **{"from": dict(opset)}, to=dict(after)))
    print_notice(blockers_page(f"{model} cannot {_what_it_cannot(wanted, opset)}", blockers))
    return FINDINGS


def _what_it_cannot(wanted: Wanted, opset: Mapping[str, int]) -> str:
    """Return what a model was to do, to stand after "cannot". opset: what the model imports."""
    if isinstance(wanted, NewSizes):
        return "get these sizes"
    if wanted.target is not None:
        return f"be converted for {wanted.target}"
    if wanted.standard:
        return "be written in operators of ai.onnx alone"
    if wanted.opset is not None:
        return " and ".join(
            f"go to {named_opset(domain, version)}"
            if domain not in opset
            else f"go from {named_opset(domain, opset[domain])} to {version}"
            for domain, version in wanted.opsets.items()
        )
    if wanted.only_ir_version is not None:
        return f"go to IR version {wanted.only_ir_version}"
    return "be folded" if wanted.to is None else f"be converted to {wanted.to}"


def _report_rewrite(rewritten: Rewritten, task: FileTask, shown: Shown) -> None:
    """Print the result, as JSON or as a page, with the difference if the user wants one; and the notices after it."""
    result = rewritten.rewrite
    assert result is not None
    difference = None
    if shown.diff and rewritten.compared is not None:
        difference = open_models.diff_rewrite(rewritten.before, rewritten.compared)
    if shown.as_json:
        _print_rewrite_as_json(result, difference, rewritten, task)
    else:
        _print_rewrite_page(result, difference, rewritten, task, is_quiet=shown.quiet)
    if not (shown.quiet and rewritten.code == CLEAN) and (findings := rewrite_findings(result)):
        print_notice(findings)
    if rewritten.status != "converted":
        if result.verification is not None:
            print_notice(verification_notes(result.verification))
        print_notice([line("Nothing was written.")])
    elif result.verified is False:
        warning = ("NOT VERIFIED: ", SEVERITY_STYLES["warning"])
        is_written = "would be" if task.output.dry_run else "was"
        text = f"{rewritten.path} {is_written} written, but is not verified to equal {task.name}. "
        print_notice([line(warning, f"{text}Use --verify to refuse this.")])


def _print_rewrite_as_json(
    result: Rewrite, difference: ModelDifference | None, rewritten: Rewritten, task: FileTask
) -> None:
    from splitgraph.reports.documents.rewrites import rewrite_json

    output = None if rewritten.output is None else str(rewritten.output)
    document = rewrite_json(result, task.name, output=output, data_files=rewritten.data_files)
    if task.output.dry_run:
        document |= {"ok": rewritten.code == CLEAN, "dry_run": True}
    if difference is not None:
        from splitgraph.reports.documents.comparisons import difference_json

        document["diff"] = difference_json(difference)
    print_document(document)


def _print_rewrite_page(
    result: Rewrite, difference: ModelDifference | None, rewritten: Rewritten, task: FileTask, *, is_quiet: bool
) -> None:
    """Print what was rewritten, unless the user wants no page, and the difference, which the user asked for."""
    wanted = task.converting
    if rewritten.status == "converted" and not is_quiet:
        page = rewrite_page(
            result,
            output=str(rewritten.path),
            to_form=wanted.to if wanted.opset is None else None,
            is_dry=task.output.dry_run,
            ir_versions=None if wanted.only_ir_version is None else rewritten.ir_versions,
            node_counts=rewritten.node_counts if wanted.only_folds else None,
        )
        print_result([*page, *data_lines(rewritten.data_files)])
    if difference is not None:
        from splitgraph.reports.differences import difference_blocks

        print_result([BLANK, *difference_blocks(difference, more="--json lists them")])
