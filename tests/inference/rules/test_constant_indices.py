"""Constant indices: an error for a dimension that is too small, a requirement for a named one, nothing in range."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from node_models import infer_nodes, model_of
from onnx import helper, parser

import splitgraph

# Nodes with `i` as indices into the dimension T of `x`; what they require; another dimension that is too small.
INDICES = [
    ("float[1,T,4] x", "int64 i = {6}", "y = Gather<axis=1>(x, i)", 7),
    ("float[1,T,4] x", "int64[1] i = {-6}", "y = Gather<axis=1>(x, i)", 6),
    ("float[1,T,4] x", "int32[2] i = {0, 5}", "y = Gather<axis=-2>(x, i)", 6),
    ("float[T] x", "int64[2,2] i = {0, -1, 6, -3}", "y = Gather(x, i)", 7),
    ("float[1,T,4] x", "int64[1,1,4] i = {6, 0, 0, 0}", "y = GatherElements<axis=1>(x, i)", 7),
    ("float[1,T,4] x", "int64[1,2,1] i = {0, -7}", "y = GatherElements<axis=-2>(x, i)", 7),
    ("float[1,T,4] x", "int64[1,2] i = {0, 6}", "y = GatherND(x, i)", 7),
    ("float[2,T,4] x", "int64[2,1] i = {-8, 1}", "y = GatherND<batch_dims=1>(x, i)", 8),
    ("float[1,T,4] x, float[1,4] u", "int64[1,2] i = {0, 6}", "y = ScatterND(x, i, u)", 7),
    ("float[T,4] x, float[1,4] u", "int64[1,1] i = {-6}", 'y = ScatterND<reduction="add">(x, i, u)', 6),
    ("float[1,T,4] x, float[1,1,1] u", "int64[1,1,1] i = {6}", "y = ScatterElements<axis=1>(x, i, u)", 7),
    ("float[T,4] x", "int64[1] i = {6}", "y, z = TopK<axis=0>(x, i)", 6),
    ("float[T,2] c, float[1,2,2,4] x, float[T,2] s", "int64[1,2] i = {0, 6}", "y = RotaryEmbedding(x, c, s, i)", 7),
    ("float[3,T] x", "int64[3] i = {0, 6, 255}", "y = NegativeLogLikelihoodLoss<ignore_index=255>(x, i)", 7),
    ("float[3,T] x", "int64[3] i = {0, 1, -7}", "y, z = SoftmaxCrossEntropyLoss(x, i)", 7),
]
IDS = [f"{body} of {constants}" for _, constants, body, _ in INDICES]


@pytest.mark.parametrize(("inputs", "constants", "body", "least"), INDICES, ids=IDS)
def test_a_named_dimension_must_be_so_large(inputs: str, constants: str, body: str, least: int) -> None:
    found = infer_nodes(inputs, body, constants=constants, opset=23)
    assert (found.ok, [str(each) for each in found.obligations]) == (True, [f"T >= {least}"])


@pytest.mark.parametrize(("inputs", "constants", "body", "least"), INDICES, ids=IDS)
def test_a_known_dimension_is_too_small_or_not(inputs: str, constants: str, body: str, least: int) -> None:
    for size, runs in ((least - 1, False), (least, True)):
        model = model_of(inputs.replace("T", str(size)), body, constants=constants, opset=23)
        found = splitgraph.infer(model)
        assert (found.ok, list(found.obligations)) == (runs, [])
        assert [each.code for each in found.diagnostics] == [] if runs else ["SG302"]
        assert _runs(model) == runs


def _runs(model: object) -> bool:
    model.graph.output.append(helper.make_empty_tensor_value_info("y"))  # type: ignore[attr-defined]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)  # type: ignore[attr-defined]
        session.run(None, {given.name: np.zeros(given.shape, np.float32) for given in session.get_inputs()})
    except Exception:  # onnxruntime's errors have no common base of their own
        return False
    return True


NOTHING_REQUIRED = [
    # No index, no element, or an index that is not constant.
    ("float[T] x", "int64[0] i = {}", "y = Gather(x, i)"),
    ("float[T,2] x, float[0,2] u", "int64[0,1] i = {}", "y = ScatterND(x, i, u)"),
    ("float[T,2] x, float[0,2] u", "int64[0,2] i = {}", "y = ScatterElements(x, i, u)"),
    ("float[T,0] x", "int64[1,1] i = {6}", "y = GatherND(x, i)"),
    ("float[T] x, int64[2] i", "", "y = Gather(x, i)"),
    # These are bounds, counts, or what another value says beyond the end.
    ("float[T] x", "int64[1] s = {6}, int64[1] e = {9}", "y = Slice(x, s, e)"),
    ("int64[T] x", "int64 d = {3}, float[2] v = {0, 1}", "y = OneHot(x, d, v)"),
    ("float[T] x", "bool[3] c = {1, 0, 1}", "y = Compress(x, c)"),
    ("float[T,T] x", "int64 k = {6}", "y = Trilu(x, k)"),
]


@pytest.mark.parametrize(("inputs", "constants", "body"), NOTHING_REQUIRED, ids=[row[2] for row in NOTHING_REQUIRED])
def test_nothing_is_required(inputs: str, constants: str, body: str) -> None:
    found = infer_nodes(inputs, body, constants=constants)
    assert (found.diagnostics, list(found.obligations)) == ((), [])


TOLERATED = [
    ("float[5,2] x", "int64[2] l = {6, 1}", "y = ReverseSequence(x, l)", "the length 6; it must be at most 5"),
    ("float[5,2] x", "int64[2] l = {-1, 1}", "y = ReverseSequence(x, l)", "the length -1; no length is below 0"),
    (
        "float[5,1,2] x, float[1,3,2] w, float[1,3,3] r",
        "int32[1] l = {7}",
        'y = RNN<hidden_size=3>(x, w, r, "", l)',
        "the length 7; it must be at most 5",
    ),
    ("float[1,1,4,4] x, float[1,4] r", "int64[1] b = {1}", "y = RoiAlign(x, r, b)", "it must be in the batch of 1"),
]


@pytest.mark.parametrize(("inputs", "constants", "body", "said"), TOLERATED, ids=[row[3] for row in TOLERATED])
def test_what_some_engines_run_is_a_warning(inputs: str, constants: str, body: str, said: str) -> None:
    found = infer_nodes(inputs, body, constants=constants)
    assert [each.severity for each in found.diagnostics] == ["warning"]
    assert said in found.diagnostics[0].message


LENGTHS = [
    ("float[T,2] x", "int64[2] l = {6, 1}", "y = ReverseSequence(x, l)", ["T >= 6"]),
    ("float[T,2] x", "int64[2] l = {-1, 1}", "y = ReverseSequence(x, l)", []),
    (
        "float[T,1,2] x, float[1,3,2] w, float[1,3,3] r",
        "int32[1] l = {7}",
        'y = RNN<hidden_size=3>(x, w, r, "", l)',
        ["T >= 7"],
    ),
]


@pytest.mark.parametrize(("inputs", "constants", "body", "required"), LENGTHS, ids=[row[2] for row in LENGTHS])
def test_a_named_dimension_holds_the_lengths(inputs: str, constants: str, body: str, required: list[str]) -> None:
    found = infer_nodes(inputs, body, constants=constants)
    assert (found.ok, [str(each) for each in found.obligations]) == (True, required)


TAKEN = "i = Constant<value_ints=[6]>() t = Gather<axis=0>(x, i)"
REDUCED = "= ReduceSum<keepdims=0>(t)"
IF = (
    "y = If(c) <then_branch = a () => (float[] p) {{ {} p "
    + REDUCED
    + " }}, else_branch = b () => (float[] q) {{ {} q "
)
IF += REDUCED + " }}>"
LOOP = (
    "z = Constant<value = float {{0}}>() y = Loop ({}, , z) <body = l (int64 k, bool d, float a) => (bool e, float b) "
    "{{ e = Identity(d) " + TAKEN + " s " + REDUCED + " b = Add(a, s) }}>"
)
SCAN = f"y = Scan<num_scan_inputs=1, body = l (float[2] e) => (float b) {{ {TAKEN} b {REDUCED} }}>(s)"
THREE = "n = Constant<value = int64 {3}>() "
# (inputs, body, which may not run)
BODIES = [
    ("bool c, float[5] x", IF.format(TAKEN, "t = Relu(x)"), True),
    ("bool c, float[5] x", IF.format("t = Relu(x)", TAKEN), True),
    ("bool c, float[5] x", IF.format(TAKEN, TAKEN), False),
    ("bool c, float[7] x", IF.format(TAKEN, TAKEN), None),
    ("int64 n, float[5] x", LOOP.format("n"), True),
    ("float[5] x", THREE + LOOP.format("n"), False),
    ("float[5] x, float[N,2] s", SCAN, True),
    ("float[5] x, float[3,2] s", SCAN, False),
    ("float[7] x, float[3,2] s", SCAN, None),
]


@pytest.mark.parametrize(("inputs", "body", "may_not_run"), BODIES)
def test_a_body_that_may_not_run(inputs: str, body: str, may_not_run: bool | None) -> None:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => (float[] y) {{ {body} }}')
    found = splitgraph.infer(model)
    assert found.ok == (may_not_run is not False)
    codes = {None: set(), True: {"SG306"}, False: {"SG302"}}[may_not_run]
    assert {each.code for each in found.diagnostics} - {"SG301"} == codes
