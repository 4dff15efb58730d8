"""One node of a small model, taken over opsets and executed on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import onnx
from conversion.operators.execute import Array, assert_same, converted, refusal, run, run_reference
from onnx import helper, numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented

from splitgraph.conversion.opset import convert_opset
from splitgraph.model.schemas.table import minimum_ir_version

Shapes = Literal["static", "symbolic", "unknown"]


@dataclass(frozen=True)
class Crossing:
    """A node, the inputs that are given when the model is run (by name), and those that are constants.

    name: of the case. inputs: of the node, "" where one is left out; default: the given, then the constants. expected:
    the outputs where the old document says other than engines do, or no engine runs the old version. shapes: what the
    model declares of the given inputs.
    """

    name: str
    op_type: str
    source: int
    target: int
    given: Mapping[str, Any]
    constants: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    inputs: Sequence[str] | None = None
    outputs: int = 1
    expected: Sequence[Any] | None = None
    tolerance: float = 0.0
    shapes: Shapes = "static"

    def __str__(self) -> str:
        return f"{self.op_type} {self.source} to {self.target} {self.name}".strip().replace(" ", "_")

    def model(self) -> onnx.ModelProto:
        """The model at the source opset; its outputs are declared without dimensions."""
        model = self._undeclared()
        if self.shapes != "unknown":
            _declare_outputs(model, self._results(model))
        return model

    def _undeclared(self) -> onnx.ModelProto:
        """The model, whose outputs have names alone."""
        names = list(self.given) + list(self.constants) if self.inputs is None else list(self.inputs)
        outputs = [f"y{index}" for index in range(self.outputs)]
        node = helper.make_node(self.op_type, names, outputs, "node", **self.attributes)
        inputs = [self._declared(name, np.asarray(array)) for name, array in self.given.items()]
        held = [numpy_helper.from_array(np.asarray(array), name) for name, array in self.constants.items()]
        graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], held)
        imports = [helper.make_opsetid("", self.source)]
        return helper.make_model(graph, opset_imports=imports, ir_version=max(minimum_ir_version(self.source), 4))

    def _results(self, model: onnx.ModelProto) -> list[Any]:
        return _run(model, self._feeds()) if self.expected is None else list(self.expected)

    def _feeds(self) -> dict[str, Array]:
        return {name: np.asarray(array) for name, array in self.given.items()}

    def _declared(self, name: str, array: Array) -> onnx.ValueInfoProto:
        number = helper.np_dtype_to_tensor_dtype(array.dtype)
        dims: Sequence[int | str] | None = array.shape
        if self.shapes == "symbolic":
            dims = [f"{name}{axis}" for axis in range(array.ndim)]
        return helper.make_tensor_value_info(name, number, None if self.shapes == "unknown" else dims)

    def check(self) -> onnx.ModelProto:
        """Convert, compare what both models give, and return the converted model."""
        model = self._undeclared()
        # Once: a session takes longer than all else that is done with so small a model.
        results = self._results(model)
        if self.shapes != "unknown":
            _declare_outputs(model, results)
        # The checker wants a rank for everything.
        after = convert_opset(model, self.target).model if self.shapes == "unknown" else converted(model, self.target)
        assert_same(results, _run(after, self._feeds()), self.tolerance)
        return after

    def refused(self) -> str:
        """The words of the refusal, "" when it is converted."""
        return refusal(self.model(), self.target)


def _declare_outputs(model: onnx.ModelProto, results: Sequence[Any]) -> None:
    """Declare the type and rank of each output, which are those of its result."""
    for output, result in zip(model.graph.output, results, strict=True):
        array = np.asarray(result)
        number = helper.np_dtype_to_tensor_dtype(array.dtype)
        output.CopyFrom(helper.make_tensor_value_info(output.name, number, [None] * array.ndim))


def _run(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Any]:
    """The outputs, from the reference evaluator where onnxruntime lacks an operator for a type."""
    try:
        return run(model, feeds)
    except NotImplemented:
        return run_reference(model, feeds)


def both_shapes(*cases: Crossing) -> list[Crossing]:
    """Each case with static and with symbolic shapes."""
    kinds: tuple[Shapes, ...] = ("static", "symbolic")
    return [replace(case, name=f"{case.name} {kind}", shapes=kind) for case in cases for kind in kinds]
