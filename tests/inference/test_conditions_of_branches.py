"""A condition of a branch or body says which one; one of the model says none."""

from __future__ import annotations

import onnx
import pytest

import splitgraph
from splitgraph.reports.documents.analyses import analysis_json
from splitgraph.reports.pages import analysis_page
from splitgraph.reports.text import Block

HEAD = '<ir_version: 8, opset_import: ["": 13, "l": 1]> g '
ONE = "int64[1] one = {1}"
HALVES = "p, q = Split <axis = 1> (x)"
IF = "y = If (c) <then_branch = t () => (float[?, ?] p) {{ {} }}, else_branch = e () => (float[?, ?] p) {{ {} }}>"
LOOP = (
    "y = Loop (n, , x) <body = b (int64 i, bool k, float[N, C] h) => (bool k2, float[N, C] h2, float[?, ?] p) "
    "{{ k2 = Identity (k) h2 = Relu (h) {} }}>"
)
FUNCTION = '<opset_import: ["": 13], domain: "l"> halve (x) => (p) { p, q = Split <axis = 1> (x) }'


def analysis_of(nodes: str, functions: str = "") -> splitgraph.Analysis:
    inputs = "float[N, C] x, bool c, int64 n"
    return splitgraph.infer(onnx.parser.parse_model(f"{HEAD} ({inputs}) => () <{ONE}> {{ {nodes} }} {functions}"))


# The nodes, functions, and each condition with its branch.
CASES: dict[str, tuple[str, str, set[tuple[str, str | None]]]] = {
    "the main graph": (HALVES, "", {("C % 2 == 0", None)}),
    "a called function": ("p = l.halve (x)", FUNCTION, {("C % 2 == 0", None)}),
    "both branches": (
        IF.format("p = Squeeze (x, one) ", HALVES),
        "",
        {("C == 1", "main/If#0/then_branch"), ("C % 2 == 0", "main/If#0/else_branch")},
    ),
    "one branch": (IF.format(HALVES, "p = Relu (x)"), "", {("C % 2 == 0", "main/If#0/then_branch")}),
    "the main graph first": (
        f"{HALVES} " + IF.format("r, p = Split <axis = 1> (x)", "p = Relu (x)"),
        "",
        {("C % 2 == 0", None)},
    ),
    "the same in both branches": (
        IF.format(HALVES, HALVES),
        "",
        {("C % 2 == 0", "main/If#0/then_branch"), ("C % 2 == 0", "main/If#0/else_branch")},
    ),
    "a function in a branch": (
        IF.format("p = l.halve (x)", "p = Relu (x)"),
        FUNCTION,
        {("C % 2 == 0", "main/If#0/then_branch")},
    ),
    "a loop": (LOOP.format("p, q = Split <axis = 1> (h)"), "", {("C % 2 == 0", "main/Loop#0/body")}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_branch_of_each_condition(name: str) -> None:
    nodes, functions, expected = CASES[name]
    analysis = analysis_of(nodes, functions)
    found = analysis.obligations
    assert {(str(each), branch) for each in found for branch in each.branches or (None,)} == expected
    document = analysis_json(analysis, "m.onnx")
    assert set(document["obligations"]) == {text for text, branch in expected if branch is None}
    told = {(each["obligation"], each["branch"]) for each in document["branch_obligations"]}
    assert told == {(text, branch) for text, branch in expected if branch is not None}
    page = repr(analysis_page(analysis, "m.onnx"))
    for each in found:
        where = " or ".join(branch[5:] for branch in each.branches)
        assert f"requires {each}" + (f" where {where} runs" if where else "") in page


COUNTS = {
    "the main graph": (HALVES, "", 1),
    "branches": (IF.format("p = Squeeze (x, one) ", HALVES), "", 3),
    "a body": (LOOP.format("p, q = Split <axis = 1> (h)"), "", 4),
    "functions": ("p = l.halve (x)  r = l.halve (x)", FUNCTION, 3),
    "a function that is not called": ("p = Relu (x)", FUNCTION, 2),
}


@pytest.mark.parametrize("name", COUNTS)
def test_nodes_of_all_graphs_are_counted(name: str) -> None:
    nodes, functions, expected = COUNTS[name]
    assert analysis_of(nodes, functions).completeness.nodes == expected


# The nodes, functions, and where the first value of unknown rank or with an unknown dimension comes from.
ORIGINS: dict[str, tuple[str, str, tuple[str, str] | None]] = {
    "nothing is unknown": ("y = Relu (x)", "", None),
    "only dimensions are unknown": (
        "y = NonZero (x)",
        "",
        ("main/NonZero#0", "the inputs of NonZero do not tell the dimension"),
    ),
    "an unknown operator": (
        "y = nobody.Knows (x)  z = Relu (y)",
        "",
        ("main/Knows#0", "unknown operator nobody::Knows"),
    ),
    "an operator that ai.onnx has not": ("y = Knows (x)", "", ("main/Knows#0", "unknown operator ai.onnx::Knows")),
    "an error": ("y = Concat <axis = 9> (x, x)", "", ("main/Concat#0", "the node Concat has an error")),
    "a computed shape": (
        "s = Cast <to = 7> (n)  w = NonZero (x)  r = Reshape (w, one)  i = Cast <to = 7> (w)  u = NonZero (i)"
        "  f = Reshape (i, one)  y = Reshape (x, f)",
        "",
        ("main/NonZero#4", "the inputs of NonZero do not tell the dimension"),
    ),
    "in a branch": (
        IF.format("r = nobody.Knows (x) p = Relu (x)", "p = Relu (x)"),
        "",
        ("main/If#0/then_branch/Knows#0", "unknown operator nobody::Knows"),
    ),
    "ranks of branches": (
        IF.format("p = Squeeze (x, one)", "p = Relu (x)"),
        "",
        ("main/If#0", "the bodies of If give no common rank"),
    ),
    "in a function": (
        "y = l.f (x)",
        '<opset_import: ["": 13, "nobody": 1], domain: "l"> f (x) => (y) { z = Relu (x) y = nobody.Knows (z) }',
        ("main/f#0/Knows#1", "unknown operator nobody::Knows"),
    ),
}


@pytest.mark.parametrize("name", ORIGINS)
def test_the_first_cause_of_what_is_unknown(name: str) -> None:
    nodes, functions, expected = ORIGINS[name]
    analysis = analysis_of(nodes, functions)
    origin = analysis.completeness.first_unknown
    assert (None if origin is None else (origin.location, origin.reason)) == expected
    page: list[Block] = analysis_page(analysis, "m.onnx")
    assert (f" of {expected[0][5:]} ({expected[1]})" if expected else "known") in repr(page)
