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

# The name of each status on the page, and its style.
_WORDS: dict[Status, tuple[str, str]] = {
    "clean": ("clean", "green"),
    "findings": ("wrong", "bold red"),
    "converted": ("converted", "green"),
    "there": ("already there", "green"),
    "beyond": ("beyond the opset", "yellow"),
    "refused": ("refused", "bold red"),
    "not-verified": ("not verified", "bold yellow"),
    "equal": ("equal", "green"),
    "different": ("different", "bold red"),
    "not-run": ("not run", "bold yellow"),
    "failed": ("failed", "bold red"),
}
_MESSAGE = 300


def outcome_lines(outcome: Outcome) -> list[Block]:
    """Return one line for a model. A second line shows the first error of a model that is not as it should be, or why a
    result could not be verified.
    """
    word, style = _WORDS[outcome.status]
    parts = (outcome.model, _opset(outcome), *_counts(outcome), *_premises(outcome), _wrote(outcome))
    facts = " · ".join(filter(None, parts))
    blocks: list[Block] = [line((f"{word:<16}", style), f"  {facts}")]
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
    return line(f"{'':<16}  ", (finding.code, SEVERITY_STYLES[severity]), f" {text}{more}")


def _opset(outcome: Outcome) -> str:
    before, after = outcome.opset_before, outcome.opset_after
    if before is None:
        return ""
    return f"opset {before}" if after in (None, before) else f"opset {before} → {after}"


def _counts(outcome: Outcome) -> list[str]:
    texts = [] if outcome.splits is None else [count(outcome.splits, "split")]
    if outcome.changes and outcome.status == "converted":
        texts.append(f"{count(outcome.changes, 'node')} rewritten")
    if outcome.verdict is not None and outcome.status == "converted":
        texts.append("verified equal" if outcome.verdict == "equal" else "NOT VERIFIED")
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
    for status, (word, style) in _WORDS.items():
        if not numbers[status]:
            continue
        codes = Counter(code for outcome in outcomes if outcome.status == status for code in _codes(outcome))
        told = ", ".join(f"{code} {number:,}" for code, number in sorted(codes.items()))
        rows.append([Cell((word,), style), f"{numbers[status]:,}", told])
        if status == "converted" and (unverified := [judged for judged in outcomes if judged.is_unverified]):
            reasons = Counter(
                finding.code for judged in unverified for finding in judged.diagnostics if finding.code in UNVERIFIED
            )
            told = ", ".join(f"{code} {number:,}" for code, number in sorted(reasons.items()))
            rows.append([Cell(("not verified",), "bold yellow"), f"{len(unverified):,}", f"of those converted: {told}"])
    total = f"{verb} · {count(len(outcomes), 'model')} in {_duration(seconds)}"
    if resumed:
        total += f" · {resumed:,} of an earlier call"
    return [BLANK, line((total, "bold")), table(("", "models", "models with each code"), ("", "", ""), rows)]


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
