"""Folds a model: constants stand for values that are the same in every run, and nodes without effect are removed.

Each step is a plan for the result of the step before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from splitgraph.conversion.apply import apply_plan
from splitgraph.conversion.folding.branches import Branches
from splitgraph.conversion.folding.bypass import plan_bypass
from splitgraph.conversion.folding.constants import ByteBudget, plan_constants
from splitgraph.conversion.folding.declared import drop_shapes
from splitgraph.conversion.folding.elements import Elements
from splitgraph.conversion.folding.formulas import Formulas
from splitgraph.conversion.folding.readings import SaidSizes
from splitgraph.conversion.folding.sweep import plan_sweep, unread_initializers
from splitgraph.conversion.folding.uses import Uses
from splitgraph.conversion.ir_version import INITIALIZER_IR_VERSION
from splitgraph.conversion.known_values import find_left_out
from splitgraph.conversion.plan import Plan
from splitgraph.conversion.repair import repaired
from splitgraph.conversion.rewrite import Rewrite, step
from splitgraph.inference import Walked, walk_model
from splitgraph.inference.untrue_shapes import untrue_shapes
from splitgraph.model.names import FreshNames, used_names
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.places import with_nodes
from splitgraph.model.scopes import MAIN, MOST_NESTED, FunctionKey, function_key, roots
from splitgraph.options import STRICT, Leeway


def convert_folded(
    model: ModelProto,
    leeway: Leeway = STRICT,
    *,
    nonempty: bool = False,
    rounds: bool = False,
    walked: Walked | None = None,
) -> Rewrite[ModelProto]:
    """Return a copy of the model in which constants stand for values that are the same in every run.

    leeway: what the user permits. nonempty: no dimension is 0 in a run; notes say where the result relies on that.
    rounds: also compute constants that runtimes may round differently. walked: as for `repaired`. Raises
    ConversionError for a model with errors.
    """
    rewrite, walked = repaired(model, leeway, walked)
    plan = Plan()
    plan.refuse_errors(walked)
    plan.raise_blockers("the model is wrong", rewrite.diagnostics)
    before = walked.opset
    folding = _Folding(model, rewrite, walked, plan, nonempty, rounds)
    folding.run()
    return replace(folding.rewrite, from_opset=dict(before))


@dataclass(slots=True)
class _Folding:
    """A model while it is folded, step by step.

    given: the model of the caller. rewrite: the steps so far, and the model as it is now. walked: its inference. told:
    a plan that holds the notes. nonempty, rounds: as for `convert_folded`. budget: how many bytes the constants may
    take. unread: the initializers that nobody read at first. functions: those of the model as it is now, whose names
    may be those of operators of ai.onnx.
    """

    given: ModelProto
    rewrite: Rewrite[ModelProto]
    walked: Walked
    told: Plan
    nonempty: bool = False
    rounds: bool = False
    budget: ByteBudget = field(default_factory=ByteBudget)
    unread: set[str] = field(default_factory=set)
    functions: frozenset[FunctionKey] = frozenset()

    def run(self) -> None:
        """Take all steps."""
        root = next(roots(self.walked.scopes))
        self.unread = unread_initializers(root[0], Uses(root))
        for _ in range(MOST_NESTED):
            # An inner branch is taken before the branch around it.
            if not self._step(self._take_branches):
                break
        for plan_step in (self._write_constants, self._bypass, self._say_sizes, self._shorten_formulas, self._sweep):
            self._step(plan_step)
        if self.nonempty:
            # The model is for a runtime, which may believe a wrong declaration. Otherwise declarations stay.
            self._drop_untrue_shapes()
        told = with_nodes(self.told.notes, self.walked.scopes)
        self.rewrite = self.rewrite.then(step(self.rewrite.model, (), told))

    def _step(self, plan_step: Callable[[Plan, Uses, Elements, FreshNames], None]) -> bool:
        """Plan a step and take it. Return True if it changed the model."""
        model, plan = self.rewrite.model, self._planned(plan_step)
        if not plan.edits:
            self.told.notes = plan.notes
            return False
        # The first step copies the model of the caller. Later steps change that copy, which nobody else has.
        self.rewrite = self.rewrite.then(apply_plan(plan, model, owned=model is not self.given))
        self.walked = walk_model(self.rewrite.model, self.walked.leeway)
        return True

    def _planned(self, plan_step: Callable[[Plan, Uses, Elements, FreshNames], None]) -> Plan:
        """Return the plan of a step over all roots, with the notes of the steps before. Raises ConversionError."""
        model = self.rewrite.model
        plan = Plan(left_out=find_left_out(model, self.walked.scopes), known=self.walked)
        plan.notes, self.told.notes = self.told.notes, []
        names = FreshNames(used_names(model, self.walked.scopes))
        self.functions = frozenset(map(function_key, model.functions))
        for root in roots(self.walked.scopes):
            plan.start(root)
            uses = Uses(root, keeps_inputs=not (self.walked.leeway.assume_defaults or self._as_nodes))
            elements = Elements(self.walked, uses, self.functions, rounds=self.rounds)
            plan_step(plan, uses, elements, names)
            plan.rounding |= elements.has_rounded
        plan.blockers += plan.needed(self.walked)
        plan.raise_blockers("the model cannot be folded", self.rewrite.diagnostics)
        return plan

    def _drop_untrue_shapes(self) -> None:
        untrue = list(untrue_shapes(self.rewrite.model, self.walked))
        if untrue:
            copy = ModelProto()
            copy.CopyFrom(self.rewrite.model)
            self.rewrite = self.rewrite.then(step(copy, drop_shapes(copy, untrue)))

    @property
    def _as_nodes(self) -> bool:
        """True where the IR version makes an input of each initializer."""
        return self.rewrite.model.ir_version < INITIALIZER_IR_VERSION

    # Steps -----------------------------------------------------------------------------------------------------------

    def _take_branches(self, plan: Plan, uses: Uses, elements: Elements, names: FreshNames) -> None:
        Branches(plan, self.rewrite.model, self.walked, elements, uses, names).run()

    def _write_constants(self, plan: Plan, uses: Uses, elements: Elements, names: FreshNames) -> None:
        plan_constants(plan, self.rewrite.model, elements, uses, self.budget)

    def _bypass(self, plan: Plan, uses: Uses, elements: Elements, names: FreshNames) -> None:
        plan_bypass(plan, self.walked, elements, uses, self.functions)

    def _say_sizes(self, plan: Plan, uses: Uses, elements: Elements, names: FreshNames) -> None:
        SaidSizes(plan, self.walked, elements, uses, names, self.functions, self._as_nodes, self.nonempty).run()

    def _shorten_formulas(self, plan: Plan, uses: Uses, elements: Elements, names: FreshNames) -> None:
        if MAIN in uses.scopes:
            Formulas(plan, self.walked, elements, uses, names, as_nodes=self._as_nodes).run()

    def _sweep(self, plan: Plan, uses: Uses, elements: Elements, names: FreshNames) -> None:
        plan_sweep(plan, self.walked, uses, self.unread)
