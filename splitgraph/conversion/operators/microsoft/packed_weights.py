"""Matrix products and look-ups of com.microsoft with weights of 2, 4 or 8 bits, packed into bytes.

Weights stay packed where ai.onnx has their type: 4 bits from opset 21 on, 2 bits from opset 25 on. Their bytes are
those of the model, and are not read. Elsewhere constants are unpacked at conversion, and other weights at run time.
"""

from __future__ import annotations

from splitgraph.conversion.known_values import Array
from splitgraph.conversion.notation.formula import Formula, Term, wide_float
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary, elements_of
from splitgraph.conversion.operators.standard import standard, without_form
from splitgraph.model.deferred import np
from splitgraph.model.onnx_proto import TensorProto
from splitgraph.model.tensor_data import is_in_other_file
from splitgraph.model.value_type import DTYPE_NUMBERS

# From which opset on DequantizeLinear takes weights of so many bits.
_NARROW = {4: ("uint4", 21), 2: ("uint2", 25)}
# The bytes that are unpacked at a time.
_PIECE = 2**22
# The values that codes of 4 bits stand for in bitsandbytes: floating-point numbers, and quantiles of a normal
# distribution.
_FP4 = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
_NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
    *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
    *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
_TABLES = {0: (*_FP4, *(-number for number in _FP4)), 1: _NF4}

without_form("MatMulFpQ4", "its weights are laid out for the processor that packed them, which no document explains")


# Packed codes -------------------------------------------------------------------------------------------------------


