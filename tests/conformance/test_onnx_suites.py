"""onnx's own tests of shape inference and of its version converter: how often splitgraph agrees, and why not."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from .onnx_suites import judge, records
from .onnx_suites_disagreements import DISAGREEMENTS, GROUPS

PAGE = Path(__file__).parent.parent.parent / "docs" / "conformance.md"


@cache
def outcomes() -> tuple[Counter[tuple[str, str]], dict[tuple[str, str], str]]:
    """How often each outcome came, of inference and of conversion; and each disagreement with what differs."""
    counted: Counter[tuple[str, str]] = Counter()
    found: dict[tuple[str, str], str] = {}
    for record in records():
        outcome, detail = judge(record)
        counted["inference" if record.target is None else "conversion", outcome] += 1
        if outcome != "agree":
            found.setdefault((record.test, outcome), detail)
    return counted, found


@pytest.mark.slow
def test_every_disagreement_has_a_reason() -> None:
    _, found = outcomes()
    assert {key: detail for key, detail in found.items() if key not in DISAGREEMENTS} == {}
    assert [key for key in DISAGREEMENTS if key not in found] == [], "these agree now: take them from the list"


def test_nowhere_is_onnx_right_and_splitgraph_wrong() -> None:
    assert [group for group in GROUPS if group.right == "onnx"] == []


def test_enough_is_compared() -> None:
    counted, _ = outcomes()
    agreed = {kind: counted[kind, "agree"] for kind in ("inference", "conversion")}
    assert agreed["inference"] > 1_550
    assert agreed["conversion"] > 390
    assert not any(outcome == "invalid" for _, outcome in counted)


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write tests.conformance.test_onnx_suites.page() to it"


def page() -> str:
    """The page of the comparison."""
    counted, _ = outcomes()
    lines = [
        "# Compared with onnx's own tests",
        "",
        "onnx's tests of shape inference, data propagation and its version converter, recorded from the source",
        "package of onnx 1.23.2 (`tests/campaigns/record_onnx_suites.py`): each call of a test, and onnx's answer.",
        "splitgraph agrees if it infers the same types or more dimensions, if both convert and the checker accepts",
        "the result, or if both refuse.",
        "",
        "| | inference | conversion |",
        "|---|---|---|",
    ]
    for outcome, words in _WORDS.items():
        lines.append(f"| {words} | {counted['inference', outcome]} | {counted['conversion', outcome]} |")
    lines += [
        "",
        "Every disagreement, and who is right:",
        "",
        "| splitgraph | right | why | tests |",
        "|---|---|---|---|",
    ]
    for group in GROUPS:
        names = ", ".join(f"`{test.rpartition('::')[2]}`" for test in group.tests)
        lines.append(f"| {_WORDS[group.outcome]} | {group.right} | {group.why} | {names} |")
    lines += [
        "",
        "Tests also rebuild the cases of onnxruntime's symbolic shape tool and of OpenVINO's type propagation of",
        "splits (`tests/conformance/test_symbolic_shape_tool.py`, `test_openvino_type_prop.py`). Three of the tool's",
        "answers are wrong at some sizes. All of OpenVINO's answers hold; three of splitgraph's answers are tighter.",
    ]
    return "\n".join(lines) + "\n"


_WORDS = {
    "agree": "agrees",
    "less": "knows less",
    "other": "infers another type",
    "refuses": "refuses what onnx accepts",
    "accepts": "accepts what onnx refuses",
}
