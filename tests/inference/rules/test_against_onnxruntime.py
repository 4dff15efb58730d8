"""Random small nodes with symbolic dimensions, inferred once and run by onnxruntime at random sizes.

Whatever is claimed holds wherever the obligations do, and a model that runs is no error.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

from splitgraph.dim import Dim, Facts, Obligation, evaluate, symbols_of
from splitgraph.inference.declared_types import define_graph_values
from splitgraph.inference.rules import load_rules
from splitgraph.inference.task import Task
from splitgraph.inference.walk import Walk
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.scopes import MAIN

pytestmark = pytest.mark.slow

ROUNDS = 300
SYMBOLS = "ABC"
Draw = random.Random
Model = tuple[str, str]


def dims(draw: Draw, rank: int) -> str:
    """A shape of static and symbolic dimensions."""
    return ",".join(draw.choice(["A", "B", "C", "1", "2", "3", "4"]) for _ in range(rank))


def vector(name: str, value: int) -> str:
    """A constant of one element."""
    return f"{name} = Constant<value_ints=[{value}]>()"


def broadcast(draw: Draw) -> Model:
    """Two shapes that may broadcast."""
    return f"float[{dims(draw, draw.randint(1, 3))}] x, float[{dims(draw, draw.randint(1, 3))}] z", "y = Add(x, z)"


def reshape(draw: Draw) -> Model:
    """A target of constants and computed dimensions."""
    elements = [draw.choice(["A", "B", "1", "2", "-1", "0"]) for _ in range(draw.randint(1, 3))]
    parts = [
        vector(f"e{i}", int(e)) if e not in SYMBOLS else f"e{i} = Shape<start=0, end=1>(p{e})"
        for i, e in enumerate(elements)
    ]
    joined = ", ".join(f"e{i}" for i in range(len(elements)))
    body = f"{' '.join(parts)} s = Concat<axis=0>({joined}) y = Reshape(x, s)"
    return f"float[{dims(draw, draw.randint(1, 3))}] x, float[A] pA, float[B] pB", body


def slice_constant(draw: Draw) -> Model:
    """Constant positions and steps, forward and backward."""
    rank = draw.randint(1, 3)
    end = draw.choice([*range(-4, 5), 2**31 - 1, -(2**63)])
    given = [vector("s", draw.randint(-4, 4)), vector("e", end), vector("a", draw.randrange(-rank, rank))]
    step = vector("t", draw.choice([1, 1, 2, 3, -1, -2]))
    return f"float[{dims(draw, rank)}] x", f"{' '.join(given)} {step} y = Slice(x, s, e, a, t)"


def slice_computed(draw: Draw) -> Model:
    """Positions that are computed from other dimensions."""
    parts = [vector("c", draw.randint(-2, 2)), vector("d", draw.randint(-2, 2)), vector("a", 0)]
    computed = (
        f"n = Shape(p) m = Shape(q) s = Add(n, c) e = {draw.choice(['Add', 'Sub', 'Mul'])}(m, {draw.choice('dn')})"
    )
    inputs = f"float[{dims(draw, draw.randint(1, 2))}] x, float[A] p, float[B] q"
    return inputs, f"{' '.join(parts)} {computed} y = Slice(x, s, e, a)"


def count(draw: Draw) -> Model:
    """A Range between computed numbers."""
    delta = draw.choice([-3, -2, -1, 1, 2, 3])
    body = f"n = Size(p) m = Size(q) c = Constant<value_int={delta}>() o = {draw.choice(['Add', 'Sub', 'Mul'])}(n, c)"
    return "float[A] p, float[B] q", f"{body} y = Range({draw.choice('nmo')}, {draw.choice('nmo')}, c)"


def pool(draw: Draw) -> Model:
    """Pooling with pads smaller than the window."""
    kernel = draw.randint(1, 3)
    pads = draw.randint(0, min(1, kernel - 1))
    attributes = (
        f"kernel_shape=[{kernel}], strides=[{draw.randint(1, 3)}], pads=[{pads},{pads}], ceil_mode={draw.randint(0, 1)}"
    )
    return f"float[1,1,{dims(draw, 1)}] x", f"y = {draw.choice(['MaxPool', 'AveragePool'])}<{attributes}>(x)"


def convolve(draw: Draw) -> Model:
    """Convolution and its transpose."""
    pads = draw.randint(0, 1)
    attributes = f"strides=[{draw.randint(1, 3)}], pads=[{pads},{pads}], dilations=[{draw.randint(1, 2)}]"
    inputs = f"float[1,2,{dims(draw, 1)}] x, float[2,2,{draw.randint(1, 3)}] w"
    return inputs, f"y = {draw.choice(['Conv', 'ConvTranspose'])}<{attributes}>(x, w)"


def product(draw: Draw) -> Model:
    """Two matrices."""
    body = draw.choice(["y = MatMul(x, z)", "y = Gemm(x, z)"])
    return f"float[{dims(draw, 2)}] x, float[{dims(draw, 2)}] z", body


def through_floats(draw: Draw) -> Model:
    """A dimension that is scaled as a float and rounded."""
    scale = draw.choice(["2.0", "0.5", "0.25", "3.0", "0.3"])
    body = f"n = Shape(x) f = Cast<to=1>(n) c = Constant<value_float={scale}>() d = {draw.choice(['Mul', 'Div'])}(f, c)"
    return (
        "float[A] x",
        f"{body} e = {draw.choice(['Floor', 'Ceil', 'Round'])}(d) i = Cast<to=7>(e) y = ConstantOfShape(i)",
    )


def integers(draw: Draw) -> Model:
    """Two steps of integer arithmetic on dimensions."""
    first, second = (draw.choice(["Add", "Sub", "Mul", "Div", "Mod", "Min", "Max"]) for _ in range(2))
    body = f"n = Shape(x) m = Shape(z) {vector('c', draw.randint(1, 4))} d = {first}(n, {draw.choice('mc')})"
    return (
        "float[A] x, float[B] z",
        f"{body} e = {second}({draw.choice('dcm')}, {draw.choice('dc')}) y = ConstantOfShape(e)",
    )


def repeat(draw: Draw) -> Model:
    """Expand and Tile to computed shapes."""
    parts = ", ".join(draw.choice("nmt") for _ in range(3))
    body = f"n = Shape(p) m = Shape(q) {vector('t', 1)} s = Concat<axis=0>({parts})"
    return f"float[{dims(draw, 3)}] x, float[A] p, float[B] q", f"{body} y = {draw.choice(['Expand', 'Tile'])}(x, s)"


KINDS: list[Callable[[Draw], Model]] = [
    broadcast,
    reshape,
    slice_constant,
    slice_computed,
    count,
    pool,
    convolve,
    product,
    through_floats,
    integers,
    repeat,
]


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession | None:
    """A session without rewrites of the graph, None when onnxruntime refuses the model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # onnxruntime's errors have no common base of their own
        return None


