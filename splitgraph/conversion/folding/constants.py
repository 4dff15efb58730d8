"""Replaces values that are the same in every run by constants.

The node that makes the value goes, and a constant takes the name of its output: what reads it, also in subgraphs, stays
as it is, and the plan drops what only fed the node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from splitgraph.conversion.folding.certainty import Array
from splitgraph.conversion.folding.elements import Elements, constant_of
from splitgraph.conversion.folding.uses import Uses, has_bodies
from splitgraph.conversion.ir_version import INITIALIZER_IR_VERSION
from splitgraph.conversion.plan import Plan, Replacement
from splitgraph.inference.walk_results import NodePlace
from splitgraph.model.attributes import make_node
from splitgraph.model.deferred import np, numpy_helper
from splitgraph.model.names import ValueKey
from splitgraph.model.onnx_proto import ModelProto, NodeProto, TensorProto
from splitgraph.model.scopes import MAIN, Scope, plain_domain
from splitgraph.model.tensor_data import byte_size

# The constants of a result may take so many more bytes than those that they replace.
MOST_MORE_BYTES = 2**16
WHY = "its elements are the same in every run"

# What the outputs of a node are that somebody reads.
_Known = Mapping[str, Array]


@dataclass(slots=True)
class ByteBudget:
    """How many bytes the constants of a model may still grow by."""

    left: int = MOST_MORE_BYTES


def plan_constants(plan: Plan, model: ModelProto, elements: Elements, uses: Uses, budget: ByteBudget) -> int:
    """Plan a constant in place of each node of a root whose outputs are known, as far as the budget goes. Return the
    number of nodes that stay because of the budget.
    """
    known = dict(_known_nodes(uses, elements))
    kept = _too_large(known, uses, budget)
    replacements = []
    for scope in uses.root:
        for index, node in enumerate(scope.nodes):
            made = known.get((scope.path, index))
            if (scope.path, index) in kept:
                continue
            if made is not None:
                as_nodes = _are_nodes(model, scope, node, uses)
                written = {name: array for name, array in made.items() if plan.is_read(scope.path, name)}
                replacements.append((scope, index, _replacement(plan, node, written, as_nodes=as_nodes)))
            elif node.op_type == "Constant" and plain_domain(node.domain) == "":
                tensor = _tensor_of(node)
                if tensor is not None and not _are_nodes(model, scope, node, uses):
                    replacements.append((scope, index, Replacement([], [tensor])))
    plan.replace_all(replacements)
    return len(kept)


def _known_nodes(uses: Uses, elements: Elements) -> Iterator[tuple[NodePlace, _Known]]:
    """Yield the nodes whose outputs are known, as far as somebody reads them."""
    for scope in uses.root:
        for index, node in enumerate(scope.nodes):
            if node.op_type == "Constant" or has_bodies(node) or _passes_constant(uses, scope, node):
                continue
            read = [name for name in node.output if name and _is_read(uses, uses.key(scope.path, name))]
            arrays = {}
            for name in read:
                array = elements.of(scope.path, name)
                if array is None:
                    break
                arrays[name] = array
            if read and len(arrays) == len(read):
                yield (scope.path, index), arrays


def _passes_constant(uses: Uses, scope: Scope, node: NodeProto) -> bool:
    """Return True for an Identity of a constant: its readers may read that one, and no second one is written."""
    if node.op_type != "Identity" or not node.input:
        return False
    key = uses.key(scope.path, node.input[0])
    is_result = any(uses.key(scope.path, name) in uses.results for name in node.output)
    return not is_result and (
        key in uses.tensors or (key in uses.makers and uses.node(uses.makers[key]).op_type == "Constant")
    )


def _is_read(uses: Uses, key: ValueKey) -> bool:
    return key in uses.results or bool(uses.readers.get(key))


def _are_nodes(model: ModelProto, scope: Scope, node: NodeProto, uses: Uses) -> bool:
    """Return True where constants have to be Constant nodes: a graph outputs what a node makes, and some runtimes read
    no initializers in subgraphs.
    """
    is_result = any(uses.key(scope.path, name) in uses.results for name in node.output if name)
    return is_result or scope.path != MAIN or model.ir_version < INITIALIZER_IR_VERSION


def _replacement(plan: Plan, node: NodeProto, made: _Known, *, as_nodes: bool) -> Replacement:
    """Return constants in place of a node."""
    tensors = [numpy_helper.from_array(np.array(array, order="C"), name) for name, array in made.items()]
    if not as_nodes:
        return Replacement([], tensors, WHY, after="constant")
    labels = [node.name if len(tensors) == 1 else "" for _ in tensors]
    nodes = [constant_node(plan, tensor, label) for tensor, label in zip(tensors, labels, strict=True)]
    return Replacement(nodes, (), WHY, after="constant")


def constant_node(plan: Plan, tensor: TensorProto, label: str = "") -> NodeProto:
    """Return a Constant node that gives a tensor under the tensor's name."""
    value = TensorProto()
    value.CopyFrom(tensor)
    value.ClearField("name")
    return make_node("Constant", [], [tensor.name], label, graph=plan.drafts, value=value)


def _tensor_of(node: NodeProto) -> TensorProto | None:
    """Return what a Constant node holds as an initializer; None for a sparse tensor, and for one that a function's
    attribute gives.
    """
    if len(node.attribute) != 1 or len(node.output) != 1 or not node.output[0]:
        return None
    (attribute,) = node.attribute
    if attribute.name == "value" and not attribute.ref_attr_name:
        tensor = TensorProto()
        tensor.CopyFrom(attribute.t)
        tensor.name = node.output[0]
        return tensor
    array = constant_of(node)
    return None if array is None else numpy_helper.from_array(array, node.output[0])


# The budget ----------------------------------------------------------------------------------------------------------


def _too_large(known: Mapping[NodePlace, _Known], uses: Uses, budget: ByteBudget) -> Collection[NodePlace]:
    """Return the nodes that stay, so that the constants fit the budget: those with the largest constants."""
    kept: set[NodePlace] = set()
    while True:
        gone = known.keys() - kept
        written = dict(_written(gone, known, uses))
        tables = {(array.dtype.str, array.shape, array.tobytes()): array.nbytes for array in written.values()}
        more = sum(tables.values()) - _bytes_gone(gone, uses)
        if more <= budget.left:
            budget.left -= more
            return kept
        largest = max(array.nbytes for array in written.values())
        kept |= {uses.makers[key] for key, array in written.items() if array.nbytes == largest}


def _written(
    gone: Collection[NodePlace], known: Mapping[NodePlace, _Known], uses: Uses
) -> Iterator[tuple[ValueKey, Array]]:
    """Yield the values that become constants if some nodes go: those that another node reads, or a graph outputs."""
    for place in gone:
        for name, array in known[place].items():
            key = uses.key(place[0], name)
            if key in uses.results or any(reader not in gone for reader in uses.readers[key]):
                yield key, array


def _bytes_gone(gone: Collection[NodePlace], uses: Uses) -> int:
    """Return the bytes of constants that only these nodes read."""
    names = {uses.key(place[0], name) for place in gone for name in uses.node(place).input if name}
    total = 0
    for key in names:
        if key in uses.results or any(reader not in gone for reader in uses.readers[key]):
            continue
        tensor = uses.tensors.get(key)
        if tensor is None and key in uses.makers and uses.node(uses.makers[key]).op_type == "Constant":
            array = constant_of(uses.node(uses.makers[key]))
            total += 0 if array is None else array.nbytes
        elif tensor is not None:
            total += byte_size(tensor) or 0
    return total
