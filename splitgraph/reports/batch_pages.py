"""The output of a command on many models: a line for each, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from splitgraph.reports.text import BLANK, SEVERITY_STYLES, Block, Cell, count, line, shortened, table

if TYPE_CHECKING:
    from splitgraph.findings.diagnostics import Diagnostic, Severity
    from splitgraph.findings.outcome import Outcome, Status, Verb

# The codes that say why a result could not be verified.
UNVERIFIED = ("SG501", "SG506")

# The style of each status, in the order of the summary.
_STYLES: dict[Status, str] = {
    "clean": "green",
    "findings": "bold red",
    "converted": "green",
    "unchanged": "green",
    "kept": "yellow",
    "refused": "bold red",
    "not-verified": "bold yellow",
    "equal": "green",
    "different": "bold red",
    "not-run": "bold yellow",
    "failed": "bold red",
}
_WIDTH = max(map(len, _STYLES))
_MESSAGE = 300
# Characters of the names of models that the summary names.
_NAMES = 100


def outcome_lines(outcome: Outcome) -> list[Block]:
    """Return one line for a model. A second line shows the first error of a model that is not as it should be, or why a
    result could not be verified.
    """
    parts = (outcome.model, _opset(outcome), *_counts(outcome), *_premises(outcome), _wrote(outcome))
    facts = " · ".join(filter(None, parts))
    blocks: list[Block] = [line((f"{outcome.status:<{_WIDTH}}", _STYLES[outcome.status]), f"  {facts}")]
    errors = [finding for finding in outcome.diagnostics if finding.severity == "error"]
    if outcome.is_unverified:
        told = [finding for finding in outcome.diagnostics if finding.code in UNVERIFIED]
        blocks += [_finding(finding, outcome, "warning") for finding in told[:1]]
    elif not outcome.ok and errors:
        first = errors[0]
        more = f" (and {count(len(errors) - 1, 'more finding')})" if len(errors) > 1 else ""
        blocks.append(_finding(first, outcome, "error", more))
    return blocks


def _finding(finding: Diagnostic, outcome: Outcome, severity: Severity, more: str = "") -> Block:
    where = "" if finding.location == outcome.model else finding.location
    text = " ".join(filter(None, (where, shortened(finding.message, _MESSAGE))))
    return line(f"{'':<{_WIDTH}}  ", (finding.code, SEVERITY_STYLES[severity]), f" {text}{more}")


def _opset(outcome: Outcome) -> str:
    before, after = outcome.opset_before, outcome.opset_after
    if before is None:
        return ""
    opset = f"opset {before}" if after in (None, before) else f"opset {before} → {after}"
    told = {"unchanged": ", as wanted", "kept": f", {_side(outcome.verb)} already"}.get(outcome.status, "")
    return f"{opset}{told}"


def _side(verb: Verb) -> str:
    """Return on which side of the wanted opset a model is that a command leaves as it is."""
    return "older" if verb == "downgrade" else "newer"


def _counts(outcome: Outcome) -> list[str]:
    texts = [] if outcome.splits is None else [count(outcome.splits, "split")]
    if outcome.changes and outcome.status == "converted":
        texts.append(f"{count(outcome.changes, 'node')} rewritten")
    if outcome.said is not None and outcome.status == "converted":
        texts.append(outcome.said)
    elif outcome.status == "equal" and outcome.said != "verified equal":
        texts.append(outcome.said or "")
    return texts


def _premises(outcome: Outcome) -> list[str]:
    """Return the assumptions that the caller allowed."""
    codes = sorted({finding.code for finding in outcome.accepted})
    texts = [f"accepted {count(len(outcome.accepted), 'error')} ({', '.join(codes)})"] if codes else []
    if outcome.assumed_defaults:
        texts.append(
            f"relies on the {'defaults' if outcome.assumed_defaults[1:] else 'default'} of "
            f"{shortened(', '.join(outcome.assumed_defaults), 60)}"
        )
    return texts


def _wrote(outcome: Outcome) -> str:
    if outcome.output is None:
        return ""
    names = [f"{name} ({how})" for name, how in outcome.data_files.items() if how != "needed"]
    names += [name for name, how in outcome.data_files.items() if how == "needed"]
    needs = f", which needs {shortened(', '.join(names), 120)}" if names else ""
    return f"wrote {outcome.output}{needs}"


def summary_page(verb: Verb, outcomes: Sequence[Outcome], *, seconds: float, resumed: int) -> list[Block]:
    """Return how many models ended with each status, and with each code where something is wrong."""
    numbers = Counter(outcome.status for outcome in outcomes)
    rows: list[list[str | Cell]] = []
    for status, style in _STYLES.items():
        if not numbers[status]:
            continue
        codes = Counter(code for outcome in outcomes if outcome.status == status for code in _codes(outcome))
        told = ", ".join(f"{code} {number:,}" for code, number in sorted(codes.items()))
        if status == "kept":
            told = _kept(verb, [outcome for outcome in outcomes if outcome.status == status])
        rows.append([Cell((status,), style), f"{numbers[status]:,}", told])
        if status == "converted" and (unverified := [judged for judged in outcomes if judged.is_unverified]):
            reasons = Counter(
                finding.code for judged in unverified for finding in judged.diagnostics if finding.code in UNVERIFIED
            )
            told = ", ".join(f"{code} {number:,}" for code, number in sorted(reasons.items()))
            rows.append([Cell(("not-run",), "bold yellow"), f"{len(unverified):,}", f"of those converted: {told}"])
    total = f"{verb} · {count(len(outcomes), 'model')} in {_duration(seconds)}"
    if resumed:
        total += f" · {resumed:,} of an earlier call"
    return [BLANK, line((total, "bold")), table(("", "models", "models with each code"), ("", "", ""), rows)]


def _kept(verb: Verb, outcomes: Sequence[Outcome]) -> str:
    """Return what became of models that are beyond the opset: they are copied, or left out of the results."""
    copied = sum(outcome.output is not None for outcome in outcomes)
    left = [outcome.model for outcome in outcomes if outcome.output is None]
    told = [f"{_side(verb)} than wanted"]
    if copied:
        told.append(f"{copied:,} copied as they are" if left else "copied as they are")
    if left:
        told.append(f"left as they are, without a result: {shortened(', '.join(left), _NAMES)}")
    return "; ".join(told)


def _codes(outcome: Outcome) -> set[str]:
    """Return the codes of the errors of a model that is not as it should be."""
    if outcome.ok:
        return set()
    return {finding.code for finding in outcome.diagnostics if finding.severity == "error"}


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
