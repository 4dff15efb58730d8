"""A branch that the given sizes rule out is information while another way is right; a fault at any size is an error."""

from __future__ import annotations

import pytest
from onnx import ModelProto, parser

import splitgraph

# What a branch may demand of x[N, M]; at N = 6, M = 4 the first of each pair holds and the second does not.
DEMANDS = [
    (
        "k = Constant <value = float[6, 4] {BIG}> ()  t = Add (x, k)",
        "k = Constant <value = float[5, 4] {FIVE}> ()  t = Add (x, k)",
    ),
    (
        "s = Constant <value_ints = [2, 4]> ()  t, u = Split <axis = 0> (x, s)",
        "s = Constant <value_ints = [2, 5]> ()  t, u = Split <axis = 0> (x, s)",
    ),
    ("t, u = Split <axis = 0> (x)", "t, u, v, w = Split <axis = 0> (x)"),
    (
        "s = Constant <value_ints = [24]> ()  t = Reshape (x, s)",
        "s = Constant <value_ints = [25]> ()  t = Reshape (x, s)",
    ),
    (
        "k = Constant <value = float[4] {1, 2, 3, 4}> ()  t = MatMul (x, k)",
        "k = Constant <value = float[3] {1, 2, 3}> ()  t = MatMul (x, k)",
    ),
    (
        "k = Constant <value = float[1, 4] {1, 2, 3, 4}> ()  t = Concat <axis = 0> (x, k)",
        "k = Constant <value = float[1, 3] {1, 2, 3}> ()  t = Concat <axis = 0> (x, k)",
    ),
]
DEMANDS = [
    (good.replace("BIG", ", ".join(["1"] * 24)), bad.replace("FIVE", ", ".join(["1"] * 20))) for good, bad in DEMANDS
]


