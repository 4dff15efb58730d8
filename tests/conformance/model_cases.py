"""A model with inputs and with the outputs that they have to give: what most tests of this folder convert and run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import onnx

from .engine_runs import assert_close, outputs_of


@dataclass(frozen=True)
class ModelCase:
    """A case has the fields of onnx's own TestCase. Nobody may change its model.

    data_sets: inputs and outputs in the order of the graph's. No outputs mean that the original says which are right.
    """

    name: str
    model: onnx.ModelProto
    data_sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float = 1e-3
    atol: float = 1e-7

    @property
    def opset(self) -> int | None:
        """The opset of ai.onnx; None for a model without any."""
        return opset_of(self.model)

    @property
    def feeds(self) -> list[dict[str, Any]]:
        """The inputs of each data set by name."""
        held = {tensor.name for tensor in self.model.graph.initializer}
        names = [value.name for value in self.model.graph.input if value.name not in held]
        return [dict(zip(names, inputs, strict=True)) for inputs, _ in self.data_sets]

    @cached_property
    def expected(self) -> list[Sequence[Any]]:
        """The outputs of each data set: the given ones, or those of the original."""
        return [
            outputs or outputs_of(self.model, feeds)
            for feeds, (_, outputs) in zip(self.feeds, self.data_sets, strict=True)
        ]


def opset_of(model: onnx.ModelProto) -> int | None:
    """The opset of ai.onnx, None for a model without."""
    return next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), None)


def assert_converted(case: ModelCase, converted: onnx.ModelProto) -> None:
    """The converted model is valid, has the inputs and outputs of the original, and gives the expected outputs."""
    onnx.checker.check_model(converted, full_check=True)
    held = {tensor.name for tensor in converted.graph.initializer}
    assert [value for value in converted.graph.input if value.name not in held] == [
        value for value in case.model.graph.input if value.name in case.feeds[0]
    ]
    assert list(converted.graph.output) == list(case.model.graph.output)
    for feeds, expected in zip(case.feeds, case.expected, strict=True):
        assert_close(expected, outputs_of(converted, feeds), rtol=case.rtol, atol=case.atol)
