"""The sizes at which a batch is verified: some times the old one, and both sides of the numbers that it meets."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

import onnx

from splitgraph.dim import Dim, symbols_of
from splitgraph.inference import infer_model
from splitgraph.model.onnx_proto import ModelProto, NodeProto
from splitgraph.model.schemas import kinds
from splitgraph.model.scopes import MAIN, reads
from splitgraph.model.value_type import UNKNOWN, Contents
from splitgraph.verification.models.model_files import nodes_within
from splitgraph.verification.regions.drawing.inner_limits import COMPARISONS
from splitgraph.verification.regions.finding.constant_values import Constants

# So many times the old batch.
TIMES = (2, 3, 5)
# A number beyond this is not met by a batch, and so many sizes at most are added.
_LARGEST, _MOST = 1024, 6
# The inputs of a larger batch have at most so many elements.
_MOST_ELEMENTS = 2**22
_MEETING = COMPARISONS | {"Mod", "Sub"}
_SCALING = frozenset({"Mul", "Div"})
# In a dimension, what tells sizes below a number from others: min(N, 4), N//4, N % 4.
_TOLD_APART = re.compile(r"min\(|max\(|//|%")


def batch_sizes(after: ModelProto, name: str, old: int) -> list[int]:
    """Return the sizes at which a batch is verified besides the old one. after: with `name` for the batch."""
    sizes = [old * times for times in TIMES] + ([1, old + 1] if old > 1 else [])
    own = {value.name: value.type.tensor_type.shape.dim for value in after.graph.input}
    elements = sum(math.prod(dim.dim_value or 1 for dim in dims) for dims in own.values())
    largest = min(_LARGEST, max(_MOST_ELEMENTS // max(elements, 1), 1))
    met = [size for size in sorted(_met(after, name)) if 1 <= size <= largest and size != old]
    return list(dict.fromkeys([*sizes, *met[:_MOST]]))


def _met(model: ModelProto, name: str) -> set[int]:
    """Return the sizes at and beside the numbers that are compared with a batch."""
    analysis, constants = infer_model(model, fill=False), Constants(model, ())
    types, elements = analysis.types, analysis.details.graphs[MAIN].constants
    counts, limits, scales = set[str](), set[float](), {1.0}
    for node in nodes_within(model.graph.node):
        known = (types.get(value, UNKNOWN).shape or () for value in node.input)
        has_items = any(isinstance(dim, Dim) and name in symbols_of(dim) for shape in known for dim in shape)
        if not (node.op_type in kinds.SIZES and has_items) and counts.isdisjoint(reads(node)):
            continue
        # A height beside the batch in a Shape is none of it.
        counts.update(value for value in node.output if not _is_fixed(elements.get(value)))
        if node.op_type in _MEETING:
            limits.update(_numbers(constants, node))
        elif node.op_type in _SCALING:
            scales.update(number for number in _numbers(constants, node) if number > 0)
    limits.update(_in_dimensions((dim for known in types.values() for dim in known.shape or ()), name))
    found = (limit / scale for limit in limits for scale in (*scales, *(1 / scale for scale in scales)))
    return {math.floor(size) + step for size in found if 0 < size <= _LARGEST for step in (-1, 0, 1)}


def _is_fixed(known: object) -> bool:
    """Return True for elements that are the same whatever the batch is."""
    return isinstance(known, Contents) and not any(item is None or isinstance(item, Dim) for item in known.items)


def _numbers(constants: Constants, node: NodeProto) -> Iterator[float]:
    """Yield the numbers of a node that are constants."""
    for value in node.input:
        tensor = constants.tensor(value) if value in constants else None
        if tensor is not None and math.prod(tensor.dims) == 1 and not tensor.external_data:
            yield float(onnx.numpy_helper.to_array(tensor).reshape(-1)[0])


def _in_dimensions(dims: Iterable[object], name: str) -> Iterator[float]:
    """Yield the numbers in dimensions that tell some sizes of a batch from others."""
    for dim in dims:
        if isinstance(dim, Dim) and name in symbols_of(dim) and _TOLD_APART.search(str(dim)):
            yield from (float(number) for number in re.findall(r"(?<![\w.])\d+", str(dim)))
