"""Models whose nodes are written in other ways, for tests."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx

from splitgraph.conversion.apply import apply_plan
from splitgraph.conversion.known_values import KnownValues
from splitgraph.conversion.other_ways import Choose
from splitgraph.conversion.plan import Plan, Replacement, started_roots
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.conversion.targets.operators import plan_other_operators
from splitgraph.inference import walk_model
from splitgraph.model.names import FreshNames, used_names
from splitgraph.model.scopes import GraphPath, Scope


def written_of(way: Replacement) -> list[str]:
    """The operators of a way, in order."""
    return [node.op_type for node in way.nodes or ()]


def nth(place: int) -> Choose:
    """Chooses the way at a place."""

    def choose(ways: Iterator[Replacement], _: KnownValues) -> Replacement | None:
        return next((way for index, way in enumerate(ways) if index == place), None)

    return choose


def ways_of(model: onnx.ModelProto, operator: str, types: Collection[str] = ()) -> list[Replacement]:
    """Each way to write the nodes of an operator, in the order in which they are offered."""
    found: list[Replacement] = []

    def choose(ways: Iterator[Replacement], _: KnownValues) -> None:
        found.extend(ways)

    rewritten(model, choose, operator, types)
    return found


def rewritten(
    model: onnx.ModelProto, choose: Choose, operator: str = "", types: Collection[str] = ()
) -> Rewrite[onnx.ModelProto]:
    """The model after one round. operator: of the nodes that are wanted, or all. types: that they may have."""
    walked, plan = walk_model(model), Plan()
    names = FreshNames(used_names(model, walked.scopes))
    for root in started_roots(plan, model, walked):
        wanted = {place: types for scope in root for place in _places(scope, operator)}
        plan_other_operators(plan, model, walked, root, names, "it is not read", wanted=wanted, choose=choose)
    plan.raise_blockers("the model is wrong")
    return apply_plan(plan, model)


def _places(scope: Scope, operator: str) -> Iterator[tuple[GraphPath, int]]:
    for index, node in enumerate(scope.nodes):
        if operator in ("", node.op_type):
            yield scope.path, index
