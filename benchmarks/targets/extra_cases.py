"""Cases of what onnx has no node tests of that can be run from files: sequences, random numbers, and imports.

Random numbers are measured by the shape of the result, and sequences with the operators that make and read them. A
model of a Relu imports an opset of another domain, which nothing in it uses: some runtimes refuse even that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser

from splitgraph.runtimes.measured import imports_label

Array = np.ndarray[Any, Any]
_X = np.arange(12, dtype=np.float32).reshape(3, 4)
_IMPORTS = (
    *(("ai.onnx.ml", opset) for opset in range(1, 6)),
    ("ai.onnx.preview", 1),
    ("ai.onnx.preview.training", 1),
    ("ai.onnx.training", 1),
    ("com.microsoft", 1),
    ("com.microsoft.nchwc", 1),
    ("custom", 1),
)
_CAST = ("float32", "int64", "int32", "bool", "float16", "float64", "uint8")
_Extra = tuple[str, str, ModelProto, Mapping[str, Array], Mapping[str, Array]]


def extra_tests() -> Iterator[_Extra]:
    """Name, operator, model, inputs and outputs of each."""
    for label, (nodes, wanted) in {**_sequences(), **_random()}.items():
        operator, _, _ = label.partition(" ")
        yield f"extra_{label.lower().replace(' ', '_')}", operator, _model(nodes, wanted), {"x": _X}, {"y": wanted}
    # Some runtimes have a type of their own for sizes, which they do not give back.
    sizes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Cast", ["s"], ["y"], to=TensorProto.FLOAT)]
    wanted = np.array(_X.shape, np.float32)
    yield "extra_shape", "Shape", _model(sizes, wanted), {"x": _X}, {"y": wanted}
    for name, (nodes, wanted) in _constants().items():
        yield f"extra_constant_{name}", "Constant", _model(nodes, wanted), {"x": _X}, {"y": wanted}
    yield from _casts()
    yield from _bodies()


def import_tests() -> Iterator[tuple[str, ModelProto, Mapping[str, Array], Mapping[str, Array]]]:
    """Name, model, inputs and outputs for each import, by the domain and its opset."""
    wanted = np.maximum(_X - 5, 0)
    for domain, opset in _IMPORTS:
        model = _model([helper.make_node("Relu", ["x"], ["y"])], wanted)
        model.opset_import[0].version, model.ir_version = 14, 8
        model.opset_import.append(helper.make_opsetid(domain, opset))
        yield imports_label(domain, opset), model, {"x": _X - 5}, {"y": wanted}


def _model(nodes: list[NodeProto], wanted: Array) -> ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(wanted.dtype)
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, _X.shape)],
        [helper.make_tensor_value_info("y", kind, wanted.shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def _zero() -> NodeProto:
    return helper.make_node("Constant", [], ["zero"], value=helper.make_tensor("zero", TensorProto.INT64, [], [0]))


def _sequences() -> dict[str, tuple[list[NodeProto], Array]]:
    node = helper.make_node
    pair = node("SequenceConstruct", ["x", "x"], ["s"])
    at = node("SequenceAt", ["s", "zero"], ["y"])
    first = [_zero(), pair, at]
    return {
        "SequenceConstruct": (first, _X),
        "SequenceAt": (first, _X),
        "SequenceAt by size": (
            [
                node("SequenceConstruct", ["x"] * 4, ["s"]),
                node("Shape", ["x"], ["sizes"]),
                _zero(),
                node("Gather", ["sizes", "zero"], ["place"]),
                node("SequenceAt", ["s", "place"], ["y"]),
            ],
            _X,
        ),
        "ConcatFromSequence": ([pair, node("ConcatFromSequence", ["s"], ["y"], axis=0)], np.concatenate([_X, _X])),
        "ConcatFromSequence columns": (
            [pair, node("ConcatFromSequence", ["s"], ["y"], axis=1)],
            np.concatenate([_X, _X], 1),
        ),
        "ConcatFromSequence stacks": (
            [pair, node("ConcatFromSequence", ["s"], ["y"], axis=1, new_axis=1)],
            np.stack([_X, _X], 1),
        ),
        "SequenceLength": ([pair, node("SequenceLength", ["s"], ["y"])], np.array(2, np.int64)),
        "SequenceEmpty": (
            [node("SequenceEmpty", [], ["e"]), node("SequenceInsert", ["e", "x"], ["s"]), _zero(), at],
            _X,
        ),
        "SequenceEmpty float": (
            [node("SequenceEmpty", [], ["e"], dtype=1), node("SequenceInsert", ["e", "x"], ["s"]), _zero(), at],
            _X,
        ),
        "SequenceInsert": ([pair, node("SequenceInsert", ["s", "x"], ["t"]), _zero(), _at("t")], _X),
        "SequenceErase": ([pair, _zero(), node("SequenceErase", ["s", "zero"], ["t"]), _at("t")], _X),
    }


def _constants() -> dict[str, tuple[list[NodeProto], Array]]:
    """A Constant of each kind and type that models have, which is added to the input."""
    node = helper.make_node
    held = {dtype: {"value": numpy_helper.from_array(np.array([1, 0, 1, 1], dtype))} for dtype in _CAST}
    held |= {"int": {"value_int": 2}, "ints": {"value_ints": [1, 2, 3, 4]}}
    held |= {"float": {"value_float": 2.0}, "floats": {"value_floats": [1.0, 2.0, 3.0, 4.0]}}
    made = {}
    for name, attributes in held.items():
        (value,) = (each if isinstance(each, (int, float, list)) else numpy_helper.to_array(each)
                    for each in attributes.values())  # fmt: skip
        nodes = [node("Constant", [], ["c"], **attributes), node("Cast", ["c"], ["f"], to=TensorProto.FLOAT)]
        made[name] = ([*nodes, node("Add", ["x", "f"], ["y"])], np.asarray(_X + np.array(value, np.float32)))
    return made


_BODIES = {
    "Loop": """agraph (float[3, 4] x) => (float[3, 4] y) <int64 turns = {3}, bool goes = {1}> {
        y = Loop (turns, goes, x) <body = turn (int64 i, bool on, float[] before) => (bool still, float[] after) {
            still = Identity (on)  after = Add (before, x) }> }""",
    "Loop ": """agraph (float[3, 4] x) => (float[3, 3, 4] y) <int64 turns = {3}, bool goes = {1}> {
        last, y = Loop (turns, goes, x)
            <body = turn (int64 i, bool on, float[] before) => (bool still, float[] after, float[] each) {
            still = Identity (on)  after = Add (before, x)  each = Relu (after) }> }""",
    "Loop  ": """agraph (float[3, 4] x) => (float[9, 4] y) <int64 turns = {3}, bool goes = {1}> {
        none = SequenceEmpty ()
        all = Loop (turns, goes, none)
            <body = turn (int64 i, bool on, seq(float[3, 4]) before) => (bool still, seq(float[3, 4]) after) {
            still = Identity (on)  each = Relu (x)  after = SequenceInsert (before, each) }>
        y = ConcatFromSequence <axis = 0> (all) }""",
    "SequenceAt": """agraph (float[3, 4] x) => (float[1, 4] y)
        <int64 one = {1}, bool goes = {1}, float[1, 4] none = {0, 0, 0, 0}> {
        parts = SplitToSequence <axis = 0> (x, one)  turns = SequenceLength (parts)
        y = Loop (turns, goes, none)
            <body = turn (int64 i, bool on, float[1, 4] before) => (bool still, float[1, 4] after) {
            still = Identity (on)  part = SequenceAt (parts, i)  after = Add (before, part) }> }""",
    "Scan": """agraph (float[3, 4] x) => (float[3, 4] y) <float[4] start = {0, 0, 0, 0}> {
        last, y = Scan <num_scan_inputs = 1, body = step (float[] before, float[] row) => (float[] after, float[] out)
            { after = Add (before, row)  out = Identity (after) }> (start, x) }""",
    "If": """agraph (float[3, 4] x) => (float[3, 4] y) <float limit = {0}> {
        sum = ReduceSum <keepdims = 0> (x)  is_more = Greater (sum, limit)
        y = If (is_more) <then_branch = more () => (float[] a) { a = Relu (x) },
                          else_branch = less () => (float[] b) { b = Neg (x) }> }""",
}


def _bodies() -> Iterator[_Extra]:
    """Loops with a sum, collected results and a sequence, one over parts, a Scan and an If, with bodies that read outer
    values.
    """
    total = np.cumsum(np.stack([_X] * 4), axis=0)
    wanted = {
        "Loop": total[3],
        "Loop ": total[1:],
        "Loop  ": np.concatenate([_X] * 3),
        "SequenceAt": np.sum(_X, axis=0, keepdims=True),
        "Scan": np.cumsum(_X, axis=0),
        "If": _X,
    }
    for number, (operator, text) in enumerate(_BODIES.items()):
        model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> {text}')
        yield f"extra_body{number}", operator.strip(), model, {"x": _X}, {"y": wanted[operator].astype(np.float32)}


def _casts() -> Iterator[_Extra]:
    """A Cast between all types that models have."""
    for source in _CAST:
        for to in _CAST:
            if source != to:
                x = (_X % 3).astype(source)
                kind = helper.np_dtype_to_tensor_dtype(np.dtype(to))
                model = _model([helper.make_node("Cast", ["x"], ["y"], to=kind)], x.astype(to))
                model.graph.input[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(source))
                yield f"extra_cast_{source}_{to}", "Cast", model, {"x": x}, {"y": x.astype(to)}


def _at(name: str) -> NodeProto:
    return helper.make_node("SequenceAt", [name, "zero"], ["y"])


def _random() -> dict[str, tuple[list[NodeProto], Array]]:
    node, shape = helper.make_node, np.array(_X.shape, np.int64)
    last = [node("Add", ["x", "r"], ["a"]), node("Shape", ["a"], ["y"])]
    return {
        "RandomNormal": ([node("RandomNormal", [], ["r"], shape=_X.shape), *last], shape),
        "RandomUniform": ([node("RandomUniform", [], ["r"], shape=_X.shape), *last], shape),
        "RandomNormalLike": ([node("RandomNormalLike", ["x"], ["r"]), *last], shape),
        "RandomUniformLike": ([node("RandomUniformLike", ["x"], ["r"]), *last], shape),
        "Multinomial": (
            [node("Multinomial", ["x"], ["r"], sample_size=5), node("Shape", ["r"], ["y"])],
            np.array([3, 5], np.int64),
        ),
    }
