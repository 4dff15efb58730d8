"""Weights of 1 along a length that was 1: they are the same for each place, or a table of one row.

So is what is computed of such weights: `[0] < lengths` is a mask of one place, or compares each place with 0.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from splitgraph.conversion.sizes.follow import Site
from splitgraph.conversion.sizes.needs import Meaning, Stays
from splitgraph.dim import Dim, DimLike, symbols_of
from splitgraph.inference.alone import Given, Source

_OTHERWISE = "If that is a row of a table, the model has no other rows: export the model with another length."


def ask_about_ones(site: Site) -> None:
    """Ask about the axes of weights that have to be as large as a length that was 1, if they are larger than 1."""
    walk, node, follower = site.ctx.walk, site.ctx.node, site.follower
    given = site.given() if site.wanted.ones else []
    for position, known in enumerate(given):
        axes = _axes_of_one_row(site, position, known)
        if known is None or not axes:
            continue
        sizes = [2 if axis in axes else size for axis, size in enumerate(known.type.shape or ())]
        larger = [*given[:position], Given(known.type.with_shape(sizes)), *given[position + 1 :]]
        _ask_about(site, position, axes, given, larger)
        for output, axis in follower.alone.repeated(node, walk.imports, given, larger):
            follower.one_row.setdefault((walk.path, node.output[output]), set()).add(axis)


def _axes_of_one_row(site: Site, position: int, known: Given | None) -> Collection[int]:
    """Return the axes along which an input has 1 because weights have."""
    if known is None or known.elements is None:
        return site.follower.one_row.get((site.ctx.walk.path, site.ctx.node.input[position]), ())
    return [axis for axis, size in enumerate(known.type.shape or ()) if size == 1]


def _ask_about(
    site: Site, position: int, axes: Collection[int], given: Sequence[Given | None], larger: Sequence[Given | None]
) -> None:
    wanted, ones = site.wanted, site.wanted.ones
    dims = (dim for known in site.ctx.inputs if known for dim in known.shape or ())
    if not any(isinstance(dim, Dim) and symbols_of(dim) & ones for dim in dims):
        return
    needed = {source for group in site.equal_sizes(given) for source in group}
    for group in site.equal_sizes(larger):
        others = [(given[each.position], each.place) for each in group if each.position != position]
        sizes = [other.type.shape[axis] for other, axis in others if other and other.type.shape]
        moving = (size for size in sizes if isinstance(size, Dim) and symbols_of(size) & ones)
        dim = next((size for size in moving if wanted.before(size) == 1), None)
        if dim is None:
            continue
        # Where a state needs a size, items have one each.
        is_state = symbols_of(dim) <= wanted.batch
        for each in group:
            if each.position == position and each.place in axes and not (is_state and each in needed):
                _ask(site, each, dim)


def _ask(site: Site, source: Source, dim: DimLike) -> None:
    stays = Stays(f"the size {{}} of {site.ctx.node.input[source.position]!r}", _OTHERWISE)
    site.either(site.ctx.input_count + 1, source.place, [Meaning(1), Meaning(dim)], is_value=True, stays=stays)
