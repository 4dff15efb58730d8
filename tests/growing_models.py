"""Models of one family each that grow with a number: what is asked of their dimensions must not grow faster.

A file of a few lines can say what takes all memory to write down: a size that is squared thirty times, or a product of
sums. Each family here was once slow. `FAMILIES` has them by name: a model of n, and an n that takes a moment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import onnx
from onnx import TensorProto, helper

Shape = list[int | str | None]

_OPSET = 18


class Family(NamedTuple):
    """make: the model of n. size: the n of the tests; `benchmarks/growth.py` measures larger ones."""

    make: Callable[[int], onnx.ModelProto]
    size: int


def _tensor(name: str, shape: Shape, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    initializers: list[onnx.TensorProto] | None = None,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "growing", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)


def _integers(name: str, values: list[int]) -> onnx.TensorProto:
    return helper.make_tensor(name, TensorProto.INT64, [len(values)], values)


def _of_sizes(
    nodes: list[onnx.NodeProto], size: str, inputs: list[onnx.ValueInfoProto], **more: list[int]
) -> onnx.ModelProto:
    """A model whose output has the size that the nodes compute, a tensor of one element."""
    made = [*nodes, helper.make_node("ConstantOfShape", [size], ["y"])]
    return _model(made, inputs, [_tensor("y", [None])], [_integers(name, values) for name, values in more.items()])


def squared(n: int) -> onnx.ModelProto:
    """N, squared n times."""
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    nodes += [helper.make_node("Mul", [f"s{i}", f"s{i}"], [f"s{i + 1}"]) for i in range(n)]
    return _of_sizes(nodes, f"s{n}", [_tensor("x", ["N"])])


def product_of_sums(n: int) -> onnx.ModelProto:
    """(d0 + N) * (d1 + N) * ..., n factors."""
    inputs = [_tensor("x", ["N"]), *(_tensor(f"x{i}", [f"d{i}"]) for i in range(n))]
    nodes = [helper.make_node("Shape", ["x"], ["n"])]
    for i in range(n):
        nodes.append(helper.make_node("Shape", [f"x{i}"], [f"t{i}"]))
        nodes.append(helper.make_node("Add", [f"t{i}", "n"], [f"a{i}"]))
        nodes.append(helper.make_node("Mul", [f"m{i - 1}", f"a{i}"] if i else [f"a{i}", "one"], [f"m{i}"]))
    return _of_sizes(nodes, f"m{n - 1}", inputs, one=[1])


def wide_concat(n: int) -> onnx.ModelProto:
    """A Concat of n dimensions."""
    inputs = [_tensor(f"x{i}", [f"d{i}", 4]) for i in range(n)]
    node = helper.make_node("Concat", [f"x{i}" for i in range(n)], ["y"], axis=0)
    return _model([node], inputs, [_tensor("y", [None, 4])])


def chained_concats(n: int) -> onnx.ModelProto:
    """The sum of n dimensions, one after the other; each partial sum is the size of a value."""
    inputs = [_tensor(f"x{i}", [f"d{i}", 4]) for i in range(n + 1)]
    nodes = [helper.make_node("Concat", [f"y{i}" if i else "x0", f"x{i + 1}"], [f"y{i + 1}"], axis=0) for i in range(n)]
    return _model(nodes, inputs, [_tensor(f"y{n}", [None, 4])])


def sum_of_quotients(n: int) -> onnx.ModelProto:
    """N//2 + N//3 + ... + N//n, one after the other."""
    nodes = [helper.make_node("Shape", ["x"], ["s1"]), helper.make_node("Shape", ["x"], ["size"])]
    for i in range(2, n + 1):
        nodes.append(helper.make_node("Div", ["size", f"k{i}"], [f"q{i}"]))
        nodes.append(helper.make_node("Add", [f"s{i - 1}", f"q{i}"], [f"s{i}"]))
    return _of_sizes(nodes, f"s{n}", [_tensor("x", ["N"])], **{f"k{i}": [i] for i in range(2, n + 1)})


def nested_quotients(n: int) -> onnx.ModelProto:
    """(...((N*A + 1)//3*A + 1)//3...), n levels deep."""
    nodes = [helper.make_node("Shape", ["x"], ["s0"]), helper.make_node("Shape", ["a"], ["size"])]
    for i in range(n):
        nodes.append(helper.make_node("Mul", [f"s{i}", "size"], [f"p{i}"]))
        nodes.append(helper.make_node("Add", [f"p{i}", "one"], [f"a{i}"]))
        nodes.append(helper.make_node("Div", [f"a{i}", "three"], [f"s{i + 1}"]))
    return _of_sizes(nodes, f"s{n}", [_tensor("x", ["N"]), _tensor("a", ["A"])], one=[1], three=[3])


