"""How many outputs a node names: what the checker refuses is a finding, and no conversion stumbles over it."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import splitgraph
from splitgraph.model.schemas import versions_of

# Operator, inputs, outputs, attributes, and what is said of it.
WRONG = [
    ("Flatten", ["x"], [], {}, "Flatten-13 has 1 output, not 0"),
    ("Constant", [], [], {"value_int": 1}, "Constant-13 has 1 output, not 0"),
    ("Relu", ["x"], ["y", "z"], {}, "Relu-13 has 1 output, not 2"),
    ("TopK", ["x", "k"], ["y"], {}, "TopK-11 has 2 outputs, not 1"),
    ("Dropout", ["x"], ["y", "z", "w"], {}, "Dropout-13 has 1 to 2 outputs, not 3"),
    ("Split", ["x"], [], {"axis": 0}, "Split-13 has 1 output(s) or more, not 0"),
]
RIGHT = [("Dropout", ["x"], ["y"], {}), ("Identity", ["x"], [""], {}), ("Foo", ["x"], [], {"domain": "other"})]


def model(op_type: str, inputs: list[str], outputs: list[str], attributes: dict[str, object]) -> onnx.ModelProto:
    given = [("x", TensorProto.FLOAT, ["N", 4]), ("k", TensorProto.INT64, [1])]
    values = [helper.make_tensor_value_info(*each) for each in given]
    graph = helper.make_graph([helper.make_node(op_type, inputs, outputs, **attributes)], "g", values, [])
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("other", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


@pytest.mark.parametrize(("op_type", "inputs", "outputs", "attributes", "text"), WRONG)
def test_too_few_or_too_many(
    op_type: str, inputs: list[str], outputs: list[str], attributes: dict[str, object], text: str
) -> None:
    made = model(op_type, inputs, outputs, attributes)
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(made)
    (found,) = splitgraph.infer(made).diagnostics
    assert (found.code, found.message) == ("SG212", text)
    for convert, target in ((splitgraph.upgrade, 18), (splitgraph.downgrade, 9)):
        with pytest.raises(splitgraph.ConversionError, match="SG212"):
            convert(made, target)


@pytest.mark.parametrize(("op_type", "inputs", "outputs", "attributes"), RIGHT)
def test_as_many_as_there_may_be(
    op_type: str, inputs: list[str], outputs: list[str], attributes: dict[str, object]
) -> None:
    made = model(op_type, inputs, outputs, attributes)
    assert splitgraph.infer(made).ok
    assert len(splitgraph.downgrade(made, 9).model.graph.node) == 1


def test_how_many_a_node_must_name_is_what_onnx_says() -> None:
    for schema in onnx.defs.get_all_schemas_with_history():
        domain = "" if schema.domain == "ai.onnx" else schema.domain
        for version in versions_of(domain, schema.name):
            if version.since_version == schema.since_version:
                assert version.min_outputs == schema.min_output, schema.name
