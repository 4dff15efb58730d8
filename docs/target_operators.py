"""The tables of operators in the pages of targets: a matrix of all runtimes, and a page for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from splitgraph.runtimes.operators import OperatorEntry
from splitgraph.runtimes.target import Target
from splitgraph.runtimes.verdicts import RUNS, MeasuredOperator, factors_text

Entry = OperatorEntry | MeasuredOperator
Entries = Mapping[int, Entry]


def operator_matrix(known: Mapping[str, Target]) -> Iterator[str]:
    """A table with a row for each operator and a column for each target."""
    columns = {target.key: by_operator(target) for target in known.values() if target.operators.entries}
    operators = sorted({name for column in columns.values() for name in column}, key=lambda name: ("." in name, name))
    yield "| | " + " | ".join(f"[{_short(key)}](targets/{key}.md)" for key in columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for name in operators:
        cells = (_cell(column.get(name, {})) for column in columns.values())
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield ""


def _short(key: str) -> str:
    """The name of a target with the version as people say it: two numbers."""
    name, _, version = key.partition("@")
    return f"{name} {'.'.join(version.split('.')[:2])}".strip()


def by_operator(target: Target) -> dict[str, dict[int, Entry]]:
    """The entries of a target by operator and version; version 0 where documents tell none. Without imports."""
    found: dict[str, dict[int, Entry]] = defaultdict(dict)
    for label, entry in target.operators.entries.items():
        name, _, version = label.rpartition("-") if label.rpartition("-")[2].isdigit() else (label, "", "0")
        if not label.startswith("imports."):
            found[name][int(version)] = entry
    return found


def _is_read(entry: Entry) -> bool:
    return entry.runs if isinstance(entry, MeasuredOperator) else entry.documented == "reads"


def _cell(entries: Entries) -> str:
    """What a target does with an operator."""
    read = [version for version, entry in entries.items() if _is_read(entry)]
    if read:
        newest = max(read)
        entry = entries[newest]
        if not isinstance(entry, MeasuredOperator):
            return f"({newest or 'all'})"
        return f"{newest}" if entry.counts.keys() == {RUNS} else f"{newest}*"
    if not entries:
        return ""
    entry = entries[max(entries)]
    if not isinstance(entry, MeasuredOperator):
        return "-"
    answers = entry.counts.keys()
    return "X" if answers & {"X", "H"} else "W" if answers & {"W", "k"} else "r"


# The page of a runtime ------------------------------------------------------------------------------------------------


def runtime_pages(known: Mapping[str, Target]) -> dict[str, str]:
    """The page of each target with a table of operators, by its key."""
    return {target.key: "\n".join(_page(target)) for target in known.values() if target.operators.entries}


def _page(target: Target) -> Iterator[str]:
    operators = by_operator(target)
    measured = target.operators.measured
    yield f"# {target.label}: operators\n"
    source = "splitgraph/runtimes/table/operators/"
    yield f"<!-- Generated from `{source}` by `docs/make_targets.py`; do not edit by hand. -->\n"
    if measured is None:
        yield "From its documents; it was not run here.\n"
    else:
        entries = target.operators.entries.values()
        cases = sum(entry.counts.total() for entry in entries if isinstance(entry, MeasuredOperator))
        yield f"Measured {measured}: {target.how}. {cases:,} cases. [All runtimes](../targets.md)\n"
    yield "| operator | newest read | cases read, by version, newest first | what is not read |\n|---|---|---|---|"
    for name, entries in sorted(operators.items(), key=lambda item: ("." in item[0], item[0])):
        versions = sorted(entries, reverse=True)
        shares = ", ".join(_share(version, entries[version]) for version in versions)
        told = "; ".join(dict.fromkeys(text for version in versions for text in _not_read(entries[version])))
        yield f"| {name} | {_cell(entries)} | {shares} | {_escaped(told)} |"
    yield ""
    imports = sorted(
        label.removeprefix("imports.") for label, entry in target.operators.entries.items()
        if label.startswith("imports.") and not _is_read(entry)
    )  # fmt: skip
    if imports:
        yield f"A model is refused for importing one of these, even if nothing uses it: {', '.join(imports)}.\n"


def _share(version: int, entry: Entry) -> str:
    if not isinstance(entry, MeasuredOperator):
        return "documented"
    return f"{version}: {entry.counts[RUNS]}/{entry.counts.total()}"


def _not_read(entry: Entry) -> Iterable[str]:
    """What is to blame for the cases that are not read; the runtime's words where the base is not."""
    if not isinstance(entry, MeasuredOperator):
        if entry.documented != "reads":
            return [entry.said] if entry.said else []
        return [f"{' and '.join(sorted(rule.traits))} ({rule.answer})" for rule in entry.rules]
    if not entry.runs:
        return [entry.said] if entry.said else []
    alone = [factors_text([factor]) for factor in sorted(entry.blamed)]
    return [*alone, *(factors_text(sorted(factors)) for factors in sorted(entry.together, key=sorted))]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
