"""The page that each command prints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from splitgraph.findings.codes import CodeInfo
from splitgraph.findings.diagnostics import LONGEST_TEXT, Diagnostic, abridged, findings_phrase
from splitgraph.reports.text import (
    BLANK,
    SEVERITY_STYLES,
    Block,
    Cell,
    Line,
    count,
    dim_text,
    engine_of,
    line,
    opset_text,
    parts_text,
    regions_text,
    shortened,
    table,
    verification_phrase,
)

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Change, Rewrite
    from splitgraph.dim import Obligation
    from splitgraph.formats import DataFile
    from splitgraph.inference.analysis import Analysis, Completeness, SplitReport
    from splitgraph.inference.why import Step
    from splitgraph.model.value_type import ValueType
    from splitgraph.verification.verification import Verification

VERDICT_STYLES = {"equal": "bold green", "different": "bold red", "not-run": "bold yellow"}

# Inputs, and outputs, that are shown without --all.
MOST_VALUES = 8
# Operators that are named without --all.
MOST_OPERATORS = 6
# Characters of a note under a verdict: what an engine has to say comes after what it was doing.
_NOTE = 200
# "Split-13", "org.splitgraph.VariadicSplit_3-1": what a change calls a node of the split family.
_SPLIT_FAMILY = re.compile(r"(.*\.)?(Split|SplitToSequence|StringSplit|VariadicSplit(_\d+)?)(-\d+)?")


def analysis_page(
    analysis: Analysis, model_name: str, *, with_values: bool = False, brief: bool = False
) -> list[Block]:
    """Return what `infer` prints: the model with its inputs and outputs, its splits, what they require, how complete
    the types are, and the findings. with_values: all inputs and outputs, the operators, and the type of every value.
    """
    completeness = analysis.completeness
    graphs = f" in {count(completeness.graphs, 'graph')}" if completeness.graphs > 1 else ""
    nodes = f"{count(completeness.nodes, 'node')}{graphs}"
    header = (opset_text(analysis.opset), nodes, count(len(analysis.splits), "split"))
    blocks: list[Block] = [line((model_name, "bold"), *(f" · {part}" for part in header)), BLANK]
    if analysis.inputs or analysis.outputs:
        blocks += [_interface(analysis, with_values), BLANK]
    blocks += _size(analysis)
    if analysis.splits:
        blocks += [_splits_table(analysis.splits, brief), BLANK]
    blocks += _obligations(analysis, with_values, brief)
    if with_values:
        blocks += [*_operators(analysis.operators), *_values(analysis)]
    blocks.append(_summary(completeness, analysis.diagnostics, analysis.accepted))
    if analysis.diagnostics:
        blocks += [BLANK, findings_table(analysis.diagnostics)]
    return [*blocks, *([BLANK] if analysis.accepted else []), *accepted_findings(analysis.accepted)]


def why_page(model_name: str, steps: Sequence[Step]) -> list[Block]:
    """Return what `infer --why` prints: a line for each value that the dimensions of the first one depend on."""
    rows = []
    for step in steps:
        given = {"input": "input", "constant": "constant", "body": f"input of {step.operator}"}.get(
            step.source, step.operator
        )
        elements = f" = {', '.join(map(dim_text, step.elements))}" if step.elements else ""
        enters = f"{', '.join(step.enters)} enters here: {step.reason}" if step.enters else ""
        told = "; ".join(filter(None, (", ".join(map(abridged, step.reads)), enters)))
        value = step.value if step.graph == "main" else f"{_node(step.graph)}/{step.value}"
        rows.append((abridged(value), f"{_type(step.type)}{elements}", given, _node(step.location), told))
    headings = ("value", "type", "operator", "node", "depends on")
    return [
        line((model_name, "bold"), f" · the dimensions of {abridged(steps[0].value)}"),
        BLANK,
        table(headings, ("bold", "green", "cyan", "", ""), rows, is_prose=True),
    ]


def rewrite_findings(rewrite: Rewrite) -> list[Block]:
    """Return the findings of a rewrite, and the errors that the user accepts; empty where there are none."""
    blocks = [findings_table(rewrite.diagnostics)] if rewrite.diagnostics else []
    return [*blocks, *accepted_findings(rewrite.accepted)]


def accepted_findings(accepted: Sequence[Diagnostic]) -> list[Block]:
    """Return the errors that the user accepts, marked as such; nothing where there are none."""
    if not accepted:
        return []
    label = Cell(("accepted",), "dim")
    rows: list[list[str | Cell]] = [[label, d.code, abridged(d.location), d.message] for d in accepted]
    return [table(("",) * 4, ("", "bold", "", ""), rows, is_prose=True)]


def findings_table(diagnostics: Sequence[Diagnostic]) -> Block:
    """Return the findings, each with its help beneath; the severity is shown unless all are errors."""
    rows: list[list[str | Cell]] = [
        [d.code, abridged(d.location), Cell((d.message, d.help) if d.help else (d.message,))] for d in diagnostics
    ]
    if all(d.severity == "error" for d in diagnostics):
        return table(("", "", ""), ("bold", "", ""), rows, is_prose=True)
    severities = [Cell((d.severity,), SEVERITY_STYLES[d.severity]) for d in diagnostics]
    severe = [[s, *row] for s, row in zip(severities, rows, strict=True)]
    return table(("",) * 4, ("", "bold", "", ""), severe, is_prose=True)


def rewrite_page(
    rewrite: Rewrite,
    *,
    output: str,
    to_form: str | None = None,
    is_dry: bool = False,
    ir_versions: tuple[int, int] | None = None,
    node_counts: tuple[int, int] | None = None,
) -> list[Block]:
    """Return what a rewriting command prints when it is done.

    to_form: the form that `convert` was asked for. is_dry: nothing was written. ir_versions, node_counts: before and
    after, where nothing else was asked for than another version, or to fold.
    """
    # Imported here: other pages are printed without protobuf.
    from splitgraph.model.scopes import VERSIONED_DOMAINS

    before, after = rewrite.from_opset, rewrite.to_opset
    opset = opset_text({"": after[""]} if "" in after else after)
    ways = [
        f"{domain or 'opset'} {before[domain]} → {after[domain]}"
        for domain in VERSIONED_DOMAINS
        if domain in before and domain in after and before[domain] != after[domain]
    ]
    if ways:
        opset = ", ".join(ways)
    verification = rewrite.verification
    checked = "not verified" if verification is None else verification_phrase(verification, rewrite.ran)
    verdict_style = "" if verification is None else VERDICT_STYLES[verification.verdict]
    changes = changes_phrase(rewrite.changes, to_form)
    if ir_versions is not None:
        changes = f"IR version {ir_versions[0]} → {ir_versions[1]}"
    if node_counts is not None:
        changes = f"{node_counts[0]:,} → {count(node_counts[1], 'node')}"
    summary = line((opset, "bold"), f" · {changes} · ", (checked, verdict_style))
    notes = [] if verification is None else verification_notes(verification)
    if rewrite.ran is not None and rewrite.ran.answer != "equal":
        notes = [*notes, line(f"  {rewrite.ran.told}")]
    return [summary, *notes, line("would write " if is_dry else "wrote ", (output, "bold"))]


# The phrase for a written model with each kind of data file.
_DATA_FILES = {
    "needed": "needs the data file of the original, ",
    "copied": "copied the data file that it needs, ",
    "linked": "linked the data file that it needs, ",
    "written": "wrote its weights to ",
}
_MOST_DATA_FILES = 3


def data_lines(data_files: Sequence[DataFile]) -> list[Block]:
    """Return a line for each kind of data file that a written model depends on."""
    blocks: list[Block] = []
    for how, phrase in _DATA_FILES.items():
        names = [str(data_file.path) for data_file in data_files if data_file.how == how]
        if names:
            more = f" and {len(names) - _MOST_DATA_FILES:,} more" if len(names) > _MOST_DATA_FILES else ""
            blocks.append(line(phrase, (", ".join(map(abridged, names[:_MOST_DATA_FILES])), "bold"), more))
    return blocks


def changes_phrase(changes: Sequence[Change], to_form: str | None = None) -> str:
    """Return how many nodes were rewritten: "24 splits and 61 other nodes rewritten"."""
    if not changes:
        return "no node rewritten"
    splits = sum(_SPLIT_FAMILY.fullmatch(change.before) is not None for change in changes)
    others = len(changes) - splits
    verb = "rewritten" if to_form is None else f"rewritten as {to_form}"
    if not others:
        return f"{count(splits, 'split')} {verb}"
    if not splits:
        return f"{count(others, 'node')} {verb}"
    return f"{count(splits, 'split')} and {count(others, 'other node')} {verb}"


def verification_notes(verification: Verification) -> list[Line]:
    """Return short lines: which engines did not decide, and what else limits a verdict. Without a run there are none,
    because the findings say why. Warnings are findings, too.
    """
    if verification.verdict == "not-run":
        return []
    first = verification.first_difference
    texts = [
        f"not decided by {finding.message}"
        if finding.severity == "warning"
        else finding.message.removeprefix(verification.said).removeprefix("; ")
        for finding in verification.diagnostics
        if finding not in verification.warnings and (first is None or first.reason not in finding.message)
    ]
    checked = [regions_text(verification.regions)] if verification.regions else []
    return [line("  ", (shortened(text, _NOTE), "dim")) for text in (*checked, *texts) if text]


def verification_page(verification: Verification) -> list[Block]:
    """Return what `verify` prints."""
    said = verification.said.removeprefix("verified ") if verification.verdict == "equal" else verification.verdict
    spans: list[str | tuple[str, str]] = [(said, VERDICT_STYLES[verification.verdict])]
    if verification.cases:
        spans.append(f" · {count(verification.cases, 'input')} · {engine_of(verification)}")
    blocks: list[Block] = [line(*spans)]
    blocks += [Line((("  " + text, ""),)) for text in _measured(verification)]
    blocks += verification_notes(verification)
    findings = verification.diagnostics if verification.verdict == "not-run" else verification.warnings
    return [*blocks, BLANK, findings_table(findings)] if findings else blocks


def blockers_page(headline: str, diagnostics: Sequence[Diagnostic]) -> list[Block]:
    """Return why nothing was rewritten: a line, every blocker, and that nothing was written."""
    number = count(sum(d.severity == "error" for d in diagnostics), "blocker")
    return [line(f"{headline}: {number}"), BLANK, findings_table(diagnostics), BLANK, line("Nothing was written.")]


def code_page(code: str, info: CodeInfo, accepted: str = "") -> list[Block]:
    """Return what `explain` prints of one code. accepted: what an acceptance of its findings means."""
    told = [line(f"Can be accepted with --accept. {accepted}")] if accepted else []
    return [line((code, "bold"), f"  {info.title}"), BLANK, line(info.meaning), line(info.help), *told]


def codes_page(codes: Mapping[str, CodeInfo]) -> list[Block]:
    """Return what `explain` prints without a code: all of them."""
    return [table(("code", "title"), ("bold", ""), [(code, info.title) for code, info in codes.items()], is_prose=True)]


def _interface(analysis: Analysis, with_all: bool) -> Block:
    """Return the inputs and outputs with their types; of a long list the first ones."""
    rows: list[tuple[str, str, str]] = []
    for kind, values in (("input", analysis.inputs), ("output", analysis.outputs)):
        most = len(values) if with_all or len(values) <= MOST_VALUES + 1 else MOST_VALUES
        rows += [(kind, abridged(name), _type(value)) for name, value in islice(values.items(), most)]
        if most < len(values):
            rows.append(("", f"and {len(values) - most:,} more", "--all shows them"))
    return table(("", "", ""), ("", "bold", "green"), rows)


def _size(analysis: Analysis) -> list[Block]:
    """Return what the model holds and computes: its operators, parameters, and multiply-adds; nothing of an IR."""
    costs = analysis.costs
    if costs is None or analysis.completeness.nodes < 2:
        return []
    counted = sorted(analysis.operators.items(), key=lambda entry: (-entry[1], entry[0]))
    named = ", ".join(f"{abridged(operator)} {number:,}" for operator, number in counted[:MOST_OPERATORS])
    rest = len(counted) - MOST_OPERATORS
    more = f" and {count(rest, 'other')}" if rest > 0 else ""
    rows = [("operators", f"{named}{more}")]
    if costs.parameters:
        rows.append(("parameters", f"{costs.parameters:,} in {_bytes_text(costs.bytes)}"))
    if costs.multiply_adds != 0 or costs.not_counted:
        left_out = f", without {count(costs.not_counted, 'node')} of unknown size" if costs.not_counted else ""
        amount = f"{costs.multiply_adds:,}" if isinstance(costs.multiply_adds, int) else str(costs.multiply_adds)
        rows.append(("multiply-adds", f"{abridged(amount)}{left_out}"))
    return [table(("", ""), ("", "green"), rows), BLANK]


def _bytes_text(number: int) -> str:
    """Return a number of bytes as people say it: "71.2 kB"."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:,.1f} {unit}"
    return count(number, "byte")


