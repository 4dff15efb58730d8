"""Writing one split node as another variant: its canonical split is lowered by the target variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from splitgraph.canonical import CanonicalSplit
from splitgraph.conversion.nodes.omitted_arguments import blocker, reads_left_out
from splitgraph.conversion.planning.emission import Emission
from splitgraph.conversion.planning.plan import Replacement
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.graph.scopes import Scope, node_label
from splitgraph.inference.walk_results import SplitDetail
from splitgraph.onnx_proto import NodeProto, TensorProto
from splitgraph.variants import Variant
from splitgraph.variants.lowering import LowerRequest, NotRepresentable, lengths_with_rest

# By operator, the input that holds the lengths at run time. Of slices, it is that of the Split that stands for them.
LENGTHS_INPUT = {"Split": 1, "SplitToSequence": 1, "VariadicSplit": 2, "Slice": 1}


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
    found: SplitNode,
    target: Variant,
    emission: Emission,
    why: str,
    *,
    explicit_lengths: bool = False,
    counted: bool = True,
    afresh: bool = False,
) -> tuple[Replacement | None, Sequence[Diagnostic]]:
    """Write a split node as the target variant. Returns what becomes of it (None: it is unchanged), and the blockers.

    explicit_lengths: write lengths out even where the target has a shorter form. counted: False where the lengths do
    not show how many they are, so that their number is written out. afresh: also a node that has this form already.
    """
    node, detail, location = found.node, found.detail, found.location
    split = detail.split
    if split is None:
        reasons = ", ".join(dict.fromkeys(detail.errors)) or "it is not valid"
        text = f"the {detail.variant.label} is invalid ({reasons}), so it has no exact equivalent"
        return None, [diagnostic("SG407", text, location)]
    blocked = _types_blocked(detail, target, location)
    if blocked:
        return None, blocked
    if target == detail.variant and not explicit_lengths and not afresh:
        return None, ()
    if not afresh and explicit_lengths and target == detail.variant and _is_written_out(node, split, target, counted):
        return None, ()
    if reads_left_out(node, emission.left_out):
        return None, [blocker(node, emission.left_out, "SG408", location)]
    # Numbers, or what the dimension leaves of them, make better bounds than a tensor of lengths.
    needs_no_lengths = target.op_type == "Slice" and lengths_with_rest(split) is not None
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
        if target.lower is None:
            raise NotRepresentable("SG408", f"{target.label} cannot express a split of a dimension")
        target.lower(request)
    except NotRepresentable as refusal:
        text = f"{detail.variant.label}: {refusal.message}"
        return None, [diagnostic(refusal.code, text, location, help=refusal.help)]
    mains = {made.op_type for made in emission.mains} - {target.op_type}
    after = mains.pop() if len(mains) == 1 and not mains.isdisjoint(("Slice", "Gather", "Identity")) else target.label
    return emission.replacement(why, detail.variant.label, after), ()


def _is_written_out(node: NodeProto, split: CanonicalSplit, target: Variant, counted: bool) -> bool:
    """True when the lengths are written out already, in a form that every runtime reads."""
    if split.form != "lengths":
        return False
    # No runtime reads the lengths of Split-1 from an input.
    as_input = target.since_version == 1 and len(node.input) > 1 and bool(node.input[1])
    return counted and not (as_input and split.static_lengths is not None)


def _counted_lengths(
    node: NodeProto, detail: SplitDetail, split: CanonicalSplit, emission: Emission, counted: bool
) -> str | None:
    name = run_time_lengths(node, detail, split, emission)
    if name is None or counted:
        return name
    return emission.write("Reshape", [name, emission.constant([len(node.output)], "count")], "counted")


def run_time_lengths(node: NodeProto, detail: SplitDetail, split: CanonicalSplit, emission: Emission) -> str | None:
    """The name of an int64 tensor with the lengths if they are an input; None where a constant must hold them."""
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
    """The lengths of a VariadicSplit, with a possible -1 replaced by the rest at run time."""
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


def _types_blocked(detail: SplitDetail, target: Variant, location: str) -> tuple[Diagnostic, ...]:
    """The blocker if the target version does not take the element type, or may not take an unknown one."""
    allowed, before = target.dtypes, detail.variant.dtypes
    if allowed is None or detail.data.dtype in allowed:
        return ()
    if detail.data.dtype is None:
        if before is not None and before <= allowed:
            return ()
        what = f"the element type is unknown, and {target.label} takes fewer than {detail.variant.label}"
    else:
        what = f"{target.label} does not take {detail.data.dtype}"
    return (diagnostic("SG403", what, location),)
