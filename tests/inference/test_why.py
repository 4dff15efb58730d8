"""Where the dimensions of a value come from: the steps back to the inputs, and where symbols enter."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import splitgraph
from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.inference.why import Step, dimensions_of

MODELS = Path(__file__).parents[2] / "models"


def model(text: str) -> onnx.ModelProto:
    head = '<ir_version: 8, opset_import: ["": 17, "mine": 1, "l": 1]>'
    return onnx.parser.parse_model(f"{head} {text}")


def steps(text: str, value: str) -> list[Step]:
    return dimensions_of(splitgraph.infer(model(text)), value)


GRAPH = "g (float[N, 3] x, float[3, M] w, float[N, 3] other, int64[1] n) => (float[?] y)"
# The nodes, the value, and each step: its name, and the names that it reads.
CHAINS: dict[str, tuple[str, str, list[str]]] = {
    "elementwise": ("y = Relu (x)", "y", ["y: x", "x:"]),
    # The inner dimensions only have to fit: they are read, and no dimension depends on them.
    "a product": ("y = MatMul (x, w)", "y", ["y: x w", "w:", "x:"]),
    "a dimension that both inputs have": ("y = Add (x, other)", "y", ["y: x", "x:"]),
    "two dimensions in one": ("y = Concat <axis = 0> (x, other)", "y", ["y: x other", "other:", "x:"]),
    "a number and a symbol": ("y = Transpose <perm = [1, 0]> (x)", "y", ["y: x", "x:"]),
    "a value that is only data": (
        "s = Shape (x) z = Expand (one, s) y = Add (z, z)",
        "y",
        ["y: z", "z: s", "s: x", "x:"],
    ),
    "one element of a shape": (
        "s = Shape (other) c = Constant <value_ints = [-1]> ()"
        " i = Constant <value_int = 0> () d = Gather (s, i) u = Unsqueeze (d, zero) t = Concat <axis = 0> (u, c)"
        " y = Reshape (x, t)",
        "u",
        ["u: zero d", "d: s", "s: other", "other:", "zero:"],
    ),
    "what a node makes": ("a = NonZero (x) y = Cast <to = 1> (a)", "a", ["a:"]),
    "an unknown operator": ("a = Relu (x) y = mine.Foo (a)", "y", ["y:"]),
    "a constant": ("c = Constant <value_ints = [2, 3]> () y = Cast <to = 1> (c)", "y", ["y: c", "c:"]),
}


def chain(text: str, value: str) -> list[str]:
    weights = "<int64[1] zero = {0}, float[1] one = {1}>"
    found = steps(f"{GRAPH} {weights} {{ {text} }}", value)
    return [f"{step.value}: {' '.join(step.reads)}".strip() for step in found]


@pytest.mark.parametrize("name", CHAINS)
def test_chains(name: str) -> None:
    text, value, expected = CHAINS[name]
    assert chain(text, value) == expected


# The nodes, and the step where something enters: its name, what enters, and why.
ENTRIES: dict[str, tuple[str, tuple[str, tuple[str, ...], str]]] = {
    "a run decides": ("a = NonZero (x) b = Relu (a) y = Transpose (b)", ("a", ("unk0",), "its inputs do not tell it")),
    "once only": ("a = NonZero (x) y = ReduceSum <keepdims = 0> (a)", ("a", ("?",), "its inputs do not tell it")),
    "an unknown operator": ("a = mine.Foo (x) y = Relu (a)", ("a", ("unk0",), "the operator is not known")),
    "an error": ("a = Concat <axis = 9> (x, x) y = Relu (a)", ("a", ("unk0",), "the node has an error")),
    "an unknown rank": ("a = mine.Foo (x) b = Relu (a) y = mine.Foo (b)", ("a", ("...",), "the operator is not known")),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_where_symbols_enter(name: str) -> None:
    text, expected = ENTRIES[name]
    value = {"an unknown rank": "b", "once only": "a"}.get(name, "y")
    found = [(step.value, step.enters, step.reason) for step in steps(f"{GRAPH} {{ {text} }}", value) if step.enters]
    assert found == [expected]


def test_an_input_without_names() -> None:
    first, *_, last = steps("g (float[?, 3] x) => (float[?, 3] z) { y = Relu (x) z = Relu (y) }", "z")
    assert (first.enters, last.value, last.source) == ((), "x", "input")
    assert (last.enters, last.reason) == (("unk0",), "the model does not name it")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("split_in_loop.onnx", "main/turn/body/next", ["next", "bent", "head", "tail", "state", "lengths", "x"]),
        ("split_in_loop.onnx", "turn/body/bent", ["bent", "head", "lengths", "state", "x"]),
        ("branched_gate.opset18.onnx", "y", ["y", "/Gemm_output_0", "x"]),
        ("interval_split.xml", "rest", ["rest", "heads.1", "Constant_2", "Constant_3", "hidden"]),
    ],
)
def test_other_graphs_and_formats(name: str, value: str, expected: list[str]) -> None:
    found = [step.value for step in dimensions_of(splitgraph.infer(MODELS / name), value)]
    assert (found[0], sorted(found)) == (expected[0], sorted(expected))


def test_the_elements_of_shapes_are_told() -> None:
    found = steps(f"{GRAPH} {{ s = Shape (x) z = Expand (n, s) y = Relu (z) }}", "z")
    assert [(step.value, [*map(str, step.elements)]) for step in found if step.elements] == [("s", ["N", "3"])]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("nxt", "the model has no value 'nxt'; did you mean 'next'?"),
        ("frobnicate", "the model has no value 'frobnicate'; infer --all lists them"),
    ],
)
def test_values_that_are_not_there(value: str, told: str) -> None:
    analysis = splitgraph.infer(MODELS / "split_in_loop.onnx")
    with pytest.raises(SplitgraphError) as caught:
        dimensions_of(analysis, value)
    assert (str(caught.value), caught.value.diagnostics[0].code) == (told, "SG601")


def test_a_value_of_a_function() -> None:
    text = '{ y = l.f (x) } <opset_import: ["": 17], domain: "l"> f (a) => (b) { inside = Relu (a) b = Relu (inside) }'
    analysis = splitgraph.infer(model(f"{GRAPH} {text}"))
    assert [step.value for step in dimensions_of(analysis, "y")] == ["y", "x"]
    with pytest.raises(SplitgraphError, match="l::f has one, and a function is followed from the outputs of its calls"):
        dimensions_of(analysis, "inside")


def test_every_step_that_is_read_is_there() -> None:
    analysis = splitgraph.infer(MODELS / "gpt2.opset17.onnx")
    for value in [*analysis.outputs, *[*analysis.types][::20]]:
        found = dimensions_of(analysis, value)
        names = [step.value for step in found]
        assert len(set(names)) == len(names)
        for place, step in enumerate(found):
            # After those that read it.
            assert all(names.index(read) > place for read in step.reads)
            assert step.enters == ()
        # The symbols of the value come from the inputs.
        named = {str(dim) for step in found if step.source == "input" for dim in step.type.shape or ()}
        symbols = {word for text in named for word in text.replace("+", " ").split() if word.isidentifier()}
        dims = analysis.types[value].shape or ()
        assert all({str(name) for name in getattr(dim, "symbols", ())} <= symbols for dim in dims)
