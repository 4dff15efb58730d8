"""The first node that a runtime refuses or computes wrong is found by halving, and what is told of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from splitgraph.inference import infer_model
from splitgraph.runtimes.runners.result import FirstNode
from splitgraph.verification.in_runtime.cases import Case
from splitgraph.verification.in_runtime.first_node import Search
from splitgraph.verification.in_runtime.hosts import HostRun
from splitgraph.verification.in_runtime.prefixes import CutModel

CHAIN = ("Relu", "Neg", "Exp", "Sigmoid", "Tanh", "Abs", "Sqrt", "Softplus", "Elu")


class Evaluator:
    """Runs models in onnx's evaluator. fault: what a runtime does with a model before, or with its results after."""

    label = "it"

    def __init__(self, fault: Callable[[onnx.ModelProto], Any] = lambda model: None) -> None:
        self.fault = fault
        self.runs = 0

    def run(self, model: onnx.ModelProto, cases: Sequence[Mapping[str, Any]], seconds: float) -> list[HostRun]:
        self.runs += 1
        told = self.fault(model)
        if isinstance(told, HostRun):
            return [told] * len(cases)
        made = model if told is None else told
        names = [value.name for value in model.graph.output]
        return [HostRun("ran", "", ReferenceEvaluator(made).run(names, dict(inputs))) for inputs in cases]


def refuses(operator: str, **matches: Any) -> Callable[[onnx.ModelProto], HostRun | None]:
    """A runtime that does not read an operator."""
    return lambda model: (
        HostRun("refuses", f"no {operator}") if any(node.op_type == operator for node in model.graph.node) else None
    )


def wrong(operator: str) -> Callable[[onnx.ModelProto], onnx.ModelProto]:
    """A runtime that adds 1 to the results of an operator."""

    def change(model: onnx.ModelProto) -> onnx.ModelProto:
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        copy.graph.initializer.append(numpy_helper.from_array(np.float32(1), "one.of.fault"))
        nodes = list(copy.graph.node)
        del copy.graph.node[:]
        for node in nodes:
            copy.graph.node.append(node)
            if node.op_type == operator:
                name = node.output[0]
                copy.graph.node[-1].output[0] = f"{name}.right"
                copy.graph.node.append(helper.make_node("Add", [f"{name}.right", "one.of.fault"], [name]))
        return copy

    return change


def model_of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')


def search(model: onnx.ModelProto, fault: Any, inputs: Mapping[str, Any]) -> tuple[FirstNode | None, int]:
    """Return the first node, and how often the runtime ran."""
    host = Evaluator(fault)
    case = Case(inputs, ReferenceEvaluator(model).run(None, dict(inputs)))
    cut = CutModel(model, infer_model(model))
    found = Search(cut, case, Evaluator(), host, 10, time.monotonic() + 60).find()
    return found, host.runs


X = {"x": np.array([[0.5, -1, 2]], np.float32)}


def chain() -> onnx.ModelProto:
    names = ["x", *(f"v{index}" for index in range(len(CHAIN)))]
    nodes = [helper.make_node(op, [names[i]], [names[i + 1]], name=f"node_{i}") for i, op in enumerate(CHAIN)]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("x", TensorProto.FLOAT, ["N", 3])], [value(names[-1], TensorProto.FLOAT, ["N", 3])]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("refused", "first"),
    [
        # A part of the model gives Exp in another layout: that is not why Elu is refused.
        (refuses("Elu"), ("main/node_8", "refuses")),
        # The model itself is right.
        (lambda model: None, None),
    ],
)
def test_other_values_of_a_part_do_not_say_why_a_model_is_refused(refused: Any, first: tuple[str, str] | None) -> None:
    def fault(model: onnx.ModelProto) -> Any:
        operators = {node.op_type for node in model.graph.node}
        in_part = {"Exp", "Neg"} <= operators and "Elu" not in operators
        return refused(model) or (wrong("Exp")(model) if in_part else None)

    found, _ = search(chain(), fault, X)
    assert (found and (found.location, found.answer)) == first


