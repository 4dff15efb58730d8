"""Bernoulli: written with RandomUniformLike below its first opset, and for bfloat16 below 22; the other random
operators do not change.
"""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.node_at_boundary import NodeAtBoundary
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

unchanged("Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike", 22)

unchanged("Bernoulli", 22)


@downward("Bernoulli", 15, 22)
def draw_bernoulli_from_uniform(node: NodeAtBoundary) -> None:
    """Gives 1 where a number from [0, 1) is less than the probability. The distribution is exact; the document leaves
    open which numbers a seed gives. The function body compares the other way round.
    """
    dtype = node.known_dtype()
    wide = dtype if dtype == "float64" else "float32"
    seed = node.known_value("seed")
    drawn = node.write("RandomUniformLike", [node.inputs[0]], "drawn", dtype=DTYPE_NUMBERS[wide], seed=seed)
    chances = node.inputs[0]
    if dtype != wide:
        chances = node.write("Cast", [chances], "chances", to=TensorProto.FLOAT)
    result = node.write("Less", [drawn, chances], "is_one")
    node.replace("Cast", [result], to=node.known_value("dtype", DTYPE_NUMBERS[dtype]))
