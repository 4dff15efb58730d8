"""Which operators have a standard form: each that onnxruntime runs has one, or a reason why it has none."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, parser

import splitgraph
from splitgraph.conversion.operators.standard import MICROSOFT, registered, standard, without_form


def _kernels() -> set[str]:
    """The operators of com.microsoft that the installed onnxruntime runs on a CPU."""
    kernels = onnxruntime.capi.onnxruntime_pybind11_state.get_all_opkernel_def()
    return {kernel.op_name for kernel in kernels if kernel.domain == MICROSOFT and "CPU" in kernel.provider}


def _model(body: str, opset: str = '"" : 17, "com.microsoft" : 1') -> onnx.ModelProto:
    return parser.parse_model(f"<ir_version: 8, opset_import: [{opset}]> g (float[2] x) => (float[2] y) {{ {body} }}")


def test_an_operator_has_one_decision() -> None:
    # The families register their operators when the first one is asked for.
    assert "Gelu" in registered(MICROSOFT)[0]
    with pytest.raises(ValueError, match="two decisions about Gelu"):
        standard("Gelu")(lambda node: None)
    with pytest.raises(ValueError, match="two decisions about Gelu"):
        without_form("Gelu", "it has one")


def test_a_model_without_other_domains_stays() -> None:
    model = _model("y = Relu(x)", '"" : 17')
    rewrite = splitgraph.convert(model, standard=True)
    assert rewrite.model == model
    assert rewrite.changes == ()


def test_an_operator_without_a_kernel_is_refused_by_name() -> None:
    model = _model("y = com.microsoft.IsAllFinite(x)")
    with pytest.raises(
        splitgraph.ConversionError, match=r"com\.microsoft::IsAllFinite has no standard form: onnxruntime"
    ):
        splitgraph.convert(model, standard=True)


def test_an_operator_of_a_domain_that_nobody_knows_stays() -> None:
    model = _model("z = own.Custom(x) y = com.microsoft.QuickGelu(z)", '"" : 17, "com.microsoft" : 1, "own" : 1')
    model.graph.value_info.add().CopyFrom(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None))
    result = splitgraph.convert(model, standard=True).model
    assert result.graph.node[0].op_type == "Custom"
    assert {entry.domain for entry in result.opset_import} == {"", "own"}


def test_a_function_of_the_model_is_no_operator() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> g (float[2] x) => (float[2] y)
    { y = com.microsoft.QuickGelu(x) }
    <domain: "com.microsoft", opset_import: ["" : 17]> QuickGelu (a) => (b) { b = Neg(a) }"""
    result = splitgraph.convert(parser.parse_model(text), standard=True).model
    assert result.functions[0].name == "QuickGelu"


def test_bodies_and_functions_are_written_too() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1, "own" : 1]>
    g (float[2] x, bool c) => (float[2] y)
    { z = own.F(x) y = If (c) <then_branch = t () => (float[2] a) { a = com.microsoft.QuickGelu(z) },
                               else_branch = e () => (float[2] b) { b = Identity(z) }> }
    <domain: "own", opset_import: ["" : 17, "com.microsoft" : 1]> F (p) => (q) { q = com.microsoft.QuickGelu(p) }"""
    model = parser.parse_model(text)
    rewrite = splitgraph.convert(model, standard=True, verify=True)
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal"
    assert "com.microsoft" not in str(rewrite.model)


def test_a_model_without_ai_onnx_gets_its_import() -> None:
    model = _model("y = com.microsoft.QuickGelu(x)", '"com.microsoft" : 1')
    result = splitgraph.convert(model, standard=True).model
    assert [entry.domain for entry in result.opset_import] == [""]


def test_what_the_opset_lacks_is_told_with_one_that_has_it() -> None:
    model = _model("y = com.microsoft.Gelu(x)")
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.convert(model, standard=True, opset=8)
    (finding,) = refused.value.diagnostics
    assert finding.code == "SG425"
    assert finding.help == "Give opset 9, which has it."


@pytest.mark.parametrize("value", [1, "yes", None])
def test_standard_is_true_or_false(value: object) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="standard is"):
        splitgraph.convert(_model("y = Relu(x)"), standard=value)  # type: ignore[arg-type]


def test_names_attributes_and_documentation_of_a_node_stay() -> None:
    model = _model("y = com.microsoft.Gelu(x)")
    model.graph.node[0].name, model.graph.node[0].doc_string = "act", "of the first layer"
    (node,) = splitgraph.convert(model, standard=True, opset=20).model.graph.node
    assert (node.op_type, node.domain, node.name, node.doc_string) == ("Gelu", "", "act", "of the first layer")


def test_every_kernel_has_a_decision() -> None:
    forms, reasons = registered(MICROSOFT)
    assert np.setdiff1d(sorted(_kernels()), sorted(forms | reasons)).tolist() == []


def test_nodes_of_one_reason_have_one_finding() -> None:
    model = _model("a = com.microsoft.IsAllFinite(x) b = com.microsoft.IsAllFinite(a) y = com.microsoft.GroupNorm(b)")
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.convert(model, standard=True)
    (finding,) = refused.value.diagnostics
    named = "com.microsoft::IsAllFinite and com.microsoft::GroupNorm (3 nodes) have no standard form"
    assert finding.message.startswith(named)
    assert finding.location == "main/IsAllFinite#0"
