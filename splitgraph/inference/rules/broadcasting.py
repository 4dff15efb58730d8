"""Multidirectional broadcasting of dimensions, static and symbolic."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import Dim, DimLike, Facts, Obligation, level_of
from splitgraph.dim.conditions import plain_obligation
from splitgraph.inference.broadcast_assumptions import fit_only_if_equal
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import Dims, InvalidNode, differ, dims_of, expect, positions, spelled_dims
from splitgraph.model.deferred import np
from splitgraph.model.value_type import Contents, Item, Shape


def broadcast_dim(ctx: NodeContext, a: DimLike, b: DimLike) -> DimLike:
    """Return the dimension that two dimensions broadcast to. Raise InvalidNode if no input makes them fit."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int):
        return _beside_static(ctx, a, b)
    if isinstance(b, int):
        return _beside_static(ctx, b, a)
    return _both_symbolic(ctx, a, b)


def _beside_static(ctx: NodeContext, static: int, other: DimLike) -> DimLike:
    # Next to a static dimension that is not 1 the other is either 1 or the same.
    if isinstance(other, int):
        raise InvalidNode(f"dimensions {static} and {other} do not broadcast: they must be equal, or one of them 1")
    if ctx.facts.prove_ne(other, 1):
        expect(ctx, other, "==", static, lambda: f"dimensions {static} and {other} do not broadcast")
    return static


def _both_symbolic(ctx: NodeContext, a: Dim, b: Dim) -> DimLike:
    made = ctx.broadcast_symbol(a, b)
    if made is not None:
        return made
    known = _provable(ctx, a, b)
    if known is None:
        known = ctx.larger_of(a, b)
    if known is not None:
        return known
    made = ctx.fresh()
    highest = _range_of_both(ctx.facts, a, b)
    if highest is not None:
        # It is one of the two.
        ctx.facts.tighten(str(made), *highest)
    ctx.note_broadcast(a, b, made)
    return made


def _range_of_both(facts: Facts, a: Dim, b: Dim) -> tuple[int, int] | None:
    """Return the lowest and highest value that one of two dimensions can have; None if one has no highest value."""
    # The plainer one first: it is quickly found to be unbounded, and the other need not be looked at.
    plain, other = sorted((a, b), key=level_of)
    low, high = facts.range_of(plain)
    if high is None:
        return None
    least, most = facts.range_of(other)
    return None if most is None else (max(min(low or 0, least or 0), 0), max(high, most))


def _provable(ctx: NodeContext, a: Dim, b: Dim) -> DimLike | None:
    """Return the dimension that two dimensions broadcast to; None if the facts do not settle it."""
    facts = ctx.facts
    if facts.prove_eq(a, b):
        return min(a, b, key=level_of)
    a_not_one, b_not_one = facts.prove_ne(a, 1), facts.prove_ne(b, 1)
    if a_not_one and b_not_one:
        expect(ctx, a, "==", b, lambda: f"dimensions {a} and {b} do not broadcast")
    if a_not_one:
        return a
    return b if b_not_one else None


def broadcast_dims(ctx: NodeContext, shapes: Sequence[Dims | None]) -> Dims | None:
    """Return the shape that all the shapes broadcast to; None if a rank is unknown. Raise InvalidNode if they do not
    fit.
    """
    result: Dims | None = None
    for dims in shapes:
        if dims is None:
            return None
        if result is None or result == dims:
            result = dims
            continue
        longer, shorter = (result, dims) if len(result) >= len(dims) else (dims, result)
        skipped = len(longer) - len(shorter)
        pairs = list(zip(longer[skipped:], shorter, strict=True))
        # What these require may decide the others: a causal mask has no more columns than positions, so that none of
        # its rows is cut off.
        for a, b in pairs:
            _require_equal(ctx, a, b)
        result = longer[:skipped] + tuple(broadcast_dim(ctx, a, b) for a, b in pairs)
    return result


def fits_into(dims: Shape, whole: Shape) -> bool:
    """Return False if a shape can never broadcast to another shape without changing the other one."""
    pairs = zip(reversed(dims), reversed(whole), strict=False)
    return len(dims) <= len(whole) and not any(differ(dim, 1) and differ(dim, size) for dim, size in pairs)


def expect_to_fit(ctx: NodeContext, index: int, whole: Dims, what: str) -> None:
    """Require that an input, called `what`, broadcasts to a shape without changing that shape. Raise InvalidNode if it
    never can.
    """
    dims = dims_of(ctx, index)
    if dims is None:
        return

    def fault() -> str:
        return f"{what} {spelled_dims(dims)} does not broadcast to the input {spelled_dims(whole)}"

    if not fits_into(dims, whole):
        raise InvalidNode(fault())
    for dim, size in zip(reversed(dims), reversed(whole), strict=False):
        if dim != size and ctx.facts.prove_ne(dim, 1):
            expect(ctx, size, "==", dim, fault)


def _require_equal(ctx: NodeContext, a: DimLike, b: DimLike) -> None:
    """Record that two dimensions are equal if neither can be 1 where the other one is not."""
    if isinstance(a, Dim) and isinstance(b, Dim) and a is not b and fit_only_if_equal(a, b):
        known = plain_obligation(Obligation(a, "==", b))
        expect(ctx, known.lhs, known.relation, known.rhs, lambda: f"dimensions {a} and {b} do not broadcast")


def broadcast_items(contents: Contents, shape: tuple[int, ...], count: int) -> tuple[Item, ...]:
    """Return the elements after broadcasting to a static shape of `count` elements."""
    if contents.shape == shape:
        return contents.items
    if len(contents.items) == 1:
        return contents.items * count
    items = contents.items
    return tuple(items[index] for index in np.broadcast_to(positions(contents), shape).reshape(-1).tolist())
