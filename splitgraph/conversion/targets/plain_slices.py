"""Slices with constant bounds within the dimension, for runtimes that do not read other bounds."""

from __future__ import annotations

from splitgraph.attributes import make_node
from splitgraph.canonical import dimension_on
from splitgraph.conversion.planning.emission import new_emission
from splitgraph.conversion.planning.plan import Plan, opset_of
from splitgraph.graph.names import FreshNames
from splitgraph.graph.values import tensor_contents
from splitgraph.inference.walk_results import GraphDetail
from splitgraph.onnx_proto import ModelProto, TensorProto
from splitgraph.runtimes.node_traits import NodeTraits
from splitgraph.runtimes.target import Target
from splitgraph.value_type import UNKNOWN

# What is gone where all bounds are constants within the dimension.
_UNUSUAL = {"bounds-int32", "bounds-steps", "bounds-open", "bounds-negative", "axis-negative"}
_WRITTEN = {"slice-folded", "slice-fixed", "slice-constant"}


def plan_plain_slice(
    plan: Plan,
    model: ModelProto,
    node: NodeTraits,
    detail: GraphDetail,
    target: Target,
    names: FreshNames,
    why: str,
) -> None:
    """Plan that a Slice gets such bounds, where they are known and the target reads it then."""
    bounds = _bounds(node, detail)
    plain = (node.traits - _UNUSUAL - _WRITTEN) | {"slice-constant"}
    if bounds is None or not node.traits & _WRITTEN or target.failures_of(plain):
        return
    emission = new_emission(plan, model, node.scope, node.node, node.index, names, opset_of(node.scope.imports))
    given = [emission.constant(values, hint) for values, hint in zip(bounds, ("starts", "ends", "axes"), strict=True)]
    made = make_node("Slice", [node.node.input[0], *given], list(node.node.output))
    made.name, made.doc_string = node.node.name, node.node.doc_string
    made.metadata_props.extend(node.node.metadata_props)
    emission.main(made)
    plan.replace(node.scope, node.index, emission.replacement(why, node.label, node.label))


def _bounds(node: NodeTraits, detail: GraphDetail) -> tuple[list[int], list[int], list[int]] | None:
    """Starts, ends and axes; None where one is not known, a step is not 1, or a dimension is not known."""
    inputs = list(node.node.input)
    held = [_integers(detail, name) for name in inputs[1:]]
    starts, ends, axes, steps = (*held, None, None)[:4] if len(held) >= 2 else (None,) * 4
    data = detail.types.get(inputs[0], UNKNOWN)
    if starts is None or ends is None or data.rank is None or (len(inputs) > 4 and inputs[4] and steps is None):
        return None
    if axes is None:
        if len(inputs) > 3 and inputs[3]:
            return None
        axes = list(range(len(starts)))
    if steps is not None and any(step != 1 for step in steps):
        return None
    along = [axis % data.rank for axis in axes]
    dims = [dimension_on(data, axis) for axis in along]
    sizes = [dim for dim in dims if isinstance(dim, int)]
    if len(sizes) != len(dims):
        return None
    return _within(starts, sizes), _within(ends, sizes), along


def _within(bounds: list[int], sizes: list[int]) -> list[int]:
    return [max(0, min(bound + size if bound < 0 else bound, size)) for bound, size in zip(bounds, sizes, strict=True)]


def _integers(detail: GraphDetail, name: str) -> list[int] | None:
    held = detail.constants.get(name)
    contents = tensor_contents(held) if isinstance(held, TensorProto) else held
    return None if contents is None or contents.integers is None else list(contents.integers)
