"""What is done once for several targets is what each of them would do."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from splitgraph.conversion.folding.fold import convert_folded
from splitgraph.conversion.opset import convert_opset
from splitgraph.conversion.targets.convert import checked_conversion, convert_for_target
from splitgraph.conversion.targets.opsets import estimate
from splitgraph.conversion.targets.prepared import Prepared
from splitgraph.conversion.targets.refusals import UserNames
from splitgraph.findings.diagnostics import ConversionError
from splitgraph.options import STRICT
from splitgraph.runtimes.check import examine
from splitgraph.runtimes.target import Target, find_target, targets

MODELS = Path(__file__).parents[3] / "models"
NAMES = ("gpt2.opset17.onnx", "c2f.opset11.onnx", "split_in_function.onnx")
TARGETS = ("tensorrt", "opencv@4.14.0", "tract", "openvino@2023.3.0", "opencv@5.0.0")


@pytest.fixture(params=NAMES)
def model(request: pytest.FixtureRequest) -> onnx.ModelProto:
    return onnx.load(MODELS / request.param)


def test_a_prepared_model_becomes_what_the_model_alone_does(model: onnx.ModelProto) -> None:
    prepared, before = Prepared(model, STRICT), model.SerializeToString()
    # In another order than for one target, and each twice.
    for opset in (18, 11, 18):
        assert prepared.at(opset).model == convert_opset(model, opset).model
    alone = [way.model for way in (convert_folded(model), convert_folded(model, nonempty=True))]
    assert all(start.model in alone for start in prepared.folded)
    assert prepared.at(None).model == model
    assert model.SerializeToString() == before


def _written(model: onnx.ModelProto, target: Target, prepared: Prepared | None) -> object:
    """What a conversion gives: the model, or the blockers."""
    try:
        if prepared is None:
            return convert_for_target(model, target).model
        return checked_conversion(prepared, target)[0].model
    except ConversionError as refused:
        return refused.diagnostics


def test_targets_one_after_the_other_get_what_each_gets_alone(model: onnx.ModelProto) -> None:
    prepared = Prepared(model, STRICT)
    for target in map(find_target, TARGETS):
        assert _written(model, target, prepared) == _written(model, target, None), target.key


def test_what_is_expected_at_an_opset_does_not_depend_on_the_others(model: onnx.ModelProto) -> None:
    examined = examine(model)
    for target in targets().values():
        together = estimate(examined, target, range(7, 22))
        assert together == {opset: estimate(examined, target, [opset])[opset] for opset in range(7, 22)}, target.key


def test_the_names_of_a_converted_model_are_those_of_that_model(model: onnx.ModelProto) -> None:
    names = UserNames(model)
    others = [convert_opset(model, opset).model for opset in (11, 18)]
    for _ in range(2):
        assert [names.locations(other) for other in others] == [UserNames(model).locations(other) for other in others]
