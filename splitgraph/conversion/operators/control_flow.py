"""If and Loop below opsets 16 and 11, Scan below opset 16."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from splitgraph.contents import MAX_WRITTEN
from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.registry import always, changed, downward, exact_downward, unchanged
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.deferred import helper
from splitgraph.dim import Dim, symbols_of
from splitgraph.graph.scopes import subgraphs
from splitgraph.inference.walk_results import GraphDetail
from splitgraph.node_making import make_node
from splitgraph.onnx_proto import GraphProto, NodeProto, TensorProto, ValueInfoProto
from splitgraph.value_type import Shape, tensor

# If -----------------------------------------------------------------------------------------------------------------

unchanged("If", 13, 16, 19, 21, 23, 24, 25)
changed(
    "If",
    11,
    "below it, both branches must give the same shapes",
    up=always,
    hint="or declare the shapes of what the branches give",
)


@exact_downward("If", 11)
def branches_give_equal_shapes(crossing: Crossing) -> bool:
    """If 1|11, downward: both branches declare the same numbers. What is the same name in both, its author may have
    used for two things.
    """
    branches = [crossing.value("then_branch"), crossing.value("else_branch")]
    if not all(isinstance(branch, GraphProto) for branch in branches):
        return False
    then_shapes, else_shapes = ([_declared_shape(value) for value in branch.output] for branch in branches)
    return None not in then_shapes and then_shapes == else_shapes


def _declared_shape(value: ValueInfoProto) -> tuple[int, ...] | None:
    shape = value.type.tensor_type.shape
    is_static = value.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in shape.dim)
    return tuple(dim.dim_value for dim in shape.dim) if is_static else None


@downward("If", 11)
def branches_of_one_shape(context: AdapterContext) -> None:
    """Below 11, both branches give the same shapes: so they do where the shapes of the outputs are static and nothing
    that is known of a branch contradicts them, and where those that are inferred in both branches are equal, whatever
    names each of them declares. The shapes of the one branch that a known condition chooses say nothing of the other,
    which never runs: any other will do.
    """
    condition = context.elements(0)
    if condition is not None:
        _give_one_branch_twice(context, bool(condition.reshape(-1)[0]))
        return
    found = _shapes_of_branches(context)
    for index, name in enumerate(context.outputs):
        shape = context.output_type(index).shape
        is_static = shape is not None and all(isinstance(size, int) for size in shape)
        may_be_it = is_static and all(_may_be(shape, each) for pairs in found for each in pairs[index])
        if name and not may_be_it and not (found and all(_are_equal(context, *each[index]) for each in found)):
            raise Inexact(
                "below it, both branches must give the same shapes", "declare the shapes of what the branches give"
            )


def _give_one_branch_twice(context: AdapterContext, condition: bool) -> None:
    """Let the branch that never runs be what the other one is."""
    if context.form.original is None:
        raise Inexact("its branches are not the model's")
    taken, other = ("then_branch", "else_branch") if condition else ("else_branch", "then_branch")
    branch = context.value(taken)
    if isinstance(branch, GraphProto) and (count := 2 * _copied_nodes(branch)) > MAX_WRITTEN:
        raise Inexact(f"with one branch of each If in place of the other it has {count:,} nodes, which is too many")
    context.reasons[other] = (
        f"it never runs, and gives the same shapes as {taken}, as it must {context.side}, being the same"
    )
    context.form.wrap = partial(_copy_branch, taken, other, context.form.wrap)


def _copied_nodes(graph: GraphProto) -> int:
    """How many nodes a graph may have when of each If in it both branches are the larger one."""
    total = len(graph.node)
    for node in graph.node:
        counts = [_copied_nodes(inner) for _, _, inner in subgraphs(node)]
        total += len(counts) * max(counts, default=0)
    return total


def _copy_branch(taken: str, other: str, before: Callable[[NodeProto], None] | None, node: NodeProto) -> None:
    if before is not None:
        before(node)
    branches = {held.name: held.g for held in node.attribute}
    branches[other].CopyFrom(branches[taken])


def _shapes_of_branches(context: AdapterContext) -> list[list[tuple[Shape | None, Shape | None]]]:
    """The shapes of each output in both branches, as inferred, which may be those of several nodes: where they stand in
    the graph is not known, and the names in branches of different nodes may be the same.
    """
    branches = [context.value(f"{side}_branch") for side in ("then", "else")]
    if not all(isinstance(branch, GraphProto) for branch in branches):
        return []
    results = [[value.name for value in branch.output] for branch in branches]
    found = []
    for details in context.values.branches():
        pair = [details.get(f"{side}_branch") for side in ("then", "else")]
        walked = [each.types for each, branch in zip(pair, branches, strict=True) if each and _is_of(each, branch)]
        if len(walked) == len(branches):
            shapes = [
                [(types.get(name) or context.values.type_of(name)).shape for name in names]
                for types, names in zip(walked, results, strict=True)
            ]
            found.append(list(zip(*shapes, strict=True)))
    return found


def _is_of(detail: GraphDetail, graph: GraphProto) -> bool:
    """True when the details may be of the graph: they have its values."""
    return all(name in detail.types for node in graph.node for name in node.output if name)


def _may_be(shape: Shape | None, other: Shape | None) -> bool:
    """False where what is known of two shapes is not the same."""
    if shape is None or other is None:
        return True
    pairs = zip(shape, other, strict=False)
    return len(shape) == len(other) and all(one == two or not isinstance(two, int) for one, two in pairs)


def _are_equal(context: AdapterContext, one: Shape | None, other: Shape | None) -> bool:
    if one is None or None in one or one != other:
        return False
    # An author may have called what nobody knows by one name in both.
    symbols = frozenset[str]().union(*(symbols_of(dim) for dim in one if isinstance(dim, Dim)))
    return not context.values.are_named_within(symbols)


@downward("If", 16)
def branches_without_bfloat16(context: AdapterContext) -> None:
    """Below 16 a branch gives no bfloat16: it gives float32, which holds it, and is cast back."""
    if context.form.original is None:
        raise Inexact("its branches are not the model's")
    if any(context.output_type(index).kind != "tensor" for index, name in enumerate(context.outputs) if name):
        raise Inexact("its branches give other types than tensors")
    casts: dict[int, tuple[str, str]] = {}
    for index, name in enumerate(context.outputs):
        if name and context.output_type(index).dtype == "bfloat16":
            casts[index] = (context.new_name("as_float32"), context.new_name("as_float32"))
            shape = context.output_type(index).shape
            old = context.redirect(index, "as_float32")
            # The branches give bfloat16 until everything else is done.
            context.values.define(context.outputs[index], tensor("float32", shape))
            context.emit_after("Cast", [context.outputs[index]], old, to=TensorProto.BFLOAT16)
    context.form.wrap = partial(_cast_results, casts)


def _cast_results(casts: Mapping[int, tuple[str, str]], node: NodeProto) -> None:
    """Let both branches of an If give float32: index of the output to the new name in each branch."""
    branches = (next(held.g for held in node.attribute if held.name == f"{side}_branch") for side in ("then", "else"))
    for side, branch in enumerate(branches):
        for index, names in casts.items():
            branch.node.append(_given_as_float32(branch.output[index], names[side]))


# Loop ---------------------------------------------------------------------------------------------------------------

unchanged("Loop", 11, 13, 16, 19, 21, 23, 24, 25)


@downward("Loop", 11)
def something_to_carry(context: AdapterContext) -> None:
    """Below 11, a loop carries at least one value: a number that nobody reads."""
    if len(context.inputs) > 2:
        raise Inexact("its element types are not allowed below it")
    if context.form.original is None:
        raise Inexact("its body is not the model's")
    context.inputs[:] = [*context.inputs, context.constant(0, "carried")]
    context.outputs.insert(0, context.new_name("carried"))
    context.form.wrap = partial(_carry, context.new_name("before"), context.new_name("after"))


def _carry(before: str, after: str, node: NodeProto) -> None:
    """Let the body of a loop hand a number on."""
    body = next(held.g for held in node.attribute if held.name == "body")
    body.node.append(make_node("Identity", [before], [after]))
    body.input.append(helper.make_tensor_value_info(before, TensorProto.INT64, []))
    outputs = [body.output[0], helper.make_tensor_value_info(after, TensorProto.INT64, []), *body.output[1:]]
    held = [ValueInfoProto.FromString(value.SerializeToString()) for value in outputs]
    del body.output[:]
    body.output.extend(held)


@downward("Loop", 16)
def bodies_without_bfloat16(context: AdapterContext) -> None:
    """Below 16 no bfloat16 goes into a body or out of it: it goes as float32, and is cast on both sides."""
    body = context.value("body")
    if context.form.original is None or not isinstance(body, GraphProto):
        raise Inexact("its body is not the model's")
    is_loop = context.form.op_type == "Loop"
    # The first input of a body counts the steps, and the first output says whether to go on.
    own = int(is_loop)
    states = len(context.inputs) - 2 if is_loop else len(context.inputs) - context.known_value("num_scan_inputs")
    given = [index for index in range(2 * own, len(context.inputs)) if context.input_type(index).dtype == "bfloat16"]
    results = {index - 2 * own for index in given if index - 2 * own < states}
    for index in range(states, len(context.outputs)):
        if _is_bfloat16(context, index, body.output[index + own]):
            results.add(index)
    for index in given:
        context.inputs[index] = context.emit("Cast", [context.inputs[index]], "as_float32", to=TensorProto.FLOAT)
    for index in sorted(results):
        if index < len(context.outputs) and context.outputs[index]:
            shape = context.output_type(index).shape
            old = context.redirect(index, "as_float32")
            # The body gives bfloat16 until everything else is done.
            context.values.define(context.outputs[index], tensor("float32", shape))
            context.emit_after("Cast", [context.outputs[index]], old, to=TensorProto.BFLOAT16)
    into = {index: context.new_name("as_float32") for index in given}
    context.form.wrap = partial(_cast_around, into, {index + own: context.new_name("as_float32") for index in results})


def _is_bfloat16(context: AdapterContext, index: int, declared: ValueInfoProto) -> bool:
    """Whether an output is bfloat16, which of one that is left out only the body says."""
    dtype = context.output_type(index).dtype
    if dtype is None and not declared.type.tensor_type.elem_type:
        raise Inexact("the element type of an output is unknown")
    return dtype == "bfloat16" or declared.type.tensor_type.elem_type == TensorProto.BFLOAT16


def _cast_around(into: Mapping[int, str], out: Mapping[int, str], node: NodeProto) -> None:
    """Let float32 into a body and out of it: index of its input or output to the new name."""
    body = next(held.g for held in node.attribute if held.name == "body")
    nodes = []
    for index, name in into.items():
        value = body.input[index]
        nodes.append(make_node("Cast", [name], [value.name], to=TensorProto.BFLOAT16))
        value.name = name
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    nodes += [NodeProto.FromString(inner.SerializeToString()) for inner in body.node]
    for index, name in out.items():
        nodes.append(_given_as_float32(body.output[index], name))
    del body.node[:]
    body.node.extend(nodes)


# Helpers of several operators ---------------------------------------------------------------------------------------


def _given_as_float32(result: ValueInfoProto, name: str) -> NodeProto:
    """The cast that gives the result of a graph, which is renamed, in float32."""
    node = make_node("Cast", [result.name], [name], to=TensorProto.FLOAT)
    result.name = name
    result.type.tensor_type.elem_type = TensorProto.FLOAT
    return node
