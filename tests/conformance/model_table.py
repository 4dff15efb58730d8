"""The table of all models that the tests of this folder convert and run, by where they come from.

The conversion matrix is not a list but a product of factors: `matrix_models.py` has its cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain
from typing import NamedTuple

from .architectures import architectures
from .frontend_models import frontend_models
from .model_cases import ModelCase
from .old_layers import layer_cases
from .old_movement import movement_cases
from .old_operators import math_cases
from .old_selection import selected
from .opset_cases import node_cases
from .project_models import project_models


class Source(NamedTuple):
    """Where models come from, and what makes them."""

    about: str
    make: Callable[[], Iterable[ModelCase]]


TABLE = {
    "project": Source("the valid models of `models/`", project_models),
    "architecture": Source("the architectures that onnx's package carries at opset 9", architectures),
    "node test": Source("onnx's own node tests", node_cases),
    "old release": Source("a selection of the backend tests of old onnx releases", selected),
    "old operator": Source(
        "operators of opsets 1 to 12, with what their documents say",
        lambda: chain(math_cases(), movement_cases(), layer_cases()),
    ),
    "frontend": Source("models that OpenVINO's ONNX frontend rejects or reads wrongly", frontend_models),
}


@cache
def models_of(source: str) -> dict[str, ModelCase]:
    """The models of a source by name, made when a test first asks for them. Nobody may change them."""
    made = list(TABLE[source].make())
    found = {case.name: case for case in made}
    assert len(found) == len(made), f"two models of {TABLE[source].about} have one name"
    return found
