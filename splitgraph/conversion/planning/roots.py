"""Planning root by root: a root is the main graph or a function, with its subgraphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from splitgraph.conversion.nodes.omitted_arguments import find_left_out
from splitgraph.conversion.planning.plan import Plan
from splitgraph.conversion.planning.use_counts import UseCounts
from splitgraph.graph.names import FreshNames, used_names
from splitgraph.graph.scopes import Scope, roots
from splitgraph.inference import Walked
from splitgraph.onnx_proto import ModelProto


class PlanRoot(Protocol):
    """Plans a rewrite of one root."""

    def __call__(
        self, plan: Plan, model: ModelProto, walked: Walked, root: Sequence[Scope], names: FreshNames, uses: UseCounts
    ) -> None:
        """Add the edits of the root to the plan."""


def plan_roots(model: ModelProto, walked: Walked, plan_root: PlanRoot) -> Plan | None:
    """The plan for all roots of a model; None where it has no edits, and for a model with errors."""
    plan = Plan(left_out=find_left_out(model, walked.scopes))
    plan.refuse_errors(walked)
    if plan.blockers:
        return None
    names = FreshNames(used_names(model, walked.scopes))
    for root in roots(walked.scopes):
        plan_root(plan, model, walked, root, names, UseCounts(root))
    return None if plan.blockers or not plan.edits else plan
