"""`splitgraph check`."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

from splitgraph.commands.all_targets import all_targets
from splitgraph.commands.many import run_models
from splitgraph.findings.diagnostics import findings_phrase
from splitgraph.findings.exit_codes import CLEAN
from splitgraph.options import Leeway, Shown
from splitgraph.reports.pages import accepted_findings, findings_table
from splitgraph.reports.printing import print_document, print_result, working
from splitgraph.reports.text import BLANK, Block, count, line, opset_text, table
from splitgraph.runtimes.check import TargetCheck
from splitgraph.runtimes.runners.interpreters import KINDS
from splitgraph.runtimes.target import Target, targets
from splitgraph.work.checking import Checked, check_file
from splitgraph.work.task import Call, FileTask


def check(call: Call) -> int:
    """Check models for targets, none for all, and print the findings for each."""
    return run_models(call, _check)


def list_targets(*, as_json: bool) -> int:
    """Print the targets: what they are called, and since when they are known."""
    known = targets().values()
    if as_json:
        from splitgraph.reports.documents.targets import targets_json

        print_document(targets_json(known))
        return CLEAN
    rows = [(target.key, target.label, _known_since(target), _runner(target)) for target in known]
    print_result([table(("--target", "runtime", "measured", "--run"), ("bold", "", "", ""), rows)])
    return CLEAN


def _known_since(target: Target) -> str:
    measured = target.operators.measured or target.measured
    return measured or "not run here; from its documents"


def _runner(target: Target) -> str:
    return "yes" if target.name in KINDS else ""


def _check(task: FileTask, shown: Shown) -> int:
    model = task.name
    with working("running the model") if task.run else nullcontext():
        checked = check_file(task)
    walked = checked.examined.walked
    if shown.as_json:
        from splitgraph.reports.documents.targets import check_json

        converted = checked.converted(task.leeway)
        advised = partial(checked.advice, converted=converted, model=model)
        print_document(check_json(model, dict(walked.opset), checked.checks, converted, advised, walked.accepted))
    elif checked.code or not shown.quiet:
        accepted = accepted_findings(walked.accepted)
        page = _page(model, checked, task.leeway)
        print_result([*page, *([BLANK] if accepted else []), *accepted])
    return checked.code


def _page(model: str, checked: Checked, leeway: Leeway) -> list[Block]:
    examined = checked.examined
    if examined.errors:
        told = [*examined.errors, *examined.walked.stale]
        return [line((model, "bold"), f" · {findings_phrase(examined.errors)}"), findings_table(told)]
    converted = checked.converted(leeway)
    if checked.compares_all:
        opset = f"opset {examined.opset}" if examined.ir is None else opset_text(examined.walked.opset)
        title = line((model, "bold"), f" · {opset} · {count(len(examined.nodes), 'node')}")
        return [title, *all_targets(model, checked.checks, converted)]
    blocks: list[Block] = []
    for check in checked.checks:
        label = check.target.label if check.ran is None or check.ran.version is None else check.ran.label
        blocks.append(line((label, "bold"), f" · {_verdict(check, model)}"))
        blocks += [findings_table(check.findings)] if check.findings else []
        advice = checked.advice(check, converted, model)
        blocks += [line((advice, "bold"))] if advice else []
    return blocks


def _verdict(check: TargetCheck, model: str) -> str:
    """Return what was found, and what was looked at."""
    number, read = count(len(check.nodes), "node"), check.nodes.counts["reads"]
    if check.ran is not None and check.ran.answer == "equal":
        return f"{model} ran here: equal on {count(check.ran.cases, 'input')}"
    if check.has_errors:
        gone = f", and folding removes {len(check.gone)} of the others" if check.gone else ""
        return f"{findings_phrase(check.findings)} in {model}; {read} of {number} are read{gone}"
    if check.runs:
        return f"reads all {number} of {model}"
    if not check.target.measured:
        return f"nothing is known to be in the way of {model}; this runtime was not run here"
    return f"{read} of {number} of {model} are read, and nothing is known to be in the way of the others"