@pytest.mark.parametrize("refused", ["Greater", "Not", "Cast"])
def test_a_node_whose_result_is_not_a_float_is_found_beside_floats(refused: str) -> None:
    """Parts of the model give v alone, until a Cast makes a float of the condition."""
    model = model_of(
        "g (float[N, 3] x) => (float[N, 3] y) "
        "{ v = Neg(x) c = Greater(x, v) n = Not(c) f = Cast<to = 1>(n) y = Add(v, f) }"
    )

    def fault(made: onnx.ModelProto) -> HostRun | None:
        operators = [node.op_type for node in made.graph.node if not node.output[0].endswith(".as_float")]
        return HostRun("refuses", f"no {refused}") if refused in operators else None

    found, _ = search(model, fault, X)
    assert found is not None
    assert (found.operator.split("-")[0], found.answer, found.alone) == (refused, "refuses", False)


@pytest.mark.parametrize("make_fault", [refuses, wrong])
@pytest.mark.parametrize("index", range(len(CHAIN)))
def test_every_node_is_found_where_it_is(make_fault: Any, index: int) -> None:
    found, runs = search(chain(), make_fault(CHAIN[index]), X)
    assert found is not None
    expected = (f"main/node_{index}", index + 1, len(CHAIN), False)
    assert (found.location, found.number, found.nodes, found.alone) == expected
    assert found.answer == ("wrong" if make_fault is wrong else "refuses")
    assert found.operator.startswith(f"{CHAIN[index]}-")
    # Halving, the whole, the node's outputs, and the node alone.
    assert runs <= math.ceil(math.log2(len(CHAIN))) + 3


def test_a_model_that_is_right_has_no_first_node() -> None:
    assert search(chain(), lambda model: None, X)[0] is None


def test_a_node_with_bodies_is_named_and_said_not_to_be_searched() -> None:
    model = model_of(
        "g (float[N, 3] x, bool c) => (float[N, 3] z) { y = If(c) <"
        "then_branch = t () => (float[N, 3] a) { a = Exp(x) }, else_branch = e () => (float[N, 3] b) { b = Neg(x) }"
        "> z = Abs(y) }"
    )
    found, _ = search(model, refuses("If"), {**X, "c": np.array(True)})
    assert found is not None
    assert found.operator.startswith("If-")
    assert found.told.endswith("; the nodes inside of it were not searched")


@pytest.mark.parametrize(("answer", "told"), [("dies", "dies"), ("hangs", "hangs"), ("refuses", "refuses")])
def test_how_a_node_fails(answer: Any, told: str) -> None:
    def fault(model: onnx.ModelProto) -> HostRun | None:
        fails = any(node.op_type == "Exp" for node in model.graph.node)
        return HostRun(answer, "words") if fails else None

    found, _ = search(chain(), fault, X)
    assert found is not None
    assert (found.location, found.answer, found.said) == ("main/node_2", told, "words")


def test_what_the_bindings_cannot_give_is_no_failure() -> None:
    assert search(chain(), lambda model: HostRun("not given", "no float16"), X)[0] is None


SIZES = """g (float[N, 6] x) => (float[N, 2, 3] y)
<int64[1] zero = {0}, int64[2] rest = {2, 3}> {
  r = Relu (x)
  s = Shape (r)
  n = Gather (s, zero)
  c = Concat <axis: int = 0> (n, rest)
  q = Reshape (r, c)
  y = Neg (q)
}"""


@pytest.mark.parametrize("operator", ["Shape", "Gather", "Concat"])
def test_the_node_that_makes_sizes_is_named(operator: str) -> None:
    inputs = {"x": np.arange(12, dtype=np.float32).reshape(2, 6)}
    found, _ = search(model_of(SIZES), refuses(operator), inputs)
    assert found is not None
    # No runner gives sizes back: the first result that can be compared is that of the Reshape.
    assert (found.location, found.alone) == ("main/Reshape#4", True)
    assert found.cause.startswith(f"main/{operator}#")
    assert found.told.endswith(f"; alone it is right, and so it is here if the result of {found.cause} is a constant")


def test_sizes_that_nobody_reads_yet_are_not_run() -> None:
    text = """g (float[N, 6] x) => (float[N, 6] y)
    <int64[2] to = {0, -1}> { s = Shape (x) r = Relu (x) e = Exp (r) q = Expand (e, s) y = Neg (q) }"""
    inputs = {"x": np.ones((2, 6), np.float32)}
    found, _ = search(model_of(text), refuses("Exp"), inputs)
    assert found is not None
    assert found.location == "main/Exp#2"
    found, _ = search(model_of(text), refuses("Shape"), inputs)
    assert found is not None
    assert (found.location, found.cause) == ("main/Expand#3", "main/Shape#0")


