"""Models of every kind as arguments, and what malformed ones give."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_graphsurgeon as gs
import onnx_ir
import pytest
from onnx import AttributeProto, TensorProto

import splitgraph

from .written import diff, model, told

PATH = Path(__file__).parents[2] / "models" / "glu.opset13.onnx"
OTHER = PATH.with_name("glu.opset18.onnx")


@pytest.mark.parametrize(
    "load", [str, Path, onnx.load, splitgraph.load, onnx_ir.load, lambda path: gs.import_onnx(onnx.load(path))]
)
def test_models_of_every_kind(load: object) -> None:
    expected = told(splitgraph.diff(PATH, OTHER))
    assert expected
    assert told(splitgraph.diff(load(PATH), load(OTHER))) == expected  # type: ignore[operator]


def test_models_in_memory_are_not_changed() -> None:
    before, after = onnx.load(PATH), onnx.load(OTHER)
    written = before.SerializeToString(), after.SerializeToString()
    assert splitgraph.diff(before, after)
    assert (before.SerializeToString(), after.SerializeToString()) == written


def with_attribute(**fields: object) -> onnx.ModelProto:
    made = model("(float[4] x) => (y) { y = mine.Op(x) }")
    made.graph.node[0].attribute.append(AttributeProto(name="a", **fields))  # type: ignore[arg-type]
    return made


MALFORMED = {
    "an attribute without a type": with_attribute(i=3),
    "a tensor that is not there": with_attribute(type=AttributeProto.TENSOR),
    "a graph that is not there": with_attribute(type=AttributeProto.GRAPH),
    "a sparse tensor that is not there": with_attribute(type=AttributeProto.SPARSE_TENSOR),
    "a type": with_attribute(type=AttributeProto.TYPE_PROTO),
    "bytes that are no text": with_attribute(type=AttributeProto.STRING, s=b"\xff\x00"),
    "an element type that does not exist": with_attribute(type=AttributeProto.TENSOR, t=TensorProto(data_type=99)),
    "elements that do not fit": with_attribute(
        type=AttributeProto.TENSOR, t=TensorProto(data_type=1, dims=[4], float_data=[1.0])
    ),
    "a negative dimension": with_attribute(
        type=AttributeProto.TENSOR, t=TensorProto(data_type=1, dims=[-4], raw_data=b"1234")
    ),
    "a cycle": model("(float[4] x) => (y) { y = Add(x, z) z = Relu(y) }"),
    "a value that nothing defines": model("(float[4] x) => (y) { y = Add(x, nothing) }"),
    "a value that two nodes define": model("(float[4] x) => (y) { y = Relu(x) y = Abs(x) }"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_models_are_compared(case: str) -> None:
    made = MALFORMED[case]
    plain = model("(float[4] x) => (y) { y = mine.Op(x) }")
    assert not diff(made, onnx.ModelProto.FromString(made.SerializeToString()))
    assert told(diff(made, plain))
    assert told(diff(plain, made))


def test_every_two_malformed_attributes_differ() -> None:
    made = [each for case, each in MALFORMED.items() if len(each.graph.node) == 1 and each.graph.node[0].attribute]
    for one in made:
        for other in made:
            assert bool(diff(one, other).nodes) == (one is not other)
