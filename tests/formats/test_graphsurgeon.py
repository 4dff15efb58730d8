"""graphsurgeon graphs go in and out with nothing lost but what they have no place for, and untouched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_graphsurgeon.ir.tensor import LazyValues

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats.graphsurgeon import from_model, is_graphsurgeon, to_model

from .tiny_models import add_model, external, float_value, model_of


def graph_of(node: gs.Node, opset: int = 18, **fields: Any) -> gs.Graph:
    inputs = [tensor for tensor in node.inputs if isinstance(tensor, gs.Variable) and tensor.name]
    return gs.Graph([node], inputs, [tensor for tensor in node.outputs if tensor.name], opset=opset, **fields)


def variable(name: str, shape: Any = (2, 3), dtype: Any = np.float32) -> gs.Variable:
    return gs.Variable(name, dtype, shape)


def constant_graph(values: Any, name: str = "k") -> gs.Graph:
    return graph_of(gs.Node("Identity", inputs=[gs.Constant(name, values)], outputs=[gs.Variable("y")]))


def refusal(graph: gs.Graph) -> ModelError:
    with pytest.raises(ModelError) as caught:
        to_model(graph)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("value", [None, add_model(), "graph", object(), gs, gs.Graph])
def test_what_is_no_graph(value: object) -> None:
    assert not is_graphsurgeon(value)


def test_what_is_a_graph() -> None:
    assert is_graphsurgeon(gs.Graph())


def test_two_constants_of_one_name() -> None:
    one, other = (gs.Constant("k", np.full(3, value, np.float32)) for value in (1, 2))
    error = refusal(graph_of(gs.Node("Add", inputs=[one, other], outputs=[variable("y")])))
    assert error.diagnostics[0].code == "SG104"


def test_constant_and_variable_of_one_name() -> None:
    inputs = [gs.Constant("k", np.ones(3, np.float32)), variable("k")]
    assert refusal(graph_of(gs.Node("Add", inputs=inputs, outputs=[variable("y")]))).diagnostics[0].code == "SG104"


def test_equal_constants_of_one_name() -> None:
    one, other = (gs.Constant("k", np.ones(3, np.float32)) for _ in range(2))
    model = to_model(graph_of(gs.Node("Add", inputs=[one, other], outputs=[variable("y")])))
    assert [tensor.name for tensor in model.graph.initializer] == ["k"]


def test_values_that_onnx_has_no_type_for() -> None:
    assert "'k' of NumPy type datetime64" in str(refusal(constant_graph(np.zeros(2, "datetime64[s]"))))


def test_attribute_that_onnx_has_no_type_for() -> None:
    node = gs.Node("Custom", domain="d", inputs=[variable("x")], outputs=[variable("y")], attrs={"a": object()})
    assert "cannot be written as an ONNX model" in str(refusal(graph_of(node)))


def test_empty_list_of_nothing_known() -> None:
    node = gs.Node("Custom", domain="d", inputs=[variable("x")], outputs=[variable("y")], attrs={"a": []})
    assert "attribute 'a'" in str(refusal(graph_of(node)))


def test_map_input() -> None:
    held = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    graph = helper.make_graph(
        [helper.make_node("Custom", ["x"], ["y"])], "g", [helper.make_value_info("x", held)], [float_value("y")]
    )
    assert "'x' is of map type" in str(refusal(gs.import_onnx(model_of(graph))))


def test_graph_that_contains_itself() -> None:
    node = gs.Node("If", inputs=[variable("c", (), np.bool_)], outputs=[variable("y")])
    graph = graph_of(node)
    node.attrs["then_branch"] = graph
    refusal(graph)


CONSTANTS = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.array(3, np.int64),
    np.zeros((0, 4), np.float16),
    np.array([True, False]),
    np.array([1 + 2j], np.complex64),
    np.arange(6, dtype=np.float32).reshape(2, 3).T,
    np.array([1.5, -2], ml_dtypes.bfloat16),
    np.array([1, 2], ml_dtypes.float8_e4m3fn),
    np.array([1, 2], ml_dtypes.float8_e4m3fnuz),
    np.array([1, -2, 3], ml_dtypes.int4),
    np.array([1, 2, 3], ml_dtypes.uint4),
    np.array(["a", "bé"], object),
    np.array(["a", "bé"]),
    np.array([1, 2], ">f4"),
]


@pytest.mark.parametrize("values", CONSTANTS, ids=lambda values: f"{values.dtype}{list(values.shape)}")
def test_constants(values: np.ndarray) -> None:
    graph = constant_graph(values)
    model = to_model(graph)
    (tensor,) = model.graph.initializer
    assert numpy_helper.to_array(tensor).tolist() == values.tolist()
    assert tensor.data_type == numpy_helper.from_array(numpy_helper.to_array(tensor)).data_type
    assert to_model(from_model(model, graph)) == model
    assert graph.nodes[0].inputs[0]._values is values


def everything() -> onnx.ModelProto:
    """Subgraphs that capture, a function with references to its attributes, omitted inputs and outputs, scalars."""
    weight = numpy_helper.from_array(np.full((1, 3), 2, np.float32), "w")
    inner = numpy_helper.from_array(np.array(5, np.float32), "inner")
    half = numpy_helper.from_array(np.array([1.5, 2], ml_dtypes.bfloat16), "half")
    then = helper.make_graph([helper.make_node("Add", ["x", "w"], ["t"], name="t")], "then", [], [float_value("t")])
    other = helper.make_graph([helper.make_node("Mul", ["r", "inner"], ["e"])], "else", [], [float_value("e")], [inner])
    body = [
        helper.make_node("Constant", [], ["two"], value=numpy_helper.from_array(np.array(2, np.float32))),
        helper.make_node("Concat", ["a", "a"], ["l"], name="twice"),
        helper.make_node("Mul", ["l", "two"], ["b"]),
    ]
    body[1].attribute.append(onnx.AttributeProto(name="axis", ref_attr_name="along", type=onnx.AttributeProto.INT))
    function = helper.make_function("d", "F", ["a"], ["b"], body, [helper.make_opsetid("", 18)], attributes=["along"])
    nodes = [
        helper.make_node("Add", ["x", "w"], ["r"], name="sum"),
        helper.make_node("If", ["c"], ["i"], then_branch=then, else_branch=other),
        helper.make_node("F", ["i"], ["f"], domain="d", along=0),
        helper.make_node("Split", ["f"], ["p", ""], axis=0, num_outputs=2),
        helper.make_node("Clip", ["p", "", "limit"], ["y"]),
        helper.make_node("Identity", ["half"], ["h"]),
    ]
    limit = numpy_helper.from_array(np.array(9, np.float32), "limit")
    inputs = [float_value("x", ("N", 3)), helper.make_tensor_value_info("c", TensorProto.BOOL, ())]
    outputs = [float_value("y", (None, 3)), helper.make_tensor_value_info("h", TensorProto.BFLOAT16, [2])]
    graph = helper.make_graph(
        nodes, "main", inputs, outputs, [weight, limit, half], value_info=[float_value("r", ("N", 3))]
    )
    graph.doc_string = "what it is"
    model = helper.make_model(
        graph,
        ir_version=10,
        functions=[function],
        producer_name="p",
        producer_version="1",
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("d", 1)],
    )
    onnx.checker.check_model(model)
    return model


def test_there_and_back() -> None:
    original = everything()
    before = original.SerializeToString()
    graph = gs.import_onnx(original)
    model = to_model(graph)
    onnx.checker.check_model(model, full_check=True)
    assert original.SerializeToString() == before
    assert (model.ir_version, model.producer_name, model.producer_version) == (10, "p", "1")
    assert (model.graph.name, model.graph.doc_string) == ("main", "what it is")
    assert list(model.opset_import) == list(original.opset_import)
    assert [len(node.output) for node in model.graph.node] == [1, 1, 1, 2, 1, 1]
    assert list(model.graph.node[4].input) == ["p", "", "limit"]
    assert to_model(from_model(model, graph)) == model


def test_results_are_the_same() -> None:
    original = everything()
    model = to_model(from_model(to_model(gs.import_onnx(original))))
    for condition in (True, False):
        feeds = {"x": np.arange(-6, 6, dtype=np.float32).reshape(4, 3), "c": np.array(condition)}
        expected, got = (ReferenceEvaluator(m).run(None, feeds) for m in (original, model))
        for one, other in zip(expected, got, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_subgraphs_do_not_repeat_what_they_capture() -> None:
    exported = gs.export_onnx(gs.import_onnx(everything())).graph.node[1].attribute
    model = to_model(gs.import_onnx(everything()))
    mine = {attribute.name: attribute.g for attribute in model.graph.node[1].attribute}
    assert any(len(attribute.g.initializer) > len(mine[attribute.name].initializer) for attribute in exported)
    assert [tensor.name for tensor in mine["then_branch"].initializer] == []
    assert [value.name for value in mine["then_branch"].value_info] == []
    assert [tensor.name for tensor in mine["else_branch"].initializer] == ["inner"]


def snapshot(graph: gs.Graph) -> Any:
    """All that can be seen of a graph, objects by identity."""

    def of_graph(part: Any) -> Any:
        fields = {
            name: value for name, value in vars(part).items() if name not in ("nodes", "import_domains", "_functions")
        }
        return (
            {name: ([id(t) for t in value] if isinstance(value, list) else value) for name, value in fields.items()},
            [opset.SerializeToString() for opset in part.import_domains or ()],
            [of_node(node) for node in part.nodes],
        )

    def of_node(node: Any) -> Any:
        attributes = {
            name: of_graph(value) if isinstance(value, gs.Graph) else id(value) for name, value in node.attrs.items()
        }
        return (
            id(node),
            node.op,
            node.name,
            node.domain,
            attributes,
            [of_tensor(t) for t in node.inputs + node.outputs],
        )

    def of_tensor(tensor: Any) -> Any:
        values = getattr(tensor, "_values", None)
        proto = values.tensor.SerializeToString() if isinstance(values, LazyValues) else None
        links = [id(node) for node in tensor.inputs], [id(node) for node in tensor.outputs]
        return (id(tensor), tensor.name, repr(tensor.shape), repr(tensor.dtype), id(values), proto, links)

    return of_graph(graph), [of_graph(function) for function in graph.functions]


def test_graph_is_not_touched(capfd: pytest.CaptureFixture[str]) -> None:
    graph = gs.import_onnx(everything())
    # What export would write into: new domains, renamed tensors that belong to the imported model, tensors of one name.
    graph.layer(op="New", domain="new.domain", inputs=[graph.outputs[0]], outputs=["n"])
    graph.tensors()["w"].name = "renamed"
    graph.nodes[0].attrs["nothing"] = np.zeros(0)
    graph.nodes[0].attrs.pop("nothing")
    capfd.readouterr()
    before = snapshot(graph)
    model = to_model(graph)
    from_model(model, graph)
    assert snapshot(graph) == before
    assert capfd.readouterr() == ("", "")
    assert "renamed" in [tensor.name for tensor in model.graph.initializer]
    assert "new.domain" in [opset.domain for opset in model.opset_import]


def test_model_that_the_graph_was_imported_from_is_not_touched() -> None:
    original = everything()
    before = original.SerializeToString()
    graph = gs.import_onnx(original)
    graph.tensors()["w"].name = "renamed"
    to_model(graph)
    assert original.SerializeToString() == before


def test_one_tensor_under_two_names() -> None:
    values = LazyValues(numpy_helper.from_array(np.ones(3, np.float32), "old"))
    inputs = [gs.Constant("a", values), gs.Constant("b", values)]
    model = to_model(graph_of(gs.Node("Add", inputs=inputs, outputs=[variable("y")])))
    assert [tensor.name for tensor in model.graph.initializer] == ["a", "b"]


def test_renamed_sparse_initializer() -> None:
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("s", TensorProto.FLOAT, [1], [2]), helper.make_tensor("i", TensorProto.INT64, [1], [3]), [4]
    )
    graph = helper.make_graph([helper.make_node("Identity", ["s"], ["y"])], "g", [], [float_value("y", (4,))])
    graph.sparse_initializer.append(sparse)
    surgeon = gs.import_onnx(model_of(graph))
    surgeon.nodes[0].inputs[0].name = "t"
    model = to_model(surgeon)
    assert model.graph.sparse_initializer[0].values.name == model.graph.node[0].input[0] == "t"


@pytest.mark.parametrize("empty", [[], (), np.zeros(0, np.int64)])
def test_empty_lists(empty: Any) -> None:
    node = gs.Node("Squeeze", inputs=[variable("x")], outputs=[variable("y")], attrs={"axes": empty})
    graph = graph_of(node, opset=11)
    model = to_model(graph)
    (attribute,) = model.graph.node[0].attribute
    assert (attribute.name, attribute.type, list(attribute.ints)) == ("axes", onnx.AttributeProto.INTS, [])
    assert node.attrs["axes"] is empty
    assert to_model(from_model(model, graph)) == model


def test_attributes_that_import_leaves_out() -> None:
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(1, np.float32)), numpy_helper.from_array(np.array([3])), [4]
    )
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    body = helper.make_graph([helper.make_node("Identity", ["x"], ["o"])], "b", [], [float_value("o")])
    attributes: dict[str, Any] = {
        "sparse": sparse,
        "sparses": [sparse, sparse],
        "kind": kind,
        "kinds": [kind],
        "bodies": [body, body],
        "tensors": [numpy_helper.from_array(np.arange(3), "t")],
        "state": b"\xff\x00plugin",
        "states": [b"ok", b"\xfe"],
    }
    node = helper.make_node("Custom", ["x"], ["y"], domain="d", **attributes)
    inner = helper.make_graph([node], "i", [], [float_value("y")])
    outer = helper.make_node("If", ["c"], ["z"], then_branch=inner)
    function = helper.make_function("d", "F", ["x"], ["y"], [node], [helper.make_opsetid("d", 1)])
    function.attribute_proto.append(helper.make_attribute("default", kind))
    model = model_of(
        helper.make_graph([node, outer], "g", [float_value("x")], [float_value("y")]), functions=[function]
    )
    model.opset_import.add(domain="d", version=1)
    again = to_model(from_model(model))
    found = [again.graph.node[0], again.graph.node[1].attribute[0].g.node[0], again.functions[0].node[0]]
    for one in found:
        assert {a.name: a for a in one.attribute} == {a.name: a for a in node.attribute}
    assert list(again.functions[0].attribute_proto) == list(function.attribute_proto)


def test_inputs_with_a_default_stay_inputs() -> None:
    model = add_model()
    model.graph.input.append(float_value("w"))
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((2, 3), np.float32), "unread"))
    model.graph.input.append(float_value("unread"))
    again = to_model(from_model(model))
    assert [value.name for value in again.graph.input] == ["x", "w", "unread"]
    assert {tensor.name for tensor in again.graph.initializer} == {"w", "unread"}


def test_external_weights_stay_references() -> None:
    model = add_model()
    external(model.graph.initializer[0], "w.bin", offset=0, length=24)
    graph = gs.import_onnx(model)
    assert list(to_model(from_model(to_model(graph), graph)).graph.initializer) == list(model.graph.initializer)


def test_loaded_values_of_external_weights_are_not_external() -> None:
    graph = constant_graph(np.ones(3, np.float32))
    graph.nodes[0].inputs[0].data_location = TensorProto.EXTERNAL
    assert not to_model(graph).graph.initializer[0].HasField("data_location")


TYPES = [
    helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None)),
    helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2])),
    helper.make_optional_type_proto(
        helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.INT64, [2]))
    ),
    helper.make_tensor_type_proto(TensorProto.STRING, ["N", None, 0]),
    helper.make_tensor_type_proto(TensorProto.BFLOAT16, None),
    onnx.TypeProto(),
]


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.WhichOneof("value"))
def test_types_of_inputs_and_outputs(kind: onnx.TypeProto) -> None:
    values = [helper.make_value_info(name, kind) for name in "xy"]
    graph = gs.import_onnx(
        model_of(helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", values[:1], values[1:]))
    )
    model = to_model(graph)
    for value in (*model.graph.input, *model.graph.output, *to_model(from_model(model, graph)).graph.input):
        assert value.type == kind


@pytest.mark.parametrize("kind", TYPES[1:3], ids=lambda kind: kind.optional_type.elem_type.WhichOneof("value"))
def test_types_in_subgraphs(kind: onnx.TypeProto) -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["b"])], "body", [], [helper.make_value_info("b", kind)]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    inputs = [helper.make_value_info("x", kind), helper.make_tensor_value_info("c", TensorProto.BOOL, ())]
    model = model_of(helper.make_graph([node], "g", inputs, [helper.make_value_info("y", kind)]))
    for attribute in to_model(gs.import_onnx(model)).graph.node[0].attribute:
        assert attribute.g.output[0].type == kind


MODELS = sorted((Path(__file__).parents[2] / "models").rglob("*.onnx"))


def node_lines(model: onnx.ModelProto) -> list[Any]:
    lines = []
    pending: list[Any] = [model.graph, *model.functions]
    while pending:
        for node in pending.pop().node:
            lines.append((node.op_type, node.domain, node.name, list(node.input), list(node.output)))
            lines += [(a.name, a.type) for a in node.attribute]
            pending += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return lines


def test_there_are_real_models() -> None:
    assert len(MODELS) > 10


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_real_models(path: Path) -> None:
    original = onnx.load(path)
    before = original.SerializeToString()
    graph = gs.import_onnx(original)
    model = to_model(graph)
    assert original.SerializeToString() == before
    assert node_lines(model) == node_lines(original)
    assert to_model(from_model(model, graph)) == model


def test_shape_of_a_sequence_is_lost() -> None:
    """Documented: a gs.Graph has no place for it. When it gets one, the documentation is to be changed."""
    value = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2])
    model = to_model(gs.import_onnx(model_of(helper.make_graph([], "g", [value], [value]))))
    assert not model.graph.input[0].type.sequence_type.elem_type.tensor_type.HasField("shape")


@pytest.mark.parametrize(("given", "written"), [(-1, ""), (np.int64(4), "4"), (None, ""), ("N", "N"), (0, "0")])
def test_dimensions(given: Any, written: str) -> None:
    node = gs.Node("Relu", inputs=[variable("x", [given])], outputs=[variable("y", None)])
    (dim,) = to_model(graph_of(node)).graph.input[0].type.tensor_type.shape.dim
    assert (dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "")) == written


def test_what_only_a_graph_has_is_taken_from_the_template() -> None:
    graph = constant_graph(np.ones(3, np.float32))
    graph.layer(op="Relu", inputs=[graph.outputs[0]], outputs=["r"])
    back = from_model(to_model(graph), graph)
    assert (back.ir_version, back.name_idx, back.opset) == (None, graph.name_idx, 18)
    graph.ir_version = 9
    assert from_model(to_model(graph), graph).ir_version == 9


def test_log_level_is_restored() -> None:
    logger = gs.logger.G_LOGGER
    severity = logger.severity
    to_model(gs.Graph())
    refusal(constant_graph(np.zeros(1, "datetime64[s]")))
    assert logger.severity == severity
