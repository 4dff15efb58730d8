"""Measure how much rounding changes the outputs of a model, to tell rounding from a mistake in the rewrite.

Some rewrites compute an operator with other arithmetic, which rounds differently. What follows may amplify that: the
logarithm of a sum that cancels, or a step of a quantization. So, if the outputs differ by more than the tolerances:

1. `isolate` runs the rewritten operators alone, on the values of the original model. They must agree with the
   original operators: noise that hides rounding would also hide a mistake there.
2. The original model runs again with noise of about one rounding error on the floating-point inputs and outputs of
   those operators, and nowhere else (Monte Carlo arithmetic: Parker, Pierce and Eggert, 2000).
3. `allowance` allows differences of a similar size as the changes in these runs.

Noise on the inputs of an operator stands for the rounding inside it, such as that of a sum. Weights and other constants
get no noise: some of them are sizes or scales of shapes. Noise on the inputs of the model would not work: integers and
quantization absorb it before it reaches the rewritten operators, and it would change operators that were not rewritten.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import onnx

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.model.attributes import make_attribute, make_node
from splitgraph.model.names import used_names
from splitgraph.model.value_type import DTYPE_NUMBERS
from splitgraph.verification.engine_settings import DEFAULT, EngineSettings
from splitgraph.verification.engines.engine_process import Attempt
from splitgraph.verification.models.model_files import weights_of
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.rounding.allowance import RoundingAllowance
from splitgraph.verification.rounding.isolate import Case, agree_in_isolation, isolate, run_model

# The most runs with noise on each case, and how many of them use one copy of the model. onnxruntime draws other numbers
# in each run, the reference evaluator draws the same again. The first runs show most; the others catch elements that
# changed little by chance.
_RUNS = 16
_RUNS_OF_ONE_COPY = {"onnxruntime": 4}
# A model with more bytes of weights is not copied for repeated runs.
_LARGEST_WEIGHTS = 2**30

# The largest relative change of a number by noise: two to four steps to a neighbouring number.
_NOISE: Mapping[str, float] = {
    "float64": 2.0**-51,
    "float32": 2.0**-22,
    "float16": 2.0**-9,
    "bfloat16": 2.0**-6,
}
# Operators whose own kernels round worse, and by how much. onnxruntime 1.31 computes a transform whose length is not a
# power of 2 with Bluestein's algorithm in float32, and is off by 150 steps (at most 700). The same transform as a
# matrix product is off by one step.
_COARSE: Mapping[str, float] = {"DFT": 2.0**7, "STFT": 2.0**7}
# onnxruntime draws random numbers in these types.
_DRAWN = ("float64", "float32")
# More seeds than any model needs.
_SEEDS = 2**18


def measure_rounding(
    before: ComparedModel,
    after: ComparedModel,
    cases: Mapping[int, Case],
    engine: str,
    deadline: float,
    tolerances: tuple[float, float],
    settings: EngineSettings = DEFAULT,
) -> Iterator[RoundingAllowance]:
    """Run the first model with noise, and yield the allowance after each round of runs: one object, which grows.

    Nothing is yielded if the second model has no rewritten arithmetic, or if that does not agree in isolation. The
    iteration ends when the time is over or no run succeeds.
    """
    isolated = isolate(before, after)
    if isolated is None or weights_of([before.model]) > _LARGEST_WEIGHTS:
        return
    allowance, repetitions = RoundingAllowance(), _RUNS_OF_ONE_COPY.get(engine, 1)
    attempts = [
        Attempt(case * repetitions + repetition, 0, known.inputs)
        for case, known in cases.items()
        for repetition in range(repetitions)
    ]
    try:
        if not agree_in_isolation(before, isolated, cases, engine, deadline, tolerances, settings):
            return
        for seed in range(_RUNS // repetitions):
            noisy = with_noise(before, isolated.positions, seed)
            rounded = run_model(noisy, before.folder, attempts, engine, deadline, settings)
            if not rounded:
                return
            for number, outputs in rounded.items():
                case = number // repetitions
                allowance.add(case, cases[case].outputs, outputs)
            allowance.largest_ratio = None
            yield allowance
    except OSError:  # there is no room for another copy of the model
        return


def rounding_note(allowance: RoundingAllowance) -> Diagnostic | None:
    """Return the note that rounding explains differences beyond the tolerances; None if there were none."""
    if allowance.largest_ratio is None:
        return None
    times = f"{allowance.largest_ratio:.2g} times"
    text = f"some elements differ by more than the tolerances, by at most {times} the measured rounding effect"
    return diagnostic("SG504", text, severity="info")


def with_noise(compared: ComparedModel, positions: Collection[int], seed: int) -> onnx.ModelProto:
    """Copy an ONNX model and add noise to the inputs and outputs of the nodes at some positions of its main graph."""
    assert isinstance(compared.model, onnx.ModelProto)
    noisy = onnx.ModelProto()
    noisy.CopyFrom(compared.model)
    taken = set(used_names(noisy))
    names = (name for number in itertools.count() if (name := f"noise_{number}") not in taken)
    dtypes = {name: value.dtype for name, value in compared.analysis.types.items()}
    constants = {name for node in noisy.graph.node if node.op_type == "Constant" for name in node.output}
    constants |= {tensor.name for tensor in noisy.graph.initializer}
    maker = _NoiseMaker(dtypes, names, itertools.count(_SEEDS * seed + 1), constants)
    nodes = [added for index, node in enumerate(noisy.graph.node) for added in maker.around(node, index in positions)]
    del noisy.graph.node[:]
    noisy.graph.node.extend(nodes)
    return noisy


@dataclass(frozen=True, slots=True)
class _NoiseMaker:
    """Adds noise around nodes. dtypes: the element type of each value."""

    dtypes: Mapping[str, str | None]
    names: Iterator[str]
    seeds: Iterator[int]
    constants: Collection[str]

    def around(self, given: onnx.NodeProto, is_noisy: bool) -> list[onnx.NodeProto]:
        """Return a copy of a node, with noise around it if it is noisy."""
        node = onnx.NodeProto()
        node.CopyFrom(given)
        return [*self._on_inputs(node), node, *self._on_outputs(node)] if is_noisy else [node]

    def _on_inputs(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        made: list[onnx.NodeProto] = []
        for name in dict.fromkeys(node.input):
            dtype = self.dtypes.get(name)
            if dtype is not None and dtype in _NOISE and name not in self.constants:
                noisy = next(self.names)
                made += self._noise(name, noisy, dtype, _COARSE.get(node.op_type, 1.0))
                node.input[:] = [noisy if input_name == name else input_name for input_name in node.input]
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
        """Return nodes that compute `target`: each element of `source` times a random number close to 1."""
        drawn = dtype if dtype in _DRAWN else "float32"
        read, noisy = source, target
        nodes = []
        if dtype != drawn:
            read, noisy = next(self.names), next(self.names)
            nodes.append(make_node("Cast", [source], [read], to=DTYPE_NUMBERS[drawn]))
        most, exponent, factor = _NOISE[dtype] * times, next(self.names), next(self.names)
        random = make_node("RandomUniformLike", [read], [exponent], dtype=DTYPE_NUMBERS[drawn])
        # The attributes are float32, which cannot hold a factor this close to 1; so they hold its logarithm.
        bounds = {"low": -most, "high": most, "seed": float(next(self.seeds))}
        random.attribute.extend(make_attribute(key, number) for key, number in bounds.items())
        nodes += [random, make_node("Exp", [exponent], [factor]), make_node("Mul", [read, factor], [noisy])]
        if dtype != drawn:
            nodes.append(make_node("Cast", [noisy], [target], to=DTYPE_NUMBERS[dtype]))
        return nodes
