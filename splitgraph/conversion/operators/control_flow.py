"""If and Loop: branches of one shape (If 11), a loop that carries nothing (Loop 11), and subgraphs that give bfloat16
(16). OptionalHasElement and OptionalGetElement: tensors and sequences as inputs (18), and the element itself below the
opset of optionals (15); Optional does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.registry import always, changed, downward, exact_downward, unchanged
from splitgraph.dim import Dim, symbols_of
from splitgraph.inference.walk_results import GraphDetail
from splitgraph.model.attributes import make_node
from splitgraph.model.deferred import helper, np, numpy_helper
from splitgraph.model.onnx_proto import GraphProto, NodeProto, TensorProto, ValueInfoProto
from splitgraph.model.scopes import plain_domain, subgraphs
from splitgraph.model.value_type import MAX_WRITTEN, Shape, tensor

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
def branches_declare_equal_shapes(node: NodeAtBoundary) -> bool:
    """Return True when both branches declare the same static shapes. A name for a dimension does not count: the author
    may use one name in both branches for two things.
    """
    branches = [node.value("then_branch"), node.value("else_branch")]
    if not all(isinstance(branch, GraphProto) for branch in branches):
        return False
    then_shapes, else_shapes = ([_declared_shape(value) for value in branch.output] for branch in branches)
    return None not in then_shapes and then_shapes == else_shapes


def _declared_shape(value: ValueInfoProto) -> tuple[int, ...] | None:
    """Return the shape that a value declares, None unless it is static."""
    shape = value.type.tensor_type.shape
    is_static = value.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in shape.dim)
    return tuple(dim.dim_value for dim in shape.dim) if is_static else None


@downward("If", 11)
def require_branches_of_one_shape(node: NodeAtBoundary) -> None:
    """Check that both branches give the same shapes, as they must below 11.

    This holds where the shapes of the outputs are static and no inferred shape of a branch contradicts them, and where
    the inferred shapes of both branches are equal. With a known condition one branch never runs: it is replaced by the
    other one.
    """
    condition = node.elements(0)
    if condition is not None:
        _give_one_branch_twice(node, bool(condition.reshape(-1)[0]))
        return
    shapes_of_ifs = _shapes_of_branches(node)
    for index, name in enumerate(node.outputs):
        shape = node.output_type(index).shape
        is_static = shape is not None and all(isinstance(size, int) for size in shape)
        may_be_it = is_static and all(
            _may_be_equal(shape, shapes) for pairs in shapes_of_ifs for shapes in pairs[index]
        )
        if (
            name
            and not may_be_it
            and not (shapes_of_ifs and all(_are_equal(node, *shapes[index]) for shapes in shapes_of_ifs))
        ):
            raise Inexact(
                "below it, both branches must give the same shapes", "declare the shapes of what the branches give"
            )


def _give_one_branch_twice(node: NodeAtBoundary, condition: bool) -> None:
    """Replace the branch that never runs by a copy of the other one."""
    if node.original is None:
        raise Inexact("its branches are not the model's")
    taken, dropped = ("then_branch", "else_branch") if condition else ("else_branch", "then_branch")
    branch = node.value(taken)
    if isinstance(branch, GraphProto) and (count := 2 * _copied_nodes(branch)) > MAX_WRITTEN:
        raise Inexact(f"with one branch of each If in place of the other it has {count:,} nodes, which is too many")
    node.reasons[dropped] = (
        f"it never runs, and gives the same shapes as {taken}, as it must {node.side}, being the same"
    )
    node.wrap = partial(_copy_branch, taken, dropped, node.wrap)


def _copied_nodes(graph: GraphProto) -> int:
    """Count the nodes of a graph in which the larger branch of each If stands in place of both."""
    total = len(graph.node)
    for node in graph.node:
        counts = [_copied_nodes(inner) for _, _, inner in subgraphs(node)]
        total += len(counts) * max(counts, default=0)
    return total


def _copy_branch(taken: str, dropped: str, before: Callable[[NodeProto], None] | None, node: NodeProto) -> None:
    """Copy one branch over the other one."""
    if before is not None:
        before(node)
    branches = {attribute.name: attribute.g for attribute in node.attribute}
    branches[dropped].CopyFrom(branches[taken])


def _shapes_of_branches(node: NodeAtBoundary) -> list[list[tuple[Shape | None, Shape | None]]]:
    """Return the inferred shapes of each output in both branches. There may be several such pairs: branches of
    different nodes may use the same names.
    """
    branches = [node.value(f"{side}_branch") for side in ("then", "else")]
    if not all(isinstance(branch, GraphProto) for branch in branches):
        return []
    results = [[value.name for value in branch.output] for branch in branches]
    shapes_of_ifs = []
    for details in node.values.branches():
        pair = [details.get(f"{side}_branch") for side in ("then", "else")]
        walked = [
            detail.types
            for detail, branch in zip(pair, branches, strict=True)
            if detail and _may_describe(detail, branch)
        ]
        if len(walked) == len(branches):
            shapes = [
                [(types.get(name) or node.values.type_of(name)).shape for name in names]
                for types, names in zip(walked, results, strict=True)
            ]
            shapes_of_ifs.append(list(zip(*shapes, strict=True)))
    return shapes_of_ifs


def _may_describe(detail: GraphDetail, graph: GraphProto) -> bool:
    """Return True when inferred details may belong to a graph: they have all its values."""
    return all(name in detail.types for node in graph.node for name in node.output if name)


def _may_be_equal(left: Shape | None, right: Shape | None) -> bool:
    """Return False where two shapes are known to differ."""
    if left is None or right is None:
        return True
    pairs = zip(left, right, strict=False)
    return len(left) == len(right) and all(dim == size or not isinstance(size, int) for dim, size in pairs)


def _are_equal(node: NodeAtBoundary, left: Shape | None, right: Shape | None) -> bool:
    """Return True when two shapes are equal and no symbol in them is a name that an author may have used twice."""
    if left is None or None in left or left != right:
        return False
    # An author may use one name in both branches for different unknown dimensions.
    symbols = frozenset[str]().union(*(symbols_of(dim) for dim in left if isinstance(dim, Dim)))
    return not node.values.are_named_within(symbols)


@downward("If", 16)
def cast_results_of_branches(node: NodeAtBoundary) -> None:
    """Cast bfloat16 results to float32 in both branches and back behind the node. Below 16, branches give no
    bfloat16.
    """
    if node.original is None:
        raise Inexact("its branches are not the model's")
    if any(node.output_type(index).kind != "tensor" for index, name in enumerate(node.outputs) if name):
        raise Inexact("its branches give other types than tensors")
    casts: dict[int, tuple[str, str]] = {}
    for index, name in enumerate(node.outputs):
        if name and node.output_type(index).dtype == "bfloat16":
            casts[index] = (node.new_name("as_float32"), node.new_name("as_float32"))
            shape = node.output_type(index).shape
            old = node.redirect(index, "as_float32")
            # The branches give bfloat16 until `wrap` runs at the end.
            node.values.define(node.outputs[index], tensor("float32", shape))
            node.write_after("Cast", [node.outputs[index]], old, to=TensorProto.BFLOAT16)
    node.wrap = partial(_cast_results, casts)


def _cast_results(casts: Mapping[int, tuple[str, str]], node: NodeProto) -> None:
    """Append casts to float32 to both branches of an If. casts: index of the output to the new name in each branch."""
    branches = (
        next(attribute.g for attribute in node.attribute if attribute.name == f"{side}_branch")
        for side in ("then", "else")
    )
    for side, branch in enumerate(branches):
        for index, names in casts.items():
            branch.node.append(_given_as_float32(branch.output[index], names[side]))


# Loop ---------------------------------------------------------------------------------------------------------------

unchanged("Loop", 11, 13, 16, 19, 21, 23, 24, 25)


@downward("Loop", 11)
def carry_a_number(node: NodeAtBoundary) -> None:
    """Add a number that the loop carries and nobody reads. Below 11, a loop carries at least one value."""
    if len(node.inputs) > 2:
        raise Inexact("its element types are not allowed below it")
    if node.original is None:
        raise Inexact("its body is not the model's")
    node.inputs[:] = [*node.inputs, node.constant(0, "carried")]
    node.outputs.insert(0, node.new_name("carried"))
    node.wrap = partial(_carry, node.new_name("before"), node.new_name("after"))


def _carry(before: str, after: str, node: NodeProto) -> None:
    """Let the body of a loop pass a number on."""
    body = next(copies.g for copies in node.attribute if copies.name == "body")
    body.node.append(make_node("Identity", [before], [after]))
    body.input.append(helper.make_tensor_value_info(before, TensorProto.INT64, []))
    outputs = [body.output[0], helper.make_tensor_value_info(after, TensorProto.INT64, []), *body.output[1:]]
    copies = [ValueInfoProto.FromString(value.SerializeToString()) for value in outputs]
    del body.output[:]
    body.output.extend(copies)


@downward("Loop", 16)
def cast_around_body(node: NodeAtBoundary) -> None:
    """Cast bfloat16 to float32 at the inputs and outputs of a body, outside and inside. Below 16, bodies take and give
    no bfloat16.
    """
    body = node.value("body")
    if node.original is None or not isinstance(body, GraphProto):
        raise Inexact("its body is not the model's")
    is_loop = node.op_type == "Loop"
    # In the body of a Loop, the first input counts the steps, and the first output tells whether to go on.
    own = int(is_loop)
    states = len(node.inputs) - 2 if is_loop else len(node.inputs) - node.known_value("num_scan_inputs")
    given = [index for index in range(2 * own, len(node.inputs)) if node.input_type(index).dtype == "bfloat16"]
    results = {index - 2 * own for index in given if index - 2 * own < states}
    for index in range(states, len(node.outputs)):
        if _is_bfloat16(node, index, body.output[index + own]):
            results.add(index)
    for index in given:
        node.inputs[index] = node.write("Cast", [node.inputs[index]], "as_float32", to=TensorProto.FLOAT)
    for index in sorted(results):
        if index < len(node.outputs) and node.outputs[index]:
            shape = node.output_type(index).shape
            old = node.redirect(index, "as_float32")
            # The body gives bfloat16 until `wrap` runs at the end.
            node.values.define(node.outputs[index], tensor("float32", shape))
            node.write_after("Cast", [node.outputs[index]], old, to=TensorProto.BFLOAT16)
    into = {index: node.new_name("as_float32") for index in given}
    node.wrap = partial(_cast_around, into, {index + own: node.new_name("as_float32") for index in results})


def _is_bfloat16(node: NodeAtBoundary, index: int, declared: ValueInfoProto) -> bool:
    """Return True when an output is bfloat16. Only the body tells the type of an omitted output."""
    dtype = node.output_type(index).dtype
    if dtype is None and not declared.type.tensor_type.elem_type:
        raise Inexact("the element type of an output is unknown")
    return dtype == "bfloat16" or declared.type.tensor_type.elem_type == TensorProto.BFLOAT16


def _cast_around(into: Mapping[int, str], out: Mapping[int, str], node: NodeProto) -> None:
    """Let float32 into a body and out of it. into, out: index of the body's input or output to its new name."""
    body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
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
    """Make the cast of a graph's result to float32, and rename the result."""
    node = make_node("Cast", [result.name], [name], to=TensorProto.FLOAT)
    result.name = name
    result.type.tensor_type.elem_type = TensorProto.FLOAT
    return node