def _unpacked(packed: Array, bits: int, *, high_first: bool = False) -> Array:
    """Return the codes of bytes, along the last axis."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes: Array = packed[..., None] >> (shifts[::-1] if high_first else shifts)
    codes &= np.uint8(2**bits - 1)
    return codes.reshape(*packed.shape[:-1], -1)


def _packed(codes: Array, bits: int) -> bytes:
    """Return the bytes of codes, the first one in the lowest bits."""
    each = 8 // bits
    rows = np.pad(codes.reshape(-1), (0, -codes.size % each)).reshape(-1, each)
    whole: Array = np.bitwise_or.reduce(rows << np.arange(0, 8, bits, dtype=np.uint8), axis=1)
    return whole.astype(np.uint8).tobytes()


def unpack(packed: Term, bits: int, *, high_first: bool = False) -> Term:
    """Return the codes of bytes as uint8, with one more axis for those of one byte. Needs opset 11."""
    f = packed.formula
    if packed.elements is not None:
        codes = _unpacked(packed.elements, bits, high_first=high_first)
        return f.term(codes.reshape(*packed.elements.shape, -1))
    above = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
    left = f.term(above[::-1].copy() if high_first else above)
    shifted = f.apply("BitShift", packed.unsqueezed(-1), left, direction="LEFT")
    return f.apply("BitShift", shifted, f.number(8 - bits, "uint8"), direction="RIGHT")


def codes_of(
    node: NodeAtBoundary,
    f: Formula,
    index: int,
    bits: int,
    shape: tuple[int, ...],
    *,
    narrow: bool,
    gives: tuple[int, ...] = (),
) -> Term:
    """Return the codes of an input of bytes, whose rows are filled up to whole bytes.

    shape: of the rows of codes. gives: of the result, if another one. narrow: as the narrow type that the opset of the
    result has, which few operators take; otherwise as uint8.
    """
    gives = gives or shape
    width = -(-shape[-1] * bits // 8)
    dtype, since = _NARROW.get(bits, ("uint8", 0))
    is_whole = shape[-1] * bits % 8 == 0
    if narrow and is_whole and node.to_opset >= since:
        retyped = _retyped(node, index, dtype, gives)
        if retyped is not None:
            return f.value(retyped, dtype)
    packed = _elements(node, index)
    if packed is None:
        data = f.input(index)
        spread = unpack(data.reshape(*shape[:-1], width), bits) if bits < 8 else data
        spread = spread.reshape(*shape[:-1], width * 8 // bits)
        spread = spread if is_whole else spread.sliced(0, shape[-1], len(shape) - 1)
        return spread if gives == shape else spread.reshape(*gives)
    fits = next((fit for fit in (bits, 4) if narrow and fit in _NARROW and node.to_opset >= _NARROW[fit][1]), 8)
    raw = _repacked(packed.reshape(-1, width), bits, shape[-1], fits)
    return _constant(node, f, raw, gives, "uint8" if fits == 8 else _NARROW[fits][0])


def _repacked(rows: Array, bits: int, count: int, fits: int) -> bytes:
    """Return the bytes of the first codes of each row in another number of bits, piece by piece: unpacked weights are
    large.
    """
    # A piece ends with a whole byte.
    many = 8 * -(-_PIECE // (8 * rows.shape[1] or 1))
    pieces = (_unpacked(rows[start : start + many], bits)[:, :count] for start in range(0, len(rows), many))
    return b"".join(piece.tobytes() if fits == 8 else _packed(piece, fits) for piece in pieces)


def _constant(node: NodeAtBoundary, f: Formula, raw: bytes, shape: tuple[int, ...], dtype: str) -> Term:
    """Return bytes as a constant. Its elements count as unknown: it may be large."""
    return f.value(node.tensor(TensorProto(dims=shape, data_type=DTYPE_NUMBERS[dtype], raw_data=raw), "codes"), dtype)


def _retyped(node: NodeAtBoundary, index: int, dtype: str, shape: tuple[int, ...]) -> str | None:
    """Add an initializer with the bytes of one of the model, wherever they are, as another type; None where the input
    is none, or has no raw bytes.
    """
    given = node.values.producer(node.inputs[index])
    if not isinstance(given, TensorProto) or given.int32_data:
        return None
    tensor = TensorProto()
    tensor.CopyFrom(given)
    del tensor.dims[:]
    tensor.dims.extend(shape)
    tensor.data_type = DTYPE_NUMBERS[dtype]
    return node.tensor(tensor, "codes")


def _elements(node: NodeAtBoundary, index: int) -> Array | None:
    """Return the elements of a constant. Those of an initializer are not kept: it may be large."""
    given = node.values.producer(node.inputs[index])
    if isinstance(given, TensorProto) and not is_in_other_file(given):
        return elements_of(given)
    return node.elements(index)


def is_constant(node: NodeAtBoundary, index: int) -> bool:
    """Return True for an input that is an initializer, also one in another file, or a known constant."""
    return isinstance(node.values.producer(node.inputs[index]), TensorProto) or node.elements(index) is not None


# MatMulNBits --------------------------------------------------------------------------------------------------------


@standard("MatMulNBits", opset=21, bits=4, accuracy_level=0, weight_prepacked=0)
def write_matmul_nbits(node: NodeAtBoundary) -> None:
    """Write DequantizeLinear in blocks along the rows of the weights, and MatMul. The kernel may round the data to
    int8 (accuracy_level 4), which approximates this product.
    """
    f = Formula(node)
    rows, bits = node.known_value("K"), _supported_bits(node)
    weights = _regrouped(node, f, bits) if node.uses_input(4) else _weights(node, f, bits)
    if rows % node.known_value("block_size") and not node.uses_input(4):
        weights = weights.sliced(0, rows, 1)
    product = f.apply("MatMul", f.input(0), weights.transposed(1, 0), gives=node.known_dtype(0))
    f.give(product + f.input(5) if node.uses_input(5) else product)


def _supported_bits(node: NodeAtBoundary) -> int:
    """Return the number of bits of a weight; raise Inexact for a layout that onnxruntime does not run."""
    bits: int = node.known_value_or_default("bits")
    if node.known_value_or_default("weight_prepacked"):
        raise Inexact("its weights are laid out for one processor", "save the model without prepacked weights")
    if bits not in (2, 4, 8):
        raise Inexact(f"onnxruntime runs no weights of {bits} bits")
    return bits


def _has_real_zeros(node: NodeAtBoundary) -> bool:
    """Return True for zero points that are numbers of the type of the data, not codes."""
    return node.uses_input(3) and node.known_dtype(3) != "uint8"


def _sizes(node: NodeAtBoundary) -> tuple[int, int, int]:
    """Return the number of columns, of blocks and of weights in a block."""
    block = node.known_value("block_size")
    return node.known_value("N"), -(-node.known_value("K") // block), block


def _weights(node: NodeAtBoundary, f: Formula, bits: int) -> Term:
    """Return the weights as numbers, a row for each column of the product."""
    columns, blocks, block = _sizes(node)
    scales = f.input(2).reshape(columns, blocks)
    if _has_real_zeros(node):
        if bits == 8:
            raise Inexact("onnxruntime runs no weights of 8 bits with zero points that are not integers")
        codes = codes_of(node, f, 1, bits, (columns, blocks * block), narrow=node.to_opset >= 21)
        steps = codes.cast(node.known_dtype(0)).reshape(columns, blocks, block)
        shifted = steps - f.input(3).reshape(columns, blocks, 1)
        return (shifted * scales.reshape(columns, blocks, 1)).reshape(columns, blocks * block)
    narrow = is_constant(node, 1) and (not node.uses_input(3) or is_constant(node, 3))
    codes = codes_of(node, f, 1, bits, (columns, blocks * block), narrow=narrow)
    if node.uses_input(3):
        zeros = codes_of(node, f, 3, bits, (columns, blocks), narrow=narrow)
    else:
        zeros = middle_codes(node, f, bits, codes.dtype, (columns, blocks))
    if zeros.dtype != codes.dtype:
        # Only one of them could stay narrow.
        codes, zeros = codes.cast("uint8"), zeros.cast("uint8")
    return f.apply("DequantizeLinear", codes, scales, zeros, gives=scales.dtype, axis=1, block_size=block)


def middle_codes(node: NodeAtBoundary, f: Formula, bits: int, dtype: str, shape: tuple[int, ...]) -> Term:
    """Return the code in the middle, the zero point of each block where none is given."""
    zeros = np.full(shape, 2 ** (bits - 1), np.uint8)
    if dtype == "uint8":
        return f.term(zeros)
    return _constant(node, f, _packed(zeros, 2 if dtype == "uint2" else 4), shape, dtype)


def _regrouped(node: NodeAtBoundary, f: Formula, bits: int) -> Term:
    """Return the weights as numbers where an input says to which block each row belongs."""
    if bits != 4:
        raise Inexact(f"onnxruntime runs g_idx with weights of 4 bits, not of {bits}")
    columns, blocks, block = _sizes(node)
    rows, dtype = node.known_value("K"), node.known_dtype(0)
    groups = f.given(4).sliced(0, rows)
    codes = codes_of(node, f, 1, bits, (columns, blocks * block), narrow=node.to_opset >= 21)
    steps = codes.cast(dtype)
    if rows % block:
        steps = steps.sliced(0, rows, 1)
    scales = f.input(2).reshape(columns, blocks).take(groups, 1)
    if _has_real_zeros(node):
        return (steps - f.input(3).reshape(columns, blocks).take(groups, 1)) * scales
    if node.uses_input(3) and not _is_default(node, bits):
        raise Inexact(
            "onnxruntime ignores packed zero points beside g_idx, against the document of the operator",
            "give the zero points in the type of the data",
        )
    return (steps - float(2 ** (bits - 1))) * scales


def _is_default(node: NodeAtBoundary, bits: int) -> bool:
    """Return True for packed zero points that are all the one that is meant without them."""
    columns, blocks, _ = _sizes(node)
    zeros = node.elements(3)
    if zeros is None:
        return False
    codes = _unpacked(zeros.reshape(columns, -1), bits)[:, :blocks]
    return bool((codes == 2 ** (bits - 1)).all())


# MatMulBnb4 ---------------------------------------------------------------------------------------------------------


@standard("MatMulBnb4", transB=1, training_mode=0)
def write_matmul_bnb4(node: NodeAtBoundary) -> None:
    """Look the codes up in the table of their type, scale each block, and multiply. The first code of a byte is in its
    high bits.
    """
    f, dtype = Formula(node), node.known_dtype(0)
    table = _TABLES.get(node.known_value("quant_type"))
    if table is None or not node.known_value_or_default("transB"):
        raise Inexact("onnxruntime runs it with quant_type 0 (FP4) or 1 (NF4), and transB=1 only")
    rows, columns, block = (node.known_value(name) for name in ("K", "N", "block_size"))
    count, blocks = rows * columns, -(-rows * columns // block)
    codes = unpack(f.given(1).reshape(-1), 4, high_first=True).reshape(-1)
    missing = blocks * block - (count + count % 2)
    if missing > 0:
        codes = f.joined([codes, f.number([0] * missing, "uint8")])
    elif missing < 0:
        codes = codes.sliced(0, blocks * block)
    numbers = f.number(table, wide_float(dtype)).take(_as_indices(node, f, codes))
    scaled = numbers.reshape(blocks, block) * f.input(2).cast(numbers.dtype).reshape(blocks, 1)
    weights = scaled.reshape(-1) if blocks * block == count else scaled.reshape(-1).sliced(0, count)
    product = f.input(0).cast(numbers.dtype) @ weights.reshape(columns, rows).transposed(1, 0)
    f.give(product.cast(dtype))


def _as_indices(node: NodeAtBoundary, f: Formula, codes: Term) -> Term:
    """Cast codes to int32; constants stay in the narrowest type that the opset of the result has."""
    if codes.elements is None:
        return codes.cast("int32")
    if node.to_opset < 21:
        return f.value(codes.name, "uint8").cast("int32")
    tensor = TensorProto(
        dims=codes.elements.shape, data_type=DTYPE_NUMBERS["uint4"], raw_data=_packed(codes.elements, 4)
    )
    return f.value(node.tensor(tensor, "codes"), "uint4").cast("int32")


# GatherBlockQuantized -----------------------------------------------------------------------------------------------


@standard("GatherBlockQuantized", opset=21, bits=4, block_size=128, gather_axis=0, quantize_axis=1)
def write_gather_block_quantized(node: NodeAtBoundary) -> None:
    """Gather packed rows, scales and zero points, then unpack and dequantize the rows. Other types than bytes are
    dequantized first, because Gather does not take them.
    """
    rank = node.known_rank(0)
    gather, quantize = (node.known_value_or_default(name) % rank for name in ("gather_axis", "quantize_axis"))
    if gather == quantize:
        raise Inexact("it gathers along the axis of the blocks")
    f, block = Formula(node), node.known_value_or_default("block_size")
    indices, scales = f.input(1), f.input(2)
    if node.known_dtype(0) != "uint8":
        if node.known_dtype(0) not in ("uint4", "int4"):
            raise Inexact(f"{node.known_dtype(0)} in blocks is written with no operator of ai.onnx")
        inputs = [f.input(index) for index in (0, 2, 3) if node.uses_input(index)]
        numbers = f.apply("DequantizeLinear", *inputs, gives=scales.dtype, axis=quantize, block_size=block)
        f.give(numbers.take(indices, gather))
        return
    bits = node.known_value_or_default("bits")
    if bits not in (2, 4, 8) or gather != 0 or quantize != rank - 1:
        raise Inexact("onnxruntime reads bytes of 2, 4 or 8 bits for each element, in blocks of the last axis only")
    rows = node.known_rank(1) + rank - 1
    # DequantizeLinear of onnxruntime takes no single row that is one block.
    is_single = rows == 1
    indices, rows = (indices.reshape(1), 2) if is_single else (indices, rows)
    shape = node.shape(0) or ()
    codes = _rows(f, f.input(0).take(indices), bits, _times(shape[-1], 8 // bits), rows)
    scales = scales.take(indices)
    last = (node.shape(2) or (None,))[-1]
    zeros = f.number(2 ** (bits - 1), "uint8").expanded(scales.shape())
    if node.uses_input(3):
        packed = (node.shape(3) or (None,))[-1]
        zeros = _rows(f, f.input(3).take(indices), bits, _times(packed, 8 // bits), rows)
        if last is None or packed is None or last != _times(packed, 8 // bits):
            count = scales.shape().sliced(-1)
            zeros = zeros.sliced(f.number([0]), count, rows - 1)
    numbers = f.apply("DequantizeLinear", codes, scales, zeros, gives=scales.dtype, axis=-1, block_size=block)
    f.give(numbers.squeezed(0) if is_single else numbers)


def _times(size: object, factor: int) -> int:
    """Multiply a dimension; -1 for one that is unknown."""
    return size * factor if isinstance(size, int) else -1


def _rows(f: Formula, packed: Term, bits: int, width: int, rank: int) -> Term:
    """Unpack bytes along the last of `rank` axes, which becomes as wide as given; -1 where that is not known."""
    if bits == 8:
        return packed
    if width >= 0:
        return unpack(packed, bits).reshape(*[0] * (rank - 1), width)
    # With a dimension of 0, Reshape does not find out -1.
    shape = packed.shape() * f.number([*[1] * (rank - 1), 8 // bits])
    return unpack(packed, bits).shaped(shape)
