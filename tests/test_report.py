"""The pages and JSON documents that results are turned into."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence

import pytest

import splitgraph
from splitgraph.conversion.rewrite import Change, Rewrite
from splitgraph.diagnostics import CODES, Diagnostic, diagnostic
from splitgraph.dim import parse_expression
from splitgraph.execution.verification import Difference, Verification
from splitgraph.inference.analysis import Analysis, Completeness, SplitReport
from splitgraph.report.documents import (
    analysis_json,
    document_text,
    failed_analysis_json,
    failed_rewrite_json,
    failed_verification_json,
    rewrite_json,
    type_json,
    verification_json,
)
from splitgraph.report.layout import Block, Cell, line, plain_text, print_page, table
from splitgraph.report.pages import (
    analysis_page,
    blockers_page,
    changes_phrase,
    code_page,
    codes_page,
    findings_table,
    rewrite_page,
    split_parts,
    verification_page,
)
from splitgraph.report.text import count, display_width, opset_text, parts_text, printable
from splitgraph.value_type import UNKNOWN, ValueType, sequence, tensor


def dims(*texts: object) -> tuple:
    return tuple(
        None if text is None else text if isinstance(text, int) else parse_expression(str(text)) for text in texts
    )


def make_split(
    name: str = "s",
    *,
    op: str = "Split",
    domain: str = "",
    version: int = 18,
    location: str | None = None,
    axis: int | None = 1,
    input: ValueType | None = None,
    lengths: Sequence[object] = (3, 3),
    outputs: Sequence[tuple[str, ValueType]] | None = None,
    obligations: Sequence[str] = (),
) -> SplitReport:
    lengths = dims(*lengths)
    if outputs is None:
        outputs = [(f"{name}_{i}", tensor("float32", dims("N", length))) for i, length in enumerate(lengths)]
    return SplitReport(
        name,
        op,
        domain,
        version,
        f"main/{name}" if location is None else location,
        axis,
        "x",
        tensor("float32", dims("N", 6)) if input is None else input,
        tuple(outputs),
        lengths,
        tuple(obligations),
    )


def make_analysis(
    *splits: SplitReport,
    diagnostics: Sequence[Diagnostic] = (),
    completeness: Completeness | None = None,
    **more: object,
) -> Analysis:
    fields = {"types": {"y": tensor("float32", dims("N", 3))}, "symbols": {"N": (0, None)}, "opset": {"": 18}, **more}
    return Analysis(
        model=None,
        splits=splits,
        diagnostics=tuple(diagnostics),
        completeness=completeness or Completeness(12, 12, 4, 0, 3, ()),
        **fields,
    )


def make_rewrite(*changes: Change, before: int = 13, after: int = 18, **more: object) -> Rewrite:
    return Rewrite(None, changes, from_opset={"": before}, to_opset={"": after}, **more)


def make_verification(verdict: str = "equal", **more: object) -> Verification:
    fields = {
        "engine": "onnxruntime",
        "cases": 3,
        "max_abs_diff": 0.0,
        "max_rel_diff": 0.0,
        "first_difference": None,
        "proofs": (),
        **more,
    }
    return Verification(verdict, **fields)


SPLIT_CHANGE = Change("main/s", "Split-13", "Split-18", "opset 18")
OTHER_CHANGE = Change("main/r", "Relu-6", "Relu-14", "opset 14")


# Text ------------------------------------------------------------------------------------------------------------


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


# Pages -----------------------------------------------------------------------------------------------------------

GPT2 = make_analysis(
    *(
        make_split(
            f"/h.{i}/attn/Split", version=13, axis=2, input=tensor("float32", dims("B", "T", 2304)), lengths=(768,) * 3
        )
        for i in range(2)
    ),
    make_split("/head/Split", input=tensor("float32", dims("B", "N")), lengths=("(N + 1)//2", "N//2")),
    opset={"": 13},
    completeness=Completeness(1204, 1204, 38, 0, 412, ()),
)


def test_infer_page_is_the_one_of_the_design() -> None:
    assert plain_text(analysis_page(GPT2, "gpt2.onnx")) == (
        "gpt2.onnx · opset 13 · 412 nodes · 3 splits\n"
        "\n"
        "  node             operator  axis  input                parts\n"
        "  /h.0/attn/Split  Split-13  2     float32[B, T, 2304]  768 | 768 | 768\n"
        "  /h.1/attn/Split  Split-13  2     float32[B, T, 2304]  768 | 768 | 768\n"
        "  /head/Split      Split-18  1     float32[B, N]        (N + 1)//2 | N//2\n"
        "\n"
        "1,204 of 1,204 dimensions known, 38 symbolic. No findings.\n"
    )


def test_infer_page_of_a_model_without_splits() -> None:
    analysis = make_analysis(completeness=Completeness(1, 0, 0, 2, 1, ("Foo", "com.acme.Bar"), 3))
    assert plain_text(analysis_page(analysis, "m.onnx")) == (
        "m.onnx · opset 18 · 1 node · 0 splits\n"
        "\n"
        "0 of 1 dimension known. 2 values of unknown rank. Unknown operators: Foo, com.acme.Bar, which "
        "leave 3 values open. No findings.\n"
    )


def test_infer_page_says_where_a_split_is_when_it_is_not_in_the_main_graph() -> None:
    inner = make_split("s", location="main/cond/then_branch/s", domain="ai.acme", axis=None, lengths=(None, None))
    text = plain_text(analysis_page(make_analysis(inner), "m.onnx"))
    assert "  cond/then_branch/s  ai.acme.Split-18  ?     float32[N, 6]  ? | ?\n" in text


def test_infer_page_lists_each_obligation_once() -> None:
    required = {"N % 3 == 0": ("main/a", "main/b", "main/c"), "N >= 4": ("main/d",)}
    text = plain_text(analysis_page(make_analysis(required_by=required), "m.onnx"))
    assert "  requires N % 3 == 0  a, b, c\n  requires N >= 4      d\n" in text
    brief = plain_text(analysis_page(make_analysis(required_by=required), "m.onnx", brief=True))
    assert "  requires N % 3 == 0  a and 2 more\n  requires N >= 4      d\n" in brief


def test_infer_page_shows_findings_with_their_help() -> None:
    found = [
        Diagnostic("SG201", "error", "axis 5 is not in [-2, 1]", "main/s", "Correct the axis."),
        Diagnostic("SG203", "warning", "runtimes disagree", "main/t", ""),
        Diagnostic("SG401", "info", "repaired", "", "Nothing to do."),
    ]
    text = plain_text(analysis_page(make_analysis(diagnostics=found), "m.onnx"))
    assert text.endswith(
        "12 of 12 dimensions known, 4 symbolic. 1 error, 1 warning, 1 note.\n"
        "\n"
        "  error    SG201  main/s  axis 5 is not in [-2, 1]\n"
        "                          Correct the axis.\n"
        "  warning  SG203  main/t  runtimes disagree\n"
        "  info     SG401          repaired\n"
        "                          Nothing to do.\n"
    )


def test_infer_page_with_all_values_and_bounded_symbols() -> None:
    types = {"x": tensor("float32", dims("N", None)), "long/name": sequence("int64", None), "u": UNKNOWN}
    analysis = make_analysis(types=types, symbols={"N": (2, 6), "M": (1, None), "K": (0, None)})
    text = plain_text(analysis_page(analysis, "m.onnx", with_values=True))
    assert (
        "  value of main  type\n"
        "  x              float32[N, ?]\n"
        "  long/name      sequence(int64[...])\n"
        "  u              unknown\n"
        "\n"
        "  symbol  at least  at most\n"
        "  N       2         6\n"
        "  M       1         any\n"
        "\n"
    ) in text
    assert "value of main" not in plain_text(analysis_page(analysis, "m.onnx"))


def test_a_page_that_goes_to_a_pipe_is_never_cut() -> None:
    name, lengths = "n" * 500, list(range(400))
    stream = io.StringIO()
    print_page(analysis_page(make_analysis(make_split(name, lengths=lengths)), "m.onnx"), stream)
    assert name in stream.getvalue()
    assert " | ".join(map(str, lengths)) in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_columns_stay_aligned_with_wide_characters() -> None:
    rows = [("大小", "x"), ("abcd", "y"), ("e\u0301", "z")]
    assert plain_text([table(("n", "v"), ("", ""), rows)]) == "  n     v\n  大小  x\n  abcd  y\n  e\u0301     z\n"


def test_cells_of_several_lines_and_empty_tables() -> None:
    rows = [("a", Cell(("one", "two"))), (Cell(("b", "c")), "three")]
    assert plain_text([table(("", ""), ("", ""), rows)]) == "  a  one\n     two\n  b  three\n  c\n"
    assert plain_text([table(("n",), ("",), [])]) == "  n\n"
    assert plain_text([]) == ""


@pytest.mark.parametrize(
    ("changes", "form", "shown"),
    [
        ([], None, "nothing to change"),
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
            "opset 18 · nothing to change · verified equal on 1 input (reference)\nwrote out.onnx\n",
        ),
        (make_rewrite(SPLIT_CHANGE), None, "opset 13 → 18 · 1 split rewritten · not verified\nwrote out.onnx\n"),
        (
            make_rewrite(SPLIT_CHANGE, before=18, verification=make_verification("not-run", cases=0, engine="")),
            "variadic-split",
            "opset 18 · 1 split rewritten as variadic-split · could not be verified\nwrote out.onnx\n",
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


@pytest.mark.parametrize(
    ("verification", "shown"),
    [
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


# The terminal -----------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def without_styles(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def on_terminal(blocks: Sequence[Block], monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "100", **environment}.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    print_page(blocks, stream)
    return stream.getvalue()


def test_a_terminal_gets_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" in on_terminal(analysis_page(GPT2, "gpt2.onnx"), monkeypatch)


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    text = on_terminal([line(("red", "red")), findings_table([diagnostic("SG201", "m")])], monkeypatch, NO_COLOR="1")
    assert "\x1b[3" not in text
    assert "red" in text


def test_without_colour_the_terminal_shows_what_a_pipe_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    page = analysis_page(GPT2, "gpt2.onnx")
    shown = without_styles(on_terminal(page, monkeypatch))
    assert [text.split() for text in shown.splitlines()] == [text.split() for text in plain_text(page).splitlines()]


def test_names_from_a_model_are_never_markup_nor_control_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    split = make_split(
        "[bold]evil[/bold]\x1b]0;title\x07:smile:", location="main/[bold]evil[/bold]\x1b]0;title\x07:smile:"
    )
    found = Diagnostic("SG201", "error", "[red]\x1b[2Jmessage", "main/[/]", "[link=x]help")
    page = analysis_page(make_analysis(split, diagnostics=[found]), "[i]model\x1b[0m.onnx", with_values=True)
    shown = without_styles(on_terminal(page, monkeypatch, COLUMNS="200"))
    for text in (shown, plain_text(page)):
        assert "\x1b" not in text
        assert "\x07" not in text
        assert r"[bold]evil[/bold]\x1b]0;title\x07:smile:" in text
        assert r"[i]model\x1b[0m.onnx" in text
        assert r"[red]\x1b[2Jmessage" in text
        assert "[link=x]help" in text


def test_a_narrow_terminal_folds_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    name, lengths = "a" * 80 + "z", list(range(10, 18))
    page = analysis_page(make_analysis(make_split(name, lengths=lengths)), "m.onnx")
    shown = without_styles(on_terminal(page, monkeypatch, COLUMNS="50"))
    assert all(len(text) <= 50 for text in shown.splitlines())
    assert (shown.count("a") - plain_text(page).replace(name, "").count("a"), shown.count("z")) == (80, 1)
    assert all(str(length) in shown for length in lengths)


# JSON --------------------------------------------------------------------------------------------------------------


def test_analysis_json_is_the_contract() -> None:
    outputs = [("a", tensor("float32", dims("N", 3))), ("", tensor("float32", dims("N", 3)))]
    found = Diagnostic("SG203", "warning", "...", "main/s", "help")
    analysis = make_analysis(
        make_split(outputs=outputs, obligations=["N >= 2"]),
        diagnostics=[found],
        graphs={"main": {"y": tensor("float32", dims("N", 3))}},
        required_by={"N >= 2": ("main/s",)},
    )
    expected = {
        "splitgraph": splitgraph.__version__,
        "model": "model.onnx",
        "opset": {"": 18},
        "ok": True,
        "splits": [
            {
                "node": "s",
                "op": "Split",
                "domain": "",
                "since_version": 18,
                "location": "main/s",
                "axis": 1,
                "input": {"name": "x", "kind": "tensor", "dtype": "float32", "shape": ["N", 6]},
                "outputs": [
                    {"name": "a", "kind": "tensor", "dtype": "float32", "shape": ["N", 3]},
                    {"name": "", "kind": "tensor", "dtype": "float32", "shape": ["N", 3]},
                ],
                "lengths": [3, 3],
                "obligations": ["N >= 2"],
            }
        ],
        "symbols": {"N": {"min": 0, "max": None}},
        "obligations": ["N >= 2"],
        "diagnostics": [
            {"code": "SG203", "severity": "warning", "message": "...", "location": "main/s", "help": "help"}
        ],
        "completeness": {
            "dims": 12,
            "known": 12,
            "symbolic": 4,
            "unknown_rank": 0,
            "nodes": 3,
            "unknown_operators": [],
            "left_open": 0,
        },
    }
    assert json.loads(document_text(analysis_json(analysis, "model.onnx"))) == expected
    values = {"y": {"kind": "tensor", "dtype": "float32", "shape": ["N", 3]}}
    assert analysis_json(analysis, "model.onnx", with_values=True) == {
        **expected,
        "values": values,
        "graphs": {"main": values},
    }


@pytest.mark.parametrize(
    ("value", "document"),
    [
        (UNKNOWN, {"kind": "unknown", "dtype": None, "shape": None}),
        (tensor("int64", ()), {"kind": "tensor", "dtype": "int64", "shape": []}),
        (
            tensor("int64", dims("N//2", None, 2**70)),
            {"kind": "tensor", "dtype": "int64", "shape": ["N//2", None, 2**70]},
        ),
        (sequence("float32", None), {"kind": "sequence", "dtype": "float32", "shape": None}),
        (
            ValueType("optional", "float32", None, sequence("float32", (1,))),
            {
                "kind": "optional",
                "dtype": "float32",
                "shape": None,
                "element": {"kind": "sequence", "dtype": "float32", "shape": [1]},
            },
        ),
    ],
)
def test_type_json(value: ValueType, document: dict) -> None:
    assert type_json(value) == document


def test_rewrite_json_is_the_contract() -> None:
    rewrite = make_rewrite(SPLIT_CHANGE, verification=make_verification())
    assert rewrite_json(rewrite, "m.onnx", output="out.onnx") == {
        "ok": True,
        "model": "m.onnx",
        "output": "out.onnx",
        "from": {"": 13},
        "to": {"": 18},
        "changes": [{"location": "main/s", "before": "Split-13", "after": "Split-18", "why": "opset 18"}],
        "diagnostics": [],
        "verification": verification_json(make_verification()),
    }
    assert rewrite_json(make_rewrite(), "m.onnx", output=None)["ok"] is False


def test_verification_json_is_the_contract() -> None:
    different = make_verification(
        "different",
        first_difference=Difference("y", 0, "0.5 is not 0.6"),
        max_abs_diff=float("inf"),
        max_rel_diff=float("nan"),
    )
    assert json.loads(document_text(verification_json(different))) == {
        "verdict": "different",
        "engine": "onnxruntime",
        "cases": 3,
        "max_abs_diff": "inf",
        "max_rel_diff": "nan",
        "first_difference": {"name": "y", "case": 0, "reason": "0.5 is not 0.6"},
        "proofs": [],
        "diagnostics": [],
    }


def test_failed_documents_have_the_keys_of_the_good_ones() -> None:
    found = [diagnostic("SG101", "empty file")]
    pairs = [
        (failed_analysis_json("m", found), analysis_json(make_analysis(), "m")),
        (failed_rewrite_json("m", found, before={}, after={}), rewrite_json(make_rewrite(), "m", output="o")),
        (failed_verification_json(found), verification_json(make_verification())),
    ]
    for failed, good in pairs:
        assert list(failed) == list(good)
        assert failed["diagnostics"][0]["code"] == "SG101"


def test_documents_are_ascii_so_that_any_pipe_can_carry_them() -> None:
    text = document_text(analysis_json(make_analysis(make_split("größe\udcff\x1b")), "大.onnx"))
    assert text.isascii()
    assert json.loads(text)["splits"][0]["node"] == "größe\udcff\x1b"
