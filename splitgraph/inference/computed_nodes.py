"""The nodes of a walk whose outputs can be computed from constants (`computed_values.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.attribute_values import HOLDING_GRAPHS
from splitgraph.contents import Contents
from splitgraph.inference.computed_values import FOLLOWED, Computation, ComputedValue, is_computable, is_few
from splitgraph.inference.context import NodeContext
from splitgraph.inference.graph_walk import GraphWalk
from splitgraph.inference.operators import Operator
from splitgraph.inference.rules.arithmetic import is_integer_type
from splitgraph.onnx_proto import TensorProto
from splitgraph.tensor_bytes import lacks_data, misfit
from splitgraph.tensor_places import is_in_other_file
from splitgraph.value_type import UNKNOWN, ValueType


def computation_of(
    walk: GraphWalk, ctx: NodeContext, operator: Operator, outputs: Sequence[ValueType]
) -> Computation | None:
    """The computation of a node whose inputs are all known, and whose outputs its rule does not follow; else None."""
    node = ctx.node
    if operator.domain or ctx.errors or not ctx.given or not is_computable(node.op_type, ctx.since_version):
        return None
    if _is_followed(ctx, outputs) or (node.op_type in FOLLOWED and is_integer_type(ctx.input(0).dtype)):
        return None
    sources: list[ComputedValue | TensorProto | Contents | None] = []
    for position, name in enumerate(node.input):
        source = _source(walk, ctx, position)
        if source is None and name and ctx.has_input(position):
            return None
        sources.append(source)
    if any(attribute.ref_attr_name or attribute.type in HOLDING_GRAPHS for attribute in node.attribute):
        return None
    if node.op_type == "SplitToSequence" and len(sources) > 1 and "keepdims" in ctx.attributes():
        # The specification ignores keepdims beside lengths; runtimes do not.
        return None
    given = [known or UNKNOWN for known in ctx.inputs]
    computation = Computation(node, ctx.opset, sources, given, outputs)
    return computation if computation.is_short else None


def _is_followed(ctx: NodeContext, outputs: Sequence[ValueType]) -> bool:
    """True if all is known of the outputs, or they are too large to be computed."""
    for position, known in enumerate(outputs):
        contents = ctx.contents_out.get(position)
        if contents is not None and None not in contents.items:
            continue
        shape = known.shape
        is_unknown = known.kind == "tensor" and (shape is None or not all(isinstance(dim, int) for dim in shape))
        if is_few(known) or is_unknown:
            return False
    return True


def _is_readable(held: TensorProto) -> bool:
    """True for a sound tensor whose elements are in the model or its own file: inference opens no data file."""
    return not is_in_other_file(held) and not lacks_data(held) and misfit(held) is None


def _source(walk: GraphWalk, ctx: NodeContext, position: int) -> ComputedValue | TensorProto | Contents | None:
    """What an input of few elements is computed or read from; None where it is not known."""
    known = ctx.given[position]
    if known.type is None:
        return None
    name = ctx.node.input[position]
    contents = known.contents
    if contents is None or None in contents.items:
        computed = walk.computed_of(name)
        if computed is not None:
            return computed
    if not is_few(known.type):
        return None
    if known.unread:
        held = walk.held(name)
        return held if isinstance(held, TensorProto) and _is_readable(held) else None
    if contents is None or not all(isinstance(item, (int, float)) for item in contents.items):
        return None
    return contents