def holds(obligation: Obligation, sizes: dict[str, int]) -> bool:
    """Whether an obligation is met; one over generated symbols is met by what they stand for."""
    if (symbols_of(obligation.lhs) | symbols_of(obligation.rhs)) - sizes.keys():
        return True
    try:
        left, right = evaluate(obligation.lhs, sizes), evaluate(obligation.rhs, sizes)
    except ZeroDivisionError:
        return False
    return left == right if obligation.relation == "==" else left >= right


def run(session: onnxruntime.InferenceSession, model: onnx.ModelProto, sizes: dict[str, int]) -> tuple[int, ...] | None:
    """The shape of the output at these sizes, None when onnxruntime refuses them."""
    feeds = {
        value.name: np.ones(
            [dim.dim_value or sizes.get(dim.dim_param, 0) for dim in value.type.tensor_type.shape.dim], np.float32
        )
        for value in model.graph.input
    }
    try:
        shape: tuple[int, ...] = session.run(["y"], feeds)[0].shape
    except Exception:  # as above
        return None
    return shape


def contradicts(claimed: tuple[int | Dim | None, ...] | None, real: tuple[int, ...], sizes: dict[str, int]) -> bool:
    """Whether a shape that is claimed is not the one that was produced."""
    if claimed is None:
        return False
    if len(claimed) != len(real):
        return True
    for dim, size in zip(claimed, real, strict=True):
        if dim is None or (isinstance(dim, Dim) and symbols_of(dim) - sizes.keys()):
            continue
        if evaluate(dim, sizes) != size:
            return True
    return False


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_claims_hold_when_the_model_runs(kind: Callable[[Draw], Model]) -> None:
    load_rules()
    draw = random.Random(f"rules {kind.__name__}")
    compared = 0
    for _ in range(ROUNDS):
        inputs, body = kind(draw)
        model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => () {{ {body} }}')
        model.graph.output.add().name = "y"
        state = WalkState(Task(model))
        walk = Walk(state, MAIN, "main", state.task.imports, Facts(), bindings={})
        define_graph_values(walk, model.graph, None)
        walk.run(model.graph.node)
        errors = [found.message for found in state.record.diagnostics if found.severity == "error"]
        session = session_of(model)
        for _ in range(8 if session is not None else 0):
            sizes = {name: draw.choice([0, 1, 1, 2, 3, 4, 5, 6]) for name in SYMBOLS}
            real = run(session, model, sizes)
            if real is None:
                continue
            assert errors == [], (inputs, body, sizes)
            if all(holds(obligation, sizes) for obligation in walk.facts.obligations):
                compared += 1
                assert not contradicts(walk.type_of("y").shape, real, sizes), (
                    inputs,
                    body,
                    sizes,
                    str(walk.type_of("y")),
                    real,
                )
    assert compared > ROUNDS
