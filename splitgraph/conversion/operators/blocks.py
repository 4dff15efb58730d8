"""DepthToSpace and Col2Im: operators that rearrange blocks of images; SpaceToDepth does not change."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.formula import Formula, Term
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.shape_nodes import FLOATS, static_shape

# The types that ReduceSum takes at all opsets.
_SUMMED = ("int32", "int64", "uint32", "uint64", *FLOATS, "bfloat16")

unchanged("SpaceToDepth", 13, 28)

# DepthToSpace -------------------------------------------------------------------------------------------------------

unchanged("DepthToSpace", 11, 13, 28)


@downward("DepthToSpace", 11)
def reorder_channels_of_crd(node: NodeAtBoundary) -> None:
    """Reorders the channels of mode=CRD. Below 11 there is no mode: the position in the block comes first, as in
    mode=DCR; in mode=CRD the channel comes first.
    """
    node.require_types()
    if node.known_value_or_default("mode") == "CRD":
        formula = Formula(node)
        places = node.known_value("blocksize") ** 2
        count = formula.sizes(node.inputs[0], 4)[1]
        channels = formula.shaped(formula.counting(count), [count // places, places])
        order = formula.transposed(channels, [1, 0]).reshape(-1)
        data = formula.held(node.inputs[0], node.input_type(0).dtype or "")
        node.inputs[0] = formula.gather(data, order, 1).name
    node.drop("mode", why=f"it does not exist {node.side}")


# Col2Im -------------------------------------------------------------------------------------------------------------


@downward("Col2Im", 18)
def add_up_blocks(node: NodeAtBoundary) -> None:
    """Sums, axis by axis, the elements of all blocks that overlap at each element of the image. For each position in a
    block at most one block does.
    """
    dtype = node.known_dtype(0)
    lengths = static_shape(node, node.inputs[1]) or static_shape(node, node.inputs[2])
    if dtype not in _SUMMED or lengths is None:
        raise Inexact(f"sums of {dtype} do not exist" if lengths else "how many axes the image has is unknown")
    formula, axes = Formula(node), lengths[0]
    if any(len(node.known_value(name, ones)) != len(ones) for name, ones in _defaults(axes).items()):
        raise Inexact(f"its attributes are not for {axes} axes")
    image, block = (formula.given(name, "int64") for name in node.inputs[1:])
    sizes, spans = ([formula.element(each, axis) for axis in range(axes)] for each in (image, block))
    counts = [_block_count(node, axis, size, span) for axis, (size, span) in enumerate(zip(sizes, spans, strict=True))]
    channels = formula.sizes(node.inputs[0], 3)[1] // formula.product(spans)
    data = formula.held(node.inputs[0], dtype).cast("float32" if dtype in ("float16", "bfloat16") else dtype)
    batch = formula.number(0)
    data = formula.shaped(data, [batch, channels, *spans, *counts])
    pairs = [place for axis in range(axes) for place in (2 + axis, 2 + axes + axis)]
    merged = [span * count for span, count in zip(spans, counts, strict=True)]
    data = formula.shaped(formula.transposed(data, [0, 1, *pairs]), [batch, channels, *merged])
    for axis, (size, span, count) in enumerate(zip(sizes, spans, counts, strict=True)):
        index, exists = _sources(node, axis, formula, size, span, count)
        found = formula.gather(data, index, 2 + axis)
        exists = exists.reshape(0, 0, *[1] * (axes - 1 - axis))
        found = formula.where(exists, found, formula.number(0, data.dtype))
        data = formula.total(found, [2 + axis], "added_up")
    formula.give(data.cast(dtype))


def _defaults(axes: int) -> dict[str, list[int]]:
    """Gives the values of attributes that the node omits."""
    return {"strides": [1] * axes, "dilations": [1] * axes, "pads": [0] * 2 * axes}


def _block_count(node: NodeAtBoundary, axis: int, size: Term, span: Term) -> Term:
    """Computes the number of blocks along an axis."""
    stride, dilation, begin, end = _along(node, axis)
    return (size + (begin + end - 1) - (span - 1) * dilation) // stride + 1


def _along(node: NodeAtBoundary, axis: int) -> tuple[int, int, int, int]:
    """Gives the stride, the dilation, and the padding at the beginning and the end of one axis."""
    pads = node.known_value("pads")
    begin, end = (pads[axis], pads[axis + len(pads) // 2]) if pads else (0, 0)
    stride, dilation = (node.known_value(name, None) for name in ("strides", "dilations"))
    return stride[axis] if stride else 1, dilation[axis] if dilation else 1, begin, end


def _sources(
    node: NodeAtBoundary, axis: int, formula: Formula, size: Term, span: Term, count: Term
) -> tuple[Term, Term]:
    """Computes, for each position in a block and each element of the image along an axis, the index of the element that
    lies there among those of all blocks, and whether there is one: both [span, size].
    """
    stride, dilation, begin, _ = _along(node, axis)
    place = formula.counting(span).reshape(0, 1)
    start = formula.counting(size).reshape(1, -1) + begin - place * dilation
    which = start.at_least(0) // stride
    exists = (which * stride).equals(start) & (which < count)
    return place * count + which.at_most(count - 1), exists
