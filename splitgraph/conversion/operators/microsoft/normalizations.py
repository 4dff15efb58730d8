"""Normalizations of com.microsoft, and those that onnxruntime writes into ai.onnx at opsets that do not have them.

Kernels compute types of 16 bits in float32, and round once.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.conversion.notation.formula import Formula, Term, wide_float
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.microsoft.activations import swish
from splitgraph.conversion.operators.standard import standard

_BY_LAST_AXIS = -1


def widened(f: Formula, index: int) -> Term:
    """Return an input in the type in which kernels compute: float32 for types of 16 bits."""
    f.node.known_dtype(index)
    data = f.input(index)
    return data.cast(wide_float(data.dtype))


def inverse_root_mean_square(data: Term, epsilon: float, axes: Sequence[int] = (-1,)) -> Term:
    """Return 1 / sqrt(mean of the squares + epsilon) along axes, which stay as dimensions of 1."""
    f = data.formula
    mean = (data * data).reduced("ReduceMean", axes, keepdims=True)
    return f.apply("Reciprocal", (mean + epsilon).sqrt())


def layer_normalized(data: Term, scale: Term, bias: Term | None, epsilon: float, *, statistics: bool) -> list[Term]:
    """Normalize the last axis, and return the mean and the inverse of the deviation if statistics are asked for. Needs
    opset 17.
    """
    terms = [data, scale] if bias is None else [data, scale, bias]
    types = [data.dtype, *(("float32", "float32") if statistics else ())]
    return data.formula.write("LayerNormalization", terms, *types, axis=_BY_LAST_AXIS, epsilon=epsilon)


# The sum of two inputs and a bias, and its normalization --------------------------------------------------------------


def _total(f: Formula, bias: int) -> Term:
    """Return the sum of the input, of what was skipped, and of the bias at an input, if there is one."""
    total = widened(f, 0) + widened(f, 1)
    return total + widened(f, bias) if f.node.uses_input(bias) else total


def _asks_for_statistics(node: NodeAtBoundary) -> bool:
    return node.uses_output(1) or node.uses_output(2)


@standard("SkipLayerNormalization", opset=17, epsilon=1e-12)
def write_skip_layer_normalization(node: NodeAtBoundary) -> None:
    """Write the sum, and its LayerNormalization."""
    f, dtype, epsilon = Formula(node), node.known_dtype(), node.known_value_or_default("epsilon")
    total, bias = _total(f, 4), widened(f, 3) if node.uses_input(3) else None
    statistics = _asks_for_statistics(node)
    result, *more = layer_normalized(total, widened(f, 2), bias, epsilon, statistics=statistics)
    f.give(result.cast(dtype), *(more or (None, None)), total.cast(dtype) if node.uses_output(3) else None)


@standard("SkipSimplifiedLayerNormalization", opset=23, epsilon=1e-12)
def write_skip_simplified_layer_normalization(node: NodeAtBoundary) -> None:
    """Write the sum, and its RMSNormalization. The kernel fills the mean with 0."""
    f, dtype, epsilon = Formula(node), node.known_dtype(), node.known_value_or_default("epsilon")
    total = _total(f, 3)
    result = f.apply("RMSNormalization", total, widened(f, 2), axis=_BY_LAST_AXIS, epsilon=epsilon)
    inverse = inverse_root_mean_square(total, epsilon) if _asks_for_statistics(node) else None
    mean = None if inverse is None or not node.uses_output(1) else inverse * 0.0
    f.give(result.cast(dtype), mean, inverse, total.cast(dtype) if node.uses_output(3) else None)


# Nodes of ai.onnx that it does not have at their opset ----------------------------------------------------------------


@standard("SimplifiedLayerNormalization", domain="", opset=23, axis=-1, epsilon=1e-5, stash_type=1)
def write_simplified_layer_normalization(node: NodeAtBoundary) -> None:
    """Make the node an RMSNormalization; write products where the inverse of the root mean square is asked for, or
    the scale has another type.
    """
    if node.known_dtype() == "float64" or node.known_dtype(1) != node.known_dtype() or node.uses_output(1):
        _write_simplified(node)
        return
    node.rename("RMSNormalization")


def _write_simplified(node: NodeAtBoundary) -> None:
    """Divide by the root mean square. float64 is computed in float64, and its statistics are float32."""
    f, data = Formula(node), widened(Formula(node), 0)
    inverse = inverse_root_mean_square(data, node.known_value_or_default("epsilon"), _axes(node))
    result = (data * inverse).cast(node.known_dtype(1)) * f.input(1)
    f.give(result, inverse.cast("float32"))


@standard("LayerNormalization", domain="", opset=17, below=17, axis=-1, epsilon=1e-5, stash_type=1)
def write_layer_normalization(node: NodeAtBoundary) -> None:
    """Keep the node, whose opset alone does not have it. float64 is computed in float64, and its statistics are
    float32.
    """
    if node.known_dtype() != "float64":
        return
    f, axes = Formula(node), _axes(node)
    data = f.input(0)
    mean = data.reduced("ReduceMean", axes, keepdims=True)
    deviation = data - mean
    inverse = inverse_root_mean_square(deviation, node.known_value_or_default("epsilon"), axes)
    result = deviation * inverse * f.input(1)
    f.give(result + f.input(2) if node.uses_input(2) else result, mean.cast("float32"), inverse.cast("float32"))


def _axes(node: NodeAtBoundary) -> list[int]:
    """Return the axes from `axis` to the last, counted from the last."""
    axis = node.known_value_or_default("axis")
    return list(range(axis if axis < 0 else axis - node.known_rank(), 0))


# Embeddings -----------------------------------------------------------------------------------------------------------


@standard("EmbedLayerNormalization", opset=17, epsilon=1e-12)
def write_embed_layer_normalization(node: NodeAtBoundary) -> None:
    """Write the sum of the embeddings of words, positions and segments, its LayerNormalization, and the number of ones
    in the mask.
    """
    f, dtype = Formula(node), node.known_dtype(2)
    total = _row(f, 2, 0) + _positions(f, 8 if node.uses_input(8) else None)
    if node.uses_input(1):
        total = total + _row(f, 4, 1)
    _give_embeddings(f, total, widened(f, 5), widened(f, 6), dtype)


def _row(f: Formula, table: int, indices: int) -> Term:
    """Take rows of a table. The kernel refuses negative indices."""
    rows = f.input(table, "float32").take(f.input(indices))
    return rows.cast(wide_float(rows.dtype))


def _positions(f: Formula, indices: int | None) -> Term:
    """Return the embeddings of positions: those at an input, or the first ones."""
    if indices is not None:
        return _row(f, 3, indices)
    table = f.input(3)
    return table.sliced(f.number([0]), f.size(0, 1).reshape(1), 0).cast(wide_float(table.dtype))


def _give_embeddings(f: Formula, total: Term, scale: Term, bias: Term, dtype: str) -> None:
    node = f.node
    (result,) = layer_normalized(total, scale, bias, node.known_value_or_default("epsilon"), statistics=False)
    count = _count_of_ones(f) if node.uses_output(1) else None
    f.give(result.cast(dtype), count, total.cast(dtype) if node.uses_output(2) else None)


def _count_of_ones(f: Formula) -> Term:
    """Count the elements of the mask that are 1 for each sequence; none without a mask."""
    if not f.node.uses_input(7):
        return f.filled(f.size(0, 0).reshape(1), 0, "int32")
    return f.input(7, "int32").equals(1).cast("int32").reduced("ReduceSum", [1])


@standard("QEmbedLayerNormalization", opset=17, epsilon=1e-12)
def write_quantized_embed_layer_normalization(node: NodeAtBoundary) -> None:
    """Write the sum of the embeddings, whose rows are dequantized, its LayerNormalization, and how many elements of the
    mask are 1.
    """
    f = Formula(node)
    first = f.input(3).sliced(f.number([0]), f.size(0, 1).reshape(1), 0)
    total = _dequantized(f, f.input(2).take(f.input(0)), 8) + _dequantized(f, first, 9)
    if node.uses_input(1):
        total = total + _dequantized(f, f.input(4).take(f.input(1)), 10)
    scale, bias = (_dequantized(f, f.input(index), index + 6) for index in (5, 6))
    _give_embeddings(f, total, scale, bias, "float32")


def _dequantized(f: Formula, data: Term, scale: int) -> Term:
    """Dequantize by the one scale at an input, and by its zero point five inputs behind."""
    terms = [f.input(index).reshape() for index in (scale, scale + 5)]
    return f.apply("DequantizeLinear", data, *terms, gives="float32")


# Root mean squares of parts -------------------------------------------------------------------------------------------


def split_by_branch(f: Formula, index: int, rank: int, branches: int) -> Term:
    """Return an input of shape (..., branches, size). branches: into how many parts its last axis goes; 0 where it has
    the axis already.
    """
    data = widened(f, index)
    return _last_axis_as(data, rank, branches, f.size(index, -1) / branches) if branches else data


def merge_branches(f: Formula, result: Term, rank: int, index: int) -> Term:
    """Give a result (..., branches, size) the last axis of an input again."""
    return _last_axis_as(result, rank, f.size(index, -1))


def _quotient(node: NodeAtBoundary, index: int, parts: int) -> int:
    """Return the size of each part of the last axis; -1 where it is unknown."""
    shape = node.shape(index)
    size = shape[-1] if shape else None
    return size // parts if isinstance(size, int) else -1


def _last_axis_as(data: Term, rank: int, *sizes: Term | int) -> Term:
    """Reshape the axes behind the first ones. Beside a dimension of 0, Reshape does not find out -1."""
    return data.shaped([*[0] * (rank - 1), *sizes])


@standard("BranchwiseRMSNorm", epsilon=1e-5, num_branches=0)
def write_branchwise_rms_norm(node: NodeAtBoundary) -> None:
    """Divide each branch by its root mean square, and scale."""
    f, dtype, branches = Formula(node), node.known_dtype(), node.known_value_or_default("num_branches")
    rank = node.known_rank()
    data = split_by_branch(f, 0, rank, branches)
    result = data * inverse_root_mean_square(data, node.known_value_or_default("epsilon"))
    if node.uses_input(1):
        result = result * _scale_of_branches(f, branches)
    f.give((merge_branches(f, result, rank, 0) if branches else result).cast(dtype))


def _scale_of_branches(f: Formula, branches: int) -> Term:
    """Return the scale as (branches, size), or as (size) where all branches share it."""
    node, scale = f.node, widened(f, 1)
    if node.known_rank(1) == 2:
        return scale
    shape, length = node.shape(0), (node.shape(1) or (None,))[0]
    if shape is not None and branches:
        shape = (*shape[:-1], branches, _quotient(node, 0, branches))
    if shape is None or length is None or not isinstance(shape[-1], int):
        raise Inexact("its scale is for one branch or for all of them, and its sizes do not tell", "declare the shapes")
    return scale if length == shape[-1] else scale.reshape(-1, shape[-1])


@standard("GatedRMSNorm", epsilon=1e-5, activation="silu")
def write_gated_rms_norm(node: NodeAtBoundary) -> None:
    """Divide each group of the last axis by its root mean square, scale, and multiply by the activated gate."""
    f, dtype, rank = Formula(node), node.known_dtype(), node.known_rank()
    data, scale, gate = (widened(f, index) for index in range(3))
    shape, length = node.shape(0), (node.shape(1) or (None,))[0]
    is_one_group = shape is not None and shape[-1] is not None and shape[-1] == length
    if not is_one_group:
        data = _last_axis_as(data, rank, f.size(0, -1) / f.size(1, 0), f.size(1, 0))
    result = data * inverse_root_mean_square(data, node.known_value_or_default("epsilon")) * scale
    if not is_one_group:
        result = merge_branches(f, result, rank, 0)
    f.give((result * _activated(gate, node.known_value_or_default("activation"))).cast(dtype))


def _activated(gate: Term, activation: str | bytes) -> Term:
    name = activation.decode() if isinstance(activation, bytes) else activation
    if name in ("silu", "swish"):
        return swish(gate)
    if name == "sigmoid":
        return gate.formula.apply("Sigmoid", gate)
    raise Inexact(f"onnxruntime knows no activation {name!r} for it")
