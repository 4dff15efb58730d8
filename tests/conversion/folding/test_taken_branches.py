"""An If whose condition is known becomes the branch that runs; any other one stays."""

from __future__ import annotations

import pytest
from folded_models import assert_equal_at, constants, fold, model, operators, why

ALWAYS = "<bool c = {1}>"
# Both branches use the names h and w for values of their own.
BRANCHES = """then_branch = t () => (float[n] u) <float[1] w = {{2}}> {{ h = Mul (x, w) u = Relu (h) }},
    else_branch = e () => (float[m] v) <float[1] w = {{3}}> {{ h = Add (x, w) v = Neg (h) }}"""


def with_if(condition: str, *, branches: str = BRANCHES, more: str = "", given: str = "") -> str:
    return (
        f"(float[N] x{given}) => (float[a] y) {condition} "
        f"{{ {more} y = If <{branches.replace('{{', '{').replace('}}', '}')}> (c) }}"
    )


@pytest.mark.parametrize(
    "body",
    [
        with_if("", given=", bool c"),
        with_if("<bool c = {1}>", given=", bool c"),
        with_if("<int64[1] i = {0}, int64 k = {4}>", more="s = Shape (x) n = Gather (s, i) c = Less (n, k)"),
    ],
)
def test_a_condition_that_is_not_the_same_in_every_run_keeps_both(body: str) -> None:
    after = fold(model(body)).model
    assert operators(after)[-1] == "If"


@pytest.mark.parametrize(("truth", "expected", "weight"), [(1, ["Mul", "Relu"], [2.0]), (0, ["Add", "Neg"], [3.0])])
def test_the_branch_that_runs_stands_in_its_place(truth: int, expected: list[str], weight: list[float]) -> None:
    before = model(with_if(f"<bool c = {{{truth}}}>"))
    rewrite = fold(before)
    assert operators(rewrite.model) == expected
    assert list(constants(rewrite.model).values()) == [weight]
    assert set(why(rewrite).values()) == {"its condition is the same in every run"}
    assert_equal_at(before, rewrite.model, [{"N": 3}, {"N": 0}], least=2)


def test_a_condition_on_fixed_sizes_is_known() -> None:
    before = model(
        with_if("<int64[1] i = {0}, int64 k = {4}>", more="s = Shape (x) n = Gather (s, i) c = Less (n, k)").replace(
            "[N]", "[3]"
        )
    )
    assert operators(fold(before).model) == ["Mul", "Relu"]


def test_two_ifs_with_values_of_the_same_names() -> None:
    text = BRANCHES.replace("{{", "{").replace("}}", "}")
    before = model(f"(float[N] x) => (float[a] y, float[b] z) {ALWAYS} {{ y = If <{text}> (c) z = If <{text}> (c) }}")
    after = fold(before).model
    assert operators(after) == ["Mul", "Relu", "Mul", "Relu"]
    assert_equal_at(before, after, [{"N": 3}])


@pytest.mark.parametrize(
    ("branch", "expected"),
    [
        # A value of the graph around it, a constant of its own, and one value twice.
        ("t () => (float[n] x) { }", ["Identity"]),
        ("t () => (float[n] w) <float[1] w = {5}> { }", ["Identity"]),
        ("t () => (float[n] u) { u = Relu (x) }", ["Relu"]),
    ],
)
def test_what_a_branch_gives_gets_the_name_of_the_output(branch: str, expected: list[str]) -> None:
    before = model(
        f"(float[N] x) => (float[a] y) {ALWAYS} {{ y = If <then_branch = {branch}, else_branch = e () => (float[m] v) "
        "{ v = Neg (x) }> (c) }"
    )
    after = fold(before).model
    assert set(operators(after)) <= {*expected, "Constant"}
    assert_equal_at(before, after, [{"N": 3}])


def test_one_value_for_two_outputs() -> None:
    before = model(
        f"(float[N] x) => (float[a] y, float[b] z) {ALWAYS} {{ y, z = If <then_branch = t () => "
        "(float[n] u, float[n] u) { u = Relu (x) }, else_branch = e () => (float[m] v, float[m] w) "
        "{ v = Neg (x) w = Abs (x) }> (c) }"
    )
    after = fold(before).model
    assert_equal_at(before, after, [{"N": 3}])


def test_branches_in_one_another_go_from_the_inside_out() -> None:
    inner = (
        "If <then_branch = t2 () => (float[n2] a) { a = Relu (x) }, "
        "else_branch = e2 () => (float[m2] b) { b = Abs (x) }> (c)"
    )
    before = model(
        f"(float[N] x) => (float[o] y) {ALWAYS} {{ y = If <then_branch = t () => (float[n] u) {{ h = {inner} "
        "u = Neg (h) }, else_branch = e () => (float[m] v) { v = Exp (x) }> (c) }"
    )
    after = fold(before).model
    assert operators(after) == ["Relu", "Neg"]
    assert_equal_at(before, after, [{"N": 3}])


def test_what_only_the_other_branch_read_goes() -> None:
    before = model(
        "(float[N] x) => (float[o] y) <bool c = {1}, float[1] w = {7}> { p = Exp (x) q = Mul (p, w) "
        "y = If <then_branch = t () => (float[n] u) { u = Neg (x) }, else_branch = e () => (float[m] v) "
        "{ v = Relu (q) }> (c) }"
    )
    after = fold(before).model
    assert (operators(after), constants(after)) == (["Neg"], {})


def test_in_a_body_the_branch_stands_in_the_body() -> None:
    text = BRANCHES.replace("{{", "{").replace("}}", "}").replace("(x, w)", "(s, w)")
    before = model(
        f"(float[N] x, int64 m) => (float[a] y) {ALWAYS} {{ y = Loop <body = b (int64 i, bool k, float[d] s) => "
        f"(bool g, float[f] r) {{ g = Identity (k) r = If <{text}> (c) }}> (m, c, x) }}"
    )
    after = fold(before).model
    body = after.graph.node[0].attribute[0].g
    assert [node.op_type for node in body.node if node.op_type != "Constant"] == ["Identity", "Mul", "Relu"]
    assert_equal_at(before, after, [{"N": 3}])
