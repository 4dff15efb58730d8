"""The passes for onnx_ir, in its own pass infrastructure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import onnx_ir
import onnx_ir.passes.common
import pytest
from onnx_ir.passes import PassError, PassManager, PassResult, Sequential

import splitgraph
from splitgraph import ConversionError, SplitgraphError
from splitgraph.pipelines.onnx_ir_passes import CheckPass, ConvertPass, InferTypesPass

MODELS = Path(__file__).parents[2] / "models"


def model(body: str = "a, b = Split<axis = 1>(x)", opset: int = 13) -> onnx_ir.Model:
    """x: float[N, 6] is split into a and b."""
    header = f'<ir_version: 8, opset_import: ["": {opset}]>'
    text = f"{header} g (float[N, 6] x) => (float[N, ?] a, float[N, ?] b) {{ {body} }}"
    return onnx_ir.from_proto(onnx.parser.parse_model(text))


def committed(name: str) -> onnx_ir.Model:
    return onnx_ir.load(MODELS / name)


REFUSED = [
    (lambda: ConvertPass(), SplitgraphError, "needs a form of the splits"),
    (lambda: ConvertPass(opsett=18), TypeError, "opsett"),  # type: ignore[call-arg]
    (lambda: InferTypesPass(bindings={}), TypeError, "bindings"),  # type: ignore[call-arg]
    (lambda: CheckPass("abacus"), SplitgraphError, "abacus"),
]


@pytest.mark.parametrize(("make", "error", "told"), REFUSED)
def test_wrong_arguments_are_refused_before_a_model_comes(
    make: Callable[[], object], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        make()


STOPPED = [
    (InferTypesPass(), "split18_neither.onnx", SplitgraphError, {"SG207"}),
    (ConvertPass(opset=18), "string_split20.onnx", ConversionError, {"SG404"}),
    (CheckPass("mnn"), "split18_num_outputs.onnx", SplitgraphError, {"SG702"}),
]


@pytest.mark.parametrize(("made", "name", "error", "codes"), STOPPED)
def test_an_error_stops_the_pipeline_and_changes_nothing(
    made: Any, name: str, error: type[SplitgraphError], codes: set[str]
) -> None:
    given = committed(name)
    before = onnx_ir.to_proto(given).SerializeToString(deterministic=True)
    with pytest.raises(PassError) as caught:
        PassManager([made])(given)
    cause: BaseException | None = caught.value
    while cause is not None and not isinstance(cause, SplitgraphError):
        cause = cause.__cause__
    assert isinstance(cause, error)
    assert {found.code for found in cause.diagnostics} & codes
    assert all(found.severity == "error" for found in cause.diagnostics)
    assert onnx_ir.to_proto(given).SerializeToString(deterministic=True) == before


@pytest.mark.parametrize(
    ("made", "given"),
    [
        (ConvertPass(opset=13), model()),
        (ConvertPass("split"), model()),
        (InferTypesPass(), InferTypesPass()(model()).model),
        (
            CheckPass(["onnxruntime", "openvino"]),
            model("h = Constant<value_ints = [3, 3]>() a, b = Split<axis = 1>(x, h)"),
        ),
    ],
)
def test_what_is_done_already_is_no_modification(made: Any, given: onnx_ir.Model) -> None:
    result = made(given)
    assert result.modified is False
    assert (result.model is given) == made.in_place
    assert onnx_ir.to_proto(result.model) == onnx_ir.to_proto(given)


def test_defaults_are_fixed_and_nodes_read_by_form() -> None:
    given = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N, 6] x, float[1] w) => (float[N, 1] y)
        <float[1] w = {2}> { a = Mul(x, w) y = ReduceMean<axes = [1]>(a) }"""
    )
    result = ConvertPass(read_by_form=True)(onnx_ir.from_proto(given))
    assert result.modified and [len(node.inputs) for node in result.model.graph if node.op_type == "ReduceMean"] == [2]
    for modified in (True, False):
        result = ConvertPass(fix_defaults=True)(result.model)
        assert result.modified is modified and [value.name for value in result.model.graph.inputs] == ["x"]


def test_types_are_inferred_into_a_copy() -> None:
    given = model()
    result = InferTypesPass(bind={"N": 4})(given)
    assert result.modified
    assert [str(value.shape) for value in result.model.graph.outputs] == ["[4,3]", "[4,3]"]
    assert [str(value.shape) for value in given.graph.inputs] == ["[N,6]"]


@pytest.mark.parametrize(
    "name", ["gpt2.opset17.onnx", "split_in_if.onnx", "split_in_function.onnx", "split11_attribute.onnx"]
)
@pytest.mark.parametrize("arguments", [{"opset": 18}, {"opset": 21, "to": "split"}, {"target": "mnn"}])
@pytest.mark.sample(4)
def test_a_converted_model_is_what_the_api_makes_and_equal(name: str, arguments: dict[str, Any]) -> None:
    given, made = committed(name), ConvertPass(**arguments, verify=True, samples=1)
    result = made(given)
    expected = splitgraph.convert(given, **arguments)
    assert onnx_ir.to_proto(result.model) == onnx_ir.to_proto(expected.model)
    assert (made.changes, made.verification and made.verification.verdict) == (expected.changes, "equal")
    assert splitgraph.verify(MODELS / name, result.model, samples=1).verdict == "equal"
    again = made(result.model)
    assert (again.modified, made.changes) == (False, ())


def test_passes_stand_beside_those_of_onnx_ir() -> None:
    common = onnx_ir.passes.common
    passes = Sequential(
        ConvertPass(opset=18),
        common.CommonSubexpressionEliminationPass(),
        PassManager([InferTypesPass(), common.CheckerPass()], steps=2),
        CheckPass("onnxruntime"),
    )
    given = committed("gpt2.opset17.onnx")
    result = passes(given)
    assert isinstance(result, PassResult)
    assert result.modified
    assert (given.opset_imports[""], result.model.opset_imports[""]) == (17, 18)
    assert splitgraph.verify(MODELS / "gpt2.opset17.onnx", result.model, samples=1).verdict == "equal"


def test_a_manager_stops_when_nothing_changes_any_more() -> None:
    counted: list[bool] = []

    class Counted(ConvertPass):
        def call(self, model: onnx_ir.Model) -> PassResult:
            result = super().call(model)
            counted.append(result.modified)
            return result

    PassManager([Counted(opset=18)], steps=9, early_stop=True)(model())
    assert counted == [True, False]