def _operators(numbers: Mapping[str, int]) -> list[Block]:
    """Return how many nodes there are of each operator, those with most nodes first."""
    if not numbers:
        return []
    counted = sorted(numbers.items(), key=lambda entry: (-entry[1], entry[0]))
    rows = [(abridged(operator), f"{number:,}") for operator, number in counted]
    return [table(("operator", "nodes"), ("cyan", ""), rows), BLANK]


def _splits_table(splits: Sequence[SplitReport], brief: bool) -> Block:
    return table(
        ("node", "operator", "axis", "input", "parts"),
        ("bold", "cyan", "", "", "green"),
        [
            (_node_name(split), _operator(split), _axis(split), _type(split.input), split_parts(split, brief=brief))
            for split in splits
        ],
    )


def split_parts(split: SplitReport, *, brief: bool = False) -> str:
    """Return the parts of a split: its lengths along the axis; the outputs' types where it has none."""
    if split.op == "StringSplit":
        return " | ".join(str(value) for _, value in split.outputs)
    if split.op == "SplitToSequence":
        return f"sequence of {parts_text(split.lengths or [None], brief=brief)}"
    return parts_text(split.lengths or [None] * len(split.outputs), brief=brief)


def _node_name(split: SplitReport) -> str:
    # The main graph goes without saying; a subgraph, function or call does not.
    return _node(split.location) or abridged(split.name)


