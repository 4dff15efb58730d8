"""The architectures that onnx's package carries at opset 9, taken up: they give the package's own outputs, and with
weights that tell channels apart what the original gives.
"""

from __future__ import annotations

import numpy as np
import pytest
from known_opsets import known

import splitgraph

from .architectures import MOST_WEIGHTS, weights_of, with_random_weights
from .model_cases import assert_converted
from .model_table import models_of

TARGETS = known([18, 28])
# Small ones, which have between them Dropout, LRN, BatchNormalization, Sum and Softmax.
DEFAULT = ("light_squeezenet", "light_shufflenet", "light_zfnet512")
RANDOM_BY_DEFAULT = ("light_squeezenet", "light_shufflenet")
OTHERS = [name for name in models_of("architecture") if name not in DEFAULT]
RANDOM = [name for name in OTHERS if weights_of(models_of("architecture")[name].model) <= MOST_WEIGHTS]


def check_outputs_of_the_package(name: str, target: int) -> None:
    case = models_of("architecture")[name]
    assert_converted(case, splitgraph.upgrade(case.model, target).model)


def check_random_weights(name: str, target: int) -> None:
    case = with_random_weights(models_of("architecture")[name])
    assert np.ptp(case.expected[0][0]) > 1e-5
    assert_converted(case, splitgraph.upgrade(case.model, target).model)


def test_the_package_has_these_architectures() -> None:
    assert len(OTHERS) == 6
    assert len(RANDOM) == 4


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", DEFAULT)
def test_outputs_of_the_package(name: str, target: int) -> None:
    check_outputs_of_the_package(name, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", RANDOM_BY_DEFAULT)
def test_random_weights(name: str, target: int) -> None:
    check_random_weights(name, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", OTHERS)
def test_outputs_of_the_package_for_all(name: str, target: int) -> None:
    check_outputs_of_the_package(name, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", RANDOM)
def test_random_weights_for_all(name: str, target: int) -> None:
    check_random_weights(name, target)
