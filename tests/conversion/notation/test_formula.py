"""What a formula computes at conversion and what it writes for run time must be the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from conversion.operators.execute import Array, assert_same, build, run
from onnx import helper

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import NodeAtBoundary
from splitgraph.conversion.notation.resampling import weights
from splitgraph.conversion.operators import registry
from splitgraph.conversion.operators.registry import load_families
from splitgraph.conversion.opset import convert_opset

NUMBERS = np.array([-2.5, -1.0, -0.0, 0.0, 0.3, 0.5, 1.5, 2.0, 7.75, np.inf, -np.inf, np.nan], np.float32)
Written = Callable[[Formula, Term], Term]


def _whole(term: Term) -> Term:
    """Integers, in place of what is none."""
    return term.formula.where((term > -9) & (term < 9), term, term.formula.number(3, "float32")).floor().cast("int64")


FORMULAS: dict[str, Written] = {
    "sum": lambda f, x: x + 1.5 + x,
    "difference": lambda f, x: x - 0.3 - x * 2,
    "quotient": lambda f, x: x / 3 / x,
    "rounded": lambda f, x: x.floor() * 100 + x.ceil(),
    "half to even": lambda f, x: f.apply("Round", x),
    "size": lambda f, x: abs(x),
    "less": lambda f, x: (x < 0.5).cast("float32"),
    "greater": lambda f, x: (x > 0.5).cast("int64"),
    "logic": lambda f, x: ((x < 0) | ~(x > 1) & (x < 5)).cast("float32"),
    "chosen": lambda f, x: f.where(x > 0, x, f.number(-1, "float32")),
    "clipped": lambda f, x: x.clipped(-1, 2),
    "turned bounds": lambda f, x: x.clipped(2, -1),
    "integers": lambda f, x: (_whole(x) + 3) * 2 - _whole(x),
    "whole quotient": lambda f, x: (_whole(x) + 9) / 4,
    "quotient rounded to 0": lambda f, x: _whole(x) / 2 + _whole(x) / -3,
    "remainder": lambda f, x: _whole(x) % 4 - _whole(x) % -4,
    "number first": lambda f, x: 1.0 / x - (2 - x),
    "negated": lambda f, x: -x,
    "sign": lambda f, x: f.apply("Sign", _whole(x)),
    "one of two": lambda f, x: ((x < 0) ^ (x < 2)).cast("int64"),
    "counted from the front": lambda f, x: _whole(x).clipped(-3, 3).from_front(4),
    "number chosen": lambda f, x: f.where(x > 0, 1, f.where(x < 0, x, 2)),
    "joined": lambda f, x: f.joined([x.reshape(3, 4), x.reshape(3, 4) + 1], 1),
    "put": lambda f, x: f.put(_whole(x), f.number([3, 0]), _whole(x).take([5, 1])),
    "factors": lambda f, x: _whole(x).clipped(1, 2).reshape(3, 4).reduced("ReduceProd", [1], keepdims=True),
    "equal": lambda f, x: _whole(x).equals(2).cast("int64"),
    "total": lambda f, x: f.where(abs(x) < 9, x, 0).reshape(3, 4).reduced("ReduceSum", [1]),
    "reshaped": lambda f, x: x.reshape(2, 1, -1, 2),
    "kept dimensions": lambda f, x: x.reshape(3, 4).reshape(0, 1, -1),
    "shape worked out": lambda f, x: x.reshape(3, 4).shaped([0, f.number(2), 2]),
    "transposed": lambda f, x: x.reshape(2, 3, 2).transposed(2, 0, 1),
    "gathered": lambda f, x: x.reshape(3, 4).take(f.number([[0, 2], [3, 3]]), 1),
    "counted": lambda f, x: f.counting(_whole(x).clipped(0, 5).take(8)),
    "element": lambda f, x: x.take(4) * 2,
    "vector": lambda f, x: f.vector([_whole(x).take(0), 5, f.number(7)]),
    "product": lambda f, x: f.product([_whole(x).take(0), f.number(4)]),
    "linear weights": lambda f, x: weights(f, "linear", x),
    "cubic weights": lambda f, x: weights(f, "cubic", x, -0.5),
}


def _both(written: Written, monkeypatch: pytest.MonkeyPatch) -> tuple[Array, Array]:
    """What a formula of NUMBERS gives at conversion, and what it gives when it is run."""
    known: list[Array | None] = []

    def adapter(node: NodeAtBoundary) -> None:
        formula = Formula(node)
        known.append(written(formula, formula.term(NUMBERS)).elements)
        formula.give(written(formula, formula.value(node.inputs[0], "float32")))

    load_families()
    monkeypatch.setitem(registry._ADAPTERS, ("Mish", 18, False), adapter)
    node = helper.make_node("Mish", ["x"], ["y"])
    model = build(node, 18, {"x": ("float32", NUMBERS.shape)}, {"y": ("float32", NUMBERS.shape)})
    after = convert_opset(model, 17).model
    (found,) = known
    assert found is not None
    # The formula may give another type than Mish.
    number = helper.np_dtype_to_tensor_dtype(found.dtype)
    after.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", number, found.shape))
    onnx.checker.check_model(after, full_check=True)
    return found, run(after, {"x": NUMBERS})[0]


@pytest.mark.parametrize("name", FORMULAS)
def test_known_or_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known, found = _both(FORMULAS[name], monkeypatch)
    # Sums may be added up in another order.
    assert_same([known], [found], 1e-6 if name in ("total", "cubic weights") else 0.0)


def test_many_elements_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []

    def adapter(node: NodeAtBoundary) -> None:
        formula = Formula(node)
        numbers = formula.counting(formula.number(300))
        table = numbers.reshape(-1, 1) * 300 + numbers.reshape(1, -1)
        made.append(table.elements is None)
        formula.give(formula.value(node.inputs[0], "float32") + table.reduced("ReduceSum", [0, 1]).cast("float32"))

    load_families()
    monkeypatch.setitem(registry._ADAPTERS, ("Mish", 18, False), adapter)
    model = build(helper.make_node("Mish", ["x"], ["y"]), 18, {"x": ("float32", [1])}, {"y": ("float32", [1])})
    (found,) = run(convert_opset(model, 17).model, {"x": np.zeros(1, np.float32)})
    assert made == [True]
    assert found.tolist() == [float(np.float32(sum(range(300 * 300))))]


def test_equal_constants_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def adapter(node: NodeAtBoundary) -> None:
        term = Formula(node).value(node.inputs[0], "float32")
        term.formula.give((term + 2) * 2 - 2)

    load_families()
    monkeypatch.setitem(registry._ADAPTERS, ("Mish", 18, False), adapter)
    model = build(helper.make_node("Mish", ["x"], ["y"]), 18, {"x": ("float32", [1])}, {"y": ("float32", [1])})
    after = convert_opset(model, 17).model
    assert len(after.graph.initializer) == 1
    assert [node.op_type for node in after.graph.node] == ["Add", "Mul", "Sub"]


def _written(adapter: Callable[[Formula], None], monkeypatch: pytest.MonkeyPatch, target: int = 17) -> onnx.ModelProto:
    """A model of one Mish, which an adapter writes."""
    load_families()
    monkeypatch.setitem(registry._ADAPTERS, ("Mish", 18, False), lambda node: adapter(Formula(node)))
    model = build(helper.make_node("Mish", ["x"], ["y"]), 18, {"x": ("float32", [None])}, {"y": ("float32", [None])})
    return convert_opset(model, target).model


def test_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps have their number and the states, and read what was written before."""

    def adapter(f: Formula) -> None:
        data, more = f.input(0), f.input(0) * 2
        steps = f.shape(data.name).take(0)
        f.give(*f.loop(steps, [data], lambda number, state: [state + more * number.cast("float32")], [[None]]))

    after = _written(adapter, monkeypatch)
    assert "Loop" in [node.op_type for node in after.graph.node]
    (found,) = run(after, {"x": np.array([1, 2, 3], np.float32)})
    assert found.tolist() == [7, 14, 21]


def test_output_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what depends on the output stands behind the node."""

    def adapter(f: Formula) -> None:
        f.node.rename("Relu")
        f.follow(0, lambda given: given * abs(f.input(0)) - 1)

    after = _written(adapter, monkeypatch)
    assert [node.op_type for node in after.graph.node] == ["Abs", "Relu", "Mul", "Sub"]
    (found,) = run(after, {"x": np.array([-2, 3], np.float32)})
    assert found.tolist() == [-1, 8]


@pytest.mark.parametrize(("target", "operators"), [(17, ["Shape", "Gather", "Range"]), (9, ["NonZero"])])
def test_counting_at_run_time(target: int, operators: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Range counts where it exists at the target."""

    def adapter(f: Formula) -> None:
        f.give(f.counting(f.size(0, 0)).cast("float32") + f.input(0))

    after = _written(adapter, monkeypatch, target)
    assert set(operators) <= {node.op_type for node in after.graph.node}
    (found,) = run(after, {"x": np.array([5, 5, 5], np.float32)})
    assert found.tolist() == [5, 6, 7]
