"""A model with weights is written in pieces, which together are what protobuf writes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from splitgraph.formats.onnx_writing import serialized

from .tiny_models import external, float_value, model_of

LARGE = 2**15
# A field 1000 of five bytes, which no message of ONNX knows.
UNKNOWN = b"\xc2\x3e\x05later"


def weights(name: str = "w") -> TensorProto:
    return numpy_helper.from_array(np.arange(LARGE, dtype=np.float32), name)


def model_with(*tensors: TensorProto) -> ModelProto:
    nodes = [helper.make_node("Identity", [tensor.name], [f"{tensor.name}_{i}"]) for i, tensor in enumerate(tensors)]
    graph = helper.make_graph(nodes, "g", [], [float_value("w_0", (LARGE,))], tensors, doc_string="of the graph")
    graph.value_info.append(float_value("v", (1,)))
    model = model_of(graph)
    model.doc_string, model.producer_name = "documented", ""
    model.metadata_props.add(key="key", value="value")
    return model


def small() -> ModelProto:
    return model_with(numpy_helper.from_array(np.ones(3, np.float32), "w"))


def large() -> ModelProto:
    return model_with(weights(), numpy_helper.from_array(np.ones(3, np.float32), "small"), weights("w2"))


def documented_weights() -> ModelProto:
    tensor = weights()
    tensor.doc_string = "behind the data"
    tensor.segment.SetInParent()
    tensor.data_location = TensorProto.DEFAULT
    return model_with(tensor)


def typed_weights() -> ModelProto:
    return model_with(weights(), TensorProto(name="t", data_type=1, dims=[LARGE], float_data=np.ones(LARGE)))


def external_weights() -> ModelProto:
    return model_with(weights(), external(weights("e"), "data", offset=0))


def empty_messages() -> ModelProto:
    model = large()
    model.graph.quantization_annotation.add()
    model.graph.output[0].type.tensor_type.shape.SetInParent()
    model.graph.node.add()
    model.graph.doc_string = ""
    return model


def everything_else() -> ModelProto:
    model = large()
    model.functions.append(helper.make_function("own", "f", ["a"], ["b"], [], [helper.make_opsetid("", 18)]))
    model.training_info.add().initialization.initializer.append(weights("trained"))
    model.graph.sparse_initializer.add(values=weights("sparse"), indices=TensorProto(), dims=[4])
    model.graph.metadata_props.add(key="last", value="field")
    return model


def unknown_in(place: Callable[[ModelProto], object]) -> ModelProto:
    model = large()
    message = place(model)
    assert isinstance(message, onnx.ModelProto | onnx.GraphProto | onnx.TensorProto | onnx.NodeProto)
    message.MergeFromString(UNKNOWN)
    return model


def no_graph() -> ModelProto:
    return ModelProto(ir_version=8)


@pytest.mark.parametrize("model", [small(), no_graph(), ModelProto()], ids=["small", "no graph", "nothing"])
def test_a_model_without_weights_is_one_piece(model: ModelProto) -> None:
    found = serialized(model)
    assert found is not None
    assert (found.pieces, found.nodes) == ([model.SerializeToString()], None)


def test_many_nodes_are_not_copied_for_few_weights() -> None:
    model = model_with(weights())
    model.graph.node.extend([helper.make_node("Identity", ["w"], [str(i)]) for i in range(1000)])
    found = serialized(model)
    assert found is not None
    assert len(found.pieces) == 1


WITH_WEIGHTS = {
    "large": large(),
    "documented": documented_weights(),
    "typed": typed_weights(),
    "external": external_weights(),
    "empty messages": empty_messages(),
    "everything else": everything_else(),
    "unknown in a node": unknown_in(lambda model: model.graph.node[0]),
    "unknown in weights": unknown_in(lambda model: model.graph.initializer[0]),
    "unknown in the graph": unknown_in(lambda model: model.graph),
}


@pytest.mark.parametrize("model", WITH_WEIGHTS.values(), ids=WITH_WEIGHTS)
def test_the_pieces_are_what_protobuf_writes(model: ModelProto) -> None:
    before = ModelProto()
    before.CopyFrom(model)
    found = serialized(model)
    assert found is not None
    assert len(found.pieces) > 1
    assert b"".join(found.pieces) == model.SerializeToString()
    assert model == before


def test_fields_of_a_model_that_are_not_known_are_written_with_all_others() -> None:
    model = unknown_in(lambda model: model)
    found = serialized(model)
    assert found is not None
    assert (found.pieces, found.nodes) == ([model.SerializeToString()], None)


def test_the_nodes_are_in_one_piece_without_weights() -> None:
    found = serialized(everything_else())
    assert found is not None
    assert found.nodes is not None
    assert len(found.nodes) < 1000
    assert len(onnx.GraphProto.FromString(found.nodes).node) == 3
