"""Functions that call functions twice over: each is walked a few times, however many calls of it there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import onnx
import pytest
from inference.memo_models import tree_of_calls

from splitgraph.inference import infer_model, task
from splitgraph.inference.memo import Memo
from splitgraph.inference.task import MOST_REPEATED
from splitgraph.inference.walk import Walk

# The leaf's nodes, and what else the functions have that is not the usual.
LEAVES: dict[str, tuple[str, dict[str, str]]] = {
    "plain": ("y = Relu (x)", {}),
    "an attribute by reference": ("y = Softmax <axis: int = @axis> (x)", {"attributes": "axis"}),
    "contents that are read": ("y = Resize (x, , few)", {"passes": "x, few", "joined": "Identity (b)"}),
    "a fact": ("a, b = Split <axis = 1, num_outputs = 2> (x)  y = Concat <axis = 1> (a, b)", {}),
    "a finding": ("y = Relu (x)  z = Concat <axis = 9> (x, x)", {}),
    "an unknown operator": ("y = Relu (x)  z = nobody.Knows (x)", {}),
    "symbols of its own": ("z = NonZero (x)  y = Relu (x)", {}),
    "symbols of its own and a finding": ("z = NonZero (x)  y = Relu (x)  w = Concat <axis = 9> (z, z)", {}),
    "symbols of its own and a split": (
        "z = NonZero (x)  y = Relu (x)  a, b = Split <axis = 1, num_outputs = 2> (z)",
        {},
    ),
    "symbols that it gives and splits": (
        "y = NonZero (x)  a, b = Split <axis = 1, num_outputs = 2> (y)",
        {"joined": "Identity (b)"},
    ),
    "symbols of its own in a sequence": (
        "z = NonZero (x)  y = Relu (x)  s = SplitToSequence <axis = 1> (z)  t = Concat <axis = 9> (z, z)",
        {},
    ),
    "symbols that it gives": ("y = NonZero (x)", {"joined": "Identity (b)"}),
    "branches": (
        "c = Constant <value_int = 1> ()  d = Cast <to = 9> (c)  y = If (d) <"
        "then_branch = t () => (float[A, B, 8] p) { p = Relu (x) }, "
        "else_branch = e () => (float[A, B, 8] q) { q = Exp (x) }>",
        {},
    ),
    "findings in branches": (
        "y = If (c) <then_branch = t () => (float[A, B, 8] p) { p = Relu (x)  r = Concat <axis = 9> (x, x) }, "
        "else_branch = e () => (float[A, B, 8] q) { q = Exp (x) }>",
        {"passes": "x, c"},
    ),
}


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The location of each graph that is walked, in order."""
    walked: list[str] = []
    steps = Walk.steps

    def counted(walk: Walk, nodes: Sequence[onnx.NodeProto]) -> Iterator[object]:
        walked.append(walk.location)
        return steps(walk, nodes)

    monkeypatch.setattr(Walk, "steps", counted)
    return walked


# A depth of 300 shows that nothing recurses; the number of walks shows at 64, where it would be 2**64.
@pytest.mark.parametrize(
    ("leaf", "depth"), [*product(LEAVES, (16, 64)), *((leaf, 300) for leaf in ("plain", "a finding", "branches"))]
)
@pytest.mark.sample(10)
def test_walks_grow_with_the_functions(leaf: str, depth: int, walks: list[str]) -> None:
    nodes, options = LEAVES[leaf]
    analysis = infer_model(tree_of_calls(depth, nodes, **options))
    # Each as the model calls it, as written, and as it is called there; twice where it learns something, or has bodies.
    assert len(walks) <= 6 * depth + 20
    assert "y" in analysis.types


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_tree_gives_what_it_gives_when_every_call_is_walked(leaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, options = LEAVES[leaf]
    model = tree_of_calls(5, nodes, **options)
    quick = infer_model(model)
    monkeypatch.setattr(Memo, "remembers", False)
    assert quick == infer_model(model)


def test_findings_are_those_of_each_call() -> None:
    nodes, _ = LEAVES["a finding"]
    places = [found.location for found in infer_model(tree_of_calls(3, nodes)).diagnostics]
    assert len(set(places)) == 8
    assert all(place.startswith("main/f3") and place.endswith("Concat#1") for place in places)


def test_there_is_an_end_to_what_repeats() -> None:
    nodes, _ = LEAVES["a fact"]
    analysis = infer_model(tree_of_calls(64, nodes))
    assert len(analysis.splits) <= MOST_REPEATED + 64
    assert [(found.code, found.severity) for found in analysis.diagnostics] == [("SG303", "warning")]
    assert str(analysis.types["y"]) == "float32[N, M, 8]"


def test_weights_that_nobody_looks_at_do_not_tell_calls_apart(walks: list[str]) -> None:
    """Layers as functions, with biases as inputs: walked once."""
    head = '<ir_version: 10, opset_import: ["": 18, "l": 1]>'
    calls = "  ".join(f"y{i} = l.layer (x, b{i})" for i in range(20))
    function = '<opset_import: ["": 18], domain: "l"> layer (x, b) => (y) { y = Add (x, b) }'
    model = onnx.parser.parse_model(f"{head} g (float[N, 4] x) => () {{ {calls} }} {function}")
    for i in range(20):
        model.graph.initializer.append(onnx.helper.make_tensor(f"b{i}", onnx.TensorProto.FLOAT, [4], [float(i)] * 4))
    analysis = infer_model(model)
    assert {str(analysis.types[f"y{i}"]) for i in range(20)} == {"float32[N, 4]"}
    # The model, its function for all calls, and its function as written.
    assert len(walks) == 3


def test_contents_that_a_function_looks_at_tell_calls_apart() -> None:
    head = '<ir_version: 10, opset_import: ["": 18, "l": 1]>'
    function = '<opset_import: ["": 18], domain: "l"> scaled (x, s) => (y) { y = Resize (x, , s) }'
    nested = '<opset_import: ["": 18, "l": 1], domain: "l"> outer (x, s) => (y) { y = l.scaled (x, s) }'
    text = f"{head} g (float[N, 4] x) => () {{ a = l.outer (x, s)  b = l.outer (x, t)  c = l.outer (x, s) }}"
    model = onnx.parser.parse_model(f"{text} {function} {nested}")
    for name, scale in (("s", 2.0), ("t", 3.0)):
        model.graph.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, [2], [1.0, scale]))
    analysis = infer_model(model)
    assert [str(analysis.types[name]) for name in "abc"] == ["float32[N, 8]", "float32[N, 12]", "float32[N, 8]"]


