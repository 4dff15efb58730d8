"""The cache of conversions: without it, conversion gives the same bytes, but for constants, which nodes of one kind
share. Nodes that differ are of different kinds.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest
from conformance.opset_cases import node_cases
from conversion.cache_comparison import TARGETS, converted, to_others, without_cache
from exported_models import one_of_each
from inference.memo_models import in_functions
from known_opsets import known
from onnx import helper, numpy_helper, parser

import splitgraph
from splitgraph.conversion.cache import ConversionCache

MODELS = sorted((Path(__file__).parents[2] / "models").rglob("*.onnx"))
COPIES = 3
# Opsets between which repeated nodes cross boundaries with adapters.
TARGETS_OF_REPEATED = known((9, 11, 13, 17, 18, 26))


def repeated(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its nodes there several times over, all of the same inputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    inputs = {value.name for value in model.graph.input} | {tensor.name for tensor in model.graph.initializer} | {""}
    for copy in range(1, COPIES):
        for node in model.graph.node:
            added = made.graph.node.add()
            added.CopyFrom(node)
            added.name = f"{node.name}_copy_{copy}" if node.name else ""
            added.input[:] = [name if name in inputs else f"{name}_copy_{copy}" for name in node.input]
            added.output[:] = [name and f"{name}_copy_{copy}" for name in node.output]
        for value in model.graph.output:
            added_value = made.graph.output.add()
            added_value.CopyFrom(value)
            added_value.name = f"{value.name}_copy_{copy}"
    return made


def check(models: list[tuple[onnx.ModelProto, int]]) -> int:
    """Convert all to their targets with and without the cache; how many were converted."""
    with_cache = [converted(model, target) for model, target in models]
    without = [without_cache(model, target) for model, target in models]
    for (model, target), found, expected in zip(models, with_cache, without, strict=True):
        assert found == expected, f"{model.graph.name} with {model.graph.node[0].op_type} to {target}"
    return sum(isinstance(found, bytes) for found in with_cache)


def check_repeated(step: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Check every so many of onnx's node tests, its nodes repeated, and that the cache is used."""
    models = to_others([repeated(case.model) for case in node_cases()[::step]], TARGETS_OF_REPEATED)
    used = list[int]()
    follow = ConversionCache._recalled
    monkeypatch.setattr(ConversionCache, "_recalled", lambda *given: (used.append(1), follow(*given))[1])
    count = check(models)
    assert len(used) > len(models) / 4
    return count


def test_repeated_node_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_repeated(151, monkeypatch) > 15


@pytest.mark.slow
def test_more_repeated_node_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_repeated(25, monkeypatch) > 150


@pytest.mark.parametrize("path", one_of_each(MODELS), ids=lambda path: path.name.removesuffix(".onnx"))
def test_models(path: Path) -> None:
    check(to_others([onnx.load(path)], TARGETS))


def test_a_sample_of_node_tests() -> None:
    assert check(to_others([case.model for case in node_cases()[::100]], TARGETS)) > 8


@pytest.mark.slow
@pytest.mark.parametrize("start", [1, 5])
def test_more_node_tests(start: int) -> None:
    """One in four; tests/campaigns/cached_conversions.py takes them all."""
    assert check(to_others([case.model for case in node_cases()[start::8]], TARGETS)) > 125


def check_functions(step: int) -> int:
    """Check every so many of onnx's node tests, its nodes in three functions, without and with several of each."""
    cases = [case.model for case in node_cases()[::step]]
    plain = [
        each for each in cases if not any(held.type == held.GRAPH for n in each.graph.node for held in n.attribute)
    ]
    models = [made for model in plain for made in (in_functions(model), in_functions(repeated(model)))]
    return check(to_others(models, TARGETS_OF_REPEATED))


def test_node_tests_in_functions() -> None:
    assert check_functions(361) > 5


@pytest.mark.slow
def test_more_node_tests_in_functions() -> None:
    assert check_functions(60) > 40


