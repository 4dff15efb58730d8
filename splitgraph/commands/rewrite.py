"""`splitgraph upgrade`, `downgrade` and `convert`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from splitgraph import api
from splitgraph.arguments import parse_bindings
from splitgraph.commands.many import run_models
from splitgraph.configuration import accepted_texts
from splitgraph.exit_codes import CLEAN, FINDINGS
from splitgraph.formats import ExternalData
from splitgraph.report.layout import BLANK, SEVERITY_STYLES, line
from splitgraph.report.pages import blockers_page, data_lines, rewrite_findings, rewrite_page, verification_notes
from splitgraph.report.printing import LONG, print_document, print_notice, print_result, working
from splitgraph.work.rewriting import RUNNING, RewriteWork, RewritingVerb, Rewritten, rewrite_file


def rewrite(
    verb: RewritingVerb,
    models: Sequence[str],
    *,
    output: str | None,
    in_place: bool,
    force: bool,
    external_data: ExternalData | None,
    verify: bool | None,
    skip_newer: bool | None,
    dry_run: bool,
    with_diff: bool,
    as_json: bool,
    quiet: bool,
    many: Mapping[str, Any],
    **keywords: Any,
) -> int:
    """Load, rewrite, verify, save and report; a model is written only if all other steps succeed.

    keywords: those of `rewrites.verify_rewrite` and of the API's verb.
    """
    if with_diff:
        many = {**many, "diff": with_diff}
    running = {name: keywords.pop(name) for name in RUNNING}
    running["try_sizes"] = parse_bindings(running["try_sizes"], "--try")
    keywords["bind"] = parse_bindings(keywords["bind"])
    keywords["accept"] = accepted_texts(keywords["accept"])
    places = (output, in_place, force, external_data)
    work = RewriteWork(verb, Path(), keywords, *places, verify, running, dry=dry_run, skips_newer=bool(skip_newer))
    one = partial(_rewrite, with_diff=with_diff, as_json=as_json, quiet=quiet)
    options = {**many, "skip_newer": skip_newer, "limit": running["timeout"]}
    return run_models(models, work, one, options, as_json=as_json, quiet=quiet)


def _rewrite(work: RewriteWork, *, with_diff: bool, as_json: bool, quiet: bool) -> int:
    done = rewrite_file(work, working)
    if done.seconds_verifying > LONG and not quiet:
        print_notice([line(f"verification took {done.seconds_verifying:.0f} s; --no-verify skips it")])
    if done.status == "refused":
        return _report_blockers(done, work, as_json)
    if done.status == "beyond":
        _report_beyond(done, work, as_json, quiet)
    elif done.status == "there":
        _report_there(done, work, as_json, quiet)
    else:
        _report_rewrite(done, work, with_diff, as_json, quiet)
    return done.code


def _report_beyond(done: Rewritten, work: RewriteWork, as_json: bool, quiet: bool) -> None:
    """Report that the model is beyond the opset that is wanted, which is no error."""
    if as_json:
        from splitgraph.report.documents import failed_document

        document = failed_document(work.verb, str(work.model), (), **{"from": dict(done.opset)}, to=dict(done.opset))
        print_document({**document, "ok": True, "beyond": True})
    elif not quiet:
        text = f"{work.model} has opset {done.opset['']}, beyond opset {work.opset}; nothing was written."
        print_result([line(text)])


def _report_there(done: Rewritten, work: RewriteWork, as_json: bool, quiet: bool) -> None:
    """Report that the model is as wanted."""
    assert done.rewrite is not None
    if as_json:
        from splitgraph.report.documents import rewrite_json

        output = None if done.output is None else str(done.output)
        document = rewrite_json(done.rewrite, str(work.model), output=output, data_files=done.data_files)
        print_document({**document, "ok": True, "already_there": True})
    elif not quiet:
        ending = "nothing was written." if done.output is None else f"wrote a copy, {done.output}."
        is_so = f"already has opset {work.opset}"
        if work.target is not None:
            is_so = f"has its splits as {work.target} reads them (no other operators were looked at)"
        if work.ir_version is not None and done.ir_versions is not None:
            is_so = f"already has IR version {done.ir_versions[0]}"
        print_result([line(f"{work.model} {is_so}; {ending}"), *data_lines(done.data_files)])
    if not quiet and (found := rewrite_findings(done.rewrite)):
        print_notice(found)


def _report_blockers(done: Rewritten, work: RewriteWork, as_json: bool) -> int:
    model, opset, blockers = str(work.model), done.opset, list(done.blockers)
    if as_json:
        from splitgraph.report.documents import failed_document

        after = opset if work.opset is None else {**opset, "": work.opset}
        print_document(failed_document(work.verb, model, blockers, **{"from": dict(opset)}, to=dict(after)))
    goal = f"be converted to {work.to}" if work.target is None else f"be converted for {work.target}"
    if work.ir_version is not None:
        goal = f"go to IR version {work.ir_version}"
    if work.opset is not None and work.target is None:
        goal = f"go from opset {opset['']} to {work.opset}" if "" in opset else f"go to opset {work.opset}"
    print_notice(blockers_page(f"{model} cannot {goal}", blockers))
    return FINDINGS


def _report_rewrite(done: Rewritten, work: RewriteWork, with_diff: bool, as_json: bool, quiet: bool) -> None:
    result, written = done.rewrite, done.output
    assert result is not None
    difference = api.diff_rewrite(done.before, done.compared) if with_diff and done.compared is not None else None
    if as_json:
        from splitgraph.report.documents import rewrite_json

        output = None if written is None else str(written)
        document = rewrite_json(result, str(work.model), output=output, data_files=done.data_files)
        if work.dry:
            document |= {"ok": done.code == CLEAN, "dry_run": True}
        if difference is not None:
            from splitgraph.report.documents import difference_json

            document["diff"] = difference_json(difference)
        print_document(document)
    elif done.status == "converted" and not quiet:
        form = work.to if work.opset is None else None
        ir_versions = None if work.ir_version is None else done.ir_versions
        page = rewrite_page(result, output=str(done.path), to_form=form, is_dry=work.dry, ir_versions=ir_versions)
        print_result([*page, *data_lines(done.data_files)])
    if difference is not None and not as_json:
        from splitgraph.report.differences import difference_blocks

        print_result([BLANK, *difference_blocks(difference, more="--json lists them")])
    if not (quiet and done.code == CLEAN) and (found := rewrite_findings(result)):
        print_notice(found)
    if done.status != "converted" and result.verification is not None:
        print_notice(verification_notes(result.verification))
    if done.status != "converted":
        print_notice([line("Nothing was written.")])
    elif result.verified is False:
        warning = ("NOT VERIFIED: ", SEVERITY_STYLES["warning"])
        text = f"{done.path} {'would be' if work.dry else 'was'} written, but is not verified to equal {work.model}. "
        print_notice([line(warning, f"{text}Use --verify to refuse this.")])
