"""The IR version: raised where the opset needs it, lowered by a downgrade as far as the model can be read so."""

from __future__ import annotations

from typing import Literal

import onnx
import pytest
from onnx import TensorProto, helper

import splitgraph
from splitgraph.conversion.opset import convert_opset


def relu(ir_version: int, opset: int, dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, dtype, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def with_initializer(ir_version: int) -> onnx.ModelProto:
    model = relu(ir_version, 8)
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [1], [0.0]))
    return model


def with_initializer_in_a_branch(ir_version: int) -> onnx.ModelProto:
    held = helper.make_tensor("k", TensorProto.FLOAT, [1], [0.0])
    branches = {
        f"{side}_branch": helper.make_graph(
            [helper.make_node("Add", ["x", "k"], [side])],
            side,
            [],
            [helper.make_tensor_value_info(side, TensorProto.FLOAT, [2])],
            [held],
        )
        for side in ("then", "else")
    }
    model = relu(ir_version, 8)
    model.graph.node[0].CopyFrom(helper.make_node("If", ["c"], ["y"], **branches))
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    return model


def with_function(ir_version: int) -> onnx.ModelProto:
    model = relu(ir_version, 13)
    nodes = [helper.make_node("Relu", ["a"], ["b"])]
    model.functions.append(helper.make_function("local", "f", ["a"], ["b"], nodes, [helper.make_opsetid("", 13)]))
    return model


def with_metadata(ir_version: int) -> onnx.ModelProto:
    model = relu(ir_version, 13)
    model.graph.node[0].metadata_props.add(key="k", value="v")
    return model


REFUSED = [
    (relu(8, 17), 18, 7, "opset 18"),
    (with_initializer_in_a_branch(8), 8, 3, "the initializer 'k'"),
    (relu(10, 21, TensorProto.INT4), 22, 9, "the element type INT4"),
]


@pytest.mark.parametrize(("model", "opset", "version", "what"), REFUSED)
def test_too_old_for_the_model(model: onnx.ModelProto, opset: int, version: int, what: str) -> None:
    with pytest.raises(splitgraph.ConversionError) as caught:
        convert_opset(model, opset, version)
    assert {found.code for found in caught.value.diagnostics} == {"SG412"}
    assert what in str(caught.value)


@pytest.mark.parametrize("version", [0, -1, onnx.IR_VERSION + 1])
def test_no_such_version(version: int) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="there is no IR version"):
        convert_opset(relu(8, 17), 18, version)


