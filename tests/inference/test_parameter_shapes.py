"""Shapes of scales, slopes, zero points and bodies that contradict the data: errors, warnings and near misses."""

from __future__ import annotations

import pytest
from node_models import infer_nodes, model_of

import splitgraph

BN = "float[1, 3, 4, 4] x, float[{0}] a, float[{0}] b, float[{0}] c, float[{0}] d"
NORMAL = "y = BatchNormalization<{}>(x, a, b, c, d)"
PRELU = ("float[1, 3, 4, 4] x, float[{}] s", "y = PRelu(x, s)")
LAYER = ("float[2, 3, 4] x, float[{}] s", "y = LayerNormalization<axis = {}>(x, s)")
ROOT = ("float[2, 3, 4] x, float[{}] s", "y = RMSNormalization(x, s)")
ZERO = ("uint8[1, 3, 4] x, float[{}] s, uint8[{}] z", "y = DequantizeLinear(x, s, z)")
ERRORS = [
    ("BatchNormalization-6 of too few", BN.format("2"), NORMAL.format("is_test = 1"), 6),
    ("BatchNormalization-7 of too few", BN.format("2"), NORMAL.format("spatial = 1"), 7),
    ("BatchNormalization-7 of one", BN.format("1"), NORMAL.format("spatial = 1"), 8),
    ("BatchNormalization-7 of another rank", BN.format("3, 4, 4"), NORMAL.format("spatial = 1"), 7),
    ("BatchNormalization-7 for elements by channels", BN.format("3"), NORMAL.format("spatial = 0"), 7),
    ("PRelu that fits nothing", PRELU[0].format("2"), PRELU[1], 16),
    ("PRelu of a higher rank", PRELU[0].format("1, 1, 3, 1, 1"), PRELU[1], 9),
    ("PRelu-6 of a higher rank", PRELU[0].format("1, 1, 3, 1, 1"), PRELU[1], 6),
    ("PRelu of more channels", PRELU[0].format("2, 1, 1"), PRELU[1], 16),
    ("LayerNormalization of another length", LAYER[0].format("3"), LAYER[1].format(-1), 17),
    ("LayerNormalization of a higher rank", LAYER[0].format("1, 1, 1, 4"), LAYER[1].format(-1), 17),
    ("RMSNormalization of another length", ROOT[0].format("5"), ROOT[1], 23),
    ("zero points of another number", ZERO[0].format("3", "2"), ZERO[1], 19),
    ("zero points without scales", ZERO[0].format("1", "3"), ZERO[1], 19),
    ("CumSum along two axes", "float[3, 3] x, int64[2] k", "y = CumSum(x, k)", 14),
    ("Trilu with two diagonals", "float[3, 3] x, int64[2] k", "y = Trilu(x, k)", 14),
    ("Pad with two values", "float[3] x, int64[2] p, float[2] v", "y = Pad(x, p, v)", 13),
    ("LpNormalization of no axis", "float[3, 3] x", "y = LpNormalization<axis = 7>(x)", 17),
]
WARNINGS = [
    ("PRelu for channels", PRELU[0].format("3"), PRELU[1], 16),
    ("PRelu-7 for channels of sequences", "float[2, 3, 5] x, float[3] s", PRELU[1], 7),
    ("one zero point for all scales", "uint8[1, 3, 4] x, float[3] s, uint8 z", ZERO[1], 19),
]
FINE = [
    ("BatchNormalization-7", BN.format("3"), NORMAL.format("spatial = 1"), 7),
    ("BatchNormalization-7 for elements", BN.format("3, 4, 4"), NORMAL.format("spatial = 0"), 7),
    ("BatchNormalization-7 of unknown channels", BN.replace("3", "C").format("5"), NORMAL.format("spatial = 1"), 7),
    ("PRelu-6 for channels", PRELU[0].format("3"), PRELU[1], 6),
    ("PRelu along the last axis", PRELU[0].format("4"), PRELU[1], 16),
    ("PRelu of one", PRELU[0].format("1"), PRELU[1], 16),
    ("PRelu of unknown width", "float[1, 3, H, W] x, float[3] s", PRELU[1], 16),
    ("PRelu as in NumPy", PRELU[0].format("3, 1, 1"), PRELU[1], 16),
    ("LayerNormalization of rows", LAYER[0].format("3, 4"), LAYER[1].format(-1), 17),
    ("LayerNormalization of one", LAYER[0].format("1"), LAYER[1].format(-1), 17),
    ("RMSNormalization", ROOT[0].format("4"), ROOT[1], 23),
    ("zero points for scales", ZERO[0].format("3", "3"), ZERO[1], 19),
    ("one zero point in a vector", "uint8[1, 3, 4] x, float s, uint8[1] z", ZERO[1], 19),
    ("CumSum along the axis in a vector", "float[3, 3] x, int64[1] k", "y = CumSum(x, k)", 14),
]


def names(table: list[tuple[str, str, str, int]]) -> list[str]:
    return [row[0] for row in table]


@pytest.mark.parametrize(("inputs", "body", "opset"), [row[1:] for row in ERRORS], ids=names(ERRORS))
def test_what_no_engine_or_only_one_runs(inputs: str, body: str, opset: int) -> None:
    (found,) = infer_nodes(inputs, body, opset=opset).diagnostics
    assert (found.code, found.severity) == ("SG302", "error")


@pytest.mark.parametrize(("inputs", "body", "opset"), [row[1:] for row in WARNINGS], ids=names(WARNINGS))
def test_what_two_engines_run(inputs: str, body: str, opset: int) -> None:
    (found,) = infer_nodes(inputs, body, opset=opset).diagnostics
    assert (found.code, found.severity) == ("SG302", "warning")


@pytest.mark.parametrize(("inputs", "body", "opset"), [row[1:] for row in FINE], ids=names(FINE))
def test_what_is_right(inputs: str, body: str, opset: int) -> None:
    assert not infer_nodes(inputs, body, opset=opset).diagnostics


def test_a_slope_for_channels_is_kept_below_7() -> None:
    model = model_of(PRELU[0].format("3"), PRELU[1], opset=9)
    (node,) = splitgraph.downgrade(model, 6, verify=False).model.graph.node
    assert (node.op_type, [*node.input]) == ("PRelu", ["x", "s"])


THEN, ELSE = "t ({}) => (float[2] p) {{ p = Neg(x) }}", "e () => (float[2] q) {{ q = Abs(x) }}"
IF = f"y = If(c)<then_branch = {THEN}, else_branch = {ELSE}>"


@pytest.mark.parametrize(("given", "codes"), [("", []), ("float[2] z", ["SG302"])])
def test_a_branch_has_no_inputs(given: str, codes: list[str]) -> None:
    found = infer_nodes("float[2] x, bool c", IF.format(given)).diagnostics
    assert [each.code for each in found] == codes


def test_outputs_of_bodies_without_a_place() -> None:
    branch = "() => (float[2] {0}, float[2] {1}) {{ {0} = Neg(x) {1} = Abs(x) }}"
    body = f"y = If(c)<then_branch = t {branch.format('p', 'q')}, else_branch = e {branch.format('r', 's')}>"
    (found,) = infer_nodes("float[2] x, bool c", body).diagnostics
    assert (found.code, found.severity) == ("SG212", "warning")
