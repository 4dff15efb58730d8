"""Cut regions out of their models, and put those together that are alike: they share files, sessions and answers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from splitgraph.inference import infer_model
from splitgraph.model.schemas import kinds
from splitgraph.model.scopes import MAIN
from splitgraph.model.value_type import UNKNOWN, Contents
from splitgraph.model.values import type_proto
from splitgraph.options import ATOL_WRITTEN_OUT
from splitgraph.verification.models.model_files import write_model
from splitgraph.verification.regions.checking.checked import CheckedKind, CheckedRegion
from splitgraph.verification.regions.checking.planted import Cut
from splitgraph.verification.regions.checking.question import RegionQuestion
from splitgraph.verification.regions.finding.cut import (
    has_same_kernels,
    has_same_operators,
    have_other_constants,
    input_name,
    regroups_sums,
)
from splitgraph.verification.regions.finding.find import FoundRegion
from splitgraph.verification.regions.finding.folding import KnownWithin, folded
from splitgraph.verification.regions.finding.sides import ModelSide
from splitgraph.verification.values import Array

_INTEGERS = frozenset({"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})


def with_kinds(
    question: RegionQuestion, regions: Sequence[FoundRegion], cut: Cut, folder: Path
) -> tuple[list[CheckedRegion], list[CheckedKind]]:
    """Return regions with their kinds, and these by their numbers. cut: cuts a region out of one of the models. folder:
    where the models of the kinds are written.
    """
    known: dict[tuple[object, ...], CheckedKind] = {}
    members = []
    for region in regions:
        models = _models(question, region, cut)
        fixed = [
            place
            for place, border in enumerate(region.inputs)
            if not question.is_drawable(border.before) or question.is_always_empty(border.before)
        ]
        signed = [place for place, border in enumerate(region.outputs) if border.before in question.found.signs_matter]
        # How large a sum is hangs on lengths, and not only on the range of what is added up.
        grows = question.axes.add_up(region)
        ranges = [None if grows else question.ranges.of(border.before) for border in region.inputs]
        # Of several nodes, one may undo what another one changes.
        is_one = len(region.before) - len(region.context) == 1
        written = [hashlib.sha256(model.SerializeToString(deterministic=True)).digest() for model in models]
        key = (*written, *fixed, is_one, *signed, *ranges)
        if key not in known:
            number = len(known)
            known[key] = CheckedKind(
                number,
                models,
                [
                    write_model(model, folder / f"kind_{number}_{when}", compared.folder)
                    for model, when, compared in zip(models, ("before", "after"), question.pair, strict=True)
                ],
                fixed,
                signed,
                ranges,
                is_exact=is_one and question.tolerances[1] < ATOL_WRITTEN_OUT and has_other_weights(question, models),
                has_same_kernels=has_same_kernels(*models),
                regroups=regroups_sums(*models),
            )
        members.append(CheckedRegion(region, known[key]))
    return members, list(known.values())


def _models(question: RegionQuestion, region: FoundRegion, cut: Cut) -> list[onnx.ModelProto]:
    """Return what a region is in both models."""
    parts = (cut(region, side, number) for number, side in enumerate(question.found.sides))
    return [
        folded(model, side.folder, _known_within(region, side, number, model))
        for number, (model, side) in enumerate(zip(parts, question.found.sides, strict=True))
    ]


def _known_within(region: FoundRegion, side: ModelSide, number: int, model: onnx.ModelProto) -> KnownWithin:
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
    if not any(node.op_type in kinds.SIZES for node in model.graph.node):
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


def has_other_weights(question: RegionQuestion, models: Sequence[onnx.ModelProto]) -> bool:
    """Return True if both sides of a region are the same operators with other constants."""
    return has_same_operators(*models) and have_other_constants(models, question.pair, question.tolerances[0])
