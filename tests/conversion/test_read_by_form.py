"""Nodes in the form of another version: errors, which a conversion reads as that version if it is told so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, parser

import splitgraph

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
Expected = Callable[[np.ndarray], "np.ndarray | tuple[np.ndarray, ...]"]
Y3, Y4 = "float[A, B, C] y", "float[A, B, C, D] y"


def model(opset: int, body: str, outputs: str = Y3, inputs: str = "float[2, 3, 4] x", function: str = "") -> ModelProto:
    imports = f'"": {opset}' + (', "local": 1' if function else "")
    text = f"<ir_version: 8, opset_import: [{imports}]> g ({inputs}) => ({outputs}) {{ {body} }} {function}"
    return parser.parse_model(text)


# What must not change -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "y = Relu <alpha = 0.1> (x)",
        "a = Constant <value = int64[1] {0}> ()  y = ReduceMean <axes = [1]> (x, a)",
        "y = Softmax <axes = [1]> (x)",
        "y = ReduceMean <axes = [1], foo = 1> (x)",
        "y = Concat <axis = 0, new_axis = 1> (x, x)",
    ],
)
@pytest.mark.parametrize("options", [{"opset": 21}, {"opset": 13}, {"opset": 18}, {"to": "slice"}])
def test_a_node_in_no_form_is_refused(body: str, options: dict[str, int]) -> None:
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.convert(model(18, body), read_by_form=True, **options)
    assert [found.code for found in caught.value.diagnostics] == ["SG212"]


@pytest.mark.parametrize("opset", [18, 21, 11])
def test_a_valid_model_becomes_the_same(opset: int) -> None:
    made = model(13, "a = Constant <value = int64[1] {1}> ()  y = ReduceSum (x, a)")
    one, other = (splitgraph.convert(made, opset=opset, read_by_form=asked) for asked in (False, True))
    assert one.model == other.model
    assert one.diagnostics == other.diagnostics


def test_an_attribute_that_changes_nothing_is_repaired_as_before() -> None:
    made = model(
        9, "s = Constant <value = float[3] {1, 2, 3}> ()  y = BatchNormalization <spatial = 1> (x, s, s, s, s)"
    )
    rewrite = splitgraph.upgrade(made, 13, read_by_form=True)
    assert [found.message for found in rewrite.diagnostics if "read as" in found.message] == []


def test_what_the_other_version_forbids_stays_wrong() -> None:
    made = model(13, "y = Clip <min = 0.0> (x)", "int64[A, B, C] y", "int64[2, 3, 4] x")
    with pytest.raises(splitgraph.ConversionError, match="Clip-6: input 0 is int64"):
        splitgraph.upgrade(made, 18, read_by_form=True)


def test_another_word_is_no_option() -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="read_by_form is 'yes'"):
        splitgraph.upgrade(model(13, "y = Relu (x)"), 18, read_by_form="yes")  # type: ignore[arg-type]


# What is said ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opset", "body", "text"),
    [
        (13, "y = Unsqueeze <axes = [0]> (x)", "Unsqueeze-11 takes axes as an attribute; this model is at 13"),
        (18, "y = ReduceMean <axes = [1]> (x)", "ReduceMean-13 takes axes as an attribute; this model is at 18"),
        (
            13,
            "y = Slice <starts = [0], ends = [1]> (x)",
            "Slice-1 takes starts and ends as attributes; this model is at 13",
        ),
        (9, "y = Slice (x, s, s)", "Slice-10 takes starts and ends as inputs; this model is at 9"),
        (11, "y = Unsqueeze (x, s)", "Unsqueeze-13 takes axes as an input; this model is at 11"),
        (13, 'y = Cast <to = "INT32"> (x)', "Cast-1 takes to in another type; this model is at 13"),
        (
            13,
            "y, z = Split <axis = 2, split = [1, 3]> (x)",
            "Split-11 takes split as an attribute; this model is at 13",
        ),
        # The type of the lengths tells Split-13 from Split-1.
        (11, "y, z = Split <axis = 2> (x, t)", "Split-13 takes split as an input; this model is at 11"),
        # Resize-13 and later have a region of interest at this place, and need scales or sizes.
        (11, "y = Resize (x, q)", "Resize-10 has the inputs, outputs and attributes of this node; this model is at 11"),
        (13, "y = Resize (x, q)", "Resize-10 has the inputs, outputs and attributes of this node; this model is at 13"),
        (18, "y = Resize (x, q)", "Resize-10 has the inputs, outputs and attributes of this node; this model is at 18"),
        (
            10,
            "y = QuantizeLinear <axis = 1> (x, q)",
            "QuantizeLinear-13 takes axis as an attribute; this model is at 10",
        ),
        (
            12,
            "y = QuantizeLinear (x, q)",
            "QuantizeLinear-13 has the inputs, outputs and attributes of this node; this model is at 12",
        ),
        (
            13,
            "y, z = Split <axis = 1, num_outputs = 2> (x)",
            "Split-18 takes num_outputs as an attribute; this model is at 13",
        ),
    ],
)
def test_the_finding_names_the_version_and_the_option(opset: int, body: str, text: str) -> None:
    inputs = "float[2, 3, 4] x, int64[1] s, int64[2] t, float[3] q"
    found = splitgraph.infer(model(opset, body, inputs=inputs)).diagnostics[-1]
    assert (found.code in ("SG212", "SG302", "SG206"), found.severity) == (True, "error")
    assert found.help is not None and "--read-by-form" in found.help
    assert f"{found.message}\n{found.help}".count(text) == 1


@pytest.mark.parametrize("body", ["y = Relu <alpha = 0.1> (x)", "y = OneHot <depth = 3> (x)", "y = Add (x, x, x)"])
def test_a_node_in_no_form_names_no_option(body: str) -> None:
    [found] = splitgraph.infer(model(13, body)).diagnostics
    assert found.help is not None and "--read-by-form" not in found.help


# What such nodes become -----------------------------------------------------------------------------------------------


def _top(x: np.ndarray) -> tuple[np.ndarray, ...]:
    return -np.sort(-x, -1)[..., :2], np.argsort(-x, -1, kind="stable")[..., :2]


_INTS = """s = Constant <value = int64[1] {1}> ()  e = Constant <value = int64[1] {3}> ()
  a = Constant <value = int64[1] {2}> ()"""
_BODY = "f <k> (x) => (r) { r = Unsqueeze <axes: ints = @k> (x) }"
_BRANCHES = """c = Constant <value = bool {1}> ()  y = If (c) <
  then_branch = t () => (float[A, B, C] u) { u = ReduceSum <axes = [1]> (x) },
  else_branch = e () => (float[A, B, C] v) { v = ReduceSum <axes = [1]> (x) }>"""
_SCALES = "s = Constant <value = float[3] {1, 1, 2}> ()"
TABLE: dict[str, tuple[ModelProto, tuple[int, ...], Expected]] = {
    "ReduceMean": (
        model(18, "y = ReduceMean <axes = [1], keepdims = 0> (x)", "float[A, B] y"),
        (18, 21, 13, 9),
        lambda x: x.mean(1),
    ),
    "ReduceSum": (model(13, "y = ReduceSum <axes = [-1]> (x)"), (18, 11), lambda x: x.sum(-1, keepdims=True)),
    "Unsqueeze": (model(13, "y = Unsqueeze <axes = [0]> (x)", Y4), (13, 18, 11), lambda x: x[None]),
    "Split": (
        model(13, "y, z = Split <axis = 2, split = [1, 3]> (x)", f"{Y3}, float[A, B, D] z"),
        (18, 13, 11),
        lambda x: (x[..., :1], x[..., 1:]),
    ),
    "chunks": (
        model(13, "y, z = Split <axis = 1, num_outputs = 2> (x)", f"{Y3}, float[A, D, C] z"),
        (18, 13),
        lambda x: (x[:, :2], x[:, 2:]),
    ),
    "uneven chunks at 11": (
        model(11, "y, z = Split <axis = 1, num_outputs = 2> (x)", f"{Y3}, float[A, D, C] z"),
        (18, 11),
        lambda x: (x[:, :2], x[:, 2:]),
    ),
    "lengths at 11": (
        model(
            11, "q = Constant <value = int64[2] {1, 3}> ()  y, z = Split <axis = 2> (x, q)", f"{Y3}, float[A, B, D] z"
        ),
        (18, 11),
        lambda x: (x[..., :1], x[..., 1:]),
    ),
    "Resize at 11": (model(11, f"{_SCALES}  y = Resize (x, s)"), (18, 11, 10), lambda x: x.repeat(2, 2)),
    "Resize at 13": (model(13, f"{_SCALES}  y = Resize (x, s)"), (18, 13, 9), lambda x: x.repeat(2, 2)),
    "scales of channels": (
        model(
            10,
            """s = Constant <value = float[3] {1, 2, 4}> ()  z = Constant <value = uint8[3] {128, 128, 128}> ()
  y = QuantizeLinear (x, s, z)""",
            "uint8[A, B, C] y",
        ),
        (13, 10),
        lambda x: (np.rint(x / np.array([[1], [2], [4]])) + 128).astype(np.uint8),
    ),
    "Clip": (model(11, "y = Clip <min = -0.5, max = 0.5> (x)"), (13, 11, 6), lambda x: x.clip(-0.5, 0.5)),
    "Pad": (
        model(13, "y = Pad <pads = [0, 0, 1, 0, 0, 2]> (x)"),
        (18, 10),
        lambda x: np.pad(x, [(0, 0), (0, 0), (1, 2)]),
    ),
    "Slice": (model(13, "y = Slice <starts = [1], ends = [3], axes = [2]> (x)"), (18, 9), lambda x: x[:, :, 1:3]),
    "TopK": (model(11, "y, i = TopK <k = 2> (x)", f"{Y3}, int64[A, B, C] i"), (13, 9), _top),
    "Upsample": (
        model(9, 'y = Upsample <mode = "nearest", scales = [1.0, 1.0, 2.0]> (x)'),
        (9, 13),
        lambda x: x.repeat(2, 2),
    ),
    "removed": (model(13, f'{_SCALES}  y = Upsample <mode = "nearest"> (x, s)'), (13, 18), lambda x: x.repeat(2, 2)),
    "Cast": (model(13, 'y = Cast <to = "INT32"> (x)', "int32[A, B, C] y"), (18, 9), lambda x: x.astype(np.int32)),
    "Add": (
        model(13, "b = Constant <value = float[3] {1, 2, 3}> ()  y = Add <axis = 1, broadcast = 1> (x, b)"),
        (13, 18),
        lambda x: x + np.array([1, 2, 3], np.float32)[:, None],
    ),
    "newer Constant": (model(11, "c = Constant <value_float = 2.0> ()  y = Mul (x, c)"), (13, 11, 9), lambda x: x * 2),
    "newer Slice": (model(9, f"{_INTS}  y = Slice (x, s, e, a)"), (9, 13), lambda x: x[:, :, 1:3]),
    "newer ReduceMean": (
        model(13, f"{_INTS}  y = ReduceMean (x, s)"),
        (13, 18, 11),
        lambda x: x.mean(1, keepdims=True),
    ),
    "both forms": (
        model(18, f"{_INTS}  p = ReduceMean <axes = [1]> (x)  q = ReduceMean (x, s)  y = Add (p, q)"),
        (18, 21, 13),
        lambda x: 2 * x.mean(1, keepdims=True),
    ),
    "twins": (
        model(13, "p = Unsqueeze <axes = [0]> (x)  q = Unsqueeze <axes = [0]> (x)  y = Add (p, q)", Y4),
        (13, 18, 11),
        lambda x: 2 * x[None],
    ),
    "branches": (model(13, _BRANCHES), (13, 18, 11), lambda x: x.sum(1, keepdims=True)),
    "function": (
        model(
            13,
            "y = local.f <k = [0]> (x)",
            Y4,
            function=f'<domain: "local", opset_import: ["": 13]> {_BODY}',
        ),
        (13, 18, 11),
        lambda x: x[None],
    ),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("name", "to"), [(name, to) for name, row in TABLE.items() for to in row[1]])
def test_the_result_computes_what_the_form_means(name: str, to: int) -> None:
    before, _, expected = TABLE[name]
    assert not splitgraph.infer(before).ok
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.convert(before, opset=to)
    rewrite = splitgraph.convert(before, opset=to, read_by_form=True)
    assert any(found.code == "SG401" and found.message.startswith("read as ") for found in rewrite.diagnostics)
    onnx.checker.check_model(rewrite.model)
    wanted = expected(X)
    found = onnxruntime.InferenceSession(rewrite.model.SerializeToString()).run(None, {"x": X})
    for mine, theirs in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


@pytest.mark.parametrize("options", [{"to": "slice"}, {"target": "opencv"}, {"opset": 18}, {}])
def test_every_verb_has_it(options: dict[str, object]) -> None:
    before = model(13, "u = Unsqueeze <axes = [0]> (x)  y, z = Split <axis = 3> (u)", f"{Y4}, float[A, B, C, D] z")
    rewrite = splitgraph.convert(before, read_by_form=True, **options)  # type: ignore[call-overload]
    assert splitgraph.infer(rewrite.model).ok
    assert splitgraph.infer(splitgraph.reshape(before, {"x": [2, 3, 8]}, read_by_form=True).model).ok


# Verification ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("in_process")
def test_the_original_is_run_as_it_is_read() -> None:
    rewrite = splitgraph.upgrade(TABLE["ReduceMean"][0], 20, read_by_form=True, verify=True)
    assert rewrite.verified is True


@pytest.mark.parametrize(
    ("opset", "body", "to"),
    [
        # Slice-1 has no starts that a run decides; the other forms have a meaning at their opset that no rewrite has.
        (9, "y = Slice (x, s, e)", 13),
        (6, "l = Constant <value = float {0.5}> ()  y = Clip (x, l)", 13),
        (8, "y = MaxPool <kernel_shape = [2], dilations = [2]> (x)", 13),
        # One node in an older form beside one in a newer form.
        (9, 'u = Upsample <mode = "nearest", scales = [1.0, 1.0, 2.0]> (x)  y = Slice (u, s, e)', 13),
    ],
)
def test_the_original_is_run_at_the_opset_of_a_newer_form(opset: int, body: str, to: int) -> None:
    before = model(opset, body, inputs="float[N, 3, 4] x, int64[1] s, int64[1] e")
    rewrite = splitgraph.upgrade(before, to, read_by_form=True, verify=True)
    assert rewrite.verification is not None and rewrite.verification.verdict == "equal"


def test_a_target_has_another_opset() -> None:
    """Gelu has no form at opset 8, and the runtime reads newer ones."""
    before = model(8, "y = Gelu (x)")
    rewrite = splitgraph.convert(before, target="openvino", read_by_form=True)
    assert splitgraph.infer(rewrite.onnx_model).ok
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.convert(before, to="slice", read_by_form=True)


@pytest.mark.usefixtures("in_process")
def test_what_no_engine_has_is_not_run() -> None:
    rewrite = splitgraph.upgrade(model(7, "y = Dropout <is_test = 0> (x)"), 13, read_by_form=True, verify=True)
    assert rewrite.verification is not None and rewrite.verification.verdict == "not-run"
