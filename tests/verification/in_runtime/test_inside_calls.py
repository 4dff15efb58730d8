"""A call of a local function is named only where calls are refused; else the node inside of it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import onnx
import pytest

from splitgraph.conversion.inlining import without_functions
from splitgraph.options import STRICT
from splitgraph.runtimes.check import is_not_read
from splitgraph.runtimes.node_traits import FUNCTION
from splitgraph.runtimes.runners.result import FirstNode, RuntimeRun
from splitgraph.runtimes.target import find_target
from splitgraph.verification.in_runtime import ways
from splitgraph.verification.in_runtime.cases import Case
from splitgraph.verification.in_runtime.hosts import HostRun
from splitgraph.verification.in_runtime.inside_calls import Searches
from tests.verification.in_runtime.test_first_node import Evaluator, wrong

# Two calls of a function, of which one calls another function, between two nodes.
MODEL = """
<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
g (float[N, 3] x) => (float[N, 3] y) { a = Relu(x) b = my.outer(a) c = my.outer(b) y = Sigmoid(c) }
<opset_import: ["" : 17], domain: "my"> inner (a) => (b) { s = Tanh(a) b = Abs(s) }
<opset_import: ["" : 17, "my" : 1], domain: "my"> outer (a) => (b) { s = Neg(a) t = my.inner(s) b = Exp(t) }
"""
X = {"x": np.array([[0.5, -1, 2]], np.float32)}
Fault = Callable[[onnx.ModelProto], Any]


def _operators(model: onnx.ModelProto) -> Collection[str]:
    bodies = (function.node for function in model.functions)
    return {node.op_type for nodes in (model.graph.node, *bodies) for node in nodes}


def refuses(*operators: str) -> Fault:
    """A runtime that reads functions, and refuses operators wherever they stand."""
    return lambda model: HostRun("refuses", "no") if {*operators} & {*_operators(model)} else None


def refuses_calls(*operators: str) -> Fault:
    """A runtime that reads no functions, and refuses operators, too."""
    return lambda model: HostRun("refuses", "no calls") if model.functions else refuses(*operators)(model)


def computes_wrong(operator: str) -> Fault:
    return lambda model: wrong(operator)(without_functions(model))


def first_node(fault: Fault) -> FirstNode | None:
    model = onnx.parser.parse_model(MODEL)
    expected = Evaluator().run(model, [X], 10)[0].values
    assert expected is not None
    return Searches(Case(X, expected), Evaluator(), Evaluator(fault), 10, time.monotonic() + 60).first_node(model)


@pytest.mark.parametrize(
    ("fault", "location", "operator"),
    [
        (refuses("Exp"), "main/outer#1/Exp#2", "Exp-13"),
        (refuses("Neg"), "main/outer#1/Neg#0", "Neg-13"),
        (refuses("Abs"), "main/outer#1/inner#1/Abs#1", "Abs-13"),
        (computes_wrong("Tanh"), "main/outer#1/inner#1/Tanh#0", "Tanh-13"),
        # What is outside of the calls is found as in a model without functions.
        (refuses("Relu"), "main/Relu#0", "Relu-14"),
        (refuses("Sigmoid"), "main/Sigmoid#3", "Sigmoid-13"),
        # Calls are refused: the node is the call, unless a node inside of it is refused, too.
        (refuses_calls(), "main/outer#1", "my.outer"),
        (refuses_calls("Sigmoid"), "main/outer#1", "my.outer"),
        (refuses_calls("Abs"), "main/outer#1/inner#1/Abs#1", "Abs-13"),
    ],
)
def test_the_first_node_inside_of_a_call_is_named(fault: Fault, location: str, operator: str) -> None:
    found = first_node(fault)
    assert found is not None
    assert (found.location, found.operator) == (location, operator)
    # A node inside of a call counts as the call.
    assert (found.number, found.nodes) == (1 if "Relu" in operator else 4 if "Sigmoid" in operator else 2, 4)


def test_a_model_that_is_right_has_no_first_node() -> None:
    assert first_node(lambda model: None) is None


def test_a_node_inside_of_a_call_makes_only_its_own_kind_refused() -> None:
    """The calls are written out for it, and what else the functions hold is still read."""
    model, found = onnx.parser.parse_model(MODEL), first_node(refuses("Abs"))
    target = find_target("onnxruntime@1.15.1")
    ran = RuntimeRun("onnxruntime", "ONNX Runtime", "1.15.1", "python", "refused", first_node=found)
    narrower = ways._without_failing(target, model, ran, STRICT)
    assert narrower is not None
    nodes = {node.node.op_type: node for node in ways.examine(without_functions(model)).nodes}
    assert {name for name, node in nodes.items() if is_not_read(node, narrower)} == {"Abs"}
    assert {operator for operator, _, _ in narrower.failed_here} == {"Abs-13", FUNCTION}
