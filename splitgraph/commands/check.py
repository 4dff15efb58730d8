"""`splitgraph check`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext

from splitgraph.checks import Converted
from splitgraph.commands.many import run_models
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.findings.exit_codes import CLEAN
from splitgraph.options import Leeway, Shown
from splitgraph.reports.pages import accepted_findings, findings_phrase, findings_table
from splitgraph.reports.printing import print_document, print_result, working
from splitgraph.reports.text import BLANK, Block, Cell, count, line, opset_text, table
from splitgraph.runtimes.check import NodeAnswers, TargetCheck
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
        from splitgraph.reports.documents import targets_json

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
    model = str(task.model)
    with working("running the model") if task.run else nullcontext():
        checked = check_file(task)
    walked = checked.examined.walked
    if shown.as_json:
        from splitgraph.reports.documents import check_json

        document = check_json(
            model, dict(walked.opset), checked.checks, checked.converted(task.leeway), walked.accepted
        )
        print_document(document)
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
    if checked.compares_all:
        opset = f"opset {examined.opset}" if examined.ir is None else opset_text(examined.walked.opset)
        title = f" · {opset} · {count(len(examined.nodes), 'node')}"
        return [line((model, "bold"), title), _table(checked.checks, checked.converted(leeway))]
    blocks: list[Block] = []
    for check in checked.checks:
        label = check.target.label if check.ran is None or check.ran.version is None else check.ran.label
        blocks.append(line((label, "bold"), f" · {_verdict(check, model)}"))
        blocks += [findings_table(check.findings)] if check.findings else []
        # Of the layers of an IR, conversion rewrites splits only, as their help says.
        if check.has_errors and (
            examined.ir is None or any("splitgraph convert" in each.help for each in check.findings)
        ):
            label = "runs after" if check.runs_folded else "try"
            blocks.append(line(f"{label}  ", (f"splitgraph convert {model} --target {check.target.key}", "bold")))
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


# All targets ----------------------------------------------------------------------------------------------------------

_RUNS: Mapping[bool | None, tuple[str, str]] = {
    True: ("runs", "green"),
    False: ("does not", "bold red"),
    None: ("not known", "yellow"),
}
_MOST_NAMED = 3


def _table(checks: Iterable[TargetCheck], converted: Mapping[str, Converted]) -> Block:
    """Return a table with one row for each target: whether it runs the model, and what is in the way."""
    rows: list[list[str | Cell]] = []
    # What runs comes first, then what runs after a conversion.
    for check in sorted(checks, key=lambda check: _rank(check, converted[check.target.key])):
        after = converted[check.target.key]
        rows.append([check.target.key, _shown(check.runs), _shown(after.runs), _in_the_way(check, after)])
    headings = ("--target", "as it is", "after convert", "what is in the way")
    return table(headings, ("bold", "", "", ""), rows, is_prose=True)


def _rank(check: TargetCheck, after: Converted) -> tuple[int, int]:
    order = (True, None, False)
    return order.index(after.runs), order.index(check.runs)


def _shown(runs: bool | None) -> Cell:
    text, style = _RUNS[runs]
    return Cell((text,), style)


def _in_the_way(check: TargetCheck, after: Converted) -> str:
    """Return what is in the way after the conversion, or what is not known; else what was in the way of the model as it
    is.
    """
    if after.runs is False:
        return _first(after.findings)
    if check.runs is False:
        return _operators(check.nodes, ("refuses", "wrong")) or _first(check.findings)
    return _operators(check.nodes, ("some", "unmeasured"))


def _first(findings: Sequence[Diagnostic]) -> str:
    errors = [finding for finding in findings if finding.severity == "error"]
    more = f"; {len(errors) - 1} more" if len(errors) > 1 else ""
    return f"{errors[0].message}{more}" if errors else ""


def _operators(nodes: NodeAnswers, answers: Sequence[str]) -> str:
    """Return the operators with one of these answers."""
    found = nodes.by_operator()
    counts = {(answers.index(answer), operator) for operator, answer in found if answer in answers}
    named = [
        f"{operator} ({'not known' if answers[0] == 'some' else answers[rank]})" for rank, operator in sorted(counts)
    ]
    more = f", {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return ", ".join(named[:_MOST_NAMED]) + more
