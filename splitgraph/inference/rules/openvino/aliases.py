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
from splitgraph.model.schemas.kinds import BROADCASTS, COMPARED, EACH, LAYER_OPERATORS, LOGICAL, names
from splitgraph.model.value_type import ValueType
from splitgraph.splits.openvino_split_1 import DOMAIN

# Layers with rules of their own. Elements of Relu and Round are not followed: a layer may round halves in another way.
_OF_ITS_OWN = names("PReLU ReLU Relu Round")
# Only the name differs: ONNX's rule is the layer's.
RENAMED: Mapping[str, str] = {
    **{layer: op for layer, op in LAYER_OPERATORS.items() if op in EACH and layer not in _OF_ITS_OWN},
    "Einsum": "Einsum",
    # No operator of ONNX, but a boolean for each element, too.
    "IsFinite": "IsNaN",
}
# The elements are those of ONNX's operator (with an attribute); `auto_broadcast` says how the shapes fit each other.
_OF_TWO = {layer: op for layer, op in LAYER_OPERATORS.items() if op in BROADCASTS and layer not in ("Divide", "Select")}
BROADCAST_LOGIC: Mapping[str, str] = {layer: op for layer, op in _OF_TWO.items() if op in COMPARED | LOGICAL}
BROADCAST: Mapping[str, str] = {
    **{layer: op for layer, op in _OF_TWO.items() if layer not in BROADCAST_LOGIC},
    "Mod": "Mod, fmod=1",
}
# The output has the type and shape of the first input.
KEEP_TYPE = """
    BatchNormInference CumSum ErfInv FakeConvert GRN GatherTree HSigmoid Inverse LRN LogSoftmax MVN NormalizeL2 ReLU
    Relu Reverse Roll Round ShuffleChannels SliceScatter SoftMax
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