def test_each_call_has_symbols_of_its_own() -> None:
    """Also where the second call repeats the first."""
    head = '<ir_version: 10, opset_import: ["": 18, "l": 1]>'
    function = '<opset_import: ["": 18], domain: "l"> found (x) => (y, n) { y = NonZero (x)  n = Shape (y) }'
    nodes = (
        "a, n = l.found (x)  b, m = l.found (x)  c = Concat <axis = 1> (a, b)  z = ConstantOfShape (m)  d = Add (a, a)"
    )
    analysis = infer_model(onnx.parser.parse_model(f"{head} g (float[N, 4] x) => () {{ {nodes} }} {function}"))
    first, second, shape = analysis.types["a"].shape, analysis.types["b"].shape, analysis.types["z"].shape
    assert first is not None and second is not None
    assert first[1] != second[1]
    # What is known of the second call's elements speaks of its own symbol.
    assert shape == second
    assert str(analysis.types["c"].shape[1]) == f"{first[1]} + {second[1]}"


def test_a_function_that_calls_itself_through_another_is_reported_for_each() -> None:
    """Who calls first is the one that is called again, so that nothing of it can be repeated."""
    head = '<ir_version: 10, opset_import: ["": 18, "l": 1]>'
    functions = "\n".join(
        f'<opset_import: ["": 18, "l": 1], domain: "l"> {name} (x) => (y) {{ y = l.{other} (x) }}'
        for name, other in (("a", "b"), ("b", "a"))
    )
    model = onnx.parser.parse_model(f"{head} g (float[N] x) => () {{ p = l.a (x)  q = l.b (x) }} {functions}")
    found = [(each.code, each.location) for each in infer_model(model).diagnostics]
    assert found == [("SG102", "main/a#0/b#0/a#0"), ("SG102", "main/b#1/a#0/b#0")]


def test_attributes_tell_calls_apart() -> None:
    """Also where a function hands on what it was called with."""
    head = '<ir_version: 10, opset_import: ["": 18, "l": 1]>'
    function = '<opset_import: ["": 18], domain: "l"> join <axis> (x) => (y) { y = Concat <axis: int = @axis> (x, x) }'
    call = "l.join <axis: int = @axis> (x)"
    around = f'<opset_import: ["": 18, "l": 1], domain: "l"> outer <axis> (x) => (y) {{ y = {call} }}'
    nodes = "  ".join(f"y{i} = l.outer <axis = {axis}> (x)" for i, axis in enumerate([0, 1, 0]))
    analysis = infer_model(onnx.parser.parse_model(f"{head} g (float[N, 4] x) => () {{ {nodes} }} {function} {around}"))
    assert [str(analysis.types[f"y{i}"]) for i in range(3)] == ["float32[2*N, 4]", "float32[N, 8]", "float32[2*N, 4]"]


def test_what_is_reported_of_a_call_speaks_of_its_own_symbols() -> None:
    head = '<ir_version: 10, opset_import: ["": 18, "l": 1]>'
    function = (
        '<opset_import: ["": 18], domain: "l"> parts (x) => (y, p) { lengths = Constant <value_ints = [1, 1]> ()  '
        "y = NonZero (x)  p, q = Split <axis = 0> (y, lengths) }"
    )
    nodes = "a, p = l.parts (x)  b, q = l.parts (x)  c = Concat <axis = 1> (a, b)  d = Concat <axis = 1> (p, q)"
    analysis = infer_model(onnx.parser.parse_model(f"{head} g (float[2, 4] x) => () {{ {nodes} }} {function}"))
    first, second = analysis.splits
    assert first.input == analysis.types["a"]
    assert second.input == analysis.types["b"]
    assert first.input != second.input


def test_calls_beyond_a_bound_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 25 functions that call each other twice once kept inference busy for hours."""
    monkeypatch.setattr(task, "most_calls", lambda model: 2)
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18, "f" : 1]>
        g (float[4] x, float[6] y, float[8] z) => (float[A] a, float[B] b, float[C] c) {
            a, rest = f.halves (x)
            same, again = f.halves (x)
            b, more = f.halves (y)
            c, most = f.halves (z)
        }
        <domain: "f", opset_import: ["" : 18]>
        halves (data) => (left, right) { left, right = Split <num_outputs: int = 2> (data) }"""
    )
    analysis = infer_model(model)
    assert [(found.code, found.severity) for found in analysis.diagnostics] == [("SG303", "warning")]
    found = [str(analysis.types[name]) for name in ("rest", "again", "more", "most")]
    assert found == ["float32[2]", "float32[2]", "float32[3]", "unknown"]
    # What all calls have in common is not what those have that were followed.
    assert analysis.details.graphs["F", 0].types["data"].shape is None
