"""Asks about weights that are equal along an axis: nothing in them shows whether the axis follows a length or stays.

- Weights of 1 along a length that was 1: they are the same for each place, or they are a table of one row. The same
  holds for what is computed from them: `[0] < lengths` is the mask of one place, or compares each place with 0.
- Weights that are equal along an axis as large as a length: a ConstantOfShape may have made them of the length before
  it was folded. Where a node needs them to have the length, they get it. Where the axis reaches an output instead, both
  readings are possible: the length, and a number that stays.
- A constant that is an output has all its axes there, whether it is equal along them or not.
- Weights of 1/T by which a sum over a length T is multiplied: the product is a mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from splitgraph.conversion.sizes.follow import Site
from splitgraph.conversion.sizes.needs import Meaning, Repeated, Stays
from splitgraph.conversion.sizes.weights import NotRead, found_along
from splitgraph.dim import Dim, DimLike, symbol, symbols_of
from splitgraph.inference.alone import Given, Source
from splitgraph.model.deferred import np
from splitgraph.model.value_type import Contents

_ROUNDING = 1e-3
_DIVIDE = "If it follows, make a sum of it, and divide by what the model computes from the shape of its input."
_OTHERWISE = "If that is a row of a table, the model has no other rows: export the model with another length."
_NO_OTHERS = "If it follows, the model says nothing of other places: export the model with another length."


def ask_about_weights(site: Site) -> None:
    """Ask about the weights of a node that are alike along an axis."""
    if site.wanted.ones:
        _ask_about_ones(site)
    given, node = site.given(), site.ctx.node
    places = [*_as_large_as_lengths(site, given)]
    if not places:
        return
    tied = {source: group for group in site.equal_sizes(given) for source in group}
    carried = site.follower.alone.carried(node, site.ctx.walk.imports, given)
    for source in places:
        if source in tied:
            _ask_about_mean(site, source, tied[source])
        elif source in carried and _is_alike(site, source):
            ask_about_axis(site, source)


def _as_large_as_lengths(site: Site, given: Sequence[Given | None]) -> Iterator[Source]:
    """Yield the axes of weights that are as large as a length. Lists that say sizes are no weights; what is computed
    of weights is asked about there.
    """
    saying, node = site.follower.operators.saying.get(site.ctx.node.op_type), site.ctx.node
    for position, known in enumerate(given):
        is_constant = (site.ctx.walk.path, node.input[position]) in site.follower.constants
        if known is None or known.elements is None or position == saying or not is_constant:
            continue
        for axis, size in enumerate(known.type.shape or ()):
            if isinstance(size, int) and size > 1 and _lengths(site, size):
                yield Source(position, axis)


def _lengths(site: Site, size: int) -> list[Meaning]:
    """Return the lengths of an old size; a first dimension is one of items."""
    found = site.alike(size)[1:]
    return [each for each in found if not symbols_of(each.value) & site.wanted.unquestioned]


def _sizes_of_a_result(site: Site, size: int) -> list[Meaning]:
    """Return the dimensions of an old size, a batch too: a constant has no items that could be checked one by one."""
    batches = (name for name in sorted(site.wanted.unquestioned) if site.wanted.old.get(name) == size > 1)
    return [*_lengths(site, size), *(Meaning(symbol(name)) for name in batches)]


def _elements(site: Site, position: int) -> Any:
    """Return the elements of weights; None if they are not read."""
    walk, name = site.ctx.walk, site.ctx.node.input[position]
    held = walk.constant_of(name)
    if isinstance(held, Contents):
        return np.array(held.items).reshape(held.shape)
    try:
        return None if held is None else site.follower.weights.elements(walk.path, held)
    except NotRead:
        return None


def _is_alike(site: Site, source: Source) -> bool:
    array = _elements(site, source.position)
    return array is not None and isinstance(found_along(array, source.place), Repeated)


def ask_about_axis(site: Site, source: Source, name: str = "", unless: str = "") -> DimLike | None:
    """An axis that no other input needs is the length, or stays, unless a later node needs it. Return the length, if it
    follows. name: how the weights are called, if not by the input. unless: as in `Stays`.
    """
    key, size = (site.place(site.ctx.input_count + 1), source.place), (site.dims(source.position) or ())[source.place]
    is_needed = source.place in site.follower.decided.expanded.get(site.place(source.position), ())
    if is_needed and not site.follower.choices.get(key) and site.decided(key[0].position, source.place) is None:
        return None
    told = Stays(f"the size {{}} of {name or site.ctx.node.input[source.position]!r}", unless=unless)
    old = int(str(site.wanted.before(size)))
    meanings = [Meaning(old), *(_sizes_of_a_result(site, old) if unless else _lengths(site, old))]
    taken = site.either(site.ctx.input_count + 1, source.place, meanings, stays=told)
    if not isinstance(taken, Dim):
        return None
    site.need(source.position, source.place, taken)
    return taken


def ask_about_result(site: Site) -> None:
    """Ask about the axes of a constant that is an output: no node needs the length there."""
    place, name = site.place(site.ctx.input_count + 1), site.ctx.node.name
    for axis, size in enumerate(site.dims(0) or ()):
        source, old = Source(0, axis), site.wanted.before(size)
        is_said = (
            axis in site.follower.decided.entries.get(place, ()) or site.follower.choices.get((place, axis), 0) > 0
        )
        is_open = isinstance(size, int) and size > 1 and not _was_asked(site, source)
        if isinstance(old, int) and (is_said or (is_open and _sizes_of_a_result(site, old))):
            taken = ask_about_axis(site, source, name, _NO_OTHERS)
            if isinstance(size, Dim) and taken is None:
                site.block(f"{name!r} has {size} along axis {axis}, because a node needs that; it cannot stay")
            elif isinstance(size, Dim) and taken is not None:
                # What makes it may give less: a slice of a table gives no more than there is.
                site.ctx.require(size, "==", taken)


def _was_asked(site: Site, source: Source) -> bool:
    """Return True if a node before has a question about what makes a size of an input, or the user has answered it."""
    follower, waiting = site.follower, [(site, source)]
    while waiting:
        reader, (position, axis, _) = waiting.pop()
        name = reader.ctx.node.input[position]
        made_by = follower.seen.makers.get(name)
        if made_by is None:
            continue
        maker, node, walk = Site(follower, made_by), made_by.node, made_by.walk
        said_by = follower.operators.saying.get(node.op_type)
        made = follower.alone.made(node, walk.imports, maker.given(), [*node.output].index(name), axis, said_by)
        for each in made.sources if made is not None else ():
            place = maker.place(each.position if each.is_element else maker.ctx.input_count + 1)
            if (place, each.place) in follower.seen.alternatives or each.place in follower.decided.entries.get(
                place, ()
            ):
                return True
            if not each.is_element:
                waiting.append((maker, each))
    return False


def _ask_about_mean(site: Site, source: Source, group: Sequence[Source]) -> None:
    """Weights of 1/T along T, over which the node computes, can only stay."""
    dims = [(site.dims(each.position) or ())[each.place] for each in group]
    changing = next((dim for dim in dims if site.wanted.changes(dim)), None)
    if changing is None or (source.position, source.place) not in site.over():
        return
    array, size = _elements(site, source.position), site.wanted.before(changing)
    if array is not None and array.dtype.kind == "f" and np.allclose(array, 1 / int(str(size)), rtol=_ROUNDING):
        meanings = [Meaning(size), Meaning(changing)]
        stays = Stays("1/({})", _DIVIDE)
        site.either(site.ctx.input_count + 1, source.place, meanings, is_value=True, stays=stays)


def _ask_about_ones(site: Site) -> None:
    """Ask about the axes of weights that have to be as large as a length that was 1, if they are larger than 1."""
    walk, node, follower = site.ctx.walk, site.ctx.node, site.follower
    given = site.given()
    for position, known in enumerate(given):
        axes = _axes_of_one_row(site, position, known)
        if known is None or not axes:
            continue
        sizes = [2 if axis in axes else size for axis, size in enumerate(known.type.shape or ())]
        larger = [*given[:position], Given(known.type.with_shape(sizes)), *given[position + 1 :]]
        _ask_about(site, position, axes, given, larger)
        for output, axis in follower.alone.repeated(node, walk.imports, given, larger):
            follower.seen.one_row.setdefault((walk.path, node.output[output]), set()).add(axis)


def _axes_of_one_row(site: Site, position: int, known: Given | None) -> Collection[int]:
    """Return the axes along which an input has 1 because weights have."""
    if known is None or known.elements is None:
        return site.follower.seen.one_row.get((site.ctx.walk.path, site.ctx.node.input[position]), ())
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
        changing = (size for size in sizes if isinstance(size, Dim) and symbols_of(size) & ones)
        dim = next((size for size in changing if wanted.before(size) == 1), None)
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
