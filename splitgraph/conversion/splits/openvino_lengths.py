"""Writing out the lengths of chunks that may be uneven, for OpenVINO. Its ONNX frontend reads every num_outputs as
equal parts: it refuses chunks that it knows to be uneven, and writes a Split that fails at run time for all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from splitgraph.conversion.apply import apply_plan
from splitgraph.conversion.inlining import inline_functions
from splitgraph.conversion.known_values import find_left_out
from splitgraph.conversion.plan import Plan, opset_of
from splitgraph.conversion.repair import plan_repairs
from splitgraph.conversion.rewrite import Change
from splitgraph.conversion.splits.lower import SplitRewrites
from splitgraph.inference import Walked, walk_model
from splitgraph.inference.walk_results import SplitDetail
from splitgraph.model.names import FreshNames, used_names
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import Scope, plain_domain, roots, scopes
from splitgraph.splits import split_18, variadic_split_1, variant_at
from splitgraph.splits.variadic_split_1 import is_variadic_function

_WHY = "OpenVINO reads num_outputs as equal parts"


def write_uneven_lengths(model: ModelProto) -> tuple[ModelProto, tuple[Change, ...]]:
    """Return a copy of the model with explicit lengths in place of every num_outputs that may be uneven, and the
    changes; the model itself where there are none, or where it is invalid.

    Local functions are inlined first, except those that stand for VariadicSplit, because each call may have other
    sizes. Raises ValueError where they cannot be inlined (see `inline_functions`).
    """
    if not _has_chunks(model):
        return model, ()
    inlined = inline_functions(model)
    walked = walk_model(inlined)
    repairs = plan_repairs(inlined, walked)
    if repairs is not None:
        inlined = apply_plan(repairs, inlined).model
        walked = walk_model(inlined)
    plan = Plan(left_out=find_left_out(inlined, walked.scopes))
    plan.refuse_errors(walked)
    if plan.blockers:
        return model, ()
    names = FreshNames(used_names(inlined, walked.scopes))
    for root in roots(walked.scopes):
        if not root[0].in_function:
            plan.start(root)
            _plan(plan, inlined, walked, root, names)
    if not plan.changes:
        return model, ()
    # OpenVINO reads explicit lengths as this operator.
    changes = tuple(replace(change, after=variadic_split_1.VARIANT.label) for change in plan.changes)
    return apply_plan(plan, inlined).model, changes


def _has_chunks(model: ModelProto) -> bool:
    """Return whether a node outside our own functions is a Split-18 without lengths, which may be uneven."""
    return any(
        node.op_type == "Split" and not plain_domain(node.domain) and not any(node.input[1:2])
        for scope in scopes(model)
        if opset_of(scope.imports) >= split_18.VARIANT.since_version
        and not (scope.is_function and is_variadic_function(scope.proto))
        for node in scope.nodes
    )


def _plan(plan: Plan, model: ModelProto, walked: Walked, root: Sequence[Scope], names: FreshNames) -> None:
    rewrites = SplitRewrites(plan, model, root, names, _WHY)
    for split_node in rewrites.find(walked):
        variant = variant_at("Split", opset_of(split_node.scope.imports))
        if variant is not None and split_node.detail.variant == variant and _may_be_uneven(split_node.detail):
            rewrites.write(split_node, variant, explicit_lengths=True)
    rewrites.settle()


def _may_be_uneven(detail: SplitDetail) -> bool:
    split = detail.split
    if split is None or split.form != "chunks" or detail.divisible:
        return False
    if split.total is None:
        return split.count != 1
    return len(set(split.lengths or ())) != 1
