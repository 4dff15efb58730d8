"""The models that the benchmarks make are valid, run, and are what the benchmarks say they are."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
import onnxruntime
import pytest

import splitgraph
from splitgraph.dim import Dim, evaluate, symbols_of

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from called_functions import MODELS as CALLED
from classic_gpt2 import classic_gpt2
from detection import detection
from families import FAMILIES
from unrolled import unrolled

PASTS = {"P": 3, "P0": 3, "P1": 6}
SIZES = {"B": 2, "T": 5, "N": 12, "s": 9, "TT": 8, "TT0": 8, "TT1": 11, **PASTS}
# The size of what has no name above: memories of the unrolled loop, values that are joined.
OTHER = 3

MODELS = {
    "classic GPT-2, opset 11": classic_gpt2(2),
    "classic GPT-2, opset 13": classic_gpt2(2, 13),
    "classic GPT-2, own symbols": classic_gpt2(2, 13, own_symbols=True),
    "detection, opset 11": detection(3),
    "detection, opset 13": detection(3, 13),
    "unrolled": unrolled(200),
    "squares": FAMILIES["squares"].make(1),
    **{name: make(12) for name, make in CALLED.items()},
    # Drawn lengths of a Split do not sum up.
    **{n: family.make(4) for n, family in FAMILIES.items() if n not in ("squares", "chained Splits with lengths")},
}
# A Split of 12 elements with these lengths, which are 1 + 2 + 3 + 4.
GIVEN = {"explicit lengths": {"N": 10}}


@pytest.mark.parametrize("name", MODELS)
def test_models_of_the_benchmarks_run_and_have_the_inferred_shapes(name: str) -> None:
    model, sizes = MODELS[name], SIZES | GIVEN.get(name, {})
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    given = {value.name: _array(value, sizes) for value in model.graph.input}
    results = session.run(None, given)
    analysis = splitgraph.infer(model)
    assert analysis.ok
    for value, result in zip(model.graph.output, results, strict=True):
        shape = analysis.types[value.name].shape
        assert shape is not None and len(shape) == result.ndim
        for dim, size in zip(shape, result.shape, strict=True):
            names = symbols_of(dim) if isinstance(dim, Dim) else frozenset()
            # What a generated symbol is, the sizes of the inputs do not tell: how many boxes remain, for one.
            is_told = names.isdisjoint(analysis.generated)
            assert dim is not None and (not is_told or evaluate(dim, _bound(names, sizes)) == size), value.name


def test_the_unrolled_loop_has_no_node_that_repeats_another() -> None:
    analysis = splitgraph.infer(unrolled(500))
    visits = Counter(id(visit) for detail in analysis.details.graphs.values() for visit in detail.visits)
    assert set(visits.values()) == {1}


def test_functions_give_what_the_inlined_blocks_give() -> None:
    shapes, nodes = [], []
    for make in CALLED.values():
        model = make(12)
        analysis = splitgraph.infer(model)
        shapes.append(str(analysis.types[model.graph.output[0].name]))
        inlined = onnx.inliner.inline_local_functions(model)
        nodes.append([node.op_type for node in inlined.graph.node])
    assert shapes == shapes[:1] * len(CALLED)
    assert nodes == nodes[:1] * len(CALLED)
    assert len(nodes[0]) == 8 * 12


def _array(value: onnx.ValueInfoProto, sizes: dict[str, int]) -> np.ndarray:
    declared = value.type.tensor_type
    shape = [dim.dim_value or sizes.get(dim.dim_param, OTHER) for dim in declared.shape.dim]
    random = np.random.default_rng(0)
    if declared.elem_type == onnx.TensorProto.INT64:
        return random.integers(0, 2, shape)
    return random.random(shape, dtype=np.float32)


def _bound(names: frozenset[str], sizes: dict[str, int]) -> dict[str, int]:
    return {name: sizes.get(name, OTHER) for name in names}
