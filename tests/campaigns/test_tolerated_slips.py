"""A sample of the campaign on slips: its result for one operator is what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest
import tolerated_slips

from splitgraph.inference.repairs import INT32_INPUTS


@pytest.mark.slow
def test_the_integers_of_an_operator(tmp_path: Path) -> None:
    plain, slipped = tolerated_slips.made(["ReverseSequence"])
    found = tolerated_slips.judged(slipped, tolerated_slips.measured(plain, slipped, tmp_path))
    ((key, versions),) = tolerated_slips.tolerated(found)
    assert key == ("ReverseSequence", "int32", "1")
    assert versions[0] == 10
    assert INT32_INPUTS["ReverseSequence"] == (1,)


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ("openvino and reference", []),
        ("openvino", ["ReverseSequence int32 1: openvino"]),
        ("differs", ["ReverseSequence int32 1: differs"]),
        (None, ["ReverseSequence int32 1: no model"]),
    ],
)
def test_an_entry_that_two_engines_do_not_run_is_told(told: str | None, wrong: list[str]) -> None:
    found = {} if told is None else {("ReverseSequence", "int32", "1"): {10: {told}}}
    assert tolerated_slips.unfounded(["ReverseSequence"], found) == wrong
