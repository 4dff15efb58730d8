"""Planning the splits of a model that goes to another opset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from splitgraph.conversion.ladder.conversion_cache import ConversionCache, Key
from splitgraph.conversion.operators.registry import refusal, unknown_version
from splitgraph.conversion.planning.emission import SharedLengths, new_emission
from splitgraph.conversion.planning.plan import Plan, Replacement
from splitgraph.conversion.splits.lower import SplitNode, lower_split
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.graph.names import FreshNames
from splitgraph.graph.scopes import GraphPath, Scope, node_label
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import GraphDetail, SplitDetail
from splitgraph.onnx_proto import ModelProto, NodeProto
from splitgraph.value_type import ValueType
from splitgraph.variants import Variant, variant_at


def plan_splits(
    plan: Plan,
    model: ModelProto,
    walked: Walked,
    root: Sequence[Scope],
    names: FreshNames,
    target: int,
    splits: Mapping[GraphPath, Sequence[int]],
    caches: Mapping[GraphPath, ConversionCache],
) -> None:
    """Plan every split of a root (main graph or function, with its subgraphs).

    splits: by graph, the indices of its splits, for the graphs that have some. caches: of these graphs.
    """
    replacements: list[tuple[Scope, int, Replacement]] = []
    dimensions = _certain_dimensions(model)
    never_run = {error.location for error in walked.never_run}
    for scope in root:
        if scope.path not in splits:
            continue
        # In a function, the names of dimensions are those of one call.
        shared = SharedLengths(frozenset() if scope.in_function else dimensions)
        cache = caches[scope.path]
        planner = _SplitPlanner(plan, model, scope, names, target, shared, cache, never_run, replacements)
        detail: GraphDetail = walked.graphs.get(scope.path) or GraphDetail()
        visits, nodes = walked.visits(scope), scope.nodes
        for index in splits[scope.path]:
            visit, node = visits[index], nodes[index]
            key = None if visit is None else cache.key_of(node, visit)
            planner.plan_split(index, node, detail.splits.get(index), key)
    plan.replace_all(replacements)


@dataclass(slots=True)
class _SplitPlanner:
    """Plans the splits of one graph."""

    plan: Plan
    model: ModelProto
    scope: Scope
    names: FreshNames
    target: int
    shared: SharedLengths
    cache: ConversionCache
    never_run: set[str]
    replacements: list[tuple[Scope, int, Replacement]]
    # The versions of the operators at the target, looked up once.
    _targets: dict[str, Variant | None] = field(default_factory=dict)

    def plan_split(self, index: int, node: NodeProto, found: SplitDetail | None, key: Key | None) -> None:
        """Plan one split. found: what inference says of it. key: that of the cache, None for an uncacheable one."""
        location = f"{self.scope.location}/{node_label(node, index)}"
        if found is None:
            self.plan.blockers.append(_not_inferred(node, location))
            return
        op_type = node.op_type
        if op_type not in self._targets:
            self._targets[op_type] = variant_at(op_type, self.target)
        variant = self._targets[op_type]
        if variant is None:
            self.plan.blockers.append(_missing(node, location, self.target))
            return
        cached = self.cache.find(key, node, index)
        if cached is not None:
            cached.before, cached.after = found.variant.label, variant.label
            self.replacements.append((self.scope, index, cached))
            return
        unknown = unknown_version(op_type, self.target)
        if unknown is not None:
            self.plan.blockers.append(refusal(op_type, unknown, location, is_target=True))
            return
        has_one_form = variant.output_types is not found.variant.output_types or variant.lower is None
        if has_one_form or op_type == "SplitToSequence":
            # Sequences and strings have one form, so that only their element types can prevent a conversion.
            self.plan.blockers.extend(_kept_as_is(found.variant, variant, found.data, location))
            return
        if variant is found.variant and location in self.never_run:
            return
        self._lower(SplitNode(self.scope, index, node, found), variant, key)

    def _lower(self, split: SplitNode, variant: Variant, key: Key | None) -> None:
        node, index = split.node, split.index
        emission = new_emission(self.plan, self.model, self.scope, node, index, self.names, self.target, self.shared)
        replacement, blockers = lower_split(split, variant, emission, f"opset {self.target}")
        self.plan.blockers.extend(blockers)
        if replacement is None:
            return
        self.replacements.append((self.scope, index, replacement))
        if key is not None and len(emission.mains) == 1:
            self.cache.keep_split(key, node, emission.mains[0], self.shared.holds, replacement.why)


def _certain_dimensions(model: ModelProto) -> frozenset[str]:
    """The symbols in the shapes of inputs without a default; a default may have another size than its input."""
    named: dict[bool, set[str]] = {True: set(), False: set()}
    defaults = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        named[value.name in defaults].update(dim.dim_param for dim in value.type.tensor_type.shape.dim)
    return frozenset(named[False] - named[True])


def _kept_as_is(before: Variant, after: Variant, data: ValueType, location: str) -> list[Diagnostic]:
    """The blocker for a node that is kept, if the target version does not take its element type or may not take it."""
    if (
        after.dtypes is None
        or data.dtype in after.dtypes
        or (before.dtypes is not None and before.dtypes <= after.dtypes)
    ):
        return []
    what = (
        f"{after.label} does not take {data.dtype}"
        if data.dtype
        else f"the element type is unknown, and {after.label} takes fewer types"
    )
    return [diagnostic("SG403", what, location)]


def _not_inferred(node: NodeProto, location: str) -> Diagnostic:
    return diagnostic(
        "SG407", f"inference did not reach this {node.op_type}, so nothing is known of its parts", location
    )


def _missing(node: NodeProto, location: str, target: int) -> Diagnostic:
    first = 11 if node.op_type == "SplitToSequence" else 20
    helps = {
        "SplitToSequence": "Stop at opset 11. 'convert --to split' says why it cannot be a plain split.",
        "StringSplit": "Stop at opset 20; nothing older splits strings.",
    }
    return diagnostic(
        "SG404",
        f"{node.op_type} exists from opset {first} on and has no older form",
        location,
        help=helps.get(node.op_type),
    )
