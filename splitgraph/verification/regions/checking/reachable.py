"""Leave out what no position reaches: where two models differ in rows of a table beyond the range of its positions, no
run has to read these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx

from splitgraph.verification.models.model_files import is_default_domain
from splitgraph.verification.regions.checking.reading import ConstantChange
from splitgraph.verification.regions.drawing.ranges import ValueRanges
from splitgraph.verification.regions.finding.constants import held_constants
from splitgraph.verification.regions.finding.cut import constants_read
from splitgraph.verification.regions.finding.find import FoundRegion, ModelRegions
from splitgraph.verification.values import Array

# Operators that read rows along an axis.
_READING_ROWS = frozenset({"Gather", "GatherElements"})


def reachable_changes(
    changes: Sequence[ConstantChange],
    models: Sequence[onnx.ModelProto],
    regions: Sequence[FoundRegion],
    found: ModelRegions,
    ranges: Sequence[ValueRanges],
) -> Iterator[ConstantChange]:
    """Yield the changes without the elements that no position reaches, in any of the regions. models: that stand for
    the regions. ranges: of the values of both models.
    """
    for change in changes:
        places = []
        for side, model in enumerate(models):
            own = change.places[side]
            if own.size:
                name = held_constants(model, has_all_attributes=True)[change.positions[side]].name
                shape = change.arrays[side].shape
                kept = [_is_reached(name, region, side, found, ranges[side], shape) for region in regions]
                own = own[np.any([flags.reshape(-1)[own] for flags in kept], axis=0)]
            places.append(own)
        if any(each.size for each in places):
            yield change._replace(places=(places[0], places[1]))


def _is_reached(
    name: str, region: FoundRegion, number: int, found: ModelRegions, ranges: ValueRanges, shape: tuple[int, ...]
) -> Array:
    """Return which elements of a constant the nodes of a region may read. name: in the model of the region."""
    side, every = found.sides[number], np.ones(shape, bool)
    constant = constants_read(region, side, number).get(name)
    if constant is None or any(border[number] == constant for border in region.outputs):
        return every
    reached = np.zeros(shape, bool)
    for node in (side.nodes[index] for index in (region.before, region.after)[number] if constant in side.reads[index]):
        axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
        is_table = node.op_type in _READING_ROWS and is_default_domain(node.domain) and node.input[0] == constant
        known = ranges.of(node.input[1]) if is_table and node.input[1] != constant else None
        if known is None or not -len(shape) <= axis < len(shape):
            return every
        rows = np.arange(shape[axis])
        flags = [(known[0] <= row) & (row <= known[1]) for row in (rows, rows - shape[axis])]
        reached |= (flags[0] | flags[1]).reshape([-1 if each == axis % len(shape) else 1 for each in range(len(shape))])
    return reached
