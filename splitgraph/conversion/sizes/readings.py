"""Reads numbers that say a size, or a place along a dimension that changes: each of them follows, or stays.

The first reading of a number is that it stays, so that nothing changes unless it is in the way (`search.py`). A place
in the second half may count from the end; a number that is an old size may be that dimension.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from math import prod

from splitgraph.conversion.sizes.alike import ask_about_axis, ask_about_result
from splitgraph.conversion.sizes.digits import is_one_factor
from splitgraph.conversion.sizes.follow import Site
from splitgraph.conversion.sizes.needs import Meaning
from splitgraph.dim import Dim, DimLike, product, symbols_of
from splitgraph.inference.alone import Source
from splitgraph.model.scopes import MAIN

# The end of a slice that takes everything that is left, forwards and backwards.
TO_THE_END, TO_THE_START = 2**63 - 1, 1 - 2**63
# If a node takes more elements by number in the second half of a dimension, it is refused: that many questions would
# help nobody.
_MOST_PLACES = 8
# If the lengths of all parts have more meanings together, they are not tried.
_MOST_WAYS = 64
# A slice of equal parts can cut a dimension into so many.
_PARTS = (2, 3, 4)


def read_sizes(site: Site, position: int, entries: Iterable[int] | None = None) -> None:
    """Read the sizes that an input says: each may be a dimension of this old size. entries: which; None for all."""
    sizes = site.items(position)
    if sizes is None:
        return
    read = list(sizes)
    for entry in range(len(sizes)) if entries is None else entries:
        size = sizes[entry]
        if isinstance(size, int):
            read[entry] = site.either(position, entry, site.alike(size))
    site.restate_numbers(position, read)


def read_count(site: Site, dim: DimLike) -> None:
    """Read how many elements along a dimension are taken: as a size, or half of them."""
    sizes, old = site.items(1), site.wanted.before(dim)
    if sizes is not None and len(sizes) == 1 and isinstance(sizes[0], int) and 1 < 2 * sizes[0] == old:
        site.restate_numbers(1, [site.either(1, 0, [*site.alike(sizes[0]), Meaning(dim // 2)])])
    else:
        read_sizes(site, 1)


def read_output(site: Site) -> None:
    """Read a constant that is an output of the model: its elements may be sizes, or its axes may have them."""
    if site.ctx.walk.path == MAIN and site.ctx.node.output[0] in site.wanted.outputs:
        read_sizes(site, 0)
        ask_about_result(site)


def read_limit(site: Site) -> None:
    """Read the limit of a Range: so many steps from its start as a dimension has."""
    start, limit, step = (site.numbers(position) for position in range(3))
    if not start or not limit or not step or not step[0] or any(len(each) > 1 for each in (start, limit, step)):
        return
    steps, rest = divmod(limit[0] - start[0], step[0])
    counted = site.alike(steps)[1:] if rest == 0 else []
    meanings = [Meaning(start[0] + each.value * step[0]) for each in counted]
    site.restate_numbers(1, [site.either(1, 0, [Meaning(limit[0]), *meanings, *site.alike(limit[0])])])


def read_larger(site: Site) -> None:
    """Read sizes of which the larger is taken, beside those of a value. The value's own old size becomes 1, so that its
    new size is taken.
    """
    for position, other in ((0, 1), (1, 0)):
        sizes, numbers = site.items(other), site.numbers(position)
        if sizes is None or numbers is None or len(sizes) != len(numbers) or site.ctx.input_count != 2:
            continue
        is_own = [
            site.wanted.changes(size) and site.wanted.before(size) == numbers[at] for at, size in enumerate(sizes)
        ]
        site.restate_numbers(position, [1 if own else number for own, number in zip(is_own, numbers, strict=True)])


# Slices ---------------------------------------------------------------------------------------------------------------


def read_slice(
    site: Site, dim: DimLike, written: tuple[int, int, int], entry: int, ends: int
) -> tuple[DimLike, DimLike]:
    """Return the start and the end of a slice along a dimension, as they are once it has changed.

    written: start, end and step as the model has them. entry: their number in the lists of starts and ends. ends: how
    many ends there are. A user counts the starts behind the ends.
    """
    start, end, step = written
    old, position = site.wanted.before(dim), site.follower.operators.saying[site.ctx.node.op_type]
    if not site.wanted.changes(dim) or not isinstance(old, int):
        return start, end
    _count_decided_from_end(site, dim, position, entry)
    if site.decided(position, entry) is not None:
        return start, end
    if (start, end, step) == (0, old, 1) and old == 1 and symbols_of(dim) & site.wanted.ones:
        # The slice takes the first element, or all elements.
        return start, site.either(position, entry, [Meaning(1), Meaning(TO_THE_END, dim)], entry)
    if site.leaves_items_apart(dim):
        # All items, or the numbers stay: any other part of a batch mixes its items.
        return start, TO_THE_END if (end, step) == (old, 1) else end
    at_start, at_end = (position - 1, entry, ends + entry), (position, entry, entry)
    if step < 0:
        is_last = old > 1 and start == old - 1
        return -1 if is_last else _place(site, dim, start, at_start), TO_THE_START if end < -old else end
    length = min(end, old) - start
    if start == -old:
        first = site.either(*at_start[:2], [Meaning(start), Meaning(0)], at_start[2])
    else:
        first = _place(site, dim, start, at_start, length)
    if end < old:
        return first, _place(site, dim, end, at_end, length, is_end=True)
    # An end behind the old size goes to the end of any size if the user says what the start is.
    is_start_decided = site.decided(position - 1, entry) is not None
    return first, TO_THE_END if end == old or is_start_decided else end


def _count_decided_from_end(site: Site, dim: DimLike, position: int, entry: int) -> None:
    """Write the bounds that are decided as numbers that count from the end, if they are such places."""
    for each in (position - 1, position):
        decided = site.decided(each, entry)
        if decided is not None:
            site.decide(each, entry, _placed(decided, dim, is_end=each == position))


def _place(
    site: Site, dim: DimLike, number: int, at: tuple[int, int, int], length: int = 0, *, is_end: bool = False
) -> DimLike:
    """Return what a start or an end of a slice means along a dimension that changes.

    at: the input, its entry, and the number of the entry for the user. length: of the slice.
    """
    old = site.wanted.before(dim)
    if isinstance(old, int) and -old < number < 0:
        # The last ones, as many as another dimension has.
        return site.either(
            *at[:2], [Meaning(number), *(Meaning(-each.value) for each in site.alike(-number)[1:])], at[2]
        )
    if not isinstance(old, int) or not 0 < number <= old:
        return number
    meanings = [Meaning(number)]
    if 2 * number >= old:
        meanings.append(Meaning(number - old, dim - (old - number)))
    meanings += [Meaning(_placed(each.value, dim, is_end=is_end), each.value) for each in site.alike(number)[1:]]
    likely = len(meanings)
    meanings += _parts(dim, number, old, length)
    return site.either(*at[:2], meanings, at[2], len(meanings) if abs(2 * number - old) < 2 else likely)


def _parts(dim: DimLike, number: int, old: int, length: int) -> list[Meaning]:
    """Return the meanings of a number as a part of a dimension, if the slice takes an equal part or a rounded half."""
    fitting = (parts for parts in _PARTS if old == parts * length and length > 1 and number % length == 0)
    meanings = [Meaning((number // length * dim) // parts) for parts in fitting]
    is_half = min(length, old - length) == old // 2 > 1
    return meanings + [Meaning((dim + up) // 2) for up in (0, 1) if is_half and (old + up) // 2 == number]


def _placed(place: DimLike, dim: DimLike, *, is_end: bool = False) -> DimLike:
    """Return a place as a number from the end of the dimension, if it is one: -2 for T - 2, of which inference could
    prove nothing.
    """
    back = place - dim if isinstance(place, Dim) else place
    if isinstance(place, Dim) and isinstance(back, int) and (back < 0 or (is_end and back == 0)):
        return back or TO_THE_END
    return place


# Elements by their numbers --------------------------------------------------------------------------------------------


def read_indices(site: Site, axis: int) -> None:
    """Read the indices of a Gather. As many as there are elements count them, of items in turn; one in the second half
    may count from the end.
    """
    dim, indices, own = site.changing_dim(axis), site.numbers(1), site.dims(1)
    old = None if dim is None else site.wanted.before(dim)
    if dim is None or own is None or not isinstance(old, int) or _counts_digits(site, axis, dim, own):
        return
    if site.leaves_items_apart(dim):
        if own != (old,) or indices != tuple(range(old)):
            return
        if old > 1:
            site.need(1, 0, dim)
        elif symbols_of(dim) <= site.wanted.unquestioned:
            # Along a length that was 1, the index 0 is the first element. Along a batch, it counts the items.
            site.count(1, dim)
        return
    if old < 2 and not symbols_of(dim) & site.wanted.ones:
        return
    if old > 1 and old in own:
        _read_as_many(site, dim, own.index(old), indices)
        return
    late = [entry for entry, index in enumerate(indices or ()) if _is_late(index, old)]
    if indices is None or len(late) > _MOST_PLACES:
        if late:
            site.block(f"takes {len(late)} elements in the second half of {dim} by their numbers")
        return
    read: list[DimLike] = list(indices)
    for entry in late:
        index, decided = indices[entry], site.decided(1, entry)
        if decided is not None:
            site.decide(1, entry, _placed(decided, dim))
        read[entry] = site.either(1, entry, [Meaning(index), Meaning(index - old, dim - (old - index))])
    site.restate_numbers(1, read)


def _read_as_many(site: Site, dim: Dim, axis: int, indices: Sequence[int] | None) -> None:
    """Read as many indices as there are elements: they count these, unless they are one element many times. axis: of
    the indices.
    """
    alike = {*(indices or ())}
    if len(alike) != 1:
        site.need(1, axis, dim)
    elif _is_late(min(alike), int(str(site.wanted.before(dim)))):
        site.block(f"takes one element in the second half of {dim} many times, by its number")
    else:
        ask_about_axis(site, Source(1, axis))


def _counts_digits(site: Site, axis: int, dim: Dim, own: Sequence[DimLike]) -> bool:
    """Let indices into merged dimensions, as `b*T + t`, count each of these: those of items, and all of them if there
    are as many indices as elements. Return False for any other indices.
    """
    order, wanted = site.orders(0, site.dims(0) or (), ()).get(axis % len(site.dims(0) or ())), site.wanted
    if order is None and _is_merged(site, dim):
        site.computes_over(
            dim, f"takes elements along {dim} by numbers of which nothing says that they count the items"
        )
    digits = [digit.dim for digit in order or ()]
    old = wanted.before(dim)
    counts_all = product([wanted.before(size) for size in own]) == old
    counted = [
        each
        for each in digits
        if wanted.changes(each) and (counts_all or not symbols_of(each).isdisjoint(wanted.items))
    ]
    if len(digits) < 2 or not counted:
        return False
    if any(each not in own for each in counted) or site.numbers(1) is None:
        # What has the size may lack the count: what an ArgMax finds in each item.
        site.need(1, own.index(old) if old in own else -1, dim, digits=digits)
    return True


def fit_merged(site: Site, axis: int) -> bool:
    """Do as `_counts_digits` for a node that has other indices besides. Return False if the dimension is not one that
    was merged of items and others.
    """
    dim, own = site.changing_dim(axis), site.dims(1)
    return dim is not None and own is not None and _is_merged(site, dim) and _counts_digits(site, axis, dim, own)


def fit_merged_tuples(site: Site) -> bool:
    """Do as `fit_merged` for tuples of indices along the first axes. A tuple of several entries mixes the items."""
    dims, depth = site.dims(0) or (), (site.dims(1) or (0,))[-1]
    merged = [axis for axis in range(depth if isinstance(depth, int) else 0) if _is_merged(site, dims[axis])]
    if merged and depth == 1:
        return fit_merged(site, 0)
    for axis in merged:
        site.computes_over(dims[axis], f"takes elements along {dims[axis]} by their numbers")
    return bool(merged)


def _is_merged(site: Site, dim: DimLike) -> bool:
    """Return True for a product of items and others."""
    return not is_one_factor(dim) and not symbols_of(dim).isdisjoint(site.wanted.items)


def _is_late(index: object, old: int) -> bool:
    """Return True for the number of an element in the second half of a dimension: it may count from the end."""
    return isinstance(index, int) and (index > 0 or (index == 0 and old == 1)) and 2 * index >= old - 1


def fit_places(site: Site, axis: int, position: int = 1) -> None:
    """Let indices, one for each element, count the elements if there are as many. Others must be in the first half."""
    dim, own = site.changing_dim(axis), site.dims(position)
    # Indices that are repeated for a batch are those that the model has.
    indices = site.ctx.contents(position) or site.ctx.walk.contents_of(site.ctx.node.input[position])
    old = None if dim is None else site.wanted.before(dim)
    if dim is None or not own or not isinstance(old, int) or old < 2 or site.leaves_items_apart(dim):
        return
    if own[axis] == old:
        site.need(position, axis % len(own), dim)
    elif own[axis] == dim or indices is None:
        # They count all of it already.
        return
    elif any(_is_late(index, old) for index in indices.items):
        site.block(f"takes elements in the second half of {dim} by their numbers")


def fit_places_of_tuples(site: Site, entry: int, dim: DimLike) -> None:
    """Keep tuples that pick elements along a length. Those elements must be in its first half. entry: of each tuple."""
    known = site.ctx.contents(1, needed=True)
    old, own = site.wanted.before(dim), site.dims(1) or ()
    if not isinstance(old, int) or old < 2 or known is None:
        return
    if old in own[:-1]:
        site.need(1, own.index(old), dim, entry)
    elif any(_is_late(index, old) for index in known.items[entry :: int(str(own[-1]))]):
        site.block(f"takes elements in the second half of {dim} by their numbers")


def read_depth(site: Site) -> None:
    """Read the number of classes of a OneHot. Along a dimension that changes, the classes are places, so that as many
    as there are count them.
    """
    read_sizes(site, 1)
    depth, own, known = (site.items(1) or (0,))[0], site.dims(0), site.ctx.contents(0)
    old = site.wanted.before(depth)
    if not site.wanted.changes(depth) or not isinstance(old, int) or own is None or known is None:
        return
    if old in own:
        site.need(0, own.index(old), depth)
    elif any(_is_late(index, old) for index in known.items):
        site.block(f"takes classes in the second half of {depth} by their numbers")


# Lengths and sides ----------------------------------------------------------------------------------------------------


def read_lengths(site: Site, position: int, lengths: Sequence[int], dim: Dim) -> None:
    """Read the lengths of the parts of a dimension: equal ones stay equal, of others one takes what is left, or they
    are dimensions that make up the whole.
    """
    old, decided = site.wanted.before(dim), site.follower.decided.entries.get(site.place(position), {})
    if not isinstance(old, int) or not lengths:
        return
    count, rest = len(lengths), old - sum(length for length in lengths if length != -1)
    if -1 not in lengths:
        ways = [*dict.fromkeys(_lengths(site, lengths, dim, old))]
        fitting = [way for way in ways if all(way[at] == said for at, said in decided.items())]
        if decided:
            site.restate_numbers(position, (fitting or [tuple(lengths)])[0])
            return
        entries = [next(at for at, length in enumerate(way) if isinstance(length, Dim)) for way in ways]
        meanings = [Meaning(at, ways[at][entry], entry) for at, entry in enumerate(entries)]
        taken = site.either(position, 0, meanings, likely=1 if len(set(lengths)) == 1 else 0)
        site.restate_numbers(position, ways[int(str(taken))])
    elif not decided and {rest} == {length for length in lengths if length != -1}:
        entry = lengths.index(-1)
        taken = site.either(position, entry, [Meaning(-1), Meaning(dim // count)])
        site.restate_numbers(position, [taken if taken != -1 else length for length in lengths])


def _lengths(site: Site, lengths: Sequence[int], dim: Dim, old: int) -> Iterator[tuple[DimLike, ...]]:
    """Yield what the lengths of all parts of a dimension can be, the likeliest first."""
    if len(set(lengths)) == 1:
        yield (dim // len(lengths),) * len(lengths)
    for entry, length in enumerate(lengths):
        yield (*lengths[:entry], dim - (old - length), *lengths[entry + 1 :])
    each = [[meaning.value for meaning in site.alike(length)] for length in lengths]
    if prod(map(len, each)) <= _MOST_WAYS:
        for way in itertools.product(*each):
            if any(isinstance(length, Dim) for length in way) and sum(way[1:], way[0]) == dim:
                yield way


def read_lengths_of_sequences(site: Site, axis: int, position: int = 1) -> None:
    """Read the lengths of sequences, one for each item: each can be all of the steps. axis: of the steps."""
    dim = site.changing_dim(axis)
    if dim is None or not site.ctx.has_input(position):
        return
    lengths = site.ctx.contents(position)
    old, known = site.wanted.before(dim), lengths or site.ctx.walk.contents_of(site.ctx.node.input[position])
    if known is None or old not in known.dims:
        return
    if lengths is None:
        site.block(f"its lengths are repeated, and {old} of them can be {dim}; make them an input of the model")
    else:
        read_sizes(site, position, [entry for entry, size in enumerate(lengths.dims) if size == old])


def read_sides(site: Site, position: int, axes: Sequence[int] | None) -> None:
    """Read the sizes of a Resize: the data's own stay so, another one is fixed, or grows with it. axes: None for
    all.
    """
    dims, sizes = site.dims(0), site.items(position)
    if dims is None or not sizes:
        return
    read: list[DimLike] = list(sizes)
    for entry, (axis, size) in enumerate(zip(axes or range(len(dims)), sizes, strict=False)):
        dim, old = dims[axis], site.wanted.before(dims[axis])
        if not site.wanted.changes(dim) or isinstance(size, Dim):
            continue
        if size == old:
            read[entry] = dim
        elif isinstance(old, int) and old:
            grown = dim * (size // old) if size % old == 0 else (dim * size) // old
            read[entry] = site.either(position, entry, [Meaning(size), Meaning(grown), *site.alike(size)])
    site.restate_numbers(position, read)
