"""Replaces an If whose condition is the same in every run by the nodes of the branch that runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from splitgraph.conversion.folding.constants import constant_node
from splitgraph.conversion.folding.elements import Elements
from splitgraph.conversion.folding.uses import Uses, has_bodies
from splitgraph.conversion.ir_version import INITIALIZER_IR_VERSION
from splitgraph.conversion.plan import Plan, Replacement
from splitgraph.inference import Walked
from splitgraph.model.attributes import make_node
from splitgraph.model.names import FreshNames
from splitgraph.model.onnx_proto import GraphProto, ModelProto, NodeProto, TensorProto
from splitgraph.model.scopes import MAIN, GraphPath, Scope, plain_domain, subgraphs

WHY = "its condition is the same in every run"


@dataclass(slots=True)
class Branches:
    """Plans the branches of a root that run in every case. A branch with bodies waits until these are gone."""

    plan: Plan
    model: ModelProto
    walked: Walked
    elements: Elements
    uses: Uses
    names: FreshNames

    def run(self) -> None:
        """Plan them in graph order."""
        taken: list[GraphPath] = []
        replacements = []
        for scope in self.uses.root:
            if any(scope.path[: len(path)] == path for path in taken):
                continue
            for index, node in enumerate(scope.nodes):
                branch = self._branch(scope, index, node)
                if branch is not None:
                    taken.append((*scope.path, index))
                    replacements.append((scope, index, self._replacement(scope, node, *branch)))
        self.plan.replace_all(replacements)

    def _branch(self, scope: Scope, index: int, node: NodeProto) -> tuple[GraphProto, GraphPath] | None:
        """Return the branch that always runs and its path, if it can stand in the graph of the node."""
        if node.op_type != "If" or plain_domain(node.domain) != "" or not node.input or not node.input[0]:
            return None
        if (scope.path, index) in self.walked.set_aside:
            return None
        condition = self.elements.of(scope.path, node.input[0])
        if condition is None or condition.size != 1:
            return None
        name = "then_branch" if condition.reshape(-1)[0] else "else_branch"
        branch = next((graph for attribute, _, graph in subgraphs(node) if attribute == name), None)
        if branch is None or branch.sparse_initializer or branch.input or len(branch.output) != len(node.output):
            return None
        is_plain = not branch.quantization_annotation and not any(map(has_bodies, branch.node))
        return (branch, (*scope.path, index, name, 0)) if is_plain else None

    def _replacement(self, scope: Scope, node: NodeProto, branch: GraphProto, path: GraphPath) -> Replacement:
        """Return the nodes of a branch, with the outputs of the If."""
        renamed = dict(self._renamed(path, node, branch))
        nodes, constants = [], []
        for tensor in branch.initializer:
            own = TensorProto()
            own.CopyFrom(tensor)
            own.name = renamed[tensor.name]
            if scope.path == MAIN and self.model.ir_version >= INITIALIZER_IR_VERSION:
                constants.append(own)
            else:
                nodes.append(constant_node(self.plan, own))
        for inner in branch.node:
            made: NodeProto = self.plan.drafts.node.add()
            made.CopyFrom(inner)
            made.input[:] = [renamed.get(name, name) for name in inner.input]
            made.output[:] = [renamed.get(name, name) for name in inner.output]
            nodes.append(made)
        for value, name in zip(branch.output, node.output, strict=True):
            if name and renamed.get(value.name) != name:
                source = renamed.get(value.name, value.name)
                nodes.append(make_node("Identity", [source], [name], graph=self.plan.drafts))
        return Replacement(nodes, constants, WHY)

    def _renamed(self, path: GraphPath, node: NodeProto, branch: GraphProto) -> Iterator[tuple[str, str]]:
        """Yield the values that a branch defines, each with its name in the graph of the If."""
        results = _results(node, branch)
        defined = [tensor.name for tensor in branch.initializer]
        defined += [name for inner in branch.node for name in inner.output if name]
        for name in defined:
            is_own = self.uses.key(path, name) == name and name not in self.names.given
            yield name, results.get(name) or (name if is_own else self.names.new(name))


def _results(node: NodeProto, branch: GraphProto) -> Mapping[str, str]:
    """Return the values of a branch that its nodes make and that it gives once, with the outputs of the If."""
    made = {name for inner in branch.node for name in inner.output}
    times = Counter(value.name for value in branch.output)
    pairs = zip(branch.output, node.output, strict=True)
    return {value.name: name for value, name in pairs if name and value.name in made and times[value.name] == 1}
