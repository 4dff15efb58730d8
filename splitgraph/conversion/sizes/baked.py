"""Finds the names of dimensions that can have one size only, because constants of the model have that size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from splitgraph.dim import Dim, DimLike, symbol
from splitgraph.inference import infer_model
from splitgraph.inference.analysis import Analysis
from splitgraph.model.onnx_proto import ModelProto, TensorProto
from splitgraph.model.values import tensor_contents
from splitgraph.options import Sizes

# Says whether a model runs at sizes, as far as inference knows.
Runs = Callable[[ModelProto, Sizes], bool]
# Sizes that a model with a dynamic dimension has: it is halved, cut into parts, or read by a kernel.
_PROBES = (8, 15, 64, 448, 960)
# So many numbers of a model are tried, and none above this.
_MOST_NUMBERS, _LARGEST = 12, 4096


def runs_in_onnx(model: ModelProto, sizes: Sizes) -> bool:
    """Return True for a model that runs at sizes, as far as inference knows."""
    return is_right(infer_model(model, sizes, fill=False))


def is_right(found: Analysis) -> bool:
    """Return True for a model without errors, and without a dimension that can only be 0."""
    empty = [each for each in found.required_by if each.relation == "==" and each.rhs == 0 and _is_name(each.lhs)]
    return not empty and not any(finding.severity == "error" for finding in found.diagnostics)


def _is_name(dim: DimLike) -> bool:
    """Return True for a dimension that is one symbol."""
    return isinstance(dim, Dim) and dim == symbol(str(dim))


def baked_sizes(model: ModelProto, renamed: Mapping[str, DimLike], runs: Runs = runs_in_onnx) -> dict[str, int]:
    """Return the only size at which the model runs, of each symbol that has one. renamed: what the
    symbols become. runs: says whether the model runs.
    """
    found = {}
    for name, size in renamed.items():
        # At 1 it may broadcast.
        probes = (size,) if isinstance(size, int) and size > 1 else _PROBES
        if any(runs(model, Sizes({name: probe})) for probe in probes):
            continue
        only = next((each for each in _numbers(model) if runs(model, Sizes({name: each}))), None)
        if only is not None and not any(runs(model, Sizes({name: times * only})) for times in (2, 3)):
            found[name] = only
    return found


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