def _node(location: str) -> str:
    return abridged(location.removeprefix("main/"))


def _type(value: ValueType) -> str:
    return abridged(str(value), LONGEST_TEXT)


def _operator(split: SplitReport) -> str:
    name = f"{split.op}-{split.since_version}"
    return name if split.domain == "" else f"{split.domain}.{name}"


def _axis(split: SplitReport) -> str:
    # A string is split along no axis of its tensor; elsewhere an axis that is not known is a question.
    return ("–" if split.op == "StringSplit" else "?") if split.axis is None else str(split.axis)


def _obligations(analysis: Analysis, with_values: bool, brief: bool) -> list[Block]:
    """Return what must hold of the symbols, of generated ones only where a split requires it or every value is
    shown; what a generated symbol of an input, an output or a split stands for; and beneath, what is assumed of them.
    """
    of_splits = {text for split in analysis.splits for text in split.obligations}
    shown = _shown_symbols(analysis) & analysis.generated
    rows = [
        (abridged(f"requires {obligation}{_where(obligation)}", LONGEST_TEXT), _who(list(map(_node, locations)), brief))
        for obligation, locations in analysis.required_by.items()
        if with_values or analysis.generated.isdisjoint(obligation.symbols) or str(obligation) in of_splits
    ]
    rows += [
        (abridged(f"with {obligation}", LONGEST_TEXT), "")
        for obligation, locations in analysis.required_by.items()
        if not with_values and not locations and str(obligation.lhs) in shown
    ]
    rows += [
        (
            abridged(f"assumes {_upper_limit(assumption)}", LONGEST_TEXT),
            f"otherwise {_node(location)} broadcasts an empty dimension",
        )
        for assumption, location in analysis.assumed_by.items()
    ]
    if not rows:
        return []
    return [table(("", ""), ("yellow", "dim"), rows), BLANK]


