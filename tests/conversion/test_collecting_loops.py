"""Lists that loops collect, at opsets at which no loop carries a sequence: what is stacked, by execution, and what is
refused.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

import splitgraph
from splitgraph.verification.reference.evaluator import load, run

ROW = "m = Gather (x, i)"  # of dimensions 2, 3
ROWS = "v = Reshape (i, one) m = Gather (x, v)"  # of dimensions 1, 2, 3
GROWING = "v = Reshape (i, one) m = Slice (x, none, v)"  # of dimensions ?, 2, 3
APPEND = "t = SequenceInsert (s, m)"


def looping(
    member: str = ROW, after: str = "y = ConcatFromSequence <axis = 0, new_axis = 1> (q)", *, body: str = APPEND,
    before: str = "e = SequenceEmpty ()", carried: str = "seq(float[?, ?]) s", given: str = "seq(float[?, ?]) t",
    initial: str = "e", results: str = "q", outputs: str = "float[a, b, c] y",
) -> onnx.ModelProto:  # fmt: skip
    """A model at opset 17 of a loop over the first dimension of x."""
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
    g (float[N, 2, 3] x) => ({outputs})
    <int64 zero = {{0}}, bool yes = {{1}}, int64[1] one = {{1}}, int64[1] none = {{0}}> {{
        d = Shape (x)
        n = Gather (d, zero)
        {before}
        {results} = Loop (n, yes, {initial}) <body = b (int64 i, bool c, {carried}) => (bool k, {given}) {{
            k = Identity (c)
            {member}
            {body}
        }}>
        {after}
    }}""")
    onnx.checker.check_model(model, full_check=True)
    return model


TWO = {
    "before": """e = SequenceEmpty () f = SequenceEmpty ()
        start = Constant <value = float[2, 3] {1, 2, 3, 4, 5, 6}> ()""",
    "body": f"{APPEND} r = Neg (m) w = SequenceInsert (u, r) h = Add (g0, m)",
    "carried": "seq(float[?, ?]) s, float[2, 3] g0, seq(float[?, ?]) u",
    "given": "seq(float[?, ?]) t, float[2, 3] h, seq(float[?, ?]) w, float[2, 3] m",
    "initial": "e, start, f",
    "results": "q, total, p, all",
    "outputs": "float[a, b, c] y, float[a, b, c] z, float[2, 3] total, float[a, b, c] all",
}
STACKED = {
    "a new axis": looping(),
    "a new axis between": looping(after="y = ConcatFromSequence <axis = 1, new_axis = 1> (q)"),
    "a new last axis": looping(after="y = ConcatFromSequence <axis = -1, new_axis = 1> (q)"),
    "one of each along an axis": looping(ROWS, "y = ConcatFromSequence <axis = 0> (q)"),
    "several along an axis": looping(after="y = ConcatFromSequence <axis = 0> (q)", outputs="float[a, b] y"),
    "along the last axis": looping(after="y = ConcatFromSequence <axis = -1> (q)", outputs="float[a, b] y"),
    "between": looping(ROWS, "y = ConcatFromSequence <axis = 1> (q)"),
    "joined twice": looping(
        after="""y = ConcatFromSequence <axis = 1> (q)
        z = ConcatFromSequence <axis = 2, new_axis = 1> (q)""",
        outputs="float[a, b] y, float[a, b, c] z",
    ),
    "a member from outside": looping("", body="t = SequenceInsert (s, x)", outputs="float[a, b, c, d] y"),
    "two lists, a sum and a stack": looping(
        after="""y = ConcatFromSequence <axis = 0, new_axis = 1> (q)
        z = ConcatFromSequence <axis = 1, new_axis = 1> (p)""",
        **TWO,
    ),
    "a list that nobody reads": looping(after="y = Neg (x)"),
}
REFUSED = {
    "appended twice": looping(body="l = SequenceInsert (s, m) t = SequenceInsert (l, m)"),
    "inserted at a position": looping(body="t = SequenceInsert (s, m, zero)"),
    "read while it grows": looping(body=f"{APPEND} l = SequenceLength (s)"),
    "read as it has grown": looping(body=f"{APPEND} l = SequenceLength (t)"),
    "beginning with a member": looping(before="r = Gather (x, zero) e = SequenceConstruct (r)"),
    "members of different lengths": looping(GROWING, "y = ConcatFromSequence <axis = 0> (q)"),
    "read at a position": looping(after="y = SequenceAt (q, zero)", outputs="float[a, b] y"),
    "joined, and read at a position": looping(
        after="y = ConcatFromSequence <axis = 0> (q) z = SequenceAt (q, zero)", outputs="float[a, b] y, float[c, d] z"
    ),
    "an output": looping(after="", outputs="seq(float[?, ?]) q"),
}


@pytest.mark.parametrize("target", [7, 9, 11, 12])
@pytest.mark.parametrize("name", STACKED)
def test_a_list_that_is_only_collected_is_stacked(name: str, target: int) -> None:
    model = STACKED[name]
    rewrite = splitgraph.downgrade(model, target)
    onnx.checker.check_model(rewrite.model, full_check=True)
    assert not [node.op_type for node in rewrite.model.graph.node if "Sequence" in node.op_type]
    for count in (1, 4):
        feeds = {"x": np.random.default_rng(0).random((count, 2, 3), np.float32)}
        for before, after in zip(run(load(model), feeds), run(load(rewrite.model), feeds), strict=True):
            assert before.dtype == after.dtype
            np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", REFUSED)
def test_any_other_list_stays_a_list(name: str) -> None:
    with pytest.raises(splitgraph.ConversionError) as refusal:
        splitgraph.downgrade(REFUSED[name], 12)
    assert {found.code for found in refusal.value.diagnostics} == {"SG403"}
    assert all("Loop does not take a sequence" in found.message for found in refusal.value.diagnostics)


@pytest.mark.parametrize("target", [13, 14, 18])
def test_where_loops_carry_sequences_nothing_changes(target: int) -> None:
    model = STACKED["a new axis"]
    rewrite = splitgraph.downgrade(model, target) if target < 17 else splitgraph.upgrade(model, target)
    assert [node.op_type for node in rewrite.model.graph.node] == [node.op_type for node in model.graph.node]


def test_each_change_is_told_once() -> None:
    changes = splitgraph.downgrade(STACKED["a new axis"], 12).changes
    assert [(change.location, change.before, change.after) for change in changes] == [
        ("main/Loop#3", "Loop-16", "Loop"),
        ("main/ConcatFromSequence#4", "ConcatFromSequence-11", "Identity"),
    ]
