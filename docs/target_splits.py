"""The table of splits in the page of targets: what the judge of nodes says of each form, for each target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from splitgraph.runtimes.node_traits import FUNCTION, Kind
from splitgraph.runtimes.operators import OperatorEntry
from splitgraph.runtimes.target import Target
from splitgraph.runtimes.verdicts import Factor, MeasuredOperator, factors_text


def _factors(text: str) -> dict[str, str]:
    return dict(factor.split("=") for factor in text.split())


# A split of [2, 6, 8] along axis 1 into two parts, and a slice of such data.
_DATA = "T=float32 along=fixed before=fixed behind=fixed data=data rank=3"
_SPLIT = _factors(f"{_DATA} axis=second axis.sign=positive outputs.count=two")
_SEQUENCE = _factors(f"{_DATA} axis=second axis.sign=positive keepdims=1") | {"S": "sequence of float32"}
_SLICE = _factors(f"{_DATA} axes.count=one axes.sign=positive axes.second=yes starts.zero=yes ends.positive=yes")
_GIVEN = _factors("bounds=inputs starts=init ends=init axes=init steps=absent Tind=int64")
# The forms: the operator version, and what is different from the split above.
FORMS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "Split-2 without lengths": ("Split-2", {"split": "absent"}),
    "Split-2 with lengths as an attribute": ("Split-2", {"split": "unequal"}),
    "Split-11 with equal lengths as an attribute": ("Split-11", {"split": "equal"}),
    "Split-13 without lengths": ("Split-13", {"split": "absent"}),
    "Split-13 with lengths as an initializer": ("Split-13", {"split": "init"}),
    "Split-13 with lengths in a Constant node": ("Split-13", {"split": "node"}),
    "Split-13 with lengths computed from constants": ("Split-13", {"split": "folded"}),
    "Split-13 with lengths computed from fixed sizes": ("Split-13", {"split": "sized"}),
    "Split-13 with lengths computed from open sizes": ("Split-13", {"split": "shape", "along": "open"}),
    "Split-13 with lengths as an input of the model": ("Split-13", {"split": "input"}),
    "Split-18 with lengths as an initializer": ("Split-18", {"split": "init"}),
    "Split-18 with num_outputs that divides the dimension": ("Split-18", {"split": "absent", "parts": "equal"}),
    "Split-18 with num_outputs that does not, and three parts": (
        "Split-18",
        {"split": "absent", "parts": "uneven", "outputs.count": "more"},
    ),
    "Split-18 with num_outputs and a dynamic dimension": (
        "Split-18",
        {"split": "absent", "parts": "open", "along": "open", "outputs.count": "more"},
    ),
    "Split-18 with num_outputs that leaves nothing for the last part": (
        "Split-18",
        {"split": "absent", "parts": "overrun", "outputs.count": "more"},
    ),
    "Split-13 with the axis left out": ("Split-13", {"split": "absent", "axis": "first", "axis.sign": "unwritten"}),
    "Split-13 with an axis that counts from the end": ("Split-13", {"split": "init", "axis.sign": "negative"}),
    "Split-13 with a part of length 0": (
        "Split-13",
        {"split": "init", "parts.empty": "yes", "outputs.count": "more"},
    ),
    "Split-13 with an output that nothing reads": (
        "Split-13",
        {"split": "init", "outputs.unused": "yes", "outputs.count": "more"},
    ),
    "Split-13 with an output without a name": (
        "Split-13",
        {"split": "init", "outputs.absent": "yes", "outputs.count": "more"},
    ),
    "Split-13 of a list, whose parts are outputs": ("Split-13", {"split": "init", "rank": "1 returned", "axis": ""}),
    "Split-13 of float16": ("Split-13", {"split": "init", "T": "float16"}),
    "Split-13 of int64": ("Split-13", {"split": "init", "T": "int64"}),
    "Split-13 of bool": ("Split-13", {"split": "init", "T": "bool"}),
    "Split-13 of strings": ("Split-13", {"split": "init", "T": "string"}),
    "SplitToSequence with a list of lengths": ("SplitToSequence-11", {"split": "init", "rank.1": "1", "I": "int64"}),
    "SplitToSequence with the size of a part": (
        "SplitToSequence-11",
        {"split": "init", "rank.1": "0", "I": "int64", "parts": "equal"},
    ),
    "SplitToSequence into parts of length 1": ("SplitToSequence-11", {"split": "absent", "parts": "equal"}),
    "Slice-1": ("Slice-1", {"bounds": "attributes", "axes": "attribute"}),
    "Slice-13 with bounds as initializers": ("Slice-13", _GIVEN),
    "Slice-13 with an end of INT64_MAX": ("Slice-13", {**_GIVEN, "ends.positive": "", "ends.open": "yes"}),
    "calls of local functions": (FUNCTION, {"function": "other"}),
}
_MARKS = {"reads": ".", "refuses": "r", "wrong": "W", "some": "?", "unmeasured": " "}
# Operators whose notes are told.
_TOLD = ("Split", "SplitToSequence", "Slice", "Gather")


def split_matrix(known: Mapping[str, Target]) -> Iterator[str]:
    """A table with a row for each target and a column for each form: the columns have numbers, and a list below."""
    yield "| | " + " | ".join(str(number) for number in range(1, len(FORMS) + 1)) + " |"
    yield "|---|" + "---|" * len(FORMS)
    for target in known.values():
        yield f"| {target.label} | " + " | ".join(_mark(target, *form) for form in FORMS.values()) + " |"
    yield ""
    yield "\n".join(f"{number}. {title}" for number, title in enumerate(FORMS, 1))
    yield ""


def kind_of(label: str, changed: Mapping[str, str]) -> Kind:
    """The factors of a form."""
    bases = {"Split": _SPLIT, "SplitToSequence": _SEQUENCE, "Slice": _SLICE}
    factors = {**bases.get(label.rpartition("-")[0], {}), **changed}
    return tuple(sorted((key, value) for key, value in factors.items() if value))


def _mark(target: Target, label: str, changed: Mapping[str, str]) -> str:
    judged = target.judge(label, frozenset(), kind_of(label, changed))
    return "X" if judged.dies else _MARKS[judged.verdict]


def split_notes(known: Mapping[str, Target]) -> Iterator[str]:
    """What is known more of factors that targets do not read, in words."""
    for target in known.values():
        lines: dict[str, None] = {}
        for label, entry in target.operators.entries.items():
            operator = label.rpartition("-")[0]
            if operator in _TOLD:
                lines.update(
                    (f"{operator} with {factors_text([factor])}: {text}", None) for factor, text in _noted(entry)
                )
        if lines:
            yield f"- **{target.label}.** {'; '.join(lines)}."
    yield ""


def _noted(entry: OperatorEntry | MeasuredOperator) -> Iterator[tuple[Factor, str]]:
    """The notes on factors that are to blame."""
    if isinstance(entry, MeasuredOperator):
        blamed = entry.blamed.keys() | {factor for factors in entry.together for factor in factors}
        yield from ((factor, text) for factor, text in entry.notes.items() if factor in blamed)
        return
    ruled = {trait for rule in entry.rules for trait in rule.traits}
    for trait, text in entry.notes.items():
        key, _, value = trait.partition("=")
        if trait in ruled:
            yield (key, value), text
