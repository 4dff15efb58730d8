"""Lengths at which the windows of changed nodes lie on data with all of their taps, and can be told apart.

Padding hides the outer taps of a window that is wider than its data: a dilation of 36 reads the same few elements as
one of 24 where the data has eight. So the models run where the data is twice as long as the window.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from splitgraph.model.schemas import kinds
from splitgraph.model.value_type import UNKNOWN
from splitgraph.verification.models.model_files import nodes_within
from splitgraph.verification.regions.finding.find import ModelRegions
from splitgraph.verification.regions.finding.sides import ModelSide

# Windows that are no wider lie on data in any run; wider ones are not looked at.
_LEAST, _MOST = 8, 2**12
# What the length is rounded up to where a model does not take it.
_STEPS = (1, 8, 32, 64)
# Where the weights are whose size is that of the window.
_WEIGHTS = dict.fromkeys(sorted(kinds.CONVOLUTIONS | kinds.names("FusedConv NhwcFusedConv")), 1) | {"QLinearConv": 3}


def window_lengths(found: ModelRegions) -> list[list[int]]:
    """Return for each width of a window of a changed node the lengths to try, of which one is enough; the shortest
    windows first.
    """
    extents = set[int]()
    for place, side in enumerate(found.sides):
        changed = {index for region in found.regions for index in (region.before, region.after)[place]}
        for node in nodes_within([side.nodes[index] for index in sorted(changed)]):
            extents.update(_extents(node, side))
    wanted = sorted(extent for extent in extents if _LEAST <= extent <= _MOST)
    return [[-(-(2 * extent + 1) // step) * step for step in _STEPS] for extent in wanted]


def _extents(node: onnx.NodeProto, side: ModelSide) -> Iterator[int]:
    """Yield how many elements the window of a node spans along each axis; none for a node without a window."""
    given = {attribute.name: list(attribute.ints) for attribute in node.attribute}
    kernel = given.get("kernel_shape") or _kernel_of_weights(node, side)
    dilations = given.get("dilations") or [1] * len(kernel)
    for size, dilation in zip(kernel, dilations, strict=False):
        yield (size - 1) * dilation + 1


def _kernel_of_weights(node: onnx.NodeProto, side: ModelSide) -> list[int]:
    place = _WEIGHTS.get(node.op_type)
    if place is None or place >= len(node.input):
        return []
    tensor = side.constants.tensor(node.input[place])
    shape = side.types.get(node.input[place], UNKNOWN).shape if tensor is None else tensor.dims
    return [size for size in (shape or ())[2:] if isinstance(size, int)]
