"""Names of a model whose constants have one size baked in: the model runs at that size only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from splitgraph.dim import DimLike
from splitgraph.inference import infer_model
from splitgraph.model.onnx_proto import ModelProto, TensorProto
from splitgraph.model.values import tensor_contents
from splitgraph.options import Sizes

# Sizes that a model with a dynamic dimension has: it is halved, cut into parts, or read by a kernel.
_PROBES = (8, 15, 64, 448, 960)
# So many numbers of a model are tried, and none above this.
_MOST_NUMBERS, _LARGEST = 12, 4096


def baked_sizes(model: ModelProto, renamed: Mapping[str, DimLike]) -> dict[str, int]:
    """Return the only size at which the model runs, of each symbol that has one. renamed: what the symbols become."""
    found = {}
    for name, size in renamed.items():
        # At 1 it may broadcast.
        probes = (size,) if isinstance(size, int) and size > 1 else _PROBES
        if not any(_runs(model, name, probe) for probe in probes):
            only = next((each for each in _numbers(model) if _runs(model, name, each)), None)
            if only is not None and not _runs(model, name, 2 * only) and not _runs(model, name, 3 * only):
                found[name] = only
    return found


def _runs(model: ModelProto, name: str, size: int) -> bool:
    return not any(
        finding.severity == "error" for finding in infer_model(model, Sizes({name: size}), fill=False).diagnostics
    )


def _numbers(model: ModelProto) -> Iterator[int]:
    """Yield the numbers in the constants of a model that may be a size, the smallest first."""
    found: set[int] = set()
    for tensor in _constants(model):
        known = tensor_contents(tensor)
        found.update(tensor.dims, () if known is None else known.integers or ())
    yield from sorted(number for number in found if 1 < number <= _LARGEST)[:_MOST_NUMBERS]


def _constants(model: ModelProto) -> Iterator[TensorProto]:
    yield from model.graph.initializer
    for node in model.graph.node:
        if node.op_type == "Constant":
            yield from (attribute.t for attribute in node.attribute if attribute.HasField("t"))