def test_an_assumption_is_reported_for_each_function() -> None:
    text = """<ir_version: 8, opset_import: ["" : 13, "f" : 1]>
    g (float[2] x) => (float[2] y) { y = Relu (x) }
    <opset_import: ["" : 13], domain: "f"> first (a) => (b) { b = Relu (a) }
    <opset_import: ["" : 13], domain: "f"> second (a) => (b) { b = Relu (a) }"""
    notes = splitgraph.downgrade(onnx.parser.parse_model(text), 12).diagnostics
    assumed = [found.location for found in notes if "assumed" in found.message]
    assert len(assumed) == 2, notes


def reductions(axes: list[list[int]]) -> onnx.ModelProto:
    """A ReduceMean-18 for each list of axes, which are initializers, in a chain."""
    nodes, tensors, value = [], [], "x"
    for index, held in enumerate(axes):
        tensors.append(helper.make_tensor(f"axes{index}", onnx.TensorProto.INT64, [len(held)], held))
        nodes.append(helper.make_node("ReduceMean", [value, f"axes{index}"], [f"y{index}"]))
        value = f"y{index}"
    shape = ["A", "B", "C"]
    graph = helper.make_graph(
        nodes,
        "reductions",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, None)],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_constants_that_were_looked_at_are_compared() -> None:
    made = splitgraph.downgrade(reductions([[2], [2], [1], [2]]), 13).model
    assert [list(node.attribute[0].ints) for node in made.graph.node] == [[2], [2], [1], [2]]
    assert not made.graph.initializer


