"""Matrix products of com.microsoft: transposed and scaled ones, those with an activation, and those of integers."""

from __future__ import annotations

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.microsoft.fused_activations import activated, parameters_of
from splitgraph.conversion.operators.standard import standard, without_form

# Those that FusedGemm takes.
_OF_GEMM = (
    *("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "LeakyRelu", "Elu", "HardSigmoid", "ParametricSoftplus"),
    *("ScaledTanh", "ThresholdedRelu", "Selu"),
)

without_form("SparseToDenseMatMul", "its first input is a sparse tensor, which no operator of ai.onnx takes")


@standard("FusedMatMul TransposeMatMul", alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0)
def write_fused_matmul(node: NodeAtBoundary) -> None:
    """Write alpha * (A @ B). Rows may stand before the batch (transBatch), and behind the columns (trans)."""
    f = Formula(node)
    alpha = node.known_value_or_default("alpha")
    product = _turned(node, f, 0, "A") @ _turned(node, f, 1, "B")
    f.give(product if alpha == 1.0 else product * alpha)


def _turned(node: NodeAtBoundary, f: Formula, index: int, side: str) -> Term:
    """Return an operand as MatMul takes it. A vector stays."""
    swaps, batch = node.known_value_or_default(f"trans{side}"), node.known_value_or_default(f"transBatch{side}")
    if not swaps and not batch:
        return f.input(index)
    rank = node.known_rank(index)
    if rank < 2:
        return f.input(index)
    if batch and rank < 3:
        raise Inexact(f"{side} has no batch, and transBatch{side} moves one")
    order = [*range(1, rank - 1), 0, rank - 1] if batch else list(range(rank))
    if swaps:
        order[-2:] = order[:-3:-1]
    return f.input(index).transposed(*order)


@standard("FusedGemm", alpha=1.0, beta=1.0, transA=0, transB=0)
def write_fused_gemm(node: NodeAtBoundary) -> None:
    """Write Gemm, and its activation."""
    activation = node.known_value("activation")
    if activation is None:
        raise Inexact("it has no activation, without which onnxruntime does not run it")
    names = [f"activation_{name}" for name in parameters_of(activation, _OF_GEMM)]
    numbers = [node.known_value(name) for name in names]
    if None in numbers:
        raise Inexact(f"{activation} needs {' and '.join(names)}")
    f = Formula(node)
    attributes = {name: node.known_value_or_default(name) for name in ("alpha", "beta", "transA", "transB")}
    inputs = [f.input(index) for index in range(3) if node.uses_input(index)]
    f.give(activated(f.apply("Gemm", *inputs, **attributes), activation, numbers))


@standard("MatMulInteger16")
def write_matmul_integer_16(node: NodeAtBoundary) -> None:
    """Write MatMul of int32, which wraps as the accumulator of the kernel does."""
    f = Formula(node)
    f.give(f.input(0).cast("int32") @ f.input(1).cast("int32"))


def integer_product(a: Term, b: Term, a_zero: Term | None, b_zero: Term | None) -> Term:
    """Return the matrix product of integers less their zero points, in int32."""
    f = a.formula
    if a_zero is None and b_zero is not None:
        a_zero = f.number(0, a.dtype)
    zeros = [zero for zero in (a_zero, b_zero) if zero is not None]
    return f.apply("MatMulInteger", a, b, *zeros, gives="int32")


def optional(node: NodeAtBoundary, f: Formula, index: int) -> Term | None:
    """Return an input of the node; None where the node omits it."""
    return f.given(index) if node.uses_input(index) else None


def only_element(term: Term | None) -> Term | None:
    """Return the element of a term of one element, as a scalar."""
    return None if term is None else term.reshape()


@standard("MatMulIntegerToFloat")
def write_matmul_integer_to_float(node: NodeAtBoundary) -> None:
    """Write MatMulInteger, scaled by the product of both scales, and the bias."""
    f, dtype = Formula(node), node.known_dtype(2)
    product = integer_product(f.input(0), f.input(1), only_element(optional(node, f, 4)), optional(node, f, 5))
    scale = f.given(2).reshape().cast("float32") * f.given(3).cast("float32")
    f.give(_scaled(node, f, product, scale, 6).cast(dtype))


@standard("DynamicQuantizeMatMul")
def write_dynamic_quantize_matmul(node: NodeAtBoundary) -> None:
    """Quantize the first matrix by its own range, then write as MatMulIntegerToFloat."""
    f, dtype = Formula(node), node.known_dtype(0)
    quantized, scale, zero = f.write("DynamicQuantizeLinear", [f.input(0).cast("float32")], "uint8", "float32", "uint8")
    product = integer_product(quantized, f.input(1), zero, optional(node, f, 3))
    f.give(_scaled(node, f, product, scale * f.given(2).cast("float32"), 4).cast(dtype))


def _scaled(node: NodeAtBoundary, f: Formula, product: Term, scale: Term, bias: int) -> Term:
    """Scale a product of integers in float32, and add the bias."""
    scaled = product.cast("float32") * scale
    return scaled + f.given(bias).cast("float32") if node.uses_input(bias) else scaled


@standard("QGemm", alpha=1.0, transA=0, transB=0)
def write_qgemm(node: NodeAtBoundary) -> None:
    """Write MatMulInteger, the bias in int32, and the scale; quantize with a scale of 1 where the result is quantized.

    The scale multiplies the bias, too. The product is rounded before the zero point is added.
    """
    f = Formula(node)
    a, b = (
        f.input(index).transposed(1, 0) if node.known_value_or_default(name) else f.input(index)
        for index, name in ((0, "transA"), (3, "transB"))
    )
    b_zero = f.given(5)
    if node.known_rank(5) == 1 and (node.shape(5) or ())[0] == 1:
        b_zero = b_zero.reshape()
    product = integer_product(a, b, f.given(2).reshape(), b_zero)
    if node.uses_input(6):
        product = product + f.given(6)
    scale = f.number(node.known_value_or_default("alpha"), "float32") * f.given(1).reshape() * f.given(4)
    if not node.uses_input(7):
        f.give(product.cast("float32") * scale)
        return
    if not node.uses_input(8):
        raise Inexact("it has y_scale and no y_zero_point, which onnxruntime reads together")
    scaled = product.cast("float32") * (scale / f.given(7).reshape())
    zero = f.given(8).reshape()
    f.give(f.apply("QuantizeLinear", scaled, f.number(1, "float32"), zero, gives=zero.dtype))
