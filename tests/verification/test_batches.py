"""A batch is run in groups, with its items in another order, and beside the numbers that it meets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from verifying import verify_models

from splitgraph.conversion.rewrite import GivenSizes
from splitgraph.options import NewSizes
from splitgraph.verification.batch_sizes import batch_sizes
from splitgraph.verification.models.repeated import (
    Along,
    Arrangement,
    Items,
    arranged,
    exchanged,
    groups,
    outputs_along,
    some_groups,
    values_along,
)
from splitgraph.verification.sizes import verify_sizes
from splitgraph.verification.verification import Verification

RNG = np.random.default_rng(3)


def model(graph: str, opset: int = 17) -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {graph}')


def run(made: ModelProto, x: Any) -> Any:
    return ReferenceEvaluator(made).run(None, {"x": x})[0]


@pytest.mark.parametrize(
    ("size", "own", "takes", "gives"),
    [
        (4, 2, [[(0, 2)], [(2, 4)]], [(0, (0, 2)), (1, (0, 2))]),
        (5, 2, [[(0, 2)], [(2, 4)], [(3, 5)]], [(0, (0, 2)), (1, (0, 2)), (2, (1, 2))]),
        (1, 3, [[(0, 1), (0, 1), (0, 1)]], [(0, (0, 1))]),
    ],
)
def test_a_batch_in_groups(size: int, own: int, takes: list[Any], gives: list[Any]) -> None:
    made = groups(size, own)
    assert made == Arrangement(
        size, [[Items(*items) for items in run] for run in takes], [(n, Items(*i)) for n, i in gives]
    )


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("arrangement", [groups(5, 2), groups(1, 2), groups(4, 2), some_groups(9, 2)[0]])
def test_each_group_gives_what_it_gives_alone(arrangement: Arrangement, opset: int) -> None:
    """Two places for each item, behind an axis of steps."""
    fixed = model("g (float[3, 2, 4] x) => (float[3, 4, 2] y) <int64[3] s = {3, 4, 2}> { y = Reshape (x, s) }", opset)
    made = arranged(fixed, arrangement, {"x": 1}, {"y": Along(1, 2)})
    x = RNG.standard_normal((3, arrangement.size, 4)).astype(np.float32)
    taken = [np.concatenate([x[:, one.start : one.end] for one in each], 1) for each in arrangement.takes]
    results = [run(fixed, each) for each in taken]
    expected = [results[number][:, 2 * items.start : 2 * items.end] for number, items in arrangement.gives]
    np.testing.assert_array_equal(run(made, x), np.concatenate(expected, 1))


@pytest.mark.parametrize(
    ("node", "is_equal"),
    [("y = Relu (x)", True), ("y = CumSum (x, zero)", False), ("s = ReduceMax <axes = [0]> (x) y = Sub (x, s)", True)],
)
def test_items_change_places(node: str, is_equal: bool) -> None:
    """What all items have in common stays so: single runs find that."""
    made = model(f"g (float[5, 4] x) => (float[5, 4] y) <int64 zero = {{0}}> {{ {node} }}")
    x = RNG.standard_normal((5, 4)).astype(np.float32)
    assert np.allclose(run(arranged(made, exchanged(5), {"x": 0}, {"y": Along(0)}), x), run(made, x)) == is_equal


def test_where_items_are() -> None:
    made = model("""g (float[N, 3, 4] x) => (float[?, ?] y, float[?] z, float[?, ?] v)
        <int64[2] s = {-1, 4}, int64[1] zero = {0}>
        { y = Reshape (x, s) t = Transpose <perm = [1, 0, 2]> (x) m = ReduceMean <axes = [0]> (t) h = Shape (m)
          z = Cast <to = 1> (h) n = NonZero (x) v = Cast <to = 1> (n) }""")
    assert outputs_along(made, "N", 2) == {"y": Along(0, 3), "v": Along(1, None)}
    assert values_along(made, "N") == {"x": Along(0), "t": Along(1), "m": Along(1)}


@pytest.mark.parametrize("arrangement", [groups(3, 1), exchanged(3)])
def test_each_node_takes_the_items_in_groups(arrangement: Arrangement) -> None:
    """Both models have the same values, and nodes that read no items stand once."""
    open_one = model("""g (float[N, 2, 4] x) => (float[N, 8] y, float[2] c) <int64[2] s = {0, 8}, float[2] k = {1, 2}>
        { r = Relu (x) t = Transpose <perm = [1, 0, 2]> (r) u = Transpose <perm = [1, 0, 2]> (t) c = Neg (k)
          y = Reshape (u, s) }""")
    values = values_along(open_one, "N") | outputs_along(open_one, "N", 1)
    made = arranged(open_one, arrangement, {"x": 0}, values)
    x = RNG.standard_normal((3, 2, 4)).astype(np.float32)
    np.testing.assert_array_equal(run(made, x), run(open_one, x))
    given = {name for node in made.graph.node for name in node.output}
    assert {"r", "t", "u", "y", "c"} <= given and [n.op_type for n in made.graph.node].count("Neg") == 1


_CONSTANT = "g (float[2, 3] x) => (float[2, 3] y, float[2, 3] c) <float[2, 3] k = {1, 2, 3, 4, 5, 6}>"


@pytest.mark.parametrize("size", [1, 3, 4])
@pytest.mark.parametrize(
    "graph",
    [
        f"{_CONSTANT} {{ y = Add (x, k) c = Identity (k) }}",
        f"{_CONSTANT.replace(' k =', ' c =')} {{ y = Add (x, c) }}",
        f"{_CONSTANT} {{ c = Abs (k) y = Add (x, c) }}",
    ],
    ids=["computed", "initializer", "computed and read"],
)
def test_each_run_has_a_constant_that_has_items(graph: str, size: int) -> None:
    made = arranged(model(graph), groups(size, 2), {"x": 0}, {"y": Along(0), "c": Along(0)})
    x = RNG.standard_normal((size, 3)).astype(np.float32)
    k = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    rows = {1: k[:1], 3: np.concatenate([k, k[1:]]), 4: np.concatenate([k, k])}[size]
    y, c = ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_array_equal(c, rows)
    np.testing.assert_array_equal(y, x + rows)


@pytest.mark.parametrize(
    ("nodes", "old", "sizes"),
    [
        ("y = Relu (x)", 1, [2, 3, 5]),
        ("y = Relu (x)", 4, [8, 12, 20, 1, 5]),
        ("s = Shape (x) n = Gather (s, zero) c = Greater (n, seven) y = Where (c, x, x)", 1, [2, 3, 5, 6, 7, 8]),
        ("s = Shape (x) n = Gather (s, zero) m = Mul (n, two) c = Greater (m, seven) y = Where (c, x, x)", 1,
         [2, 3, 5, 4, 6, 7]),
        ("y = Slice (x, first, end)", 1, [2, 3, 5, 8, 9, 10]),
        ("s = Shape (x) n = Gather (s, zero) c = Greater (n, million) y = Where (c, x, x)", 1, [2, 3, 5]),
    ],
)  # fmt: skip
def test_sizes_beside_the_numbers_that_a_batch_meets(nodes: str, old: int, sizes: list[int]) -> None:
    made = model(f"""g (float[N, 4] x) => (float[?, ?] y) <int64 zero = {{0}}, int64 seven = {{7}}, int64 two = {{2}},
        int64[1] first = {{0}}, int64[1] end = {{9}}, int64 million = {{1000000}}> {{ {nodes} }}""")
    found = batch_sizes(made, "N", old)
    assert found[: len(sizes) - 3] == sizes[: len(sizes) - 3] and set(sizes) <= set(found)


@pytest.mark.parametrize(
    ("nodes", "sizes"),
    [
        ("n = Gather (s, zero) c = Greater (n, seven)", [2, 3, 5, 6, 7, 8]),
        ("n = Gather (s, one) c = Greater (n, seven)", [2, 3, 5]),
        ("n = Gather (s, one) m = Mul (n, two) d = Sub (m, seven) c = Greater (d, seven)", [2, 3, 5]),
        ("h = Gather (s, one) b = Gather (s, zero) n = Mul (h, b) c = Greater (n, seven)", [2, 3, 5, 6, 7, 8]),
    ],
)
def test_a_height_that_a_model_reads_is_no_batch(nodes: str, sizes: list[int]) -> None:
    made = model(f"""g (float[N, 4] x) => (float[?, ?] y) <int64 zero = {{0}}, int64 one = {{1}}, int64 seven = {{7}},
        int64 two = {{2}}> {{ s = Shape (x) {nodes} y = Where (c, x, x) }}""")
    assert batch_sizes(made, "N", 1) == sizes


_STEPS = range(12)
_WEIGHTS = [(RNG.standard_normal((16, 16)) * 0.8).astype(np.float32) for _ in _STEPS]


def deep(batch: str, *, in_halves: bool, mixed: float = 0.0) -> ModelProto:
    """Return a model that amplifies rounding. in_halves: it adds up in another order. mixed: so much of the largest of
    all items reaches each.
    """
    nodes, last = [], "x"
    for step in _STEPS:
        parts = f"p{step}, q{step} = Split <axis = 1> ({last}) l{step} = MatMul (p{step}, u{step}) "
        parts += f"r{step} = MatMul (q{step}, v{step}) a{step} = Add (l{step}, r{step}) "
        nodes.append(parts if in_halves else f"a{step} = MatMul ({last}, w{step}) ")
        nodes.append(f"b{step} = Sin (a{step}) ")
        last = f"b{step}"
    mixing = f"m = ReduceMax <axes = [0]> ({last}) d = Sub (m, {last}) e = Mul (d, part) y = Add ({last}, e)"
    nodes.append(mixing if mixed else f"y = Identity ({last})")
    made = model(f"g (float[{batch}, 16] x) => (float[?, ?] y) {{ {''.join(nodes)} }}")
    arrays = {"part": np.float32(mixed)} if mixed else {}
    for step, weights in enumerate(_WEIGHTS):
        arrays |= {f"u{step}": weights[:8], f"v{step}": weights[8:]} if in_halves else {f"w{step}": weights}
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items())
    return made


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("mixed", "verdict"), [(0.0, "equal"), (1e-5, "different")])
def test_rounding_is_told_from_a_mistake(mixed: float, verdict: str) -> None:
    def verify(before: ModelProto, after: ModelProto, by_regions: bool, engine: Any = None) -> Verification:
        parts = 1e-3 if engine else 1.0
        running = {"engine": engine or "auto", "rtol": 1e-5 * parts, "atol": 1e-6 * parts, "samples": 2}
        return verify_models(before, after, by_regions=by_regions, **running)

    given = GivenSizes(NewSizes({"x": ["N", 16]}), frozenset("N"), {}, {}, {})
    pair = deep("1", in_halves=False, mixed=mixed), deep("N", in_halves=True, mixed=mixed)
    verification = verify_sizes(*pair, given, verify)
    assert verification.verdict == verdict, verification.difference_text
    is_rounding = any(note.code == "SG504" and "not so in float64" in note.message for note in verification.diagnostics)
    assert is_rounding == (verdict == "equal")
