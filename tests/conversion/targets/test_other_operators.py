"""Nodes written in other ways at their own opset: which ways there are, in which order, and that they are exact."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import onnx
import onnx.parser
import pytest
from conformance.model_cases import ModelCase, opset_of
from conformance.opset_cases import WRAPS, Wrap, node_cases, operators_of, wrapped
from conformance.opset_judge import Judge, Verdict
from conversion.operators.execute import Array, assert_same, operators, run
from conversion.targets.other_operators import nth, rewritten, ways_of, written_of
from runtimes.models import model

from splitgraph.conversion.known_values import KnownValues
from splitgraph.conversion.plan import Replacement
from splitgraph.findings.diagnostics import ConversionError

# Inputs, and initializers.
Given = tuple[str, str]
X = "float[2, 7, 8] x"


def operator_of(body: str) -> str:
    return body.partition("(")[0].partition("<")[0]


def one(body: str, opset: int, data: str = X, more: str = "") -> onnx.ModelProto:
    return model(body, opset, 8, data, more)


NO_WAYS = {
    "shapes are equal": one("y0 = Add(x, x)", 18),
    "broadcasting comes back as it was": one("y0 = Add(x, z)", 18, "float[2, 3] x, float[3] z"),
    "one version has the meaning": one("y0 = Conv(x, w)", 18, "float[1, 2, 4, 4] x, float[3, 2, 2, 2] w"),
    "the axes come back as they were": one("y0 = ReduceMean(x, a)", 18, more="<int64[1] a = {1}>"),
    "the bounds come back as they were": one(
        "y0 = Slice(x, a, b, c)", 18, more="<int64[1] a = {0}, int64[1] b = {3}, int64[1] c = {1}>"
    ),
    "the shape comes back as it was": one("y0 = Reshape(x, s)", 18, "float[1, 3] x", "<int64[2] s = {3, 1}>"),
    "no older version": one("y0 = Transpose(x)", 18),
    "the body is newer": one("y0 = Relu(x)", 13),
    "the body overflows": one("y0 = Softplus(x)", 18),
    "the body overflows, and the axes come back": one("y0 = ReduceLogSumExp(x, a)", 18, more="<int64[1] a = {1}>"),
    "the body takes the root in float32": one("y0 = ReduceL2(x, a)", 18, "double[2, 7] x", "<int64[1] a = {1}>"),
    "splits have forms of their own": one("y0, y1 = Split<axis = 2, num_outputs = 2>(x)", 18),
    "a sequence is no split": one("q = SplitToSequence<axis = 1>(x) y0 = SequenceAt(q, i)", 18, f"{X}, int64 i"),
}


@pytest.mark.parametrize("given", NO_WAYS.values(), ids=NO_WAYS.keys())
def test_nodes_without_another_way(given: onnx.ModelProto) -> None:
    assert ways_of(given, "") == []
    rewrite = rewritten(given, nth(0))
    assert rewrite.model == given and rewrite.changes == ()


# The node, its opset, inputs and initializers, and the operators of each way.
WAYS: list[tuple[str, int, str, str, list[str]]] = [
    # Their functions, and what adapters write below the opset where an operator begins.
    ("LayerNormalization(x, s)", 17, f"{X}, float[8] s", "", ["ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul"]),
    # onnxruntime's own, which it had before onnx.
    ("LayerNormalization(x, s)", 16, f"{X}, float[8] s", "", ["ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul"]),
    ("Gelu(x)", 20, X, "", ["Div Erf Add Mul Mul"]),
    ("HardSwish(x)", 14, X, "", ["HardSigmoid Mul"]),
    ("HardSwish(x)", 22, X, "", ["HardSigmoid Mul"]),
    ("Mish(x)", 18, X, "", ["Softplus Tanh Mul"]),
    ("Swish(x)", 24, X, "", ["CastLike Mul Sigmoid Mul"]),
    ("Relu(x)", 18, X, "", ["CastLike Max"]),
    ("Celu(x)", 18, X, "", ["Div Elu Mul"]),
    ("CastLike(x, z)", 15, "float[2] x, float16[1] z", "", ["Cast"]),
    ("Trilu(x)", 18, X, "", ["Where"]),
    ("Expand(x, s)", 18, "float[1, 3] x", "<int64[2] s = {2, 3}>", ["Tile"]),
    ("Einsum<equation = 'ij,jk->ik'>(x, x)", 18, "float[3, 3] x", "", ["MatMul"]),
    # Older meanings.
    ("Clip(x, a)", 12, "int32[4] x", "<int32 a = {1}>", ["Less Where"]),
    ("Clip(x, a)", 13, "float[4] x", "<float a = {1}>", ["Clip", "Less Where"]),
    ("Softmax<axis = 1>(x)", 13, X, "", ["Transpose Softmax Transpose", "ReduceMax Sub Exp ReduceSum Div"]),
    ("ArgMax<axis = -1>(x)", 13, X, "", ["ArgMax"]),
    ("ArgMax<axis = 1, select_last_index = 1>(x)", 13, X, "", ["Slice ArgMax Sub"]),
    ("Shape<start = 1>(x)", 18, X, "", ["Shape Slice"]),
    ("Constant<value_ints = [1, 2]>()", 18, X, "", ["Constant", "Constant Cast"]),
    ("Resize<mode = 'nearest'>(x, n, s)", 18, "float[1, 1, 4, 4] x",
     "<float[0] n = {}, float[4] s = {1, 1, 2, 2}>", ["Resize"]),
    ("ScatterND<reduction = 'add'>(x, i, u)", 18, "float[4, 2] x, int64[1, 1] i, float[1, 2] u", "",
     ["Gather Gather GatherND Add ScatterND",
      "Gather Gather Reshape Gather Less Add Where Gather Add Gather Less Add Where Reshape Reshape Reshape Expand "
      "ScatterElements Reshape"]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "opset", "data", "more", "expected"), WAYS, ids=[f"{w[0]} {w[1]}" for w in WAYS])
def test_ways_in_their_order(body: str, opset: int, data: str, more: str, expected: Sequence[str]) -> None:
    given = one(f"y0 = {body}".replace("'", '"'), opset, data, more)
    assert [" ".join(written_of(way)) for way in ways_of(given, operator_of(body))] == expected


# Where nodes are ------------------------------------------------------------------------------------------------------

HEAD = '<ir_version: 9, opset_import: ["": 20, "local": 1]>'
IN_BRANCH = f"""{HEAD} g (float[4] x, bool c) => (float[N] y0) {{
  y0 = If(c) <then_branch = t () => (float[4] a) {{ a = Gelu(x) }}, else_branch = e () => (float[4] b) {{ b = Neg(x) }}>
}}"""
IN_LOOP = f"""{HEAD} g (float[4] x, int64 n, bool c) => (float[4] y0) {{
  y0 = Loop(n, c, x) <body = l (int64 i, bool go, float[4] v) => (bool again, float[4] w)
    {{ again = Identity(go) w = Gelu(v) }}>
}}"""
IN_FUNCTION = f"""{HEAD} g (float[4] x) => (float[4] y0) {{ h = local.F(x) y0 = local.F(h) }}
<opset_import: ["": 20], domain: "local"> F (x) => (y) {{ y = Gelu(x) }}"""
TWICE = f"""{HEAD} g (float[4] x) => (float[4] y0) {{ h = Gelu(x) y0 = Gelu(h) }}"""


@pytest.mark.parametrize(
    "text", [IN_BRANCH, IN_LOOP, IN_FUNCTION, TWICE], ids=["branch", "loop", "function", "two in a row"]
)
def test_nodes_in_every_graph(text: str) -> None:
    before = onnx.parser.parse_model(text)
    rewrite = rewritten(before, nth(0), "Gelu")
    after = rewrite.model
    onnx.checker.check_model(after, full_check=True)
    assert "Gelu" not in operators_of(after) and "Gelu" in operators_of(before)
    assert opset_of(after) == 20
    feeds: dict[str, Array] = {"x": np.array([-2, -0.5, 0, 3], np.float32), "c": np.array(True), "n": np.array(3)}
    feeds = {value.name: feeds[value.name] for value in before.graph.input}
    assert_same(run(before, feeds), run(after, feeds), 1e-6)
    assert rewrite.rounding
    assert {(change.before, change.why) for change in rewrite.changes} == {
        ("Gelu-20", "it is not read: written as below opset 20")
    }


def test_the_node_keeps_its_name_and_all_names_are_new() -> None:
    before = onnx.parser.parse_model(TWICE)
    for index, node in enumerate(before.graph.node):
        node.name = f"gelu{index}"
    after = rewritten(before, nth(0), "Gelu").model
    names = [node.name for node in after.graph.node]
    assert names.count("gelu0") == names.count("gelu1") == 1 and len(set(names)) == len(names)
    values = [name for node in after.graph.node for name in node.output] + [t.name for t in after.graph.initializer]
    assert len(set(values)) == len(values)


def test_an_input_that_some_call_omits_is_left_alone() -> None:
    before = onnx.parser.parse_model(f"""{HEAD} g (float[4] x, float s) => (float[4] y0) {{
      h = local.F(x, s) y0 = local.F(h)
    }} <opset_import: ["": 20], domain: "local"> F (x, s) => (y) {{ y = Clip(x, s) }}""")
    assert ways_of(before, "Clip") == []


def test_equal_nodes_become_what_the_first_of_them_became() -> None:
    """How often a way is asked for: once for equal nodes, which differ in names only."""
    text = f"{HEAD} g (float[4] x) => (float[4] y0) {{ a = Mish(x) b = Gelu(a) c = Mish(b) d = Gelu(c) y0 = Gelu(d) }}"
    asked = []

    def choose(ways: Iterator[Replacement], _: KnownValues) -> Replacement | None:
        way = next(ways)
        asked.append(written_of(way))
        return way if "Erf" in written_of(way) else None

    after = rewritten(onnx.parser.parse_model(text), choose).model
    # Refusals are remembered, too.
    assert sorted(way[0] for way in asked) == ["Div", "Softplus"]
    assert operators(after).count("Erf") == 3 and operators(after).count("Mish") == 2


def test_the_types_of_all_values_are_known_to_who_chooses() -> None:
    found = {}

    def choose(ways: Iterator[Replacement], values: KnownValues) -> Replacement | None:
        way = next(ways)
        found.update({name: values.type_of(name).dtype for node in way.nodes or () for name in node.outputs})
        return way

    rewritten(one("y0 = Clip(x, a)", 13, "int32[4] x, int32 a"), choose)
    assert set(found.values()) == {"bool", "int32"}


# Other element types --------------------------------------------------------------------------------------------------

NUMBERS = {
    "int8": [-128, -3, 0, 127],
    "uint8": [0, 3, 128, 255],
    "int32": [-(2**31), -3, 0, 2**31 - 1],
    "float16": [-2.5, 0, 1.5, 9],
}
# The node, the type of its inputs, the types that it may have, and the operators of the first way.
TYPES: list[tuple[str, str, Collection[str], str]] = [
    ("Add(x, x)", "int8", ("int32", "int64"), "Cast Add Cast"),
    ("Add(x, x)", "int8", ("int64",), "Cast Add Cast"),
    ("Mul(x, x)", "uint8", ("int32", "float32"), "Cast Mul Cast"),
    ("Mul(x, x)", "int32", ("int64",), "Cast Mul Cast"),
    ("Max(x, x)", "int8", ("float32",), "Cast Max Cast"),
    ("Equal(x, x)", "uint8", ("int32",), "Cast Equal"),
    ("Sqrt(x)", "float16", ("float32",), "Cast Sqrt Cast"),
    # The indices are no longer those of int64 in the model: their elements are known.
    ("Gather(x, i)", "int32", ("int32",), "Gather"),
    ("Gather(x, i)", "uint8", ("int32",), "Cast Gather Cast"),
]
NO_TYPES: list[tuple[str, str, Collection[str]]] = [
    # Allowed as it is.
    ("Add(x, x)", "int8", ("int8", "int32")),
    # A sum of integers wraps around, and one of floats does not.
    ("Add(x, x)", "int32", ("float32", "float64")),
    ("Add(x, x)", "int32", ("int8",)),
    # The elements are known at run time only.
    ("Gather(x, j)", "int32", ("int32",)),
    # No type is known to be exact.
    ("MatMulInteger(x, x)", "int8", ("int32",)),
]


def typed(body: str, dtype: str) -> onnx.ModelProto:
    shape = "[2, 2]" if "MatMul" in body else "[4]"
    return one(f"y0 = {body}", 14, f"{dtype}{shape} x, int64[2] j", "<int64[2] i = {0, -1}>")


@pytest.mark.parametrize(("body", "dtype", "types", "expected"), TYPES)
def test_nodes_in_another_type(body: str, dtype: str, types: Collection[str], expected: str) -> None:
    before = typed(body, dtype)
    after = rewritten(before, nth(0), operator_of(body), types).model
    assert " ".join(operators(after)) == expected
    feeds = {"x": np.array(NUMBERS[dtype], dtype), "j": np.array([0, 1])}
    if body.startswith("Sqrt"):
        feeds["x"] = abs(feeds["x"])
    x = feeds["x"]
    with np.errstate(over="ignore", invalid="ignore"):
        result = {
            "Add": x + x, "Mul": x * x, "Max": x, "Equal": x == x, "Sqrt": np.sqrt(x), "Gather": x[[0, -1]],
        }[operator_of(body)]  # fmt: skip
    assert_same([result], run(after, feeds))


@pytest.mark.parametrize(("body", "dtype", "types"), NO_TYPES)
def test_nodes_without_another_type(body: str, dtype: str, types: Collection[str]) -> None:
    before = typed(body, dtype)
    whys = [way.why for way in ways_of(before, operator_of(body), types)]
    assert "computed in another element type" not in whys


# Every node test of onnx ----------------------------------------------------------------------------------------------

# onnxruntime refuses a function with an input of these types that nothing reads any more.
UNREAD_IN_ONNXRUNTIME = "FLOAT8"
MOST_WAYS = 12
# How many ways there are at least for one case. Few of the nodes that refer to attributes of a function have any.
LEAST: dict[Wrap, float] = {"none": 0.5, "if": 0.5, "function": 0.5, "references": 0.05, "constants": 0.3}
# Operators that every node test of them can do without.
NAMES = (
    "AffineGrid Attention Bernoulli BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow CastLike "
    "CausalConvWithState Celu CenterCropPad Clip Col2Im ConstantOfShape ConvInteger CumProd CumSum DFT DeformConv "
    "DepthToSpace Det DynamicQuantizeLinear Elu Expand EyeLike GatherElements GatherND Gelu GreaterOrEqual GridSample "
    "GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish IsInf IsNaN LayerNormalization LeakyRelu "
    "LessOrEqual LinearAttention LogSoftmax MatMulInteger MeanVarianceNormalization MelWeightMatrix Mish Mod "
    "NegativeLogLikelihoodLoss NonMaxSuppression PRelu Pad QLinearConv QLinearMatMul RMSNormalization Range ReduceL1 "
    "ReduceL2 ReduceLogSum ReduceSumSquare Relu RotaryEmbedding Round STFT ScatterND Selu SequenceMap Shrink Sign "
    "Slice Softmax SoftmaxCrossEntropyLoss Softsign SpaceToDepth Squeeze SwiGLU Swish TensorScatter ThresholdedRelu "
    "Trilu Unsqueeze Where"
)
DISPENSABLE = frozenset(NAMES.split())


def judged(case: ModelCase) -> dict[str, Verdict]:
    """What became of a case in each of the ways, by the operators of the model."""
    judge, verdicts = Judge(case), dict[str, Verdict]()
    for place in range(MOST_WAYS):
        try:
            rewrite = rewritten(case.model, nth(place))
        except ConversionError:
            # Where an attribute refers to one that a Constant cannot refer to, the model is wrong before.
            break
        if not rewrite.changes:
            break
        written = f"{place}: {' '.join(sorted(operators_of(rewrite.model)))}"
        opset = opset_of(case.model)
        assert opset is not None
        verdicts[written] = judge.judge_rewritten(rewrite.model, opset, atol=rewrite.tolerance.atol)
    return verdicts


def faults(cases: Sequence[ModelCase], wrap: Wrap) -> list[str]:
    """What is not equal: one line for each. Some must have been written otherwise."""
    found, count = [], 0
    for plain in cases:
        case = wrapped(plain, wrap)
        if case is None or (wrap == "function" and UNREAD_IN_ONNXRUNTIME in case.name):
            continue
        verdicts = judged(case)
        count += len(verdicts)
        found += [
            f"{verdict.status} {case.name} {written}: {verdict.detail}"
            for written, verdict in verdicts.items()
            if verdict.status != "equal"
        ]
    assert count > len(cases) * LEAST[wrap]
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
def test_some_node_tests() -> None:
    assert faults(node_cases()[::50], "none") == []


@pytest.mark.slow
def test_more_node_tests() -> None:
    assert faults(node_cases()[1::3], "none") == []


@pytest.mark.slow
@pytest.mark.parametrize("wrap", WRAPS[1:])
def test_node_tests_in_other_places(wrap: Wrap) -> None:
    assert faults(node_cases()[::20], wrap) == []


def dispensable(cases: Sequence[ModelCase]) -> tuple[set[str], set[str]]:
    """The operators of cases with one node: those that some way of each case does without, and all others."""
    without, kept = set[str](), set[str]()
    for case in cases:
        nodes = case.model.graph.node
        if len(nodes) == 1 and nodes[0].op_type in DISPENSABLE:
            operator = nodes[0].op_type
            is_gone = any(operator not in written_of(way) for way in ways_of(case.model, operator))
            (without if is_gone else kept).add(operator)
    return without - kept, kept


def test_some_operators_are_dispensable() -> None:
    without, kept = dispensable(node_cases()[::10])
    assert kept == set() and len(without) > len(DISPENSABLE) / 3


@pytest.mark.slow
@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 28, reason="some operators are of opsets 27 and 28")
def test_operators_are_dispensable() -> None:
    assert dispensable(node_cases()) == (DISPENSABLE, set())
