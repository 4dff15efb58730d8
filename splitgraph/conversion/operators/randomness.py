"""Bernoulli below opset 15, and bfloat16 of it below opset 22."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.adapter_context import Step
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

unchanged("Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike", 22)


@downward("Bernoulli", 15, 22)
def bernoulli_by_uniform(step: Step) -> None:
    """1 where a number drawn from [0, 1) is less than the probability: exact in distribution, as the numbers that a
    seed gives are left to the runtime. Not the function body, which compares the other way round.
    """
    dtype = step.known_dtype()
    wide = dtype if dtype == "float64" else "float32"
    seed = step.known_value("seed")
    drawn = step.emit("RandomUniformLike", [step.inputs[0]], "drawn", dtype=DTYPE_NUMBERS[wide], seed=seed)
    chances = step.inputs[0]
    if dtype != wide:
        chances = step.emit("Cast", [chances], "chances", to=TensorProto.FLOAT)
    result = step.emit("Less", [drawn, chances], "is_one")
    step.replace("Cast", [result], to=step.known_value("dtype", DTYPE_NUMBERS[dtype]))
