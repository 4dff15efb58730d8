"""onnx's own node tests of the split family: shapes through infer, data through conversion and execution."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from known_opsets import known
from onnx import numpy_helper

import splitgraph

from .matrix_checks import convert, execute
from .model_table import models_of

TARGETS = known([11, 13, 18, 21, 28])
FAMILY = ("test_split", "test_string_split")

CASES = {name: case for name, case in models_of("node test").items() if name.startswith(FAMILY)}


def as_array(given: Any) -> np.ndarray:
    return numpy_helper.to_array(given) if isinstance(given, onnx.TensorProto) else np.asarray(given)


def data_of(case: Any) -> list[tuple[dict[str, np.ndarray], list[Any]]]:
    """Inputs by name and outputs in order (a list for a sequence) of each set of data."""
    names = [value.name for value in case.model.graph.input]
    return [
        (
            {name: as_array(given) for name, given in zip(names, inputs, strict=True)},
            [[as_array(part) for part in value] if isinstance(value, list) else as_array(value) for value in outputs],
        )
        for inputs, outputs in case.data_sets
    ]


def assert_equal(want: Any, have: Any) -> None:
    if isinstance(want, list):
        assert len(want) == len(have)
        for mine, theirs in zip(want, have, strict=True):
            assert_equal(mine, theirs)
        return
    assert want.shape == have.shape
    np.testing.assert_array_equal(want.astype(object), have.astype(object))


def test_the_family_is_found() -> None:
    assert len(CASES) >= 20
    assert {node.op_type for case in CASES.values() for node in case.model.graph.node} == {
        "Split",
        "SplitToSequence",
        "StringSplit",
    }


@pytest.mark.parametrize("name", CASES)
def test_inferred_shapes_are_those_of_the_data(name: str) -> None:
    case = CASES[name]
    analysis = splitgraph.infer(case.model)
    assert analysis.ok, analysis.diagnostics
    for _, outputs in data_of(case):
        for value, found in zip(case.model.graph.output, outputs, strict=True):
            assert_fits(analysis.types[value.name], found)


@pytest.mark.parametrize("name", CASES)
def test_shapes_need_no_declaration(name: str) -> None:
    """Inferred from the inputs alone, with what the data says of inputs that hold lengths."""
    case = CASES[name]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for value in model.graph.output:
        held = (
            value.type.sequence_type.elem_type.tensor_type
            if value.type.HasField("sequence_type")
            else value.type.tensor_type
        )
        for dim in held.shape.dim:
            dim.ClearField("value")
    for inputs, outputs in data_of(case):
        for value in model.graph.input[1:]:
            model.graph.initializer.append(numpy_helper.from_array(inputs[value.name], value.name))
        del model.graph.input[1:]
        analysis = splitgraph.infer(model)
        assert analysis.ok, analysis.diagnostics
        for value, found in zip(model.graph.output, outputs, strict=True):
            known = analysis.types[value.name]
            assert_fits(known, found)
            if "split_to_sequence" not in name and "string" not in name:
                assert known.shape == found.shape


def assert_fits(known: Any, found: Any) -> None:
    """Each static dimension is the data's."""
    for array in found if isinstance(found, list) else [found]:
        assert known.shape is not None and len(known.shape) == array.ndim
        for dim, size in zip(known.shape, array.shape, strict=True):
            assert not isinstance(dim, int) or dim == size


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_converted_models_give_the_data(name: str, target: int) -> None:
    case = CASES[name]
    source = case.model.opset_import[0].version
    if "string" in name and target < 20:
        with pytest.raises(splitgraph.ConversionError) as raised:
            convert(case.model, source, target)
        assert [found.code for found in raised.value.diagnostics] == ["SG404"]
        return
    converted = convert(case.model, source, target).model
    onnx.checker.check_model(converted, full_check=True)
    for inputs, outputs in data_of(case):
        (found,) = execute(converted, [inputs])
        for want, have in zip(outputs, found.values(), strict=True):
            assert_equal(want, have)
