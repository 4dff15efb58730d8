"""The pages of the rewriting verbs, of verify and of explain."""

from __future__ import annotations

import pytest

from splitgraph.conversion.rewrite import Change, Rewrite
from splitgraph.findings.diagnostics import CODES, Diagnostic, diagnostic
from splitgraph.reports.pages import (
    blockers_page,
    changes_phrase,
    code_page,
    codes_page,
    rewrite_page,
    verification_page,
)
from splitgraph.reports.text import plain_text
from splitgraph.verification.verification import Difference, Verification

from .results import OTHER_CHANGE, SPLIT_CHANGE, make_rewrite, make_verification


@pytest.mark.parametrize(
    ("changes", "form", "shown"),
    [
        ([], None, "no node rewritten"),
        ([SPLIT_CHANGE], None, "1 split rewritten"),
        ([OTHER_CHANGE] * 2, None, "2 nodes rewritten"),
        ([SPLIT_CHANGE] * 24 + [OTHER_CHANGE] * 61, None, "24 splits and 61 other nodes rewritten"),
        ([SPLIT_CHANGE, OTHER_CHANGE], None, "1 split and 1 other node rewritten"),
        ([SPLIT_CHANGE] * 2, "variadic-split", "2 splits rewritten as variadic-split"),
        ([Change("", "VariadicSplit_3-1", "Split-18", "")], "split", "1 split rewritten as split"),
        ([Change("", "org.splitgraph.VariadicSplit_3-1", "Split-18", "")], "split", "1 split rewritten as split"),
        ([Change("", "SplitToSequence-11", "Split-18", "")], "split", "1 split rewritten as split"),
        ([Change("", "Splitter-1", "Splitter-2", "")], None, "1 node rewritten"),
    ],
)
def test_changes_phrase(changes: list[Change], form: str | None, shown: str) -> None:
    assert changes_phrase(changes, form) == shown


@pytest.mark.parametrize(
    ("rewrite", "form", "shown"),
    [
        (
            make_rewrite(*[SPLIT_CHANGE] * 24, *[OTHER_CHANGE] * 61, verification=make_verification()),
            None,
            "opset 13 → 18 · 24 splits and 61 other nodes rewritten · verified equal on 3 inputs (onnxruntime)\n"
            "wrote out.onnx\n",
        ),
        (
            make_rewrite(before=18, verification=make_verification(cases=1, engine="reference")),
            None,
            "opset 18 · no node rewritten · verified equal on 1 input (reference)\nwrote out.onnx\n",
        ),
        (make_rewrite(SPLIT_CHANGE), None, "opset 13 → 18 · 1 split rewritten · not verified\nwrote out.onnx\n"),
        (
            make_rewrite(SPLIT_CHANGE, before=18, verification=make_verification("not-run", cases=0, engine="")),
            "variadic-split",
            "opset 18 · 1 split rewritten as variadic-split · NOT VERIFIED\nwrote out.onnx\n",
        ),
    ],
)
def test_rewrite_page(rewrite: Rewrite, form: str | None, shown: str) -> None:
    assert plain_text(rewrite_page(rewrite, output="out.onnx", to_form=form)) == shown


def test_blockers_page_is_the_one_of_the_design() -> None:
    blockers = [
        diagnostic(
            "SG402",
            "Split with lengths known only at run time needs opset 10 (Slice with inputs).",
            "main/encoder/Split_4",
            help="Stop at opset 10, or give dimension T a fixed size before converting.",
        ),
        diagnostic(
            "SG404",
            "GridSample exists from opset 16 and has no function body to expand.",
            "main/head/GridSample",
            help="Stop at opset 16.",
        ),
    ]
    assert plain_text(blockers_page("asr.onnx cannot go from opset 18 to 9", blockers)) == (
        "asr.onnx cannot go from opset 18 to 9: 2 blockers\n"
        "\n"
        "  SG402  main/encoder/Split_4  Split with lengths known only at run time needs opset 10 (Slice with inputs).\n"
        "                               Stop at opset 10, or give dimension T a fixed size before converting.\n"
        "  SG404  main/head/GridSample  GridSample exists from opset 16 and has no function body to expand.\n"
        "                               Stop at opset 16.\n"
        "\n"
        "Nothing was written.\n"
    )


REFUSED = Diagnostic("SG503", "warning", f"onnxruntime: loading the model after: {'very ' * 60}long", "", "tried")
LEFT_OUT = Diagnostic("SG503", "info", "1 of 3 cases were left out", "", "Give sizes.")
NOTED = f"  not decided by onnxruntime: loading the model after:{' very' * 29}…\n  1 of 3 cases were left out\n"


def test_who_did_not_run_the_models_is_noted_under_the_verdict() -> None:
    verification = make_verification(cases=2, engine="reference", diagnostics=(REFUSED, LEFT_OUT))
    page = plain_text(rewrite_page(make_rewrite(SPLIT_CHANGE, verification=verification), output="out.onnx"))
    verdict = "opset 13 → 18 · 1 split rewritten · verified equal on 2 inputs (reference)\n"
    assert page == f"{verdict}{NOTED}wrote out.onnx\n"
    head = "equal · 2 inputs · reference\n  largest difference: 0\n"
    assert plain_text(verification_page(verification)) == head + NOTED


@pytest.mark.parametrize(
    ("verification", "shown"),
    [
        (
            make_verification(
                "different",
                cases=0,
                max_abs_diff=None,
                first_difference=Difference("", None, "the model after is refused"),
                diagnostics=(Diagnostic("SG503", "warning", "onnxruntime: the model after is refused", "", ""),),
            ),
            "different\n  first difference: the model after is refused\n",
        ),
        (
            make_verification(max_abs_diff=1.25e-7, max_rel_diff=3e-6, proofs=("main/s", "main/t")),
            "equal · 3 inputs · onnxruntime\n"
            "  largest difference: 1.25e-07, relative 3e-06\n"
            "  2 splits proved equal for every dimension value\n",
        ),
        (make_verification(), "equal · 3 inputs · onnxruntime\n  largest difference: 0\n"),
        (
            make_verification(
                "different",
                cases=1,
                max_abs_diff=float("inf"),
                max_rel_diff=None,
                first_difference=Difference("y", 1, "shape [2, 3] is not [2, 4]"),
            ),
            "different · 1 input · onnxruntime\n"
            "  first difference: y, input 2: shape [2, 3] is not [2, 4]\n"
            "  largest difference: inf\n",
        ),
        (
            make_verification(
                "different",
                engine="",
                cases=0,
                max_abs_diff=None,
                max_rel_diff=None,
                first_difference=Difference("y", None, "the output is missing"),
            ),
            "different\n  first difference: y: the output is missing\n",
        ),
        (
            make_verification(
                "not-run",
                engine="",
                cases=0,
                max_abs_diff=None,
                max_rel_diff=None,
                diagnostics=(Diagnostic("SG503", "warning", "onnxruntime crashed (signal 11)", "", ""),),
            ),
            "not-run\n\n  warning  SG503    onnxruntime crashed (signal 11)\n",
        ),
    ],
)
def test_verification_page(verification: Verification, shown: str) -> None:
    assert plain_text(verification_page(verification)) == shown


def test_code_pages() -> None:
    text = plain_text(code_page("SG201", CODES["SG201"]))
    assert text.startswith("SG201  axis out of range\n\n")
    assert CODES["SG201"].meaning in text
    assert CODES["SG201"].help in text
    every = plain_text(codes_page(CODES))
    assert all(code in every and info.title in every for code, info in CODES.items())
