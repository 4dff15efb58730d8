"""onnx's own node tests, taken to other opsets by the guard alone: what it keeps is valid and computes the same."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from conversion.keeping import kept_or_edited
from known_opsets import known
from node_tests import node_tests as onnx_node_tests
from onnx.reference import ReferenceEvaluator

from splitgraph.model.schemas.table import minimum_ir_version
from splitgraph.model.value_type import ValueType

TARGETS = known([28, 26, 18, 13, 11, 9])
_NUMPY_NAMES = {"float": "float32", "double": "float64"}

# Below these opsets the reference evaluator does not have the operator, or computes something else for it.
REFERENCE_FROM = {"BatchNormalization": 14, "DequantizeLinear": 19, "GridSample": 20, "RoiAlign": 16}
# onnx's shape inference fails on this operator's function body from opset 18 on unless the attribute axes is written.
NOT_INFERRED = frozenset({"MeanVarianceNormalization"})

Type = tuple[str | None, str | None, tuple[int | None, ...] | None]
UNKNOWN: Type = (None, None, None)


@cache
def node_tests() -> tuple[Any, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = onnx_node_tests()
    return tuple(
        case
        for case in cases
        if case.model is not None
        and case.data_sets
        and opset_of(case.model) is not None
        # Splits are converted elsewhere (and some abort the process); what is drawn at random is not comparable.
        and b"Split" not in case.model.SerializeToString()
        and not any(word in case.name for word in ("bernoulli", "random", "dropout"))
    )


def opset_of(model: onnx.ModelProto) -> int | None:
    return next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), None)


def type_of(proto: onnx.TypeProto) -> Type:
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        name = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
        shape = None
        if tensor.HasField("shape"):
            shape = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)
        return "tensor", _NUMPY_NAMES.get(name, name), shape
    if kind in ("sequence_type", "optional_type"):
        return kind.removesuffix("_type"), type_of(getattr(proto, kind).elem_type)[1], None
    return UNKNOWN


def types_in(graph: onnx.GraphProto, outer: Mapping[str, Type]) -> dict[str, Type]:
    return {**outer, **{v.name: type_of(v.type) for v in (*graph.input, *graph.value_info, *graph.output)}}


def nodes_of(graph: onnx.GraphProto, outer: Mapping[str, Type]) -> Iterator[tuple[onnx.NodeProto, Mapping[str, Type]]]:
    types = types_in(graph, outer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes_of(attribute.g, types)
        yield node, types


def apply(node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto]) -> None:
    given = list(attributes.values())
    del node.attribute[:]
    node.attribute.extend(given)


def converted(model: onnx.ModelProto, target: int) -> onnx.ModelProto | None:
    """The model at the target opset, None when the guard refuses one of its nodes."""
    inferred = onnx.shape_inference.infer_shapes(model)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    source = opset_of(model)
    assert source is not None
    for node, types in list(nodes_of(result.graph, types_in(inferred.graph, {}))):
        inputs = [types.get(name, UNKNOWN) for name in node.input]
        outputs = [types.get(name, UNKNOWN) for name in node.output]
        names = zip((*node.output, *node.input), (*outputs, *inputs), strict=True)
        known = {name: ValueType(kind or "unknown", dtype, shape) for name, (kind, dtype, shape) in names}
        edited, _, blockers = kept_or_edited(node, source, target, known, node.op_type)
        if blockers:
            return None
        apply(node, edited.attributes)
    for entry in result.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = target
    result.ir_version = max(model.ir_version, minimum_ir_version(target))
    return result


def run_reference(model: onnx.ModelProto, inputs: list[Any]) -> list[Any]:
    names = [value.name for value in model.graph.input]
    return list(ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True))))


def run_onnxruntime(model: onnx.ModelProto, inputs: list[Any], opset: int) -> list[Any]:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = minimum_ir_version(opset)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    feeds = dict(zip(names, map(np.asarray, inputs), strict=True))
    return list(session.run(None, feeds))


def equal(before: Any, after: Any) -> bool:
    if isinstance(before, list) or before is None:
        if not isinstance(before, list) or not isinstance(after, list):
            return before is after
        return len(before) == len(after) and all(map(equal, before, after))
    one, other = np.asarray(before), np.asarray(after)
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    return one.tolist() == other.tolist() if one.dtype.kind in "OUS" else bool(((one == other) | (one != one)).all())


def fault(case: Any, target: int) -> str | None:
    """What is wrong with a node test's model at another opset, None when nothing is or the guard refuses it."""
    model = converted(case.model, target)
    if model is None:
        return None
    operators = {node.op_type for node in model.graph.node}
    try:
        onnx.checker.check_model(model, full_check=not operators & NOT_INFERRED)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return f"invalid: {error}"
    inputs, expected = case.data_sets[0]
    if any(target < REFERENCE_FROM.get(op, 0) for op in operators):
        found = run_onnxruntime(model, inputs, target)
        close = all(np.allclose(one, other, rtol=1e-3, atol=2e-4) for one, other in zip(expected, found, strict=True))
        return None if close else "differs from the expected data in onnxruntime"
    try:
        before = run_reference(case.model, inputs)
    except Exception:
        # The reference evaluator cannot run the original (types that NumPy lacks): nothing to compare.
        return None
    return None if equal(before, run_reference(model, inputs)) else "differs in the reference evaluator"


def faults(cases: list[Any], targets: tuple[int, ...]) -> list[tuple[str, int, str]]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = [(case.name, target, fault(case, target)) for case in cases for target in targets]
    return [(name, target, text) for name, target, text in found if text is not None]


@pytest.mark.parametrize("target", TARGETS)
def test_sample_of_node_tests(target: int) -> None:
    cases = random.Random(target).sample(node_tests(), 40)
    assert faults(cases, (target,)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("target", "first"), [*zip(known([28, 16, 8]), (0, 1, 0), strict=False)])
def test_every_other_node_test(target: int, first: int) -> None:
    assert faults(list(node_tests()[first::2]), (target,)) == []


def test_most_node_tests_are_kept_upward() -> None:
    newest = onnx.defs.onnx_opset_version()
    cases = [case for case in node_tests() if (opset_of(case.model) or 0) >= 18]
    kept = sum(converted(case.model, newest) is not None for case in random.Random(0).sample(cases, 100))
    assert kept >= 95
