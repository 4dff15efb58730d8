"""Whether two nodes do the same: operators and their versions, inputs, attributes, bodies and functions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from splitgraph.formats.constants import UnknownFolder
from splitgraph.model.scopes import reads
from splitgraph.verification.regions.finding.equal_versions import means_same
from splitgraph.verification.regions.finding.sameness import Sameness

from ...small_models import parsed
from ..model_pairs import Pair

LINE = "float[N] x => float[N] y"
CHOICE = (
    "y = If(g) <then_branch = t () => (float[N] {0}) {{ {1} }}, else_branch = e () => (float[N] b) {{ b = Neg(x) }}>"
)
CHOOSING = "bool g, float[N] x, float[N] v => float[N] y"
SCAN = (
    "float[M, N] x => float[M, N] y",
    "y = Scan(x) <num_scan_inputs = 1, body = b (float[N] {0}) => (float[N] {1}) {{ {1} = {2}({0}) }}>",
)
CALL = '<opset_import: ["": {0}], domain: "local"> f ({1}) => (b) {{ {2} }}'
TIMES = "k = Constant<value_float = 2.0>() b = Mul(a, k)"

# Pairs whose last nodes do the same, where values of one name are the same.
SAME = {
    "the same": Pair(LINE, "y = Neg(x)", "y = Neg(x)"),
    "an omitted input at the end": Pair("float[N] x => float[N] y", "y = Clip(x)", "y = Clip(x, , )"),
    "attributes in another order": Pair(
        LINE, "y = HardSigmoid<alpha = 0.3, beta = 0.4>(x)", "y = HardSigmoid<beta = 0.4, alpha = 0.3>(x)"
    ),
    "versions of one meaning": Pair(LINE, "y = Relu(x)", "y = Relu(x)", opset=6, opset_after=14),
    "other names in a body": Pair(CHOOSING, CHOICE.format("a", "a = Abs(x)"), CHOICE.format("q", "q = Abs(x)")),
    "other names of inputs of a body": Pair(SCAN[0], SCAN[1].format("r", "s", "Neg"), SCAN[1].format("p", "q", "Neg")),
    "a function": Pair(
        LINE, "y = local.f(x)", "y = local.f(x)", functions=(CALL.format(18, "a", TIMES), CALL.format(18, "a", TIMES))
    ),
    "a function with other names": Pair(
        LINE,
        "y = local.f(x)",
        "y = local.f(x)",
        functions=(
            CALL.format(18, "a", TIMES),
            CALL.format(18, "p", "q = Constant<value_float = 2.0>() b = Mul(p, q)"),
        ),
    ),
    "a function of another opset of one meaning": Pair(
        LINE, "y = local.f(x)", "y = local.f(x)", functions=(CALL.format(18, "a", TIMES), CALL.format(19, "a", TIMES))
    ),
}
OTHER = {
    "another operator": Pair(LINE, "y = Neg(x)", "y = Abs(x)"),
    "another domain": Pair(LINE, "y = Neg(x)", "y = local.Neg(x)"),
    "another input": Pair("float[N] x, float[N] v => float[N] y", "y = Neg(x)", "y = Neg(v)"),
    "an omitted input": Pair("float[N] x, float v => float[N] y", "y = Clip(x, v)", "y = Clip(x, , v)"),
    "fewer outputs": Pair(LINE, "y, m = Dropout(x)", "y = Dropout(x)"),
    "another attribute": Pair(LINE, "y = Elu<alpha = 0.5>(x)", "y = Elu<alpha = 0.25>(x)"),
    "versions of other meanings": Pair(LINE, "y = Softmax(x)", "y = Softmax(x)", opset=12, opset_after=13),
    "another body": Pair(CHOOSING, CHOICE.format("a", "a = Abs(x)"), CHOICE.format("a", "a = Exp(x)")),
    "another outer value in a body": Pair(CHOOSING, CHOICE.format("a", "a = Abs(x)"), CHOICE.format("a", "a = Abs(v)")),
    "more nodes in a body": Pair(
        CHOOSING, CHOICE.format("a", "a = Abs(x)"), CHOICE.format("a", "p = Abs(x) a = Abs(p)")
    ),
    "another weight in a body": Pair(
        CHOOSING,
        CHOICE.format("a", "k = Constant<value_float = 2.0>() a = Mul(x, k)"),
        CHOICE.format("a", "k = Constant<value_float = 3.0>() a = Mul(x, k)"),
    ),
    "an outer value that a body hides": Pair(
        CHOOSING, CHOICE.format("a", "v = Abs(x) a = Neg(v)"), CHOICE.format("a", "p = Abs(x) a = Neg(v)")
    ),
    "another function": Pair(
        LINE,
        "y = local.f(x)",
        "y = local.f(x)",
        functions=(CALL.format(18, "a", TIMES), CALL.format(18, "a", TIMES.replace("2.0", "3.0"))),
    ),
    "a function of one model alone": Pair(
        LINE, "y = local.f(x)", "y = local.f(x)", functions=(CALL.format(18, "a", TIMES), "")
    ),
    "a function of another opset": Pair(
        LINE,
        "y = local.f(x)",
        "y = local.f(x)",
        functions=(CALL.format(12, "a", "b = Softmax(a)"), CALL.format(13, "a", "b = Softmax(a)")),
    ),
}


@pytest.mark.parametrize("name", SAME | OTHER)
def test_nodes_that_do_the_same(name: str) -> None:
    before, after = (SAME | OTHER)[name].models()
    sameness = Sameness(before, after, (UnknownFolder(), UnknownFolder()))
    nodes = before.graph.node[-1], after.graph.node[-1]
    for _ in range(2):  # the second time from what is known of functions
        assert sameness.are_same(*nodes, lambda one, other: one == other) is (name in SAME)
    if nodes[0].input[0]:
        assert not sameness.are_same(*nodes, lambda one, other: False)


# Operators at two opsets.
MEANINGS: list[tuple[str, str, int | None, int | None, bool]] = [
    ("", "Relu", 6, 14, True),
    ("ai.onnx", "Relu", 6, 14, True),
    ("", "Relu", 14, 6, True),
    ("", "Add", 7, 13, True),
    # The documentation says more at opset 14 (see test_equal_versions).
    ("", "Add", 13, 14, True),
    ("", "Add", 6, 7, False),
    ("", "Softmax", 12, 13, False),
    ("", "Split", 13, 18, False),
    ("", "Unheard", 13, 18, False),
    ("", "Relu", None, 14, False),
    ("ai.onnx.ml", "Scaler", 1, 3, True),
    ("mine", "Unheard", 1, 2, True),
    ("mine", "Unheard", None, 2, False),
]


@pytest.mark.parametrize(("domain", "op_type", "one", "other", "expected"), MEANINGS)
def test_versions_that_mean_the_same(
    domain: str, op_type: str, one: int | None, other: int | None, expected: bool
) -> None:
    assert means_same(onnx.NodeProto(op_type=op_type, domain=domain), [one, other]) is expected


def tensor(elements: object, dtype: str = "float32", *, is_raw: bool = True) -> onnx.TensorProto:
    array = np.asarray(elements, dtype)
    kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    content = array.tobytes() if is_raw else array.ravel().tolist()
    return onnx.helper.make_tensor("t", kind, array.shape, content, raw=is_raw)


TENSORS = {
    "typed and raw data": (tensor([1, 2]), tensor([1, 2], is_raw=False), True),
    "another element": (tensor([1, 2]), tensor([1, 3]), False),
    "another shape": (tensor([1, 2]), tensor([[1, 2]]), False),
    "another type": (tensor([1, 2]), tensor([1, 2], "float64"), False),
    "NaN": (tensor([np.nan]), tensor([np.nan]), True),
    "-0.0": (tensor([0.0]), tensor([-0.0]), False),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_that_are_the_same(name: str) -> None:
    one, other, expected = TENSORS[name]
    model = parsed(LINE, "y = Neg(x)")
    assert Sameness(model, model, (UnknownFolder(), UnknownFolder())).same_tensors(one, other) is expected


READ = {
    "inputs": (parsed("float[N] x, float v => float[N] y", "y = Clip(x, , v)"), ["v", "x"]),
    "a body": (parsed(CHOOSING, CHOICE.format("a", "p = Abs(x) a = Mul(p, v)")), ["g", "v", "x", "x"]),
    "an outer value as output of a body": (parsed(CHOOSING, CHOICE.format("v", "p = Abs(x)")), ["g", "v", "x", "x"]),
    "inputs of a body": (parsed(SCAN[0], SCAN[1].format("r", "s", "Neg")), ["x"]),
    "a body in a body": (
        parsed(CHOOSING, CHOICE.format("a", CHOICE.format("c", "c = Abs(v)").replace("y = If", "a = If"))),
        ["g", "g", "v", "x", "x"],
    ),
}


@pytest.mark.parametrize("name", READ)
def test_what_a_node_reads(name: str) -> None:
    model, names = READ[name]
    # An omitted input has the name "".
    assert sorted(filter(None, reads(model.graph.node[-1]))) == names
