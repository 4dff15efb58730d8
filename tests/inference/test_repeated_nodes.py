"""A node that repeats an earlier one gives what that gave: only where visiting it again would give the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from splitgraph.inference import infer_model, walk_model
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.memo import Memo
from splitgraph.model.scopes import MAIN

MODELS = sorted((Path(__file__).parents[2] / "models").glob("*.onnx"))


def infer(
    body: str,
    inputs: str = "float[N, M] x",
    declared: str = "",
    constants: dict[str, np.ndarray] | None = None,
    functions: str = "",
) -> Analysis:
    text = (
        f'<ir_version: 10, opset_import: ["": 18, "local": 1]> g ({inputs}) => () {declared} {{ {body} }} {functions}'
    )
    model = parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in (constants or {}).items())
    return infer_model(model)


def shapes(analysis: Analysis, *names: str) -> list[str]:
    return [str(analysis.types[name]) for name in names]


def findings(analysis: Analysis) -> list[tuple[str, str]]:
    return [(found.code, found.location) for found in analysis.diagnostics]


def test_each_invalid_node_is_reported_where_it_is() -> None:
    analysis = infer("y = Concat <axis = 5> (x, x)  z = Concat <axis = 5> (x, x)")
    assert len({location for _, location in findings(analysis)}) == 2


def test_each_node_has_symbols_of_its_own() -> None:
    analysis = infer("a = NonZero (x)  b = NonZero (x)  c = Concat <axis = 1> (a, b)  d = Add (a, a)  e = Add (b, b)")
    first, second = analysis.types["d"].shape, analysis.types["e"].shape
    assert first is not None and second is not None
    assert first[1] != second[1]


def test_a_name_that_is_defined_again_is_reported() -> None:
    analysis = infer("y = Relu (x)  z = Relu (x)  y = Relu (x)")
    assert [code for code, _ in findings(analysis)] == ["SG104"]


@pytest.mark.parametrize(
    "order", [("a, m", "b, omitted", "c, n"), ("b, omitted", "a, m", "c, n"), ("c, n", "a, m", "b, omitted")]
)
def test_an_omitted_output_is_nothing(order: tuple[str, ...]) -> None:
    # What a node that omits it gives is no more known under the name "" than that input is there.
    body = "  ".join(f"{outputs} = Dropout (x)" for outputs in order)
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> g (float[N, M] x) => () {{ {body} }}')
    model.graph.node.add(op_type="Clip", input=["x", "", "top"], output=["d"])
    model.graph.initializer.append(numpy_helper.from_array(np.float32(1), "top"))
    for node in model.graph.node:
        node.output[:] = ["" if name == "omitted" else name for name in node.output]
    analysis = infer_model(model)
    assert not analysis.diagnostics
    assert {name: str(analysis.types[name]) for name in "abcmnd"} == {
        **dict.fromkeys("abcd", "float32[N, M]"),
        **dict.fromkeys("mn", "bool[N, M]"),
    }
    assert "" not in analysis.types


@pytest.mark.parametrize("count", [1, 8, 400, 4000])
def test_constants_of_any_size_are_what_they_are(count: int) -> None:
    def constant(name: str, values: np.ndarray) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(values))

    numbers = np.arange(1, count + 1)
    nodes = [
        helper.make_node("Add", ["x", "c"], ["early"]),
        constant("c", numbers.astype(np.float32)),
        constant("same", numbers.astype(np.float32)),
        constant("other", numbers.astype(np.float32) * 2),
        *(helper.make_node("Add", ["x", name], [f"to_{name}"]) for name in ("c", "same", "other")),
        constant("shape", np.array([count], np.int64)),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
    ]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["N", 1])], [])
    analysis = infer_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))
    assert [code for code, _ in findings(analysis)] == ["SG112"]
    found = shapes(analysis, "c", "same", "other", "to_c", "to_same", "to_other", "zeros")
    assert found == [f"float32[{count}]"] * 3 + [f"float32[N, {count}]"] * 3 + [f"float32[{count}]"]


def test_attributes_tell_nodes_apart() -> None:
    analysis = infer("y = Transpose <perm = [0, 1]> (x)  z = Transpose <perm = [1, 0]> (x)")
    assert shapes(analysis, "y", "z") == ["float32[N, M]", "float32[M, N]"]


def test_elements_tell_integer_constants_apart() -> None:
    constants = {"s": np.array([2, -1]), "t": np.array([4, -1])}
    analysis = infer("y = Reshape (x, s)  z = Reshape (x, t)", "float[8] x", constants=constants)
    assert shapes(analysis, "y", "z") == ["float32[2, 4]", "float32[4, 2]"]


def test_elements_tell_float_constants_apart_where_they_matter() -> None:
    constants = {"s": np.array([1, 2], np.float32), "t": np.array([1, 3], np.float32)}
    body = "y = Resize (x, , s)  z = Resize (x, , t)"
    analysis = infer(body, "float[4, 5] x", constants=constants)
    assert shapes(analysis, "y", "z") == ["float32[4, 10]", "float32[4, 15]"]


def test_what_is_declared_tells_values_apart() -> None:
    analysis = infer("a = NonZero (x)  y = Relu (x)  z = Relu (x)", declared="<float[K, 3] z>")
    assert shapes(analysis, "y", "z") == ["float32[N, M]", "float32[N, M]"]
    assert [found.code for found in analysis.diagnostics] == ["SG301"]


def test_a_repeated_split_is_reported_by_its_own_name_and_requires_nothing_new() -> None:
    body = "a, b = Split <axis = 1, num_outputs = 2> (x)  c, d = Split <axis = 1, num_outputs = 2> (x)"
    body += "  e, f = Split <axis = 1, num_outputs = 2> (x)"
    analysis = infer(body)
    assert [[name for name, _ in split.outputs] for split in analysis.splits] == [["a", "b"], ["c", "d"], ["e", "f"]]
    assert len({split.location for split in analysis.splits}) == 3
    assert [split.lengths for split in analysis.splits] == [analysis.splits[0].lengths] * 3
    assert [bool(split.obligations) for split in analysis.splits[1:]] == [False, False]


def test_every_call_of_a_function_is_reported() -> None:
    function = (
        '<opset_import: ["": 18], domain: "local"> half (x) => (a, b) { a, b = Split <axis = 1, num_outputs = 2> (x) }'
    )
    analysis = infer("a, b = local.half (x)  c, d = local.half (x)", functions=function)
    assert len({split.location for split in analysis.splits}) == 2


def test_what_a_node_says_of_its_input_holds_for_the_next() -> None:
    body = "a, b = Split <axis = 1> (x, n)  c, d = Split <axis = 1> (x, n)  y = Add (a, c)  z = Add (b, d)"
    analysis = infer(body, "float[N, 8] x, int64[2] n")
    assert analysis.splits[0].lengths == analysis.splits[1].lengths
    assert shapes(analysis, "y", "z") == shapes(analysis, "a", "b")


def test_only_what_more_may_be_known_of_is_visited_again() -> None:
    """Between the two, the split says what N is: a Slice had asked for that, a Relu had not."""
    body = "y = Slice (x, zero, four)  r = Relu (x)  a, b = Split (x, lengths)  z = Slice (x, zero, four)  s = Relu (x)"
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> g (float[N, 3] x) => () {{ {body} }}')
    constants = {"zero": [0], "four": [4], "lengths": [4, 4]}
    model.graph.initializer.extend(numpy_helper.from_array(np.array(held), name) for name, held in constants.items())
    found = walk_model(model).graphs[MAIN]
    first, relu, _, second, other = found.visits
    assert relu is other
    assert first is not None and second is not None and first is not second
    assert [str(found.types[name]) for name in ("y", "z")] == ["float32[min(N, 4), 3]", "float32[4, 3]"]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_model_gives_the_same_when_every_node_is_visited(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx.load(path, load_external_data=False)
    quick = infer_model(model)
    monkeypatch.setattr(Memo, "remembers", False)
    thorough = infer_model(model)
    assert quick.types == thorough.types
    assert quick.splits == thorough.splits
    assert quick.diagnostics == thorough.diagnostics
    assert quick.model == thorough.model
