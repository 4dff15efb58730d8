"""What a Loop makes of the dimensions that it carries: kept, grown by as much in each iteration, or lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest

import splitgraph
from splitgraph.dim import Dim, evaluate
from splitgraph.inference.walk import Walk

# (name, inputs of the model, trip count, condition of the body, nodes of the body from `held` to `made`, its result)
LOST = [
    ("doubles", "float[N,3] x, float[K,3] more, int64 n", "n", "going", "made = Concat<axis=0>(held, held)", None),
    (
        "run-time-trips",
        "float[N,3] x, float[K,3] more, int64 n",
        "n",
        "going",
        "made = Concat<axis=0>(held, more)",
        None,
    ),
    (
        "may-stop",
        "float[N,3] x, float[K,3] more, bool stop",
        "three",
        "stop",
        "made = Concat<axis=0>(held, more)",
        None,
    ),
    (
        "grows-by-what-it-computes",
        "float[N,3] x, float[K,3] more",
        "three",
        "going",
        "n = NonZero(held) rows = Transpose(n) f = Cast<to=1>(rows) w = Constant<value = float[2,3] {1,1,1,1,1,1}>() "
        "g = MatMul(f, w) made = Concat<axis=0>(held, g)",
        None,
    ),
]
KNOWN = [
    ("kept", "float[N,3] x, float[K,3] more", "three", "going", "made = Relu(held)", "float32[N, 3]"),
    (
        "by-a-number",
        "float[N,3] x, float[2,3] more",
        "three",
        "going",
        "made = Concat<axis=0>(held, more)",
        "float32[N + 6, 3]",
    ),
    (
        "by-a-symbol",
        "float[N,3] x, float[K,3] more",
        "three",
        "going",
        "made = Concat<axis=0>(held, more)",
        "float32[3*K + N, 3]",
    ),
    (
        "no-iteration",
        "float[N,3] x, float[K,3] more",
        "none",
        "going",
        "made = Concat<axis=0>(held, more)",
        "float32[N, 3]",
    ),
    (
        "symbolic-trips",
        "float[N,3] x, float[K,3] more",
        "rows",
        "going",
        "made = Concat<axis=0>(held, more)",
        "float32[K*N + N, 3]",
    ),
]


def build(inputs: str, trips: str, condition: str, body: str) -> onnx.ModelProto:
    graph = f"""<ir_version: 8, opset_import: ["" : 17]>
g ({inputs}) => (y)
<int64 three = {{3}}, int64 none = {{0}}, int64[1] axis = {{0}}, bool yes = {{1}}>
{{
    shape = Shape<start=0, end=1>(x)
    rows = Squeeze(shape, axis)
    y = Loop({trips}, yes, x) <body = b (int64 i, bool going, float[rows_held, 3] held) =>
        (bool on, float[rows_made, 3] made) {{
        on = Identity({condition})
        {body}
    }}>
}}"""
    return onnx.parser.parse_model(graph)


@pytest.mark.parametrize("case", [*LOST, *KNOWN], ids=lambda case: case[0])
def test_the_shape_after_the_loop(case: tuple[str, str, str, str, str, str | None]) -> None:
    _, inputs, trips, condition, body, expected = case
    analysis = splitgraph.infer(build(inputs, trips, condition, body))
    assert analysis.ok, analysis.diagnostics
    assert str(analysis.types["y"]) == (expected or "float32[?, 3]")


@pytest.mark.parametrize("sizes", [{"N": 2, "K": 3}, {"N": 4, "K": 1}, {"N": 1, "K": 5}], ids=str)
@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case[0])
def test_it_is_the_shape_that_runs(case: tuple[str, str, str, str, str, str | None], sizes: Mapping[str, int]) -> None:
    _, inputs, trips, condition, body, _ = case
    model = build(inputs, trips, condition, body)
    known = splitgraph.infer(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    shapes = {name: known.types[name].shape or () for name in ("x", "more", "y")}
    at = {name: [evaluate(d, sizes) if isinstance(d, Dim) else d for d in shape] for name, shape in shapes.items()}
    (made,) = session.run(["y"], {held.name: np.ones(at[held.name], np.float32) for held in session.get_inputs()})
    assert list(made.shape) == at["y"]


CARELESS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N,3] x, float[K,3] m) => (y, z)
<int64 three = {3}, bool yes = {1}>
{
    y, z = Loop(three, yes, m, x) <body = b (int64 i, bool going, float[N,3] one, float[held,3] other) =>
        (bool on, float[N,3] more, float[K,3] further) {
        on = Identity(going)
        more = Concat<axis=0>(one, one)
        further = Concat<axis=0>(other, other)
    }>
}"""
OWN_IDENTITY = """<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
g (float[N,3] x, float[K,3] m) => (y, rows)
<int64 three = {3}, bool yes = {1}>
{
    y, rows = Loop(three, yes, m) <body = b (int64 i, bool going, float[held,3] one) =>
        (bool on, float[made,3] more, int64 row) {
        on = my.Identity(going)
        more = Concat<axis=0>(one, x)
        row = Identity(i)
    }>
}
<domain: "my", opset_import: ["" : 17]>
Identity (a) => (b) { b = Not(a) }"""


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        # In the body `N` is declared for what is not the model's N after the first iteration.
        (CARELESS, "y", "float32[?, 3]"),
        (CARELESS, "z", "float32[?, 3]"),
        # Ends after one iteration.
        (OWN_IDENTITY, "y", "float32[?, 3]"),
        (OWN_IDENTITY, "rows", "int64[?]"),
    ],
)
def test_what_names_suggest_is_not_believed(text: str, name: str, expected: str) -> None:
    analysis = splitgraph.infer(onnx.parser.parse_model(text))
    assert analysis.ok, analysis.diagnostics
    assert str(analysis.types[name]) == expected


