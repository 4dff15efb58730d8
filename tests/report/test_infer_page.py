"""The page of infer, and its tables."""

from __future__ import annotations

import io

import pytest
from obligation_texts import obligation_of

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference.analysis import Completeness
from splitgraph.model.value_type import UNKNOWN, sequence, tensor
from splitgraph.reports.pages import (
    analysis_page,
    findings_table,
)
from splitgraph.reports.text import Block, Cell, Table, plain_text, print_page, table

from .results import GPT2, dims, make_analysis, make_split


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
    required = {
        obligation_of("N % 3 == 0"): ("main/a", "main/b", "main/c"),
        obligation_of("N >= 4"): ("main/d",),
    }
    text = plain_text(analysis_page(make_analysis(required_by=required), "m.onnx"))
    assert "  requires N % 3 == 0  a, b, c\n  requires N >= 4      d\n" in text
    brief = plain_text(analysis_page(make_analysis(required_by=required), "m.onnx", brief=True))
    assert "  requires N % 3 == 0  a and 2 more\n  requires N >= 4      d\n" in brief


def test_infer_page_says_what_is_assumed_beneath_what_is_required() -> None:
    required = {obligation_of("N % 3 == 0"): ("main/a",)}
    assumed = {obligation_of("1023 >= P"): "main/mask", obligation_of("P + T >= 1"): "main/h.0/Add"}
    page = analysis_page(make_analysis(required_by=required, assumed_by=assumed), "m.onnx")
    assert (
        "  requires N % 3 == 0  a\n"
        "  assumes P < 1024     otherwise mask broadcasts an empty dimension\n"
        "  assumes P + T >= 1   otherwise h.0/Add broadcasts an empty dimension\n"
    ) in plain_text(page)


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
    assert " ".join(stream.getvalue().split()).count(" | ".join(map(str, lengths))) == 1
    assert "\x1b" not in stream.getvalue()


LONG = "floor(height/2 - 1/2) + " * 20 + "1"


@pytest.mark.parametrize(
    "page",
    [
        [table(("name", "type", "n"), ("", "", ""), [("a", f"float32[batch, {LONG}]", "1"), ("b", LONG, "2")])],
        [table(("", ""), ("", ""), [(f"requires {LONG} == N", "node"), ("requires N >= 1", "other")])],
        [table(("", ""), ("", ""), [("node", LONG), ("other", f"{LONG} | {LONG}")])],
        [table(("", "", ""), ("", "", ""), [("a", "b", " | ".join(["(batch + 1)//2"] * 60))])],
    ],
)
def test_a_long_column_is_folded_where_no_terminal_does_it(page: list[Block]) -> None:
    text = plain_text(page)
    assert max(map(len, text.splitlines())) <= 125
    assert not [row for row in text.splitlines() if row.split()[:1] == ["|"]]
    told = [row.lines[0] for block in page if isinstance(block, Table) for cells in block.rows for row in cells]
    assert sorted(" ".join(told).split()) == sorted(word for word in text.split() if word not in ("name", "type", "n"))


def test_sentences_and_names_are_not_folded_in_a_pipe() -> None:
    long = diagnostic("SG201", "a message of many words " * 20 + "end", "main/" + "n" * 200)
    assert long.message in plain_text([findings_table([long])])
    assert "main/" + "n" * 200 in plain_text([findings_table([long])])


def test_columns_stay_aligned_with_wide_characters() -> None:
    rows = [("大小", "x"), ("abcd", "y"), ("e\u0301", "z")]
    assert plain_text([table(("n", "v"), ("", ""), rows)]) == "  n     v\n  大小  x\n  abcd  y\n  e\u0301     z\n"


def test_cells_of_several_lines_and_empty_tables() -> None:
    rows = [("a", Cell(("one", "two"))), (Cell(("b", "c")), "three")]
    assert plain_text([table(("", ""), ("", ""), rows)]) == "  a  one\n     two\n  b  three\n  c\n"
    assert plain_text([table(("n",), ("",), [])]) == "  n\n"
    assert plain_text([]) == ""