def _shown_symbols(analysis: Analysis) -> set[str]:
    """Return the symbols of the dimensions that the page shows of inputs, outputs and splits."""
    values = [*analysis.inputs.values(), *analysis.outputs.values(), *(split.input for split in analysis.splits)]
    dims = [dim for value in values for dim in value.shape or ()]
    dims += [length for split in analysis.splits for length in split.lengths]
    return {name for dim in dims if not isinstance(dim, int | None) for name in dim.symbols}


def _where(required: Obligation) -> str:
    """Return in which runs something must hold; "" for all runs."""
    return f" where {' or '.join(map(_node, required.branches))} runs" if required.branches else ""


def _upper_limit(assumption: Obligation) -> str:
    """Return a relation with a number on its left as people say it: `1023 >= P` is `P < 1024`."""
    limit, _, rest = str(assumption).partition(" >= ")
    return f"{rest} < {int(limit) + 1}" if limit.isdecimal() else str(assumption)


def _who(nodes: Sequence[str], brief: bool) -> str:
    if brief and len(nodes) > 2:
        return f"{nodes[0]} and {len(nodes) - 1:,} more"
    return ", ".join(nodes)


def _values(analysis: Analysis) -> list[Block]:
    blocks: list[Block] = []
    for location, types in (analysis.graphs or {"main": analysis.types}).items():
        rows = [(abridged(name), _type(value)) for name, value in types.items()]
        blocks += [table((f"value of {abridged(location)}", "type"), ("bold", "green"), rows), BLANK]
    bounded = [(name, bounds) for name, bounds in analysis.symbols.items() if bounds != (0, None)]
    if not bounded:
        return blocks
    ranges = [
        (abridged(name), str(low), dim_text(high) if high is not None else "any") for name, (low, high) in bounded
    ]
    return [*blocks, table(("symbol", "at least", "at most"), ("bold", "", ""), ranges), BLANK]