def doubled_levels(n: int) -> onnx.ModelProto:
    """x//2 + x//3 of itself, n times: written out, each level is twice as long as the one before."""
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    for i in range(n):
        nodes.append(helper.make_node("Div", [f"s{i}", "two"], [f"h{i}"]))
        nodes.append(helper.make_node("Div", [f"s{i}", "three"], [f"t{i}"]))
        nodes.append(helper.make_node("Add", [f"h{i}", f"t{i}"], [f"s{i + 1}"]))
    return _of_sizes(nodes, f"s{n}", [_tensor("x", ["N"])], two=[2], three=[3])


def many_maxima(n: int) -> onnx.ModelProto:
    """The largest of n dimensions, one after the other."""
    inputs = [_tensor(f"x{i}", [f"d{i}"]) for i in range(n)]
    nodes = [helper.make_node("Shape", [f"x{i}"], [f"t{i}"]) for i in range(n)]
    nodes += [helper.make_node("Max", [f"m{i - 1}" if i > 1 else "t0", f"t{i}"], [f"m{i}"]) for i in range(1, n)]
    return _of_sizes(nodes, f"m{n - 1}", inputs)


def wide_maximum(n: int) -> onnx.ModelProto:
    """The largest of n dimensions, by one node."""
    inputs = [_tensor(f"x{i}", [f"d{i}"]) for i in range(n)]
    nodes = [helper.make_node("Shape", [f"x{i}"], [f"t{i}"]) for i in range(n)]
    nodes.append(helper.make_node("Max", [f"t{i}" for i in range(n)], ["m"]))
    return _of_sizes(nodes, "m", inputs)


def large_numbers(n: int) -> onnx.ModelProto:
    """N, times 2**62 n times."""
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    nodes += [helper.make_node("Mul", [f"s{i}", "factor"], [f"s{i + 1}"]) for i in range(n)]
    return _of_sizes(nodes, f"s{n}", [_tensor("x", ["N"])], factor=[2**62])


def tiled(n: int) -> onnx.ModelProto:
    """A tensor of N rows, repeated 2**40 times over, n times."""
    nodes = [helper.make_node("Tile", [f"y{i}" if i else "x", "repeats"], [f"y{i + 1}"]) for i in range(n)]
    return _model(nodes, [_tensor("x", ["N"])], [_tensor(f"y{n}", [None])], [_integers("repeats", [2**40])])


def explicit_lengths(n: int) -> onnx.ModelProto:
    """A Split into n parts of given lengths, of which one is read."""
    lengths = _integers("lengths", [1 + i % 3 for i in range(n)])
    node = helper.make_node("Split", ["x", "lengths"], [f"y{i}" for i in range(n)], axis=0)
    return _model([node], [_tensor("x", ["N", 4])], [_tensor("y0", [None, 4])], [lengths])


def many_outputs(n: int) -> onnx.ModelProto:
    """A Split into n chunks, the last one smaller."""
    node = helper.make_node("Split", ["x"], [f"y{i}" for i in range(n)], axis=0, num_outputs=n)
    return _model([node], [_tensor("x", ["N", 4])], [_tensor("y0", [None, 4])])


def symbolic_lengths(n: int) -> onnx.ModelProto:
    """A Concat of n dimensions, split again by these."""
    inputs = [_tensor(f"x{i}", [f"d{i}", 4]) for i in range(n)]
    nodes = [helper.make_node("Concat", [f"x{i}" for i in range(n)], ["whole"], axis=0)]
    nodes += [helper.make_node("Shape", [f"x{i}"], [f"t{i}"], end=1) for i in range(n)]
    nodes.append(helper.make_node("Concat", [f"t{i}" for i in range(n)], ["lengths"], axis=0))
    nodes.append(helper.make_node("Split", ["whole", "lengths"], [f"y{i}" for i in range(n)], axis=0))
    return _model(nodes, inputs, [_tensor("y0", [None, 4])])


def chained_chunks(n: int) -> onnx.ModelProto:
    """A Split of the first half of a Split, n times."""
    nodes = [
        helper.make_node("Split", [f"y{i}" if i else "x"], [f"y{i + 1}", f"z{i + 1}"], axis=0, num_outputs=2)
        for i in range(n)
    ]
    return _model(nodes, [_tensor("x", ["N", 4])], [_tensor(f"y{n}", [None, 4])])


