"""How far a model's own results move where rounding is all that changes.

Written as arithmetic, an operator rounds otherwise than its own kernel does, and what follows may magnify that: the
logarithm of a sum that cancels, a step of a quantization. To tell that from a mistake, the model is run again with
noise of about one rounding error on the floating-point inputs and outputs of those of its operators that were written
otherwise, and nowhere else (Monte Carlo arithmetic: Parker, Pierce and Eggert, 2000). What moves then, moves by
rounding.

Noise on the inputs stands for the rounding inside an operator, as of terms that are added up; weights and other
constants, some of which are sizes or scales of shapes, are left alone. Noise on the graph's inputs alone would not do:
it is absorbed by integers and by quantization before it comes to where the arithmetic is, and it would move what was
not rewritten.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import onnx

from splitgraph.execution.subjects import Subject
from splitgraph.graph.names import used_names
from splitgraph.node_making import make_attribute, make_node
from splitgraph.value_type import DTYPE_NUMBERS

# How far noise moves a number at most, relative to it: by two to four steps to a neighbouring number.
_NOISE: Mapping[str, float] = {
    "float64": 2.0**-51,
    "float32": 2.0**-22,
    "float16": 2.0**-9,
    "bfloat16": 2.0**-6,
}
# Operators whose own kernels are known to round worse, and by how much: onnxruntime takes a transform whose length is
# no power of 2 by Bluestein's algorithm in float32, and is off by 150 steps then (700 at most, seen in 1.31), where the
# transform written as a matrix product is off by one.
_COARSE: Mapping[str, float] = {"DFT": 2.0**7, "STFT": 2.0**7}
# The types in which onnxruntime draws random numbers.
_DRAWN = ("float64", "float32")
# More than any model has places for noise.
_SEEDS = 2**18


def with_noise(subject: Subject, places: Collection[int], seed: int) -> onnx.ModelProto:
    """A copy of an ONNX model with noise on what some nodes of its main graph read and give."""
    assert isinstance(subject.model, onnx.ModelProto)
    noisy = onnx.ModelProto()
    noisy.CopyFrom(subject.model)
    taken = set(used_names(noisy))
    names = (name for number in itertools.count() if (name := f"noise_{number}") not in taken)
    dtypes = {name: found.dtype for name, found in subject.analysis.types.items()}
    maker = _NoiseMaker(dtypes, names, itertools.count(_SEEDS * seed + 1), _constants(noisy.graph))
    nodes = [each for index, node in enumerate(noisy.graph.node) for each in maker.around(node, index in places)]
    del noisy.graph.node[:]
    noisy.graph.node.extend(nodes)
    return noisy


def _constants(graph: onnx.GraphProto) -> set[str]:
    found = {name for node in graph.node if node.op_type == "Constant" for name in node.output}
    return found | {tensor.name for tensor in graph.initializer}


@dataclass(frozen=True, slots=True)
class _NoiseMaker:
    """Puts noise around nodes; dtypes: of the values that they read and give."""

    dtypes: Mapping[str, str | None]
    names: Iterator[str]
    seeds: Iterator[int]
    constants: Collection[str]

    def around(self, given: onnx.NodeProto, is_place: bool) -> list[onnx.NodeProto]:
        """A copy of a node, with noise around it where there should be some."""
        node = onnx.NodeProto()
        node.CopyFrom(given)
        return [*self._on_inputs(node), node, *self._on_outputs(node)] if is_place else [node]

    def _on_inputs(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        made: list[onnx.NodeProto] = []
        for name in dict.fromkeys(node.input):
            dtype = self.dtypes.get(name)
            if dtype is not None and dtype in _NOISE and name not in self.constants:
                noisy = next(self.names)
                made += self._noise(name, noisy, dtype, _COARSE.get(node.op_type, 1.0))
                node.input[:] = [noisy if each == name else each for each in node.input]
        return made

    def _on_outputs(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        made: list[onnx.NodeProto] = []
        for position, name in enumerate(node.output):
            dtype = self.dtypes.get(name)
            if dtype is not None and dtype in _NOISE:
                quiet = next(self.names)
                made += self._noise(quiet, name, dtype, 1.0)
                node.output[position] = quiet
        return made

    def _noise(self, source: str, target: str, dtype: str, times: float) -> list[onnx.NodeProto]:
        """Nodes that give `target`, which is `source` with each element times a random number close to 1."""
        drawn = dtype if dtype in _DRAWN else "float32"
        read, noisy = source, target
        nodes = []
        if dtype != drawn:
            read, noisy = next(self.names), next(self.names)
            nodes.append(make_node("Cast", [source], [read], to=DTYPE_NUMBERS[drawn]))
        most, exponent, factor = _NOISE[dtype] * times, next(self.names), next(self.names)
        random = make_node("RandomUniformLike", [read], [exponent], dtype=DTYPE_NUMBERS[drawn])
        # The attributes are float32, which has no number this close to 1 but 1; as exponents they keep what they are.
        bounds = {"low": -most, "high": most, "seed": float(next(self.seeds))}
        random.attribute.extend(make_attribute(key, number) for key, number in bounds.items())
        nodes += [random, make_node("Exp", [exponent], [factor]), make_node("Mul", [read, factor], [noisy])]
        if dtype != drawn:
            nodes.append(make_node("Cast", [noisy], [target], to=DTYPE_NUMBERS[dtype]))
        return nodes
