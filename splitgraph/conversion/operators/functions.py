"""Reductions, powers, activations, elementary functions and losses."""

from __future__ import annotations

import math

from splitgraph.conversion.notation.formula import INTEGER_BITS, Formula, Term, has_no_zero
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.broadcasting import broadcasts_as_numpy_from_7
from splitgraph.conversion.operators.registry import (
    MINUS_AXIS,
    RANK_HINT,
    always,
    axes_counted_from_front,
    changed,
    downward,
    exact,
    unchanged,
    upward,
)
from splitgraph.conversion.operators.shapes import make_axes_an_input
from splitgraph.model.deferred import np
from splitgraph.model.schemas.kinds import REDUCTIONS

# Elementary functions and losses --------------------------------------------------------------------------------------


_NARROW = ("float16", "bfloat16", "float32", "int32")

# An even exponent for which every power of a base of at most 32 bits is 0, 1 or infinite.
_FAR = 2**52

unchanged("Abs Ceil Exp Floor Log Neg Reciprocal Sqrt", 6, 13)
unchanged("Acos Acosh Asin Asinh Atan Atanh Cos Cosh Sin Sinh Tan", 22)
unchanged("Elu HardSigmoid Selu", 6, 22)
unchanged("Erf", 13)
unchanged("HardSwish Mish Softplus Softsign ThresholdedRelu", 22)
# The experiment meant the same, but onnx's checker no longer knows it, so that no node becomes one.
changed("ThresholdedRelu", 10, "below it, it was experimental", up=always)
unchanged("LeakyRelu", 6, 16)
unchanged("Relu", 6, 13, 14)
unchanged("Sigmoid Tanh", 6, 13)
unchanged("NegativeLogLikelihoodLoss", 13, 22)
unchanged("SoftmaxCrossEntropyLoss", 13)

# Celu ---------------------------------------------------------------------------------------------------------------

unchanged("Celu", 28)


@downward("Celu", 12)
def write_celu_with_elu(node: NodeAtBoundary) -> None:
    """Write max(0, x) + min(0, alpha * (exp(x / alpha) - 1)): for a positive alpha this is alpha times the Elu of x /
    alpha.

    The function body of the specification does this with an alpha of one dimension, so that the result of a scalar
    would have one dimension too.
    """
    dtype, f, alpha = node.known_dtype(), Formula(node), node.known_value_or_default("alpha")
    data = f.value(node.inputs[0], dtype)
    if alpha > 0:
        f.give(f.apply("Elu", data / alpha) * alpha)
        return
    curve = ((data / alpha).exp() - 1.0) * alpha
    # min(0, curve) is -max(0, -curve).
    f.give(f.apply("Relu", data) - f.apply("Relu", -curve))


# Gelu ---------------------------------------------------------------------------------------------------------------


@downward("Gelu", 20)
def write_gelu_with_erf_or_tanh(node: NodeAtBoundary) -> None:
    """Write x * (1 + erf(x / sqrt(2))) / 2, or the approximation of the erf by a tanh. The function body casts each
    constant to the type of the data at run time.
    """
    f = Formula(node)
    data = f.value(node.inputs[0], node.known_dtype())
    if node.known_value_or_default("approximate") == "tanh":
        bent = data * data * data * 0.044715 + data
        curve = f.apply("Tanh", bent * math.sqrt(2 / math.pi))
    else:
        curve = f.apply("Erf", data / math.sqrt(2))
    f.give((curve + 1.0) * (data * 0.5))


# Pow ----------------------------------------------------------------------------------------------------------------

unchanged("Pow", 12, 13, 15)
broadcasts_as_numpy_from_7("Pow")


@downward("Pow", 12, 13, 15)
def compute_in_float64(node: NodeAtBoundary) -> None:
    """Compute in float64, because below 12 both operands have one floating-point type; runtimes compute powers of
    integers in float64 too. float64 holds the operands exactly, except for powers of int64 with an integer exponent,
    which are multiplied out.
    """
    base, exponent, f = node.known_dtype(0), node.known_dtype(1), Formula(node)
    if base == "int64" and exponent in INTEGER_BITS:
        f.give(_power_of_long_integers(f, is_signed=exponent.startswith("i")))
        return
    if exponent in ("int64", "uint64") and base not in _NARROW:
        raise Inexact(f"float64 does not hold every exponent of {exponent}")
    power = f.input(1).cast("float64")
    if exponent in ("int64", "uint64"):
        power = _with_parity(power, f.input(1).cast("int64"))
    result = f.apply("Pow", f.input(0).cast("float64"), power)
    if base == "int32" and exponent in INTEGER_BITS:
        # The result is an integer within 2**31, or a fraction that becomes 0: the factor corrects an error of the last
        # bit.
        result = result * (1 + 2.0**-33)
    f.give(result.cast(base))


def _power_of_long_integers(f: Formula, *, is_signed: bool) -> Term:
    """Square the base again and again and multiply where the exponent has that bit.

    A power beyond int64 is undefined. 1, 0 and -1 have the same power for all even exponents and for all odd ones. A
    power with a negative exponent is 1 over another power, rounded to 0.
    """
    base, exponent = f.input(0), f.input(1).cast("int64")
    odd, is_negative = _parity(exponent), exponent < 0
    # As int64, the upper half of the unsigned exponents is negative.
    is_far = exponent > 63 if is_signed else (exponent > 63) | is_negative
    rest = f.where(is_far, odd + 62, exponent)
    if is_signed:
        rest = f.where(is_negative, odd, rest)
    power, result = base, f.number(1)
    for _ in range(6):
        half = rest / 2
        result = result * f.where((half * 2).equals(rest), 1, power)
        power, rest = power * power, half
    return f.where(is_negative & (abs(base) > 1), 0, result) if is_signed else result


