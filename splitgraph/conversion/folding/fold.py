"""Folding a model: what is known of it is written, step by step. Each step is a plan for the result of the last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from splitgraph.conversion.apply import apply_plan
from splitgraph.conversion.folding.bypass import plan_bypass
from splitgraph.conversion.folding.constants import Budget, plan_constants
from splitgraph.conversion.folding.elements import Elements
from splitgraph.conversion.folding.uses import Uses
from splitgraph.conversion.known_values import find_left_out
from splitgraph.conversion.plan import Plan
from splitgraph.conversion.repair import repaired
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.inference import Walked, walk_model
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import FunctionKey, Scope, function_key, roots
from splitgraph.options import STRICT, Leeway


def convert_folded(model: ModelProto, leeway: Leeway = STRICT) -> Rewrite[ModelProto]:
    """Return a copy of the model in which what is known is written; the model itself is not changed.

    leeway: what the user permits. Raises ConversionError for a model with errors.
    """
    rewrite, walked = repaired(model, leeway)
    plan = Plan()
    plan.refuse_errors(walked)
    plan.raise_blockers("the model is wrong", rewrite.diagnostics)
    before = walked.opset
    folding = _Folding(rewrite, walked, plan)
    folding.write_constants()
    folding.bypass()
    return replace(folding.rewrite, from_opset=dict(before))


@dataclass(slots=True)
class _Folding:
    """A model on its way. walked: its inference. notes: of the first plan, for the next one."""

    rewrite: Rewrite[ModelProto]
    walked: Walked
    first: Plan
    budget: Budget = field(default_factory=Budget)

    def write_constants(self) -> None:
        """Write values that are the same in every run as constants."""
        model, plan = self.rewrite.model, self._plan()
        for root in roots(self.walked.scopes):
            plan.start(root)
            uses = self._uses(root)
            plan_constants(plan, model, Elements(self.walked, uses, self._functions), uses, self.budget)
        self._apply(plan)

    def bypass(self) -> None:
        """Let what reads a node that gives what it gets read that."""
        plan = self._plan()
        for root in roots(self.walked.scopes):
            plan.start(root)
            uses = self._uses(root)
            plan_bypass(plan, self.walked, Elements(self.walked, uses, self._functions), uses, self._functions)
        self._apply(plan)

    @property
    def _functions(self) -> frozenset[FunctionKey]:
        return frozenset(map(function_key, self.rewrite.model.functions))

    def _uses(self, root: Sequence[Scope]) -> Uses:
        return Uses(root, keeps_inputs=not self.walked.leeway.assume_defaults)

    def _plan(self) -> Plan:
        plan = Plan(left_out=find_left_out(self.rewrite.model, self.walked.scopes), known=self.walked)
        plan.notes, self.first.notes = self.first.notes, []
        return plan

    def _apply(self, plan: Plan) -> None:
        plan.blockers += plan.needed(self.walked)
        plan.raise_blockers("the model cannot be folded", self.rewrite.diagnostics)
        if not plan.edits:
            return
        self.rewrite = self.rewrite.then(apply_plan(plan, self.rewrite.model))
        self.walked = walk_model(self.rewrite.model, self.walked.leeway)
