"""verify_models where onnxruntime refuses to load the second model: as invalid, or because it lacks something."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from verifying import verify_models

from splitgraph.verification.engines import onnxruntime_engine
from splitgraph.verification.engines.error_texts import is_invalid, reason_of

from ..small_models import constant, graph_of, model_of, node, split_model, value


class InvalidGraph(Exception):
    """As onnxruntime calls it."""


class Fail(Exception):
    """As onnxruntime calls it."""


class InvalidArgument(Exception):
    """As onnxruntime calls it."""


FAILED = "[ONNXRuntimeError] : 1 : FAIL : Load model from model_1.ort.onnx failed:"
PREFIX = "[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. "
MESSAGES: list[tuple[Exception, bool]] = [
    (Fail("Fatal error: my:f(-1) is not a registered function/op"), False),
    (NotImplementedError("Could not find an implementation for RoiAlign(22)"), False),
    (InvalidGraph(f'{PREFIX}In Node, ("n", New, "", -1) : () -> () , Error No Op registered for New'), False),
    (InvalidGraph(f'{PREFIX}In Node, ("n", Gelu, "com.microsoft", -1) : () -> () , Error has input size 0'), False),
    (InvalidGraph(f'{PREFIX}In Node, ("n", Cast, "", -1) : () -> ("l",) , Error has input size 0'), True),
    (InvalidGraph(f'{PREFIX}In Node, ("n", Cast, "ai.onnx", -1) : () -> ("l",) , Error has input size 0'), True),
    (InvalidGraph(f"{PREFIX}Type Error: Type 'tensor(float)' of input parameter (l) is invalid."), True),
    (Fail(f"{FAILED}ONNX Runtime only *guarantees* support for models stamped with official released opsets"), False),
    (Fail(f"{FAILED}Unsupported model IR version: 99, max supported IR version: 13"), False),
    (Fail(f"{FAILED}This is an invalid model. No Op registered for New with domain_version of 13"), False),
    (Fail(f"{FAILED}Node (n) Op (Cast) [TypeInferenceError] float8 is not supported"), False),
    (Fail("[ONNXRuntimeError] : 1 : FAIL : Exception during initialization: std::bad_alloc"), False),
    (RuntimeError("[ShapeInferenceError] Incompatible dimensions"), False),
    (Fail(f"{FAILED}Node () Op (If) [ShapeInferenceError] Can't merge shape info. Inferred=4 Declared=3"), True),
    (Fail(f"{FAILED}Node () Op (Transpose) [TypeInferenceError] Attribute perm for Transpose has repeated"), True),
    (Fail(f"{FAILED}Type Error: Type (tensor(int32)) of output arg (y) of node () does not match expected"), True),
    (Fail(f"{FAILED}This is an invalid model. Error: Duplicate definition of name (y)."), True),
    (InvalidArgument("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid model. Node input 'q' is not a"), True),
    (InvalidArgument("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Failed to load model because protobuf"), False),
]


@pytest.mark.parametrize(("error", "invalid"), MESSAGES)
def test_what_onnxruntime_lacks_is_no_fault_of_the_model(error: Exception, invalid: bool) -> None:
    assert is_invalid(error) is invalid


def test_a_refusal_names_the_node_and_no_more() -> None:
    assert reason_of(MESSAGES[4][0]) == "Cast 'n': has input size 0"


def cast_of_nothing() -> onnx.ModelProto:
    """The lengths are made of an input that is not there; the reference evaluator stumbles over it."""
    nodes = [node("Cast", [], ["l"], to=7), node("Split", ["x", "l"], ["a", "b"])]
    return model_of(nodes, [value("x")], ["a", "b"])


def through(*nodes: onnx.NodeProto, opset: int = 18) -> onnx.ModelProto:
    """Two halves of x, after nodes that read "x" and give "old"."""
    split = node("Split", ["old"], ["a", "b"])
    if opset >= 18:
        split.attribute.append(onnx.helper.make_attribute("num_outputs", 2))
    return model_of([*nodes, split], [value("x")], ["a", "b"], opset=opset, domains={"com.microsoft": 1})


def cast_around(operator: str, dtype: int) -> list[onnx.NodeProto]:
    """From x to old, through an operator on another element type."""
    casts = node("Cast", ["x"], ["c"], to=dtype), node("Cast", ["d"], ["old"], to=onnx.TensorProto.FLOAT)
    return [casts[0], node(operator, ["c"], ["d"]), casts[1]]


LIMITS = {
    "an unknown operator": through(node("Unheard", ["x"], ["old"])),
    "a type without a kernel": through(*cast_around("Erf", onnx.TensorProto.BFLOAT16)),
    "an attribute of another domain's operator": through(node("Gelu", ["x"], ["old"], domain="com.microsoft", new=1)),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("after", LIMITS.values(), ids=LIMITS)
def test_what_onnxruntime_lacks_is_no_difference(after: onnx.ModelProto) -> None:
    assert verify_models(split_model(18, num_outputs=2), after, engine="onnxruntime").verdict == "not-run"


@pytest.mark.usefixtures("in_process")
def test_types_that_only_a_newer_opset_takes_are_no_fault_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Relu-13 takes no integers; that is what an onnxruntime that reads no opset 14 is given."""
    monkeypatch.setattr(onnxruntime_engine, "_NEWEST_OPSET", 13)
    after = through(*cast_around("Relu", onnx.TensorProto.INT8), opset=14)
    found = verify_models(split_model(13), after, engine="onnxruntime")
    assert found.verdict == "not-run"
    assert "Type Error" in found.diagnostics[0].message


@pytest.mark.usefixtures("in_process")
def test_two_invalid_models_are_not_compared() -> None:
    assert verify_models(cast_of_nothing(), cast_of_nothing()).verdict == "not-run"


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("also", [[], [node("RandomNormalLike", ["x"], ["noise"])]], ids=["", "random"])
def test_an_invalid_model_is_different_from_one_that_runs(also: list[onnx.NodeProto]) -> None:
    right = split_model(18, num_outputs=2)
    right.graph.node.extend(also)
    found = verify_models(right, cast_of_nothing())
    assert (found.verdict, found.engine, found.cases) == ("different", "onnxruntime", 0)
    assert found.first_difference is not None
    assert (found.first_difference.name, found.first_difference.case) == ("", None)
    assert (
        "the second model is invalid, but the first one runs: Cast '': Node with schema"
        in found.first_difference.reason
    )


def of_two_shapes(opset: int) -> onnx.ModelProto:
    """A condition whose branches give one output different shapes, which If takes from opset 11 on."""
    branches = [
        graph_of(
            [node("Identity", [f"{name}_held"], [name])],
            [],
            [value(name, (size,))],
            [constant(f"{name}_held", np.ones(size), np.float32)],
            name,
        )
        for name, size in (("then", 3), ("else", 4))
    ]
    choice = node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    return model_of([choice], [value("c", (), onnx.TensorProto.BOOL)], ["y"], opset=opset)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("before", "after", "verdict"), [(11, 11, "equal"), (11, 9, "different"), (13, 10, "different")]
)
def test_a_model_that_inference_refuses_at_load_is_invalid(before: int, after: int, verdict: str) -> None:
    found = verify_models(of_two_shapes(before), of_two_shapes(after))
    assert (found.verdict, found.engine) == (verdict, "onnxruntime")
    if verdict == "different":
        assert found.first_difference is not None
        assert "the second model is invalid, but the first one runs: Node () Op (If)" in found.first_difference.reason
