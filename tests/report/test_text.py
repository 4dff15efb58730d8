"""Names, counts, parts and opsets as text."""

from __future__ import annotations

import pytest

from splitgraph.inference.analysis import SplitReport
from splitgraph.model.value_type import UNKNOWN, sequence, tensor
from splitgraph.reports.pages import (
    split_parts,
)
from splitgraph.reports.text import count, display_width, opset_text, parts_text, printable, shortened

from .results import dims, make_split


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("/h.0/attn/Split", "/h.0/attn/Split"),
        ("größe 大", "größe 大"),
        ("[bold red]x[/]", "[bold red]x[/]"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("\x00\x7f\x9b", r"\x00\x7f\x9b"),
        ("left\u202eright", r"left\u202eright"),
        ("file\udcff", r"file\udcff"),
    ],
)
def test_printable_leaves_no_control_sequence(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert shown.isprintable()


@pytest.mark.parametrize(("text", "width"), [("", 0), ("abc", 3), ("größe", 5), ("大小", 4), ("e\u0301", 1)])
def test_display_width(text: str, width: int) -> None:
    assert display_width(text) == width


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes"), (1204, "1,204 nodes"), (2**40, f"{2**40:,} nodes")],
)
def test_count(number: int, shown: str) -> None:
    assert count(number, "node") == shown


@pytest.mark.parametrize(
    ("lengths", "shown"),
    [
        ([], ""),
        ([6], "6"),
        ([768, 768, 768], "768 | 768 | 768"),
        ([64] * 12, "12 × 64"),
        ([1, *[64] * 4, 2], "1 | 4 × 64 | 2"),
        (["N//2", "N - N//2"], "N//2 | (N + 1)//2"),
        (["N//4"] * 4, "4 × (N//4)"),
        (["N"] * 4, "4 × N"),
        (["N - 2"] * 5, "5 × (N - 2)"),
        ([None, 3, None], "? | 3 | ?"),
        ([None] * 4, "4 × ?"),
        ([0] * 1000, "1,000 × 0"),
        ([2**63], str(2**63)),
    ],
)
def test_parts_text(lengths: list, shown: str) -> None:
    assert parts_text(dims(*lengths)) == shown
    assert parts_text(dims(*lengths), brief=True) == shown


SHORTENED = [
    ("short", 10, "short"),
    ("exactly 10", 10, "exactly 10"),
    ("two\n  lines", 10, "two lines"),
    ("words beyond", 10, "words…"),
    ("no mark: here", 10, "no mark…"),
    ("oneverylongword", 10, "oneverylo…"),
]


@pytest.mark.parametrize(("text", "width", "shown"), SHORTENED)
def test_shortened(text: str, width: int, shown: str) -> None:
    assert shortened(text, width) == shown
    assert len(shown) <= width


def test_a_long_list_of_parts_is_cut_only_when_brief() -> None:
    lengths = list(range(1, 41))
    assert parts_text(lengths) == " | ".join(map(str, lengths))
    assert parts_text(lengths, brief=True) == "1 | 2 | 3 | 4 | 5 | 6 | … 33 more … | 40"


@pytest.mark.parametrize(
    ("opset", "shown"),
    [
        ({}, "no opset"),
        ({"": 13}, "opset 13"),
        ({"com.microsoft": 1, "": 13, "ai.onnx.ml": 3}, "opset 13, ai.onnx.ml 3, com.microsoft 1"),
        ({"custom": 2}, "custom 2"),
    ],
)
def test_opset_text(opset: dict[str, int], shown: str) -> None:
    assert opset_text(opset) == shown


@pytest.mark.parametrize(
    ("split", "shown"),
    [
        (make_split(lengths=(2, 4)), "2 | 4"),
        (make_split(lengths=(), outputs=[("a", UNKNOWN), ("b", UNKNOWN)]), "? | ?"),
        (
            make_split(op="SplitToSequence", lengths=(2, 2, 2), outputs=[("q", sequence("float32", (2,)))]),
            "sequence of 2 | 2 | 2",
        ),
        (
            make_split(op="SplitToSequence", lengths=(1,) * 8, outputs=[("q", sequence("float32", (1,)))]),
            "sequence of 8 × 1",
        ),
        (make_split(op="SplitToSequence", lengths=(), outputs=[("q", sequence("float32", None))]), "sequence of ?"),
        (
            make_split(
                op="StringSplit",
                axis=None,
                lengths=(),
                outputs=[("y", tensor("string", dims("N", None))), ("z", tensor("int64", dims("N")))],
            ),
            "string[N, ?] | int64[N]",
        ),
    ],
)
def test_split_parts(split: SplitReport, shown: str) -> None:
    assert split_parts(split) == shown
