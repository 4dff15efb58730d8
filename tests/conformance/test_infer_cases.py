"""The corpus of inference cases through the public API: nothing wrong, no false error, nearly everything exact, nearly
every error found.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import splitgraph

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from builder import build  # noqa: E402  (the corpus's own modules, which are not a package)
from compare_shapes import Judgement, judge  # noqa: E402

CASES: list[dict[str, Any]] = json.loads((HERE / "infer_cases.json").read_text())["cases"]
VALID = [case for case in CASES if not case["expect_error"]]
INVALID = [case for case in CASES if case["expect_error"]]

# Cases whose answer is right but less than the corpus's, each with the reason.
LOOSE = {
    "sna-01": "by the dimension grammar an expression over a name that is no identifier is a generated symbol",
    "sna-04": "as sna-01: `lambda` is a keyword",
}

# Faults that leave a node one reading, which the corpus calls invalid: warnings, each with the code.
REPAIRED = {"s13-numout": "SG416", "s18-no-gt": "SG209"}


def symbols_of(case: dict[str, Any]) -> set[str]:
    """The symbols that the case's inputs and declared types name."""
    model = case["model"]
    typed = [*model["inputs"], *(model.get("value_info") or []), *(model.get("out_info") or {}).values()]
    return {dim for value in typed for dim in (value.get("shape") or []) if isinstance(dim, str)}


def judged(case: dict[str, Any]) -> tuple[Judgement, list[str]]:
    """The best judgement of the answers that the corpus accepts, and the errors that were reported."""
    analysis = splitgraph.infer(build(case))
    errors = [f"{d.code} {d.message}" for d in analysis.diagnostics if d.severity == "error"]
    accepted = [case["expect"], *(case.get("alt") or [])]
    judgements = [
        judge(want, dict(analysis.types), symbols_of(case), case.get("where") or [], case.get("hi", 13))
        for want in accepted
    ]
    return min(judgements, key=lambda found: (len(found.wrong), len(found.loose))), errors


@pytest.mark.parametrize("case", VALID, ids=lambda case: case["id"])
def test_valid_case(case: dict[str, Any]) -> None:
    found, errors = judged(case)
    if case.get("ambiguous") and errors:
        return
    assert not errors
    assert not found.wrong
    assert bool(found.loose) == (case["id"] in LOOSE), found.loose


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case["id"])
def test_invalid_case(case: dict[str, Any]) -> None:
    analysis = splitgraph.infer(build(case))
    if case["id"] in REPAIRED:
        assert analysis.ok
        assert REPAIRED[case["id"]] in {d.code for d in analysis.diagnostics}
        return
    assert not analysis.ok, f"{case['expect_error']} was not found"
    assert all(d.location and d.message for d in analysis.diagnostics)


def test_enough_is_exact() -> None:
    """The bar of the project: 95% of the valid cases exact (the ambiguous ones that are reported as errors do not count
    as exact).
    """
    exact = sum(1 for case in VALID if not any(judged(case)) or not (judged(case)[0].loose or judged(case)[1]))
    assert exact / len(VALID) >= 0.95