def branches(then: str, other: str, before: str = "", shape: str = "N, M") -> ModelProto:
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (bool c, float[{shape}] x) => (float[] y) {{
          {before}
          r = If (c) <
            then_branch = a () => (float[] p) {{ {then}  p = ReduceSum <keepdims = 0> (t) }},
            else_branch = b () => (float[] q) {{ {other}  q = ReduceSum <keepdims = 0> (t) }}
          >
          y = Relu (r)
        }}"""
    )


def severities(model: ModelProto, **sizes: object) -> set[tuple[str, str]]:
    found = splitgraph.infer(model, **sizes)  # type: ignore[arg-type]
    return {(each.code, each.severity) for each in found.diagnostics}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("good", "bad"), DEMANDS)
@pytest.mark.parametrize("sizes", [{"bind": {"N": 6, "M": 4}}, {"input_shapes": {"x": [6, 4]}}], ids=str)
def test_a_branch_that_sizes_rule_out(good: str, bad: str, order: int, sizes: dict[str, object]) -> None:
    model = branches(*(good, bad)[::order])
    assert severities(model) == set()
    found = splitgraph.infer(model, **sizes)  # type: ignore[arg-type]
    assert {(each.code, each.severity) for each in found.diagnostics} == {("SG306", "info")}
    assert all(each.location.startswith("main/If#0/") or "/If#" in each.location for each in found.diagnostics)
    assert found.ok
    assert str(found.types["y"]) == "float32[]"


@pytest.mark.parametrize(("good", "bad"), DEMANDS)
def test_every_way_is_wrong(good: str, bad: str) -> None:
    found = splitgraph.infer(branches(bad, bad), bind={"N": 6, "M": 4})
    assert not found.ok
    assert len({each.location for each in found.diagnostics if each.severity == "error"}) >= 2


@pytest.mark.parametrize(("good", "bad"), DEMANDS)
def test_at_right_sizes_nothing_is_said(good: str, bad: str) -> None:
    assert severities(branches(good, good), bind={"N": 6, "M": 4}) == set()


@pytest.mark.parametrize(("good", "bad"), DEMANDS)
def test_a_fixed_model_that_no_runtime_loads(good: str, bad: str) -> None:
    """onnxruntime looks at branches when it loads a model, and refuses most of these; none of them is right."""
    assert not splitgraph.infer(branches(good, bad, shape="6, 4")).ok


def test_what_the_graph_around_demands_rules_a_branch_out() -> None:
    """No runtime sees this before it runs; there the branch fails, and the other one does not."""
    around = "s = Constant <value_ints = [2, 4]> ()  m, n = Split <axis = 0> (x, s)"
    inside = "s2 = Constant <value_ints = [2, 5]> ()  t, u = Split <axis = 0> (x, s2)"
    model = branches(inside, "t = Relu (x)", around)
    assert severities(model) == {("SG306", "info")}
    assert splitgraph.upgrade(model, 17).model.opset_import[0].version == 17


@pytest.mark.parametrize(
    "bad",
    [
        "t = Transpose <perm = [0, 1, 2]> (x)",
        "t = Softmax <axis = 5> (x)",
        "t = Relu <alpha = 1.0> (x)",
        "t, u = Split <axis = 7> (x)",
        "z = Cast <to = 7> (x)  t = Add (x, z)",
    ],
)
@pytest.mark.parametrize("sizes", [{}, {"bind": {"N": 6, "M": 4}}], ids=str)
def test_a_fault_at_any_size_stays_an_error(bad: str, sizes: dict[str, object]) -> None:
    found = splitgraph.infer(branches(bad, "t = Relu (x)"), **sizes)  # type: ignore[arg-type]
    assert not found.ok


def test_a_condition_that_is_known() -> None:
    good, bad = DEMANDS[1]
    model = branches(good, bad)
    constant = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g () => (bool c) { c = Constant <value = bool {0}> () }'
    )
    model.graph.node.insert(0, constant.graph.node[0])
    del model.graph.input[0]
    assert not splitgraph.infer(model, bind={"N": 6, "M": 4}).ok


def test_branches_in_branches() -> None:
    good, bad = DEMANDS[1]
    inner = f"""w = If (c) <
        then_branch = a2 () => (float[] p2) {{ {bad}  p2 = ReduceSum <keepdims = 0> (t) }},
        else_branch = b2 () => (float[] q2) {{ {{other}}  q2 = ReduceSum <keepdims = 0> (t) }}
      >  t = Identity (w)"""
    sizes = {"N": 6, "M": 4}
    right = branches(inner.replace("{other}", good), "t = Relu (x)")
    assert severities(right, bind=sizes) == {("SG306", "info")}
    # No way leads through the inner If, but one around it.
    wrong = branches(inner.replace("{other}", bad), "t = Relu (x)")
    assert severities(wrong, bind=sizes) == {("SG306", "info")}
    assert not splitgraph.infer(branches(inner.replace("{other}", bad), bad), bind=sizes).ok


@pytest.mark.parametrize(("count", "ok"), [("trips", True), ("one", False)])
def test_a_loop_that_may_not_start(count: str, ok: bool) -> None:
    _, bad = DEMANDS[1]
    text = f"""<ir_version: 8, opset_import: ["": 13]> g (int64 trips, float[N, M] x) => (float[] y) {{
      one = Constant <value = int64 {{1}}> ()
      zero = Constant <value = float {{0}}> ()
      y = Loop ({count}, , zero) <
        body = l (int64 i, bool k, float[] a) => (bool k2, float[] b) {{
          k2 = Identity (k)  {bad}  r = ReduceSum <keepdims = 0> (t)  b = Add (a, r)
        }}
      >
    }}"""
    found = splitgraph.infer(parser.parse_model(text), bind={"N": 6, "M": 4})
    assert found.ok == ok
    assert ("SG306" in {each.code for each in found.diagnostics}) == ok


def test_types_are_those_of_the_branch_that_can_run() -> None:
    text = """<ir_version: 8, opset_import: ["": 13]> g (bool c, float[N, M] x) => (y) {
      y = If (c) <
        then_branch = a () => (p) { s = Constant <value_ints = [2, 5]> ()  p, u = Split <axis = 0> (x, s) },
        else_branch = b () => (q) { q = Concat <axis = 1> (x, x) }
      >
    }"""
    found = splitgraph.infer(parser.parse_model(text), bind={"N": 6, "M": 4})
    assert str(found.types["y"]) == "float32[6, 8]"
