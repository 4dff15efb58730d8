"""Warnings about exports that run at the size of their example input only, though the input names the dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from splitgraph.dim import DimLike, Obligation, names_in, symbol
from splitgraph.dim.atoms import is_linear
from splitgraph.dim.conditions import plain_obligation
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference.shown_symbols import resolve
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.scopes import node_label
from splitgraph.model.value_type import UNKNOWN, ValueType

# Operators whose sizes are numbers that an exporter may have taken from its example.
_SAYING = frozenset({"ConstantOfShape", "Expand", "Reshape", "Tile"})
# So many nodes are followed from a requirement to the node that says the size.
_MOST_STEPS = 256


def single_sizes(
    state: WalkState,
    required_by: Callable[[], Mapping[Obligation, Sequence[str]]],
    solved: Mapping[str, DimLike],
    types: Mapping[str, ValueType],
) -> list[Diagnostic]:
    """Warn about dimensions that the inputs name and that can have one size only, as a node such as Reshape says it.

    Nothing is said of sizes that weights decide: no other size would fit them. Of a dimension that can only be 0, it is
    always said: two sizes of the model contradict each other. Errors say more than these warnings. required_by: gives
    the reported requirements, which take longer than all else here. solved: generated symbols, expressed by others.
    """
    if any(finding.severity == "error" for finding in state.record.diagnostics) or not _may_fix_sizes(state, solved):
        return []
    warnings, nodes = [], state.task.model.graph.node
    places = {f"main/{node_label(node, index)}": node for index, node in enumerate(nodes)}
    for obligation, locations in required_by().items():
        name, size = str(obligation.lhs), obligation.rhs
        if obligation.relation != "==" or obligation.branches or not isinstance(size, int):
            continue
        if name not in state.symbols.named_dimensions or obligation.lhs != symbol(name):
            continue
        on_main = [place for place in locations if place in places]
        if size == 0 and on_main:
            text = f"the dimension {name!r} of the inputs can only be 0: this node fits nothing but an empty tensor"
            help = "Correct the sizes that the node or the inputs have, or run reshape to give the inputs other sizes."
            warnings.append(diagnostic("SG307", text, on_main[0], severity="warning", help=help))
            continue
        found = [place for place in on_main if _is_said(nodes, places[place], size, types)]
        if found:
            text = f"the dimension {name!r} of the inputs can only be {size}: this node requires {obligation}"
            help = f"Run reshape to let {name!r} have other sizes, or declare {size} in its place."
            warnings.append(diagnostic("SG307", text, found[0], severity="warning", help=help))
    return warnings


def _may_fix_sizes(state: WalkState, solved: Mapping[str, DimLike]) -> bool:
    """Return False if no requirement can say that a symbol is a number: each equality of sums has several symbols."""
    record = state.record
    required = [requirement.obligation for requirement in record.requirements]
    required += [obligation for report in record.reports for obligation in report.obligations]
    meant = [
        Obligation(symbol(name), "==", definition[0])
        for name, definition in state.symbols.definitions.items()
        if definition is not None
    ]
    return any(_may_fix_a_size(obligation, solved) for obligation in {*required, *meant})


def _may_fix_a_size(obligation: Obligation, solved: Mapping[str, DimLike]) -> bool:
    if obligation.relation != "==":
        return False
    resolved = Obligation(resolve(obligation.lhs, solved), "==", resolve(obligation.rhs, solved))
    plain = plain_obligation(resolved)
    difference = plain.lhs - plain.rhs
    # A product or a quotient may be written with fewer symbols.
    return plain.relation == "==" and (len(names_in(difference)) == 1 or not is_linear(difference))


def _is_said(nodes: Sequence[NodeProto], node: NodeProto, size: int, types: Mapping[str, ValueType]) -> bool:
    """Return True if the size comes of a node that says sizes, and of no weight."""
    producers = {name: each for each in nodes for name in each.output}
    waiting, seen = [node], set[str]()
    for _ in range(_MOST_STEPS):
        if not waiting:
            return False
        reached = waiting.pop()
        if reached.op_type in _SAYING:
            return True
        for name in _of_size(reached, size, types):
            if name not in seen and name in producers:
                seen.add(name)
                waiting.append(producers[name])
    return False


def _of_size(node: NodeProto, size: int, types: Mapping[str, ValueType]) -> Iterator[str]:
    """Yield the inputs of a node that have a dimension of this size."""
    return (name for name in node.input if size in (types.get(name, UNKNOWN).shape or ()))