SEQUENCE = """g (float[6] x) => (float[2] y)
<int64 two = {2}, int64 first = {0}> {
  r = Relu (x)
  q = SplitToSequence <axis: int = 0> (r, two)
  a = SequenceAt (q, first)
  y = Neg (a)
}"""


@pytest.mark.parametrize("operator", ["SplitToSequence", "SequenceAt"])
def test_a_sequence_is_seen_where_it_is_read(operator: str) -> None:
    found, _ = search(model_of(SEQUENCE), refuses(operator), {"x": np.arange(6, dtype=np.float32)})
    assert found is not None
    assert (found.location, found.until) == ("main/SplitToSequence#1", "main/SequenceAt#2")
    assert found.alone is False


def test_a_failure_in_its_place_only() -> None:
    """Of two nodes that a runtime joins, the second one is named, and alone it is right."""

    def fault(model: onnx.ModelProto) -> HostRun | None:
        operators = [node.op_type for node in model.graph.node]
        return HostRun("refuses", "joined") if "Neg" in operators and "Exp" in operators else None

    found, _ = search(chain(), fault, X)
    assert found is not None
    assert (found.location, found.alone, found.cause) == ("main/node_2", True, "")


INTEGERS = """g (float[N, 3] x) => (int64[N] y)
<int64 one = {1}> { r = Relu (x) a = ArgMax <axis: int = 1, keepdims: int = 0> (r) b = Add (a, one) y = Neg (b) }"""


@pytest.mark.parametrize(("operator", "place"), [("ArgMax", 1), ("Add", 2), ("Neg", 3)])
def test_integers_are_seen_as_floats(operator: str, place: int) -> None:
    found, _ = search(model_of(INTEGERS), refuses(operator), X)
    assert found is not None
    assert (found.location, found.alone) == (f"main/{operator}#{place}", False)


def test_what_a_body_reads_is_needed() -> None:
    text = """g (float[N, 3] x, bool c) => (float[N, 3] y) {
      r = Relu (x)
      e = Exp (r)
      y = If (c) <
        then_branch = t () => (float[N, 3] a) { a = Neg (e) },
        else_branch = f () => (float[N, 3] b) { b = Abs (r) }
      >
    }"""
    inputs = {**X, "c": np.array(True)}
    found, _ = search(model_of(text), refuses("If"), inputs)
    assert found is not None
    assert (found.location, found.alone) == ("main/If#2", False)
    found, _ = search(model_of(text), refuses("Exp"), inputs)
    assert found is not None
    assert found.location == "main/Exp#1"


def test_a_part_has_only_the_inputs_that_it_reads() -> None:
    """OpenCV 4 refuses a model with an input that nothing reads."""
    text = """g (float[N, 3] x, float[N, 3] z) => (float[N, 3] y)
    { r = Relu (x) e = Exp (r) s = Add (e, z) y = Neg (s) }"""

    def fault(model: onnx.ModelProto) -> HostRun | None:
        read = {name for node in model.graph.node for name in node.input}
        unread = any(value.name not in read for value in model.graph.input)
        fails = unread or any(node.op_type == "Add" for node in model.graph.node)
        return HostRun("refuses", "words") if fails else None

    found, _ = search(model_of(text), fault, {**X, "z": X["x"]})
    assert found is not None
    assert found.location == "main/Add#2"


def test_nodes_that_are_out_of_order() -> None:
    model = chain()
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    ordered = chain()
    host = Evaluator(refuses("Tanh"))
    case = Case(X, ReferenceEvaluator(ordered).run(None, dict(X)))
    found = Search(CutModel(model, infer_model(model)), case, Evaluator(), host, 10, time.monotonic() + 60).find()
    assert found is not None
    assert (found.location, found.number) == ("main/node_4", 5)


def test_a_search_ends_when_the_time_is_over() -> None:
    case = Case(X, ReferenceEvaluator(chain()).run(None, dict(X)))
    cut = CutModel(chain(), infer_model(chain()))
    assert Search(cut, case, Evaluator(), Evaluator(refuses("Exp")), 10, time.monotonic() - 1).find() is None
