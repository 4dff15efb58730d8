"""What is known of the values of a region before it runs: elements that are the same in every run, and sizes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from splitgraph.inference import infer_model
from splitgraph.model.scopes import MAIN
from splitgraph.model.value_type import UNKNOWN, Contents
from splitgraph.model.values import type_proto
from splitgraph.verification.regions.finding.cut import input_name
from splitgraph.verification.regions.finding.find import FoundRegion
from splitgraph.verification.regions.finding.folding import SAYING_SIZES, KnownWithin
from splitgraph.verification.regions.finding.sides import ModelSide
from splitgraph.verification.values import Array

_INTEGERS = frozenset({"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})


def known_within(region: FoundRegion, side: ModelSide, number: int, model: onnx.ModelProto) -> KnownWithin:
    """Return what is known of the values of a region. side, number: as for `cut_out`. model: what it gave."""
    constants = side.analysis.details.graphs[MAIN].constants
    typed: dict[str, onnx.TypeProto] = {}
    elements: dict[str, Array] = {}
    for position, border in enumerate(region.inputs):
        known, contents = side.types.get(border[number], UNKNOWN), constants.get(border[number])
        proto = type_proto(known)
        if proto is not None:
            typed[input_name(position)] = proto
        integers = contents.integers if isinstance(contents, Contents) else None
        if integers is not None and known.dtype in _INTEGERS and isinstance(contents, Contents):
            elements[input_name(position)] = np.array(integers, known.dtype).reshape(contents.shape)
    return KnownWithin(elements, _known_shapes(model, typed))


def _known_shapes(model: onnx.ModelProto, typed: Mapping[str, onnx.TypeProto]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the values of a region whose sizes follow from those of its inputs. What outputs of a whole
    model declare says more: that NonZero finds 4, which a run on drawn values need not do.
    """
    if not any(node.op_type in SAYING_SIZES for node in model.graph.node):
        return {}
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        if value.name in typed:
            value.type.CopyFrom(typed[value.name])
    known: dict[str, tuple[int, ...]] = {}
    for name, found in infer_model(copy, fill=False, owned=True).types.items():
        sizes = tuple(size for size in found.shape or () if isinstance(size, int))
        if found.kind == "tensor" and found.shape is not None and len(sizes) == len(found.shape):
            known[name] = sizes
    return known
