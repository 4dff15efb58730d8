"""Inference of split nodes: lift to the canonical split, output types, and the report."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.canonical import CanonicalSplit
from splitgraph.dim import Dim, Obligation
from splitgraph.graph.scopes import node_label
from splitgraph.inference.context import NodeContext
from splitgraph.inference.graph_walk import GraphWalk
from splitgraph.inference.walk_results import FoundSplit, SplitDetail
from splitgraph.onnx_proto import NodeProto
from splitgraph.value_type import ValueType
from splitgraph.variants import Variant, infer_split
from splitgraph.variants.written_split import read_written


def visit_split(ctx: NodeContext, variant: Variant) -> tuple[SplitDetail, Sequence[ValueType]]:
    """Infer a split node. Gives the details that conversion needs, and the types of the parts."""
    counted = _tells_count(ctx, variant)
    split, types = infer_split(variant, ctx)
    errors = tuple(ctx.errors)
    named = ctx.node.output
    if "" in named:
        text = f"output {[*named].index('')} has no name: onnxruntime crashes on a split with an omitted output"
        ctx.find("SG220", text, severity="warning")
    outputs = [ctx.complete(value) for value in types]
    data = ctx.input(0)
    divisible = split is not None and _is_divisible(ctx, split)
    written = read_written(variant, ctx) if split is None else None
    ctx.split = SplitDetail(variant, split, data, divisible, errors, *_lengths_input(ctx, variant), counted, written)
    return ctx.split, outputs


def keep_split(
    walk: GraphWalk,
    node: NodeProto,
    index: int,
    detail: SplitDetail,
    outputs: Sequence[ValueType],
    obligations: tuple[Obligation, ...],
) -> None:
    """Keep a split node's details for conversion and for the report."""
    walk.detail.splits[index] = detail
    if not walk.state.record.keeps_reports:
        return
    label, inputs = node_label(node, index), node.input[:]
    given, location = inputs[0] if inputs else "", f"{walk.location}/{label}"
    found = FoundSplit(
        label, location, given, tuple(node.output[:]), detail, outputs, obligations, walk.facts, walk.branch
    )
    walk.state.record.keep_report(found)


def _lengths_input(ctx: NodeContext, variant: Variant) -> tuple[str | None, bool]:
    """Element type of the lengths input, and whether one of the lengths may be -1, for the rest."""
    if variant.op_type != "VariadicSplit":
        return ctx.input(1).dtype, False
    contents = ctx.contents(2)
    settled = contents is not None and all(
        (isinstance(item, int) and item >= 0) or (isinstance(item, Dim) and ctx.facts.prove_ge(item, 0))
        for item in contents.items
    )
    return ctx.input(2).dtype, not settled


def _tells_count(ctx: NodeContext, variant: Variant) -> bool:
    """True when the lengths input has a fixed size, or when there is none. Must be asked before the split is inferred,
    because that may fix the size.
    """
    position = 2 if variant.op_type == "VariadicSplit" else 1
    if not ctx.has_input(position) or ctx.contents(position) is not None:
        return True
    shape = ctx.input(position).shape
    return shape is not None and all(isinstance(dim, int) for dim in shape)


def _is_divisible(ctx: NodeContext, split: CanonicalSplit) -> bool:
    if split.total is None or not isinstance(split.count, int) or split.form not in ("equal", "chunks"):
        return False
    if isinstance(split.total, Dim):
        return ctx.facts.prove_divisible(split.total, split.count)
    return split.total % split.count == 0