# Optional, OptionalHasElement ---------------------------------------------------------------------------------------

unchanged("Optional", 28)

unchanged("OptionalHasElement", 18, 28)


def _element_of(node: NodeAtBoundary) -> str | None:
    """Return the name of the element in the optional that the node reads, "" for an optional without one; None where
    no node of the model tells.
    """
    name = node.inputs[0] if node.uses_input(0) else ""
    while name and node.input_type(0).kind not in ("tensor", "sequence"):
        producer = node.values.producer(name)
        if not isinstance(producer, NodeProto) or plain_domain(producer.domain) != "":
            return None
        if producer.op_type not in ("Optional", "Identity"):
            return None
        name = producer.input[0] if producer.input else ""
        if producer.op_type == "Optional":
            break
    return name


@downward("OptionalHasElement", 15)
def write_known_answer(node: NodeAtBoundary) -> None:
    """Write the answer as a constant where a node of the model makes the optional. Below 15 there are no optionals."""
    element = _element_of(node)
    if element is None:
        raise Inexact("no node of the model makes the optional that it reads")
    node.replace("Constant", [], value=numpy_helper.from_array(np.array(element != "")))


@downward("OptionalGetElement", 15)
def copy_known_element(node: NodeAtBoundary) -> None:
    """Copy what a node of the model makes the optional of. Below 15 there are no optionals."""
    element = _element_of(node)
    if not element:
        raise Inexact("no node of the model makes the optional that it reads of an element")
    node.replace("Identity", [element])


@downward("OptionalHasElement", 18)
def write_answer_as_constant(node: NodeAtBoundary) -> None:
    """Write the answer as a constant: a tensor or a sequence is always there, an omitted input never. Below 18 the
    input is required, and is an optional.
    """
    if node.uses_input(0) and node.input_type(0).kind not in ("tensor", "sequence"):
        node.require_types()
        raise Inexact("whether its input is an optional is unknown")
    has = node.uses_input(0)
    node.replace("Constant", [], value=numpy_helper.from_array(np.array(has)))


# OptionalGetElement -------------------------------------------------------------------------------------------------

unchanged("OptionalGetElement", 18, 28)


@downward("OptionalGetElement", 18)
def copy_element(node: NodeAtBoundary) -> None:
    """Copy a tensor or sequence that is no optional: it is the element itself."""
    if node.input_type(0).kind not in ("tensor", "sequence"):
        node.require_types()
        raise Inexact("whether its input is an optional is unknown")
    node.replace("Identity", node.inputs)