def test_bounds_that_were_looked_at_are_compared() -> None:
    """Numbers that are no integers, which are read in another way."""
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[3] x) => (float[3] y0, float[3] y1, float[3] y2) <float a = {1.0}, float b = {2.0}, float c = {1.0}> {
        y0 = Clip(x, a)  y1 = Clip(x, b)  y2 = Clip(x, c)
    }"""
    made = splitgraph.downgrade(onnx.parser.parse_model(text), 9).model
    assert [held.f for node in made.graph.node for held in node.attribute if held.name == "min"] == [1, 2, 1]


def test_nodes_that_are_alike_have_their_constants_in_common() -> None:
    below = splitgraph.downgrade(reductions([[2], [2], [2], [2], [1], [1]]), 13).model
    made = splitgraph.upgrade(below, 18).model
    names = [node.input[1] for node in made.graph.node]
    # What reads the model's input is not like what reads a mean, which has a dimension of 1.
    assert [names.index(name) for name in names] == [0, 1, 1, 1, 4, 5]
    held = {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in made.graph.initializer}
    assert [held[name] for name in names] == [[2], [2], [2], [2], [1], [1]]
    assert sorted(held) == sorted(set(names))
    again = splitgraph.downgrade(made, 13).model
    assert not again.graph.initializer
    assert [list(node.attribute[0].ints) for node in again.graph.node] == [[2], [2], [2], [2], [1], [1]]


def test_a_node_whose_output_is_read_is_not_like_one_whose_output_is_not() -> None:
    text = """<ir_version: 8, opset_import: ["" : 8]>
    g (float[1, 1, 8, 8] x) => (float[1, 1, 8, 8] z, int64[1, 1, 8, 8] m) {
        y, m = MaxPool <kernel_shape: ints = [1, 1]> (x)
        z, n = MaxPool <kernel_shape: ints = [1, 1]> (y)
    }"""
    with pytest.raises(splitgraph.ConversionError, match="Indices does not exist below it"):
        splitgraph.downgrade(onnx.parser.parse_model(text), 7)


def test_constants_within_functions() -> None:
    nodes = [helper.make_node("BitwiseOr", ["a", "b"], [name]) for name in ("c", "d")]
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "twice", ["a", "b"], ["c", "d"], nodes, imports[:1])
    call = helper.make_node("twice", ["x", "y"], ["z", "w"], domain="own")
    inputs, outputs = (
        [helper.make_tensor_value_info(name, onnx.TensorProto.INT32, [3]) for name in names] for names in ("xy", "zw")
    )
    graph = helper.make_graph([call], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=8)
    with_cache = converted(model, 13)
    assert isinstance(with_cache, bytes)
    assert with_cache == without_cache(model, 13)


def parsed(opset: int, signature: str, body: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {signature} {{ {body} }}')


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


SOFTMAX = {"flat": "y = Softmax<axis = 1>(x)", "deep": "w = Softmax<axis = 1>(z)"}


@pytest.mark.parametrize("order", [("flat", "deep"), ("deep", "flat")], ids=" then ".join)
def test_shapes_decide_of_each_node_by_itself(order: tuple[str, str]) -> None:
    """Below 13, Softmax takes all dimensions from axis on: the last one alone of the one, two of the other."""
    signature = "(float[N, 4] x, float[N, 4, 5] z) => (float[N, 4] y, float[N, 4, 5] w)"
    before = parsed(12, signature, " ".join(SOFTMAX[each] for each in order))
    after = splitgraph.upgrade(before, 13).model
    made = operators(after)
    assert made.count("Softmax") == 2
    assert "Flatten" in made
    (plain,) = [node for node in after.graph.node if node.output[0] == "y"]
    assert plain.op_type == "Softmax"


@pytest.mark.parametrize("order", [("x", "z"), ("z", "x")], ids=" then ".join)
def test_windows_decide_of_each_pool_by_itself(order: tuple[str, str]) -> None:
    """ceil_mode goes where it makes no window, and stays where it makes one."""
    pools = {
        name: f'{name}_out = MaxPool<auto_pad = "VALID", ceil_mode = 1, kernel_shape = [2], strides = [2]>({name})'
        for name in order
    }
    signature = "(float[1, 1, 4] x, float[1, 1, 5] z) => (float[1, 1, P] x_out, float[1, 1, Q] z_out)"
    after = splitgraph.downgrade(parsed(22, signature, " ".join(pools.values())), 21).model
    ceiled = {node.output[0]: "ceil_mode" in {held.name for held in node.attribute} for node in after.graph.node}
    assert not ceiled["x_out"]
    assert ceiled["z_out"]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")], ids=" then ".join)
def test_element_types_make_kinds(order: tuple[str, str]) -> None:
    """Relu takes int32 from 14 on."""
    nodes = {"a": "a = Relu(x)", "b": "b = Relu(k)"}
    signature = "(float[N] x, int32[N] k) => (float[N] a, int32[N] b)"
    after = splitgraph.downgrade(parsed(14, signature, " ".join(nodes[each] for each in order)), 13).model
    given = {node.output[0]: node.op_type for node in after.graph.node}
    assert given["a"] == "Relu"
    assert len(after.graph.node) > 2


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")], ids=" then ".join)
def test_sequences_are_another_kind_than_tensors(order: tuple[str, str]) -> None:
    """Identity takes sequences from 14 on."""
    nodes = {"a": "a = Identity(x)", "b": "b = Identity(s)"}
    signature = "(float[N] x, seq(float[N]) s) => (float[N] a, seq(float[N]) b)"
    after = splitgraph.downgrade(parsed(14, signature, " ".join(nodes[each] for each in order)), 13).model
    assert [list(node.input) for node in after.graph.node if node.op_type == "Identity"] == [["x"]]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")], ids=" then ".join)
def test_attributes_make_kinds(order: tuple[str, str]) -> None:
    """Below 12, a Constant holds a tensor and no number."""
    nodes = {"a": "a = Constant<value = int64 {1}>()", "b": "b = Constant<value_int = 2>()"}
    before = parsed(12, "() => (int64 a, int64 b)", " ".join(nodes[each] for each in order))
    after = splitgraph.downgrade(before, 11).model
    assert {node.output[0]: node.attribute[0].name for node in after.graph.node} == {"a": "value", "b": "value"}
    assert {node.output[0]: node.attribute[0].t.data_type for node in after.graph.node} == {"a": 7, "b": 7}


def test_constants_are_one_kind_whatever_they_hold() -> None:
    constants = " ".join(f"c{index} = Constant<value = float {{{index}.0}}>()" for index in range(20))
    outputs = ", ".join(f"float c{index}" for index in range(20))
    before = parsed(11, f"() => ({outputs})", constants)
    rewrite = splitgraph.upgrade(before, 18)
    assert not rewrite.changes
    assert [node.attribute[0] for node in rewrite.model.graph.node] == [node.attribute[0] for node in before.graph.node]
