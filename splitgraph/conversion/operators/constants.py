"""ConstantFill, ConstantOfShape, EyeLike, Range and Constant: below the opset at which they began to exist, or to make
an element type.
"""

from __future__ import annotations

import math

from splitgraph.conversion.known_values import INLINE_FIRST
from splitgraph.conversion.notation.formula import Formula, static_shape
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary, elements_of
from splitgraph.conversion.operators.registry import always, changed, downward, edited_downward, unchanged, upward
from splitgraph.model.attributes import CONSTANT_DTYPES, UNRESOLVED
from splitgraph.model.deferred import helper, np, numpy_helper
from splitgraph.model.onnx_proto import TensorProto
from splitgraph.model.value_type import DTYPE_NAMES, DTYPE_NUMBERS, MAX_WRITTEN

# Up to this number of elements, the model holds them; beyond, nodes make them at run time.
_KEPT = 2**16

# The range of each type besides float32: the first value, and the first one beyond.
_BOUNDS = {
    TensorProto.BOOL: (0, 2),
    TensorProto.INT32: (-(2**31), 2**31),
    TensorProto.INT64: (-(2**63), 2**63),
}

# The number of zeros that may be written out for each other value.
_ZEROS_FOR_A_VALUE = 64

# ConstantFill -------------------------------------------------------------------------------------------------------

changed("ConstantFill", 9, "it was experimental, and is gone from then on; ConstantOfShape replaces it")


@upward("ConstantFill", 9)
def replace_by_constant_of_shape(node: NodeAtBoundary) -> None:
    """Replace the experimental ConstantFill by ConstantOfShape, which takes the value as a tensor and the shape as an
    input. The shape is the attribute shape, the shape of the input, or (with input_as_shape) the contents of the input,
    each followed by extra_shape.
    """
    dtype, value = node.known_value("dtype", TensorProto.FLOAT), node.known_value("value", 0.0)
    if dtype != TensorProto.FLOAT and dtype not in _BOUNDS:
        raise Inexact("ConstantFill gives float32, int32, int64 and bool only")
    if dtype in _BOUNDS and not (value.is_integer() and _BOUNDS[dtype][0] <= value < _BOUNDS[dtype][1]):
        raise Inexact(f"{value} is no element of its type, and ConstantFill does not say how it is rounded")
    tensor = helper.make_tensor("", dtype, [1], [value if dtype == TensorProto.FLOAT else int(value)])
    node.reasons["shape"] = "ConstantFill was experimental; ConstantOfShape replaces it"
    node.replace("ConstantOfShape", [shape_to_fill(node)], value=tensor)


def shape_to_fill(node: NodeAtBoundary) -> str:
    """Return the shape that ConstantFill or GivenTensorFill means."""
    given, extra = node.known_value("shape"), [int(size) for size in node.known_value("extra_shape", ())]
    if not node.uses_input(0):
        if given is None or extra:
            raise Inexact("without an input its shape, and nothing else, must be an attribute")
        return node.constant(given, "shape")
    if given is not None:
        raise Inexact("it has an attribute shape beside an input that gives the shape")
    f = Formula(node)
    is_shape = node.known_value("input_as_shape", 0)
    shape = f.input(0).cast("int64") if is_shape else f.input(0).shape()
    return f.joined([shape, f.number(extra)]).name if extra else shape.name


# ConstantOfShape ----------------------------------------------------------------------------------------------------

unchanged("ConstantOfShape", 20, 21, 23, 24, 25)


@downward("ConstantOfShape", 9)
def expand_value(node: NodeAtBoundary) -> None:
    """Write ConstantOfShape as a constant where the elements are few and their number is known; otherwise expand one
    element.
    """
    tensor = node.known_value("value")
    value = np.zeros(1, np.float32) if tensor is None else elements_of(tensor)
    shape = node.integers(0)
    if shape is not None and math.prod(shape) <= _KEPT:
        node.replace("Identity", [node.tensor(numpy_helper.from_array(np.full(shape, value[0])), "filled")])
        return
    f = Formula(node)
    f.give(f.term(value.reshape(())).expanded(f.input(0, "int64")))


@downward("ConstantOfShape", 20)
def fill_float32_and_cast(node: NodeAtBoundary) -> None:
    """Fill with float32, which holds every bfloat16 and float8, and cast to these types."""
    value = node.known_value("value")
    dtype = "" if value is None else DTYPE_NAMES.get(value.data_type, "")
    if not dtype.startswith(("bfloat16", "float8e")):
        raise Inexact(f"it does not make {dtype or 'this type'} {node.side}")
    wide = numpy_helper.from_array(elements_of(value).astype(np.float32))
    node.set("value", wide, f"ConstantOfShape does not make {dtype} {node.side}")
    _cast_back(node, dtype)


# EyeLike ------------------------------------------------------------------------------------------------------------

unchanged("EyeLike", 22)


@downward("EyeLike", 9)
def write_diagonal_as_constant(node: NodeAtBoundary) -> None:
    """Write the ones and zeros as a constant where the shape is known."""
    shape = static_shape(node, node.inputs[0])
    if shape is None or math.prod(shape) > _KEPT:
        raise Inexact("the shape of its input is not known, or large", "declare the shape of the input")
    number = node.known_value("dtype")
    kind = helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[node.known_dtype()] if number is None else number)
    # NumPy makes ones of few types, so that they start as float32.
    rows, columns = shape
    ones = np.eye(rows, columns, node.known_value_or_default("k"), np.float32).astype(kind)
    node.replace("Identity", [node.tensor(numpy_helper.from_array(ones), "diagonal")])


