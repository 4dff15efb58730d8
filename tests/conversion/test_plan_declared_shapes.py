"""A shape that is declared wrongly stands in nobody's way: nodes mean what they mean, and runtimes go by them."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, parser

import splitgraph
from splitgraph.findings.diagnostics import ConversionError

SPLIT = "a, b = Split <axis = 1> (x)  y = Concat <axis = 0> (a, b)"
BRANCHES = """c = Constant <value = bool {1}> ()
  y = If (c) <
    then_branch = t () => (float[4, 2] u) { u = Relu (x) },
    else_branch = e () => (float[3] v) { v = Neg (x) }
  >"""
LOOP = """n = Constant <value = int64 {2}> ()  c = Constant <value = bool {1}> ()
  y = Loop (n, c, x) <
    body = l (int64 i, bool k, float[7] s) => (bool k2, float[7] t) { k2 = Identity (k)  t = Relu (s) }
  >"""


def model(body: str, declared: str = "float[A, B]", inside: str = "", opset: int = 13) -> ModelProto:
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g (float[3, 4] x) => ({declared} y) {inside} {{ {body} }}'
    return parser.parse_model(text)


@pytest.mark.parametrize("declared", ["int64[A, B]", "seq(float[6, 2])", "int64[6, 3]", "int64[6]"])
def test_another_type_is_refused(declared: str) -> None:
    with pytest.raises(ConversionError) as caught:
        splitgraph.upgrade(model(SPLIT, declared), 18)
    assert [found.code for found in caught.value.diagnostics] == ["SG301"]


@pytest.mark.parametrize("declared", ["float[A, B]", "float[6, 2]", "float[6, M]"])
def test_nothing_is_said_of_a_right_shape(declared: str) -> None:
    assert splitgraph.upgrade(model(SPLIT, declared), 18).diagnostics == ()


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("body", "declared", "inside"),
    [
        (SPLIT, "float[6]", ""),
        (SPLIT, "float[6, 2, 1]", ""),
        (SPLIT, "float[6, 3]", ""),
        (SPLIT, "float[A, B]", "<float[3, 4] a>"),
        ("y = ReduceSum <keepdims = 0> (x)", "float[1]", ""),
        (BRANCHES, "float[A, B]", ""),
        (LOOP, "float[A, B]", ""),
    ],
)
@pytest.mark.parametrize("target", [18, 11])
def test_a_wrong_shape_is_kept_with_a_warning(body: str, declared: str, inside: str, target: int) -> None:
    before = model(body, declared, inside)
    # Of a part of a split it is an error, for its lengths and its declaration cannot both be meant.
    severity = "error" if " a>" in inside else "warning"
    found = splitgraph.infer(before).diagnostics
    assert {(each.code, each.severity) for each in found} == {("SG301", severity)}
    rewrite = (splitgraph.upgrade if target > 13 else splitgraph.downgrade)(before, target)
    assert {(found.code, found.severity) for found in rewrite.diagnostics} == {("SG301", "warning")}
    assert all("kept as declared" in found.message for found in rewrite.diagnostics)
    after: ModelProto = rewrite.model
    assert list(after.graph.output) == list(before.graph.output)
    assert list(after.graph.value_info) == list(before.graph.value_info)
    given = {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}
    [first], [second] = (run(made, given) for made in (before, after))
    np.testing.assert_array_equal(first, second)
    assert splitgraph.verify(before, after).verdict == "equal"


@pytest.mark.parametrize(("shape", "succeeds"), [("[1] {4}", True), ("[2] {1, 4}", False)])
def test_nothing_else_that_is_declared_is_believed(shape: str, succeeds: bool) -> None:
    # Which branch runs is not known: the rank of `r` is that of both, or none, whatever is declared of it.
    text = f"""<ir_version: 8, opset_import: ["": 11]> g (float[4] x, bool c) => (float[4, 1] y) <float[4] r> {{
      r = If (c) <
        then_branch = t () => (float[4] u) {{ u = Relu (x) }},
        else_branch = e () => (float[4] v) {{ s = Constant <value = int64{shape}> ()  v = Reshape (x, s) }}
      >
      y = Unsqueeze <axes = [-1]> (r)
    }}"""
    if succeeds:
        assert splitgraph.downgrade(parser.parse_model(text), 9).diagnostics == ()
        return
    with pytest.raises(ConversionError) as caught:
        splitgraph.downgrade(parser.parse_model(text), 9)
    assert {found.location for found in caught.value.diagnostics} >= {"main/Unsqueeze#1"}


def test_both_faults_are_told_where_one_of_them_blocks() -> None:
    made = model(SPLIT + "  z = Concat <axis = 9> (x, x)", "float[6]")
    with pytest.raises(ConversionError) as caught:
        splitgraph.upgrade(made, 18)
    assert [found.code for found in caught.value.diagnostics] == ["SG302"]


@pytest.mark.parametrize("to", ["variadic-split", "split"])
def test_forms_go_by_the_nodes_too(to: str) -> None:
    rewrite = splitgraph.convert(model(SPLIT, "float[6]"), to=to)
    assert ("SG301", "warning") in {(found.code, found.severity) for found in rewrite.diagnostics}


def run(made: onnx.ModelProto, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    found: list[np.ndarray] = onnxruntime.InferenceSession(made.SerializeToString(), options).run(None, given)
    return found


def scanned(first: str, second: str) -> onnx.ModelProto:
    """Running sums, and where they are no larger than what comes next. first, second: the shapes that the body says."""
    body = f"b (float[3] s, float[3] e) => (float{first} t, bool{second} o) {{ t = Add (s, e) o = LessOrEqual (t, e) }}"
    made = onnx.parser.parse_model(f"""<ir_version: 11, opset_import: ["": 23]>
        g (float[5, 3] x, float[3] s) => (float[3] sums, bool[5, 3] y)
        {{ sums, y = Scan<num_scan_inputs = 1, body = {body}>(s, x) }}""")
    for value in _body(made).output:
        if not value.type.tensor_type.shape.dim:
            value.type.tensor_type.ClearField("shape")
    return made


def _body(model: onnx.ModelProto) -> onnx.GraphProto:
    return next(attribute.g for attribute in model.graph.node[0].attribute if attribute.name == "body")


@pytest.mark.parametrize(
    ("declared", "expected"),
    [(("[]", "[]"), (3, 3)), (("[]", "[c]"), (3, "c")), (("[a]", "[c]"), ("a", "c"))],
)
def test_what_a_scan_gives_is_declared(declared: tuple[str, str], expected: tuple[int | str, ...]) -> None:
    """Below opset 16, onnxruntime infers no shape of a LessOrEqual, and runs no Scan without."""
    model = scanned(*declared)
    after = splitgraph.convert(model, opset=13, verify=True)
    shapes = [value.type.tensor_type.shape.dim for value in _body(after.model).output]
    assert tuple(dim.dim_param or dim.dim_value for (dim,) in shapes) == expected
    assert after.verification is not None
    assert (after.verification.verdict, after.verification.engine) == ("equal", "onnxruntime")


def test_what_a_scan_of_a_called_function_gives_is_declared() -> None:
    model = onnx.parser.parse_model("""<ir_version: 11, opset_import: ["": 23, "local": 1]>
        g (float[5, 3] x, float[3] s) => (float[3] sums, bool[5, 3] y) { sums, y = local.f(s, x) }
        <domain: "local", opset_import: ["": 23]> f (s, x) => (sums, y) { sums, y = Scan<num_scan_inputs = 1,
            body = b (float[3] c, float[3] e) => (float t, bool o) { t = Add (c, e) o = LessOrEqual (t, e) }>
            (s, x) }""")
    body = next(attribute.g for attribute in model.functions[0].node[0].attribute if attribute.name == "body")
    for value in body.output:
        value.type.tensor_type.ClearField("shape")
    after = splitgraph.convert(model, opset=13, verify=True)
    assert all(value.type.tensor_type.HasField("shape") for value in _body(after.model).output)
    assert after.verification is not None
    assert (after.verification.verdict, after.verification.engine) == ("equal", "onnxruntime")


def test_a_model_that_stays_at_its_opset_declares_what_it_did() -> None:
    model = scanned("[]", "[]")
    assert splitgraph.convert(model, opset=23).model == model