COUNTED = """<ir_version: 8, opset_import: ["" : 13]>
g (float[4,3] x, int64 n, GIVEN yes) => (float[K,3] y)
{
    y = Loop(n, yes) <body = b (NUMBER i, CONDITION going) => (CONDITION on, float[3] row) {
        on = Identity(going)
        at = Constant<value_ints = [1]>()
        number = Reshape(i, at)
        part = Gather<axis = 0>(x, number)
        row = Squeeze(part)
    }>
}"""


@pytest.mark.parametrize(
    ("number", "condition", "given", "known", "codes"),
    [
        ("int64[2]", "bool", "bool", "int64[1]", ["SG301"]),
        ("int64[1, 1]", "bool", "bool", "int64[]", ["SG301"]),
        ("float[1]", "bool", "bool", "int64[1]", ["SG301"]),
        # The condition and the result, which is that of the first iteration.
        ("int64", "bool[1]", "bool", "int64[]", ["SG301", "SG301"]),
        ("int64", "bool", "bool", "int64[]", []),
        # As converters from TensorFlow write it.
        ("int64[1]", "bool", "bool", "int64[1]", []),
        ("int64[K]", "bool", "bool", "int64[1]", []),
        ("int64[1]", "bool[1]", "bool[1]", "int64[1]", []),
    ],
)
def test_an_iteration_number_and_a_condition_of_one_element(
    number: str, condition: str, given: str, known: str, codes: list[str]
) -> None:
    """A vector of one element is passed where the body declares one, as onnxruntime does, and is no contradiction."""
    text = COUNTED.replace("NUMBER", number).replace("CONDITION", condition).replace("GIVEN", given)
    model = onnx.parser.parse_model(text)
    analysis = splitgraph.infer(model)
    assert [found.code for found in analysis.diagnostics] == codes
    body = analysis.graphs["main/Loop#0/body"]
    assert str(body["i"]) == known
    if not codes:
        assert str(body["going"]) == condition.removesuffix("[1]") + ("[1]" if "[1]" in condition else "[]")
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        inputs = {"x": np.ones((4, 3), np.float32), "n": np.array(2), "yes": np.ones([1] * ("[1]" in given), bool)}
        assert session.run(["y"], inputs)[0].shape == (2, 3)


def nested(depth: int, innermost: str) -> onnx.ModelProto:
    """Loops in loops; the innermost one makes its `made0` of what it carries, `held1`, and of the input x."""
    text = innermost
    for level in range(1, depth + 1):
        carried = "x" if level == depth else f"held{level + 1}"
        text = (
            f"made{level} = Loop(n, going, {carried}) <body = body{level} "
            f"(int64 i{level}, bool in{level}, float[?] held{level}) => (bool out{level}, float[?] made{level - 1}) "
            f"{{ out{level} = Identity(in{level}) {text} }}>"
        )
    inputs = "float[N] x, int64 n, bool going"
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => (made{depth}) {{ {text} }}'
    )


@pytest.mark.parametrize(
    ("depth", "innermost", "expected", "most"),
    [
        (1, "made0 = Relu(held1)", "float32[N]", 3),
        (9, "made0 = Relu(held1)", "float32[N]", 60),
        (1, "made0 = Concat<axis=0>(held1, x)", "float32[?]", 4),
        (8, "made0 = Concat<axis=0>(held1, x)", "float32[?]", 1100),
    ],
)
def test_loops_in_loops_are_walked_no_more_often_than_they_need_to_settle(
    monkeypatch: pytest.MonkeyPatch, depth: int, innermost: str, expected: str, most: int
) -> None:
    walked = 0
    run = Walk.run

    def counted(walk: Walk, nodes: Sequence[onnx.NodeProto]) -> None:
        nonlocal walked
        walked += 1
        run(walk, nodes)

    monkeypatch.setattr(Walk, "run", counted)
    analysis = splitgraph.infer(nested(depth, innermost))
    assert str(analysis.types[f"made{depth}"]) == expected
    assert analysis.ok
    assert walked <= most
