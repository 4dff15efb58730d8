"""Reshape to shapes in which a 0 means a dimension of 0, also below opset 14, where a 0 copies the dimension of the
data at the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from splitgraph.conversion.notation.node_at_boundary import NodeAtBoundary
from splitgraph.dim import Dim, DimLike, Facts, evaluate, product
from splitgraph.model.value_type import Shape

# Operator, inputs and attributes.
_Written = tuple[str, list[str], dict[str, object]]
# All that is known of every dimension: it is not negative.
_ANY = Facts()


def reshape_by_copying(node: NodeAtBoundary) -> _Written | None:
    """Return the operator, inputs and attributes of a Reshape that copies dimensions and gives the same as the node,
    for which a 0 is a dimension of 0. None where it might copy another dimension than 0.
    """
    lengths, dims = _lengths(node), node.input_type(0).shape
    if lengths is None:
        return None
    if copies_zeros(lengths, dims):
        return "Reshape", node.inputs, {}
    if dims is None:
        return None
    written = _with_the_rest(node, lengths, dims)
    if written is not None:
        return written
    return _line_up(node, lengths, dims) if len(lengths) > len(dims) else _fold(node, lengths, dims)


def _lengths(node: NodeAtBoundary) -> Sequence[DimLike | None] | None:
    """Return the lengths as far as they are known; None where their number is unknown.

    Inference follows these lengths. The dimensions of the result are less certain: inference computes one unknown
    dimension from the others, which a 0 among them would leave open. For several unknown lengths the declaration tells
    which are not 0.
    """
    known = node.integers(1)
    if known is not None:
        return known
    contents = node.values.contents(node.inputs[1])
    dims = node.output_type().shape
    lengths = contents.dims if contents is not None else None if dims is None else (None,) * len(dims)
    if lengths is None or dims is None or len(dims) != len(lengths) or lengths.count(None) == 1 < len(lengths):
        return lengths
    pairs = zip(lengths, dims, strict=True)
    return [dim if length is None and isinstance(dim, int) else length for length, dim in pairs]


def copies_zeros(lengths: Sequence[DimLike | None], dims: Shape | None) -> bool:
    """Return True when no length is 0, except where the dimension of the data at its place is 0 too."""
    return all(_copies_zero(place, lengths, dims) for place in range(len(lengths)))


def _copies_zero(place: int, lengths: Sequence[DimLike | None], dims: Shape | None) -> bool:
    """Return True when a length is not 0, or the dimension of the data at its place is 0 too."""
    length = lengths[place]
    if length is not None and _ANY.prove_ne(length, 0):
        return True
    if dims is None or place >= len(dims):
        return False
    dim = dims[place]
    if dim == 0 or _is_zero_with(dim, length):
        return True
    # A length of 0 needs data without elements: a dimension of 0 at this place. Or another dimension is 0 and is copied
    # beside a -1, which is valid on neither side.
    others = [axis for axis, dim in enumerate(dims) if axis != place and (dim is None or not _ANY.prove_ge(dim, 1))]
    return not others or (-1 in lengths and all(_is_copied(axis, lengths, dims) for axis in others))


def _is_copied(place: int, lengths: Sequence[DimLike | None], dims: Shape) -> bool:
    """Return True when a dimension of 0 is copied."""
    return place < len(lengths) and _is_zero_with(lengths[place], dims[place])


def _with_the_rest(node: NodeAtBoundary, lengths: Sequence[DimLike | None], dims: Shape) -> _Written | None:
    """Write -1 for the one length that is not a number. The rest is right also where it is 0."""
    computed = [length for length in lengths if not isinstance(length, int) or length <= 0]
    known = [dim for dim in dims if dim is not None]
    if len(computed) != 1 or not isinstance(computed[0], Dim) or len(known) < len(dims):
        return None
    # Lengths that contradict the data must fail; with a -1 they would not.
    if product(length for length in lengths if length is not None) != product(known):
        return None
    rest = node.constant([length if isinstance(length, int) else -1 for length in lengths], "lengths")
    return "Reshape", [node.inputs[0], rest], {}


def _line_up(node: NodeAtBoundary, lengths: Sequence[DimLike | None], dims: Shape) -> _Written | None:
    """Insert dimensions of 1 into the data, so that dimensions that may be 0 stand where they are copied."""
    for axes in combinations(range(len(lengths)), len(lengths) - len(dims)):
        if copies_zeros(lengths, _with_ones(dims, axes)):
            data = node.write("Unsqueeze", [node.inputs[0], node.constant(axes, "axes")], "lined_up")
            return "Reshape", [data, node.inputs[1]], {}
    return None


def _fold(node: NodeAtBoundary, lengths: Sequence[DimLike | None], dims: Shape) -> _Written | None:
    """Insert lengths of 1, so that dimensions that may be 0 stand where they are copied, and remove these 1s again."""
    for axes in combinations(range(len(dims)), len(dims) - len(lengths)):
        pairs = list(zip(_with_ones(lengths, axes), dims, strict=True))
        if all(
            (isinstance(length, int) and length > 0) or (length is not None and length == dim) for length, dim in pairs
        ):
            copied = node.constant([length if isinstance(length, int) else 0 for length, _ in pairs], "lengths")
            folded = node.write("Reshape", [node.inputs[0], copied], "folded")
            return "Squeeze", [folded, node.constant(axes, "axes")], {}
    return None


def _with_ones(dims: Sequence[DimLike | None], axes: Sequence[int]) -> Shape:
    """Insert 1 at the axes."""
    others = iter(dims)
    return tuple(1 if axis in axes else next(others) for axis in range(len(dims) + len(axes)))


def _is_zero_with(dim: DimLike | None, length: DimLike | None) -> bool:
    """Return True when some multiple of the dimension is a multiple of the length: the dimension is then 0 wherever the
    length is 0.
    """
    if dim is None or not isinstance(length, Dim):
        return False
    if dim == length:
        return True
    try:
        # A common factor of all terms also divides the value for which every symbol is 1.
        multiple = evaluate(length, dict.fromkeys(length.symbols, 1)) * dim
    except ArithmeticError:
        return False
    return multiple != 0 and (multiple // length) * length == multiple
