"""What `splitgraph check --all-targets` prints: what runs, what a conversion makes run, and what is in the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.reports.text import Block, line, table
from splitgraph.runtimes.advice import NO_OTHER_FORM, Converted, convert_command, run_command
from splitgraph.runtimes.check import NodeAnswers, TargetCheck
from splitgraph.runtimes.runners.interpreters import KINDS

_MOST_NAMED = 3
_NAME = "NAME"
# Groups in the order in which they are printed.
_RUNS, _RUNS_AFTER, _OPEN, _OPEN_WITHOUT_RUNNER, _OPEN_AFTER, _DOES_NOT = range(6)
_STYLES = ("green", "green", "yellow", "yellow", "yellow", "bold red")


def all_targets(model: str, checks: Iterable[TargetCheck], converted: Mapping[str, Converted]) -> list[Block]:
    """Return a group of rows for each thing that may be said of a model: a title, with the command that helps, and the
    targets. Targets of which the same is said have one row.
    """
    groups: dict[int, dict[str, list[str]]] = {}
    for check in checks:
        after = converted[check.target.key]
        group = _group(check, after)
        groups.setdefault(group, {}).setdefault(_reason(check, after), []).append(check.target.key)
    blocks: list[Block] = []
    for group in sorted(groups):
        text, command = _title(group, model)
        blocks.append(line((f"{text}  " if command else text, _STYLES[group]), (command, "bold")))
        rows = [(", ".join(keys), said) for said, keys in groups[group].items()]
        blocks.append(table(("", ""), ("bold", ""), rows, is_prose=True))
    return blocks


def _group(check: TargetCheck, after: Converted) -> int:
    if check.runs:
        return _RUNS
    if after.runs:
        return _RUNS_AFTER
    if check.runs is None:
        return _OPEN if _has_runner(check) else _OPEN_WITHOUT_RUNNER
    return _OPEN_AFTER if after.runs is None else _DOES_NOT


def _has_runner(check: TargetCheck) -> bool:
    """Return True if somebody can run the model with `--run`."""
    return check.target.name in KINDS


def _title(group: int, model: str) -> tuple[str, str]:
    """Return what is said of the targets of a group, and the command that helps, "" for none."""
    convert = convert_command(model, _NAME)
    return {
        _RUNS: ("runs", ""),
        _RUNS_AFTER: ("runs after", convert),
        _OPEN: ("not known; to find out:", run_command(model, _NAME)),
        _OPEN_WITHOUT_RUNNER: ("not known, and no runner here: run the model in the runtime itself", ""),
        _OPEN_AFTER: ("does not run; nothing known is in the way after", convert),
        _DOES_NOT: ("does not run, and convert knows no other form", ""),
    }[group]


def _reason(check: TargetCheck, after: Converted) -> str:
    """Return what is in the way of a model, after the conversion if it is refused, or what is not known; "" for what
    runs.
    """
    if check.runs:
        return ""
    if check.runs is False and after.runs is False:
        return _first(after.findings)
    if check.runs is False:
        return _operators(check.nodes, ("refuses", "wrong")) or _first(check.findings)
    if not check.target.measured and check.nodes.counts["reads"] == len(check.nodes):
        return "its documents name no operator that it does not read"
    return _operators(check.nodes, ("some", "unmeasured"))


def _first(findings: Sequence[Diagnostic]) -> str:
    errors = [finding for finding in findings if finding.severity == "error"]
    more = f"; {len(errors) - 1} more" if len(errors) > 1 else ""
    # The title of the group says that there is no other form.
    return f"{errors[0].message.removesuffix(f'; {NO_OTHER_FORM}')}{more}" if errors else ""


def _operators(nodes: NodeAnswers, answers: Sequence[str]) -> str:
    """Return the operators with one of these answers; "wrong" is said of those that are."""
    found = nodes.by_operator()
    named = sorted({(answers.index(answer), operator) for operator, answer in found if answer in answers})
    texts = [f"{operator} (wrong)" if answers[rank] == "wrong" else operator for rank, operator in named]
    # Without their number, more runtimes have the same row.
    others = " and others" if len(texts) > _MOST_NAMED else ""
    return ", ".join(texts[:_MOST_NAMED]) + others
