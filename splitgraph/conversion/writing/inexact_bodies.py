"""Function bodies that differ from the document of their operator for some nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from splitgraph.conversion.writing.formula import FLOATS
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

_REAL = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16})


def check_body(node: NodeAtBoundary) -> None:
    """Raises Inexact where the function body is not exact for this node. Drops attributes without effect that would
    change the result of the body.
    """
    check = _CHECKS.get(node.op_type)
    if check is not None:
        check(node)


def _bernoulli(node: NodeAtBoundary) -> NoReturn:
    raise Inexact("its function body gives 1 with the opposite probability")


def _affine_grid(node: NodeAtBoundary) -> NoReturn:
    raise Inexact("its function body confuses a batch of size 1 with no batch", "declare the shapes of its inputs")


def _attention(node: NodeAtBoundary) -> None:
    """Checks that weights and values have one type, as the body needs, and that a mask is boolean or real: the body
    casts -inf to the type of the mask.

    The body recognizes inputs of rank 3 by the numbers of heads, so these are dropped from inputs of rank 4.
    """
    if node.input_type(0).dtype != node.input_type(2).dtype:
        raise Inexact("its function body multiplies values that have another type than Q")
    mask = node.input_type(3).dtype or ""
    if node.uses_input(3) and mask != "bool" and DTYPE_NUMBERS.get(mask) not in _REAL:
        raise Inexact(
            f"its documentation does not define a mask of {mask or 'an unknown type'}", "cast the mask to bool"
        )
    if not drop_heads_of_rank_4(node):
        raise Inexact(f"the rank of {node.inputs[0]!r} is unknown", "declare the shapes of its inputs")


def _rms_normalization(node: NodeAtBoundary) -> None:
    if node.input_type(0).dtype != node.input_type(1).dtype:
        raise Inexact("its function body and onnx's inference do not allow a scale of another type than the data")


def _window(node: NodeAtBoundary) -> None:
    if node.known_value_or_default("output_datatype") not in _REAL:
        raise Inexact("its function body computes in float32, and its final cast to an integer can be off by 1")


def _shrink(node: NodeAtBoundary) -> None:
    """Checks that lambd, its negative and bias are exact in the type of the input: the body casts them, runtimes do
    not.
    """
    dtype = node.input_type(0).dtype
    if dtype in FLOATS:
        return
    threshold, bias = node.known_value_or_default("lambd"), node.known_value_or_default("bias")
    has_no_negatives = not (dtype or "").startswith("int")
    if threshold < 0 or not bias.is_integer() or (has_no_negatives and (threshold >= 1 or bias < 0)):
        raise Inexact("its function body rounds lambd and bias to the type of the input, and runtimes do not")


def _range(node: NodeAtBoundary) -> None:
    dtype = node.known_dtype() if node.old.since_version == 11 else "float32"
    if dtype != "float32":
        raise Inexact(f"its function body counts the elements in float32, which does not hold every {dtype}")


_CHECKS: dict[str, Callable[[NodeAtBoundary], None]] = {
    "AffineGrid": _affine_grid,
    "Attention": _attention,
    "Bernoulli": _bernoulli,
    "BlackmanWindow": _window,
    "HammingWindow": _window,
    "HannWindow": _window,
    "Range": _range,
    "RMSNormalization": _rms_normalization,
    "Shrink": _shrink,
}


def drop_heads_of_rank_4(node: NodeAtBoundary) -> bool:
    """Drops the numbers of heads from an Attention whose inputs have rank 4 and so a dimension for the heads, as from
    25 on; False when the rank is unknown.
    """
    names, rank = ("q_num_heads", "kv_num_heads"), node.rank(0)
    if node.old.since_version >= 25 or rank == 3 or not any(map(node.has, names)):
        return True
    if rank is None:
        return False
    node.drop(*names, why="inputs of rank 4 have their heads on an axis")
    return True
