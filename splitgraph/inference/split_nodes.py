"""Inference of a split node: lift, types of the outputs, and the report."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.canonical import CanonicalSplit
from splitgraph.dim import Dim
from splitgraph.graph.scopes import node_label
from splitgraph.inference.analysis import SplitReport
from splitgraph.inference.context import NodeContext
from splitgraph.inference.state import SplitDetail
from splitgraph.value_type import UNKNOWN, ValueType
from splitgraph.variants import Variant, infer_split, split_18


def visit_split(ctx: NodeContext, variant: Variant) -> Sequence[ValueType]:
    """Infer a split node, keep what conversion needs of it, and report it."""
    state = ctx.walk.state
    split, types = infer_split(variant, ctx)
    errors = tuple(ctx.errors)
    outputs = [ctx.walk.complete(value) for value in types]
    data = ctx.input(0)
    divisible = split is not None and _is_divisible(ctx, split)
    ctx.walk.detail.splits[ctx.index] = SplitDetail(
        variant, split, data, divisible, errors, _repaired(ctx, errors), *_lengths_input(ctx, variant)
    )
    state.add_split(
        SplitReport(
            name=node_label(ctx.node, ctx.index),
            op=variant.op_type,
            domain=variant.domain,
            since_version=variant.since_version,
            location=ctx.location,
            axis=None if split is None else split.axis,
            input_name=ctx.node.input[0] if ctx.node.input else "",
            input=data,
            outputs=tuple(
                (name, outputs[i] if i < len(outputs) else UNKNOWN) for i, name in enumerate(ctx.node.output)
            ),
            lengths=() if split is None else (split.lengths or ()),
            obligations=(),
        ),
        tuple(ctx.obligations),
    )
    return outputs


def _repaired(ctx: NodeContext, errors: tuple[str, ...]) -> CanonicalSplit | None:
    """What a Split-18 that gives neither split nor num_outputs must mean, where that is its only fault."""
    if errors != ("SG207",):
        return None
    state = ctx.walk.state
    state.quiet += 1
    split = split_18.lift_chunks(ctx)
    state.quiet -= 1
    # Chunks that overrun the dimension are what no exporter can have meant.
    return split if split is not None and tuple(ctx.errors) == errors and _fills_every_part(split) else None


def _fills_every_part(split: CanonicalSplit) -> bool:
    lengths = split.static_lengths
    return lengths is None or split.total == 0 or all(lengths)


def _lengths_input(ctx: NodeContext, variant: Variant) -> tuple[str | None, bool]:
    """Element type of the lengths input, and whether one of the lengths may be -1, for the rest."""
    position = 2 if variant.op_type == "VariadicSplit" else 1
    contents = ctx.contents(position)
    settled = contents is not None and all(
        (isinstance(item, int) and item >= 0) or (isinstance(item, Dim) and ctx.facts.prove_ge(item, 0))
        for item in contents.items
    )
    return ctx.input(position).dtype, variant.op_type == "VariadicSplit" and not settled


def _is_divisible(ctx: NodeContext, split: CanonicalSplit) -> bool:
    if split.total is None or not isinstance(split.count, int) or split.form not in ("equal", "chunks"):
        return False
    if isinstance(split.total, Dim):
        return ctx.facts.prove_divisible(split.total, split.count)
    return split.total % split.count == 0