def _parity(number: Term) -> Term:
    """Return 1 for odd int64 numbers, of either sign, and 0 for even ones."""
    return abs(number - number / 2 * 2)


def _with_parity(rounded: Term, exponent: Term) -> Term:
    """Round a 64-bit exponent so that float64 keeps its last bit. For exponents as large only this bit matters: it
    tells the sign for a base of -1.
    """
    f, odd = rounded.formula, _parity(exponent).cast("float64")
    bounded = f.where(rounded < -float(_FAR), -float(_FAR), rounded.at_most(float(_FAR)))
    return f.where(abs(rounded) > float(_FAR), bounded + odd, rounded)


_REDUCTIONS_18 = " ".join(name for name in REDUCTIONS if name != "ReduceSum")

# The reductions -----------------------------------------------------------------------------------------------------

unchanged("ReduceL1 ReduceL2 ReduceMean ReduceProd ReduceSumSquare", 13)
unchanged("ReduceLogSum ReduceLogSumExp", 13, 28)
unchanged("ReduceMax ReduceMin", 12, 13, 20)
changed(
    f"ReduceSum {_REDUCTIONS_18}",
    11,
    MINUS_AXIS,
    up=always,
    down=axes_counted_from_front("axes"),
    hint=RANK_HINT,
)
changed("ReduceSum", 13, "the attribute axes became an input")


@exact("ReduceSum", 13)
def reduces_all_axes(node: NodeAtBoundary) -> bool:
    """Return True when the node has no axes, which means all axes."""
    if node.upward:
        return not node.has("axes")
    return not node.uses_input(1) and node.value("noop_with_empty_axes", 0) == 0


upward("ReduceSum", 13)(make_axes_an_input)


@downward("ReduceSum", 13)
@downward(_REDUCTIONS_18, 18)
def make_reduced_axes_an_attribute(node: NodeAtBoundary) -> None:
    """Turn a constant second input into the attribute axes. Without axes and with noop_with_empty_axes, nothing is
    reduced, but the elements are still squared and so on.

    Axes that are known only at run time: the data gets two dimensions for each of its dimensions, one that is kept and
    one that is reduced; one of the two is 1.
    """
    node.require_types()
    is_noop = node.known_value_or_default("noop_with_empty_axes") == 1
    node.drop("noop_with_empty_axes", why=f"it does not exist {node.side}")
    axes = node.integers(1)
    if node.uses_input(1) and axes is None:
        _reduce_at_run_time(node, is_noop)
        return
    del node.inputs[1:]
    if axes:
        node.set("axes", axes, f"it is an attribute {node.side}")
    elif is_noop:
        _reduce_nothing(node)


def _reduce_at_run_time(node: NodeAtBoundary, is_noop: bool) -> None:
    """Reduce along axes that are known only at run time."""
    rank, keeps, f = node.known_rank(0), node.known_value_or_default("keepdims"), Formula(node)
    data, axes, dense = f.input(0), f.input(1, "int64"), has_no_zero(node, node.inputs[0])
    del node.inputs[1:]
    if rank == 0:
        # A scalar has no axes: reducing none or all is the same.
        return
    shape, is_reduced = f.shape(data.name), f.mask_of_axes(axes, f.number([rank]))
    if not is_noop:
        is_reduced = is_reduced | f.shape(axes.name).equals(f.number([0]))
    kept, gone = f.where(is_reduced, f.number([1]), shape), f.where(is_reduced, shape, f.number([1]))
    pairs = f.joined([sizes.reshape(rank, 1) for sizes in (kept, gone)], 1).reshape(-1)
    node.reasons["axes"] = "the axes are known only at run time"
    in_pairs = data.with_shape(pairs, dense=dense)
    reduced = f.apply(node.op_type, in_pairs, axes=list(range(1, 2 * rank, 2)), keepdims=0)
    f.give(reduced if keeps else reduced.with_shape(shape.take(f.positions(~is_reduced)), dense=dense))


def _reduce_nothing(node: NodeAtBoundary) -> None:
    """Reduce an added dimension of 1, so that the operator does everything else that it does."""
    if node.op_type in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"):
        node.replace("Identity", node.inputs)
        return
    rank = node.known_rank(0)
    node.inputs[0] = Formula(node).input(0).unsqueezed(rank).name
    node.set("axes", [rank], f"nothing is reduced, which below opset {node.upper.since_version} a dimension of 1 does")
    node.set("keepdims", 0, "the dimension of 1 was added")


changed(_REDUCTIONS_18, 18, "the attribute axes became an input")
exact(_REDUCTIONS_18, 18)(reduces_all_axes)
upward(_REDUCTIONS_18, 18)(make_axes_an_input)

# ArgMax, ArgMin -----------------------------------------------------------------------------------------------------

unchanged("ArgMax ArgMin", 12, 13)
changed("ArgMax ArgMin", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)


@downward("ArgMax ArgMin", 12)
def find_last_index_in_reverse(node: NodeAtBoundary) -> None:
    """Reverse the tensor: the last of several equal elements is the first one there."""
    node.require_types()
    if not node.known_is_set("select_last_index"):
        raise Inexact("the node takes the first of several equal elements, and another part of it is in the way")
    f, axis = Formula(node), node.known_value_or_default("axis")
    if axis < 0 and node.input_type(0).rank is not None:
        axis += node.known_rank(0)
    last = f.shape(node.inputs[0]).take(axis) - 1
    bounds = [f.number([bound]) for bound in (-1, np.iinfo(np.int64).min, axis, -1)]
    node.inputs[0] = f.apply("Slice", f.input(0), *bounds).name
    node.drop("select_last_index", why=f"it does not exist {node.side}")
    f.follow(0, lambda in_reverse: last - in_reverse)
