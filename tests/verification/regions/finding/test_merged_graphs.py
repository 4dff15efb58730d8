"""A property of merging: of random graphs with many equal nodes, the merged one computes the same, bit for bit."""

from __future__ import annotations

import random

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from splitgraph.inference import infer_model
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.regions.finding.find import ModelRegions
from splitgraph.verification.regions.finding.sides import ModelSide

STEPS = 14
CONSTANTS = (1, 1, 2, 3, 2)


def node(draw: random.Random, number: int, values: list[str]) -> onnx.NodeProto:
    """Return a node that reads some of the first values, so that many are alike."""
    one, other, made = draw.choice(values[:4]), draw.choice(values[:4]), f"v{number}"
    limit = f"c{draw.randrange(len(CONSTANTS))}"
    kind = draw.randrange(5)
    if kind == 0:
        return helper.make_node(draw.choice(["Sin", "Neg", "Tanh"]), [one], [made])
    if kind == 1:
        return helper.make_node(draw.choice(["Add", "Sub", "Mul"]), [one, draw.choice([other, limit])], [made])
    if kind == 2:
        return helper.make_node("Softmax", [one], [made], axis=draw.choice([0, 1]))
    if kind == 3:
        return helper.make_node("Clip", [one, limit], [made])
    branches = {}
    for name, inner in (("then_branch", [one]), ("else_branch", [one, other])):
        result = helper.make_tensor_value_info(f"{name}{number}", TensorProto.FLOAT, None)
        operator = draw.choice(["Sin", "Neg"]) if len(inner) == 1 else "Add"
        branches[name] = helper.make_graph([helper.make_node(operator, inner, [result.name])], name, [], [result])
    return helper.make_node("If", ["g"], [made], **branches)


def random_model(seed: int) -> onnx.ModelProto:
    draw = random.Random(seed)
    values = ["x", "u"]
    nodes = []
    for number in range(STEPS):
        nodes.append(node(draw, number, values))
        values.append(f"v{number}")
    results = dict.fromkeys([values[-1], *draw.sample(values[2:], 3)])
    inputs = [helper.make_tensor_value_info("g", TensorProto.BOOL, [])]
    inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in ("x", "u")]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results]
    constants = [onnx.numpy_helper.from_array(np.float32(c), f"c{n}") for n, c in enumerate(CONSTANTS)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def run(model: onnx.ModelProto, seed: int, *, flag: bool) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    numbers = np.random.default_rng(seed).standard_normal((2, 2, 4)).astype(np.float32)
    found: list[np.ndarray] = session.run(None, {"g": np.array(flag), "x": numbers[0], "u": numbers[1]})
    return found


def compared(model: onnx.ModelProto) -> ComparedModel:
    return ComparedModel(model, model, infer_model(model, fill=False))


@pytest.mark.parametrize("seed", range(30))
def test_a_merged_graph_computes_the_same(seed: int) -> None:
    model = random_model(seed)
    merged = onnx.ModelProto()
    merged.CopyFrom(model)
    del merged.graph.node[:]
    merged.graph.node.extend(ModelSide(compared(model)).nodes)
    for flag in (True, False):
        for one, other in zip(run(model, seed, flag=flag), run(merged, seed, flag=flag), strict=True):
            np.testing.assert_array_equal(one, other)
    first, second = compared(model), compared(merged)
    assert ModelRegions(first, second).regions == []
    assert ModelRegions(second, first).regions == []


def test_many_nodes_are_merged() -> None:
    models = [random_model(seed) for seed in range(30)]
    left = sum(len(ModelSide(compared(model)).nodes) for model in models)
    assert left < 0.7 * STEPS * len(models)