@downward("EyeLike", 22)
def make_ones_and_cast(node: NodeAtBoundary) -> None:
    """Make ones and zeros in float32 and cast them to bfloat16; of a bfloat16 input only the shape matters."""
    number = node.known_value("dtype")
    dtype = node.known_dtype() if number is None else DTYPE_NAMES.get(number, "")
    if "bfloat16" not in (dtype, node.known_dtype()):
        raise Inexact(f"it does not make {dtype} {node.side}")
    if node.known_dtype() == "bfloat16":
        node.inputs[0] = node.write("Cast", [node.inputs[0]], "wide", to=TensorProto.FLOAT)
    if dtype == "bfloat16":
        node.set("dtype", TensorProto.FLOAT, f"EyeLike does not make {dtype} {node.side}")
        _cast_back(node, dtype)
    else:
        node.set("dtype", DTYPE_NUMBERS[dtype], "the input was cast")


# Range --------------------------------------------------------------------------------------------------------------

unchanged("Range", 27)


@downward("Range", 11)
def count_range(node: NodeAtBoundary) -> None:
    """Write start + i * delta for i below ceil((limit - start) / delta). i comes from the positions in a tensor of
    ones.
    """
    dtype, f = node.known_dtype(0), Formula(node)
    computed = "int64" if dtype.startswith("int") else dtype
    start, limit, delta = (f.input(index, dtype).cast(computed) for index in range(3))
    if computed == "int64":
        # Adding the step less one (with the sign of the step) rounds the quotient up.
        count = (limit - start + (delta - f.apply("Sign", delta))) / delta
    else:
        count = ((limit - start) / delta).ceil().cast("int64")
    f.give((f.counting(count.at_least(0)).cast(computed) * delta + start).cast(dtype))


# Constant -----------------------------------------------------------------------------------------------------------

unchanged("Constant", 9, 11, 13, 19, 21, 23, 24, 25)


@downward("Constant", 9)
def write_constant_with_floats(node: NodeAtBoundary) -> None:
    """Cast integers and booleans from floats where this is exact, and make everything else an initializer. Below 9,
    Constant gives floats only.
    """
    if not node.has("value") or node.attributes["value"].ref_attr_name:
        raise Inexact("its value is an attribute of the enclosing function", INLINE_FIRST)
    tensor = node.attributes["value"].t
    if tensor.data_type in (TensorProto.STRING,) or tensor.data_type > TensorProto.UINT64:
        node.replace("Identity", [_initializer(node, tensor)])
        return
    elements = elements_of(tensor)
    floats = elements.astype(np.float64)
    if np.any(np.abs(floats) > 2**53):
        node.replace("Identity", [_initializer(node, tensor)])
        return
    number = node.write("Constant", [], "number", value=numpy_helper.from_array(floats))
    node.replace("Cast", [number], to=tensor.data_type)


def _initializer(node: NodeAtBoundary, tensor: TensorProto) -> str:
    """Make an initializer of a tensor; raise Inexact in functions, which have none."""
    if node.emission.in_function:
        raise Inexact("its elements are not floating-point numbers, and no initializer can hold them here")
    return node.tensor(tensor, "value")


@downward("Constant", 11)
def write_zeros_of_sparse_tensor(node: NodeAtBoundary) -> None:
    """Write a sparse tensor with its zeros."""
    sparse = node.attributes.get("sparse_value")
    if sparse is None or sparse.ref_attr_name:
        raise Inexact("its value is an attribute of the enclosing function", INLINE_FIRST)
    sparse_tensor = sparse.sparse_tensor
    values, indices = elements_of(sparse_tensor.values), elements_of(sparse_tensor.indices)
    count = math.prod(sparse_tensor.dims)
    if count > max(MAX_WRITTEN, _ZEROS_FOR_A_VALUE * values.size):
        raise Inexact(f"of its {count:,} elements only {values.size:,} are no zeros, which are not written out")
    dense = np.zeros(tuple(sparse_tensor.dims), dtype=values.dtype)
    if indices.ndim == 1:
        dense.reshape(-1)[indices] = values
    else:
        dense[tuple(indices.T)] = values
    node.drop("sparse_value", why=f"it does not exist {node.side}")
    node.set("value", numpy_helper.from_array(dense), "what the sparse tensor means")


changed("Constant", 12, "constants given as value_int, value_floats and so on were added", up=always)


@edited_downward("Constant", 12)
def can_be_a_tensor(node: NodeAtBoundary) -> None:
    """Write numbers and strings (value_int and so on) as the tensor that they mean, where they are known."""
    name = next((name for name in node.attributes if name.startswith("value_")), None)
    if name is None:
        return
    if node.value(name) is UNRESOLVED:
        raise Inexact
    value = helper.get_attribute_value(node.attributes[name])
    elements = value if name.endswith("s") else [value]
    dims = [len(elements)] if name.endswith("s") else []
    node.drop(name, why="below opset 12 a constant is a tensor")
    tensor = helper.make_tensor("", DTYPE_NUMBERS[CONSTANT_DTYPES[name]], dims, elements)
    node.set("value", tensor, f"what {name} means")


# Helpers of several operators ---------------------------------------------------------------------------------------


def _cast_back(node: NodeAtBoundary, dtype: str) -> None:
    """Cast the output of the node to the type that the model expects."""
    result = node.redirect(0, "wide")
    # Without saturation, infinities of float8 stay.
    saturate = 0 if dtype.startswith("float8") else None
    node.write_after("Cast", [node.outputs[0]], result, to=DTYPE_NUMBERS[dtype], saturate=saturate)