def _summary(completeness: Completeness, diagnostics: Sequence[Diagnostic], accepted: Sequence[Diagnostic]) -> Line:
    symbolic = f", {completeness.symbolic:,} symbolic" if completeness.symbolic else ""
    sentences = [f"{completeness.known:,} of {count(completeness.dims, 'dimension')} known{symbolic}."]
    if completeness.unknown_rank:
        sentences.append(f"{count(completeness.unknown_rank, 'value')} of unknown rank.")
    if (origin := completeness.first_unknown) is not None:
        of = f" of {_node(origin.location)}" if f"main/{origin.value}" != origin.location else ""
        sentences.append(f"The first unknown is {abridged(origin.value)}{of} ({origin.reason}).")
    if completeness.unknown_operators:
        names = ", ".join(map(abridged, completeness.unknown_operators))
        open_values = f", which leave {count(completeness.left_open, 'value')} open" if completeness.left_open else ""
        sentences.append(f"Unknown operators: {names}{open_values}.")
    if accepted:
        sentences.append(f"{count(len(accepted), 'error')} accepted.")
    text = " ".join(sentences) + " "
    if not diagnostics:
        return line(text, ("No findings.", "green"))
    return line(text, (f"{findings_phrase(diagnostics)}.", _worst_style(diagnostics)))


def _worst_style(diagnostics: Iterable[Diagnostic]) -> str:
    severities = {d.severity for d in diagnostics}
    return next(style for severity, style in SEVERITY_STYLES.items() if severity in severities)


def _measured(verification: Verification) -> list[str]:
    texts: list[str] = []
    if verification.first_difference is not None:
        first = verification.first_difference
        case = "" if first.case is None else f"input {first.case + 1}"
        where = ", ".join(filter(None, (abridged(first.name), case)))
        texts.append(": ".join(filter(None, ("first difference", where, first.reason))))
    if verification.first_node is not None:
        texts.append(f"first node: {verification.first_node.told}")
    if verification.max_abs_diff is not None:
        # Nothing is relative to a difference of 0.
        relative = f", relative {verification.max_rel_diff:.3g}" if verification.max_rel_diff else ""
        texts.append(f"largest difference: {verification.max_abs_diff:.3g}{relative}")
    if verification.proofs:
        texts.append(f"{count(len(verification.proofs), 'split')} proved equal for every dimension value")
    return texts
