"""Versions of operators that the installed onnx has and splitgraph does not: refused, never read as older ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import onnx
import onnx.parser
import pytest
from onnx import ModelProto

import splitgraph
from splitgraph import splits
from splitgraph.conversion.ir_version import unknown_version
from splitgraph.conversion.operators import registry
from splitgraph.inference import operators, reading
from splitgraph.model.schemas import version_at
from splitgraph.verification.reference import evaluator
from splitgraph.verification.values import UnsupportedError

EQUAL_13 = "a, b = Split<axis=1>(x)"
UNEVEN_18 = "a, b = Split<axis=1, num_outputs=2>(x)"
TAKEN_APART = """
    lengths = Constant<value_ints=[3, 3]>() q = SplitToSequence<axis=1>(x, lengths)
    zero = Constant<value_int=0>() one = Constant<value_int=1>()
    a = SequenceAt(q, zero) b = SequenceAt(q, one)
"""


def model_at(opset: int, nodes: str) -> ModelProto:
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[N,6] x) => (float[N,K] a, float[N,L] b) {{{nodes}}}'
    return onnx.parser.parse_model(text)


def upward(opset: int) -> Callable[[ModelProto], object]:
    return lambda model: splitgraph.upgrade(model, opset)


def refused(model: ModelProto, convert: Callable[[ModelProto], object]) -> Sequence[splitgraph.Diagnostic]:
    before = model.SerializeToString()
    with pytest.raises(splitgraph.ConversionError) as error:
        convert(model)
    assert model.SerializeToString() == before
    return error.value.diagnostics


@pytest.fixture
def without_split_18(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was to a splitgraph that ended at Split-13, beside an onnx that had Split-18."""
    known = [variant for variant in splits.VARIANTS if variant.label != "Split-18"]
    monkeypatch.setattr(splits, "VARIANTS", known)
    by_version = {(variant.domain, variant.op_type, variant.since_version): variant for variant in known}
    monkeypatch.setattr(splits, "_BY_VERSION", by_version)
    kernels = {**evaluator.ONNX_KERNEL_VERSIONS, "Split": (1, 2, 11, 13)}
    monkeypatch.setattr(evaluator, "ONNX_KERNEL_VERSIONS", kernels)
    operators._known_operator.cache_clear()
    monkeypatch.setattr(operators, "_known_operator", operators._known_operator.__wrapped__)


CONVERSIONS = [
    (EQUAL_13, 13, upward(18), "Ask for opset 17 or older, or install a splitgraph that knows Split-18."),
    (EQUAL_13, 13, upward(21), "Ask for opset 17 or older, or install a splitgraph that knows Split-18."),
    (TAKEN_APART, 18, lambda model: splitgraph.convert(model, "split"), "Install a splitgraph that knows Split-18."),
]


@pytest.mark.usefixtures("without_split_18")
@pytest.mark.parametrize(("nodes", "opset", "convert", "help"), CONVERSIONS)
def test_no_split_is_written_in_an_unknown_version(
    nodes: str, opset: int, convert: Callable[[ModelProto], object], help: str
) -> None:
    (found,) = refused(model_at(opset, nodes), convert)
    assert (found.code, found.help) == ("SG405", help)
    assert "Split changes at opset 18" in found.message


@pytest.mark.usefixtures("without_split_18")
def test_a_split_of_an_unknown_version_is_not_read() -> None:
    (found,) = splitgraph.infer(model_at(18, UNEVEN_18)).diagnostics
    assert (found.code, found.message) == ("SG302", "Split-18 is newer than this splitgraph")
    assert found.help == "Install a newer splitgraph, or export the model at an older opset."


@pytest.mark.usefixtures("without_split_18")
def test_the_reference_engine_does_not_run_a_split_of_an_unknown_version() -> None:
    with pytest.raises(UnsupportedError, match="no kernel for Split-18"):
        evaluator.load(model_at(18, UNEVEN_18))


def test_no_helper_is_written_in_an_unknown_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lengths of uneven parts are computed from the shape, by nodes of the target's dialect."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[N] x) => (float[K] a, float[L] b)'
        "{ a, b = Split<num_outputs=2>(x) }"
    )
    monkeypatch.setattr(registry, "UNCHANGED", registry.UNCHANGED - {("Gather", 13)})
    (found,) = refused(model, lambda given: splitgraph.downgrade(given, 13))
    assert found.message == "Gather changes at opset 13: this version of splitgraph does not know what changed"
    assert found.help == "Ask for opset 12 or older, or install a splitgraph that knows Gather-13."


def test_what_is_known() -> None:
    assert unknown_version("NoSuchOperator", 18) is None
    assert unknown_version("Gelu", 20) is None
    assert unknown_version("Reshape", 21) is None
    assert unknown_version("Split", 28) is None


@pytest.mark.parametrize(("newest", "expected"), [(10, True), (12, True), (13, False)])
def test_a_rule_is_not_asked_about_a_form_that_it_was_not_written_for(
    newest: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unsqueeze-13 has as an input what was an attribute."""
    monkeypatch.setattr(operators, "newest_in_table", lambda domain: newest)
    schema = version_at("", "Unsqueeze", 13)
    assert schema is not None
    assert operators._outgrew_rule(schema) is expected


def test_a_rule_serves_where_only_types_were_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "newest_in_table", lambda domain: 12)
    schema = version_at("", "Relu", 13)
    assert schema is not None
    assert not operators._outgrew_rule(schema)


@pytest.mark.parametrize("outgrown", [False, True])
def test_onnx_infers_what_outgrew_its_rule(outgrown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    known = reading.operator_of

    def operator_of(*arguments: object) -> operators.Operator:
        return replace(known(*arguments), outgrew_rule=outgrown)  # type: ignore[arg-type]

    monkeypatch.setattr(reading, "operator_of", operator_of)
    monkeypatch.setattr(reading, "rule_of", lambda domain, op_type: asked.append(op_type))
    assert str(splitgraph.infer(model_at(18, "a = Relu(x) b = Neg(x)")).types["a"]) == "float32[N, 6]"
    assert asked == ([] if outgrown else ["Relu", "Neg"])
