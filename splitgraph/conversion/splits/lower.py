"""Writing split nodes as another variant: one split, the splits of a model that goes to another opset, and those that
get another form at the model's own opset. The canonical split of a node is lowered by the target variant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from splitgraph.conversion.builders import Emission, SharedLengths, new_emission
from splitgraph.conversion.cache import ConversionCache, Key
from splitgraph.conversion.ir_version import refusal, unknown_version
from splitgraph.conversion.known_values import blocker, reads_left_out
from splitgraph.conversion.plan import Plan, Replacement, opset_of
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import GraphDetail, SplitDetail
from splitgraph.model.names import FreshNames
from splitgraph.model.onnx_proto import ModelProto, NodeProto, TensorProto
from splitgraph.model.scopes import GraphPath, Scope, node_label
from splitgraph.model.value_type import ValueType
from splitgraph.splits import Variant, variant_at
from splitgraph.splits.canonical import CanonicalSplit
from splitgraph.splits.lowering import LowerRequest, NotRepresentable, lengths_with_rest

# The input that holds the lengths at run time, by operator. For slices: the input of the Split that stands for them.
LENGTHS_INPUT = {"Split": 1, "SplitToSequence": 1, "VariadicSplit": 2, "Slice": 1}
# The first opset of the operators that not every opset has.
_EXISTS_FROM = {"SplitToSequence": 11, "StringSplit": 20}


@dataclass(frozen=True, slots=True)
class SplitNode:
    """A split node, its place in a graph, and its inference."""

    scope: Scope
    index: int
    node: NodeProto
    detail: SplitDetail

    @property
    def location(self) -> str:
        """The location of the node for messages."""
        return f"{self.scope.location}/{node_label(self.node, self.index)}"


def lower_split(
    split_node: SplitNode,
    variant: Variant,
    emission: Emission,
    why: str,
    *,
    explicit_lengths: bool = False,
    counted: bool = True,
    afresh: bool = False,
) -> tuple[Replacement | None, Sequence[Diagnostic]]:
    """Write a split node as the target variant. Return what becomes of it (None: it is unchanged), and the blockers.

    explicit_lengths: write lengths out even where the target has a shorter form. counted: False where the lengths do
    not show how many they are, so that their number is written out. afresh: also a node that has this form already.
    """
    node, detail, location = split_node.node, split_node.detail, split_node.location
    split = detail.split
    if split is None:
        reasons = ", ".join(dict.fromkeys(detail.errors)) or "it is not valid"
        text = f"the {detail.variant.label} is invalid ({reasons}), so it has no exact equivalent"
        return None, [diagnostic("SG407", text, location)]
    blocked = _types_blocked(detail, variant, location)
    if blocked:
        return None, blocked
    if variant == detail.variant and not explicit_lengths and not afresh:
        return None, ()
    if not afresh and explicit_lengths and variant == detail.variant and _is_written_out(node, split, variant, counted):
        return None, ()
    if reads_left_out(node, emission.left_out):
        return None, [blocker(node, emission.left_out, "SG408", location)]
    # Numbers, or what the dimension leaves of them, make better bounds than a tensor of lengths.
    needs_no_lengths = variant.op_type == "Slice" and lengths_with_rest(split) is not None
    try:
        request = LowerRequest(
            node=node,
            split=split,
            data=detail.data,
            builder=emission,
            lengths=None if needs_no_lengths else _counted_lengths(node, detail, split, emission, counted),
            divisible=detail.divisible,
            explicit_lengths=explicit_lengths,
            axis_attribute=next((attribute for attribute in node.attribute if attribute.name == "axis"), None),
        )
        if variant.lower is None:
            raise NotRepresentable("SG408", f"{variant.label} cannot express a split of a dimension")
        variant.lower(request)
    except NotRepresentable as refusal:
        text = f"{detail.variant.label}: {refusal.message}"
        blocking_opset = None if refusal.exists_from is None else refusal.exists_from - 1
        return None, [diagnostic(refusal.code, text, location, help=refusal.help, blocking_opset=blocking_opset)]
    mains = {made.op_type for made in emission.mains} - {variant.op_type}
    after = mains.pop() if len(mains) == 1 and not mains.isdisjoint(("Slice", "Gather", "Identity")) else variant.label
    return emission.replacement(why, detail.variant.label, after), ()


def _is_written_out(node: NodeProto, split: CanonicalSplit, variant: Variant, counted: bool) -> bool:
    """Return True when the lengths are written out already, in a form that every runtime reads."""
    if split.form != "lengths":
        return False
    # No runtime reads the lengths of Split-1 from an input.
    as_input = variant.since_version == 1 and len(node.input) > 1 and bool(node.input[1])
    return counted and not (as_input and split.static_lengths is not None)


def _counted_lengths(
    node: NodeProto, detail: SplitDetail, split: CanonicalSplit, emission: Emission, counted: bool
) -> str | None:
    name = run_time_lengths(node, detail, split, emission)
    if name is None or counted:
        return name
    return emission.write("Reshape", [name, emission.constant([len(node.output)], "count")], "counted")


def run_time_lengths(node: NodeProto, detail: SplitDetail, split: CanonicalSplit, emission: Emission) -> str | None:
    """Return the name of an int64 tensor with the lengths if they are an input; None where a constant must hold
    them.
    """
    position = LENGTHS_INPUT[detail.variant.op_type]
    if split.form != "lengths" or len(node.input) <= position or not node.input[position]:
        return None
    name: str = node.input[position]
    if split.static_lengths is not None:
        # The model's own tensor is kept if it can be used as it is. Otherwise a constant is better than a computation.
        return name if detail.lengths_dtype == "int64" and not detail.rest_possible else None
    if detail.variant.op_type == "VariadicSplit":
        if detail.rest_possible and split.total is not None and lengths_with_rest(split) is not None:
            # What the known lengths leave of the dimension takes fewer nodes than to look for the -1 at run time.
            return None
        return without_rest(node, name, emission) if detail.rest_possible else _as_int64(name, detail, emission)
    return _as_int64(name, detail, emission)


def _as_int64(name: str, detail: SplitDetail, emission: Emission) -> str:
    if detail.lengths_dtype == "int64":
        return name
    if emission.opset < 6:
        raise NotRepresentable(
            "SG402", "the lengths are a floating-point tensor known only at run time", "Make the lengths constant."
        )
    return emission.write("Cast", [name], "lengths", to=TensorProto.INT64)


def without_rest(node: NodeProto, name: str, emission: Emission) -> str:
    """Return the lengths of a VariadicSplit, with a possible -1 replaced by the rest at run time."""
    axis = emission.write(
        "Reshape",
        [emission.write("Cast", [node.input[1]], "axis", to=TensorProto.INT64), emission.constant([1], "one")],
        "axes",
    )
    dim = emission.write("Gather", [emission.write("Shape", [node.input[0]], "shape"), axis], "dim", axis=0)
    given = emission.write("Cast", [name], "given", to=TensorProto.INT64)
    difference = emission.write("Sub", [dim, emission.write("ReduceSum", [given], "sum", keepdims=0)], "difference")
    rest = emission.write("Sub", [difference, emission.constant([1], "one")], "rest")
    is_rest = emission.write("Equal", [given, emission.constant([-1], "minus_one")], "is_rest")
    return emission.write("Where", [is_rest, rest, given], "lengths")


def _types_blocked(detail: SplitDetail, variant: Variant, location: str) -> tuple[Diagnostic, ...]:
    """Return the blocker if the target version does not take the element type, or may not take an unknown one."""
    allowed, before = variant.dtypes, detail.variant.dtypes
    if allowed is None or detail.data.dtype in allowed:
        return ()
    if detail.data.dtype is None:
        if before is not None and before <= allowed:
            return ()
        message = f"the element type is unknown, and {variant.label} takes fewer than {detail.variant.label}"
    else:
        message = f"{variant.label} does not take {detail.data.dtype}"
    return (diagnostic("SG403", message, location),)


# Splits that go to another opset --------------------------------------------------------------------------------------


def plan_splits(
    plan: Plan,
    model: ModelProto,
    walked: Walked,
    root: Sequence[Scope],
    names: FreshNames,
    to_opset: int,
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
        planner = _SplitPlanner(plan, model, scope, names, to_opset, shared, cache, never_run, replacements)
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
    to_opset: int
    shared: SharedLengths
    cache: ConversionCache
    never_run: set[str]
    replacements: list[tuple[Scope, int, Replacement]]
    # The versions of the operators at the target, looked up once.
    _targets: dict[str, Variant | None] = field(default_factory=dict)

    def plan_split(self, index: int, node: NodeProto, detail: SplitDetail | None, key: Key | None) -> None:
        """Plan one split. detail: its inference. key: of the cache; None for a node that cannot be cached."""
        location = f"{self.scope.location}/{node_label(node, index)}"
        if detail is None:
            text = f"inference did not reach this {node.op_type}, so nothing is known of its parts"
            self.plan.blockers.append(diagnostic("SG407", text, location))
            return
        op_type = node.op_type
        if op_type not in self._targets:
            self._targets[op_type] = variant_at(op_type, self.to_opset)
        variant = self._targets[op_type]
        if variant is None:
            self.plan.blockers.append(_missing(node, location))
            oldest = variant_at(op_type, _EXISTS_FROM[op_type])
            assert oldest is not None
            self._block(op_type, detail, _kept_as_is(detail.variant, oldest, detail.data, location))
            return
        cached = self.cache.find(key, node, index)
        if cached is not None:
            cached.before, cached.after = detail.variant.label, variant.label
            self.replacements.append((self.scope, index, cached))
            return
        unknown = unknown_version(op_type, self.to_opset)
        if unknown is not None:
            self.plan.blockers.append(refusal(op_type, unknown, location, is_target=True))
            return
        has_one_form = variant.output_types is not detail.variant.output_types or variant.lower is None
        if has_one_form or op_type == "SplitToSequence":
            # Sequences and strings have one form, so that only their element types can prevent a conversion.
            self._block(op_type, detail, _kept_as_is(detail.variant, variant, detail.data, location))
            return
        if variant is detail.variant and location in self.never_run:
            return
        self._lower(SplitNode(self.scope, index, node, detail), variant, key)

    def _lower(self, split: SplitNode, variant: Variant, key: Key | None) -> None:
        node, index = split.node, split.index
        emission = new_emission(self.plan, self.model, self.scope, node, index, self.names, self.to_opset, self.shared)
        replacement, blockers = lower_split(split, variant, emission, f"opset {self.to_opset}")
        self._block(node.op_type, split.detail, blockers)
        if replacement is None:
            return
        self.replacements.append((self.scope, index, replacement))
        if key is not None and len(emission.mains) == 1:
            self.cache.keep_split(key, node, emission.mains[0], self.shared.holds, replacement.why)

    def _block(self, op_type: str, detail: SplitDetail, blockers: Iterable[Diagnostic]) -> None:
        """Add the blockers of a split. For an element type, find the opset that does not take it."""
        for finding in blockers:
            if finding.code == "SG403":
                way = opset_of(self.scope.imports), self.to_opset
                finding = replace(finding, blocking_opset=_first_without(op_type, detail.data.dtype, *way))
            self.plan.blockers.append(finding)


def _certain_dimensions(model: ModelProto) -> frozenset[str]:
    """Return the symbols in the shapes of inputs without a default; a default may have another size than its input."""
    named: dict[bool, set[str]] = {True: set(), False: set()}
    defaults = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        named[value.name in defaults].update(dim.dim_param for dim in value.type.tensor_type.shape.dim)
    return frozenset(named[False] - named[True])


def _kept_as_is(before: Variant, after: Variant, data: ValueType, location: str) -> list[Diagnostic]:
    """Return the blocker for a node that is kept, if the target version does not take its element type or may not take
    it.
    """
    if (
        after.dtypes is None
        or data.dtype in after.dtypes
        or (before.dtypes is not None and before.dtypes <= after.dtypes)
    ):
        return []
    message = (
        f"{after.label} does not take {data.dtype}"
        if data.dtype
        else f"the element type is unknown, and {after.label} takes fewer types"
    )
    return [diagnostic("SG403", message, location)]


def _missing(node: NodeProto, location: str) -> Diagnostic:
    first = _EXISTS_FROM[node.op_type]
    helps = {
        "SplitToSequence": "Stop at opset 11. 'convert --to split' says why it cannot be a plain split.",
        "StringSplit": "Stop at opset 20; nothing older splits strings.",
    }
    return diagnostic(
        "SG404",
        f"{node.op_type} exists from opset {first} on and has no older form",
        location,
        help=helps.get(node.op_type),
        blocking_opset=first - 1,
    )


def _first_without(op_type: str, dtype: str | None, from_opset: int, to_opset: int) -> int | None:
    """Return the first opset on the way at which a split does not take an element type, None for an unknown one."""
    step = 1 if to_opset > from_opset else -1
    for opset in range(from_opset + step, to_opset + step, step):
        variant = variant_at(op_type, opset)
        if variant is not None and variant.dtypes is not None and dtype not in variant.dtypes:
            return opset
    return None


# Splits at the model's own opset --------------------------------------------------------------------------------------


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
        """Return all splits that inference reached, in graph order."""
        for scope in self.root:
            detail: GraphDetail = walked.graphs.get(scope.path) or GraphDetail()
            for index, split_detail in detail.splits.items():
                yield SplitNode(scope, index, scope.nodes[index], split_detail)

    def write(
        self,
        split_node: SplitNode,
        variant: Variant,
        *,
        explicit_lengths: bool = False,
        counted: bool = True,
        afresh: bool = False,
    ) -> Replacement | None:
        """Return what replaces a split; None where it is kept. Blockers are added to the plan.

        explicit_lengths, counted, afresh: as for `lower_split`.
        """
        scope, index, node = split_node.scope, split_node.index, split_node.node
        emission = new_emission(self.plan, self.model, scope, node, index, self.names, opset_of(scope.imports))
        replacement, blockers = lower_split(
            split_node, variant, emission, self.why, explicit_lengths=explicit_lengths, counted=counted, afresh=afresh
        )
        self.plan.blockers.extend(blockers)
        if replacement is not None:
            self._written.append((scope, index, replacement))
        return replacement

    def settle(self) -> None:
        """Plan the replacement of all splits that were written."""
        self.plan.replace_all(self._written)