def chained_lengths(n: int) -> onnx.ModelProto:
    """A row split off from the rest, n times."""
    nodes = [
        helper.make_node("Split", [f"y{i}" if i else "x", f"l{i}"], [f"z{i + 1}", f"y{i + 1}"], axis=0)
        for i in range(n)
    ]
    lengths = [_integers(f"l{i}", [1, 2 * n - i]) for i in range(n)]
    return _model(nodes, [_tensor("x", ["N", 4])], [_tensor(f"y{n}", [None, 4])], lengths)


def many_ifs(n: int) -> onnx.ModelProto:
    """n Ifs, each with a branch that splits."""
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    nodes = []
    for i in range(n):
        then = helper.make_graph(
            [helper.make_node("Split", ["x"], [f"p{i}", f"q{i}"], axis=1, num_outputs=2)],
            "t",
            [],
            [_tensor(f"p{i}", None)],
        )
        other = helper.make_graph([helper.make_node("Relu", ["x"], [f"r{i}"])], "e", [], [_tensor(f"r{i}", None)])
        nodes.append(helper.make_node("If", ["c"], [f"y{i}"], then_branch=then, else_branch=other))
    return _model(nodes, [_tensor("x", ["N", "M"]), condition], [_tensor("y0", None)])


def calls_with_findings(n: int) -> onnx.ModelProto:
    """Functions that call the next one twice, n levels deep; the last one makes a symbol, and has a wrong node."""
    imports = [helper.make_opsetid("", _OPSET), helper.make_opsetid("local", 1)]
    leaf = [helper.make_node("NonZero", ["x"], ["z"]), helper.make_node("Concat", ["z", "z"], ["w"], axis=9)]
    functions = []
    for level in range(n):
        called = {"op_type": f"f{level + 1}", "domain": "local"} if level + 1 < n else {"op_type": "Relu"}
        nodes = [helper.make_node(inputs=[one], outputs=[other], **called) for one, other in (("x", "u"), ("u", "y"))]
        nodes += leaf if level + 1 == n else []
        functions.append(helper.make_function("local", f"f{level}", ["x"], ["y"], nodes, imports))
    made = _model([helper.make_node("f0", ["x"], ["y"], domain="local")], [_tensor("x", ["N"])], [_tensor("y", None)])
    made.opset_import.append(imports[1])
    made.functions.extend(functions)
    return made


def out_of_order(n: int) -> onnx.ModelProto:
    """n nodes, each before the one that it reads."""
    nodes = [helper.make_node("Relu", [f"x{place}"], [f"x{place + 1}"]) for place in reversed(range(n))]
    return _model(nodes, [_tensor("x0", ["N"])], [_tensor(f"x{n}", ["N"])])


def unknown_operators(n: int) -> onnx.ModelProto:
    """n operators that nobody knows, one after the other."""
    nodes = [helper.make_node(f"Unknown{place}", [f"x{place}"], [f"x{place + 1}"]) for place in range(n)]
    return _model(nodes, [_tensor("x0", ["N"])], [_tensor(f"x{n}", ["N"])])


FAMILIES: dict[str, Family] = {
    "squared": Family(squared, 80),
    "product of sums": Family(product_of_sums, 80),
    "wide Concat": Family(wide_concat, 80),
    "chained Concats": Family(chained_concats, 80),
    "sum of quotients": Family(sum_of_quotients, 80),
    "nested quotients": Family(nested_quotients, 80),
    "doubled levels": Family(doubled_levels, 80),
    "many maxima": Family(many_maxima, 80),
    "wide Max": Family(wide_maximum, 80),
    "large numbers": Family(large_numbers, 80),
    "tiled": Family(tiled, 80),
    "explicit lengths": Family(explicit_lengths, 500),
    "many outputs": Family(many_outputs, 200),
    "symbolic lengths": Family(symbolic_lengths, 80),
    "chained chunks": Family(chained_chunks, 64),
    "chained lengths": Family(chained_lengths, 40),
    "many Ifs": Family(many_ifs, 20),
    "calls with findings": Family(calls_with_findings, 32),
    "out of order": Family(out_of_order, 200),
    "unknown operators": Family(unknown_operators, 60),
}


