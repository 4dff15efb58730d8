"""The pages that the tests open; each is made once in a process."""

from __future__ import annotations

import random
import sys
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

import splitgraph
from splitgraph.reports.html.changes_page import changes_page
from splitgraph.reports.html.model_page import model_page

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "models"
HOSTILE = "</script><img src=x onerror=\"document.title='hit'\"><b>&amp;\u202e"


@cache
def page_of(name: str) -> str:
    """The page of a model in `models/`."""
    return model_page(splitgraph.infer(MODELS / name), name)


@cache
def gpt2() -> str:
    """GPT-2 as it is exported, 12 layers and 1,680 nodes."""
    return model_page(splitgraph.infer(_benchmark_models().decoder(12)), "gpt2.onnx")


@cache
def yolo(repeats: int = 4) -> str:
    """C2f blocks as in YOLOv8, each with a split whose halves go different ways, and convolutions in between."""
    return model_page(splitgraph.infer(_yolo(repeats)), "yolo.onnx")


@cache
def large() -> str:
    """20,000 nodes, a third of them splits of one size."""
    return model_page(splitgraph.infer(_benchmark_models().splits(20_000)), "large.onnx")


@cache
def varied(nodes: int) -> str:
    """A chain of splits of which no two are alike, so that nothing is folded."""
    parts: list[onnx.NodeProto] = []
    value = "x"
    for i in range(nodes // 3):
        parts.append(
            helper.make_node("Split", [value], [f"a{i}", f"b{i}"], name=f"split_{i}", axis=1, split=[i + 1, 9999 - i])
        )
        parts.append(helper.make_node("Relu", [f"b{i}"], [f"c{i}"], name=f"relu_{i}"))
        parts.append(helper.make_node("Concat", [f"a{i}", f"c{i}"], [f"d{i}"], name=f"join_{i}", axis=1))
        value = f"d{i}"
    return model_page(splitgraph.infer(_model(parts, {"x": ["N", 10000]}, [value], 11)), "varied.onnx")


@cache
def unfolded(nodes: int = 60) -> str:
    """A chain of plain nodes without a split, whose operators do not repeat."""
    ops = ["Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Exp", "Floor", "Ceil", "Sqrt", "Erf", "Sin", "Cos", "Softplus"]
    chosen = random.Random(1).choices(ops, k=nodes)
    parts = [
        helper.make_node(op, [f"v{i}"], [f"v{i + 1}"], name=f"/encoder/layer/node_{i}") for i, op in enumerate(chosen)
    ]
    return model_page(splitgraph.infer(_model(parts, {"v0": ["N", 8]}, [f"v{nodes}"], 13)), "plain.onnx")


@cache
def varied_wide() -> str:
    """One input that 60 branches read."""
    ops = ["Relu", "Sigmoid", "Tanh", "Abs", "Neg"]
    nodes = [helper.make_node(ops[i % 5], ["x"], [f"y{i}"], name=f"branch_{i}") for i in range(60)]
    return model_page(splitgraph.infer(_model(nodes, {"x": ["N", 8]}, [f"y{i}" for i in range(60)], 13)), "wide.onnx")


@cache
def long_names() -> str:
    """Two splits with names that share a long path in front."""
    path = "/transformer/text_model/encoder/layers"
    nodes = [
        helper.make_node("Split", [f"x{i}"], [f"a{i}", f"x{i + 1}"], name=f"{path}.{i}/attention/Split", axis=0)
        for i in range(2)
    ]
    return model_page(splitgraph.infer(_model(nodes, {"x0": [8]}, ["x2"], 13)), "long.onnx")


@cache
def constants() -> str:
    """A convolution with its weights, attributes and metadata, and a small Constant."""
    weight = helper.make_tensor("weight", TensorProto.FLOAT, [8, 3, 3, 3], [i / 8 for i in range(-108, 108)])
    shape = helper.make_node("Constant", [], ["shape"], value=helper.make_tensor("", TensorProto.INT64, [2], [0, -1]))
    conv = helper.make_node("Conv", ["x", "weight"], ["y"], name="conv", pads=[1, 1, 1, 1], strides=[2, 2])
    flat = helper.make_node("Reshape", ["y", "shape"], ["z"], name="flat")
    model = _model([shape, conv, flat], {"x": ["N", 3, 8, 8]}, ["z"], 13)
    model.graph.initializer.append(weight)
    model.producer_name, model.producer_version = "exporter", "2.1"
    model.opset_import.append(helper.make_opsetid("com.example", 3))
    model.metadata_props.append(onnx.StringStringEntryProto(key="licence", value="MIT"))
    return model_page(splitgraph.infer(model), "conv.onnx")


@cache
def symbols() -> str:
    """Requirements on the symbols of inputs, and on symbols that splitgraph made."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"], name="places"),
        helper.make_node("Split", ["places"], ["p", "q"], name="halves", axis=1),
        helper.make_node("Split", ["x"], ["a", "b"], name="columns", axis=1),
    ]
    return model_page(splitgraph.infer(_model(nodes, {"x": ["N", "M"]}, ["a", "b"], 13)), "symbols.onnx")


@cache
def normalized() -> str:
    """Layers with a LayerNormalization, and what they become at opset 13."""
    nodes: list[onnx.NodeProto] = []
    for i in range(6):
        nodes.append(
            helper.make_node("LayerNormalization", [f"x{i}", "scale"], [f"n{i}"], name=f"/layers.{i}/norm", axis=-1)
        )
        nodes.append(helper.make_node("Relu", [f"n{i}"], [f"x{i + 1}"], name=f"/layers.{i}/relu"))
    before = _model(nodes, {"x0": ["N", 4]}, ["x6"], 17)
    before.graph.initializer.append(helper.make_tensor("scale", TensorProto.FLOAT, [4], [1.0] * 4))
    return _rewritten(before, splitgraph.downgrade(before, 13), ("before.onnx", "after.onnx"))


@cache
def wrong() -> str:
    """Splits with an error and with a condition, and names that would be markup."""
    nodes = [
        helper.make_node("Split", ["x"], [f"{HOSTILE} a", "b"], name=HOSTILE, axis=1),
        helper.make_node("Relu", ["b"], ["c"], name="javascript:alert(1)"),
        helper.make_node("Split", ["z"], ["p", "q", "r"], name="thirds", axis=1),
    ]
    model = _model(nodes, {"x": ["<i>N</i>", 7], "z": ["N", "M"]}, [f"{HOSTILE} a", "c", "q"], 13)
    return model_page(splitgraph.infer(model), f"{HOSTILE}.onnx", title=HOSTILE)


@cache
def with_findings() -> str:
    """Two heads of a model, the second of which is wrong."""
    nodes = [
        helper.make_node("Relu", ["hidden"], ["features"], name="body/Relu"),
        helper.make_node("Split", ["features"], ["scores", "boxes"], name="head/Split", axis=1, split=[4, 2]),
        helper.make_node("Sigmoid", ["scores"], ["probabilities"], name="head/Sigmoid"),
        helper.make_node("Split", ["tokens"], ["query", "key", "value"], name="attention/Split", axis=1),
        helper.make_node("MatMul", ["query", "key"], ["weights"], name="attention/MatMul"),
        helper.make_node("Split", ["boxes"], ["x", "y", "w"], name="boxes/Split", axis=1),
        helper.make_node("Concat", ["x", "y", "w"], ["corners"], name="boxes/Concat", axis=1),
    ]
    inputs: dict[str, list[int | str]] = {"hidden": ["batch", 6], "tokens": ["length", "width"]}
    model = _model(nodes, inputs, ["probabilities", "corners", "weights", "value"], 11)
    return model_page(splitgraph.infer(model), "detector.onnx")


def _cycle() -> onnx.ModelProto:
    nodes = [helper.make_node("Split", ["b"], ["a", "b"], name="s"), helper.make_node("Relu", ["a"], ["c"], name="r")]
    return _model(nodes, {}, ["c"], 13)


def _out_of_order() -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", ["a"], ["c"]), helper.make_node("Split", ["x"], ["a", "b"])]
    return _model(nodes, {"x": [4, 2]}, ["c", "b"], 13)


def _no_nodes() -> onnx.ModelProto:
    return _model([], {"x": [1]}, ["x"], 13)


def _one_name() -> onnx.ModelProto:
    nodes = [helper.make_node("Split", [f"x{i}"], [f"a{i}", f"x{i + 1}"], name="same", axis=0) for i in range(3)]
    return _model(nodes, {"x0": [8]}, ["x3"], 13)


def _many_parts() -> onnx.ModelProto:
    parts = [f"p{i}" for i in range(3000)]
    nodes = [helper.make_node("Split", ["x"], parts, axis=0, num_outputs=3000)]
    nodes += [helper.make_node("Relu", [part], [f"{part} out"]) for part in parts]
    return _model(nodes, {"x": ["N"]}, [f"{part} out" for part in parts], 18)


def _many_inputs() -> onnx.ModelProto:
    names = [f"x{i}" for i in range(1000)]
    return _model([helper.make_node("Concat", names, ["y"], axis=0)], {name: ["N"] for name in names}, ["y"], 18)


def _only_shapes() -> onnx.ModelProto:
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Split", ["s"], ["a", "b"], num_outputs=2)]
    return _model(nodes, {"x": ["N", "M"]}, [], 18)


def _nested() -> onnx.ModelProto:
    return _benchmark_models().nested(30)


ODD = {
    "a cycle": _cycle,
    "nodes out of order": _out_of_order,
    "no nodes": _no_nodes,
    "nodes of one name": _one_name,
    "3,000 parts": _many_parts,
    "1,000 inputs": _many_inputs,
    "shapes only": _only_shapes,
    "30 nested Ifs": _nested,
}


@cache
def odd(name: str) -> str:
    """A model that exporters do not write, but that somebody will have."""
    return model_page(splitgraph.infer(ODD[name]()), f"{name}.onnx")


@cache
def upgraded() -> str:
    """GPT-2 of opset 11 and its upgrade, with the reasons."""
    before = onnx.load(MODELS / "gpt2.opset11.onnx")
    return _rewritten(before, splitgraph.upgrade(before, 18), ("gpt2.opset11.onnx", "gpt2.opset18.onnx"))


@cache
def exported_twice() -> str:
    """GPT-2 as PyTorch exports it at two opsets: a difference without reasons."""
    paths = MODELS / "gpt2.opset11.onnx", MODELS / "gpt2.opset18.onnx"
    analyses = splitgraph.infer(paths[0]), splitgraph.infer(paths[1])
    return changes_page(*analyses, splitgraph.diff(*paths), (paths[0].name, paths[1].name))


@cache
def sliced() -> str:
    """A C2f block whose split became slices."""
    before = onnx.load(MODELS / "c2f.opset17.onnx")
    return _rewritten(before, splitgraph.convert(before, "slice"), ("c2f.onnx", "c2f.slice.onnx"))


def _rewritten(before: onnx.ModelProto, rewrite: splitgraph.Rewrite[onnx.ModelProto], names: tuple[str, str]) -> str:
    analyses = splitgraph.infer(before), splitgraph.infer(rewrite.model)
    return changes_page(*analyses, splitgraph.diff(before, rewrite.model), names, changes=rewrite.changes)


def _benchmark_models() -> Any:
    # The benchmarks import each other by name.
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import models
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return models


def _model(
    nodes: list[onnx.NodeProto], inputs: dict[str, list[int | str]], outputs: list[str], opset: int
) -> onnx.ModelProto:
    declared = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "g", declared, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def _yolo(repeats: int) -> onnx.ModelProto:
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def conv(value: str, name: str, given: int, made: int, size: int = 1) -> str:
        shape = [made, given, size, size]
        weights.append(
            helper.make_tensor(f"{name}.weight", TensorProto.FLOAT, shape, [0.0] * (made * given * size * size))
        )
        pads = [size // 2] * 4
        nodes.append(
            helper.make_node("Conv", [value, f"{name}.weight"], [f"{name}.conv"], name=f"{name}/conv", pads=pads)
        )
        nodes.append(helper.make_node("Sigmoid", [f"{name}.conv"], [f"{name}.sigmoid"], name=f"{name}/act/Sigmoid"))
        nodes.append(helper.make_node("Mul", [f"{name}.conv", f"{name}.sigmoid"], [name], name=f"{name}/act/Mul"))
        return name

    value = conv("images", "model.0", 3, 8, 3)
    for i in range(1, repeats + 1):
        block = f"model.{i}"
        wide = conv(value, f"{block}/cv1", 8, 8)
        nodes.append(
            helper.make_node(
                "Split", [wide], [f"{block}.left", f"{block}.right"], name=f"{block}/Split", axis=1, num_outputs=2
            )
        )
        inner = conv(conv(f"{block}.right", f"{block}/m/cv1", 4, 4, 3), f"{block}/m/cv2", 4, 4, 3)
        nodes.append(helper.make_node("Add", [f"{block}.right", inner], [f"{block}.sum"], name=f"{block}/m/Add"))
        joined = [f"{block}.left", f"{block}.right", f"{block}.sum"]
        nodes.append(helper.make_node("Concat", joined, [f"{block}.all"], name=f"{block}/Concat", axis=1))
        value = conv(f"{block}.all", f"{block}/cv2", 12, 8)
    model = _model(nodes, {"images": ["batch", 3, "height", "width"]}, [value], 18)
    model.graph.initializer.extend(weights)
    return model
