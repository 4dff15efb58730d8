"""Reads numbers with which a model computes, and that may be sizes: the width that divides the number of a pixel.

Such a number changes no dimension, so that no later node decides what it means. Where it is the size of a length, or
the last place along it, it is asked. The size of a batch is no such number: `items.py` says what a model makes of that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from splitgraph.conversion.sizes.follow import Rule, Site
from splitgraph.conversion.sizes.needs import InputPlace, Meaning, Stays
from splitgraph.conversion.sizes.readings import read_larger
from splitgraph.dim import Dim, DimLike, symbol, symbols_of
from splitgraph.inference.context import NodeContext
from splitgraph.model.schemas import kinds
from splitgraph.model.value_type import Contents

# Operators that read nothing of a value but its shape, in any format.
READ_SHAPES = kinds.SIZES | {"SequenceLength", "ShapeOf"}
# Numbers of one constant that are asked about, and that are read.
_MOST_NUMBERS, _MOST_READ = 8, 1024
# So many dimensions are tried for a number.
_MOST_ALIKE = 3
# Products, in which a number may be the inverse of a length, as float32 and float16 round it.
_PRODUCTS, _ROUNDING, _ROUNDING_OF_HALVES = ("Mul", "Multiply"), 1e-6, 1e-3
_DIVIDE = "If it follows, divide by what the model computes from the shape of its input, and reshape that model."
# No length has a smaller inverse, or a larger root.
_LEAST_INVERSE, _LARGEST_ROOT = 2**-40, 2**20
# So many sizes that stay are multiplied with a length.
_MOST_FACTORS = 6
# Smaller floats are too common: 2*x - 1; and so are those below a large one that are as large as an inner dimension.
_FEWEST_OF_FLOATS, _LARGE = 3, 32
_INTEGERS, _FLOATS = ("int64", "int32"), ("float32", "float64", "float16")
_COMPUTING = kinds.BROADCASTS & (kinds.BASIC | kinds.DIVIDED | kinds.COMPARED | kinds.ORDERED) - {"Equal"}
# The inputs of an operator that are computed with one by one.
VALUES: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(_COMPUTING, (0, 1)),
    "Clip": (2, 1),
    **dict.fromkeys(("Log", "Pow", "Reciprocal", "Sqrt"), (0,)),
}
# The same of the layers of an IR.
VALUES_OF_LAYERS: Mapping[str, Sequence[int]] = dict.fromkeys(kinds.layers_like(_COMPUTING), (0, 1))


def constant_input(op_type: str, are_constant: Sequence[bool]) -> int | None:
    """Return the input of a node that has the numbers: the only constant one, the largest value of a Clip before the
    smallest one. are_constant: which inputs are. None where nothing is computed with a constant.
    """
    values = VALUES.get(op_type) or VALUES_OF_LAYERS.get(op_type, ())
    places = [each for each in values if each < len(are_constant) and are_constant[each]]
    if not places or (op_type != "Clip" and (len(places) > 1 or len(are_constant) > 2)):
        return None
    return places[0]


def read_values(site: Site) -> None:
    """Read the numbers with which a node computes: each may be a length of this old size, or its last place."""
    ctx = site.ctx
    known = [_few_elements(ctx, each) for each in range(ctx.input_count)]
    position = constant_input(ctx.node.op_type, [_are_numbers(each) for each in known])
    numbers = None if position is None else known[position]
    # The exponent of a Pow says nothing of its base.
    others = known[:1] if position else () if ctx.node.op_type == "Pow" else known[1:2]
    if position is None or numbers is None or any(map(_is_of_sizes, others)):
        return
    if _is_said_before(site, ctx.node.input[position]):
        return
    dtype = ctx.input(position).dtype
    if dtype not in (*_INTEGERS, *_FLOATS) or _counts_steps(site, numbers) or not _are_values(site, numbers):
        return
    for entry, number in enumerate(numbers.items):
        lengths = [*_lengths(site, number, is_float=dtype in _FLOATS)]
        read = site.decided(position, entry)
        if read is None and lengths:
            read = site.either(position, entry, [Meaning(int(number)), *lengths], is_value=True)  # type: ignore[arg-type]
        if isinstance(read, Dim):
            site.compute_with(position, entry, read)
        if read is None and not lengths and isinstance(number, float):
            _read_function(site, position, entry, number, _ROUNDING_OF_HALVES if dtype == "float16" else _ROUNDING)


def _is_said_before(site: Site, name: str) -> bool:
    """Return True for a number of which something before says what it means: a node that reads a shape, or one that
    computes it of a number that is asked about.
    """
    follower, waiting, seen = site.follower, [name], set[str]()
    asked = (key[0] for key in follower.seen.alternatives)
    answered = {place[:2] for place in (*asked, *follower.decided.entries) if isinstance(place, InputPlace)}
    while waiting:
        name = waiting.pop()
        maker = None if name in seen else follower.seen.makers.get(name)
        seen.add(name)
        if maker is None:
            continue
        node = maker.node
        if node.op_type in READ_SHAPES or (node.op_type in VALUES and (maker.walk.path, maker.index) in answered):
            return True
        waiting += node.input
    return False


def _read_function(site: Site, position: int, entry: int, number: float, rounding: float) -> None:
    """A product with 1/126 is a division by what may be a length, as OpenVINO writes it; 2.6457513 may be the root of
    one. Such a number can only stay.
    """
    if not _LEAST_INVERSE < number < _LARGEST_ROOT:
        return
    forms = [("1/({})", 1 / number)] if site.ctx.node.op_type in _PRODUCTS else []
    for form, value in (*forms, ("sqrt({})", number**2), ("1/sqrt({})", number**-2)):
        # The root of what stays explains a number as well: scores are divided by that of the size of a head.
        if "sqrt" in form and (round(value) == round(value**0.5) ** 2 or _has_size(site, round(value))):
            continue
        is_near = round(value) >= _FEWEST_OF_FLOATS and abs(value / round(value) - 1) <= rounding
        lengths = [*_lengths(site, round(value), is_float=True)] if is_near else []
        if lengths:
            meanings = [Meaning(round(value)), *lengths]
            site.either(position, entry, meanings, is_value=True, stays=Stays(form, _DIVIDE))
            return


def _has_size(site: Site, size: int) -> bool:
    """Return True if a value so far has a dimension of this size that stays."""
    return any(size in (known.shape or ()) for known in site.ctx.walk.types.values())


def _few_elements(ctx: NodeContext, position: int) -> Contents | None:
    """Return the elements of an input, if it has few."""
    shape = ctx.input(position).shape if ctx.has_input(position) else None
    sizes = [size for size in shape or () if isinstance(size, int)]
    is_small = shape is not None and len(sizes) == len(shape) and prod(sizes) <= _MOST_READ
    return ctx.contents(position, needed=True) if is_small else None


def _is_of_sizes(known: Contents | None) -> bool:
    """Return True for what is known without a run: it says a size already, or nothing of one."""
    return known is not None and any(each is not None for each in known.items)


def _are_numbers(known: Contents | None) -> bool:
    return known is not None and all(isinstance(each, (int, float)) for each in known.items)


def _are_values(site: Site, numbers: Contents) -> bool:
    """Return False for several numbers that are weights: of these, some may be as large as a size by chance."""
    several = numbers.items if len(numbers.items) > 1 else ()
    if len(several) > _MOST_NUMBERS or several == tuple(range(len(several))):
        return not several
    dims = (dim for shape in site.wanted.shapes.values() for dim in shape)
    sizes = {site.wanted.before(dim) for dim in dims if dim is not None}
    large = [each for each in several if isinstance(each, float) and each > 1]
    # The last places of all axes are as good: a grid is divided by W - 1 and H - 1.
    return any(all(each + more in sizes for each in large) for more in (0, 1))


def _lengths(site: Site, number: object, *, is_float: bool) -> Iterator[Meaning]:
    """Yield the lengths that a number may be. A small float is compared with the dimensions of inputs alone: strides,
    roots and the like are often as large as some inner one.
    """
    wanted = site.wanted
    least = _FEWEST_OF_FLOATS if is_float else 2
    if not isinstance(number, (int, float)) or not math.isfinite(number) or number != int(number) or number < least:
        return
    own = [symbol(name) for name in wanted.old if name not in wanted.batch]
    dims: list[DimLike] = [*own, *_areas(site, own)]
    if not is_float or number >= _LARGE:
        dims += [dim for dim in site.follower.decided.met if symbols_of(dim).isdisjoint(wanted.batch)]
    if number + 1 >= _LARGE:
        # The variance of an image divides by H*W - 1, whether H changes or not.
        dims += _beside(site, own)
    found = [dim for dim in dims if wanted.before(dim) == number]
    found += [dim - 1 for dim in dims if wanted.before(dim) == number + 1]
    found += _multiples(site, own, int(number))
    yield from map(Meaning, sorted(dict.fromkeys(found), key=lambda dim: len(str(dim)))[:_MOST_ALIKE])


def _areas(site: Site, own: Sequence[Dim]) -> Iterator[DimLike]:
    """Yield the products of two lengths; of one with itself only if an input has it along two axes."""
    for one, other in itertools.combinations_with_replacement(own, 2):
        if one != other or any([*shape].count(one) > 1 for shape in site.wanted.shapes.values()):
            yield one * other


def _beside(site: Site, own: Sequence[Dim]) -> Iterator[DimLike]:
    """Yield the products of lengths with a size that stays of the same input, such as the 6 of an image of 6*W."""
    for shape in site.wanted.shapes.values():
        fixed = {size for size in shape if isinstance(size, int) and size > 1}
        yield from (size * one for one in own if one in shape for size in sorted(fixed))


def _multiples(site: Site, own: Sequence[Dim], number: int) -> Iterator[DimLike]:
    """Yield the products of lengths with sizes that stay, such as 3*H*W of an image: by so many, a mean divides."""
    known = [*site.wanted.shapes.values(), *(each.shape or () for each in site.ctx.inputs if each is not None)]
    counts = set[int]()
    for shape in known:
        fixed = [size for size in shape if isinstance(size, int) and size > 1][:_MOST_FACTORS]
        counts.update(prod(part) for count in range(1, len(fixed) + 1) for part in itertools.combinations(fixed, count))
    several = [dim for dim in own if site.wanted.before(dim) != 1] if number >= _LARGE else []
    for dim in (*several, *_areas(site, several)):
        times = next((count for count in sorted(counts) if count * site.wanted.before(dim) == number), 0)
        if times:
            yield times * dim


def _counts_steps(site: Site, numbers: Contents) -> bool:
    """Refuse numbers that count in steps of a length, such as where the items of a list of all rows begin."""
    step = numbers.items[1] if len(numbers.items) > 2 else None
    if not isinstance(step, int) or step < 2 or numbers.items != tuple(range(0, len(numbers.items) * step, step)):
        return False
    length = next((each.value for each in _lengths(site, step, is_float=False)), None)
    if length is not None:
        site.block(f"computes with 0, {step}, {2 * step} and so on, where {step} can be {length}")
    return length is not None


def read_larger_or_values(site: Site) -> None:
    read_larger(site)
    read_values(site)


RULES: Mapping[tuple[str, str], Rule] = {
    **{("", name): read_values for name in VALUES},
    ("", "Max"): read_larger_or_values,
}
