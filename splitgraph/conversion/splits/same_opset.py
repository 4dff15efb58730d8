"""Writing splits in another form at the model's own opset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from splitgraph.conversion.planning.emission import new_emission
from splitgraph.conversion.planning.plan import Plan, Replacement, opset_of
from splitgraph.conversion.splits.lower import SplitNode, lower_split
from splitgraph.graph.names import FreshNames
from splitgraph.graph.scopes import Scope
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import GraphDetail
from splitgraph.onnx_proto import ModelProto
from splitgraph.variants import Variant


@dataclass(slots=True)
class SplitRewrites:
    """Writes splits of a root (main graph or function, with its subgraphs) in another form, and plans their replacement
    at the end. why: the reason of all changes, for the user.
    """

    plan: Plan
    model: ModelProto
    root: Sequence[Scope]
    names: FreshNames
    why: str
    _written: list[tuple[Scope, int, Replacement]] = field(default_factory=list)

    def find(self, walked: Walked) -> Iterator[SplitNode]:
        """All splits that inference reached, in graph order."""
        for scope in self.root:
            detail: GraphDetail = walked.graphs.get(scope.path) or GraphDetail()
            for index, found in detail.splits.items():
                yield SplitNode(scope, index, scope.nodes[index], found)

    def write(
        self,
        found: SplitNode,
        target: Variant,
        *,
        explicit_lengths: bool = False,
        counted: bool = True,
        afresh: bool = False,
    ) -> Replacement | None:
        """Return what replaces a split; None where it is kept. Blockers are added to the plan.

        explicit_lengths, counted, afresh: as for `lower_split`.
        """
        scope, index, node = found.scope, found.index, found.node
        emission = new_emission(self.plan, self.model, scope, node, index, self.names, opset_of(scope.imports))
        replacement, blockers = lower_split(
            found, target, emission, self.why, explicit_lengths=explicit_lengths, counted=counted, afresh=afresh
        )
        self.plan.blockers.extend(blockers)
        if replacement is not None:
            self._written.append((scope, index, replacement))
        return replacement

    def settle(self) -> None:
        """Plan the replacement of all splits that were written."""
        self.plan.replace_all(self._written)