# The IR version of the release that added each element type.
TYPES = [
    ("BFLOAT16", 4),
    *[(name, 9) for name in ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")],
    ("UINT4", 10),
    ("INT4", 10),
    ("FLOAT4E2M1", 11),
    ("FLOAT8E8M0", 12),
    ("UINT2", 13),
    ("INT2", 13),
]


@pytest.mark.parametrize(("name", "least"), [case for case in TYPES if hasattr(TensorProto, case[0])])
def test_element_types_need_the_release_that_added_them(name: str, least: int) -> None:
    model = relu(onnx.IR_VERSION, 7)
    model.graph.input.append(helper.make_tensor_value_info("unread", TensorProto.DataType.Value(name), [2]))
    assert convert_opset(model, 7, least).model.ir_version == least
    with pytest.raises(splitgraph.ConversionError, match=f"needs IR version {least}, for the element type {name}"):
        convert_opset(model, 7, least - 1)


KEPT = [
    (relu(10, 18), 11, None, 6),
    (relu(10, 18), 11, "keep", 10),
    (relu(10, 18), 18, None, 10),
    (relu(10, 18), 19, "keep", 10),
    (relu(5, 18), 11, None, 5),
    (relu(3, 18), 11, "keep", 3),
    (relu(3, 8), 9, None, 4),
    (relu(10, 18), 11, 6, 6),
    (relu(8, 17), 18, 9, 9),
    (with_initializer(8), 7, 4, 4),
]


@pytest.mark.parametrize(("model", "opset", "version", "expected"), KEPT)
def test_version_of_the_result(
    model: onnx.ModelProto, opset: int, version: int | Literal["keep"] | None, expected: int
) -> None:
    made = convert_opset(model, opset, version).model
    assert made.ir_version == expected
    onnx.checker.check_model(made)


@pytest.mark.parametrize(
    ("model", "opset", "version", "is_told"),
    [
        (relu(10, 17), 17, None, True),
        (relu(8, 17), 17, None, False),
        (relu(5, 17), 17, None, False),
        (relu(10, 17), 17, "keep", False),
        (relu(10, 17), 17, 8, False),
        (relu(10, 17), 18, None, False),
        (relu(10, 17), 16, None, False),
    ],
)
def test_a_model_that_stays_tells_that_its_version_is_newer(
    model: onnx.ModelProto, opset: int, version: int | Literal["keep"] | None, is_told: bool
) -> None:
    found = convert_opset(model, opset, version).diagnostics
    assert [(each.code, each.severity) for each in found] == ([("SG415", "info")] if is_told else [])


def noted(opset: int, ir_version: int) -> onnx.ModelProto:
    """A model with everything that older readers skip."""
    model = relu(ir_version, opset)
    node = model.graph.node[0]
    for holder in (node, model.graph, model.graph.input[0], model.graph.output[0]):
        holder.metadata_props.add(key="k", value="v")
    if node.DESCRIPTOR.fields_by_name.get("device_configurations"):
        node.device_configurations.add(configuration_id="c")
        model.configuration.add(name="c", num_devices=1)
    node.overload = ""
    model.graph.quantization_annotation.add(tensor_name="x")
    return model


@pytest.mark.parametrize(("opset", "version", "expected"), [(11, None, 6), (8, None, 3), (17, 9, 9), (13, 7, 7)])
def test_what_older_readers_skip_stays_and_is_said_once(opset: int, version: int | None, expected: int) -> None:
    model = noted(18, 13)
    result = splitgraph.downgrade(model, opset, ir_version=version)
    assert result.model.ir_version == expected
    has_devices = "device_configurations" in model.graph.node[0].DESCRIPTOR.fields_by_name
    told = [(note.code, note.severity, "metadata_props" in note.message) for note in result.diagnostics]
    assert told == [("SG414", "info", False)] * has_devices
    assert result.model.graph.node == model.graph.node
    assert result.model.graph.quantization_annotation == model.graph.quantization_annotation


def called(ir_version: int, opset: int, overload: str = "", default: bool = False) -> onnx.ModelProto:
    """Two functions, one of which calls the other."""
    text = f"""<ir_version: {ir_version}, opset_import: ["": {opset}, "local": 1]> g (float[4] x) => (float[4] y) {{
        y = local.outer (x) }}
        <opset_import: ["": {opset}, "local": 1], domain: "local"> outer (a) => (b) {{ b = local.inner (a) }}
        <opset_import: ["": {opset}], domain: "local"> inner {"<alpha: float = 0.5>" if default else ""} (a) => (b) {{
            b = {"LeakyRelu <alpha: float = @alpha>" if default else "Neg"} (a) }}"""
    model = onnx.parser.parse_model(text)
    for holder in (model.functions[1], model.functions[0].node[0]):
        holder.overload = overload
    return model


@pytest.mark.parametrize("opset", [8, 11, 13])
@pytest.mark.parametrize(
    "model", [called(8, 17), called(10, 17, "second"), called(9, 17, default=True), called(10, 17, "second", True)]
)
def test_functions_are_inlined_for_readers_that_know_none(model: onnx.ModelProto, opset: int) -> None:
    result = splitgraph.downgrade(model, opset)
    assert not result.model.functions
    assert {node.op_type for node in result.model.graph.node} <= {"Neg", "LeakyRelu", "Identity"}
    assert [found.code for found in result.diagnostics] == ["SG413"]
    assert result.model.ir_version == {8: 3, 11: 6, 13: 7}[opset]
    onnx.checker.check_model(result.model, full_check=True)


def test_functions_stay_where_readers_know_them() -> None:
    result = splitgraph.downgrade(called(10, 21), 18)
    assert (result.model.ir_version, len(result.model.functions), result.diagnostics) == (8, 2, ())


def test_functions_of_splits_are_inlined_too() -> None:
    split = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[6] x) => (float[3] a, float[3] b)'
        "{ a, b = Split <num_outputs = 2> (x) }"
    )
    result = splitgraph.downgrade(splitgraph.convert(split, "variadic-split").model, 11)
    assert (result.model.ir_version, len(result.model.functions)) == (6, 0)


