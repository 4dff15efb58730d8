"""The last step of a formula: what it computed takes the place of the node, and the nodes find their order."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.conversion.node import Node
from splitgraph.conversion.notation.node_at_boundary import NodeAtBoundary


def give_results(node: NodeAtBoundary, names: Sequence[str]) -> None:
    """Make the node give values as its outputs, and no others. "" stands for an output that nobody names.

    The written node that computes the first value takes the place of the node itself, with its name and
    documentation. Where that is not possible, and for other values, an Identity gives the output.
    """
    outputs = list(node.outputs)
    del node.outputs[1:]
    # A node that computes a later value gives the output under its name, where nothing else needs the old name.
    for name, output in zip(names[1:], outputs[1:], strict=False):
        written = next((written for written in node.before if name in written.outputs), None)
        if output and written is not None and names.count(name) == 1 and _renamed(node, name, output):
            written.outputs[written.outputs.index(name)] = output
        elif output:
            node.write_after("Identity", [name], output)
    index = next((index for index, written in enumerate(node.before) if written.outputs[:1] == names[:1]), None)
    if index is None or names.count(names[0]) > 1 or not _renamed(node, names[0], node.outputs[0]):
        node.replace("Identity", names[:1])
        return
    written = node.before.pop(index)
    node.replace(written.op_type, written.inputs)
    node.domain = written.domain
    node.attributes.update(written.attributes)
    node.outputs += written.outputs[1:]
    # What reads the node's outputs was written before it, and has to follow it.
    node.after[:0] = take_readers(node, index, set(node.outputs))


def _renamed(node: NodeAtBoundary, name: str, output: str) -> bool:
    """Give the nodes that read a value its new name; return False where a subgraph reads it."""
    nodes = (*node.before, *node.after)
    if any(name in written.reads and name not in written.inputs for written in nodes):
        return False
    for written in nodes:
        written.inputs[:] = [output if read == name else read for read in written.inputs]
    return True


def take_readers(node: NodeAtBoundary, start: int, names: set[str]) -> list[Node]:
    """Take the nodes that depend on values, from a position on, out of the nodes before the node."""
    taken = list[Node]()
    for written in node.before[start:]:
        if not names.isdisjoint(written.reads):
            names.update(written.outputs)
            taken.append(written)
    node.before = [kept for kept in node.before if not any(kept is written for written in taken)]
    return taken
