"""Choose valid lengths, axes, indices and sizes for the inputs of OpenVINO layers.

OpenVINO checks few of them, and reads beyond the data if they are wrong.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from splitgraph.execution.inputs.operator_roles import (
    REDUCTIONS,
    Integers,
    Make,
    Request,
    any_axes,
    expand_target,
    one_axis,
    regions,
    reshape_target,
    scattered_tuples,
    small,
    tuples,
)


def for_layer(node: onnx.NodeProto, position: int, request: Request) -> Integers | None:
    """Return valid numbers for an input of a layer; None if any number is valid, or the shape does not fit."""
    make = _ROLES.get((node.op_type, position))
    if make is None and node.op_type in REDUCTIONS and position == 1:
        make = any_axes
    return None if make is None else make(node, request)


def has_layer_role(node: onnx.NodeProto, position: int) -> bool:
    """Return True if only some numbers are valid for an input of a layer."""
    return (node.op_type, position) in _ROLES or (node.op_type in REDUCTIONS and position == 1)


def _number(node: onnx.NodeProto, name: str, default: int = 0) -> int:
    """Read an integer attribute of a layer, which the mirror of an IR holds as text."""
    text = next((a.s for a in node.attribute if a.name == name), b"").decode("ascii", "replace").strip()
    return int(text) if text.removeprefix("-").isdecimal() else default


def _split_axis(node: onnx.NodeProto, request: Request) -> Integers | None:
    shape = request.dims(node.input[0])
    return request.full([request.axes.get(tuple(node.output), len(shape) - 1)]) if shape else None


def _below(node: onnx.NodeProto, request: Request, axis: int | None, least: int = 0) -> Integers | None:
    """Return numbers from `least` on that are positions along an axis of the data, or along every axis (None)."""
    shape = request.dims(node.input[0])
    if not shape or (axis is not None and not -len(shape) <= axis < len(shape)):
        return None
    bound = min(shape) if axis is None else shape[axis]
    return request.full(request.rng.integers(least, bound + least, size=request.count).tolist()) if bound else None


def _along_every_axis(node: onnx.NodeProto, request: Request) -> Integers | None:
    return _below(node, request, None)


def _along_the_first_axis(node: onnx.NodeProto, request: Request) -> Integers | None:
    return _below(node, request, 0)


def _along_the_axis(node: onnx.NodeProto, request: Request) -> Integers | None:
    return _below(node, request, _number(node, "axis"))


def _written_places(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return positions along an unknown axis. If there are enough positions, none repeats along any axis, because the
    order of two writes to one position is undefined.
    """
    shape = request.dims(node.input[0])
    if not shape or not min(shape) or request.shape is None:
        return None
    places = np.indices(tuple(request.shape)).sum(axis=0) + int(request.rng.integers(min(shape)))
    return request.full((places % min(shape)).ravel().tolist())


def _gathered_tuples(node: onnx.NodeProto, request: Request) -> Integers | None:
    return tuples(node, request, _number(node, "batch_dims"))


def _count_along_the_axis(node: onnx.NodeProto, request: Request) -> Integers | None:
    return _below(node, request, _number(node, "axis", -1), least=1)


def _lengths_along(name: str, default: int) -> Make:
    """Return lengths of sequences along an axis that an attribute names."""
    return lambda node, request: _below(node, request, _number(node, name, default), least=1)


def _permutation(node: onnx.NodeProto, request: Request) -> Integers | None:
    return request.full(request.rng.permutation(request.count).tolist())


_ROLES: Mapping[tuple[str, int], Make] = {
    ("Split", 1): _split_axis,
    ("Gather", 1): _along_every_axis,
    ("GatherElements", 1): _along_the_axis,
    ("GatherND", 1): _gathered_tuples,
    ("ScatterUpdate", 1): _written_places,
    ("ScatterElementsUpdate", 1): _written_places,
    ("ScatterNDUpdate", 1): scattered_tuples,
    ("EmbeddingBagOffsetsSum", 1): _along_the_first_axis,
    ("EmbeddingBagPackedSum", 1): _along_the_first_axis,
    ("EmbeddingSegmentsSum", 1): _along_the_first_axis,
    ("ROIAlign", 2): _along_the_first_axis,
    ("ROIPooling", 1): regions,
    ("ReverseSequence", 1): _lengths_along("seq_axis", 1),
    ("GRUSequence", 2): _lengths_along("sequence_axis", 1),
    ("RNNSequence", 2): _lengths_along("sequence_axis", 1),
    ("LSTMSequence", 3): _lengths_along("sequence_axis", 1),
    ("TopK", 1): _count_along_the_axis,
    ("Reshape", 1): reshape_target,
    ("Broadcast", 1): expand_target,
    ("Transpose", 1): _permutation,
    ("Squeeze", 1): any_axes,
    ("Unsqueeze", 1): any_axes,
    ("CumSum", 1): one_axis,
    ("Tile", 1): small(1, 3),
    ("Pad", 1): small(0, 1),
    ("Pad", 2): small(0, 1),
    ("OneHot", 1): small(3, 8),
    ("Slice", 1): small(0, 1),
    ("Slice", 2): small(2, 5),
    ("Slice", 3): small(1, 1),
    ("Slice", 4): any_axes,
    ("StridedSlice", 1): small(0, 1),
    ("StridedSlice", 2): small(2, 5),
    ("StridedSlice", 3): small(1, 1),
    ("Range", 0): small(0, 1),
    ("Range", 1): small(4, 8),
    ("Range", 2): small(1, 2),
}
