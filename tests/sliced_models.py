"""Models of slices that are parts of a value, for tests of splits as slices and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

import splitgraph
from splitgraph.verification.reference.evaluator import load, run

FLOAT = TensorProto.FLOAT
END = 2**63 - 1
Shape = Sequence["int | str | None"] | None


def value(name: str, shape: Shape, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def held(name: str, array: Any, dtype: type = np.int64) -> TensorProto:
    return numpy_helper.from_array(np.array(array, dtype=dtype), name)


def constant(name: str, array: Any) -> NodeProto:
    return helper.make_node("Constant", [], [name], value=held("", array))


def slice_node(
    output: str, start: Any, end: Any, axis: int = 0, *, opset: int = 18, data: str = "x"
) -> list[NodeProto]:
    """A Slice with its bounds as attributes or Constant nodes; a bound that is a name is read."""
    label = f"{output}_slice"
    if opset < 10:
        return [helper.make_node("Slice", [data], [output], name=label, starts=[start], ends=[end], axes=[axis])]
    given = {f"{output}_start": start, f"{output}_end": end}
    read = [bound if isinstance(bound, str) else name for name, bound in given.items()]
    made = [constant(name, [bound]) for name, bound in given.items() if not isinstance(bound, str)]
    axes = constant(f"{output}_axes", [axis])
    return [*made, axes, helper.make_node("Slice", [data, *read, f"{output}_axes"], [output], name=label)]


def gather_node(output: str, indices: Any, axis: int = 0, data: str = "x") -> list[NodeProto]:
    return [
        constant(f"{output}_at", indices),
        helper.make_node("Gather", [data, f"{output}_at"], [output], name=f"{output}_gather", axis=axis),
    ]


def model_of(
    nodes: Sequence[NodeProto],
    outputs: Sequence[str],
    shape: Shape = (6, 4),
    *,
    opset: int = 18,
    dtype: int = FLOAT,
    initializers: Sequence[TensorProto] = (),
    inputs: Sequence[onnx.ValueInfoProto] = (),
    kept: Sequence[onnx.ValueInfoProto] = (),
) -> onnx.ModelProto:
    """A model with the input x of this shape, whose outputs have any shape of its rank."""
    made = [value(name, None, dtype) for name in outputs]
    graph = helper.make_graph(list(nodes), "slices", [value("x", shape, dtype), *inputs], made, list(initializers))
    graph.value_info.extend(kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def sliced(
    bounds: Sequence[tuple[Any, Any]], shape: Shape = (6, 4), *, axis: int = 0, opset: int = 18, **options: Any
) -> onnx.ModelProto:
    """A model of one Slice for each pair of bounds, with outputs y0, y1 and so on."""
    nodes = [
        node for index, pair in enumerate(bounds) for node in slice_node(f"y{index}", *pair, axis=axis, opset=opset)
    ]
    return model_of(nodes, [f"y{index}" for index in range(len(bounds))], shape, opset=opset, **options)


def operators(model: onnx.ModelProto) -> list[str]:
    """The operators of the main graph, without constants."""
    return [node.op_type for node in model.graph.node if node.op_type != "Constant"]


def data(*shape: int) -> dict[str, np.ndarray]:
    return {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}


def assert_same(before: onnx.ModelProto, after: onnx.ModelProto, *feeds: dict[str, np.ndarray]) -> None:
    """Both models give the same outputs, bit for bit."""
    onnx.checker.check_model(splitgraph.infer(after).model, full_check=True)
    first, second = load(before), load(after)
    for given in feeds:
        for want, have in zip(run(first, given), run(second, given), strict=True):
            assert (want.dtype, want.shape, want.tobytes()) == (have.dtype, have.shape, have.tobytes())
