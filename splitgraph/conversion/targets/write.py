"""Planning the new form of every split that a target does not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from splitgraph.conversion.planning.plan import Plan, opset_of
from splitgraph.conversion.splits.joined_slices import plan_partitions
from splitgraph.conversion.splits.lower import SplitNode, SplitRewrites
from splitgraph.conversion.splits.sequences import plan_sequences
from splitgraph.conversion.targets.choose import Choice, choose
from splitgraph.conversion.targets.empty_parts import plan_empty_parts, without_empty_parts
from splitgraph.conversion.targets.plain_slices import plan_plain_slice
from splitgraph.graph.names import FreshNames, used_names
from splitgraph.graph.scopes import GraphPath, Scope, roots
from splitgraph.onnx_proto import NodeProto
from splitgraph.runtimes.check import Examined
from splitgraph.runtimes.node_traits import NodeTraits
from splitgraph.runtimes.target import Target
from splitgraph.runtimes.traits import OVERRUNS
from splitgraph.variants.lowering import set_int

_JOINED = {"slice-attributes", "slice-constant", "slice-folded", "slice-computed", "gather-range"}
_EMPTY = {"part-empty", "part-empty-joined", "output-omitted", *OVERRUNS}
_SEQUENCES = {"sequence-lengths", "sequence-size", "sequence-each"}


@dataclass(slots=True)
class TargetPlanner:
    """Plans one round of a conversion: each node that the target does not read gets another form, where there is one.

    joins: whether slices that are not read become a Split, where they are all parts of a value.
    """

    plan: Plan
    examined: Examined
    target: Target
    joins: bool

    def run(self) -> None:
        """Plan all roots of the model."""
        model, walked = self.examined.model, self.examined.walked
        names = FreshNames(used_names(model, walked.scopes))
        failing = {
            (node.scope.path, node.index): node
            for node in self.examined.nodes
            if self.target.gets_another_form(node.traits)
        }
        for root in roots(walked.scopes):
            paths = {scope.path for scope in root}
            mine = {key: node for key, node in failing.items() if key[0] in paths}
            if mine:
                self._root(root, names, mine)

    def _root(
        self, root: Sequence[Scope], names: FreshNames, failing: Mapping[tuple[GraphPath, int], NodeTraits]
    ) -> None:
        model, walked = self.examined.model, self.examined.walked
        self.plan.start(root)
        why = f"{self.target.label} does not read it as it was"
        rewrites = SplitRewrites(self.plan, model, root, names, why)
        for node in failing.values():
            if node.detail is not None and node.detail.variant.op_type == "Split":
                self._write(rewrites, node, root)
        rewrites.settle()
        traits = frozenset().union(*(node.traits for node in failing.values()))
        if traits & _SEQUENCES:
            plan_sequences(self.plan, model, walked, root, names, why, only=failing.keys())
        if traits & _JOINED and self.joins:
            plan_partitions(self.plan, model, walked, root, names, why, only=failing.keys())
        for node in failing.values():
            is_planned = self.plan.at(node.scope.path).changes(node.index)
            if node.node.op_type == "Slice" and not is_planned:
                detail = walked.graphs[node.scope.path]
                plan_plain_slice(self.plan, model, node, detail, self.target, names, why)

    def _write(self, rewrites: SplitRewrites, node: NodeTraits, root: Sequence[Scope]) -> None:
        detail, opset = node.detail, opset_of(node.scope.imports)
        if detail is None or detail.split is None:
            return
        found = SplitNode(node.scope, node.index, node.node, detail)
        choice = choose(node, detail, opset, self.target)
        if choice is None:
            shorter = without_empty_parts(self.examined.model, root, found, self.target)
            if shorter is None:
                return
            traits = (node.traits - _EMPTY) | _single(shorter.split)
            choice = choose(replace(node, traits=frozenset(traits)), shorter.split.detail, opset, self.target)
            if choice is None:
                return
            plan_empty_parts(self.plan, found, shorter.gone)
            found = shorter.split
        self._write_as(rewrites, found, choice)

    def _write_as(self, rewrites: SplitRewrites, found: SplitNode, choice: Choice) -> None:
        node = NodeProto()
        node.CopyFrom(found.node)
        is_sliced = choice.variant.op_type == "Slice"
        for index, name in enumerate(node.output):
            if is_sliced and name and not self.plan.is_read(found.scope.path, name):
                node.output[index] = ""
            elif not name and not is_sliced:
                node.output[index] = rewrites.names.new(f"{found.node.name or found.node.op_type}_part{index}")
        # The lengths that the model has may be what the target does not read: known ones become a new constant.
        known = choice.split.static_lengths is not None
        detail = replace(found.detail, split=choice.split, lengths_dtype=None if known else found.detail.lengths_dtype)
        again = replace(found, node=node, detail=detail)
        replacement = rewrites.write(again, choice.variant, explicit_lengths=choice.explicit_lengths, afresh=True)
        if replacement is None:
            return
        for made in replacement.messages():
            if made.op_type == "Split" and choice.split.axis is not None and not _refers(made):
                set_int(made, "axis", choice.split.axis)


def _single(found: SplitNode) -> set[str]:
    return {"part-single"} if len(found.node.output) == 1 else set()


def _refers(node: NodeProto) -> bool:
    """True where the axis is an attribute of the enclosing function."""
    return any(attribute.ref_attr_name for attribute in node.attribute)