def with_lost_default(ir_version: int) -> onnx.ModelProto:
    """Functions that onnx's inliner cannot inline without losing a default."""
    return onnx.parser.parse_model(f"""<ir_version: {ir_version}, opset_import: ["": 17, "my": 1]>
        g (float[4] x) => (float[4] y) {{ y = my.outer (x) }}
        <domain: "my", opset_import: ["": 17]> f <alpha: float = 0.5> (x) => (y) {{
            y = LeakyRelu <alpha: float = @alpha> (x) }}
        <domain: "my", opset_import: ["": 17, "my": 1]> outer <beta> (x) => (y) {{
            y = my.f <alpha: float = @beta> (x) }}""")


def external(ir_version: int) -> onnx.ModelProto:
    model = with_initializer(ir_version)
    tensor = model.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.ClearField("float_data")
    tensor.external_data.add(key="location", value="weights.bin")
    return model


def with_default(ir_version: int) -> onnx.ModelProto:
    model = with_initializer(ir_version)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [1]))
    return model


def with_sparse(ir_version: int) -> onnx.ModelProto:
    model = relu(ir_version, 9)
    held = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    places = helper.make_tensor("", TensorProto.INT64, [1], [0])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(held, places, [3]))
    return model


def with_unread(ir_version: int, dtype: int) -> onnx.ModelProto:
    model = relu(ir_version, 18)
    model.graph.input.append(helper.make_tensor_value_info("unread", dtype, [2]))
    return model


MISREAD = [
    (with_unread(11, TensorProto.BFLOAT16), 8, 4, "BFLOAT16"),
    (with_unread(13, TensorProto.FLOAT8E5M2), 11, 9, "FLOAT8E5M2"),
    (with_unread(13, TensorProto.INT4), 17, 10, "INT4"),
    (with_lost_default(9), 11, 9, "onnx cannot inline"),
    (with_initializer_in_a_branch(8), 7, 4, "the initializer 'k' of a subgraph"),
    (external(8), 7, 4, "the external data of the tensor 'w'"),
    (with_default(8), 7, 4, "the default of the input 'w'"),
    (with_sparse(8), 8, 6, "sparse_initializer"),
]


@pytest.mark.parametrize(("model", "opset", "least", "what"), MISREAD)
def test_what_older_readers_would_misread_keeps_a_newer_version(
    model: onnx.ModelProto, opset: int, least: int, what: str
) -> None:
    result = splitgraph.downgrade(model, opset)
    assert result.model.ir_version == least
    told = [found for found in result.diagnostics if found.code == "SG415"]
    assert [found.severity for found in told] == ["info"]
    assert what in told[0].message
    with pytest.raises(splitgraph.ConversionError, match=f"needs IR version {least}, for ") as caught:
        splitgraph.downgrade(model, opset, ir_version=least - 1)
    assert [found.code for found in caught.value.diagnostics] == ["SG412"]


def test_initializers_become_inputs_for_readers_that_demand_it() -> None:
    model = with_initializer(8)
    model.graph.initializer.append(helper.make_tensor("scalar", TensorProto.INT64, [], [3]))
    made = splitgraph.downgrade(model, 7).model
    assert [value.name for value in made.graph.input] == ["x", "w", "scalar"]
    assert made.graph.input[2].type.tensor_type.HasField("shape")
    onnx.checker.check_model(made, full_check=True)
    # In models of that IR version they are constant, and what is one stays one.
    assert splitgraph.downgrade(with_default(3), 7).model.ir_version == 3


@pytest.mark.parametrize("version", [None, "keep", 9])
def test_splits_in_another_form(version: int | Literal["keep"] | None) -> None:
    split = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[6] x) => (float[3] a, float[3] b)'
        "{ a, b = Split <num_outputs = 2> (x) }"
    )
    made = splitgraph.convert(split, "variadic-split", ir_version=version).model
    assert made.ir_version == (version if isinstance(version, int) else 8)
    with pytest.raises(splitgraph.SplitgraphError, match="there is no IR version 'forever'"):
        splitgraph.convert(split, "split", ir_version="forever")  # type: ignore[arg-type]  # what is refused
