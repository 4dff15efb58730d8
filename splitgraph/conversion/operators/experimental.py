"""The experimental operators of onnx 1.0 to 1.4, which are gone from opset 10 on: operators of today compute the same.
ConstantFill, which ended at 9, is in `constants.py`; ThresholdedRelu and MeanVarianceNormalization became
operators like any other: `functions.py` and `normalization.py` have them.

onnxruntime runs them up to opset 9, in float32 where the data is float16: so do the nodes that replace them.
"""

from __future__ import annotations

from collections.abc import Callable

from splitgraph.conversion.notation.formula import GREATEST_INT64, Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.constants import shape_to_fill
from splitgraph.conversion.operators.registry import changed, upward
from splitgraph.model.deferred import np, numpy_helper

_GONE = "it was experimental, and is gone from then on"
_OPERATORS = "Affine Crop DynamicSlice GivenTensorFill ImageScaler ParametricSoftplus Scale ScaledTanh"
changed(_OPERATORS, 10, _GONE, hint="or export the node as other operators")


def _computed(node: NodeAtBoundary, compute: Callable[[Term], Term]) -> None:
    """Compute the output from the input, in float32 where the input is narrower."""
    dtype = node.known_dtype()
    data = Formula(node).input(0).cast("float32" if dtype == "float16" else dtype)
    data.formula.give(compute(data).cast(dtype))


@upward("Affine", 10)
def multiply_and_add(node: NodeAtBoundary) -> None:
    """Write alpha * x + beta."""
    alpha, beta = node.known_value("alpha", 1.0), node.known_value("beta", 0.0)
    _computed(node, lambda data: data * alpha + beta)


@upward("Scale", 10)
def multiply(node: NodeAtBoundary) -> None:
    """Write scale * x."""
    scale = node.known_value("scale", 1.0)
    _computed(node, lambda data: data * scale)


@upward("ScaledTanh", 10)
def scale_tanh(node: NodeAtBoundary) -> None:
    """Write alpha * tanh(beta * x)."""
    alpha, beta = node.known_value("alpha"), node.known_value("beta")
    _computed(node, lambda data: data.formula.apply("Tanh", data * beta) * alpha)


@upward("ParametricSoftplus", 10)
def scale_softplus(node: NodeAtBoundary) -> None:
    """Write alpha * ln(exp(beta * x) + 1)."""
    alpha, beta = node.known_value("alpha"), node.known_value("beta")
    _computed(node, lambda data: data.formula.apply("Softplus", data * beta) * alpha)


@upward("ImageScaler", 10)
def multiply_and_add_to_channels(node: NodeAtBoundary) -> None:
    """Write scale * x, plus the bias of each channel of the image."""
    scale, bias = node.known_value("scale", 1.0), node.known_value("bias")
    by_channel = np.array(bias, np.float32).reshape(-1, 1, 1)
    _computed(node, lambda data: data * scale + data.formula.term(by_channel).cast(data.dtype))


@upward("Crop", 10)
def slice_image(node: NodeAtBoundary) -> None:
    """Slice height and width of the image: `border` is left, top, right and bottom; `scale` is the height and width to
    keep, whatever is right and below.
    """
    left, top, right, bottom = node.known_value("border")
    scale = node.known_value("scale")
    if min(left, top, right, bottom, *(scale or ())) < 0:
        raise Inexact("it has a negative border or size, of which its document says nothing")
    ends = [-bottom or GREATEST_INT64, -right or GREATEST_INT64]
    if scale is not None:
        ends = [top + scale[0], left + scale[1]]
    f = Formula(node)
    f.give(f.apply("Slice", f.input(0), f.number([top, left]), f.number(ends), f.number([2, 3])))


@upward("DynamicSlice", 10)
def rename_to_slice(node: NodeAtBoundary) -> None:
    """Rename the node to Slice, which took its inputs over. It takes negative axes, as Slice does from opset 11 on."""
    node.dialect = 11
    node.rename("Slice")


@upward("GivenTensorFill", 10)
def write_values(node: NodeAtBoundary) -> None:
    """Write the elements as a constant, in the shape that is given."""
    values, shape = node.known_value("values"), node.known_value("shape")
    dtype = node.known_dtype() if node.uses_input(0) else "float32"
    elements = np.array(values, np.float32)
    if not node.uses_input(0) and shape is not None:
        node.replace("Identity", [node.tensor(numpy_helper.from_array(elements.reshape(shape)), "filled")])
        return
    if not values:
        raise Inexact("it has no elements, and its shape is known only at run time")
    f = Formula(node)
    target = f.value(shape_to_fill(node), "int64")
    f.give(f.term(elements).cast(dtype).shaped(target))