def chunks(n: int) -> onnx.ModelProto:
    """n layers of four slices with computed bounds, as the old exporter of PyTorch writes chunk."""
    nodes, data = list[onnx.NodeProto](), "x"
    held = {"axis": [1], "zero": [0], "three": [3], **{f"c{k}": [k] for k in range(1, 5)}}
    for i in range(n):
        nodes.append(helper.make_node("Shape", [data], [f"s{i}"]))
        nodes.append(helper.make_node("Gather", [f"s{i}", "axis"], [f"d{i}"]))
        nodes.append(helper.make_node("Add", [f"d{i}", "three"], [f"a{i}"]))
        nodes.append(helper.make_node("Div", [f"a{i}", "c4"], [f"z{i}"]))
        start = "zero"
        for k in range(1, 5):
            nodes.append(helper.make_node("Mul", [f"z{i}", f"c{k}"], [f"e{i}_{k}"]))
            nodes.append(helper.make_node("Slice", [data, start, f"e{i}_{k}", "axis"], [f"p{i}_{k}"]))
            start = f"e{i}_{k}"
        data = f"y{i}"
        nodes.append(helper.make_node("Concat", [f"p{i}_{k}" for k in (4, 3, 2, 1)], [data], axis=1))
    weights = [_integers(name, values) for name, values in held.items()]
    return _model(nodes, [_tensor("x", [2, "N"])], [_tensor(data, [2, None])], weights)


def bounds_in_a_chain(n: int) -> onnx.ModelProto:
    """n Slices, each with a bound that is computed from the bound before."""
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    for i in range(n):
        nodes.append(helper.make_node("Add", [f"s{i}", "one"], [f"s{i + 1}"]))
        nodes.append(helper.make_node("Slice", ["x", "one", f"s{i + 1}", "zero"], [f"y{i}"]))
    weights = [_integers("one", [1]), _integers("zero", [0])]
    return _model(nodes, [_tensor("x", ["N"])], [_tensor(f"y{n - 1}", [None])], weights)


def split_layers(n: int) -> onnx.ModelProto:
    """n layers of a Split, a Softmax and a Concat."""
    nodes, data = list[onnx.NodeProto](), "x"
    for i in range(n):
        nodes.append(helper.make_node("Split", [data], [f"a{i}", f"b{i}"], axis=1, num_outputs=2))
        nodes.append(helper.make_node("Softmax", [f"a{i}"], [f"m{i}"], axis=0))
        nodes.append(helper.make_node("Concat", [f"m{i}", f"b{i}"], [f"y{i}"], axis=1))
        data = f"y{i}"
    return _model(nodes, [_tensor("x", [2, 7])], [_tensor(data, [2, 7])])


def sequences(n: int) -> onnx.ModelProto:
    """n sequences of two parts."""
    nodes, data = list[onnx.NodeProto](), "x"
    for i in range(n):
        nodes.append(helper.make_node("SplitToSequence", [data, "lengths"], [f"q{i}"], axis=1))
        nodes += [helper.make_node("SequenceAt", [f"q{i}", f"i{k}"], [f"p{i}_{k}"]) for k in (0, 1)]
        nodes.append(helper.make_node("Concat", [f"p{i}_1", f"p{i}_0"], [f"y{i}"], axis=1))
        data = f"y{i}"
    places = [helper.make_tensor(f"i{k}", TensorProto.INT64, [], [k]) for k in (0, 1)]
    return _model(nodes, [_tensor("x", [2, 7])], [_tensor(data, [2, 7])], [_integers("lengths", [3, 4]), *places])


def calls(n: int) -> onnx.ModelProto:
    """n calls of a function with a Split."""
    imports = [helper.make_opsetid("", _OPSET), helper.make_opsetid("own", 1)]
    body = [helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2)]
    body.append(helper.make_node("Concat", ["b", "a"], ["y"], axis=1))
    nodes = [helper.make_node("F", [f"y{i - 1}" if i else "x"], [f"y{i}"], domain="own") for i in range(n)]
    model = _model(nodes, [_tensor("x", [2, "N"])], [_tensor(f"y{n - 1}", [2, None])])
    model.functions.append(helper.make_function("own", "F", ["x"], ["y"], body, imports[:1]))
    model.opset_import.append(imports[1])
    return model


# What verbs rewrite, by kind of model; n is the number of layers.
REWRITTEN: dict[str, Family] = {
    "chunks": Family(chunks, 6),
    "bounds in a chain": Family(bounds_in_a_chain, 12),
    "layers with a Split": Family(split_layers, 15),
    "sequences": Family(sequences, 8),
    "calls": Family(calls, 15),
}
