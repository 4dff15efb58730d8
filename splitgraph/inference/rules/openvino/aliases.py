"""OpenVINO's layers that are operators of ONNX under other names, or with attributes that are written in another way.

Each row names the operator, or gives its formula what the layer says. A layer that means something else has a rule of
its own, in the file of its family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitgraph.inference.context import RULES, NodeContext, Rule, rule
from splitgraph.inference.rules import arithmetic as exact
from splitgraph.inference.rules.onnx.convolution import moved_blocks
from splitgraph.inference.rules.onnx.elementwise import ARITHMETIC, LOGIC, VARIADIC
from splitgraph.inference.rules.onnx.joining import concatenated
from splitgraph.inference.rules.onnx.matmul import product_of
from splitgraph.inference.rules.openvino.attributes import flag, layer, number
from splitgraph.inference.rules.openvino.elementwise import broadcasting
from splitgraph.inference.rules.operands import dims_of, like_input
from splitgraph.model.value_type import ValueType
from splitgraph.splits.openvino_split_1 import DOMAIN

# Only the name differs: ONNX's rule is the layer's.
RENAMED: Mapping[str, str] = {
    "Abs": "Abs",
    "Ceiling": "Ceil",
    "ConvertLike": "CastLike",
    "Einsum": "Einsum",
    "Floor": "Floor",
    # No operator of ONNX, but a boolean for each element, too.
    "IsFinite": "IsNaN",
    "IsInf": "IsInf",
    "IsNaN": "IsNaN",
    "LogicalNot": "Not",
    "Negative": "Neg",
    "Sign": "Sign",
    "Sqrt": "Sqrt",
}
# The elements are those of ONNX's operator (with an attribute); `auto_broadcast` says how the shapes fit each other.
BROADCAST: Mapping[str, str] = {
    "Add": "Add",
    "BitwiseAnd": "BitwiseAnd",
    "BitwiseLeftShift": "BitShift",
    "BitwiseOr": "BitwiseOr",
    "BitwiseRightShift": "BitShift",
    "BitwiseXor": "BitwiseXor",
    "FloorMod": "Mod",
    "Maximum": "Max",
    "Minimum": "Min",
    "Mod": "Mod, fmod=1",
    "Multiply": "Mul",
    "Power": "Pow",
    "Subtract": "Sub",
}
BROADCAST_LOGIC: Mapping[str, str] = {
    "Equal": "Equal",
    "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual",
    "Less": "Less",
    "LessEqual": "LessOrEqual",
    "LogicalAnd": "And",
    "LogicalOr": "Or",
    "LogicalXor": "Xor",
}
# The output has the type and shape of the first input.
KEEP_TYPE = """
    Acos Acosh Asin Asinh Atan Atanh BatchNormInference BitwiseNot Cos Cosh CumSum Elu Erf ErfInv Exp FakeConvert
    GRN GatherTree Gelu HSigmoid HSwish HardSigmoid Inverse LRN Log LogSoftmax MVN Mish NormalizeL2 ReLU Relu
    Reverse Roll Round Selu ShuffleChannels Sigmoid Sin Sinh SliceScatter SoftMax SoftPlus SoftSign Swish Tan Tanh
"""


def _moved_blocks(ctx: NodeContext, to_space: bool) -> Sequence[ValueType]:
    return moved_blocks(ctx, dims_of(ctx, 0), "block_size", number(ctx, "block_size", 1), to_space=to_space)


# The formula is ONNX's; its arguments are read where the layer has them.
FORMULAS: Mapping[str, Rule] = {
    "Concat": lambda ctx: concatenated(ctx, number(ctx, "axis", 0)),
    "DepthToSpace": lambda ctx: _moved_blocks(ctx, to_space=True),
    # Version 5 makes one dimension of all batches.
    "MatMul": lambda ctx: product_of(ctx, flag(ctx, "transpose_a", False), flag(ctx, "transpose_b", False)),
    "SpaceToDepth": lambda ctx: _moved_blocks(ctx, to_space=False),
}

_ITEMS = {**ARITHMETIC, **VARIADIC, "Mod": exact.modulo, "Mod, fmod=1": exact.fmod, "Pow": exact.power}
for _layer, _operator in RENAMED.items():
    rule(_layer, domain=DOMAIN)(RULES[_operator])
for _layer, _operator in BROADCAST.items():
    layer(_layer)(broadcasting(_ITEMS[_operator]))
for _layer, _operator in BROADCAST_LOGIC.items():
    layer(_layer, gives=("bool",))(broadcasting(LOGIC[_operator], "bool"))
for _layer, _formula in FORMULAS.items():
    layer(_layer)(_formula)


@layer(*KEEP_TYPE.split())
def keep_type(ctx: NodeContext) -> Sequence[ValueType]:
    """Return the type of the first input."""
    return [like_input(ctx)]
