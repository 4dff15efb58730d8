"""The cases of the tests of onnxruntime's symbolic_shape_infer, rebuilt from what they describe
(`onnxruntime_test_python_symbolic_shape_infer.py`).

Each expected dimension is compared by evaluation at many sizes, so that another spelling of the same number is no
difference. `WRONG_IN_THE_TOOL` lists the answers that the tool's tests expect and that do not hold at every size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper

import splitgraph

Shape = Sequence[int | str]
FLOAT, INT32, INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64
# Large enough to stand for "to the end" in a Slice.
_TO_THE_END = 2**32


class Case(NamedTuple):
    """inputs: name, element type and shape. expected: the shape of each value, each dimension a number, an expression,
    or "?" where it has no closed form. constants: 1-D int64 by name. floats: shapes of float initializers.
    """

    name: str
    opset: int
    inputs: dict[str, tuple[int, Shape]]
    nodes: list[NodeProto]
    expected: dict[str, Shape]
    constants: Mapping[str, list[int]] = MappingProxyType({})
    floats: Mapping[str, list[int]] = MappingProxyType({})


def slice_of_concat(name: str, dims: Sequence[str], start: str, end: str, step: str, expected: int | str) -> Case:
    """A Slice on axis 1 of the Concat of one input for each dim. A bound is a number, a dim, or "-" and a dim: then it
    is read with Shape at run time.
    """
    inputs = {f"t{index}": (FLOAT, ["B", dim]) for index, dim in enumerate(dims)}
    nodes = [helper.make_node("Concat", list(inputs), ["whole"], axis=1)]
    constants = {"first": [0], "one": [1], "two": [2]}
    for index, dim in enumerate(dict.fromkeys(dims)):
        nodes.append(helper.make_node("Shape", [f"t{index}"], [f"shape{index}"]))
        nodes.append(helper.make_node("Slice", [f"shape{index}", "one", "two", "first"], [dim]))
        nodes.append(helper.make_node("Neg", [dim], [f"-{dim}"]))
    for bound in (start, end, step):
        if bound.lstrip("-").isdigit():
            constants[bound] = [int(bound)]
    constants["axes"] = [1]
    nodes.append(helper.make_node("Slice", ["whole", start, end, "axes", step], ["output"]))
    return Case(name, 17, inputs, nodes, {"output": ["B", expected]}, constants)


def einsum(equation: str, shapes: Sequence[Shape], expected: Shape) -> Case:
    inputs = {f"x{index}": (FLOAT, shape) for index, shape in enumerate(shapes)}
    node = helper.make_node("Einsum", list(inputs), ["output"], equation=equation)
    return Case(f"einsum {equation}", 17, inputs, [node], {"output": expected})


_END = str(_TO_THE_END)
_HIDDEN = 32
_EMBEDDINGS = {
    "word": [100, _HIDDEN],
    "position": [20, _HIDDEN],
    "segment": [20, _HIDDEN],
    "gamma": [_HIDDEN],
    "beta": [_HIDDEN],
}
_SKIP = {"gamma": [_HIDDEN], "beta": [_HIDDEN], "bias": [_HIDDEN]}

CASES = [
    Case(
        "unsqueeze, axes as attribute",
        11,
        {"x": (FLOAT, ["b", "s"])},
        [helper.make_node("Unsqueeze", ["x"], ["y"], axes=[0])],
        {"y": [1, "b", "s"]},
    ),
    Case(
        "unsqueeze, axes as input",
        13,
        {"x": (FLOAT, ["b", "s"])},
        [helper.make_node("Unsqueeze", ["x", "axes"], ["y"])],
        {"y": ["b", "s", 1]},
        {"axes": [-1]},
    ),
    Case(
        "gather of symbolic data",
        13,
        {"data": (FLOAT, ["M", "N"]), "indices": (INT64, ["b", "s"])},
        [helper.make_node("Gather", ["data", "indices"], ["y"], axis=0)],
        {"y": ["b", "s", "N"]},
    ),
    Case(
        "EmbedLayerNormalization",
        13,
        {"ids": (INT32, ["b", "s"]), "segments": (INT32, ["b", "s"])},
        [
            helper.make_node(
                "EmbedLayerNormalization",
                ["ids", "segments", *_EMBEDDINGS],
                ["y", "mask"],
                domain="com.microsoft",
            )
        ],
        {"y": ["b", "s", _HIDDEN], "mask": ["b"]},
        floats=_EMBEDDINGS,
    ),
    Case(
        "SkipLayerNormalization",
        13,
        {"x": (FLOAT, ["b", "s", _HIDDEN]), "skip": (FLOAT, ["b", "s", _HIDDEN])},
        [helper.make_node("SkipLayerNormalization", ["x", "skip", *_SKIP], ["y"], domain="com.microsoft")],
        {"y": ["b", "s", _HIDDEN]},
        floats=_SKIP,
    ),
    Case(
        "SoftmaxCrossEntropyLoss, reduced",
        13,
        {"logits": (FLOAT, ["b", 1024, "s"]), "labels": (INT64, ["b", "s"])},
        [helper.make_node("SoftmaxCrossEntropyLoss", ["logits", "labels"], ["loss"])],
        {"loss": []},
    ),
    # With N == 0 the slice starts at 0 and takes all of M, so that there is no closed form.
    slice_of_concat("from a negated symbol", ["M", "N"], "-N", _END, "1", "N"),
    slice_of_concat("numbers, forward", ["M"], "-10", "-1", "1", "min(M - 1, 9)"),
    slice_of_concat("numbers, backward", ["M"], "-1", "-10", "-1", "min(M, 9)"),
    slice_of_concat("to a symbol", ["M", "N"], "0", "M", "1", "M"),
    slice_of_concat("in steps of 2", ["N", "N"], "0", _END, "2", "N"),
    slice_of_concat("in steps of a symbol", ["N", "N"], "0", _END, "N", 2),
    slice_of_concat("back in steps of a symbol", ["N", "N"], "-1", f"-{_END}", "-N", 2),
    slice_of_concat("back", ["N"], "-1", f"-{_END}", "-1", "N"),
    slice_of_concat("back over three", ["N", "N", "N"], "-1", f"-{_END}", "-1", "3*N"),
    einsum("ij,jk->ik", [["m", "k"], ["k", "n"]], ["m", "n"]),
    einsum("bij,bjk->bik", [["b", "m", "k"], ["b", "k", "n"]], ["b", "m", "n"]),
    einsum("...ij,...jk->...ik", [["b", 3, "m", "k"], ["b", 3, "k", "n"]], ["b", 3, "m", "n"]),
    einsum("i,i->", [["n"], ["n"]], []),
    einsum("i,j->ij", [["m"], ["n"]], ["m", "n"]),
    einsum("ij->ji", [["m", "n"]], ["n", "m"]),
    einsum("ii->i", [["n", "n"]], ["n"]),
    einsum("ij->i", [["m", "n"]], ["m"]),
    einsum("ij,jk", [["m", "k"], ["k", "n"]], ["m", "n"]),
]

# What the tool's tests expect instead, and a size at which that is not so.
WRONG_IN_THE_TOOL = {
    "numbers, forward": ("9", {"M": 5}),
    "numbers, backward": ("9", {"M": 5}),
}


def build(case: Case) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info(name, *given) for name, given in case.inputs.items()]
    initializers = [helper.make_tensor(name, INT64, [len(held)], held) for name, held in case.constants.items()]
    for name, shape in case.floats.items():
        size = 1
        for dim in shape:
            size *= dim
        initializers.append(helper.make_tensor(name, FLOAT, shape, [1.0] * size))
    outputs = [helper.make_empty_tensor_value_info(name) for name in case.expected]
    graph = helper.make_graph(case.nodes, "graph", inputs, outputs, initializers)
    imports = [helper.make_opsetid("", case.opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_numbers(case: Case) -> None:
    analysis = splitgraph.infer(build(case))
    assert [found for found in analysis.diagnostics if found.severity == "error"] == []
    for name, expected in case.expected.items():
        shape = analysis.types[name].shape
        assert shape is not None
        assert len(shape) == len(expected)
        for mine, theirs in zip(shape, expected, strict=True):
            if theirs == "?":
                assert str(mine) not in _symbols(case)
                continue
            for sizes in _sizes(case):
                assert value(mine, sizes) == value(theirs, sizes), (name, str(mine), theirs, sizes)


@pytest.mark.parametrize("name", WRONG_IN_THE_TOOL)
def test_where_the_tool_is_wrong(name: str) -> None:
    """numpy has the last word."""
    claimed, sizes = WRONG_IN_THE_TOOL[name]
    whole = np.zeros(sum(sizes.values()))
    right = {
        "numbers, forward": whole[-10:-1],
        "numbers, backward": whole[-1:-10:-1],
    }[name]
    assert len(right) != value(claimed, sizes)


def value(dim: object, sizes: dict[str, int]) -> int:
    """A dimension at these sizes; the grammar of dimensions is Python's arithmetic."""
    assert dim is not None
    return int(eval(str(dim), {"min": min, "max": max}, sizes))


def _symbols(case: Case) -> list[str]:
    found = [dim for _, shape in case.inputs.values() for dim in shape if isinstance(dim, str)]
    return list(dict.fromkeys(found))


def _sizes(case: Case) -> Iterator[dict[str, int]]:
    """From 1 on, as a step of 0 is not allowed; no two symbols are of one size."""
    for size in range(1, 25):
        yield {dim: size + 3 * place for place, dim in enumerate(_symbols(case))}
